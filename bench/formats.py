"""Reading, merging and writing profiles: large pprof profiles beside go tool pprof; chunks of Sentry's V2, decoded and
validated, beside a JSON library that only reads them. All is seconds of a processor, the least of several runs, and peak
memory.

pprof_data.py makes the pprof profiles. SPDX-License-Identifier: MIT"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from chunks import chunks
from common import environment, table
from pprof_data import MERGED_FILES, missing_tools, pprof_files, raw_bytes


def output(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def run(command, rounds):
    """(least seconds of processors, greatest MiB)"""
    seconds, memory = [], []
    for _ in range(rounds):
        with open(os.devnull, "w", encoding="ascii") as nowhere:
            process = subprocess.Popen(list(map(str, command)), stdout=nowhere, stderr=nowhere,
                                       env=environment(PPROF_TMPDIR="/tmp", PPROF_NO_BROWSER=1))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        seconds.append(usage.ru_utime + usage.ru_stime)
        memory.append(usage.ru_maxrss / 1024)
    return min(seconds), max(memory)


def pprof_version():
    """What go tool pprof is, or None."""
    if not shutil.which("go"):
        return None
    return re.search(r"go[\d.]+", output("go", "version"))[0]


def compare(name, ours, theirs, rounds):
    seconds, memory = run(ours, rounds)
    row = [name, f"{seconds:.2f} s", f"{memory:.0f} MiB"]
    if not theirs:
        return row + ["-"] * 4
    their_seconds, their_memory = run(theirs, max(rounds // 3, 1))
    return row + [f"{their_seconds:.2f} s", f"{their_memory:.0f} MiB", f"{their_seconds / seconds:.1f}",
                  f"{their_memory / memory:.1f}"]


def pprof(build, folder, rounds):
    m, lnl, *merged = pprof_files("m", "lnl", *(f"g{i}" for i in range(MERGED_FILES)))
    version = pprof_version()
    offbeat, load = build / "offbeat", [build / "bench/formats"]
    peer = ["go", "tool", "pprof", "-symbolize=none"] if version else None
    out = folder / "out.pb.gz"

    def theirs(*arguments):
        return peer + list(arguments) if peer else None

    rows = [["pprof", "offbeat", "", f"pprof ({version or 'go is not installed'})", "", "time", "memory"]]
    for path in (m, lnl):
        rows.append(compare(f"load {path.name}, {raw_bytes(path) / 2**20:.0f} MiB raw", load + [path],
                            theirs("-comments", path), rounds if path == m else 3))
    rows.append(compare("info m.pb.gz", [offbeat, "info", m], None, rounds))
    rows.append(compare("top m.pb.gz", [offbeat, "top", m], theirs("-top", m), rounds))
    rows.append(compare("top lnl.pb.gz", [offbeat, "top", lnl], None, 3))
    rows.append(compare("write m.pb.gz again", [offbeat, "convert", m, "-o", out],
                        theirs("-proto", f"-output={out}", m), rounds))
    rows.append(compare(f"merge {MERGED_FILES} g*.pb.gz, write", [offbeat, "merge", *merged, "-o", out],
                        theirs("-proto", f"-output={out}", *merged), rounds))
    table(rows)
    print("The pprof in Debian's Go 1.19 loads about four times slower than newer ones: no claim is made against its loading.")


def formats(build, rounds=5):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # First, as the system counts our own memory as a child's until it has become another program.
        missing = missing_tools()
        if missing:
            print(f"SKIPPED: pprof, for lack of {missing}")
        else:
            pprof(build, folder, rounds)
    print()
    chunks(build)
