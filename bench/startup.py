"""How soon a program with many libraries is sampled, and what a program costs that is over in a moment.
SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

from common import environment, large_source, table

LIBRARIES = 60
FUNCTIONS_IN_EACH = 400
RUNS = 7

LIBRARY = "typedef long step(const void *); long STEP(step *const *next) { return (*next)(next + 1) + 1; }\n"
PROGRAM = """
#include <stdio.h>
#include <time.h>
%s
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000 + t.tv_nsec; }
static long spend(const void *unused) { long end = now() + 1000000000; while (now() < end); return 0; }
int main(void) { printf("%%ld\\n", now()); fflush(stdout); const void *steps[] = {%s, (void *)spend}; return %s(steps + 1) == 0; }
"""


def build_program(folder):
    """A program whose stack goes through all of its libraries. Each has the same functions beside its step."""
    large_source(folder / "large.c", FUNCTIONS_IN_EACH)
    (folder / "step.c").write_text(LIBRARY, encoding="ascii")
    names = [f"step{i}" for i in range(LIBRARIES)]
    declarations = "\n".join(f"long {name}(const void *);" for name in names)
    steps = ", ".join(f"(void *){name}" for name in names)
    (folder / "program.c").write_text(PROGRAM % (declarations, steps, names[0]), encoding="ascii")
    def gcc(*words):
        subprocess.run(["gcc", "-O1", "-fPIC", *words], cwd=folder, check=True)
    gcc("-c", "large.c")
    for name in names:
        gcc(f"-DSTEP={name}", "-shared", "-Wl,--build-id", f"-Wl,-soname,lib{name}.so", "step.c", "large.o", "-o", f"lib{name}.so")
    gcc("program.c", "-o", "program", "-L.", "-Wl,-rpath,$ORIGIN", *(f"-l{name}" for name in names))
    return folder / "program"


class Recording:
    """Just enough of a recording to know when it began: its first ticks and its first stack (recording_layout.h)."""

    START, MODULE, THREAD, TICK, SAMPLE, LOST, MORE, WOKEN, COUNTERS, STOP, USAGE = 1, 2, 4, 6, 7, 9, 10, 11, 12, 13, 14
    NUMBERS_AND_TEXTS = {MODULE: (7, 2), THREAD: (2, 1), LOST: (5, 0), MORE: (5, 0), WOKEN: (2, 0), STOP: (0, 0), USAGE: (2, 0)}

    def __init__(self, path):
        self.data, self.place = path.read_bytes()[8:], 0
        self.start_ns = self.first_tick_ns = self.first_stack_ns = None
        while self.first_stack_ns is None and self.place + 4 < len(self.data):
            end = self.place + 4 + int.from_bytes(self.data[self.place:self.place + 4], "little")
            self.place += 4
            while self.place < end and self.first_stack_ns is None:
                self.read_record()

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.place]
            self.place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def texts(self, count):
        for _ in range(count):
            size = self.number()
            self.place += size

    def read_record(self):
        kind = self.number()
        if kind == self.START:
            self.start_ns = self.now_ns = [self.number() for _ in range(6)][5]
            self.place += 16
            self.texts(2)
        elif kind == self.TICK:
            self.now_ns += self.number()
            self.first_tick_ns = self.first_tick_ns or self.now_ns
        elif kind == self.SAMPLE:
            self.first_stack_ns = self.now_ns
        else:
            numbers, texts = self.NUMBERS_AND_TEXTS.get(kind, (1, 0))
            if kind == self.COUNTERS:
                numbers = self.number()
            for _ in range(numbers):
                self.number()
            self.texts(texts)


def run_once(build, program):
    """(ms from the start of sampling to the first tick, to the first stack, to build all tables; ms from exec to main with and without)"""
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as folder:
        env = environment(LD_PRELOAD=build / "liboffbeat.so", OFFBEAT_RECORD_DIRECTORY=folder)
        to_main = []
        for chosen in (env, None):
            start_ns = time.monotonic_ns()
            done = subprocess.run([program], env=chosen, capture_output=True, text=True, check=True)
            to_main.append(int(done.stdout) - start_ns)
        path = next(pathlib.Path(folder).glob("*.recording"))
        answer = subprocess.run([build / "offbeat", "info", "--json", path], capture_output=True, text=True, check=True).stdout
        recording, facts = Recording(path), json.loads(answer)["recorder"]
    return [ns / 1e6 for ns in (recording.first_tick_ns - recording.start_ns, recording.first_stack_ns - recording.start_ns,
                                int(facts["table_build_ns"]), *to_main)]


def short_program(env, runs):
    """(wall, CPU) milliseconds of one run of true."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    for _ in range(runs):
        os.waitpid(os.posix_spawn("/bin/true", ["true"], env), 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (time.monotonic() - start) / runs * 1000, cpu / runs * 1000


def print_short_program(build, runs):
    plain, profiled = [], []
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as folder:
        env = {name: str(value) for name, value in environment(LD_PRELOAD=build / "liboffbeat.so",
                                                               OFFBEAT_RECORD_DIRECTORY=folder).items()}
        for _ in range(10):
            plain.append(short_program(dict(os.environ), runs // 10))
            profiled.append(short_program(env, runs // 10))
    rows = [[f"true, {runs} times", "wall ms", "CPU ms"]]
    for name, values in (("none", plain), ("offbeat", profiled)):
        rows.append([name, *(f"{statistics.median(column):.2f}" for column in zip(*values))])
    table(rows)


def startup(build, runs=1000):
    print(f"Start of a program with {LIBRARIES} libraries of {FUNCTIONS_IN_EACH} functions whose stack goes through all of them:")
    print(f"milliseconds, medians of {RUNS} runs")
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as name:
        program = build_program(pathlib.Path(name))
        values = [run_once(build, program) for _ in range(RUNS)]
    columns = ["from the sampler's start to its first tick", "to the first whole stack", "CPU time that building all tables took",
               "from exec to main, profiled", "from exec to main, alone"]
    table([[column, f"{statistics.median(value):.1f}"] for column, value in zip(columns, zip(*values))])
    print_short_program(build, runs)
