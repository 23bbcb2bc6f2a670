"""Nanoseconds a stack and a frame in a large program, for each unwinder. SPDX-License-Identifier: MIT"""
import pathlib
import subprocess
import tempfile

from common import compiler_proper, environment, large_source, table


def print_tables(modules, rows, size, build_ns):
    print(f"our tables: {modules} modules, {int(rows):,} rows in {int(size) / 1e6:.1f} MB, built in {int(build_ns) / 1e6:.0f} ms")


def unwinders(build, functions=1500):
    print("Unwinding, in signals at 1000 Hz inside cc1: they take turns, so that each finds the caches as cc1 left them. Ours")
    print("is all that the sampler's handler does; the peers also walk the two or three frames of the handler itself.")
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as folder:
        source, written = f"{folder}/large.c", pathlib.Path(folder, "times")
        large_source(source, functions)
        subprocess.run([compiler_proper(), "-quiet", "-O2", source, "-o", "/dev/null"], check=True,
                       env=environment(LD_PRELOAD=build / "bench/unwinders.so", OFFBEAT_BENCH_UNWINDERS=written))
        lines = [line.split() for line in written.read_text(encoding="ascii").splitlines()]
    rows = [["unwinder", "stacks", "frames a stack", "ns a stack", "median", "99 %", "ns a frame", "reached the root",
             "median, ours = 1"]]
    ours = next(int(line[3]) for line in lines if line[0] == "ours")
    for name, *numbers in lines:
        if name == "tables":
            print_tables(*numbers)
            continue
        stacks, frames, median, slowest, total, roots = map(int, numbers)
        rows.append([name, str(stacks), f"{frames / stacks:.1f}", f"{total / stacks:.0f}", str(median), str(slowest),
                     f"{total / frames:.0f}", f"{roots / stacks:.2%}" if name == "ours" else "", f"{median / ours:.1f}"])
    if len(lines) < 4:
        print("libunwind: skipped, not installed")
    table(rows)
