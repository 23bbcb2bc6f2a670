"""Whether every conversion keeps the time of each function (FMT-4, FMT-11; V1-4 and V1-5 where V1 is written).

Each real profile, and made ones in CPU and wall time, is written in every format. What is counted here is read without
offbeat: in Sentry's formats a sample has the time until the next one of its thread, as servers have it. Arguments: the
program, the folder of real profiles. SPDX-License-Identifier: MIT"""
import collections
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, main, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
REAL = pathlib.Path(sys.argv[2]).resolve()
TARGETS = ["envelope", "sentry-v2", "sentry-v1", "envelope-v1", "collapsed", "speedscope", "firefox", "pprof"]
# Of a function's time in CPU profiles: gaps shorter than a sixteenth of a sample are taken for jitter of the clock.
JITTER = 1 / 16


def run(*arguments, may_fail=False):
    done = subprocess.run([OFFBEAT, *arguments], capture_output=True, text=True, check=False)
    check(done.returncode == 0 or may_fail, f"offbeat {' '.join(map(str, arguments))}: {done.stderr}")
    return done


# --- What each function has for itself, in seconds -------------------------------------------------------------------


def full_name(frame):
    name, module = frame.get("function") or "", frame.get("module") or ""
    is_told = name.startswith(module) and name[len(module):len(module) + 1] in tuple(".:#/\\$") + ("",) and name != module
    return f"{module}.{name}" if module and name and not is_told else name


def of_payload(payload):
    """Of a chunk or a profile of V1."""
    profile = payload["profile"]
    is_v1 = payload["version"] == "1"
    threads = collections.defaultdict(list)
    for sample in profile["samples"]:
        time = int(sample["elapsed_since_start_ns"]) / 1e9 if is_v1 else sample["timestamp"]
        threads[str(sample["thread_id"])].append((time, sample["stack_id"]))
    seconds = collections.Counter()
    for samples in threads.values():
        samples.sort(key=lambda sample: sample[0])
        for (start, stack), (end, _) in zip(samples, samples[1:]):
            frames = profile["stacks"][stack]
            if frames:
                seconds[full_name(profile["frames"][frames[0]])] += end - start
    return seconds


def payloads_of(text):
    lines = text.split("\n")
    if '"type"' not in (lines[1] if len(lines) > 1 else ""):
        return [json.loads(text)]
    return [json.loads(payload) for header, payload in zip(lines[1::2], lines[2::2])
            if json.loads(header)["type"] in ("profile", "profile_chunk")]


def of_sentry(paths):
    seconds = collections.Counter()
    for path in paths:
        for payload in payloads_of(path.read_text(encoding="utf-8")):
            seconds.update(of_payload(payload))
    return seconds


def of_collapsed(paths):
    seconds = collections.Counter()
    for line in paths[0].read_text(encoding="utf-8").splitlines():
        stack, value = line.rsplit(" ", 1)
        leaf = stack.split(";")[-1]
        for mark in ("_[i]", "_[k]", "_[j]"):
            leaf = leaf.removesuffix(mark)
        if stack != "[unknown]":  # samples without frames: idle time
            seconds[leaf] += int(value) / 1e9
    return seconds


def of_speedscope(paths):
    file = json.loads(paths[0].read_text(encoding="utf-8"))
    seconds = collections.Counter()
    for profile in file["profiles"]:
        for stack, weight in zip(profile["samples"], profile["weights"]):
            if stack:
                seconds[file["shared"]["frames"][stack[-1]]["name"]] += weight / 1e9
    return seconds


def of_firefox(paths):
    file = json.loads(paths[0].read_text(encoding="utf-8"))
    seconds = collections.Counter()
    for thread in file["threads"]:
        table = thread if "stackTable" in thread else file["shared"]
        strings = thread.get("stringArray") or file["shared"]["stringArray"]
        samples = thread["samples"]
        for stack, weight in zip(samples["stack"], samples["weight"]):
            if stack is None:
                continue
            frame = table["stackTable"]["frame"][stack]
            seconds[strings[table["funcTable"]["name"][table["frameTable"]["func"][frame]]]] += weight / 1e3
    return seconds


def of_pprof(paths):
    """By the program: that it reads pprof right is what test/cli/pprof_peer.py asks."""
    top = json.loads(run("top", "--json", paths[0]).stdout)
    return collections.Counter({row["name"]: row["self"] / 1e9 for row in top["functions"]})


READERS = {"collapsed": of_collapsed, "speedscope": of_speedscope, "firefox": of_firefox, "pprof": of_pprof}


def converted(source, target, folder):
    """The files that came out; none if the format cannot hold the profile, for the reason that was said."""
    output = folder / f"out.{target}"
    for old in folder.glob("out*"):
        old.unlink()
    done = run("convert", source, "-o", output, "--to", target, may_fail=True)
    if done.returncode:
        return [], done.stderr
    return sorted(folder.glob("out*")), done.stderr


def compare(found, expected, share, least, where):
    """Functions that differ by more than SHARE and LEAST seconds, or are there in one alone."""
    wrong = [f"{name!r}: {found.get(name, 0):.4f} s, expected {expected.get(name, 0):.4f} s"
             for name in sorted(set(found) | set(expected))
             if abs(found.get(name, 0) - expected.get(name, 0)) > max(share * expected.get(name, 0), least)]
    check(not wrong, f"{where}: " + "; ".join(wrong[:4]))


def check_all(source, expected, share, least, folder, targets=tuple(TARGETS)):
    written = 0
    for target in targets:
        paths, said = converted(source, target, folder)
        if not paths:
            # A refusal says why; V1 and V2 refuse what a server would reject.
            has_time = sum(expected.values()) > 0
            check("profiling_" in said or not has_time, f"{source} to {target}: {said}")
            continue
        found = READERS.get(target, of_sentry)(paths)
        if target in ("sentry-v1", "envelope-v1") and "only the first" in said:
            continue
        compare(found, expected, share, least, f"{source} to {target}")
        written += 1
    return written


# --- Real profiles ----------------------------------------------------------------------------------------------------


def sentry_files():
    """Of each client the captured requests that hold a profile, as JSON."""
    for path in sorted((REAL / "envelopes").glob("*/*.raw")) + sorted((REAL / "envelopes").glob("*/*.body")):
        plain = path.read_bytes()
        try:
            plain = gzip.decompress(plain) if plain[:2] == b"\x1f\x8b" else plain
            payloads = payloads_of(plain.decode())
        except (ValueError, KeyError, UnicodeDecodeError):
            continue
        if len(payloads) == 1 and "profile" in payloads[0]:
            yield path, payloads[0]


def has_full_names(payload):
    """Whether all functions have names; what others are called is up to the format."""
    return all(full_name(frame) for frame in payload["profile"]["frames"])


@case
def real_profiles_of_sentrys_clients_keep_the_time_of_each_function():
    files = [(path, payload) for path, payload in sentry_files() if has_full_names(payload)]
    check(len(files) > 20, f"only {len(files)} real profiles in {REAL}")
    written = 0
    with tempfile.TemporaryDirectory() as folder:
        for path, payload in files:
            # Times have microseconds in V2; names of which a format cannot hold all characters are left to other tests.
            expected = collections.Counter({name: time for name, time in of_payload(payload).items()})
            if any(";" in name or not name.isprintable() for name in expected):
                continue
            least = 2e-6 * (len(payload["profile"]["samples"]) + 1)
            written += check_all(path, expected, 1e-6, least, pathlib.Path(folder))
    print(f"# {len(files)} files, {written} conversions compared")
    check(written > 100, f"only {written} conversions were written")


# --- Made ones: work of 50 ms, sleep of 200 ms ------------------------------------------------------------------------


def perf_script(event, period):
    lines = []
    time_us = 1_000_000
    for cycle in range(8):
        for tick in range(10):
            name = "spin" if tick % 3 else "other"
            lines.append(f"prog  77/78  [001] {time_us // 1000000}.{time_us % 1000000:06d}:  {period} {event}:\n"
                         f"\t    401136 {name}+0x6 (/bin/prog)\n\t    401200 main+0x10 (/bin/prog)\n\n")
            time_us += 5000 + (cycle * 7 + tick * 3) % 11 * 10
        time_us += 200000
    return "".join(lines), {"spin": 8 * 6 * 0.005, "other": 8 * 4 * 0.005}


@case
def cpu_time_of_perf_scripts_is_the_same_in_every_format():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for event in ("cpu-clock:u", "task-clock"):
            text, expected = perf_script(event, 5000000)
            source = folder / "in.perf.txt"
            source.write_text(text, encoding="utf-8")
            written = check_all(source, expected, JITTER, 0.001, folder)
            check(written == len(TARGETS), f"{event}: only {written} formats were written")


@case
def cycles_of_perf_scripts_are_no_sleep_in_sentrys_formats():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text, expected = perf_script("cycles", 12345678)
        source = folder / "in.perf.txt"
        source.write_text(text, encoding="utf-8")
        check_all(source, expected, JITTER, 0.001, folder, ("envelope", "sentry-v2", "sentry-v1", "envelope-v1"))


@case
def real_perf_scripts_keep_the_time_of_each_function():
    scripts = sorted((REAL / "perf").glob("*.script.txt")) if (REAL / "perf").is_dir() else []
    if not scripts:
        skip(f"there is no perf script in {REAL}")
    with tempfile.TemporaryDirectory() as name:
        for path in scripts:
            top = json.loads(run("top", "--json", path).stdout)
            if top["sample_type"]["unit"] != "nanoseconds":
                continue
            expected = collections.Counter({row["name"]: row["self"] / 1e9 for row in top["functions"]})
            check_all(path, expected, JITTER, 0.02, pathlib.Path(name), ("pprof", "collapsed", "speedscope", "firefox"))


@case
def a_heap_profile_does_not_become_time():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "heap.txt"
        source.write_text("heap profile: 1: 8 [2: 16] @ heap/512\n1: 8 [2: 16] @ 0x401136\n", encoding="utf-8")
        for target in ("envelope", "sentry-v2", "sentry-v1", "envelope-v1"):
            paths, said = converted(source, target, folder)
            check(not paths and "holds only time" in said and "pprof" in said, f"{target}: {said}")
        check(converted(source, "pprof", folder)[0], "not written as pprof")


@case
def a_profile_without_timestamps_says_so_every_time():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "x.collapsed"
        source.write_text("main;work 42\n", encoding="utf-8")
        for target in ("envelope", "sentry-v2", "sentry-v1", "envelope-v1", "speedscope", "firefox"):
            said = converted(source, target, folder)[1]
            check("no timestamps" in said, f"{target}: {said!r}")


@case
def functions_of_different_modules_stay_apart_FMT_4():
    frames = [{"function": "run", "module": f"com.example.Task{i}"} for i in range(11)]
    chunk = {"version": "2", "profiler_id": "0b167bf84f9e4b84b384f321756d51e0", "chunk_id": "9723ec98a59b4cf9a8321939aa98f852",
             "platform": "java", "release": "a@1", "client_sdk": {"name": "x", "version": "1"},
             "profile": {"frames": frames, "stacks": [[i] for i in range(11)],
                         "thread_metadata": {"1": {"name": "main"}},
                         "samples": [{"timestamp": 1700000000 + i, "stack_id": i % 11, "thread_id": "1"} for i in range(12)]}}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "java.json"
        source.write_text(json.dumps(chunk), encoding="utf-8")
        expected = collections.Counter({f"com.example.Task{i}.run": 1.0 for i in range(11)})
        check_all(source, expected, 1e-6, 1e-4, folder)
        top = json.loads(run("top", "--json", source).stdout)
        check(len(top["functions"]) == 11, f"{len(top['functions'])} rows")


@case
def a_profile_of_v1_ends_with_its_thirty_seconds_V1_5():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "x.collapsed"
        source.write_text("main;work 4000\n", encoding="utf-8")
        paths, said = converted(source, "envelope-v1", folder)
        check(paths and "only the first 30 s" in said, said)
        done = run("validate", paths[0], may_fail=True)
        check(done.returncode == 0, done.stdout)


@case
def every_envelope_that_is_written_is_valid_ENV_1():
    written = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path, _ in sentry_files():
            for target in ("envelope", "envelope-v1"):
                for output in converted(path, target, folder)[0]:
                    written += 1
                    done = run("validate", output, may_fail=True)
                    check(done.returncode == 0, f"{path} to {target}: {done.stdout}")
    check(written > 30, f"only {written} envelopes were written")


main()
