"""How much slower a busy program of four threads becomes under each profiler. SPDX-License-Identifier: MIT"""
import re
import statistics
import subprocess
import tempfile

from common import environment, installed_library, perf_works, table

WORK = 12
RATES = (101, 1000)


class Contestant:
    """One way to run the busy program. SAMPLES reads how many samples were taken out of what it printed."""

    def __init__(self, name, command, env=None, samples=None):
        self.name, self.command, self.env, self.samples = name, command, env, samples
        self.wall, self.cpu, self.sample_counts = [], [], []

    def run(self, folder):
        done = subprocess.run(self.command, env=self.env, cwd=folder, capture_output=True, text=True, check=True)
        wall, cpu = done.stdout.split()[-2:]
        self.wall.append(int(wall))
        self.cpu.append(int(cpu))
        if self.samples:
            found = re.search(self.samples, done.stderr)
            self.sample_counts.append(int(found[1]) if found else 0)


def contestants(build, folder):
    busy = [str(build / "bench/busy"), str(WORK)]
    found = [Contestant("none", busy)]
    gperftools, perf = installed_library("libprofiler.so*"), perf_works(folder)
    for rate in RATES:
        found.append(Contestant(f"offbeat {rate} Hz", [str(build / "offbeat"), "record", "-F", str(rate), "-o", "x.pb.gz", "--", *busy]))
        if gperftools:
            found.append(Contestant(f"gperftools {rate} Hz", busy, environment(
                LD_PRELOAD=gperftools, CPUPROFILE="x.prof", CPUPROFILE_FREQUENCY=rate), r"bytes = (\d+)/"))
        if perf:
            for name, graph in (("perf fp", "fp"), ("perf dwarf", "dwarf")):
                found.append(Contestant(f"{name} {rate} Hz", [
                    "perf", "record", "-e", "cpu-clock:u", "-F", str(rate), "--call-graph", graph, "-o", "x.data", "--", *busy],
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


def slowdown(build, rounds=5):
    print(f"Slowdown of a busy program of 4 threads: medians of {rounds} interleaved runs, by its own clocks")
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as folder:
        everybody = contestants(build, folder)
        for turn in range(rounds):
            for contestant in everybody[turn % len(everybody):] + everybody[:turn % len(everybody)]:
                contestant.run(folder)
    base_wall, base_cpu = statistics.median(everybody[0].wall), statistics.median(everybody[0].cpu)
    rows = [["profiler", "wall ms", "slowdown", "CPU ms", "slowdown", "±", "samples"]]
    for contestant in everybody:
        wall, cpu = statistics.median(contestant.wall), statistics.median(contestant.cpu)
        rows.append([contestant.name, f"{wall / 1e6:.0f}", f"{wall / base_wall - 1:+.1%}", f"{cpu / 1e6:.0f}",
                     f"{cpu / base_cpu - 1:+.1%}", f"{spread(contestant.cpu):.1%}",
                     str(int(statistics.median(contestant.sample_counts))) if contestant.sample_counts else ""])
    table(rows)
