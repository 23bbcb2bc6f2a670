"""The reports of large pprof profiles beside `go tool pprof` in one run: seconds of processors (user and system) and peak
memory of whole processes.

Ours is the least of five runs; pprof's the least of up to three, as long as they take less than a minute in all. A run
of pprof that takes more seconds of processors than the limit is ended. SPDX-License-Identifier: MIT"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import NamedTuple, Optional

from common import environment
from pprof_data import missing_tools, pprof_files

ROUNDS, PEER_ROUNDS, PEER_SECONDS = 5, 3, 60
RATIO_TARGET = 20
PEER_MEMORY_SHARE = 0.75  # of what the machine has available: the largest file could otherwise take all of it


class Row(NamedTuple):
    name: str
    ours: list
    theirs: Optional[list]
    seconds_target: float
    mib_target: Optional[int] = None
    output_bytes_target: Optional[int] = None


class Measured(NamedTuple):
    seconds: float
    mib: float
    output_bytes: int
    is_complete: bool = True


class Peer(NamedTuple):
    program: str
    version: str
    limits: list  # of prlimit


def rows(files):
    m, mnl, mnl2, large = files
    return [
        Row("top mnl", ["top", mnl], ["-top", mnl], 0.25),
        Row("top m", ["top", m], ["-top", m], 0.35),
        Row("top l", ["top", large], ["-top", large], 3, mib_target=400),
        Row("tree m", ["tree", m], ["-tree", m], 0.4),
        Row("diff mnl mnl2", ["diff", mnl, mnl2], ["-top", f"-diff_base={mnl}", mnl2], 0.6),
        Row("pprof -top -diff_base", ["pprof", "-top", f"-diff_base={mnl}", mnl2], ["-top", f"-diff_base={mnl}", mnl2], 0.6),
        Row("graph m (DOT)", ["graph", m], ["-dot", m], 0.4),
        Row("flame m (SVG)", ["flame", m], None, 0.6, output_bytes_target=1_000_000),
    ]


def available_bytes():
    text = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
    return int(re.search(r"MemAvailable: +(\d+)", text)[1]) * 1024


def find_peer(limit_seconds):
    """None if there is no `go tool pprof`. The program itself, so that its parent's death cannot hide what it used."""
    if not shutil.which("go"):
        return None
    found = subprocess.run(["go", "tool", "-n", "pprof"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        return None
    version = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    return Peer(found.stdout.strip(), re.search(r"go[\d.]+", version)[0],
                ["prlimit", f"--cpu={limit_seconds}", f"--as={int(available_bytes() * PEER_MEMORY_SHARE)}"])


def run(command, output):
    with open(output, "wb") as out, open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=nowhere,
                                   env=environment(PPROF_TMPDIR="/tmp", PPROF_NO_BROWSER=1))
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Measured(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output.stat().st_size, process.returncode == 0)


def least(runs):
    return Measured(min(one.seconds for one in runs), max(one.mib for one in runs), runs[-1].output_bytes)


def measure_ours(offbeat, row, output):
    runs = [run([offbeat, *row.ours], output) for _ in range(ROUNDS)]
    assert all(one.is_complete and one.output_bytes > 0 for one in runs), row.name
    return least(runs)


def measure_theirs(peer, row, output):
    """None if there is nothing to compare with."""
    if not peer or not row.theirs:
        return None
    runs = []
    while len(runs) < PEER_ROUNDS and sum(one.seconds for one in runs) < PEER_SECONDS:
        one = run([*peer.limits, peer.program, "-symbolize=none", *row.theirs], output)
        if not one.is_complete:
            return one
        runs.append(one)
    return least(runs)


def missed(row, ours, theirs):
    """The targets that were not reached. A run of the peer that was ended shows a ratio from below."""
    names = []
    if ours.seconds > row.seconds_target:
        names.append("time")
    if row.mib_target and ours.mib > row.mib_target:
        names.append("memory")
    if row.output_bytes_target and ours.output_bytes > row.output_bytes_target:
        names.append("size")
    if theirs and theirs.seconds / ours.seconds < RATIO_TARGET:
        names.append("ratio" if theirs.is_complete else "ratio not shown in time")
    return names


def cells(row, ours, theirs):
    over = "> " if theirs and not theirs.is_complete else ""
    size = f"{ours.output_bytes / 1e6:.2f} MB ≤ {row.output_bytes_target / 1e6:.0f}" if row.output_bytes_target else ""
    names = missed(row, ours, theirs)
    return [row.name, f"{ours.seconds:.2f} s", f"≤ {row.seconds_target:.2f}", f"{ours.mib:.0f} MiB",
            f"≤ {row.mib_target}" if row.mib_target else "", size,
            f"{over}{theirs.seconds:.1f} s" if theirs else "-", f"{over}{theirs.mib:.0f} MiB" if theirs else "-",
            f"{over}{theirs.seconds / ours.seconds:.0f}" if theirs else "-",
            f"missed: {', '.join(names)}" if names else "met"]


def about(peer):
    """Which pprof the ratios are of. The one of Go 1.19 was measured to load about four times slower
    than the newest, and to take as long for -top."""
    if not peer:
        return "There are no ratios without go tool pprof."
    is_slow = tuple(map(int, peer.version.removeprefix("go").split(".")[:2])) <= (1, 19)
    return f"The ratios are of the pprof of {peer.version}" + (", which loads about four times slower than newer ones; their -top takes as long." if is_slow else ".")


WIDTHS = (22, 8, 7, 8, 6, 14, 16, 9, 9, 0)


def print_row(row):
    """At once: the peer takes minutes for a row."""
    print("  ".join(f"{cell:{'<' if i == 0 else '>'}{width}}" for i, (cell, width) in enumerate(zip(row, WIDTHS))).rstrip(), flush=True)


def print_missing(peer):
    if not peer:
        print("SKIPPED: go tool pprof is not installed (golang-go): there are no ratios.")


def analyze(build, limit_seconds=180):
    missing = missing_tools()
    if missing:
        print(f"SKIPPED: analyze, for lack of {missing}")
        return
    wanted = rows(pprof_files("m", "mnl", "mnl2", "l"))
    peer = find_peer(limit_seconds) if limit_seconds > 0 else None
    if limit_seconds > 0:
        print_missing(peer)
    print_row(["reports", "offbeat", "target", "memory", "target", "output", f"pprof ({peer.version if peer else 'none'})", "memory",
               f"ratio ≥ {RATIO_TARGET}", ""])
    with tempfile.TemporaryDirectory() as folder:
        for row in wanted:
            output = pathlib.Path(folder) / "output"
            ours = measure_ours(build / "offbeat", row, output)
            print_row(cells(row, ours, measure_theirs(peer, row, output)))
    load = os.getloadavg()[0]
    print(f"Seconds of processors; load {load:.1f} at the end. On a slow or busy machine, the ratio decides. > means ended at"
          f" {limit_seconds} s or {PEER_MEMORY_SHARE:.0%} of the memory.")
    print(about(peer))
