"""Profiles of real clients, of V2 and of V1: per thread and function, `offbeat top` finds what Sentry's own backend found
(REL-2, V1-3, V2-3). V1 holds whole nanoseconds, so that nothing may differ there.
Reads the fixtures that test/fixtures.py finds. Argument: the program. SPDX-License-Identifier: MIT"""
import collections
import datetime
import gzip
import json
import pathlib
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from fixtures import REAL, of_real  # noqa: E402
from pprof_readers import CheckedFolder  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = sys.argv[1]
TOLERANCE_NS = 1000  # V2: a time is a double of seconds, which has a resolution of a quarter of a microsecond


def read_expected(path):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path, encoding="utf-8")
    with opened:
        return json.load(opened)


def body_of(folder, number, directory):
    """The request's body as it was sent, as a file; packed runs are unpacked to FOLDER."""
    packed = REAL / f"envelopes/{directory}.tar.gz"
    if packed.exists():
        with tarfile.open(packed) as archive:
            member = next(name for name in archive.getnames() if name.endswith(f"{number}.raw"))
            path = folder / f"{directory}.{number}"
            path.write_bytes(archive.extractfile(member).read())
            return path
    return REAL / f"envelopes/{directory}/{number}.raw"


def top_by_thread(path):
    done = subprocess.run([OFFBEAT, "top", "--short-names", "--by-thread", "--json", path], capture_output=True, text=True)
    check_equal(done.returncode, 0, f"status of {path} ({done.stderr.strip()})")
    return json.loads(done.stdout)["threads"]


def check_thread(name, found, wanted, tolerance_ns):
    by_name = {function["name"]: function for function in found["functions"]}
    for function in wanted["functions"]:
        ours = by_name.get(function["name"] or "<unknown>") # the backend shows nothing
        if not ours and function["total_ns"] <= tolerance_ns:
            continue
        check(ours, f"{name}: no function {function['name']!r}")
        for key in ("self", "total"):
            difference = abs(ours[key] - function[f"{key}_ns"])
            check(difference <= tolerance_ns, f"{name}: {key} of {function['name']}: {ours[key]}, expected "
                  f"{function[f'{key}_ns']}")


def expected_files():
    return sorted((REAL / "expected").glob("*.vroom.json*"))


def check_file(folder, path):
    """What is found in the request that the file of PATH is about, against that. Returns the version."""
    directory, number = path.name.split(".vroom.json")[0].rsplit(".", 1)
    wanted = read_expected(path)
    version = 1 if "active_thread_only" in wanted else 2
    found = top_by_thread(body_of(folder, number, directory))
    for thread, facts in wanted["threads"].items():
        check(thread in found or not facts["functions"], f"{path.name}: no thread {thread}")
        if thread in found:
            check_thread(f"{path.name} thread {thread}", found[thread], facts, TOLERANCE_NS if version == 2 else 0)
    return version


@case
def top_by_thread_agrees_with_the_backend_on_every_real_profile():
    counts = {1: 0, 2: 0}
    with CheckedFolder() as name:
        for path in expected_files():
            counts[check_file(pathlib.Path(name), path)] += 1
    check_equal(counts, of_real({1: 65, 2: 46}, {1: 44, 2: 19}), "profiles of each version that there is an answer to")


def flame_of_thread(path, thread, *options):
    """The functions of a flame graph of one thread, as top has them: recursion counts once."""
    done = subprocess.run([OFFBEAT, "flame", "--json", "--short-names", "--thread", f"^{thread}$", *options, path],
                          capture_output=True, text=True)
    check_equal(done.returncode, 0, f"status of {path} ({done.stderr.strip()})")
    graph = json.loads(done.stdout)
    if options:
        check_order(path, graph["boxes"])
    boxes, functions, callers = graph["boxes"], {}, []
    for number, box in enumerate(boxes):
        outside = callers[box["parent"]] if number else frozenset()
        callers.append(outside | {box["name"]} if number else outside)
        if number:
            function = functions.setdefault(box["name"], {"name": box["name"], "self": 0, "total": 0})
            function["self"] += box["self"]
            function["total"] += 0 if box["name"] in outside else box["total"]
    check_equal(graph["left_out"], {"boxes": 0, "total": 0}, f"left out of {path}")
    check_equal(sum(box["self"] for box in boxes), graph["total"], f"sum of the boxes of {path}")
    return {"functions": list(functions.values())}


def check_order(path, boxes):
    """In a flamechart a box is within its parent and begins where its left neighbour has ended, or later."""
    ends = {}
    for number, box in enumerate(boxes):
        start, end = box["start_ns"], box["start_ns"] + box["duration_ns"]
        outside = boxes[box["parent"]]
        is_inside = outside["start_ns"] <= start and end <= outside["start_ns"] + outside["duration_ns"]
        check(is_inside and start >= ends.get(box["depth"], 0), f"{path}: box {number} overlaps another one")
        if number:
            ends[box["depth"]] = end


def check_flames(folder, path):
    """Flame graph and flamechart of each thread, against the backend's answer. Returns how many threads it has."""
    directory, number = path.name.split(".vroom.json")[0].rsplit(".", 1)
    wanted = read_expected(path)
    tolerance_ns = 0 if "active_thread_only" in wanted else TOLERANCE_NS
    body, count = body_of(folder, number, directory), 0
    for thread, facts in wanted["threads"].items():
        if not facts["functions"]:
            continue
        for options in ((), ("--time-order",)):
            found = flame_of_thread(body, thread, *options)
            check_thread(f"{path.name} thread {thread} {options}", found, facts, tolerance_ns)
        count += 1
    return count


@case
def flame_graphs_and_charts_agree_with_the_backend():
    """REL-2: each thread alone, by name or number; totals add up."""
    files, threads = 0, 0
    with CheckedFolder() as name:
        for path in expected_files():
            threads += check_flames(pathlib.Path(name), path)
            files += 1
    check(threads >= files // 2, f"{threads} threads in {files} files")
    check_equal(files, of_real(111, 63), "profiles that there is an answer to")


def seconds_ns(time):
    """Nanoseconds of a time of an envelope: seconds since 1970, or a date."""
    if isinstance(time, str):
        date, _, fraction = time.rstrip("Z").replace("+00:00", "").partition(".")
        whole = datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.timezone.utc).timestamp()
        return int(whole) * 10**9 + int(fraction.ljust(9, "0")[:9] or 0)
    return round(time * 1e6) * 1000


def payloads_of(path):
    """(type, object) of each item of the envelope whose payload is JSON."""
    body = path.read_bytes()
    if body[:2] == b"\x1f\x8b":
        body = gzip.decompress(body)
    found, lines = [], body.split(b"\n")
    for header, payload in zip(lines[1:], lines[2:]):
        if is_header(header, ("transaction", "profile", "profile_chunk")):
            found.append((json.loads(header)["type"], json.loads(payload)))
    return found


def samples_of(profile):
    """(thread, start, end) of each sample of a chunk or V1 profile, in nanoseconds since 1970."""
    start_ns = seconds_ns(profile["timestamp"]) if profile.get("version") == "1" else 0
    by_thread = collections.defaultdict(list)
    for sample in profile["profile"]["samples"]:
        time = int(sample["elapsed_since_start_ns"]) if start_ns else round(sample["timestamp"] * 1e9)
        by_thread[str(sample["thread_id"])].append(start_ns + time)
    return [(thread, *pair) for thread, times in by_thread.items() for pair in zip(sorted(times), sorted(times)[1:])]


def spans_of(transaction):
    """(id, profiler, thread, start, end) of the transaction and of its spans, which take over what they do not have."""
    trace = transaction["contexts"]["trace"]
    data, profiler = trace.get("data") or {}, (transaction["contexts"].get("profile") or {}).get("profiler_id")
    thread = str(data.get("thread.id", ""))
    yield trace["span_id"], profiler, thread, transaction["start_timestamp"], transaction["timestamp"]
    for span in transaction.get("spans") or ():
        data = span.get("data") or {}
        if span["span_id"] == trace["span_id"]:
            continue  # Go's client gives a child the id of the transaction
        yield (span["span_id"], data.get("profiler_id", profiler), str(data.get("thread.id", thread)),
               span["start_timestamp"], span["timestamp"])


def check_span(span, profile, arguments):
    """The profile cut to SPAN has the time that its thread's samples share with it. Returns whether there is any."""
    name, _, thread, start, end = span
    transactions = profile.get("transactions") or [profile.get("transaction") or {}]  # old clients have a list
    thread = thread or str(transactions[0].get("active_thread_id", ""))
    start, end = seconds_ns(start), seconds_ns(end)
    wanted = sum(max(0, min(end, last) - max(start, first)) for number, first, last in samples_of(profile)
                 if thread in ("", number))
    done = subprocess.run([OFFBEAT, "flame", "--json", "--sample-index", "wall", "--span", name, *arguments],
                          capture_output=True, text=True)
    if wanted <= 2 * TOLERANCE_NS:
        return False
    check_equal(done.returncode, 0, f"status of span {name} ({done.stderr.strip()})")
    found = json.loads(done.stdout)["total"]
    check(abs(found - wanted) <= 5 * TOLERANCE_NS, f"span {name} of {arguments}: {found}, expected {wanted}")
    return True


@case
def a_transaction_or_span_leads_to_its_part_of_the_profile_REL_4():
    """In every envelope of real clients, and of V2 in every chunk of the same profiler: by profiler, thread and time."""
    counts = {"1": 0, "2": 0}
    for directory in sorted((REAL / "envelopes").iterdir()):
        if not directory.is_dir():
            continue
        items = [(path, payloads_of(path)) for path in sorted(directory.glob("*.raw"))]
        chunks = [(path, item) for path, found in items for kind, item in found if kind == "profile_chunk"]
        for path, found in items:
            for transaction in (item for kind, item in found if kind == "transaction"):
                bound = [item for kind, item in found if kind == "profile"]
                for span in list(spans_of(transaction))[:4]:
                    if bound:
                        counts["1"] += check_span(span, bound[0], [path])
                    for chunk_path, chunk in chunks:
                        if chunk["profiler_id"] == span[1]:
                            counts["2"] += check_span(span, chunk, ["--span-file", path, chunk_path])
    check(counts["1"] > 50 and counts["2"] > 10, f"spans with samples: {counts}")


def items_of(path):
    """(type, size of the payload) of each item that `offbeat info` finds."""
    done = subprocess.run([OFFBEAT, "info", "--json", path], capture_output=True, text=True)
    check_equal(done.returncode, 0, f"status of {path} ({done.stderr.strip()})")
    return [(item["type"], item["size"]) for item in json.loads(done.stdout)["items"]]


@case
def every_real_envelope_is_read_down_to_its_last_item():
    """ENV-1, ENV-2: with and without lengths, in every encoding, as the manifest counts them."""
    manifest = json.loads((REAL / "manifest.json").read_text(encoding="utf-8"))
    count = 0
    with CheckedFolder() as name:
        for directory, facts in manifest.items():
            for request in facts["requests"]:
                if not request.get("items") or "envelope_header" not in request:
                    continue
                wanted = [(item["type"], item["payload"]) for item in request["items"]]
                body = body_of(pathlib.Path(name), request["n"], directory)
                check_equal(items_of(body), wanted, f"items of {directory}/{request['n']}")
                count += 1
    check_equal(count, of_real(362, 217), "envelopes")


def is_header(line, types):
    return len(line) < 300 and b'"type"' in line and json.loads(line).get("type") in types


def profiles_in(path):
    """The profiles and chunks of a request whose items are a line each."""
    lines = gzip.decompress(path.read_bytes()).split(b"\n")
    wanted = ("profile", "profile_chunk")
    return [json.loads(after) for line, after in zip(lines, lines[1:]) if is_header(line, wanted)]


def used_functions(payload):
    """(function, module) of each frame that a sample uses, as clients write them."""
    profile = payload["profile"]
    stacks = {sample["stack_id"] for sample in profile["samples"]}
    frames = [profile["frames"][number] for stack in stacks for number in profile["stacks"][stack]]
    return {(frame.get("function"), frame.get("module") or "") for frame in frames}


@case
def top_keeps_functions_of_real_clients_apart_FMT_4_FMT_11():
    """One row for each function of each module, in requests of Java and Python clients; some modules share names."""
    for directory in ("java-8.53.0-manual", "py-2.68.0-v1"):
        if not (REAL / "envelopes" / directory).is_dir():
            skip(f"{REAL}/envelopes/{directory} is not there")
        shared = 0
        for path in sorted((REAL / "envelopes" / directory).glob("*.raw")):
            payloads = profiles_in(path)
            if len(payloads) != 1:
                continue
            functions = used_functions(payloads[0])
            done = subprocess.run([OFFBEAT, "top", "--json", path], capture_output=True, text=True, check=True)
            rows = [row["name"] for row in json.loads(done.stdout)["functions"]]
            names = {f"{module}.{function}" if module else function for function, module in functions}
            check_equal((len(set(rows)), set(rows) - names), (len(rows), set()), f"rows of {path}, and unknown ones")
            # The last sample of a thread has no time: what only it shows has no row.
            check(len(rows) >= 0.95 * len(functions), f"{path}: {len(rows)} rows for {len(functions)} functions")
            shared += len(functions) - len({function for function, _ in functions})
        check(shared > 0, f"{directory}: no name is in two modules")


main()
