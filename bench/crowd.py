"""Threads that compete for processors: what programs measured of themselves beside their profiles, where they are many,
beside foreign programs, at nice 19, and under a quota of the control group. SPDX-License-Identifier: MIT"""
import contextlib
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

from common import table
from truth import CROWD, CROWD_POINTS, compile_programs, copy_offbeat, record, users

COUNTS = (16, 60, 220, 1000)
FOREIGN = 4
QUOTA_PERCENT = 150  # of one processor
GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")


@contextlib.contextmanager
def beside_foreign():
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(FOREIGN)]
    try:
        yield []
    finally:
        for process in busy:
            process.kill()
            process.wait()


@contextlib.contextmanager
def beside_foreign_and_nice():
    with beside_foreign():
        yield ["nice", "-n", "19"]


@contextlib.contextmanager
def under_quota():
    """This process enters the group for as long as the program runs."""
    group = GROUPS / f"offbeat-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text(str(1000 * QUOTA_PERCENT))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield []
    finally:
        (GROUPS / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def surroundings():
    """What the rows are called, and what sets it up and gives the words before the command."""
    yield "alone", contextlib.nullcontext([])
    yield f"beside {FOREIGN} busy programs", beside_foreign()
    yield f"nice 19, beside {FOREIGN}", beside_foreign_and_nice()
    if os.access(GROUPS / "cpu.cfs_quota_us", os.W_OK) or (GROUPS.is_dir() and os.geteuid() == 0):
        yield f"quota of {QUOTA_PERCENT} %", under_quota()
    else:
        print("quota: skipped, there is no control group of version 1 for processors that may be used")


def rows_of(context, offbeat, folder, seconds):
    with context as before:
        for count, mode, user in itertools.product(COUNTS, ("wall", "cpu"), users()):
            head = [str(count), mode, user]
            rows = record(offbeat, folder, (f"{CROWD} {count}", 101, mode, user), seconds, before)
            if isinstance(rows, str):
                yield [*head, rows, "", "", "", "", "NO"]
                continue
            for row in rows:
                if row.name != "(all)":
                    row.bound = CROWD_POINTS
                yield [*head, *row.cells()]


def crowd(build, seconds=6):
    """True if every row is right. Prints a table for each surroundings when it is there, because all of them take a quarter of an hour."""
    print(f"Threads that compute and sleep in turn for {seconds} s: share of their time in % that stacks with NAME have")
    count = wrong = announced = 0
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        offbeat = copy_offbeat(build, folder)
        compile_programs(folder)
        for place, context in surroundings():
            rows = list(rows_of(context, offbeat, folder, seconds))
            print(f"\n{place}")
            table([["threads", "mode", "user", "name", "truth", "profile", "error", "bound", ""], *rows], texts=4)
            sys.stdout.flush()
            count += len(rows)
            wrong += sum(row[-1] != "ok" for row in rows)
            announced += sum(row[-1] == "said" for row in rows)
    print(f"\n{count} rows, {wrong} wrong, and record named the kernel's limit for {announced} of them")
    return wrong == 0
