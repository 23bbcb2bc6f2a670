"""Storms under the sampler: programs that do all that could upset it, and check that nothing upsets them.

  soak.py [--without-perf] BUILD SECONDS [NAME]

Every storm is run as often as SECONDS allow, at several frequencies, plain and with the sanitizers that the compiler
has; with --without-perf as in a container, where perf events are denied. A failed storm is run again without the sampler, to find out whose fault it is. SPDX-License-Identifier: MIT"""
import ctypes
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import Failed, Folder, Offbeat, case, check, main, run, skip, text  # noqa: E402

WITHOUT_PERF = sys.argv[1] == "--without-perf"
ARGUMENTS = sys.argv[2:] if WITHOUT_PERF else sys.argv[1:]
OFFBEAT = Offbeat(ARGUMENTS[0])
SECONDS = float(ARGUMENTS[1])
ONLY = ARGUMENTS[2] if len(ARGUMENTS) > 2 else ""
FOLDER = OFFBEAT.build / "test/soak"
LIBRARY = OFFBEAT.build / "liboffbeat.so"

FREQUENCIES = (1009, 101, 4999)
MODES = ("wall", "wall", "cpu")
HANGS_AFTER_SECONDS = 40     # beyond what a storm was given
RECORDINGS_READ_MAX = 12     # of one storm; some have thousands of processes
LENGTH_MAX_SECONDS = 5.0     # of one run
LEAST_RECORDED_SECONDS = 0.3

# Storms that a sanitizer's own runtime does not survive, with the reason.
NOT_WITH = {
    "asan": {
        "no_memory": "ASan reserves terabytes",
        "fork": "a child has the locks of ASan's allocator as another thread held them, and waits forever, without us too",
        "seccomp_strict": "its threads end by libc's exit only",
        "alternate_stacks": "its frames are larger",
        "thread_churn": "its frames are larger than the smallest stack",
        "raw_clone": "its threads must be libc's",
    },
}


class Flavour:
    """A way to build the storms; RUNTIME is a library that must be loaded before ours."""

    def __init__(self, name, program, exceptions, runtime=None):
        self.name, self.program, self.exceptions, self.runtime = name, FOLDER / program, FOLDER / exceptions, runtime

    def command(self, storm, seconds):
        before = [OFFBEAT.build / "test/safety/safety_without_perf"] if WITHOUT_PERF else []
        if storm == "exceptions":
            return [*before, self.exceptions, seconds]
        return [*before, self.program, storm, seconds]

    def environment(self, folder, frequency, mode):
        preloaded = [str(LIBRARY)] if not self.runtime else [self.runtime, str(LIBRARY)]
        return {**os.environ, "LD_PRELOAD": ":".join(preloaded), "OFFBEAT_RECORD_DIRECTORY": str(folder),
                "OFFBEAT_FREQUENCY": str(frequency), "OFFBEAT_MODE": mode,
                "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0", "TSAN_OPTIONS": "die_after_fork=0"}


def runtime(name):
    """The path of the compiler's LIBRARY, or None where it has none."""
    found = text(run("gcc", f"-print-file-name={name}").stdout)
    return found if os.path.isabs(found) else None


PLAIN = Flavour("plain", "storm", "storm_exceptions")
ASAN = Flavour("asan", "storm_asan", "storm_exceptions_asan", runtime("libasan.so"))


# --- one run ---------------------------------------------------------------------------------------------------------

def adopt_orphans():
    """What outlives the program that started it becomes ours, to be ended."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans():
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    for child in map(int, children):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def run_once(command, folder, environment, seconds):
    """(status or None if it hung, what it said)"""
    with open(folder / "said", "w+b") as said:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                   env=environment, cwd=folder, start_new_session=True)
        try:
            status = process.wait(seconds + HANGS_AFTER_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            end_orphans()
        said.seek(0)
        return status, text(said.read()[-3000:])


def describe(status):
    if status is None:
        return "it hung"
    return f"ended by signal {-status}" if status < 0 else f"status {status}"


def check_recordings(folder, seconds):
    """Those that there are can be read; a storm that lived for a while has samples. A process that ended between making
    its recording and writing to it left it empty, which `record` passes over."""
    written = [path for path in folder.glob("*.recording") if path.stat().st_size > 0]
    recordings = sorted(written, key=lambda path: path.stat().st_size, reverse=True)
    if seconds >= LEAST_RECORDED_SECONDS:
        check(recordings, "it left no recording")
    for path in recordings[:RECORDINGS_READ_MAX]:
        done = run(OFFBEAT.program, "info", path)
        check(done.returncode == 0, f"offbeat info {path.name}: {text(done.stderr)}")
    return len(recordings)


def run_storm(flavour, storm, seconds, frequency, mode):
    with Folder() as folder:
        command = flavour.command(storm, seconds)
        status, said = run_once(command, folder, flavour.environment(folder, frequency, mode), seconds)
        if status == 0:
            check_recordings(folder, seconds)
            return said
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        alone, _ = run_once(command, folder, environment, seconds)
        raise Failed(f"{flavour.name}, {frequency} Hz, {mode}: {describe(status)}; alone: {describe(alone)}\n{said}")


# --- all of them -----------------------------------------------------------------------------------------------------

def storms():
    names = text(run(PLAIN.program).stdout).split() + ["exceptions"]
    return [name for name in names if ONLY in name]


def flavours_of(storm):
    yield PLAIN
    if ASAN.runtime and ASAN.program.exists() and storm not in NOT_WITH["asan"]:
        yield ASAN


def plan(storm):
    """The ways to run STORM, forever; the first ways find the most."""
    ways = [(flavour, frequency, mode) for frequency, mode in zip(FREQUENCIES, MODES) for flavour in flavours_of(storm)]
    return itertools.cycle(ways)


def storm_case(storm, seconds):
    def weathers():
        start, failures, lines = time.monotonic(), [], []
        length = min(LENGTH_MAX_SECONDS, max(seconds / 2, LEAST_RECORDED_SECONDS))
        for flavour, frequency, mode in plan(storm):
            try:
                lines.append(f"{flavour.name} {frequency} Hz {mode}: " +
                             run_storm(flavour, storm, length, frequency, mode).replace("\n", ", "))
            except Failed as failed:
                failures.append(str(failed))
            if time.monotonic() - start + length > seconds or len(failures) >= 3:
                break
        for line in lines[:4]:
            print(f"# {line}")
        check(not failures, f"{len(failures)} of {len(failures) + len(lines)} runs failed\n" + "\n".join(failures))
    weathers.__name__ = f"storm_of_{storm}"
    return weathers


adopt_orphans()
if not PLAIN.program.exists():
    case(lambda: skip(f"{PLAIN.program} is not built"))
else:
    names = storms()
    for storm_name in names:
        case(storm_case(storm_name, SECONDS / len(names)))
main()
