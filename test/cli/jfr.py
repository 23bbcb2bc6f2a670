"""Recordings of Java, compared with the output of `jfr print` for the same files, kept in test/data/jfr (make.sh made both).

    jfr.py OFFBEAT DATA

SPDX-License-Identifier: MIT"""
import collections
import gzip
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
DATA = pathlib.Path(sys.argv[2]).resolve() / "jfr"
# Both in one file are two chunks. jfr print would take constants of the first program for the second: it reads each alone.
PARTS = {"g1": ["g1"], "serial": ["serial"], "parallel": ["parallel"], "both": ["g1", "serial"]}
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="offbeat-test-jfr-"))
KINDS = {"jdk.ExecutionSample": "samples", "jdk.NativeMethodSample": "native", "jdk.ObjectAllocationSample": "alloc_objects",
         "jdk.ObjectAllocationInNewTLAB": "tlab_objects", "jdk.JavaMonitorEnter": "contentions", "jdk.ThreadPark": "contentions"}

AMOUNTS = {"alloc_objects": "alloc_space", "tlab_objects": "tlab_space", "contentions": "delay"}


def run(*command):
    done = subprocess.run([OFFBEAT, *map(str, command)], capture_output=True)
    check_equal(done.returncode, 0, f"{command}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def expected(name):
    """[(kind, ns, thread id, thread name, amount, (frame, …))], the leaf first."""
    found = []
    lines = b"".join(gzip.decompress((DATA / f"{part}.expected.gz").read_bytes()) for part in PARTS[name])
    for line in lines.decode().splitlines():
        kind, time, thread, thread_name, amount, frames = line.split(" ")
        found.append((KINDS[kind], int(time), thread, thread_name, int(amount), tuple(filter(None, frames.replace(":-1", ":0").split(";")))))
    return found


def recording(name):
    path = FOLDER / f"{name}.jfr"
    path.write_bytes(b"".join(gzip.decompress((DATA / f"{part}.jfr.gz").read_bytes()) for part in PARTS[name]))
    return path


def opened(name):
    """{(value type, thread id, (frame, …)): sum}, as offbeat prints it."""
    samples, locations = run("raw", recording(name)).split("Samples:\n")[1].split("Locations\n")
    names = {}
    for line in locations.split("Mappings")[0].splitlines():
        number, frame, line_number = re.match(r" *(\d+): 0x0 (.*) :(\d+):0 s=0$", line).groups()
        names[number] = frame + ":" + line_number
    types = [word.split("/")[0] for word in samples.splitlines()[0].split()]
    found = collections.Counter()
    for block in re.split(r"\n(?= +-?\d)", samples.split("\n", 1)[1]):
        values, frames = block.splitlines()[0].split(":")
        values = [int(value) for value in values.split()]
        thread = re.search(r"thread_id:\[(\d+)\]", block)
        stack = tuple(names[frame] for frame in frames.split())
        for column, value in enumerate(values):
            found[types[column], thread[1] if thread else "0", stack] += value
    return found


for one in PARTS:
    def same(name=one):
        wanted, found = collections.Counter(), opened(name)
        for kind, _, thread, _, amount, frames in expected(name):
            wanted[kind, thread, frames] += 1
            if kind in AMOUNTS:
                wanted[AMOUNTS[kind], thread, frames] += amount
        check(len(wanted) > 20, f"jfr print has only {len(wanted)} different stacks")
        for key in sorted(wanted.keys() | found.keys()):
            check_equal(found[key], wanted[key], str(key))
    same.__name__ = f"kinds_amounts_threads_and_stacks_of_{one}_agree_with_jfr_print"
    case(same)


@case
def times_and_names_of_threads_agree_with_jfr_print():
    for name in PARTS:
        path = FOLDER / "x.json"
        run("convert", recording(name), "--to", "firefox", "-o", path)
        document = json.loads(path.read_text(encoding="utf-8"))
        wanted, found = collections.defaultdict(list), collections.defaultdict(list)
        for kind, time, _, thread_name, _, _ in expected(name):
            if kind == "samples":
                wanted[thread_name].append(time / 1e6)
        for thread in document["threads"]:
            samples = thread["samples"]
            times = samples.get("time") or itertools.accumulate(samples["timeDeltas"])
            weights = samples.get("weight") or [1] * samples["length"]
            found[thread["name"].replace(" ", "_")] += [document["meta"]["startTime"] + time
                                                        for time, weight in zip(times, weights) if weight]
        for thread_name, times in wanted.items():
            check_equal(len(found[thread_name]), len(times), f"{name}: samples of {thread_name}")
            for a, b in zip(sorted(found[thread_name]), sorted(times)):
                check(abs(a - b) < 0.01, f"{name}: {thread_name}: {a} ms and {b} ms")


try:
    main()
finally:
    shutil.rmtree(FOLDER)
