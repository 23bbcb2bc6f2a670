"""What a profiler costs a busy program of four threads, and what its recorder costs meanwhile. SPDX-License-Identifier: MIT"""
import os
import pathlib
import random
import re
import resource
import statistics
import subprocess
import tempfile

from common import environment, installed_library, perf_works, table
from truth import copy_offbeat, identity, users, without_perf

WORK = 12
RATES = (101, 1000)


class Contestant:
    """One way to run the busy program. SAMPLES reads how many samples were taken out of what it printed."""

    def __init__(self, name, command, env=None, samples=None, user="root"):
        self.name, self.command, self.env, self.samples, self.user = name, command, env, samples, user
        self.wall, self.program, self.recorder, self.after, self.sample_counts = [], [], [], [], []

    def run(self, folder):
        before = children_cpu_ns()
        done = subprocess.run(self.command, env=self.env, cwd=folder, capture_output=True, text=True, check=True,
                              **identity(self.user))
        wall, program, recorder = (int(word) for word in done.stdout.split()[-3:])
        recorder = recorder if len(self.command) > 2 else 0  # else its parent is this program
        self.wall.append(wall)
        self.program.append(program)
        self.recorder.append(recorder)
        self.after.append(children_cpu_ns() - before - program - recorder)
        if self.samples:
            found = re.search(self.samples, done.stderr)
            self.sample_counts.append(int(found[1]) if found else 0)

    def all(self):
        """The CPU time that was used while the program ran."""
        return [program + recorder for program, recorder in zip(self.program, self.recorder)]


def children_cpu_ns():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1e9)


def contestants(build, folder):
    busy = [str(folder / "busy"), str(WORK)]
    offbeat = copy_offbeat(build, folder)
    (folder / "busy").write_bytes((build / "bench/busy").read_bytes())
    (folder / "busy").chmod(0o755)
    found = [Contestant("none", busy)]
    gperftools, perf = installed_library("libprofiler.so*"), perf_works(folder)
    for rate in RATES:
        for user in users():
            found.append(Contestant(f"offbeat {rate} Hz, {user}",
                                    [*without_perf(offbeat, user), offbeat, "record", "-F", str(rate), "-o", f"{user}.pb.gz",
                                     "--", *busy], user=user))
        if gperftools:
            found.append(Contestant(f"gperftools {rate} Hz", busy, environment(
                LD_PRELOAD=gperftools, CPUPROFILE="x.prof", CPUPROFILE_FREQUENCY=rate), r"bytes = (\d+)/"))
        if perf:
            for graph in (None, "fp", "dwarf"):
                stacks = ["--call-graph", graph] if graph else []
                found.append(Contestant(f"perf {rate} Hz, {graph or 'no stacks'}", [
                    "perf", "record", "-e", "cpu-clock", "-F", str(rate), *stacks, "-o", "x.data", "--", *busy],
                    None, r"\((\d+) samples\)"))
    for name, there in (("gperftools", gperftools), ("perf", perf)):
        if not there:
            print(f"{name}: skipped, not installed or not allowed")
    return found


def spread(values):
    """Half the distance between the quartiles, as a share of the median: what two equal things may differ by."""
    if len(values) < 2:
        return 0
    low, middle, high = statistics.quantiles(values, n=4)
    return (high - low) / 2 / middle


def beside_perf(everybody, none):
    """Rounds are compared one by one: what changes from minute to minute is in both."""
    base = statistics.mean(none.all())
    for one in everybody:
        rate = re.match(r"offbeat (\d+) Hz", one.name)
        perf = next((other for other in everybody if rate and other.name == f"perf {rate[1]} Hz, dwarf"), None)
        if not perf or len(one.all()) < 2:
            continue
        apart = [100 * (ours - theirs) / base for ours, theirs in zip(one.all(), perf.all())]
        error = statistics.stdev(apart) / len(apart) ** 0.5
        print(f"{one.name}: {statistics.mean(apart):+.2f} points beside perf with dwarf and its recorder, standard error {error:.2f}")


def slowdown(build, rounds=5):
    print(f"A busy program of 4 threads: medians of {rounds} interleaved runs. cost: the CPU time of the program, with the profiler")
    print("in it, and of the recorder while the program ran, over that of the program alone; after: what the recorder did then")
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        everybody = contestants(build, folder)
        for _ in range(rounds):
            for contestant in random.sample(everybody, len(everybody)):
                contestant.run(folder)
    none = everybody[0]
    base_wall, base_cpu = statistics.median(none.wall), statistics.median(none.all())
    rows = [["profiler", "wall ms", "slowdown", "program ms", "recorder ms", "cost", "±", "after ms", "samples"]]
    for contestant in everybody:
        wall, after = statistics.median(contestant.wall), max(0, statistics.median(contestant.after))
        rows.append([contestant.name, f"{wall / 1e6:.0f}", f"{wall / base_wall - 1:+.1%}",
                     f"{statistics.median(contestant.program) / 1e6:.0f}", f"{statistics.median(contestant.recorder) / 1e6:.1f}",
                     f"{statistics.median(contestant.all()) / base_cpu - 1:+.2%}", f"{spread(contestant.all()):.1%}",
                     f"{after / 1e6:.0f}",
                     str(int(statistics.median(contestant.sample_counts))) if contestant.sample_counts else ""])
    table(rows)
    beside_perf(everybody, none)
