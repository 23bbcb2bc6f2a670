"""Method traces of Android: each form and clock that AOSP's runtime/trace.cc writes, and what Sentry's chunks carry.

    android_trace.py OFFBEAT

SPDX-License-Identifier: MIT"""
import base64
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
ENTER, LEAVE, UNWIND = range(3)
THREADS = {1: "main", 2: "RenderThread"}
METHODS = {4: ("java.lang.Object", "run", "()V", "Object.java"), 8: ("a.B", "work", "()I", "B.java"), 12: ("a.B", "inner", "(J)V", "B.java")}
# Thread, method, action, µs of CPU time, µs of wall time.
EVENTS = [(1, 4, ENTER, 0, 10), (1, 8, ENTER, 5, 20), (2, 8, ENTER, 0, 25), (1, 12, ENTER, 15, 40), (1, 12, LEAVE, 20, 50), (1, 8, UNWIND, 21, 80),
          (2, 8, LEAVE, 7, 125), (1, 4, LEAVE, 25, 110), (1, 16, LEAVE, 25, 120)]
WALL = {"java.lang.Object.run": 40, "a.B.work": 20 + 30 + 100, "a.B.inner": 10}
CPU = {"java.lang.Object.run": 9, "a.B.work": 11 + 7, "a.B.inner": 5}


def summary(version, clock):
    return f"*version\n{version}\ndata-file-overflow=false\nclock={clock}\nelapsed-time-usec=200\nnum-method-calls=4\nvm=art\npid=77\n"


def method_line(number):
    return f"{number:#x}\t" + "\t".join(METHODS[number]) + "\n"


def records(version, clock):
    for thread, method, action, cpu, wall in EVENTS:
        clocks = [cpu, wall] if version == 3 else [wall if clock == "wall" else cpu]
        yield struct.pack("<B" if version == 1 else "<H", thread) + struct.pack(f"<I{len(clocks)}I", method | action, *clocks)


def header(version, number):
    packed = b"SLOW" + struct.pack("<HHQ", number, 32, 123456789)
    return (packed + (struct.pack("<H", 14) if version == 3 else b"")).ljust(32, b"\0")


def regular(version, clock):
    text = summary(version, clock) + "*threads\n" + "".join(f"{number}\t{name}\n" for number, name in THREADS.items()) + "*methods\n"
    text += "".join(map(method_line, METHODS)) + "*end\n"
    return text.encode() + header(version, version) + b"".join(records(version, clock))


def streamed(version, clock):
    out, seen = header(version, 0xf0 | version), set()
    for (thread, method, *_), record in zip(EVENTS, records(version, clock)):
        if thread not in seen:
            out += struct.pack("<HBHH", 0, 2, thread, len(THREADS[thread])) + THREADS[thread].encode()
        if method not in seen and method in METHODS:
            line = method_line(method).encode()
            out += struct.pack("<HBH", 0, 1, len(line)) + line
        seen |= {thread, method}
        out += record
    text = summary(version, clock).encode()
    return out + struct.pack("<HBI", 0, 3, len(text)) + text


def run(contents, *command, name="x.trace"):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.write_bytes(contents)
        done = subprocess.run([OFFBEAT, command[0], path, *command[1:]], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr


def top(contents, *flags):
    """{function: microseconds for itself}, and what is said."""
    status, out, said = run(contents, "top", "--json", "-n", "0", *flags)
    check_equal(status, 0, said)
    return {row["name"]: row["self"] / 1000 for row in json.loads(out)["functions"] if row["self"]}, said


@case
def every_form_and_clock_is_read():
    for form in (regular, streamed):
        for version, clock in ((1, "thread-cpu"), (1, "wall"), (2, "thread-cpu"), (2, "wall"), (3, "dual")):
            if form is streamed and version == 1:
                continue
            what = f"{form.__name__} {version} {clock}"
            if clock != "thread-cpu":
                check_equal(top(form(version, clock), "--sample-index=wall"), (WALL, ""), what)
            if clock != "wall":
                check_equal(top(form(version, clock), "--sample-index=cpu"), (CPU, ""), what)


@case
def threads_sources_and_callers_are_known():
    contents = streamed(3, "dual")
    facts = json.loads(run(contents, "info", "--json")[1])
    check_equal(facts["format"], "android-trace", facts)
    check_equal({thread["name"] for thread in facts["threads"].values()}, set(THREADS.values()), facts)
    status, out, said = run(contents, "convert", "--to", "collapsed", "-o", "-")
    check_equal(status, 0, said)
    check("java.lang.Object.run;a.B.work;a.B.inner 10000\n" in out, out)
    check("B.java" in run(contents, "raw")[1], "the file of a.B")


@case
def a_cut_trace_is_read_up_to_its_end():
    whole = regular(3, "dual")
    for cut in range(1, 15):
        found, said = top(whole[:-14 - cut], "--sample-index=wall")
        check_equal(found, WALL | {"java.lang.Object.run": 10}, f"cut by {cut}")
        check_equal("the trace is cut short, at byte" in said, cut != 14, said)  # 14: between two records
    for contents in (streamed(3, "dual")[:-1], streamed(3, "dual")[:-170]):
        check("the trace is cut short, at byte" in top(contents)[1], "streamed")
    for size in (9, 40, len(whole) - 14 * len(EVENTS) - 20):
        status, _, said = run(whole[:size], "top")
        check_equal((status, "before its first record" in said), (3, True), said)


@case
def the_trace_of_a_chunk_is_read():
    trace = base64.b64encode(regular(3, "dual")).decode().rstrip("=")
    payload = {"profiler_id": "71bba98d90b545c39f2ae73f702d7ef4", "chunk_id": "3e11a5c9831f4e49939c0a81944ea2cb", "platform": "android", "version": "2",
               "client_sdk": {"name": "sentry.java.android", "version": "8.1.0"}, "release": "r@1", "timestamp": 1.5, "sampled_profile": trace}
    envelope = '{}\n{"type": "profile_chunk", "platform": "android"}\n' + json.dumps(payload)
    check_equal(top(envelope.encode(), "--sample-index=wall"), (WALL, ""), "wall")
    check_equal(run(envelope.encode(), "validate", name="x.envelope")[1].count(": accepted"), 1, "validate")
    start = json.loads(run(envelope.encode(), "info", "--json", name="x.envelope")[1])["first_sample"]
    check_equal(start, 1_500_010_000, "the chunk's timestamp and the first 10 µs, in which no method is open")


# What SDKs for Android sent before chunks, and React Native beside it: samples of Hermes, in the form of V1.
PROFILE = {"android_api_level": 33, "device_cpu_frequencies": [], "device_is_emulator": True, "device_locale": "en_US", "device_manufacturer": "G",
           "device_model": "P", "device_os_name": "android", "device_os_version": "13", "device_physical_memory_bytes": "8000",
           "environment": "production", "platform": "android", "profile_id": "71bba98d90b545c39f2ae73f702d7ef4", "release": "r@1", "version_code": "1",
           "version_name": "1.0", "timestamp": "2026-11-28T10:00:00.000Z",
           "transactions": [{"id": "71bba98d90b545c39f2ae73f702d7ef5", "name": "t", "trace_id": "71bba98d90b545c39f2ae73f702d7ef6",
                             "active_thread_id": "1", "relative_start_ns": 0, "relative_end_ns": 1000}]}
SCRIPT = {"samples": [{"thread_id": "9", "stack_id": 0, "elapsed_since_start_ns": f"{at}000"} for at in (1, 2001, 5001)], "stacks": [[0, 1]],
          "frames": [{"function": "render"}, {"function": "[root]"}], "thread_metadata": {"9": {"name": "JavaScriptThread"}}}


def profile(**members):
    trace = base64.b64encode(regular(3, "dual")).decode().rstrip("=")
    return json.dumps({**PROFILE, "sampled_profile": trace, **members}).encode()


@case
def the_trace_of_a_profile_without_a_version_is_read_and_accepted():
    check_equal(top(profile(), "--sample-index=cpu"), (CPU, ""), "cpu")
    check_equal(run(profile(), "validate")[1].count(": accepted"), 1, "validate")
    for members, reason in (({"version_code": None}, "profiling_invalid_json: version_code"),
                            ({"transactions": []}, "profiling_no_transaction_associated"),
                            ({"sampled_profile": ""}, "profiling_not_enough_samples"), ({"sampled_profile": "AA=="}, "profiling_invalid_base64_value")):
        check(reason in run(profile(**members), "validate")[1], f"{members}: {run(profile(**members), 'validate')}")
    check(": accepted" in run(profile(transactions=[], transaction_name="t"), "validate")[1], "a transaction's name")


@case
def the_samples_of_react_native_beside_the_trace_are_read():
    found, said = top(profile(js_profile=SCRIPT), "--sample-index=wall")
    check_equal(found, WALL | {"render": 5000}, said)
    check("CPU time is left out: js_profile" in said, said)
    facts = json.loads(run(profile(js_profile=SCRIPT), "info", "--json")[1])
    check_equal({thread["name"] for thread in facts["threads"].values()}, {*THREADS.values(), "JavaScriptThread"}, facts)
    check_equal((facts["first_sample"], facts["last_sample"]), (1795860000_000_001_000, 1795860000_005_001_000), "one clock")
    for broken in ({**SCRIPT, "stacks": [[7]]}, {"samples": 3}, []):
        found, said = top(profile(js_profile=broken), "--sample-index=cpu")
        check_equal((found, said.count("js_profile is left out: ")), (CPU, 1), said)


main()
