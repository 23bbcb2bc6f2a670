"""Programs in Python, PHP and Ruby, recorded: their own functions, lines and files, at the right places between native frames. Arguments:
the build folder, and optionally a part of the names of the cases. SPDX-License-Identifier: MIT"""
import functools
import json
import os
import pathlib
import pstats
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import ROOT, Folder, Offbeat, case, case_by_the_clock, check, check_equal, long, main, run, short, skip, slowness, text, user_without_rights  # noqa: E402
from storm_stacks import judge  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
PYTHON = "/usr/bin/python3"
SHARES = (PYTHON, ROOT / "test/end_to_end/python_shares.py")
PHP = "/usr/bin/php8.2"
PHP_SHARES = (PHP, "-n", ROOT / "test/end_to_end/php_shares.php")  # without extensions that trace
RUBY = "/usr/bin/ruby3.1"
RUBY_SHARES = (RUBY, ROOT / "test/end_to_end/ruby_shares.rb")
POINTS = 3
FREQUENCY = ("-F", "997")  # with 400 samples, a share would often be wrong by 3 points


def shares_of(folder, names):
    """Percent of the CPU time below each of NAMES, functions of the program, of the time in all of them."""
    answer = OFFBEAT.answer("top", "--running", "x.pb.gz", cwd=folder)
    totals = {function["name"]: function["total"] for function in answer["functions"]}
    every = sum(totals.get(name, 0) for name in names)
    check(every > 0, f"none of {', '.join(names)} is in the profile, only {sorted(totals)[:20]}")
    return {name: 100 * totals.get(name, 0) / every for name in names}


def needs(program):
    if not pathlib.Path(program).exists():
        skip(f"{program} is not installed")


def record_shares(folder, program, seconds, options=()):
    done = OFFBEAT.record(folder, *program, str(seconds), options=options)
    check(done.returncode == 0, f"{program[0]}: status {done.returncode}: {text(done.stderr)}")
    return json.loads(text(done.stdout))


def check_shares(folder, spent):
    """The profile in FOLDER has the shares of the CPU time that the parts have SPENT."""
    every, shown = sum(spent.values()), shares_of(folder, spent)
    shares = {name: 100 * value / every for name, value in spent.items()}
    wrong = {name: (round(shares[name], 1), round(shown[name], 1)) for name in spent if abs(shares[name] - shown[name]) > POINTS}
    check(not wrong, f"percent spent and shown: {wrong}")


@short
@case_by_the_clock
def python_functions_have_their_shares():
    with Folder() as folder:
        check_shares(folder, record_shares(folder, SHARES, 4, FREQUENCY))


@case
def a_program_behind_wrappers_is_called_by_its_script():
    with Folder() as folder:
        wrapper = folder / "python3"
        wrapper.write_text(f"""#!/bin/sh
(exit 0)
exec {PYTHON} "$@"
""", encoding="utf-8")
        wrapper.chmod(0o755)
        (folder / "busy.py").write_text("sum(range(3000000))", encoding="utf-8")
        (folder / "start.sh").write_text("#!/bin/bash\n(exit 0)\nexec ./python3 busy.py", encoding="utf-8")
        (folder / "start.sh").chmod(0o755)
        for command in ((wrapper, "busy.py"), ("bash", "start.sh"), ("./start.sh",)):
            done = OFFBEAT.record(folder, *command)
            check(done.returncode == 0, text(done.stderr))
            heading = text(run(OFFBEAT.program, "top", "x.pb.gz", cwd=folder).stdout).splitlines()[0]
            check_equal(heading, "File: busy.py", f"the first line of top, after {command[0]}")


@case_by_the_clock
def php_functions_have_their_shares():
    needs(PHP)
    with Folder() as folder:
        check_shares(folder, record_shares(folder, PHP_SHARES, 3, FREQUENCY))


@case_by_the_clock
def ruby_functions_have_their_shares():
    needs(RUBY)
    with Folder() as folder:
        check_shares(folder, record_shares(folder, RUBY_SHARES, 3, FREQUENCY))
        stacks = OFFBEAT.stacks("x.pb.gz", folder)
        for caller, method in (("native", "sum"), ("callback", "sort_by"), ("generator", "times")):  # methods in C
            check(any(caller in frames and method in frames for frames, _ in stacks), f"no stack has {method} under {caller}")


class Running:
    """A program, until the end of the block."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE)

    def __enter__(self):
        time.sleep(0.5 * slowness())
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def record_from_outside(folder, engine, process, seconds, *options):
    done = run(OFFBEAT.program, "record", "--engine", engine, "-p", process.pid, "-d", seconds, "-o", "x.pb.gz", *FREQUENCY, *options,
               cwd=folder)
    if "no engine can record" in text(done.stderr):
        skip(text(done.stderr))
    check(done.returncode == 0, f"{engine}: status {done.returncode}: {text(done.stderr)}")


def check_sleeper(engine, program=SHARES):
    """The thread that sleeps all the time has its functions in all of its time."""
    with Folder() as folder, Running(*program, 30) as process:
        record_from_outside(folder, engine, process, 1.5)
        threads = [thread for thread in OFFBEAT.threads(folder / "x.pb.gz") if "sleeper" in thread[1]]
        check(len(threads) == 1, f"{engine}: {len(threads)} threads run sleeper()")
        share = threads[0][1]["sleeper"] / threads[0][2]
        heading = text(run(OFFBEAT.program, "top", "x.pb.gz", cwd=folder).stdout).splitlines()[0]
        check_equal(heading, f"File: {program[-1].name}", "the first line of top")
        check(share > 0.9, f"{engine}: sleeper() has {100 * share:.0f} % of its thread's time")


@short
@case_by_the_clock
def sleeping_python_has_its_functions_by_proc():
    check_sleeper("proc")


@case_by_the_clock
def sleeping_ruby_has_its_functions_by_proc():
    needs(RUBY)
    check_sleeper("proc", RUBY_SHARES)


@case_by_the_clock
def sleeping_python_has_its_functions_by_perf():
    check_sleeper("perf")


@case_by_the_clock
def sleeping_python_has_its_functions_by_bpf():
    check_sleeper("bpf")


@case
def a_user_without_rights_is_told_what_running_threads_lack():
    with Folder() as folder, Running(*SHARES, 30) as process:
        done = run(OFFBEAT.program, "record", "--engine", "perf", "-p", process.pid, "-d", 1, "-o", "x.pb.gz", cwd=folder)
        if "no engine can record" in text(done.stderr):
            skip(text(done.stderr))
        lines = [line for line in text(done.stderr).splitlines() if "threads that run" in line]
        check(len(lines) == 1 and "CPython 3" in lines[0] and "--engine bpf" in lines[0], f"the lines about the functions: {text(done.stderr)}")


@short
@case
def frames_of_the_interpreter_are_kept_from_outside():
    with Folder() as folder, Running(*SHARES, 30) as process:
        record_from_outside(folder, "bpf", process, 1, "--native")
        names = text(run(OFFBEAT.program, "top", "-n", "0", "x.pb.gz", cwd=folder).stdout)
        check("sleeper" in names and "_PyEval_EvalFrameDefault" in names, names)


def check_shares_from_outside(engine, program, seconds=4):
    with Folder() as folder, Running(*program, seconds) as process:
        record_from_outside(folder, engine, process, 60)
        spent = json.loads(process.stdout.read())
        check_shares(folder, spent)


@short
@case_by_the_clock
def running_python_has_its_shares_by_bpf():
    check_shares_from_outside("bpf", SHARES)


@short
@case_by_the_clock
def running_php_has_its_shares_by_bpf():
    needs(PHP)
    check_shares_from_outside("bpf", PHP_SHARES)


@short
@case_by_the_clock
def running_ruby_has_its_shares_by_bpf():
    needs(RUBY)
    check_shares_from_outside("bpf", RUBY_SHARES)


# --- Beside cProfile -------------------------------------------------------------------------------------------------

def check_beside_cprofile(program):
    """While cProfile watches a program, which slows it down, both see the same functions for the same part of the CPU time."""
    least, points = 5, 6
    with Folder() as folder:
        done = OFFBEAT.record(folder, PYTHON, ROOT / "test/end_to_end/python_programs.py", program, "2.5", "x.pstats", options=FREQUENCY)
        check(done.returncode == 0, text(done.stderr))
        theirs, ours = {}, {}
        for (_, _, name), (_, _, _, total, _) in pstats.Stats(str(folder / "x.pstats")).stats.items():
            theirs[name] = max(theirs.get(name, 0), total)
        for function in OFFBEAT.answer("top", "--running", "-n", "0", "x.pb.gz", cwd=folder)["functions"]:
            name = function["name"].rpartition(".")[2]
            ours[name] = max(ours.get(name, 0), function["total"])
        theirs, ours = ({name: 100 * total / totals["main"] for name, total in totals.items() if name.isidentifier() and name in theirs}
                        for totals in (theirs, ours))
        judged = [name for name in theirs if max(theirs[name], ours.get(name, 0)) > least]
        wrong = {name: (round(theirs[name], 1), round(ours.get(name, 0), 1)) for name in judged if abs(theirs[name] - ours.get(name, 0)) > points}
        check(len(judged) > 8, f"only {judged} have over {least} % of the time")
        check(not wrong, f"percent by cProfile and by offbeat: {wrong}")


@case_by_the_clock
def functions_have_their_totals_beside_cprofile():
    check_beside_cprofile("texts")


@case_by_the_clock
def methods_have_their_totals_beside_cprofile():
    check_beside_cprofile("objects")


# --- Beside Excimer and stackprof --------------------------------------------------------------------------------------

def check_beside(program, other, variable):
    """A program is recorded by BPF while OTHER, which it loads, records it too: offbeat is within POINTS of what its functions have
    spent, and by no more than a point farther from that than OTHER."""
    with Folder() as folder:
        with Running("/usr/bin/env", f"{variable}={folder}/seen.json", *program, 6) as process:
            record_from_outside(folder, "bpf", process, 60)
            spent = json.loads(process.stdout.read())
        seen = {name.rpartition("#")[2]: count for name, count in json.loads((folder / "seen.json").read_text(encoding="utf-8")).items()}
        shown = shares_of(folder, spent)
        true, theirs = ({name: 100 * values.get(name, 0) / sum(values.get(name, 0) for name in spent) for name in spent} for values in (spent, seen))
        rows = {name: (round(true[name], 1), round(shown[name], 1), round(theirs[name], 1)) for name in spent}
        print(f"# percent spent, by offbeat, by {other}: {rows}")
        ours, others = (max(abs(true[name] - values[name]) for name in spent) for values in (shown, theirs))
        check(ours <= POINTS and ours <= others + 1, f"{ours:.1f} points from what was spent, {other} {others:.1f}")


@long
@case_by_the_clock
def php_functions_have_their_shares_beside_excimer():
    needs("/usr/lib/php/20220829/excimer.so")
    check_beside((PHP, "-n", "-d", "extension=excimer.so", "-d", f"auto_prepend_file={ROOT}/test/end_to_end/php_excimer.php", PHP_SHARES[-1]),
                 "excimer", "EXCIMER")


@long
@case_by_the_clock
def ruby_functions_have_their_shares_beside_stackprof():
    needs("/usr/bin/stackprof")
    check_beside((RUBY, "-r", ROOT / "test/end_to_end/ruby_stackprof.rb", RUBY_SHARES[-1]), "stackprof", "STACKPROF")


# --- An ordinary user, and Python of other releases of Debian ----------------------------------------------------------

@case_by_the_clock
def python_functions_have_their_shares_as_an_ordinary_user():
    user, offbeat = user_without_rights(), OFFBEAT.reachable()
    with Folder() as folder:
        folder.chmod(0o777)
        script = shutil.copy(SHARES[1], folder)
        done = offbeat.record(folder, PYTHON, script, 4, options=FREQUENCY, **user)
        check(done.returncode == 0, text(done.stderr))
        check_shares(folder, json.loads(text(done.stdout)))


RELEASES = {"bullseye": "3.9", "trixie": "3.13", "sid": "3.14"}


@functools.lru_cache(maxsize=None)
def unpacked(release):
    """The folder with Python of RELEASE and its libraries, and a text why there is none. They are kept for the next run."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "offbeat-interpreters"
    tree = cache / release
    if (tree / "complete").exists():
        return tree, ""
    if not shutil.which("mmdebstrap"):
        return None, "mmdebstrap is not installed"
    cache.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(tree, ignore_errors=True)
    done = subprocess.run(["mmdebstrap", "--variant=extract", '--aptopt=Acquire::Check-Valid-Until "false"', "--include=python3", release, tree],
                          capture_output=True, check=False)
    if done.returncode:
        return None, f"the packages of {release} are not to be had: {text(done.stderr)[-300:]}"
    for name in ("lib", "lib64", "bin"):  # base-files, which is not unpacked, has these links
        if not (tree / name).exists():
            (tree / name).symlink_to(f"usr/{name}")
    (tree / "complete").touch()
    return tree, ""


def python_of(release):
    """(tree, command) of the Python of RELEASE, run with its libraries in this system."""
    tree, why = unpacked(release)
    if not tree:
        skip(why)
    program = tree / f"usr/bin/python{RELEASES[release]}"
    if not program.exists():
        skip(f"{release} has another version than {RELEASES[release]}")
    libraries = [tree / "usr/lib/x86_64-linux-gnu"]
    loader = ()
    if (tree / "lib").is_symlink():  # its C library is newer than ours
        loader = (libraries[0] / "ld-linux-x86-64.so.2", "--library-path", libraries[0])
    return tree, ("/usr/bin/env", f"PYTHONHOME={tree}/usr", *(() if loader else (f"LD_LIBRARY_PATH={libraries[0]}",)), *loader, program)


def add_release(release):
    def inside():
        _, python = python_of(release)
        with Folder() as folder:
            check_shares(folder, record_shares(folder, (*python, SHARES[1]), 6, FREQUENCY))

    def outside():
        tree, _ = python_of(release)
        shutil.copy(SHARES[1], tree / "shares.py")
        check_shares_from_outside("bpf", ("chroot", tree, f"/usr/bin/python{RELEASES[release]}", "/shares.py"), 6)

    for function, place in ((inside, "inside"), (outside, "by bpf in another root")):
        function.__name__ = f"python {RELEASES[release]} of {release} has its shares {place}"
        long(case_by_the_clock(function))


for release in RELEASES:
    add_release(release)


# --- The records on the C stack ----------------------------------------------------------------------------------------

def check_records(stops, python):
    """Each record that the interpreter has left is in exactly one native frame of its stack, at STOPS random moments."""
    done = run(OFFBEAT.programs / "python_records", stops, *python, SHARES[1], 60)
    if done.returncode == 77:
        skip(text(done.stderr))
    found = json.loads(text(done.stdout))
    print(f"# {found}")
    check(found["stacks"] > 0.97 * stops and found["records"] > found["stacks"], f"few stacks: {found}")
    check_equal(found["in_one_frame"], found["records"], "records in exactly one native frame")
    check_equal((found["shared"], found["not_merged"]), (0, 0), "records in the same frame, and stacks that were not merged")


@case
def every_record_is_in_one_native_frame_without_a_symbol_table():
    with Folder() as folder:
        stripped = folder / "python3"
        check_equal(run("strip", "-s", "-o", stripped, PYTHON).returncode, 0, "status of strip")
        check(".symtab" not in text(run("readelf", "-SW", stripped).stdout), "the copy has symbols")
        check_records(300, ("/usr/bin/env", "PYTHONHOME=/usr", stripped))


@long
@case
def every_record_of_other_releases_is_in_one_native_frame():
    for release in ("trixie", "sid"):  # 3.9 leaves none
        check_records(3000, python_of(release)[1])


# --- A storm of code objects, imports and threads ------------------------------------------------------------------

STORM = (PYTHON, ROOT / "test/end_to_end/python_storm.py")
STORM_RATE = ("-F", "4000")


def record_storm(folder, engine, seconds, kind):
    if engine == "inside":
        done = OFFBEAT.record(folder, *STORM, seconds, kind, options=STORM_RATE)
        check(done.returncode == 0, text(done.stderr))
        return
    with Running(*STORM, 1000, kind) as process:
        record_from_outside(folder, engine, process, seconds, *STORM_RATE)


def check_storm(engine, kind, wanted, seconds, torn_max):
    """No name and no stack of at least WANTED is wrong, and at most TORN_MAX of all, in percent, could not be read."""
    stacks = torn = units = 0
    while stacks < wanted:
        with Folder() as folder:
            record_storm(folder, engine, seconds, kind)
            counters = OFFBEAT.answer("info", "x.pb.gz", cwd=folder)["recorder"]
            faults, with_units, gone = judge(folder / "x.pb.gz")
        check(not faults, f"{len(faults)} faults, such as {list(faults)[:3]}")
        check(with_units > 0 and gone < 0.5 * with_units, f"{gone} of {with_units} different stacks have functions that are gone")
        stacks, torn, units = stacks + counters["interpreter_stacks"], torn + counters["interpreter_stacks_torn"], units + with_units
    print(f"# {engine}: {stacks} stacks, {units} different ones with functions of units, {torn} torn")
    few = 2  # of few stacks, on a busy machine, one is a large part
    check(torn <= few + torn_max / 100 * stacks, f"{torn} of {stacks} stacks were given up")


@short
@case
def a_storm_has_no_wrong_name_inside():
    check_storm("inside", "storm", 50, 3, 1)


@case
def a_storm_has_no_wrong_name_by_bpf():
    check_storm("bpf", "storm", 50, 3, 1)


@case
def proc_gives_up_few_stacks_of_an_ordinary_program():
    check_storm("proc", "calls", 100, 3, 0.5)


@long
@case
def a_long_storm_has_no_wrong_name_inside():
    check_storm("inside", "storm", 50000, 60, 0.5)


@long
@case
def a_long_storm_has_no_wrong_name_by_bpf():
    check_storm("bpf", "storm", 50000, 30, 0.5)


@long
@case
def proc_gives_up_few_stacks_for_long():
    check_storm("proc", "calls", 50000, 60, 0.5)


# --- The interpreter's lock ------------------------------------------------------------------------------------------

LOCK = "[waiting for the GIL]"
FIGHT = """
import sys, threading, time
def spin(end):
    while time.monotonic() < end:
        sum(range(1000))
end = time.monotonic() + float(sys.argv[1])
threads = [threading.Thread(target=spin, args=(end,)) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def check_waits(folder, least):
    """The threads wait for the lock, two of three at a time, and only there."""
    stacks = OFFBEAT.stacks("x.pb.gz", folder)
    spinning = sum(weight for frames, weight in stacks if "spin" in frames)
    waiting = sum(weight for frames, weight in stacks if LOCK in frames and "spin" in frames)
    elsewhere = sum(weight for frames, weight in stacks if LOCK in frames and "spin" not in frames)
    check(waiting > least * spinning, f"{100 * waiting / max(1, spinning):.0f} % of spin() are waits for the lock")
    check(elsewhere <= 0.1 * spinning, f"{elsewhere} ns of waits for the lock are outside of spin()")


@case_by_the_clock
def waits_for_the_lock_are_shown_inside():
    with Folder() as folder:
        done = OFFBEAT.record(folder, PYTHON, "-c", FIGHT, "2")
        check(done.returncode == 0, text(done.stderr))
        check_waits(folder, 0.2)  # the rest are waits for a processor, on a busy machine


@short
@case_by_the_clock
def waits_for_the_lock_are_shown_from_outside():
    with Folder() as folder, Running(PYTHON, "-c", FIGHT, "60") as process:
        record_from_outside(folder, "proc", process, 1)
        check_waits(folder, 0.4)


main(sys.argv[2] if len(sys.argv) > 2 else "")
