"""`offbeat record` says what it could not see, and the program notices nothing of it. Arguments: the build folder, and
optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import (ROOT, Folder, Offbeat, case, case_by_the_clock, check, check_equal, main, opens, run, skip,  # noqa: E402
                       text, user_without_rights)

OFFBEAT = Offbeat(sys.argv[1]).reachable()  # some cases run programs as an ordinary user


def program(name):
    """The program NAME of this folder, as built."""
    return OFFBEAT.build / "test/safety" / f"safety_{name}"


BUSY, STATIC = program("busy"), program("busy_static")


def need_root():
    if os.geteuid() != 0:
        skip("needs root")


def facts(folder):
    return OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]


def lines_about(done, words):
    return [line for line in text(done.stderr).splitlines() if line.startswith("offbeat: ") and words in line]


def check_not_sampled(folder, done, count, *names):
    """Exactly one line names them all, and info has the same."""
    check_equal(done.returncode, 0, f"exit status; {text(done.stderr)}")
    lines = lines_about(done, "could not be sampled")
    check_equal(len(lines), 1, f"lines; {text(done.stderr)}")
    printed = facts(folder)
    check_equal(printed["processes_not_sampled"], count, f"processes; {lines[0]}")
    for name in names:
        check(name in lines[0], f"{name} is not named: {lines[0]}")
        check(name in printed["not_sampled"], f"{name} is not in info: {printed['not_sampled']}")
    return lines[0]


def record_script(folder, script, **options):
    (folder / "script").write_text(script, encoding="utf-8")
    return OFFBEAT.record(folder, "sh", "script", **options)


# --- processes that cannot be sampled --------------------------------------------------------------------------------

@case
def counts_static_children_and_names_them_once():
    with Folder() as folder:
        done = record_script(folder, f"{STATIC} 0.4\n{STATIC} 0.4\n{BUSY} 0.4\n:\n")
        line = check_not_sampled(folder, done, 2, "2 × safety_busy_static (statically linked)")
        check(re.search(r"\(0\.[5-9] s of [\d.]+ s of CPU time\)", line), f"their CPU time is not named: {line}")
        check("main" in opens(OFFBEAT, folder / "x.pb.gz"), "the child that can be sampled is not in the profile")


@case
def a_program_of_musl_runs_beside_the_library():
    """It inherits LD_PRELOAD. musl's loader rejects a library with a symbol that musl does not have."""
    compiler = shutil.which("musl-gcc") or skip("musl-gcc is not installed")
    with Folder() as folder:
        source = ROOT / "test/safety/busy.c"
        made = run(compiler, "-w", "-O1", "-o", folder / "busy_musl", source, "-lpthread")
        check_equal(made.returncode, 0, f"status of the compiler; {text(made.stderr)}")
        done = record_script(folder, f"{folder}/busy_musl 0.4\n{BUSY} 0.4\n:\n")
        check_not_sampled(folder, done, 1, "busy_musl (not linked with the GNU libc)")
        check("Error relocating" not in text(done.stderr), text(done.stderr))
        dsn = {**os.environ, "LD_PRELOAD": str(OFFBEAT.build / "liboffbeat.so"), "OFFBEAT_DSN": "http://key@127.0.0.1:9/1"}
        check_equal(run(folder / "busy_musl", "0.1", env=dsn).returncode, 0, "status with a DSN")


@case
def says_nothing_where_every_process_is_sampled():
    with Folder() as folder:
        done = record_script(folder, f"{BUSY} 0.3\n(exec {BUSY} 0.3)\n:\n")
        check_equal(lines_about(done, "could not be sampled"), [], "lines")
        check_equal(facts(folder)["processes_not_sampled"], 0, "processes")


@case
def names_children_with_a_cleaned_environment():
    with Folder() as folder:
        done = record_script(folder, f"env -i {BUSY} 0.4\nenv -u LD_PRELOAD {BUSY} 0.4\n:\n")
        check_not_sampled(folder, done, 2, "safety_busy (started with a cleaned environment)",
                          "safety_busy (started without LD_PRELOAD)")


@case
def names_a_program_that_the_recorded_one_became():
    with Folder() as folder:
        done = OFFBEAT.record(folder, "sh", "-c", f"sleep 0.2; exec {STATIC} 0.4")
        check_not_sampled(folder, done, 1, "safety_busy_static (statically linked)")


@case
def names_a_program_that_nothing_was_sampled_before():
    with Folder() as folder:
        done = OFFBEAT.record(folder, "env", "-i", BUSY, "0.4")
        check_equal(done.returncode, 0, "exit status")
        said = lines_about(done, "safety_busy (started with a cleaned environment)")
        check(said, text(done.stderr))


@case
def names_a_set_user_id_child():
    need_root()
    with Folder() as folder:
        folder.chmod(0o777)
        shutil.copy(BUSY, folder / "privileged")
        (folder / "privileged").chmod(0o4755)
        done = record_script(folder, "./privileged 0.4\n:\n", **user_without_rights())
        check_not_sampled(folder, done, 1, "privileged (set-user-ID or file capabilities)")


@case
def names_a_child_with_its_own_tmp():
    need_root()
    with Folder() as folder:
        if run("unshare", "-m", "true").returncode != 0:
            skip("no new mount namespace can be created")
        inner = f"mount -t tmpfs none {folder}; exec {BUSY} 0.4"
        done = record_script(folder, f"unshare -m sh -c '{inner}'\n:\n")
        check(lines_about(done, "safety_busy (cannot reach the folder of recordings: private /tmp or chroot)"), text(done.stderr))


# Sleeps for 0.4 s and exits with 0, by system calls of 32-bit x86.
CODE_OF_32_BITS = bytes.fromhex("83ec08" "c7042400000000" "c74424040084d717" "89e3" "31c9" "b8a2000000" "cd80" "b801000000" "31db" "cd80")


@case
def names_a_32_bit_child():
    start = 0x8048000
    header = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01", 2, 3, 1, start + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    size = 84 + len(CODE_OF_32_BITS)
    segment = struct.pack("<IIIIIIII", 1, 0, start, start, size, size, 5, 4096)
    with Folder() as folder:
        (folder / "old").write_bytes(header + segment + CODE_OF_32_BITS)
        (folder / "old").chmod(0o755)
        try:
            status = run(folder / "old").returncode
        except OSError:
            status = -1
        if status != 0:
            skip("this system runs no 32-bit programs")
        done = record_script(folder, "./old\n:\n")
        check_not_sampled(folder, done, 1, "old (32-bit or for another processor)")


@case
def counts_the_cpu_time_of_children_too_short_to_be_seen():
    with Folder() as folder:
        done = record_script(folder, f"i=0\nwhile [ $i -lt 300 ]; do {STATIC} 0.001; i=$((i + 1)); done\n:\n")
        missing, spent = facts(folder)["cpu_not_sampled_ns"], facts(folder)["process_cpu_ns"]
        check(missing > 0.15e9, f"{missing / 1e6:.0f} ms of CPU time are printed missing, {spent / 1e6:.0f} ms are sampled")
        check(lines_about(done, "of CPU time"), text(done.stderr))


@case
def leaves_out_children_that_are_not_to_be_sampled():
    with Folder() as folder:
        done = record_script(folder, f"{STATIC} 0.4\n:\n", options=["--no-inherit"])
        check_equal(lines_about(done, "could not be sampled"), [], "lines")


# --- other users -----------------------------------------------------------------------------------------------------

def copy_of_offbeat(folder):
    """`offbeat` and its library in a folder that only root can enter."""
    private = folder / "private"
    private.mkdir(mode=0o700)
    for name in ("offbeat", "liboffbeat.so"):
        shutil.copy(OFFBEAT.build / name, private / name)
    return private / "offbeat"


@case
def samples_children_of_a_process_that_gave_up_root():
    need_root()
    with Folder() as folder:
        for order in ("before", "after"):
            done = OFFBEAT.record(folder, program("children"), order)
            check_equal(done.returncode, 0, "exit status")
            check_equal(lines_about(done, "could not be sampled"), [], "lines")
            check(opens(OFFBEAT, folder / "x.pb.gz").get("work", 0) > 1e9, f"order {order}: {text(done.stderr)}")


@case
def samples_programs_of_another_user_from_a_private_build():
    need_root()
    with Folder() as folder:
        offbeat = copy_of_offbeat(folder)
        shutil.copy(BUSY, folder / "busy")
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "./busy", "0.5"]
        bare = run(*command, cwd=folder)
        done = run(offbeat, "record", "-o", "x.pb.gz", "--", *command, cwd=folder)
        check_equal(bare.returncode, 0, "exit status alone")
        check_equal(done.returncode, 0, "exit status")
        check_equal([line for line in text(done.stderr).splitlines() if not line.startswith("offbeat: ")], [], "standard error")
        check("main" in opens(OFFBEAT, folder / "x.pb.gz"), text(done.stderr))


@case
def an_ordinary_user_keeps_a_folder_that_nobody_else_can_enter():
    with Folder() as folder:
        folder.chmod(0o777)
        user = user_without_rights()
        done = OFFBEAT.record(folder, "sh", "-c", "stat -c %a $OFFBEAT_RECORD_DIRECTORY", **user)
        check_equal(text(done.stdout), "700", f"mode; {text(done.stderr)}")


@case
def hostile_files_among_the_recordings_are_left_out():
    need_root()
    with Folder() as folder:
        done = OFFBEAT.record(folder, program("hostile_recordings"))
        check_equal(done.returncode, 0, f"exit status; {text(done.stderr)}")
        opens(OFFBEAT, folder / "x.pb.gz")
        said = text(done.stderr)
        check("root:" not in said, f"a file of root's was read: {said}")
        for name in ("1-1", "1-2", "1-3", "1-4", "1-5", "1-7"):
            check(f"{name}.recording" in said, f"{name} was taken without a word: {said}")


# --- the program notices nothing -------------------------------------------------------------------------------------

def check_same(folder, command, **options):
    """COMMAND gives the same status and output with us as without."""
    bare = run(*command, cwd=folder, **options)
    done = OFFBEAT.record(folder, *command, **options)
    check_equal(done.returncode, bare.returncode, "exit status")
    check_equal(text(done.stdout), text(bare.stdout), "output")
    return done


SHOW_SIGNALS = "grep -E '^(Sig|Shd)(Ign|Blk)' /proc/self/status"


@case
def ends_where_sigchld_is_ignored():
    with Folder() as folder:
        command = " ".join(OFFBEAT.command("record", "-o", "x.pb.gz", "--", BUSY, "0.5"))
        done = run("sh", "-c", f"trap '' CHLD; exec {command}", cwd=folder)
        check_equal(done.returncode, 0, "exit status")
        opens(OFFBEAT, folder / "x.pb.gz")


@case
def the_exit_status_is_right_where_sigchld_is_ignored():
    with Folder() as folder:
        command = " ".join(OFFBEAT.command("record", "-o", "x.pb.gz", "--", "sh", "-c"))
        done = run("sh", "-c", f"trap '' CHLD; exec {command} 'sleep 0.2; exit 7'", cwd=folder)
        check_equal(done.returncode, 7, "exit status")


@case
def the_program_inherits_what_is_ignored_and_what_is_blocked():
    def change():
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGHUP, signal.SIGTSTP):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR2))

    with Folder() as folder:
        check_same(folder, ["sh", "-c", SHOW_SIGNALS])
        check_same(folder, ["sh", "-c", SHOW_SIGNALS], preexec_fn=change, restore_signals=False)


@case
def the_program_runs_with_closed_standard_streams():
    show = "ls -l /proc/self/fd | awk '/->/ {print $(NF-2)}' | sort >fds; exit 5"
    with Folder() as folder:
        seen = []
        for prefix in ("", " ".join(OFFBEAT.command("record", "-o", "x.pb.gz", "--")) + " "):
            (folder / "show").write_text(show, encoding="ascii")
            done = run("sh", "-c", f"exec {prefix}sh show <&- >&- 2>&-", cwd=folder)
            seen.append((done.returncode, (folder / "fds").read_text(encoding="ascii")))
        check_equal(seen[1], seen[0], "status and descriptors")


@case
def the_sampler_takes_no_number_of_the_program():
    """As a shell redirects. Under a filter, as in a container, hundreds of redirections failed in a run, and most samples were lost."""
    redirects, filtered = (OFFBEAT.build / "test/safety" / name for name in ("safety_redirects", "safety_under_filter"))
    for before in ([], [filtered, "allow"], [filtered, "enosys"]):
        with Folder() as folder:
            done = run(*OFFBEAT.command("record", "-o", "x.pb.gz", "--"), *before, redirects, "1000", cwd=folder, stdin=subprocess.DEVNULL)
            check_equal((done.returncode, text(done.stdout).endswith(" 0 wrong\nready")), (0, True), text(done.stdout + done.stderr))
            samples = int(text(done.stderr).rpartition("offbeat: ")[2].split()[0])
            check(samples > 50, f"{before}: {samples} samples: {text(done.stderr)}")


@case_by_the_clock
def no_timer_is_left_when_a_program_execs_or_handles_the_signal():
    timers, without_perf = (OFFBEAT.build / "test/safety" / name for name in ("safety_timers_go", "safety_without_perf"))
    with Folder() as folder:
        done = run(without_perf, *OFFBEAT.command("record", "-o", "x.pb.gz", "--"), timers, cwd=folder)
        before, at_exec, later, at_signal, last = map(int, text(done.stdout).split())
        check_equal((at_exec, at_signal), (0, 0), f"timers: {text(done.stdout)}")
        check(min(before, later, last) > 0, f"timers: {text(done.stdout)}")


# --- an incomplete profile says so -----------------------------------------------------------------------------------

@case_by_the_clock
def keeps_to_the_share_of_a_processor_that_was_asked_for():
    with Folder() as folder:
        for arguments in (("--cpu-max", "1%", "-F", "1000"), ()):
            done = OFFBEAT.record(folder, BUSY, "3", options=arguments)
            check_equal(done.returncode, 0, "exit status")
            printed = facts(folder)
            seconds = OFFBEAT.answer("info", folder / "x.pb.gz")["duration"] / 1e9
            used, of_program = printed["sampler_cpu_ns"] / 1e9, printed["process_cpu_ns"] / 1e9
            shown = OFFBEAT.answer("top", "--sample-index", "cpu", folder / "x.pb.gz")["total"] / 1e9
            check(abs(shown / (of_program - used) - 1) < 0.03, f"{shown} s of CPU time are shown, of {of_program - used}")
            if not arguments:
                check("cpu_max" not in printed, f"cpu_max is {printed.get('cpu_max')}")
                continue
            check_equal(printed["cpu_max"], "1 % of a processor", "cpu_max")
            check(used < 0.01 * seconds + 0.03, f"the sampler used {used} of {seconds} s")
            check(printed["ticks_left_out"] > 0, "no tick was left out")


@case
def names_the_library_in_which_stacks_end():
    with Folder() as folder:
        done = OFFBEAT.record(folder, program("part_without_tables"), "30")
        check_equal(done.returncode, 0, "exit status")
        line, = lines_about(done, "of the stacks are incomplete")
        check("libno_unwind_tables.so" in line and "-fasynchronous-unwind-tables" in line, line)
        printed = text(run(OFFBEAT.program, "info", folder / "x.pb.gz").stdout)
        check(line.removeprefix("offbeat: ") in printed, f"info does not have it: {printed}")
        table = text(run(OFFBEAT.program, "top", folder / "x.pb.gz").stdout)
        check_equal(sum("of the stacks are incomplete" in row for row in table.splitlines()), 1, f"lines in {table}")
        check(OFFBEAT.answer("info", folder / "x.pb.gz")["samples_incomplete"] > 30, "samples_incomplete")


@case
def stacks_of_a_coroutine_made_by_hand_are_complete():
    with Folder() as folder:
        done = OFFBEAT.record(folder, program("coroutine_by_hand"))
        check_equal(done.returncode, 0, "exit status")
        check_equal(lines_about(done, "of the stacks are incomplete"), [], "lines")
        check(opens(OFFBEAT, folder / "x.pb.gz").get("work", 0) > 3e8, "work has no time")


@case
def says_nothing_of_a_profile_that_is_complete():
    with Folder() as folder:
        done = OFFBEAT.record(folder, program("part_without_tables"), "0")
        check_equal(lines_about(done, "of the stacks are incomplete"), [], "lines")
        check("of the stacks are incomplete" not in text(run(OFFBEAT.program, "top", folder / "x.pb.gz").stdout), "top has a line")


# --- counters --------------------------------------------------------------------------------------------------------

@case
def every_counter_of_info_is_in_its_manual_page_and_no_other():
    with Folder() as folder:
        record_script(folder, f"{STATIC} 0.4\n:\n")
        found = set(facts(folder))
    page = (ROOT / "doc/man/offbeat-info.1").read_text(encoding="utf-8")
    counters = page.split(".SH COUNTERS\n")[1].split("\n.SH ")[0]
    found |= {"sampler_ended", "cpu_max", "files_denied", "code_unseen"}  # only where it ended early, was given a share, was denied a file
    found |= {"short_waits", "waits_left_out"}  # only with --mode off-cpu
    found |= {"interpreter", "interpreter_seen_in", "interpreter_stacks", "interpreter_stacks_torn", "interpreter_functions_gone"}  # only with Python
    documented = re.findall(r"^\.TP\n\.B ([a-z_]+)$", counters, re.MULTILINE)
    check_equal(sorted(documented), sorted(found), "counters in offbeat-info(1), and those that info shows")


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
