"""How soon a large perf.data file with copied stacks (--call-graph dwarf) is opened, and in how much memory, beside perf.
SPDX-License-Identifier: MIT"""
import os
import pathlib
import subprocess
import tempfile
import time

from common import perf_works, table

ITERATIONS_PER_MB = 27
HZ = 10000
SOURCE = pathlib.Path(__file__).with_name("deep.c")


def frames_of(build, path):
    """Samples and their frames, as perf and offbeat find them."""
    script = subprocess.run(["perf", "script", "-i", path], capture_output=True, check=True).stdout.decode(errors="replace")
    lines = script.splitlines()
    theirs = sum(not line for line in lines), sum(line.startswith("\t") for line in lines)
    collapsed = subprocess.run([build / "offbeat", "convert", path, "--to", "collapsed", "-o", "-"], capture_output=True, check=True)
    rows = [line.rsplit(" ", 1) for line in collapsed.stdout.decode(errors="replace").splitlines()]
    period_ns = 10**9 // HZ
    return theirs, (sum(int(time_ns) for _, time_ns in rows) // period_ns,
                    sum((stack.count(";") + 1) * int(time_ns) for stack, time_ns in rows) // period_ns)


def measure(command):
    """(seconds, MB of the largest process) of a command of the shell."""
    start = time.monotonic()
    process = subprocess.Popen(["/usr/bin/time", "-f", "%M", "sh", "-c", command], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    _, text = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"{command}: status {process.returncode}: {text.decode(errors='replace')}")
    return time.monotonic() - start, int(text.split()[-1]) / 1024


def perf_file(build, megabytes=1000):
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as folder:
        if not perf_works(folder):
            print("perf.data: perf is not installed, or may not sample")
            return
        program, path = f"{folder}/deep", f"{folder}/large.data"
        subprocess.run(["gcc", "-O2", "-g", "-o", program, SOURCE], check=True)
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "--call-graph", "dwarf,8192", "-m", "16M", "-o", path,
                        "--", program, str(megabytes * ITERATIONS_PER_MB)], check=True, capture_output=True)
        print(f"A perf.data file of {os.path.getsize(path) / 1e6:.0f} MB with copied stacks of 8 KiB:")
        offbeat = f"{build}/offbeat"
        rows = [["", "seconds", "MB", "times ours"]]
        ours = None
        for name, command in (("warm up", f"cat {path}"), ("offbeat top", f"{offbeat} top -n 1 {path}"),
                              ("perf script | offbeat top", f"perf script -i {path} 2>/dev/null | {offbeat} top -n 1 -"),
                              ("perf report --stdio", f"perf report --stdio -i {path} 2>/dev/null")):
            seconds, memory = measure(command)
            if name == "warm up":
                continue
            ours = ours or seconds
            rows.append([name, f"{seconds:.2f}", f"{memory:.0f}", f"{seconds / ours:.1f}"])
        table(rows)
        theirs, found = frames_of(build, path)
        print(f"samples and frames: perf script {theirs}, offbeat {found}")
