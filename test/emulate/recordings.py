"""Recordings on another processor, in an emulated machine: ./dev emulate python3 test/emulate/recordings.py build-aarch64. Arguments: the
build folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/end_to_end"))
from recording import Folder, Offbeat, case, check, check_equal, main, run, text  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
WAITS = OFFBEAT.build / "test/emulate/waits"
KINDS = ("read poll select epoll nanosleep recv accept mutex condition rwlock barrier semaphore flock waitpid syscall").split()
SECONDS = 4


def complete_shares(path):
    """{kind of wait: share of the time of its thread whose stack reaches the function that begins the thread}."""
    shares = {}
    for name, functions, all_ns in OFFBEAT.threads(path):
        if name in KINDS:
            reached = min(functions.get("run_" + name, 0), functions.get("waits_in_" + name, 0))
            shares[name] = reached / all_ns if all_ns else 0
    return shares


def check_waits(path):
    """All stacks of blocked threads are complete."""
    shares = complete_shares(path)
    check_equal(sorted(shares), sorted(KINDS), "threads")
    print("# complete: " + ", ".join(f"{name} {share:.0%}" for name, share in shares.items()))
    incomplete = {name: f"{share:.0%}" for name, share in shares.items() if share < 0.9}
    check(not incomplete, f"incomplete stacks: {incomplete}")


@case
def blocked_threads_have_complete_stacks_and_no_wait_is_interrupted():
    with Folder() as folder:
        done = OFFBEAT.record(folder, WAITS, SECONDS)
        check_equal(done.returncode, 0, f"status; {text(done.stderr)}")
        check_equal(text(done.stdout), "0", "waits that a signal has interrupted")
        check_waits(folder / "x.pb.gz")


def attached(engine, program=WAITS):
    with Folder() as folder, subprocess.Popen([program, "30"], stdout=subprocess.PIPE) as waits:
        try:
            time.sleep(0.5)
            done = run(OFFBEAT.program, "record", "--engine", engine, "-p", waits.pid, "--duration", SECONDS, "-o", "x.pb.gz", cwd=folder)
            check_equal(done.returncode, 0, f"status; {text(done.stderr)}")
            check_waits(folder / "x.pb.gz")
            busy = [functions for _, functions, _ in OFFBEAT.threads(folder / "x.pb.gz") if "computes" in functions]
            check(busy and busy[0].get("main", 0) >= busy[0]["computes"], f"the busy thread shows {busy}")
        finally:
            waits.kill()


@case
def the_perf_engine_records_a_running_process():
    attached("perf")


@case
def the_perf_engine_records_a_static_program():
    attached("perf", OFFBEAT.build / "test/emulate/waits_static")


if __name__ == "__main__":
    main()
