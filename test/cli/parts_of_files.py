"""What can be read of a file that was cut short or rounded is read, and one line says what was left out; a file of nothing is an
empty profile.

    parts_of_files.py OFFBEAT DATA

SPDX-License-Identifier: MIT"""
import gzip
import json
import marshal
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
DATA = pathlib.Path(sys.argv[2]).resolve()


def run(contents, *command):
    """Status, standard output and errors of COMMAND with a file of CONTENTS."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x"
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        done = subprocess.run([OFFBEAT, command[0], path, *command[1:]], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr.replace(str(path), "FILE")


def top(contents):
    """{function: self}, and what is said."""
    status, out, said = run(contents, "top", "--json", "-n", "0")
    check_equal(status, 0, f"status: {said}")
    return {row["name"]: row["self"] for row in json.loads(out)["functions"]}, said


def read(name):
    path = DATA / name
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@case
def functions_before_the_end_of_a_cut_file_of_callgrind_have_their_costs():
    for name in ("callgrind/calls.out.gz", "callgrind/instructions.out.gz", "callgrind/cachegrind.out.gz"):
        whole = read(name)
        at = whole.rindex(b"\nfn=", 0, len(whole) * 3 // 4) + 1  # in front of a function: those before are whole
        expected, _ = top(whole)
        for extra in (b"", b"fn", b"fn=x\n12 3"):
            found, said = top(whole[:at] + extra)
            check_equal(said.count("\n"), 1, said)
            check(f"the file is cut short, at byte {at + len(extra)}: functions that came after it are missing" in said, said)
            found = {row: cost for row, cost in found.items() if cost}  # others are called, and come later
            right = sum(cost == expected.get(row) for row, cost in found.items())
            check(len(found) > 20 and right >= 0.9 * len(found), f"{name}: {right} of {len(found)} functions")
            check(sum(found.values()) < sum(expected.values()), f"{name}: {sum(found.values())}")


SNAPSHOT = "#-----------\nsnapshot=%d\n#-----------\ntime=%d\nmem_heap_B=%d\nmem_heap_extra_B=8\nmem_stacks_B=0\nheap_tree=%s\n"
TREE = "n1: %d (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n n0: %d 0x109156: main (a.c:5)\n"


@case
def a_snapshot_of_massif_that_is_cut_is_left_out():
    head = "desc: (none)\ncmd: ./x\ntime_unit: i\n"
    first, peak = SNAPSHOT % (0, 1, 64, "detailed") + TREE % (64, 64), SNAPSHOT % (1, 2, 128, "peak") + TREE % (128, 128)
    check_equal(top(head + first + peak), ({"main": 128}, ""), "whole")
    for cut in range(len(SNAPSHOT % (1, 2, 128, "")), len(peak) - 1):
        found, said = top((head + first + peak[:cut]))
        check_equal(found, {"main": 64}, f"cut after {cut} bytes")
        check(f"the last snapshot, at byte {len(head + first) + len('#-----------') + 1}, is cut short and left out" in said, said)
    status, _, said = run(head + peak[:-1], "top")
    check_equal(status, 3, said)
    check("the file is cut short, before the end of its first tree" in said, said)


@case
def events_of_a_cut_object_of_chrome_are_read():
    event = '{"ph":"X","name":"%s","ts":%d,"dur":10,"pid":1,"tid":1}'
    text = '{"displayTimeUnit":"ns","traceEvents":[' + event % ("a", 0) + "," + event % ("b", 20) + "," + event % ("c", 40)
    for cut in (0, 1, 9, 30):
        found, said = top(text[:len(text) - cut] if cut else text)
        check_equal(found, {"a": 10000, "b": 10000} | ({} if cut else {"c": 10000}), f"without {cut} bytes")
        check(f"the file is cut short, at byte {len(text) - cut}" in said, said)
        check_equal("the last event is cut short" in said, cut > 0, said)
    status, _, said = run(text.replace('"ts":20', '"ts":2O'), "top")  # damage in the middle
    check_equal(status, 3, said)


@case
def events_of_speedscope_that_are_out_of_order_count_and_are_named():
    events = [("O", 0, 0), ("O", 1, 10), ("C", 1, 9.999), ("C", 0, 100)]
    text = json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "a"}, {"name": "b"}]},
        "profiles": [{"type": "evented", "name": "t", "unit": "microseconds", "startValue": 0, "endValue": 100,
                      "events": [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]}]})
    place = text.index('{"type": "C", "frame": 1')
    check_equal(top(text), ({"a": 100000}, f"offbeat: FILE: 1 events, the first one at byte {place}, are earlier than the one before: "
                                           "they count as if at its time\n"), "10 us and 9.999 us")


@case
def cut_profiles_of_otlp_are_called_so():
    whole = read("otlp/two-resources.otlp")
    for size in (len(whole) // 4, len(whole) // 2, len(whole) - 1):
        status, _, said = run(whole[:size], "top")
        check_equal((status, said), (3, f"offbeat: FILE: the file is cut short, before its stacks and names (offset {size})\n"), f"{size} bytes")
    for text in ("\n\n\n", "\n~\n", "\n9\n1\n"):
        status, _, said = run(text, "top")
        check_equal(status, 3, said)
        check("cut short" not in said, f"{text!r}: {said}")


EMPTY = {
    "pstats": marshal.dumps({}),
    "bpftrace": "Attaching 2 probes...\n\n\n",
    "massif": "desc: (none)\ncmd: ./x\ntime_unit: i\n" + SNAPSHOT % (0, 0, 0, "empty"),
    "callgrind": "version: 1\ncreator: callgrind-3.19\npositions: line\nevents: Ir\nsummary: 0\n\ntotals: 0\n",
    "collapsed": "# austin: 3.6.0\n# mode: wall\n\n# duration: 100\n",
    "stackprof": '{"version":1.2,"mode":"wall","interval":1000,"samples":0,"gc_samples":0,"missed_samples":0,"frames":{}}',
    "dhat": '{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"pps":[],"ftbl":["[root]"]}',
    "pprof-legacy": "heap profile: 0: 0 [0: 0] @ heap/524288\n",
    "otlp-json": '{"resourceProfiles":[],"dictionary":{}}',
}


@case
def files_of_nothing_are_empty_profiles():
    for name, contents in EMPTY.items():
        status, out, said = run(contents, "info", "--json")
        check_equal((status, said), (0, ""), f"{name}: info")
        check_equal((json.loads(out)["format"], json.loads(out)["samples"]), (name, 0), f"{name}: info")
        for target in ("pprof", "speedscope", "firefox", "collapsed", "callgrind", "otlp"):
            status, _, said = run(contents, "convert", "--to", target, "-o", "/dev/null")
            check_equal(status, 0, f"{name} to {target}: {said}")


@case
def what_is_before_the_end_of_compressed_data_is_read():
    text = "".join(f"main;work_{number % 300};leaf_{number} {number % 7 + 1}\n" for number in range(16000)).encode()
    line = "the compressed data are cut short: what came after their end is missing"
    expected, _ = top(text)
    packed = {"gzip": gzip.compress(text), "zlib": zlib.compress(text)}
    for tool in ("zstd", "brotli"):
        if shutil.which(tool):
            packed[tool] = subprocess.run([tool, "-c"], input=text, capture_output=True, check=True).stdout
    for name, whole in packed.items():
        for part in (2, 3, 4):
            found, said = top(whole[:len(whole) * (part - 1) // part])
            check(line in said, f"{name}: {said}")
            right = sum(expected[row] == cost for row, cost in found.items())
            check(right >= len(found) - 2 and sum(found.values()) > sum(expected.values()) / 20, f"{name}: {right} of {len(found)}")
        damaged = bytearray(whole)
        damaged[len(whole) // 2] ^= 0x55
        if name == "gzip":
            status, _, said = run(bytes(damaged), "top")
            check((status, "damaged or cut short" in said) == (3, True), said)
    status, _, said = run(gzip.compress(b'{}\n{"type":"profile_chunk"}\n{"version":"2"}\n')[:-9], "validate")
    check((status, line in said) == (3, True), said)


MAPS = {"@": {"\n    main+4\n    _start+3\n": 5, "\n    work+1\n    main+9\n,7,cat": 7}, "@h": {"cat": 3}, "@n": {"\n    f\n": [1, 2]}}


@case
def stacks_of_bpftrace_are_found_after_other_lines_and_in_json():
    text = "Attaching 2 probes...\n" + "hello @[\n" * 200 + "@[\n    main+4\n    _start+3\n]: 5\n@[\n    work+1\n    main+9\n, 7, cat]: 7\n"
    lines = [{"type": "attached_probes", "data": {"probes": 2}}, *[{"type": "printf", "data": "hi\n"}] * 200, *({"type": "map", "data": {name: data}} for name, data in MAPS.items())]
    for name, contents, line in (("text", text, ""), ("json", "".join(json.dumps(one) + "\n" for one in lines), "the map @n is left out")):
        found, said = top(contents)
        check_equal(found, {"main": 5, "work": 7, "_start": 0}, name)
        check_equal(line in said and said.count("\n"), 1 if line else 0, said)
    found, said = top(json.dumps({"type": "map", "data": {"@" + "n" * 60: {f"\n f{number}\n": 1 for number in range(4000)}}}) + "\n")
    check_equal(len(found), 4000, "a name that is longer than its keys: " + said)


@case
def samples_of_threads_that_have_ended_have_their_period():
    found, _ = top(":-1    -1 [001] 100.000200:     250000 cpu-clock:pppH: \n\t401000 f (/x)\n\n")
    check_equal(found, {"f": 250000}, "period")


main()
