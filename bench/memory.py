"""Peak memory of a recording of a large program: the compiler proper, at work on a large source file.
SPDX-License-Identifier: MIT"""
import os
import pathlib
import subprocess
import tempfile
import time

from common import compiler_proper, environment, installed_library, large_source, perf_works, table

FUNCTIONS_A_SECOND = 120  # that cc1 compiles on a slow machine; the recording is ended when its time is over
POLL_SECONDS = 0.02


def children_of(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def process_tree(pid):
    tree = [pid]
    for child in children_of(pid):
        tree += process_tree(child)
    return tree


def name_and_peak(pid):
    """(name, peak resident bytes) of a process, or None if it is gone."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return (fields["Name"], int(fields["VmHWM"].split()[0]) * 1024) if "VmHWM" in fields else None


def end_program(pid):
    for child in process_tree(pid):
        seen = name_and_peak(child)
        if seen and seen[0] == "cc1":
            os.kill(child, 15)


def peaks(command, env, folder, seconds):
    """{process name: peak resident bytes} of COMMAND and what it starts; its cc1 is ended after that many."""
    process = subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    start, seen, ended = time.monotonic(), {}, False
    while process.poll() is None:
        for pid in process_tree(process.pid):
            found = name_and_peak(pid)
            if found:
                seen[found[0]] = max(seen.get(found[0], 0), found[1])
        if not ended and time.monotonic() - start > seconds:
            end_program(process.pid)
            ended = True
        time.sleep(POLL_SECONDS)
    return seen


def megabytes(size):
    return f"{size / 1e6:.1f}"


def memory(build, seconds=60):
    print(f"Peak memory of a recording of cc1 over {seconds} s at 101 Hz, in MB")
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as folder:
        source = f"{folder}/large.c"
        large_source(source, seconds * FUNCTIONS_A_SECOND)
        program = [compiler_proper(), "-quiet", "-O2", source, "-o", "/dev/null"]
        runs = [("none", program, None, None, None),
                ("offbeat", [str(build / "offbeat"), "record", "-o", "x.pb.gz", "--", *program], None, "offbeat", "x.pb.gz")]
        gperftools = installed_library("libprofiler.so*")
        if gperftools:
            runs.append(("gperftools", program, environment(LD_PRELOAD=gperftools, CPUPROFILE="x.prof",
                                                            CPUPROFILE_FREQUENCY=101), None, "x.prof"))
        if perf_works(folder):
            for graph in ("fp", "dwarf"):
                runs.append((f"perf {graph}", ["perf", "record", "-e", "cpu-clock:u", "-F", "101", "--call-graph", graph, "-o",
                                               "x.data", "--", *program], None, "perf", "x.data"))
        rows = [["profiler", "program", "recorder", "file"]]
        for name, command, env, recorder, written in runs:
            seen = peaks(command, env, folder, seconds)
            path = pathlib.Path(folder, written) if written else None
            rows.append([name, megabytes(seen.get("cc1", 0)), megabytes(seen.get(recorder, 0)) if recorder else "",
                         megabytes(path.stat().st_size) if path and path.exists() else ""])
        table(rows)
