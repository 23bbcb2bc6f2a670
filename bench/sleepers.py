"""What threads that sleep cost under each profiler, over a timer that does nothing. SPDX-License-Identifier: MIT"""
import statistics
import subprocess
import tempfile

from common import environment, table

ROUNDS = 5
RATE = 101
CASES = [("100 asleep", 100, 0), ("1000 asleep", 1000, 0), ("100, each wakes 10 times a second", 100, 10)]


def ways(build, threads, wakes, seconds):
    program = [str(build / "bench/sleepers"), str(threads), str(wakes), str(seconds)]
    record = [str(build / "offbeat"), "record", "-o", "x.pb.gz", "--"]
    unperfed = [program[0], "unperfed"]
    everyone = environment(LD_PRELOAD=build / "bench/signal_everyone.so")
    return {"timer": (program + ["timer"], None), "perf pages": (record + program, None),
            "CPU clocks": (unperfed + record + program, None), "signals": (program, everyone)}


def percents(commands, folder):
    """{way: median share of a core}; the ways take turns."""
    measured = {way: [] for way in commands}
    for _ in range(ROUNDS):
        for way, (command, env) in commands.items():
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
            measured[way].append(int(done.stdout.split()[0]) / 1e7)
    return {way: statistics.median(values) for way, values in measured.items()}


def sleepers(build, seconds=5):
    print(f"CPU of sleeping threads at 101 Hz, in % of a core: medians of {ROUNDS} runs of {seconds} s. The profilers' columns are")
    print("what they add to a timer that does nothing 101 times a second, each of whose wake-ups costs what is shown beside it.")
    rows = [["threads", "timer alone", "a wake-up", "offbeat, perf pages", "offbeat, CPU clocks", "a signal to every thread"]]
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as folder:
        for name, threads, wakes in CASES:
            share = percents(ways(build, threads, wakes, seconds), folder)
            wake_up_us = share["timer"] * 1e4 / RATE
            rows.append([name, f"{share['timer']:.2f}", f"{wake_up_us:.1f} µs",
                         *(f"{share[way] - share['timer']:+.2f}" for way in ("perf pages", "CPU clocks", "signals"))])
    table(rows)
