"""Whether hostile files cost no more than doc/formats/limits.md says, and in proportion to their size.

Each generator makes a file of one kind in two sizes; the program reads and converts both. Processor time counts, not the
clock, so that a busy machine changes little. Arguments: the program. SPDX-License-Identifier: MIT"""
import gzip
import json
import os
import pathlib
import random
import resource
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from pprof_written import field, varint  # noqa: E402
from tap import case, check, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
SMALL, LARGE = 1 << 18, 1 << 20
MEMORY_FREE, MEMORY_OF_BYTE = 64 << 20, 40
SECONDS_OF_MEGABYTE = 2.0
# What a start costs, and how much worse than linear a measurement may look.
SECONDS_FREE, GROWTH_MAX = 0.3, 2.0
# A chunk may have 2^20 samples, and few bytes can stand for all of them; one more is noticed when they are made.
SECONDS_OF_CHUNK = 1.5


def pprof(strings, *rest):
    table = [b"", b"samples", b"count", *strings]
    return b"".join([field(1, field(1, 1) + field(2, 2)), *(field(6, text) for text in table), *rest])


# --- Generators: the bytes of a file of about SIZE bytes --------------------------------------------------------------


def strings_that_shared_a_hash(size):
    """8 bytes that differ, and then the constant that made every product 0."""
    word = struct.pack("<Q", 0xD6E8FEB86659FD93)
    return pprof([struct.pack("<Q", i | 1 << 63) + word for i in range(size // 18)])


def lines_that_shared_a_hash(size):
    return b"".join(b"%08d\x93\xfdYf\xb8\xfe\xe8\xd6 1\n" % i for i in range(size // 19))


def inlined_functions_in_every_frame(size):
    lines = b"".join(field(4, field(1, 1)) for _ in range(size // 2 // 4))
    return pprof([b"f"], field(5, field(1, 1) + field(2, 3)), field(4, field(1, 1) + lines),
                 field(2, field(1, b"\x01" * (size // 2)) + field(2, b"\x01")))


def an_expression_of_large_classes(size):
    pattern = b"(" + b"|".join(b"[" + b"".join(b"\\x%02x" % (33 + (i * 7 + k) % 90) for k in range(200)) + b"]*"
                               for i in range(60)) + b")*z"
    names = [b"%06d" % i + b"a" * 250 for i in range(max(1, (size - len(pattern)) // 290))]
    functions = [field(5, field(1, i + 1) + field(2, 4 + i)) for i in range(len(names))]
    locations = [field(4, field(1, i + 1) + field(4, field(1, i + 1))) for i in range(len(names))]
    samples = [field(2, field(1, varint(i + 1)) + field(2, b"\x01")) for i in range(len(names))]
    return pprof([pattern, *names], *functions, *locations, *samples, field(7, 3))


def perf_record(kind, body, misc=2):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def perf_pipe(records, more_fields=0):
    """What perf record writes into a pipe: one event (IP, TID, TIME, PERIOD, CALLCHAIN), and RECORDS."""
    attr = struct.pack("<IIQQQQQQQ", 1, 64, 0, 1000, 0x127 | more_fields, 0, 1 << 18, 0, 0)
    return b"PERFILE2" + struct.pack("<Q", 16) + perf_record(64, attr) + b"".join(records)


def perf_map(pid, start, time):
    return perf_record(1, struct.pack("<IIQQQ8sIIQ", pid, pid, start, 0x1000, 0, b"/opt/a", pid, pid, time))


def perf_sample(pid, time, chain):
    return perf_record(9, struct.pack(f"<QIIQQQ{len(chain)}Q", 0x1000, pid, pid, time, 1, len(chain), *chain))


def forks_that_map(size):
    """Every child copies its parent's mappings with its first one."""
    count = size // 250
    parent = [perf_map(7, 0x10000 + 0x2000 * i, 1) for i in range(min(count, 1000))]
    return perf_pipe(parent + [part for i in range(count) for part in (
        perf_record(7, struct.pack("<IIIIQIIQ", 10 + i, 7, 10 + i, 7, 2, 7, 7, 2)), perf_map(10 + i, 0x1000, 2))])


def records_in_reverse_order(size):
    count = size // 70
    return perf_pipe(perf_sample(7, 1 + count - i, [2**64 - 512, 0x1000 + i]) for i in range(count))


def mappings_in_reverse_order(size):
    count = min(size // 160, 32000)
    return perf_pipe(part for i in range(count) for part in (
        perf_map(7, 0x2000 * (count - i), 1 + i), perf_sample(7, 1 + i, [2**64 - 512, 0x2000 * (count - i) + 1])))


def a_cgroup_and_namespaces_for_each_sample(size):
    """Containers that live for one sample each."""
    count, cgroup_field = size // 310, 1 << 21
    return perf_pipe((part for i in range(count) for part in (
        perf_record(19, struct.pack("<Q16sIIQ", i + 1, b"/c%d" % i, 7, 7, 1 + i)),
        perf_record(16, struct.pack("<IIQ14QIIQ", 7, 7, 7, *(4 + i + k for k in range(14)), 7, 7, 1 + i)),
        perf_record(9, struct.pack("<QIIQQQQQQ", 0x1000, 7, 7, 1 + i, 1, 2, 2**64 - 512, 0x1000, i + 1)))), cgroup_field)


def firefox_profile(count, depth):
    """One chain of COUNT frames, and a sample at each."""
    rows = list(range(count))
    stacks = {"frame": rows, "prefix": [None, *rows[:-1]], "length": count}
    frames = {"address": [16] * count, "inlineDepth": [depth(i) for i in rows], "func": [0] * count, "line": rows, "length": count}
    thread = {"name": "t", "pid": 1, "tid": 1, "samples": {"stack": rows, "time": rows, "length": count}, "stackTable": stacks,
              "frameTable": frames, "funcTable": {"name": [0], "resource": [0]}, "resourceTable": {"lib": [0]}, "stringArray": ["f"]}
    return json.dumps({"meta": {"startTime": 0}, "libs": [{"name": "x"}], "threads": [thread]}).encode()


def inlined_functions_without_an_end_for_firefox(size):
    return firefox_profile(size // 55, lambda i: i)


def a_deep_stack_for_firefox(size):
    return firefox_profile(size // 50, lambda i: 0)


def firefox_markers(schemas, strings, rows):
    """The raw form: one thread without samples."""
    samples = {"schema": {"stack": 0, "time": 1}, "data": []}
    markers = {"schema": {"name": 0, "startTime": 1, "endTime": 2, "phase": 3, "category": 4, "data": 5}, "data": rows}
    thread = {"name": "t", "pid": 1, "tid": 1, "samples": {**samples, "data": [[None, 1]]}, "markers": markers, "stringTable": strings,
              "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": []}, "frameTable": {"schema": {"location": 0}, "data": []}}
    return json.dumps({"meta": {"startTime": 0, "categories": [{"name": "c"}], "markerSchema": schemas}, "libs": [], "threads": [thread]},
                      separators=(",", ":")).encode()


def markers_of_firefox_that_share_a_long_string(size):
    schema = {"name": "t", "data": [{"key": "k", "format": "unique-string"}]}
    return firefox_markers([schema], ["n", "x" * (size // 2)], [[0, i, 0, 0, 0, {"type": "t", "k": 1}] for i in range(size // 66)])


def members_of_markers_that_no_schema_has(size):
    schemas = [{"name": "t", "data": [{"key": f"k{i}", "format": "unique-string"} for i in range(4096)]}]
    count = (size - 130000) // 120
    return firefox_markers(schemas, ["n"], [[0, i, 0, 0, 0, {"type": "t", **{f"m{i * 8 + k}": 0 for k in range(8)}}] for i in range(count)])


def raw_stacks_of_firefox(size):
    count = size // 60
    return json.dumps({"meta": {"startTime": 0}, "libs": [], "threads": [{
        "name": "t", "pid": 1, "tid": 1, "stringTable": [f"f (a.js:{i}:1)" for i in range(count)],
        "samples": {"schema": {"stack": 0, "time": 1}, "data": [[i, i] for i in range(count)]},
        "frameTable": {"schema": {"location": 0}, "data": [[i] for i in range(count)]},
        "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": [[i - 1 if i else None, i] for i in range(count)]}}]}).encode()


def documents_of_otlp_json(size):
    """A file of the collector: each line has all of its tables."""
    document = {"resourceProfiles": [{"scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": [
        {"stackIndex": 1, "values": ["1"]}]}]}]}], "dictionary": {"stackTable": [{}, {"locationIndices": [1]}], "locationTable": [
            {}, {"lines": [{"functionIndex": 1}]}], "functionTable": [{}, {"nameStrindex": 3}], "stringTable": ["", "cpu", "count"]}}
    lines = []
    for i in range(size // 420):
        document["dictionary"]["stringTable"][3:] = [f"f{i}"]
        lines.append(json.dumps(document))
    return "\n".join(lines).encode()


def a_chain_of_calls(size):
    count = size // 130
    nodes = [{"id": i + 1, "callFrame": {"functionName": "f", "scriptId": "0", "url": "", "lineNumber": 1, "columnNumber": 1},
              **({"children": [i + 2]} if i + 1 < count else {})} for i in range(count)]
    return json.dumps({"nodes": nodes, "startTime": 0, "endTime": 1000, "samples": [count] * count,
                       "timeDeltas": [1] * count}).encode()


def otlp(profile, *tables):
    names = field(5, b"") + field(5, b"cpu") + field(5, b"count")
    return field(1, field(2, field(2, profile))) + field(2, b"".join(tables) + names)


def values_of_one_sample_in_two_profiles_of_otlp(size):
    """Each value of the one is in a row with one of the other."""
    values = field(2, field(4, b"\x01" * (size // 2)))
    return otlp(field(1, field(1, 1)) + values) + field(1, field(2, field(2, field(1, field(1, 2)) + values)))


def stacks_of_otlp_that_are_all_different(size):
    count = size // 110
    stacks = [field(7, field(1, b"".join(varint(1 + (i * 31 + k * 7) % 100) for k in range(100)))) for i in range(count)]
    return otlp(field(1, field(1, 1)) + b"".join(field(2, field(1, i + 1) + field(4, b"\x01")) for i in range(count)),
                field(2, b""), *(field(2, field(2, i + 1)) for i in range(100)), field(7, b""), *stacks)


def trace_events_that_never_end(size):
    return json.dumps([{"ph": "B", "name": "f", "pid": 1, "tid": 1, "ts": i} for i in range(size // 58)]).encode()


def trace_events_in_each_other(size):
    count = min(size // 70, 60000)
    events = [{"ph": "X", "name": f"f{i}", "pid": 1, "tid": 1, "ts": i, "dur": 2 * (count - i)} for i in range(count)]
    return json.dumps(events).encode() + b" " * max(0, size - 80 * count)


def samples_of_trace_events_in_a_chain(size):
    """Each sample is one frame deeper than the one before."""
    count = size // 110
    frames = {str(i): {"name": f"f{i}", "parent": i - 1} if i > 1 else {"name": "f1"} for i in range(1, count)}
    return json.dumps({"traceEvents": [], "samples": [{"ts": i, "pid": 1, "tid": 1, "sf": i} for i in range(1, count)], "stackFrames": frames}).encode()


def pstats_of_one_function_that_all_call(size):
    """Each name is written once, and all functions call the first one."""
    def name(i):
        return b")\x03z\x01fi" + struct.pack("<I", i) + b"z\x01g"
    numbers = b"i\x01\0\0\0" * 2 + b"g" + struct.pack("<d", 1e-3) + b"g" + struct.pack("<d", 1e-3)
    count = size // 110
    callers = b"".join(name(i) + b")\x04" + numbers for i in range(1, count))
    functions = b"".join(name(i) + b")\x05" + numbers + b"{0" for i in range(1, count))
    return b"{" + name(0) + b")\x05" + numbers + b"{" + callers + b"0" + functions + b"0"


def a_deep_tree_of_massif(size):
    lines = ["desc: x", "cmd: x", "time_unit: i", "heap_tree=peak", f"n{size // 700}: {size} (all)"]
    for i in range(size // 700):
        lines += [f"{' ' * k}n{0 if k == 20 else 1}: {20 + 20 - k} 0x{i * 32 + k:x}: f" for k in range(1, 21)]
    return "\n".join(lines).encode() + b"\n"


def a_macos_sample_of_many_functions(size):
    lines = ["Analysis of sampling x (pid 1) every 1 millisecond", "Call graph:", f"    {size} Thread_1"]
    lines += [f"    {'  ' * (1 + i % 40)}{i % 7 + 1} f{i}  (in x)" for i in range(size // 60)]
    return "\n".join(lines).encode() + b"\n"


def a_tree_of_v8_with_many_branches(size):
    """Each function allocates in each of its callees: the stacks are all different."""
    def node(i, children):
        return {"callFrame": {"functionName": f"f{i}", "scriptId": "0", "url": "", "lineNumber": 1, "columnNumber": 1},
                "selfSize": 8, "id": i, "children": children}
    branches = []
    for i in range(size // 1250):
        branch = node(10 * i, [])
        for k in range(1, 10):
            branch = node(10 * i + k, [branch])
        branches.append(branch)
    return json.dumps({"head": node(0, branches)}).encode()


def stacks_of_stackprof_that_are_all_different(size):
    """Stacks of 100 functions that differ in the first of them, so that they share nothing below it."""
    count = size // 520
    raw = [number for i in range(count) for number in (100, i % 1000, *range(1, 100), 1)]
    frames = {str(i): {"name": f"f{i}", "file": "", "line": None, "total_samples": 1, "samples": 1} for i in range(1000)}
    return json.dumps({"version": 1.2, "mode": "wall", "interval": 1000, "samples": count, "gc_samples": 0, "missed_samples": 0,
                       "metadata": {}, "frames": frames, "raw": raw}).encode()


def places_of_dhat_with_long_stacks(size):
    numbers = '"tb":8,"tbk":1,"tl":9,"mb":8,"mbk":1,"gb":8,"gbk":1,"eb":8,"ebk":1,"rb":0,"wb":0,"acc":[-8,0]'
    frames = ",".join(str(i) for i in range(1, 100))
    places = ",\n".join(f'{{{numbers},"fs":[{100 + i % 1000},{frames}]}}' for i in range(size // 400))
    table = ",\n".join(['"[root]"', *(f'"0x{i:X}: f{i} (a.c:{i})"' for i in range(1, 1101))])
    return ('{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":true,"tu":"instrs","Mtu":"Minstr",'
            f'"tuth":500,"cmd":"./x","pid":1,"te":9,"tg":9,"pps":[{places}],"ftbl":[{table}]}}').encode()


def stacks_of_bpftrace_that_share_nothing(size):
    lines = ["Attaching 1 probe...", ""]
    for i in range(size // 600):
        lines += ["@[", f"    f{i}+1", *(f"    g{k}+{i % 7}" for k in range(60)), f", x{i % 100}]: 1"]
    return "\n".join(lines).encode() + b"\n"


def stacks_of_dtrace_that_share_nothing(size):
    lines = [""]
    for i in range(size // 1800):
        lines += [f"              prog`f{i}+0x1", *(f"              prog`g{k}+0x{i % 7}" for k in range(70)), "                1", ""]
    return "\n".join(lines).encode() + b"\n"


def calls_of_everything_by_everything(size):
    """Each function calls all that follow it: the number of stacks doubles with each one."""
    count = int((size / 20) ** 0.5)
    lines = ["events: Ir"]
    for i in range(count):
        lines += [f"fn=f{i}", "1 1"]
        for k in range(i + 1, count):
            lines += [f"cfn=f{k}", "calls=1 1", f"{k} {count}"]
    return "\n".join(lines).encode()


def lines_with_all_events_of_callgrind(size):
    return b"events: " + b" ".join(b"e%d" % i for i in range(32)) + b"\nfn=f\n" + b"+1 1\n" * (size // 5)


def a_long_chain_of_callgrind(size):
    count = size // 40
    return b"events: Ir\n" + b"".join(b"fn=f%d\n1 1\ncfn=f%d\ncalls=1 1\n1 %d\n" % (i, i + 1, count - i) for i in range(count))


def jfr_chunk(classes, size):
    """A chunk of CLASSES [(id, name, [(field, class, dimension)])], whose constants of class 1 are zeros."""
    strings, tree = [], []

    def number(text):
        strings.append(text)
        return varint(len(strings) - 1)

    def element(name, attributes, children):
        return number(name) + varint(len(attributes)) + b"".join(number(a) + number(b) for a, b in attributes) + varint(
            len(children)) + b"".join(children)

    for id_, name, fields in classes:
        tree.append(element("class", [("id", str(id_)), ("name", name)], [
            element("field", [("name", field_name), ("class", str(type_)), ("dimension", str(dimension))], [])
            for field_name, type_, dimension in fields]))
    root = element("root", [], tree)

    def event(body):
        total = len(body) + 4
        return bytes([total & 127 | 128, total >> 7 & 127 | 128, total >> 14 & 127 | 128, total >> 21]) + body

    metadata = event(bytes(4) + varint(len(strings)) + b"".join(
        b"\3" + varint(len(text)) + text.encode() for text in strings) + root)
    constants = event(b"\1" + bytes(4) + b"\1\1" + varint(size) + bytes(size))
    header = b"FLR\0\0\2\0\0" + struct.pack(">QQQQQQQI", 68 + len(metadata + constants), 68, 68, 1, 1, 1, 1, 1)
    return header + metadata + constants


def values_without_bytes_in_jfr(size):
    """Each value has many members of a class that has none, which take no bytes."""
    return jfr_chunk([(1, "a", [("f", 2, 0)] * 5000), (2, "b", [])], size)


def short_stacks_all_different(size):
    return b"".join(b"%x;%x 1\n" % (i, i * 7) for i in range(size // 13))


def deep_stacks_all_different(size):
    source = random.Random(1)
    lines, made = [], 0
    while made < size:
        lines.append(";".join(f"{source.randrange(1 << 16):x}" for _ in range(500)) + " 1\n")
        made += len(lines[-1])
    return "".join(lines).encode()


def events_that_open_and_never_close(size):
    count = size // 36
    events = [{"type": "O", "frame": 0, "at": i} for i in range(count)]
    return json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "f"}]},
                       "profiles": [{"type": "evented", "name": "t", "unit": "none", "startValue": 0, "endValue": count,
                                     "events": events}]}).encode()


def samples_of_perf(size):
    return b"".join(b"p %d 1.%06d: 1 cycles: \n\t%x f%x (/a)\n\n" % (i, i, i, i) for i in range(size // 50))


def samples_of_a_chunk(size):
    count = size // 95
    return json.dumps({"version": "2", "profiler_id": "0" * 31 + "1", "chunk_id": "0" * 31 + "2", "platform": "python",
                       "release": "a", "client_sdk": {"name": "a", "version": "1"},
                       "profile": {"frames": [{"function": f"f{i}"} for i in range(count)],
                                   "stacks": [[i] for i in range(count)], "thread_metadata": {},
                                   "samples": [{"timestamp": 1700000000 + i / 1e5, "stack_id": i, "thread_id": str(i % 7)}
                                               for i in range(count)]}}).encode()


def threads_with_one_sample_each(size):
    return b"".join(b"t%d %d 1.5: 1 cycles: \n\t1 f (/a)\n\n" % (i, i) for i in range(size // 45))


# --- Recordings (src/format/recording/recording_layout.h) -----------------------------------------------------------------------

START, MODULE, MODULE_GONE, THREAD, THREAD_GONE, TICK, SAMPLE, WAITING = range(1, 9)
BLOCKED = 0x20


def recording(records, size):
    """Of RECORDS, as many as have room in SIZE bytes."""
    batches, batch, total = [b"OFFBEAT\3"], [], 0
    for one in [bytes([START]) + b"".join(map(varint, (7, 1, 0, 10_000_000, 0, 5))) + bytes(16) + varint(1) + b"p" + varint(1) + b"p",
                *records]:
        batch.append(one)
        total += len(one)
        if len(batch) >= 4096:
            batches.append(struct.pack("<I", len(b"".join(batch))) + b"".join(batch))
            batch = []
        if total >= size:
            break
    return b"".join([*batches, struct.pack("<I", len(b"".join(batch))) + b"".join(batch)])


def record(kind, *numbers, then=b""):
    return bytes([kind]) + b"".join(map(varint, numbers)) + then


def sample(thread, frames, shared=0):
    return record(SAMPLE, thread, 0, 0, 1000, BLOCKED, len(frames) + shared, shared, *(2 * frame + 4 for frame in frames))


def a_recording_of_ticks_at_which_many_threads_sleep(size):
    threads = size // 40
    made = [record(THREAD, i, i, 0) + sample(i, [4096]) for i in range(threads)]
    return recording(made + [record(TICK, 1_000_000)] * size, size)


def a_recording_of_deep_stacks_that_share_all_but_one_frame(size):
    made = [record(THREAD, 0, 1, 0), sample(0, [16] * 200)]
    made += [record(TICK, 1_000_000) + sample(0, [2 + i % 4000], shared=199) for i in range(size // 12)]
    return recording(made, size)


def a_recording_of_many_modules(size):
    made = [record(THREAD, 0, 1, 0)]
    for i in range(size // 60):
        start = (i + 1) << 20
        made.append(record(MODULE, i, start, start + 4096, 0, start, 4096, 0, 0, 0))
    made += [record(TICK, 1_000_000) + sample(0, [(i % 9000 << 8) + 1]) for i in range(size // 20)]
    return recording(made, size)


def android_trace(size, record):
    text = b"*version\n3\nclock=dual\n*threads\n*methods\n*end\n"
    return text + b"SLOW" + struct.pack("<HHQH14x", 3, 32, 0, 14) + b"".join(record(i) for i in range(size // 14))


def methods_of_android_that_never_end(size):
    return android_trace(size, lambda i: struct.pack("<HIII", i >> 15, (i & 0x7fff) << 2, i, i))


def threads_of_android_with_one_method_each(size):
    return android_trace(size, lambda i: struct.pack("<HIII", i & 0xffff, i << 2 | i >> 16, i, i))


def gzip_that_ends_early(size):
    packed = gzip.compress(b"".join(b"%x;%x 1\n" % (random.getrandbits(40), i) for i in range(size // 12)), 1)
    return packed[:len(packed) * 3 // 4]


GENERATORS = [strings_that_shared_a_hash, lines_that_shared_a_hash, inlined_functions_in_every_frame,
              an_expression_of_large_classes, a_chain_of_calls, short_stacks_all_different, deep_stacks_all_different,
              events_that_open_and_never_close, samples_of_perf, samples_of_a_chunk, threads_with_one_sample_each,
              a_recording_of_ticks_at_which_many_threads_sleep, a_recording_of_deep_stacks_that_share_all_but_one_frame,
              a_recording_of_many_modules, forks_that_map, records_in_reverse_order, mappings_in_reverse_order,
              a_cgroup_and_namespaces_for_each_sample,
              inlined_functions_without_an_end_for_firefox, a_deep_stack_for_firefox, markers_of_firefox_that_share_a_long_string, members_of_markers_that_no_schema_has,
    raw_stacks_of_firefox, documents_of_otlp_json, calls_of_everything_by_everything,
              values_without_bytes_in_jfr, lines_with_all_events_of_callgrind, a_long_chain_of_callgrind,
              values_of_one_sample_in_two_profiles_of_otlp, stacks_of_otlp_that_are_all_different,
              trace_events_that_never_end, trace_events_in_each_other, samples_of_trace_events_in_a_chain,
              pstats_of_one_function_that_all_call, a_deep_tree_of_massif,
              a_macos_sample_of_many_functions, a_tree_of_v8_with_many_branches, stacks_of_stackprof_that_are_all_different,
              places_of_dhat_with_long_stacks, stacks_of_bpftrace_that_share_nothing, stacks_of_dtrace_that_share_nothing,
              methods_of_android_that_never_end, threads_of_android_with_one_method_each, gzip_that_ends_early]


# --- Measuring --------------------------------------------------------------------------------------------------------


def cost(arguments):
    """Seconds of processor time and bytes of memory; the program may reject the file, but not crash."""
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execv(OFFBEAT, [str(argument) for argument in arguments])
    _, status, usage = os.wait4(pid, 0)
    check(os.WIFEXITED(status), f"{arguments} ended by signal {status & 127}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measure(path, output):
    """The worst of all that may be done with a file. What a conversion writes it may hold, and take time for, as well."""
    worst_seconds = worst_memory = 0
    commands = [["top", path], ["info", path]]
    commands += [["convert", path, "-o", output, "--to", target] for target in
                 ("pprof", "collapsed", "speedscope", "firefox", "envelope", "otlp-json")]
    for command in commands:
        for old in output.parent.glob("out*"):
            old.unlink()
        seconds, memory = cost([OFFBEAT, *command])
        written = sum(old.stat().st_size for old in output.parent.glob("out*"))
        seconds -= SECONDS_OF_MEGABYTE * written / 1e6 + (SECONDS_OF_CHUNK if "envelope" in command else 0)
        worst_seconds = max(worst_seconds, seconds)
        worst_memory = max(worst_memory, memory - 3 * written)
    return worst_seconds, worst_memory


def least_cost(path, output, seconds_max):
    """What seems to take too long is measured up to twice more: the host of a virtual machine can take time away, which is counted."""
    seconds, memory = measure(path, output)
    for _ in range(2):
        if seconds > seconds_max:
            seconds = min(seconds, measure(path, output)[0])
    return seconds, memory


def check_growth(generator):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = []
        for size in (SMALL, LARGE):
            path = folder / "in"
            path.write_bytes(generator(size))
            real = path.stat().st_size
            seconds_max = SECONDS_FREE + SECONDS_OF_MEGABYTE * real / 1e6
            seconds, memory = least_cost(path, folder / "out.x", seconds_max)
            print(f"# {real} bytes: {seconds:.2f} s, {memory >> 20} MiB")
            check(memory <= MEMORY_FREE + MEMORY_OF_BYTE * real, f"{real} bytes take {memory >> 20} MiB")
            check(seconds <= seconds_max, f"{real} bytes take {seconds:.2f} s")
            found.append((real, seconds))
        (small, first), (large, second) = found
        allowed = SECONDS_FREE + first * large / small * GROWTH_MAX
        check(second <= allowed, f"from {small} to {large} bytes the time grows from {first:.2f} to {second:.2f} s")


for made in GENERATORS:
    def one(generator=made):
        check_growth(generator)
    one.__name__ = f"the_cost_of_{made.__name__}_is_bounded"
    case(one)

main()
