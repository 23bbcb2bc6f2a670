"""What a profiler costs a busy program of four threads, and what its recorder costs meanwhile. SPDX-License-Identifier: MIT"""
import pathlib
import random
import re
import resource
import statistics
import subprocess
import tempfile

from common import environment, installed_library, perf_works, table
from truth import copy_offbeat, identity, users, without_perf

WORK = 16
RATES = (101, 1000)


class Contestant:
    """One way to run the busy program. SAMPLES reads how many samples were taken out of what it printed."""

    def __init__(self, name, command, env=None, samples=None, user="root"):
        self.name, self.command, self.env, self.samples, self.user = name, command, env, samples, user
        self.wall, self.all, self.in_threads, self.beside, self.in_recorder = [], [], [], [], []
        self.after, self.sample_counts = [], []

    def run(self, folder):
        before = children_cpu_ns()
        done = subprocess.run(self.command, env=self.env, cwd=folder, capture_output=True, text=True, check=True,
                              **identity(self.user))
        wall, program, threads, excess, recorder = (int(word) for word in done.stdout.split()[-5:])
        recorder = recorder if len(self.command) > 2 else 0  # else its parent is this program
        work = threads - excess
        self.wall.append(wall)
        self.all.append(program + recorder)
        self.in_threads.append(100 * excess / work)
        self.beside.append(100 * (program - threads) / work)
        self.in_recorder.append(100 * recorder / work)
        self.after.append(children_cpu_ns() - before - program - recorder)
        if self.samples:
            found = re.search(self.samples, done.stderr)
            self.sample_counts.append(int(found[1]) if found else 0)

    def costs(self):
        """CPU time that was not spent on the work while the program ran, in percent of the work."""
        return [sum(parts) for parts in zip(self.in_threads, self.beside, self.in_recorder)]


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


def error(values):
    """Of their mean, one standard deviation."""
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0


def beside_perf(everybody):
    """Rounds are compared one by one: what changes from minute to minute is in both."""
    for one in everybody:
        rate = re.match(r"offbeat (\d+) Hz", one.name)
        perf = next((other for other in everybody if rate and other.name == f"perf {rate[1]} Hz, dwarf"), None)
        if perf:
            apart = [ours - theirs for ours, theirs in zip(one.costs(), perf.costs())]
            print(f"{one.name}: {statistics.mean(apart):+.2f} points beside perf with dwarf and its recorder, ± {error(apart):.2f}")


def row_of(contestant, none):
    def more(values, of_none):
        return f"{statistics.mean(values) - statistics.mean(of_none):+.2f}"

    both = (error(contestant.costs()) ** 2 + error(none.costs()) ** 2) ** 0.5
    return [contestant.name, f"{statistics.median(contestant.wall) / 1e6:.0f}",
            more(contestant.in_threads, none.in_threads), more(contestant.beside, none.beside), more(contestant.in_recorder, none.in_recorder),
            more(contestant.costs(), none.costs()), f"{both:.2f}",
            f"{100 * (statistics.median(contestant.all) / statistics.median(none.all) - 1):+.1f}", f"{100 * spread(contestant.all):.1f}",
            f"{max(0, statistics.median(contestant.after)) / 1e6:.0f}",
            str(int(statistics.median(contestant.sample_counts))) if contestant.sample_counts else ""]


def slowdown(build, rounds=5):
    print(f"A busy program of 4 threads, {rounds} interleaved runs: CPU time that is not its work while it runs, in percent of the work, more than alone.")
    print("in threads: what their pieces of work take longer than most pieces around them; beside: the sampler thread; recorder: the other process;")
    print("cost: all three, ± a standard deviation of this mean; all: all CPU time, medians, ± half of the distance between quartiles: the speed of")
    print("the processor is in it; after: what the recorder did when the program had ended")
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        everybody = contestants(build, folder)
        for _ in range(rounds):
            for contestant in random.sample(everybody, len(everybody)):
                contestant.run(folder)
    rows = [["profiler", "wall ms", "in threads", "beside", "recorder", "cost", "±", "all", "±", "after ms", "samples"]]
    table(rows + [row_of(contestant, everybody[0]) for contestant in everybody])
    none = statistics.mean(everybody[0].costs())
    print(f"alone, {none:.2f} % of the work are interrupts and the like, ± {error(everybody[0].costs()):.2f}")
    beside_perf(everybody)
