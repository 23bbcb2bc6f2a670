"""What each function has for itself in files of every format, in seconds, read without offbeat: in Sentry's formats a
sample has the time until the next one of its thread, as servers have it. First argument of the caller: the program.
SPDX-License-Identifier: MIT"""
import collections
import json
import pathlib
import re
import subprocess
import sys

from tap import check

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
TARGETS = ["envelope", "sentry-v2", "sentry-v1", "envelope-v1", "collapsed", "speedscope", "firefox", "pprof"]
# Of a function's time in CPU profiles: gaps shorter than a sixteenth of a sample are taken for jitter of the clock.
JITTER = 1 / 16


def run(*arguments, may_fail=False):
    done = subprocess.run([OFFBEAT, *arguments], capture_output=True, text=True, check=False)
    check(done.returncode == 0 or may_fail, f"offbeat {' '.join(map(str, arguments))}: {done.stderr}")
    return done


# --- What each function has for itself, in seconds -------------------------------------------------------------------


def full_name(frame):
    name, module = frame.get("function") or frame.get("name") or "", frame.get("module") or ""
    is_reported = name.startswith(module) and name[len(module):len(module) + 1] in tuple(".:#/\\$") + ("",) and name != module
    return f"{module}.{name}" if module and name and not is_reported else name


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
        if line == "# no samples":
            continue
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
    """The files that came out; none if the format cannot hold the profile, for the reason in its message."""
    output = folder / f"out.{target}"
    for old in folder.glob("out*"):
        old.unlink()
    done = run("convert", source, "-o", output, "--to", target, may_fail=True)
    if done.returncode:
        return [], done.stderr
    return sorted(folder.glob("out*")), done.stderr


# Each format has its own way to call functions without names.
UNNAMED = re.compile(r"(0x[0-9a-f]+|.*\+0x[0-9a-f]+|\[.*\]|)$")


def unnamed_as_one(seconds):
    merged = collections.Counter()
    for name, time in seconds.items():
        merged["" if UNNAMED.match(name) else name] += time
    return merged


def compare(found, expected, share, least, where):
    """Functions that differ by more than SHARE and LEAST seconds, or are there in one alone."""
    found, expected = unnamed_as_one(found), unnamed_as_one(expected)
    wrong = [f"{name!r}: {found.get(name, 0):.6f} s, expected {expected.get(name, 0):.6f} s"
             for name in sorted(set(found) | set(expected))
             if abs(found.get(name, 0) - expected.get(name, 0)) > max(share * expected.get(name, 0), least)]
    check(not wrong, f"{where}: " + "; ".join(wrong[:4]))


def check_all(source, expected, share, least, folder, targets=tuple(TARGETS), scales=None):
    """SCALES: what the numbers of a target are to be multiplied by, where its source does not count nanoseconds."""
    written = 0
    for target in targets:
        paths, said = converted(source, target, folder)
        if not paths:
            # A rejection says why; V1 and V2 reject what a server would reject.
            has_time = sum(expected.values()) > 0
            check("profiling_" in said or not has_time, f"{source} to {target}: {said}")
            continue
        found = READERS.get(target, of_sentry)(paths)
        if target in ("sentry-v1", "envelope-v1") and "only the first" in said:
            continue
        scale = (scales or {}).get(target, 1)
        found = collections.Counter({name: time * scale for name, time in found.items()})
        compare(found, expected, share, least, f"{source} to {target}")
        written += 1
    return written


