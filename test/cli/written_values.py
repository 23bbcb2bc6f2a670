"""Every writer writes the values of a profile as they are, or says what it cannot write.

    written_values.py OFFBEAT DATA

SPDX-License-Identifier: MIT"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
TRIALS = pathlib.Path(sys.argv[2]).resolve() / "trials"
VIEWERS = ["otlp", "otlp-json", "speedscope", "firefox", "chrome-trace", "callgrind", "collapsed"]
V1, V2 = ["sentry-v1", "envelope-v1"], ["sentry-v2", "envelope"]
TIME_ERROR_NS = 1000  # per function: timestamps of V2 are floating-point seconds since 1970


def run(*arguments):
    return subprocess.run([OFFBEAT, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def convert(source, target):
    """Returns the status, the lines on standard error, and what top says of the files."""
    with tempfile.TemporaryDirectory() as folder:
        done = run("convert", source, "-o", pathlib.Path(folder) / "x.json", "--to", target)
        files = sorted(pathlib.Path(folder).iterdir())
        values = {}
        if files:
            top = run("top", "--json", "-n", "0", *files)
            check_equal(top.returncode, 0, f"top of {target}: {top.stderr}")
            values = {row["name"]: row["self"] for row in json.loads(top.stdout)["functions"]}
        return done.returncode, done.stderr, values


def check_times(source, target, expected):
    status, said, values = convert(TRIALS / source, target)
    check_equal(status, 0, f"{source} in {target}: {said}")
    for name, expected_ns in expected.items():
        near = abs(values.get(name, 0) - expected_ns) <= TIME_ERROR_NS
        check(near, f"{source} in {target}: {name} has {values.get(name, 0)} ns, not {expected_ns}")
    return said


@case
def a_time_without_a_count_is_as_long_in_the_formats_of_sentry():
    for target in V1 + V2:
        check_times("q_ms.pb.gz", target, {"f": 35_000_000, "g": 1_000_000})
        check_times("q_msunit.pb.gz", target, {"f": 350_000_000, "g": 10_000_000})


@case
def three_hours_become_chunks_or_are_cut_with_a_line():
    for target in V2:
        check_times("q_3h.pb.gz", target, {"f": 10_800_000_000_000, "g": 1_000_000})
    for target in V1:
        said = check_times("q_3h.pb.gz", target, {"f": 30_000_000_000})
        check("only the first 30 s" in said, said)


@case
def negative_values_are_kept_or_refused():
    for target in ["otlp", "otlp-json", "firefox", "collapsed", "callgrind"]:
        status, said, values = convert(TRIALS / "pp_neg.pb.gz", target)
        check_equal((status, values), (0, {"f": -7, "g": 20, "main": -13}), f"{target}: {said}")
    for target in ["speedscope", "chrome-trace", *V1, *V2]:
        status, said, values = convert(TRIALS / "pp_neg.pb.gz", target)
        check_equal((status, values, said.count("\n")), (3, {}, 1), f"{target}: {said}")
        check("negative values" in said, said)


@case
def a_profile_without_samples_becomes_a_file_without_samples():
    for target in ["pprof", *VIEWERS]:
        status, said, values = convert(TRIALS / "pp_empty.pb.gz", target)
        check_equal((status, values), (0, {}), f"{target}: {said}")
    for target in V1 + V2:
        status, said, values = convert(TRIALS / "pp_empty.pb.gz", target)
        check_equal((status, values, said.count("\n")), (3, {}, 1), f"{target}: {said}")
        check("is empty" in said, said)


@case
def values_that_are_no_time_are_refused_by_formats_of_time():
    for target in ["chrome-trace", *V1, *V2]:
        status, said, values = convert(TRIALS / "pu_KiB.pb.gz", target)
        check_equal((status, values), (3, {}), f"{target}: {said}")
        check("holds only time" in said, said)
    for target in ["speedscope", "firefox", "collapsed"]:
        status, said, values = convert(TRIALS / "pu_KiB.pb.gz", target)
        check_equal(values, {"f": 123456789, "main": 5}, target)
        check("the unit KiB" in said, said)


@case
def units_are_shown_known_or_not():
    for source, expected in {"pu_KiB": "123456789KiB", "pu_sec": "123456789s"}.items():
        for command in ["top", "tree", "graph"]:
            done = run(command, TRIALS / f"{source}.pb.gz")
            check(expected in done.stdout, f"{command} {source}: {done.stdout} {done.stderr}")


@case
def firefox_gets_the_cpu_time_of_samples_and_the_system():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.firefox.json"
        check_equal(run("convert", TRIALS / "perf.data", "-o", path).returncode, 0, "status")
        profile = json.loads(path.read_text())
        shown = json.loads(run("top", "--json", path).stdout)
    cpu_ns = sum(sum(thread["samples"]["threadCPUDelta"]) for thread in profile["threads"])
    check_equal((profile["meta"]["oscpu"], cpu_ns), ("Linux x86_64", 258_517_032), "system and CPU time")
    check_equal((shown["sample_type"]["type"], shown["total"]), ("wall", cpu_ns), "what the file is about")


@case
def events_beside_a_clock_are_no_time():
    """Page faults and context switches of the file have a count each, and no time on the processor."""
    for target in V1 + V2 + ["chrome-trace", "speedscope", "firefox"]:
        _, said, values = convert(TRIALS.parent / "perf/events.data", target)
        check(abs(sum(values.values()) - 206_030_125) < 1_000_000, f"{target}: {sum(values.values())} ns; {said}")


@case
def samples_of_java_are_time_by_their_period_and_not_the_delays_of_locks():
    for target in V2 + ["chrome-trace"]:
        _, said, values = convert(TRIALS.parent / "jfr/g1.jfr.gz", target)
        for name, samples in {"Program.workOne": 57, "Program.workTwo": 24, "java.util.ArrayList.grow": 10}.items():
            check(abs(values.get(name, 0) - samples * 10_000_000) <= samples * 1_000_000, f"{target}: {name}: {values}; {said}")


@case
def samples_in_which_a_thread_slept_have_no_cpu_time():
    for target in V2:
        _, said, values = convert(TRIALS.parent / "firefox/raw.json.gz", target)
        check(abs(sum(values.values()) - 870_310_228) < 10_000_000, f"{target}: {sum(values.values())} ns; {said}")


@case
def stacks_without_times_are_as_long_for_firefox_as_their_time():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.firefox.json"
        run("convert", TRIALS.parent / "pstats/python3.11.pstats", "-o", path)
        samples = json.loads(path.read_text())["threads"][0]["samples"]
    for start, end, weight in zip(samples["time"], samples["time"][1:], samples["weight"]):
        check(abs(end - start - weight) < 1e-5, f"{weight} ms from {start} to {end}")


@case
def threads_and_ids_of_other_formats_become_what_servers_accept():
    with tempfile.TemporaryDirectory() as folder:
        for source, targets in {"cli/data/trials/co_austin.txt": V1 + V2, "data/otlp/two-resources.otlp": V2}.items():
            for target in targets:
                out = pathlib.Path(folder) / f"{target}.json"
                done = run("convert", TRIALS.parents[1] / source, "--to", target, "-o", out)
                check_equal(done.returncode, 0, f"{source} to {target}: {done.stderr}")
                check_equal(run("validate", out).returncode, 0, f"{source} to {target}")


@case
def sums_over_63_bits_are_said_by_reports_and_writers():
    with tempfile.TemporaryDirectory() as folder:
        source, out = pathlib.Path(folder) / "large.txt", pathlib.Path(folder) / "out"
        source.write_text(f"a {6 << 60}\nb {6 << 60}\n")
        for command in (["top"], ["tree"], ["info"], ["merge", "-o", out.with_suffix(".pb.gz")], ["convert", "-o", out, "--to", "pprof"], ["convert", "-o", out, "--to", "firefox"]):
            done = run(command[0], source, *command[1:])
            check("add up to more than 63 bits" in done.stderr, f"{command}: {done.stderr}")


@case
def v1_has_only_measurements_of_its_time():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        check_equal(run("convert", TRIALS.parents[1] / "cli/data/trials/v1-measurements-before-start.envelope", "--to", "envelope-v1", "-o", out).returncode, 0, "status")
        profile = next(item for item in map(json.loads, out.read_text().splitlines()) if "measurements" in item)
    end = max(int(sample["elapsed_since_start_ns"]) for sample in profile["profile"]["samples"])
    times = [int(value["elapsed_since_start_ns"]) for measured in profile["measurements"].values() for value in measured["values"]]
    check_equal((len(times), max(times) <= end), (72, True), f"{times}, end {end}")


@case
def an_event_that_ends_a_frame_of_a_trace_has_its_name():
    """speedscope ends only the frame of that name: without names, this file lasts 7156 ms there."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.trace.json"
        check_equal(run("convert", TRIALS / "perf.data", "-o", path).returncode, 0, "status")
        events = json.loads(path.read_text())["traceEvents"]
    open_frames, busy_us, begun = collections.defaultdict(list), 0, {}
    for event in events:
        thread = event["tid"]
        if event["ph"] == "B":
            begun.setdefault(thread, event["ts"]) if not open_frames[thread] else None
            open_frames[thread].append(event["name"])
        elif event["ph"] == "E":
            check_equal(open_frames[thread].pop(), event["name"], "the frame that ends")
            busy_us += event["ts"] - begun.pop(thread) if not open_frames[thread] else 0
    check(258_000 < busy_us < 259_000, f"{busy_us} us, not 258.6 ms")


@case
def samples_of_a_thread_that_overlap_are_a_named_loss_of_chrome_traces():
    sample = "x 7 1.%06d: 10000000 cpu-clock: \n\t401000 %s (/x)\n\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x"
        path.write_text(sample % (0, "f") + sample % (1000, "g"))
        status, said, values = convert(path, "chrome-trace")
        check_equal((status, values), (0, {"f": 1_000_000, "g": 10_000_000}), said)
        check("samples of one thread at one time (0.009 s of 0.02 s)" in said, said)
        path.write_text(sample % (0, "f") + sample % (10010, "g"))  # a clock is not exact
        check("at one time" not in convert(path, "chrome-trace")[1], "the clock of a sampler")


@case
def allocations_of_firefox_are_values_of_their_own():
    def table(**columns):
        return {**columns, "length": len(next(iter(columns.values())))}
    allocations = table(time=[1, 2, 3], weight=[100, -40, 7], weightType="bytes", stack=[1, 1, 0])
    thread = {"name": "GeckoMain", "pid": "1", "tid": 2, "stringArray": ["main", "f"],
              "funcTable": table(name=[0, 1], resource=[-1, -1]), "frameTable": table(func=[0, 1], address=[-1, -1]), "resourceTable": table(lib=[]),
              "stackTable": table(frame=[0, 1], prefix=[None, 0]), "samples": table(time=[1, 2], stack=[1, 0], weight=[5, 6], weightType="samples"),
              "nativeAllocations": allocations, "jsAllocations": table(time=[4], weight=[32], weightType="bytes", stack=[0])}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.json"
        path.write_text(json.dumps({"meta": {"interval": 1, "startTime": 0, "preprocessedProfileVersion": 50}, "libs": [], "threads": [thread]}))
        for kind, expected in (("", {"f": 5, "main": 6}), ("native_allocations", {"f": 60, "main": 7}), ("js_allocations", {"main": 32})):
            top = run("top", "--json", "-n", "0", f"--sample-index={kind}", path)
            check_equal(top.returncode, 0, top.stderr)
            check_equal({row["name"]: row["self"] for row in json.loads(top.stdout)["functions"] if row["self"]}, expected, kind or "samples")


main()
