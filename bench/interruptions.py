"""How many waits of a hundred threads end early or with EINTR under each profiler. SPDX-License-Identifier: MIT"""
import subprocess
import tempfile

from common import environment, installed_library, table


def contestants(build, seconds):
    program = [str(build / "bench/interruptions"), str(seconds)]
    found = [("none", program, None),
             ("offbeat", [str(build / "offbeat"), "record", "-o", "x.pb.gz", "--", *program], None)]
    gperftools = installed_library("libprofiler.so*")
    if gperftools:
        preload = {"LD_PRELOAD": gperftools, "CPUPROFILE": "x.prof", "CPUPROFILE_FREQUENCY": 101}
        found.append(("gperftools", program, environment(**preload)))
        found.append(("gperftools, wall", program, environment(**preload, CPUPROFILE_REALTIME=1)))
    else:
        print("gperftools: skipped, not installed")
    found.append(("a signal to every thread", program, environment(LD_PRELOAD=build / "bench/signal_everyone.so")))
    return found


def count(command, env, folder):
    """{way to wait: (calls, ended with EINTR, ended early)}"""
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {line[0]: tuple(map(int, line[1:])) for line in lines if len(line) == 4}


def interruptions(build, seconds=60):
    print(f"Waits of 100 threads that end with EINTR or early, in {seconds} s at 101 Hz")
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as folder:
        counts = {name: count(command, env, folder) for name, command, env in contestants(build, seconds)}
    rows = [["way to wait", *counts]]
    for way in counts["none"]:
        rows.append([way, *(str(sum(of[way][1:])) for of in counts.values())])
    rows.append(["all", *(str(sum(sum(numbers[1:]) for numbers in of.values())) for of in counts.values())])
    rows.append(["of so many calls", *(f"{sum(numbers[0] for numbers in of.values()):,}" for of in counts.values())])
    table(rows)
