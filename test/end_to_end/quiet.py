"""That nobody notices the sampler: short forms of the benchmarks, with room for a machine that is busy. Arguments: the build
folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import ROOT, Folder, Offbeat, case, case_by_the_clock, check, check_equal, long, main, run, skip, text  # noqa: E402
sys.path.insert(0, str(ROOT / "bench"))
import blocked  # noqa: E402
import interruptions  # noqa: E402
import startup  # noqa: E402
from common import compiler_proper, large_source  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
BENCH = OFFBEAT.build / "bench"


# --- threads that wait -----------------------------------------------------------------------------------------------

def interrupted_waits(name, seconds):
    with Folder() as folder:
        command, env = next(rest for found, *rest in interruptions.contestants(OFFBEAT.build, seconds) if found == name)
        counts = interruptions.count(command, env, folder)
    return sum(sum(numbers[1:]) for numbers in counts.values()), sum(numbers[0] for numbers in counts.values())


@case
def waits_are_not_interrupted():
    """A stall of the machine can look like a thread that is busy: one signal now and then is forgiven."""
    interrupted, calls = interrupted_waits("offbeat", 8)
    check(calls > 10000, f"only {calls} waits")
    check(interrupted <= 2, f"{interrupted} of {calls} waits were interrupted")


@case
def waits_are_not_interrupted_beside_busy_programs():
    """An ordinary user's threads get signals. Of those that were sent here, 136 to 205 in 12 s, three of four ended a wait: the
    thread had been woken, and waited for a processor in the call, or had just run for a moment."""
    build, identity = OFFBEAT.reachable().build, {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    command = next(rest[0] for found, *rest in interruptions.contestants(build, 5) if found == "offbeat")
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(3)]
    try:
        with Folder() as folder:
            folder.chmod(0o777)
            done = run("nice", "-n", "5", *command, cwd=folder, **identity)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    counts = [tuple(map(int, line.split()[1:])) for line in text(done.stdout).splitlines() if len(line.split()) == 4]
    calls, interrupted = sum(count[0] for count in counts), sum(sum(count[1:]) for count in counts)
    check(calls > 10000, f"only {calls} waits: {text(done.stderr)}")
    check(interrupted <= 2, f"{interrupted} of {calls} waits were interrupted")


@case
def a_profiler_that_signals_everyone_is_reported_by_its_interrupted_waits():
    interrupted, _ = interrupted_waits("a signal to every thread", 2)
    check(interrupted > 1000, f"only {interrupted} waits were interrupted")


# --- stacks without a signal -----------------------------------------------------------------------------------------

def check_blocked(command, folder, seconds):
    counts = folder / "counts"
    env = {**os.environ, "LD_PRELOAD": str(BENCH / "blocked.so"), "OFFBEAT_BENCH_BLOCKED": str(counts)}
    blocked.Program(*command).run(env, folder, seconds)
    lines = [list(map(int, line.split())) for line in counts.read_text(encoding="ascii").splitlines()]
    printed = dict(zip(blocked.COLUMNS, map(sum, zip(*lines))))
    check(printed["equal"] > 500, f"only {printed}")
    check_equal(printed["different"], 0, f"different stacks, of {printed}")


@case
def stacks_without_a_signal_equal_those_with_one():
    with Folder() as folder:
        check_blocked([BENCH / "interruptions", 3], folder, 3)


@case
def stacks_with_and_without_a_signal_agree_with_frame_pointers():
    with Folder() as folder:
        check_blocked([BENCH / "interruptions_with_frame_pointers", 3], folder, 3)


@case
def what_a_caller_left_on_the_stack_is_not_taken_for_another():
    with Folder() as folder:
        check_blocked([OFFBEAT.programs / "callers", 4], folder, 4)


@long
@case
def stacks_without_a_signal_equal_those_with_one_in_python():
    with Folder() as folder:
        (folder / "waits.py").write_text(blocked.PYTHON.format(seconds=3), encoding="ascii")
        check_blocked([sys.executable, "waits.py"], folder, 3)


# --- what it costs ---------------------------------------------------------------------------------------------------

def sleepers(folder, *words, record=True, prefix=()):
    """CPU time a second of a thousand sleeping threads, in % of a core."""
    command = [BENCH / "sleepers", 1000, 0, 3, *words]
    done = OFFBEAT.record(folder, *command, prefix=prefix) if record else run(*command)
    check_equal(done.returncode, 0, f"status: {text(done.stderr)}")
    return int(done.stdout) / 1e7


@case_by_the_clock
def a_thousand_sleeping_threads_cost_next_to_nothing():
    with Folder() as folder:
        timer, profiled = sleepers(folder, "timer", record=False), sleepers(folder)
        if OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]["idle_detection"].startswith("CPU clocks"):
            skip("no perf event pages here")
    check(profiled - timer < 2, f"{profiled:.2f} % of a core, over {timer:.2f} % for a timer that does nothing")


@case_by_the_clock
def a_thousand_sleeping_threads_cost_little_without_perf_events():
    with Folder() as folder:
        timer = sleepers(folder, "timer", record=False)
        profiled = sleepers(folder, prefix=[BENCH / "sleepers", "unperfed"])
        check(OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]["idle_detection"].startswith("CPU clocks"), "has perf pages")
    check(profiled - timer < 15, f"{profiled:.2f} % of a core, over {timer:.2f} % for a timer that does nothing")


@case_by_the_clock
def a_program_with_sixty_libraries_is_soon_sampled():
    with Folder() as folder:
        first_tick, first_stack, *_ = startup.run_once(OFFBEAT.build, startup.build_program(folder))
    check(first_tick < 100, f"{first_tick:.1f} ms to the first tick")
    check(first_stack < 300, f"{first_stack:.1f} ms to the first whole stack")


@long
@case
def a_million_samples_of_a_compiler_fit_into_forty_megabytes():
    with Folder() as folder:
        large_source(folder / "large.c", 200)
        env = {**os.environ, "LD_PRELOAD": str(OFFBEAT.build / "liboffbeat.so"), "OFFBEAT_RECORD_DIRECTORY": str(folder),
               "OFFBEAT_FREQUENCY": "1009"}
        done = run(compiler_proper(), "-quiet", "-O2", "large.c", "-o", "/dev/null", cwd=folder, env=env)
        check_equal(done.returncode, 0, f"status of cc1: {text(done.stderr)}")
        recording = next(folder.glob("*.recording"))
        recorder = OFFBEAT.answer("info", recording)["recorder"]
        # A tick at which the compiler waits for a processor takes no sample, and a few bytes.
        samples = max(int(recorder["samples_taken"]), int(recorder["ticks"]))
        size = recording.stat().st_size
    check(samples > 100, f"only {samples} samples")
    check(size / samples <= 40, f"{size / samples:.1f} bytes a sample")


main(sys.argv[2] if len(sys.argv) > 2 else "")
