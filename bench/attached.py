"""What `record -p` sees of many kinds of programs, beside perf at the same time. SPDX-License-Identifier: MIT"""
import json
import pathlib
import subprocess
import tempfile
import time

from common import perf_works, table
from attached_programs import PROGRAMS, Missing

RATE = 499
COMPLETE = {"Go, static": 95, "Go, static, stripped": 95}  # stack switches of its runtime lose the rest
POINTS = 3
INTERPRETED = ("python3",)
SCRIPTS = r"\.py$"  # files of the functions that an interpreter runs, which perf does not see
UNSEEN = "[too short to sample]"  # time of threads without a stack, which perf does not show


def lines_of(*command, cwd):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def self_times(build, folder, file, *options):
    """{function: what it spends itself}"""
    rows = lines_of(build / "offbeat", "top", "--json", "-n", "0", "--no-inlines", *options, file, cwd=folder)[0]["functions"]
    sums = {}
    for row in rows:
        name = row["name"].split(" [")[0]  # without the library that tells two of one name apart
        if name != UNSEEN:
            sums[name] = sums.get(name, 0) + row["self"]
    return sums


def shares(profiles):
    """{function: per cent of the time of all PROFILES that it spends itself}"""
    sums = {}
    for times in profiles:
        for name, value in times.items():
            sums[name] = sums.get(name, 0) + value
    whole = sum(sums.values())
    return {name: 100 * value / whole for name, value in sums.items()} if whole else {}


def record(build, folder, pid, seconds, with_perf, options=()):
    """Records PID by both at the same time. (time of the start in ns, what offbeat said) perf has timers of the processors, too: its timers
    of threads fire right after a switch when they are late."""
    perf = ["perf", "record", "-q", "-a", "-F", str(RATE), "-e", "cpu-clock", "-o", "perf.data", "--", "sleep", str(seconds)]
    command = [build / "offbeat", "record", "-p", str(pid), "-F", str(RATE), "--kernel", "--mode", "cpu", "-d", str(seconds), "-o", "x.envelope", *options]
    beside = subprocess.Popen(perf, cwd=folder, stderr=subprocess.DEVNULL) if with_perf else None
    began_ns = time.time_ns()
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    if beside:
        beside.wait()
    return began_ns, done.stderr.strip()


def worst_difference(ours, perfs, stacks):
    """(points, allowed points, function) of perf's five hottest functions. What is allowed grows with the noise of few samples."""
    top = sorted((name for name in perfs if not name.startswith("[")), key=perfs.get, reverse=True)[:5]
    found = [(ours.get(name, 0) - perfs[name], POINTS + 2 * (2 * perfs[name] * (100 - perfs[name]) / max(stacks, 1)) ** 0.5, name) for name in top]
    return max(found, key=lambda each: abs(each[0]) - each[1], default=(0, POINTS, ""))


def measured(build, folder, name, seconds, with_perf):
    """{column: value} of the program NAME."""
    with PROGRAMS[name](folder) as pid:
        began_ns, said = record(build, folder, pid, seconds, with_perf, ["--native"] if name in INTERPRETED else ())
        files = sorted(folder.glob("x*.envelope"))
        if not files:
            raise Missing(said)
        facts = lines_of(build / "offbeat", "info", "--json", *files, cwd=folder)
        hidden = ["--hide", SCRIPTS] if name in INTERPRETED else []
        ours = shares(self_times(build, folder, file, "--sample-index", "cpu", *hidden) for file in files)
        pids = {fact["recorder"]["pid"] for fact in facts}
        perfs = shares(self_times(build, folder, "perf.data", "--process", pid) for pid in pids) if with_perf else {}
    outcomes = [{key: value for key, value in fact["recorder"].items() if key.startswith("stacks_")} for fact in facts]
    stacks = sum(sum(outcome.values()) for outcome in outcomes)
    return {"first": (min(fact["first_sample"] for fact in facts) - began_ns) / 1e6, "stacks": stacks, "said": said,
            "root": 100 * sum(outcome["stacks_root"] for outcome in outcomes) / max(stacks, 1), "worst": worst_difference(ours, perfs, stacks)}


def attached(build, seconds=5, names=()):
    print(f"record -p for {seconds} s at {RATE} Hz, as root by BPF; perf at the same time, both read by offbeat's reports.")
    print("The last columns are perf's five hottest functions: the one whose share differs most, and by how many points.")
    rows, is_right, notes = [["program", "first sample, ms", "stacks", "root, %", "differs, points", "function"]], True, []
    for name in names or PROGRAMS:
        with tempfile.TemporaryDirectory(prefix="offbeat-bench-", ignore_cleanup_errors=True) as place:
            folder = pathlib.Path(place)
            try:
                found = measured(build, folder, name, seconds, perf_works(folder))
            except Missing as missing:
                print(f"{name}: skipped, {missing}")
                continue
        points, allowed, function = found["worst"]
        is_complete, is_near = found["root"] >= COMPLETE.get(name, 99.5), abs(points) <= allowed
        is_right &= is_complete and is_near
        rows.append([name, f"{found['first']:.0f}", str(found["stacks"]), f"{found['root']:.1f}{'' if is_complete else ' !'}",
                     f"{points:+.1f}{'' if is_near else ' !'}" if function else "", function[:50]])
        notes += [f"{name}: {line}" for line in found["said"].splitlines() if "incomplete" in line or "because" in line]
    table(rows)
    for note in notes:
        print(note)
    return is_right
