"""`offbeat record` from end to end: programs whose truth is known, and programs that end in every way. Arguments: the
build folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server import wait_until  # noqa: E402
from recording import (ROOT, Failed, Folder, Offbeat, case, case_by_the_clock, check, check_equal, chunk_functions,  # noqa: E402
                       envelope_chunks, main, opens, pprof_labels, run, short, skip, text, user_without_rights,
                       without_losses)
import json  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
BEHAVES = OFFBEAT.programs / "behaves"
SHARES = OFFBEAT.programs / "shares_program"
PLUGIN = OFFBEAT.programs / "plugin.so"
POINTS = 0.03  # how far a share may be from the truth

COULD_NOT_BE_DONE = 3


# --- a program whose shares are known --------------------------------------------------------------------------------

class Shares:
    """One recording of shares_program, made when the first case asks for it."""

    def __init__(self, folder, prefix=()):
        self.folder = folder
        done = OFFBEAT.record(folder, SHARES, PLUGIN, prefix=prefix)
        check(done.returncode == 0, f"status {done.returncode}: {text(done.stderr)}")
        self.truth = json.loads(done.stdout)
        self.pprof = self.folder / "x.pb.gz"
        self.envelopes = sorted(self.folder.glob("x*.envelope"))
        self.run_ns = self.truth["threads"]["shares_program"]["main"]


SHARES_FOLDER = Folder()


@functools.lru_cache(maxsize=None)
def record_shares():
    """The recording, or the exception that it ended with."""
    try:
        return Shares(SHARES_FOLDER.__enter__())
    except Exception as failure:
        return failure


def shares():
    recording = record_shares()
    if isinstance(recording, Exception):
        raise Failed(f"shares_program could not be recorded: {recording!r}")
    return recording


def forget_shares():
    record_shares.cache_clear()
    SHARES_FOLDER.__exit__()


def own_envelope():
    """The envelope of the parent process."""
    for path in shares().envelopes:
        if any("spends_seventy" in chunk_functions(chunk) for chunk in envelope_chunks(path)):
            return path
    return skip("no envelope holds the parent process: another case says so")


def totals_by_thread(path):
    """{thread name: {function: nanoseconds}}; threads of one name are summed."""
    threads = {}
    for name, functions, _ in OFFBEAT.threads(path):
        known = threads.setdefault(name, {})
        for function, total in functions.items():
            known[function] = known.get(function, 0) + total
    return threads


def check_shares(path, true_threads, recording=None):
    """Each function's share of the run's wall time, in its own thread, is the true one; brief threads go together."""
    recording, threads, problems = recording or shares(), totals_by_thread(path), []
    brief_true = brief_seen = 0
    for name, functions in true_threads.items():
        for function, true_ns in functions.items():
            seen_ns = threads.get(name, {}).get(function, 0)
            if name.startswith("brief-"):
                brief_true, brief_seen = brief_true + true_ns, brief_seen + seen_ns
            elif abs(seen_ns - true_ns) > POINTS * recording.run_ns:
                problems.append(f"{name}/{function}: {seen_ns / 1e6:.0f} ms, in truth {true_ns / 1e6:.0f} ms")
    if abs(brief_seen - brief_true) > POINTS * recording.run_ns:
        problems.append(f"the brief threads: {brief_seen / 1e6:.0f} ms, in truth {brief_true / 1e6:.0f} ms")
    check(not problems, f"of a run of {recording.run_ns / 1e6:.0f} ms\n" + "\n".join(problems))


def check_split(path, thread, first, second):
    """FIRST and SECOND share the time of THREAD as they do in truth."""
    true = shares().truth["threads"][thread]
    seen = totals_by_thread(path).get(thread, {})
    check(seen.get(first) and seen.get(second), f"{thread} shows {sorted(seen)}")
    true_share = true[first] / (true[first] + true[second])
    seen_share = seen[first] / (seen[first] + seen[second])
    check(abs(seen_share - true_share) <= POINTS, f"{first}: {seen_share:.1%}, in truth {true_share:.1%}")


@case_by_the_clock(forget=forget_shares)
def shares_in_pprof_are_within_3_points_of_the_truth():
    truth = shares().truth
    # The child is a copy of the main thread: the same name, and main() below its work.
    of_child = truth["child"]["works_in_the_child"]
    main_threads = {"main": truth["threads"]["shares_program"]["main"] + of_child, **truth["child"]}
    check_shares(shares().pprof, {**truth["threads"], "shares_program": main_threads})
    check_split(shares().pprof, "shares", "spends_seventy", "spends_thirty")
    check_split(shares().pprof, "signals", "works_in_the_handler", "works_outside_the_handler")


@case_by_the_clock(forget=forget_shares)
def shares_in_the_envelope_are_within_3_points_of_the_truth():
    check_shares(own_envelope(), shares().truth["threads"])
    check_split(own_envelope(), "shares", "spends_seventy", "spends_thirty")
    check_split(own_envelope(), "signals", "works_in_the_handler", "works_outside_the_handler")


@case_by_the_clock
def shares_are_as_true_where_perf_denies_its_timers():
    # root without CAP_PERFMON; anybody else has to do without it anyhow, where perf_event_paranoid is not lowered
    prefix = ["setpriv", "--bounding-set", "-sys_admin,-perfmon"] if os.geteuid() == 0 else []
    with Folder() as folder:
        recording = Shares(folder, prefix)
        if OFFBEAT.answer("info", recording.pprof)["recorder"]["running_threads"].startswith("perf timers"):
            skip("perf denies nothing here")
        of_child = recording.truth["child"]
        main_threads = {"main": recording.run_ns + of_child["works_in_the_child"], **of_child}
        check_shares(recording.pprof, {**recording.truth["threads"], "shares_program": main_threads}, recording)


@short
@case
def every_thread_is_there_by_its_name():
    for path in (shares().pprof, own_envelope()):
        check_equal(sorted(set(totals_by_thread(path)) - {"[short threads]"}), sorted(shares().truth["threads"]), f"thread names in {path.name}")


@case
def a_recursion_200_deep_is_complete():
    stacks = [(frames, weight) for frames, weight in OFFBEAT.stacks(shares().pprof, shares().folder)
              if "works_at_the_bottom" in frames]
    check(stacks, "works_at_the_bottom was never seen")
    depth = shares().truth["recursion_depth"]
    whole = sum(weight for frames, weight in stacks if frames.count("recurses") == depth)
    every = sum(weight for _, weight in stacks)
    check(whole >= 0.99 * every, f"{whole / every:.1%} of its time has all {depth} frames; seen: "
          f"{sorted({frames.count('recurses') for frames, _ in stacks})}")


@case
def the_caller_of_a_signal_handler_is_below_it():
    stacks = [frames for frames, _ in OFFBEAT.stacks(shares().pprof, shares().folder) if "works_in_the_handler" in frames]
    check(stacks, "works_in_the_handler was never seen")
    broken = [frames for frames in stacks if "raises_signals" not in frames or "run_signals" not in frames]
    check(not broken, f"{len(broken)} of {len(stacks)} stacks end early: {broken[:1]}")


def trampolines(raw):
    """(file, offset) of each location in libc that a handler returns to, in a text of `offbeat raw`."""
    locations = dict(re.findall(r"^ *(\d+): (0x[0-9a-f]+ .*)$", raw, re.MULTILINE))
    mappings = {number: (int(start, 16), int(offset, 16), path) for number, start, offset, path in
                re.findall(r"^(\d+): (0x[0-9a-f]+)/0x[0-9a-f]+/(0x[0-9a-f]+) (\S+)", raw, re.MULTILINE)}
    for stack in re.findall(r"^ [ \d]+: ((?:\d+ )+)$", raw, re.MULTILINE):
        ids = stack.split()
        places = [place for place, id in enumerate(ids) if "works_in_the_handler" in locations[id]]
        for id in ids[places[0]:] if places else ():
            address, mapping = re.match(r"(\S+) M=(\d+)", locations[id]).groups()
            start, offset, path = mappings[mapping]
            if "libc" in path:
                yield path, int(address, 16) - start + offset
                break


@case
def the_trampoline_of_a_signal_handler_has_its_own_address_PPF_4():
    done = run(*OFFBEAT.command("raw", shares().pprof))
    found = set(trampolines(text(done.stdout)))
    check(found, "no handler has a caller")
    for path, offset in found:
        code = pathlib.Path(path).read_bytes()[offset:offset + 9]
        check_equal(code.hex(), "48c7c00f0000000f05", f"mov $15, %rax; syscall at {path} {offset:#x}")


@case
def every_function_of_a_recording_has_a_system_name_PPF_6():
    raw = text(run(*OFFBEAT.command("raw", shares().pprof)).stdout)
    lines = [line for line in raw[raw.index("Locations\n"):raw.index("Mappings\n")].splitlines() if " s=" in line]
    check(any("spends_seventy" in line for line in lines), raw)
    check_equal([line for line in lines if line.endswith("()")], [], "functions without a system name")


@short
@case_by_the_clock(forget=forget_shares)
def a_forked_child_is_in_the_pprof_file_with_its_own_pid():
    labels = pprof_labels(shares().pprof)
    check(len(labels.get("pid", ())) == 2, f"label pid: {labels.get('pid')}")
    check_equal(labels.get("process"), {"shares_program"}, "label process")
    true_ns = shares().truth["child"]["works_in_the_child"]
    seen_ns = totals_by_thread(shares().pprof).get("shares_program", {}).get("works_in_the_child", 0)
    check(abs(seen_ns - true_ns) <= POINTS * shares().run_ns, f"{seen_ns / 1e6:.0f} ms, in truth {true_ns / 1e6:.0f} ms")


@case
def a_forked_child_has_its_own_chunk():
    check_equal(len(shares().envelopes), 2, f"envelopes in {[path.name for path in shares().envelopes]}")
    chunks = [chunk for path in shares().envelopes for chunk in envelope_chunks(path)]
    of_child = [chunk for chunk in chunks if "works_in_the_child" in chunk_functions(chunk)]
    check_equal(len(of_child), 1, "chunks with works_in_the_child")
    check("spends_seventy" not in chunk_functions(of_child[0]), "it holds the parent's work too")
    check_equal(len({chunk["profiler_id"] for chunk in chunks}), 2, "profiler ids")


@short
@case
def every_envelope_holds_one_chunk_that_a_strict_server_accepts():
    checker = ROOT / "test/cli/check_chunk.py"
    for path in shares().envelopes:
        check_equal(len(envelope_chunks(path)), 1, f"chunks in {path.name}")
        done = run(sys.executable, checker, path)
        check(done.returncode == 0, f"{path.name}: {text(done.stdout)} {text(done.stderr)}")


@short
@case
def the_release_of_an_interpreter_is_the_name_of_its_script():
    with Folder() as folder:
        (folder / "works.pl").write_text("for (my $i = 0; $i < 3e6; $i++) { }\n", encoding="ascii")
        for arguments, name in (([folder / "works.pl"], "works.pl"), (["-e", "for (my $i = 0; $i < 3e6; $i++) { }"], "perl")):
            done = OFFBEAT.record(folder, "perl", *arguments)
            check_equal(done.returncode, 0, f"status ({text(done.stderr)})")
            chunk = envelope_chunks(folder / "x.envelope")[0]
            check_equal(chunk["release"].partition("@")[0], name, f"release with {arguments}")


@case
def a_program_without_build_id_has_image_and_release_FMT_9_V2_12():
    with Folder() as folder:
        program = folder / "nameless"
        run("objcopy", "--remove-section=.note.gnu.build-id", BEHAVES, program)
        done = OFFBEAT.record(folder, program, 500, "exit", 0)
        check_equal(done.returncode, 0, f"status ({text(done.stderr)})")
        done = run(sys.executable, ROOT / "test/cli/check_chunk.py", "--sender", folder / "x.envelope")
        check(done.returncode == 0, f"{text(done.stdout)} {text(done.stderr)}")
        chunk = envelope_chunks(folder / "x.envelope")[0]
        check_equal(chunk["platform"], "native", "platform")
        images = [image for image in chunk["debug_meta"]["images"] if image["code_file"] == str(program)]
        check(images and "code_id" not in images[0], f"images: {chunk['debug_meta']['images']}")
        name, _, version = chunk["release"].partition("@")
        check(name == "nameless" and len(version) == 32, chunk["release"])


@case_by_the_clock(forget=forget_shares)
def no_sample_is_lost_without_being_counted():
    nested = {"works_at_the_bottom", "works_in_the_handler", "works_outside_the_handler"}
    lived_ns = sum(shares().truth["child"].values()) + sum(
        ns for functions in shares().truth["threads"].values() for function, ns in functions.items() if function not in nested)
    facts = OFFBEAT.answer("info", shares().pprof)["recorder"]
    lost = sum(facts[name] for name in ("lost_late", "lost_unanswered", "lost_in_kernel", "lost_no_table", "lost_before_first_stack"))
    seen_ns = sum(total for _, _, total in OFFBEAT.threads(shares().pprof))
    printed_ns = seen_ns + lost * 1e9 / 101
    check(abs(printed_ns - lived_ns) <= 0.02 * lived_ns, f"threads lived {lived_ns / 1e6:.0f} ms; seen {seen_ns / 1e6:.0f} ms, "
          f"counted as lost {lost} samples: {facts}")
    check(lost * 1e9 / 101 <= 0.03 * lived_ns, f"{lost} samples were lost: {facts}")


@case
def go_tool_pprof_opens_the_file():
    if not shutil.which("go"):
        skip("go is not installed")
    done = run("go", "tool", "pprof", "-top", "-sample_index=wall", shares().pprof, env={**os.environ, "HOME": str(shares().folder)})
    check(done.returncode == 0, text(done.stderr))
    for function in ("spends_seventy", "works_in_the_plugin", "works_in_the_child", "sleeps_all_along"):
        check(function in text(done.stdout), f"{function} is not in its table:\n{text(done.stdout)}")
    check("warning" not in text(done.stderr).lower(), text(done.stderr))


@case_by_the_clock
def cpu_mode_counts_the_cpu_time_that_the_kernel_counts():
    with Folder() as folder:
        done = OFFBEAT.record(folder, SHARES, PLUGIN, options=["--mode", "cpu"])
        check(done.returncode == 0, text(done.stderr))
        functions = opens(OFFBEAT, folder / "x.pb.gz")
        check(functions.get("sleeps_all_along", 0) < 50e6, "the sleeping thread used CPU time")
        seen, used = OFFBEAT.answer("top", folder / "x.pb.gz")["total"], json.loads(done.stdout)["cpu"]
        used -= int(OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]["sampler_cpu_ns"])  # it is in the program's count
        # The time of a thread between the last tick that saw it and its end is not seen.
        check(abs(seen - used) <= POINTS * used, f"{seen / 1e6:.0f} ms, by the kernel {used / 1e6:.0f} ms")


@case
def code_that_only_debug_frame_describes_is_walked_to_the_root():
    with Folder() as folder:
        done = OFFBEAT.record(folder, OFFBEAT.programs / "calls_without_tables")
        check(done.returncode == 0, text(done.stderr))
        stacks = OFFBEAT.stacks(folder / "x.pb.gz", folder)
    for function in ("runs_without_tables", "sleeps_without_tables"):
        ways = [frames[:frames.index(function) + 1] for frames, _ in stacks if function in frames]
        check(ways, f"{function} was not seen: {stacks}")
        for way in ways:
            check_equal(way[-3:], ["main", "calls_without_tables", function], f"callers of {function}, in {way}")


# --- the program is as without us ------------------------------------------------------------------------------------

def status_in_a_shell(command, folder):
    quoted = " ".join(f"'{word}'" for word in command)
    return int(run("sh", "-c", f"{quoted} >/dev/null 2>&1; echo $?", cwd=folder).stdout.split()[-1])


def recording_of(*command):
    return OFFBEAT.command("record", "-o", "x.pb.gz", "--", *command)


@short
@case
def the_exit_status_is_that_of_the_program():
    with Folder() as folder:
        for ending in (("exit", 0), ("exit", 7), ("exit", 255), ("signal", 15), ("signal", 11), ("signal", 9)):
            command = [BEHAVES, 200, *ending]
            check_equal(status_in_a_shell(recording_of(*command), folder), status_in_a_shell(command, folder), f"status of {ending}")


@short
@case
def standard_input_output_and_error_pass_through_byte_for_byte():
    with Folder() as folder:
        command, data = [BEHAVES, 300, "cat", "exit", 0], os.urandom(300_000) + b"no newline at the end"
        alone, recorded = run(*command, input=data), OFFBEAT.record(folder, *command, input=data)
        check(recorded.stdout == alone.stdout == data, f"{len(recorded.stdout)} bytes of output, alone {len(alone.stdout)}")
        check(recorded.stderr.startswith(alone.stderr), f"standard error {recorded.stderr!r}, alone {alone.stderr!r}")
        check_one_line(recorded.stderr[len(alone.stderr):], "x.pb.gz")


def start_recording(folder, *command):
    """Starts one in its own process group, as a shell does, and waits until the program works."""
    process = subprocess.Popen(recording_of(*command), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(1)
    return process


def end_of(process):
    out, err = process.communicate(timeout=20)
    return process.returncode, text(out), text(err)


@case
def ctrl_c_ends_the_program_and_finishes_the_file():
    with Folder() as folder:
        process = start_recording(folder, BEHAVES, 15000, "exit", 0)
        os.killpg(process.pid, signal.SIGINT)
        status, _, err = end_of(process)
        check_equal(status, 41, "status")
        check("received signal 2" in err, f"standard error: {err}")
        check("works" in opens(OFFBEAT, folder / "x.pb.gz"), "works() is not in the profile")


@case
def stopping_the_writing_prints_where_the_recordings_are():
    with Folder() as folder:
        os.mkfifo(folder / "x.pb.gz") # that nobody reads: the writing waits
        process = subprocess.Popen(OFFBEAT.command("record", "-o", "x.collapsed", "-o", "x.pb.gz", "--", BEHAVES, "200", "exit", "0"), cwd=folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)})
        check(wait_until((folder / "x.collapsed").exists, 20), "nothing was written")
        process.send_signal(signal.SIGINT)
        status, _, err = end_of(process)
        check_equal(status, -signal.SIGINT, "status")
        recording, = folder.glob("offbeat-*/**/*.recording")
        check_one_line(err, f"stopped before all was written; the recordings are kept in {recording.parent};")
        check("works" in opens(OFFBEAT, recording), "works() is not in the recording")


@case
def a_sigterm_sent_to_the_recorder_reaches_the_program():
    with Folder() as folder:
        process = start_recording(folder, BEHAVES, 15000, "exit", 0)
        process.terminate()
        status, _, err = end_of(process)
        check_equal(status, 40, "status")
        check("received signal 15" in err, f"standard error: {err}")
        check("works" in opens(OFFBEAT, folder / "x.pb.gz"), "works() is not in the profile")


@case
def a_signal_that_comes_twice_like_that_of_timeout_is_one():
    for command in ((BEHAVES, 15000, "exit", 0), ("sleep", 20)): # one handles it, one dies of it
        with Folder() as folder:
            OFFBEAT.record(folder, *command, prefix=["timeout", "-s", "INT", "1"])
            check((folder / "x.pb.gz").is_file(), f"{command[0]}: no profile was written")
            check((folder / "x.envelope").is_file(), f"{command[0]}: no envelope was written")


@case
def a_short_program_leaves_a_file_or_a_message():
    with Folder() as folder:
        done = OFFBEAT.record(folder, "true")
        check_equal(done.returncode, 0, "status")
        said = text(done.stderr).splitlines()
        check(len(said) <= 2, f"standard error: {said}")  # an envelope needs two samples, and says so
        if (folder / "x.pb.gz").exists():
            OFFBEAT.answer("info", folder / "x.pb.gz")
        else:
            check(said and "sample" in said[0], f"no file, and standard error says {said}")


@case
def warns_of_a_program_that_runs_on_in_the_background():
    with Folder() as folder:
        done = OFFBEAT.reachable().record(folder, "sh", "-c", "sleep 1 & exit 5")
        check_equal(done.returncode, 5, "status")
        if "no samples" in text(done.stderr): # a shell that was held up for a tick has some
            check_one_line(done.stderr, "a daemon must stay in the foreground")
        check(not list(folder.glob("offbeat-*")), "recordings are left")


@case
def many_programs_that_live_for_a_moment_do_no_harm():
    script = "i=0; while [ $i -lt 400 ]; do i=$((i+1)); sh -c 'exec sed -n 1p /dev/null' || echo $?; done; echo done"
    for options in ([], ["--mode", "cpu", "-F", "10000"]):
        with Folder() as folder:
            done = OFFBEAT.record(folder, "sh", "-c", script, options=options)
            check_equal((done.returncode, done.stdout), (0, b"done\n"), f"status and output: {text(done.stderr)}")


# --- what cannot be recorded, or only in part ------------------------------------------------------------------------

def check_one_line(err, *words):
    """ERR is one line of offbeat's, with one of WORDS in it."""
    lines = without_losses(text(err).splitlines() if isinstance(err, bytes) else err.splitlines())
    check(len(lines) == 1, f"not one line but {len(lines)}: {lines}")
    check(lines[0].startswith("offbeat: "), f"it does not say who speaks: {lines[0]}")
    check(any(word in lines[0] for word in words), f"it names none of {words}: {lines[0]}")


def check_lines(err, problem, *rest):
    """ERR is one line with PROBLEM in it, and one for each of REST, the usual or helpful ones, at most."""
    lines = without_losses(text(err).splitlines() if isinstance(err, bytes) else err.splitlines())
    check_one_line("\n".join(line for line in lines if not any(word in line for word in rest)), problem)
    check(len(lines) <= 1 + len(rest), f"too many lines: {lines}")


@short
@case
def a_missing_program_gets_one_line():
    with Folder() as folder:
        done = OFFBEAT.record(folder, "./no-such-program")
        check_equal(done.returncode, COULD_NOT_BE_DONE, "status")
        check_one_line(done.stderr, "no-such-program")
        check(not list(folder.iterdir()), f"it left {[path.name for path in folder.iterdir()]}")


@case
def a_file_that_is_no_program_gets_one_line():
    with Folder() as folder:
        (folder / "data").write_bytes(b"\x00\x01\x02")
        done = OFFBEAT.record(folder, "./data")
        check_equal(done.returncode, COULD_NOT_BE_DONE, "status")
        check_one_line(done.stderr, "data")


@case
def a_library_in_a_folder_with_a_blank_or_a_colon_is_preloaded():
    with Folder() as folder:
        for name in ("a blank", "a:colon", "a$LIB"):
            (folder / name).mkdir()
            for file in ("offbeat", "liboffbeat.so"):
                shutil.copy(OFFBEAT.build / file, folder / name / file)
            done = run(folder / name / "offbeat", "record", "-o", "x.pb.gz", "--", BEHAVES, 300, "exit", 0, cwd=folder,
                       env={**os.environ, "TMPDIR": str(folder)})
            check_equal(done.returncode, 0, f"status in {name}: {text(done.stderr)}")
            check("ld.so" not in text(done.stderr), f"the loader complains: {text(done.stderr)}")
            check(opens(OFFBEAT, folder / "x.pb.gz").get("works", 0) > 0.1e9, f"works() is not in the profile of {name}")
            check_equal(sorted(path.name for path in folder.glob("offbeat-*")), [], "left in the folder for temporary files")
            temporary = folder / name / "tmp"
            temporary.mkdir()
            done = run(folder / name / "offbeat", "record", "-o", "y.pb.gz", "--", BEHAVES, 300, "exit", 0, cwd=folder,
                       env={**os.environ, "TMPDIR": str(temporary)})
            check_equal((done.returncode, list(temporary.iterdir())), (0, []), f"with TMPDIR in {name}: {text(done.stderr)}")
            check(opens(OFFBEAT, folder / "y.pb.gz").get("works", 0) > 0.1e9, f"works() is not in the second profile of {name}")


SANITIZED = """
#include <stdlib.h>
#include <string.h>
int main(int count, char **words)
{
    char *bytes = malloc(10);
    volatile double sum = 0;
    for (long i = 1; i < 40000000; i++) sum += 1.0 / i;
    bytes[count > 1 ? 10 : 9] = (char)sum;
    free(bytes);
    return 0;
}
"""


@case
def programs_with_address_sanitizer_run_and_are_sampled():
    with Folder() as folder:
        (folder / "program.c").write_text(SANITIZED, encoding="utf-8")
        for options in ((), ("-static-libasan",)):
            built = run("gcc", "-g", "-fsanitize=address", *options, "program.c", "-o", "program", cwd=folder)
            if built.returncode != 0:
                skip(f"gcc has no library of AddressSanitizer: {text(built.stderr)}")
            for words in (("./program",), ("sh", "-c", "./program; :")):
                done = run(*OFFBEAT.command("record", "-q", "-o", "x.pb.gz", "--", *words), cwd=folder)
                check_equal((done.returncode, without_losses(text(done.stderr).splitlines())), (0, []), f"status and messages of {words} {options}")
                check(opens(OFFBEAT, folder / "x.pb.gz").get("main", 0) > 0.05e9, f"main() is not in the profile of {words} {options}")
            done = run(*OFFBEAT.command("record", "-q", "--", "./program", "over"), cwd=folder)
            check("heap-buffer-overflow" in text(done.stderr), f"the sanitizer says {text(done.stderr)}")


@case
def a_program_that_ran_for_long_did_not_end_before_the_first_sample():
    with Folder() as folder:
        done = OFFBEAT.record(folder, "sh", "-c", "exec env -i sleep 0.5")
        check("before the first sample" not in text(done.stderr), text(done.stderr))
        check("env" in text(done.stderr) or "sleep" in text(done.stderr), f"what was not sampled: {text(done.stderr)}")


@case
def reports_a_program_that_ended_before_the_first_sample():
    for _ in range(4):  # the first tick comes at random in the first second, and may come at once
        with Folder() as folder:
            done = OFFBEAT.record(folder, BEHAVES, 1, "exit", 0, options=("-F", "1"))
            check_equal(done.returncode, 0, "status")
            if "behaves ended before the first sample; one is taken every 1000.0 ms" in text(done.stderr):
                return
    raise Failed(text(done.stderr))


@case
def a_static_program_gets_one_line():
    with Folder() as folder:
        done = OFFBEAT.record(folder, OFFBEAT.programs / "behaves_static", 100, "exit", 0)
        check_equal(done.returncode, COULD_NOT_BE_DONE, "status")
        check_one_line(done.stderr, "static")


@case
def a_setuid_program_gets_one_line():
    setuid = next((path for path in ("/usr/bin/mount", "/usr/bin/su", "/usr/bin/passwd")
                   if os.path.exists(path) and os.stat(path).st_mode & 0o4000), None)
    if not setuid:
        skip("no setuid program is installed")
    user = user_without_rights()
    with Folder() as folder:
        folder.chmod(0o777)
        done = OFFBEAT.reachable().record(folder, setuid, "--version", **user)
        check_equal(done.returncode, COULD_NOT_BE_DONE, "status")
        check_one_line(done.stderr, "privileges")


@case
def reports_an_unwritable_output_before_the_program_starts():
    with Folder() as folder:
        (folder / "link.pb.gz").symlink_to("nowhere")
        (folder / "folder.pb.gz").mkdir()
        for name in ("no/such/folder/x.pb.gz", "link.pb.gz", "folder.pb.gz", "n" * 250 + ".pb.gz"):
            done = run(*OFFBEAT.command("record", "-o", name, "--", "echo", "started"), cwd=folder)
            check_equal(done.returncode, COULD_NOT_BE_DONE, f"status of {name}")
            check_one_line(done.stderr, f"cannot write {name}")
            check_equal(done.stdout, b"", "standard output")


@case
def a_script_whose_interpreter_is_missing_gets_one_line():
    with Folder() as folder:
        (folder / "script").write_text("#!/no/such/interpreter\n", encoding="ascii")
        (folder / "script").chmod(0o755)
        done = OFFBEAT.record(folder, "./script")
        check_equal(done.returncode, COULD_NOT_BE_DONE, "status")
        check_one_line(done.stderr, "cannot run ./script: cannot open /no/such/interpreter: No such file")


FULL = ("No space left", "recordings are kept")  # the one line, and where to find what was sampled


@case
def a_full_device_gets_one_line():
    with Folder() as folder:
        (folder / "x.pb.gz").symlink_to("/dev/full")
        done = run(*recording_of(BEHAVES, 300, "exit", 0), cwd=folder, env={**os.environ, "TMPDIR": str(folder)})
        check_equal(done.returncode, COULD_NOT_BE_DONE, "status")
        check_lines(done.stderr, *FULL)


@case
def a_full_disk_gets_one_line_and_leaves_the_program_alone():
    with Folder() as folder:
        if run("mount", "-t", "tmpfs", "-o", "size=64k", "none", folder).returncode != 0:
            skip("mounting a small file system needs root")
        try:
            (folder / "filler").write_bytes(bytes(60 * 1024))
            done = run(*recording_of("sh", "-c", f"'{BEHAVES}' 1500 exit 0 && echo worked"), cwd=folder,
                       env={**os.environ, "TMPDIR": str(folder)})
            check_equal(done.stdout, b"worked\n", "what the program wrote")
            check_equal(done.returncode, COULD_NOT_BE_DONE, "status")
            check_lines(done.stderr, *FULL)
        finally:
            run("umount", "-l", folder)


@case
def a_crash_gets_one_line_and_the_profile_until_then_opens():
    with Folder() as folder:
        done = OFFBEAT.record(folder, BEHAVES, 1000, "signal", 11)
        check_lines(done.stderr, "signal 11", "x.pb.gz")
        for name in ("x.pb.gz", "x.envelope"):
            check(opens(OFFBEAT, folder / name).get("works", 0) > 0.8e9, f"works() is not in {name} with its second")


@case
def a_program_whose_file_is_gone_is_sampled():
    with Folder() as folder:
        script = 'cp "$0" gone; exec 3<gone; rm gone; exec /proc/self/fd/3 500 exit 0'
        done = OFFBEAT.record(folder, "sh", "-c", script, BEHAVES)
        check("could not be sampled" not in text(done.stderr), text(done.stderr))
        facts = OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]
        stacks = {name: int(facts[name]) for name in facts if name.startswith("stacks_")}
        whole = stacks.pop("stacks_root")
        check(whole > 0 and sum(stacks.values()) <= whole / 12 + 1, f"{whole} whole stacks, others: {stacks}")


# Most of its time is in stubs of the PLT, which calls one function of libc after the other.
CALLS_LIBC = """
#include <stdlib.h>
#include <time.h>
static __attribute__((noinline)) long work(long n)
{
    for (int i = 0; i < 100000; i++) n += abs(i) + labs(n & 7);
    return n;
}
int main(void)
{
    struct timespec at;
    for (long n = 0, i = 0;; i++) {
        n = work(n);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
        if (at.tv_sec > 0) return n == i;
    }
}
"""


@case
def a_small_program_of_another_linker_has_whole_stacks():
    """All segments are mapped from the file's first page, and the PLT has no call frame information."""
    if not shutil.which("ld.lld"):
        skip("ld.lld is not installed")
    with Folder() as folder:
        (folder / "program.c").write_text(CALLS_LIBC, encoding="ascii")
        flags = ("-O2", "-fno-builtin", "-fomit-frame-pointer", "-fuse-ld=lld")
        built = run("gcc", *flags, "program.c", "-o", "program", cwd=folder)
        check_equal(built.returncode, 0, text(built.stderr))
        OFFBEAT.record(folder, folder / "program")
        facts = OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]
        check(int(facts["stacks_root"]) > 70 and int(facts["stacks_no_table"]) < 3, f"whole stacks: {facts}")
        functions = opens(OFFBEAT, folder / "x.pb.gz")
        check(functions.get("work", 0) > 0.9e9, f"work() is not there with its second: {functions}")


# Each thread gets our signal and its perf timer at once, and waits for a processor until both of them go off.
TURNS_OF_MANY = """
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static void *take_turns(void *unused)
{
    struct timespec used = {0};
    for (int i = 1; i <= 5; i++) {
        while (used.tv_nsec < i * 2000000) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        usleep(1000);
    }
    return unused;
}
int main(void)
{
    pthread_t threads[200];
    for (int i = 0; i < 200; i++) pthread_create(&threads[i], NULL, take_turns, NULL);
    for (int i = 0; i < 200; i++) pthread_join(threads[i], NULL);
}
"""


@case
def a_perf_timer_that_goes_off_in_our_handler_cuts_no_stack():
    """18 to 52 of some 3000 stacks were cut there."""
    with Folder() as folder:
        (folder / "program.c").write_text(TURNS_OF_MANY, encoding="ascii")
        built = run("gcc", "-O1", "-pthread", "program.c", "-o", "program", cwd=folder)
        check_equal(built.returncode, 0, text(built.stderr))
        OFFBEAT.record(folder, folder / "program", options=("-F", 997))
        facts = OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]
        check(int(facts["stacks_root"]) > 300 and int(facts["stacks_bad_memory"]) < 3, f"whole stacks: {facts}")


def without_frame_information(program, path):
    """PATH becomes a copy of PROGRAM, which has no build id, with zeroes for .eh_frame: its headers are the same."""
    sections = text(run("readelf", "-SW", program).stdout)
    offset, size = (int(word, 16) for word in re.search(r" \.eh_frame +PROGBITS +\w+ (\w+) (\w+)", sections).groups())
    code = program.read_bytes()
    path.write_bytes(code[:offset] + bytes(size) + code[offset + size:])


@case
def a_program_whose_file_was_replaced_has_its_own_stacks():
    with Folder() as folder:
        program, other = folder / "program", folder / "other"
        run("objcopy", "--remove-section=.note.gnu.build-id", BEHAVES, program)
        without_frame_information(program, other)
        done = OFFBEAT.record(folder, "sh", "-c", f"exec 3<{program}; mv {other} {program}; exec /proc/self/fd/3 500 exit 0")
        check_equal(done.returncode, 0, "status")
        facts = OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]
        whole, taken = int(facts["stacks_root"]), int(facts["samples_taken"])
        check(taken > 5 and whole >= 0.9 * taken and int(facts["stacks_no_table"]) < 3, f"whole stacks: {facts}")


def children_of(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


@case
def a_killed_program_leaves_a_profile_and_one_line():
    with Folder() as folder:
        process = start_recording(folder, BEHAVES, 15000, "exit", 0)
        children = children_of(process.pid)
        check_equal(len(children), 1, "processes that the recorder has started")
        time.sleep(2)  # what is lost after the last tick must be little of all, on a loaded machine too
        os.kill(children[0], signal.SIGKILL)
        _, _, err = end_of(process)
        check_lines(err, "signal 9", "x.pb.gz")
        check(opens(OFFBEAT, folder / "x.pb.gz").get("works", 0) > 2.1e9, "works() is not there with its seconds")


@case
def wrong_use_of_record_gets_one_line():
    with Folder() as folder:
        for words, named in ((["record"], "COMMAND"), (["record", "-F", "0", "--", "true"], "--frequency"),
                             (["record", "--mode", "moon", "--", "true"], "moon"), (["record", "--strange", "--", "true"], "--strange"),
                             (["record", "-o", "x.strange", "--", "true"], "x.strange")):
            done = run(*OFFBEAT.command(*words), cwd=folder)
            check_equal(done.returncode, 2, f"status of {words}")
            check_one_line(done.stderr, named)


@case
def top_distinguishes_processes_in_one_file_and_in_several():
    def processes(*files):
        answer = OFFBEAT.answer("top", "--by-process", "--sample-index", "samples", *files)
        return sorted((process["name"], process["pid"]) for process in answer["processes"])

    with Folder() as folder:
        words = ("-o", "x.pb.gz", "-o", "x.envelope", "-o", "x.firefox.json", "--", "sh", "-c", "sleep 0.2; exec sleep 0.2")
        check_equal(run(*OFFBEAT.command("record", *words), cwd=folder).returncode, 0, "status")
        found = processes(folder / "x.pb.gz")
        check_equal([name for name, _ in found], ["sh", "sleep", "sleep"], "processes")
        check(found[0][1] in (found[1][1], found[2][1]), f"exec kept no pid in {found}")
        check_equal(processes(*folder.glob("x*.envelope")), found, "processes of the envelopes")
        threads = json.loads((folder / "x.firefox.json").read_text(encoding="utf-8"))["threads"]
        # A process may have a second thread, "[short threads]".
        shown = {(thread["processName"], int(thread["pid"].split(".")[0])) for thread in threads}
        check_equal(sorted(shown), found, "of Firefox")
        check_equal(len({thread["pid"] for thread in threads}), 3, "pids of Firefox")
        check_equal(run(*OFFBEAT.command("convert", "x.pb.gz", "-o", "x.speedscope.json"), cwd=folder).returncode, 0, "status")
        tracks = json.loads((folder / "x.speedscope.json").read_text(encoding="utf-8"))["profiles"]
        shown = {track["name"].split(": [")[0] for track in tracks}
        check_equal(sorted(shown), [f"{name} {pid}" for name, pid in found], "of speedscope")


@case
def frames_of_the_sampler_itself_are_hidden():
    with Folder() as folder:
        check_equal(run(*OFFBEAT.command("record", "-F", "10000", "-o", "x.pb.gz", "--", "sh", "-c",
                                         "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done"), cwd=folder).returncode, 0, "status")
        functions = OFFBEAT.answer("top", "--all-frames", folder / "x.pb.gz")["functions"]
        own = [function["name"] for function in functions if "liboffbeat" in function["package"]]
        check(functions and not own, f"frames of liboffbeat: {own}")


@short
@case
def record_writes_one_pprof_file_by_default():
    with Folder() as folder:
        done = run(*OFFBEAT.command("record", "--", "sh", "-c", "sleep 0.1; sleep 0.1; :"), cwd=folder)
        check_equal((done.returncode, [path.name for path in folder.iterdir()]), (0, ["sh.pb.gz"]), "status and files")
        done = run(*OFFBEAT.command("record", "--to", "speedscope", "--", "sleep", "0.1"), cwd=folder)
        check_equal(sorted(path.name for path in folder.iterdir()), ["sh.pb.gz", "sleep.speedscope.json"], "files")
        check(json.loads((folder / "sleep.speedscope.json").read_text(encoding="utf-8"))["profiles"], "no profile is in the file")


@case
def record_decides_formats_by_names_or_by_to():
    with Folder() as folder:
        words = ("-o", "x.collapsed", "-o", "y", "-o", "z.firefox.json", "--to", "speedscope", "--", "sleep", "0.1")
        check_equal(run(*OFFBEAT.command("record", *words), cwd=folder).returncode, 0, "status")
        formats = {name: OFFBEAT.answer("info", folder / name)["format"] for name in ("x.collapsed", "y")}
        check_equal(formats, {"x.collapsed": "collapsed", "y": "speedscope"}, "formats")
        run(*OFFBEAT.command("record", "-o", "x.json", "--to", "collapsed", "--", "sleep", "0.1"), cwd=folder)
        check_equal(OFFBEAT.answer("info", folder / "x.json")["format"], "collapsed", "format of the only file")


@case
def record_to_standard_output_writes_nothing_else_there():
    with Folder() as folder:
        done = run(*OFFBEAT.command("record", "-o", "-", "--", "sh", "-c", "echo heard; sleep 0.1; :"), cwd=folder)
        check_equal((done.returncode, list(folder.iterdir())), (0, []), "status and files")
        check(done.stderr.startswith(b"heard\n"), f"standard error: {text(done.stderr)}")
        (folder / "piped").write_bytes(done.stdout)
        check_equal(OFFBEAT.answer("info", folder / "piped")["format"], "pprof", "format in the pipe")


@case
def split_processes_writes_a_file_for_each_process():
    with Folder() as folder:
        words = ("-o", "x.pb.gz", "-o", "x.speedscope.json.gz", "-o", "x.envelope", "-o", "x.json", "--split-processes", "-q")
        command = ("sh", "-c", "sleep 0.1; sleep 0.1; :")
        done = run(*OFFBEAT.command("record", *words, "--", *command), cwd=folder)
        check_equal((done.returncode, text(done.stderr)), (0, ""), "status and messages")
        suffixes = (".pb.gz", ".speedscope.json.gz", ".envelope", ".json")
        names = [f"x{number}{suffix}" for suffix in suffixes for number in ("", ".2", ".3")]
        check_equal(sorted(path.name for path in folder.iterdir()), sorted(names), "files")
        pids = [pprof_labels(folder / name)["pid"] for name in names[:3]]
        check([len(pid) for pid in pids] == [1, 1, 1] and len(set.union(*pids)) == 3, f"pids: {pids}")
        processes = [pprof_labels(folder / name)["process"] for name in names[:3]]
        check_equal(processes, [{"sh"}, {"sleep"}, {"sleep"}], "processes in the order of their starts")
        run(*OFFBEAT.command("merge", *names[:3], "-o", "all.pb.gz"), cwd=folder)
        check_equal(pprof_labels(folder / "all.pb.gz")["pid"], set.union(*pids), "pids after a merge")


@case
def split_processes_needs_a_file():
    done = run(*OFFBEAT.command("record", "-o", "-", "--split-processes", "--", "true"))
    check_equal((done.returncode, done.stdout), (2, b""), "status and output")
    check_lines(done.stderr, "--split-processes writes a file for each process")


@case
def no_symbols_leaves_addresses_that_can_be_named_later_PPF_5():
    def rows(path):
        report = text(run(*OFFBEAT.command("raw", path), cwd=folder).stdout)
        return report[report.index("Locations\n"):].splitlines()

    def named(path):
        return [row for row in rows(path) if re.search(r"M=\d+ [^\[ ].* s=", row)]  # but [starting] and the like

    with Folder() as folder:
        done = run(*OFFBEAT.command("record", "-o", "bare.pb.gz", "--no-symbols", "-q", "--", BEHAVES, 300, "exit", 0), cwd=folder)
        check_equal((done.returncode, text(done.stderr)), (0, ""), "status and messages")
        check_equal(named("bare.pb.gz"), [], "names of code in files")
        check("[FN]" not in "".join(rows("bare.pb.gz")), "a mapping says that it is symbolized")
        run(*OFFBEAT.command("symbolize", "bare.pb.gz", "-o", "named.pb.gz"), cwd=folder)
        check("main" in opens(OFFBEAT, folder / "named.pb.gz"), "symbolize does not name it")
        check(named("named.pb.gz"), "there are no names")
        run(*OFFBEAT.command("convert", "named.pb.gz", "--no-symbols", "-o", "again.pb.gz"), cwd=folder)
        check_equal(rows("again.pb.gz"), rows("bare.pb.gz"), "a named profile without symbols")


@case
def several_processes_do_not_fit_into_an_envelope_on_standard_output():
    with Folder() as folder:
        words = ("record", "-o", "-", "--to", "envelope", "--", "sh", "-c", "sleep 0.1; sleep 0.1; sleep 0.1; :")
        done = run(*OFFBEAT.command(*words), cwd=folder, env={**os.environ, "TMPDIR": str(folder)})
        lines = [line for line in text(done.stderr).splitlines() if "holds one chunk" in line]
        check_equal((done.returncode, len(lines)), (COULD_NOT_BE_DONE, 1), f"status and lines: {text(done.stderr)}")
        check(not list(folder.glob("-*")), "a file with a strange name was written")


try:
    main(sys.argv[2] if len(sys.argv) > 2 else "")
finally:
    SHARES_FOLDER.__exit__()
