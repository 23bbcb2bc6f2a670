"""Storms over a recorder: processes, threads and code that come and go, targets that are killed, an overrun ring, a kernel without this
or that. Seconds each, in ./dev nightly a minute. Arguments: the build folder, and optionally a part of the names of the cases.
SPDX-License-Identifier: MIT"""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import Folder, Offbeat, case, check, check_equal, main, run, short, skip, text, wait_until  # noqa: E402
from tap import IS_LONG  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
PROGRAMS = OFFBEAT.build / "test/end_to_end"
LIBRARIES = [PROGRAMS / f"changes_{name}.so" for name in ("alpha", "beta")]
SECONDS = 60 if IS_LONG else 2
KILLS = 200 if IS_LONG else 8
RATE = ("-F", "997")


def start(*command, folder, **environment):
    return subprocess.Popen([str(word) for word in command], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "TMPDIR": str(folder), **environment})


def need_bpf(said):
    if "no engine can record" in said:
        skip(said)


class Storm:
    """A storm that a recorder watches from its first to its last moment."""

    def __init__(self, folder, name, *words):
        self.folder = folder
        self.program = start(PROGRAMS / "storms", name, SECONDS, *words, folder=folder)
        self.program.stdout.readline()
        self.recorder = start(OFFBEAT.program, "record", "--engine", "bpf", "--mode", "cpu", *RATE, "-p", self.program.pid, "-o", "x.pb.gz",
                              folder=folder)
        wait_until(lambda: any(folder.rglob("*.recording")) or self.recorder.poll() is not None, "nothing is recorded")
        if self.recorder.poll() is not None:
            need_bpf(text(self.recorder.communicate()[1]))

    def end(self):
        """(CPU time in ns that the program has measured, what offbeat said)"""
        answer, _ = self.program.communicate(b"\n", timeout=100 + 10 * SECONDS)
        _, said = self.recorder.communicate(timeout=100 + 10 * SECONDS)
        check_equal(self.recorder.returncode, 0, text(said))
        check_equal(self.program.returncode, 0, "status of the program")
        return int(answer.split()[0]), text(said)


def stacks(folder):
    """[(functions, CPU time in ns)]"""
    done = run(OFFBEAT.program, "convert", "--to", "collapsed", "-o", "x.collapsed", "x.pb.gz", cwd=folder)
    check_equal(done.returncode, 0, text(done.stderr))
    rows = [row.rpartition(" ") for row in (folder / "x.collapsed").read_text(encoding="utf-8").splitlines()]
    return [(row[0].split(";"), int(row[2])) for row in rows]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_sum(found, spent, least=0.9):
    whole = sum(time for _, time in found)
    check(least * spent < whole < 1.1 * spent, f"{whole} of {spent} ns are in the profile")


def check_callers(found, functions, caller):
    """Stacks that reach the root have CALLER outside of each of FUNCTIONS."""
    for frames, _ in found:
        inner = [i for i, name in enumerate(frames) if name in functions]
        is_cut = any("[incomplete" in name or "[too short" in name for name in frames)
        check(not inner or is_cut or any(caller in name for name in frames[:inner[0]]), f"not below {caller}: {frames}")


@short
@case
def a_thousand_processes_a_second_have_their_time():
    with Folder() as folder:
        spent, _ = Storm(folder, "processes").end()
        found = stacks(folder)
        check_sum(found, spent, 0.65)  # what ends before its tick is seen in part
        check_callers(found, ("burn",), "works_as_child")


@short
@case
def threads_that_end_at_once_have_their_time():
    with Folder() as folder:
        spent, _ = Storm(folder, "threads").end()
        found = stacks(folder)
        check_sum(found, spent, 0.8)
        check_callers(found, ("burn",), "works_as_thread")


@short
@case
def code_that_comes_and_goes_has_no_wrong_callers():
    with Folder() as folder:
        spent, said = Storm(folder, "code", *LIBRARIES).end()
        found = stacks(folder)
        check_sum(found, spent)
        check("stacks were left out, because their code was unloaded" in said, said)
        for name in ("calls_alpha", "calls_beta"):
            check(any(name in frames and "burn_longer" in frames for frames, _ in found), f"no stack has {name}")
        check_callers(found, ("calls_alpha", "calls_beta"), "calls_loaded_code")
        both = [frames for frames, _ in found if {"calls_alpha", "calls_beta"} <= set(frames)]
        both += [frames for frames, _ in found if "calls_made_code" in frames and {"calls_alpha", "calls_beta"} & set(frames)]
        check_equal(both, [], "stacks of code that was never there at the same time")


@short
@case
def an_overrun_ring_is_counted_and_harmless():
    with Folder() as folder:
        storm = Storm(folder, "deep")
        storm.program.stdin.write(b"\n")
        storm.program.stdin.flush()
        wait_until(lambda: cpu_seconds(storm.program.pid) > 0.2, "the program does not run")
        storm.recorder.send_signal(signal.SIGSTOP)
        wait_until(lambda: cpu_seconds(storm.program.pid) > 1.5, "the program does not run on")  # 997 stacks of 16 KB a second
        storm.recorder.send_signal(signal.SIGCONT)
        spent, said = storm.end()
        found = stacks(folder)
        check_sum(found, spent)  # the stacks that are left stand for the others
        check_callers(found, ("burn",), "descends")
        lost = re.search(r"(\d+) stacks of running threads were lost", said)
        check(lost, f"nothing was lost: {said}")


@short
@case
def a_target_that_is_killed_at_any_moment_ends_its_recording():
    with Folder() as folder:
        for _ in range(KILLS):
            program = start(PROGRAMS / "attached", folder=folder)
            program.stdout.readline()
            recorder = start(OFFBEAT.program, "record", "--engine", "bpf", *RATE, "-p", program.pid, "-o", "x.pb.gz", folder=folder)
            time.sleep(random.random() * 0.8)
            program.kill()
            program.communicate()
            _, said = recorder.communicate(timeout=100)
            need_bpf(text(said))
            check(recorder.returncode in (0, 2, 3), f"status {recorder.returncode}: {text(said)}")
            check(recorder.returncode == 0 or "process" in text(said) or "no samples" in text(said), text(said))
            check_equal([str(path) for path in folder.rglob("*.recording")], [], "what is left")


OPTIONAL = ("place_chosen",)
REQUIRED = ("timer_tick", "observe_thread", "process_fork", "process_exec", "thread_exit")


@short
@case
def without_a_feature_of_the_kernel_the_next_engine_records():
    with Folder() as folder:
        program = start(PROGRAMS / "attached", folder=folder)
        program.stdout.readline()
        try:
            for name in OPTIONAL + REQUIRED:
                recorder = start(OFFBEAT.program, "record", "-p", program.pid, "-d", "0.3", "-o", "x.pb.gz", folder=folder,
                                 OFFBEAT_DENIED_PROGRAMS=name)
                said = text(recorder.communicate(timeout=100)[1])
                check_equal(recorder.returncode, 0, f"{name}: {said}")
                if "CAP_BPF" in said:
                    skip(said)
                check_equal("recording by perf, because" in said, name in REQUIRED, f"{name}: {said}")
        finally:
            program.kill()
            program.communicate()


main(sys.argv[2] if len(sys.argv) > 2 else "")
