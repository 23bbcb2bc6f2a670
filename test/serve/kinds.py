"""Kinds of profiles: a service that sends several of them, and how each is added up over time. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import gzip
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from protobuf_wire import field, fields, varint  # noqa: E402
from server_process import ROOT, chunk_envelope, running  # noqa: E402
from tap import case, check, check_equal, main, short, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
TRIALS = ROOT / "test/data/trials/server"
NOW = int(time.time())
HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
LOCKS = [("contentions", "count"), ("delay", "nanoseconds")]


def pprof(types, stacks, seconds, duration=0):
    """A pprof file of TYPES: {("root", "leaf"): values}, with a time, and a duration unless that is 0."""
    names = sorted({name for stack in stacks for name in stack})
    strings = ["", *dict.fromkeys(word for pair in types for word in pair), *names]
    number = {name: i + 1 for i, name in enumerate(names)}
    return gzip.compress(
        b"".join(field(1, field(1, strings.index(name)) + field(2, strings.index(unit))) for name, unit in types) +
        b"".join(field(2, field(1, b"".join(varint(number[name]) for name in reversed(stack))) +
                       field(2, b"".join(varint(value) for value in values))) for stack, values in stacks.items()) +
        b"".join(field(4, field(1, i) + field(4, field(1, i))) + field(5, field(1, i) + field(2, strings.index(name)))
                 for name, i in number.items()) +
        fields(6, strings) + field(9, seconds * 10 ** 9) + (field(10, duration * 10 ** 9) if duration else b""))


def send(server, body, **query):
    check_equal(server.upload(body, urllib.parse.urlencode(query)).status, 200, f"status of {query}")


def top(server, **query):
    return server.read("top?" + urllib.parse.urlencode(query))


def total(server, **query):
    return top(server, **query)["total"]


def selves(answer):
    return {one["name"]: one["self"] for one in answer["functions"] if one["self"]}


# --- Choosing ---------------------------------------------------------------------------------------------------------


@short
@case
def each_kind_of_a_go_program_has_its_numbers():
    mutex = pprof(LOCKS, {("main", "sync.(*Mutex).Unlock"): (3, 500)}, NOW - 30)
    block = pprof(LOCKS, {("main", "runtime.chanrecv1"): (7, 90_000)}, NOW - 30)
    with running(OFFBEAT) as server:
        for body in (*((TRIALS / f"go_{name}.pb.gz").read_bytes() for name in ("heap", "cpu", "goroutine")), mutex, block):
            send(server, body, service="shop")
        for kind, unit, rule, expected in (("cpu", "nanoseconds", "sum", 3_260_000_000), ("inuse_space", "bytes", "average", 8_396_811),
                                           ("goroutine", "count", "average", 6), ("mutex:delay", "nanoseconds", "difference", 500),
                                           ("block:delay", "nanoseconds", "difference", 90_000), ("mutex:contentions", "count", "difference", 3),
                                           ("cpu:samples", "count", "sum", 326)):
            answer = top(server, service="shop", type=kind)
            check_equal((answer["total"], answer["kind"]["name"], answer["kind"]["unit"], answer["kind"]["rule"]), (expected, kind, unit, rule), kind)
            for route in ("flame", "trend", "page", "profile.pb.gz", "export"):
                query = urllib.parse.urlencode({"service": "shop", "type": kind, "format": "collapsed"})
                check_equal(server.get(f"{route}?{query}").status, 200, f"{route} of {kind}")
        check_equal(top(server, service="shop")["kind"]["name"], "cpu", "the kind without a type")
        check_equal(top(server, service="shop", type="mutex")["kind"]["name"], "mutex:delay", "the kind of a name")
        types = {one["name"]: one["is_default"] for one in server.read("types?service=shop")["types"]}
        check_equal([name for name, is_default in types.items() if is_default], ["cpu"], "default of the types")
        check({"mutex:delay", "block:delay", "inuse_space", "goroutine"} <= set(types), f"types: {types}")
        for kind, words in (("delay", ("mutex:delay", "block:delay")), ("nothing", ("cpu", "goroutine"))):
            answer = server.get(f"top?service=shop&type={kind}")
            check(answer.status == 400 and all(word in answer.json()["detail"] for word in words), f"type={kind}: {answer.body}")


@case
def go_tool_pprof_reads_the_same_numbers():
    if not shutil.which("go"):
        skip("go is not installed")
    with running(OFFBEAT) as server, tempfile.TemporaryDirectory() as folder:
        for name in ("cpu", "heap"):
            send(server, (TRIALS / f"go_{name}.pb.gz").read_bytes(), service="shop")
        for name, kind in (("cpu", "cpu"), ("heap", "inuse_space"), ("heap", "alloc_space")):
            command = ["go", "tool", "pprof", "-top", "-nodefraction=0", f"-sample_index={kind}"]
            tables = [subprocess.run([*command, source], capture_output=True, text=True, timeout=60, check=True, env={"HOME": folder, "PATH": "/usr/bin:/bin"}).stdout
                      for source in (str(TRIALS / f"go_{name}.pb.gz"), f"{server.url}?service=shop&type={kind}")]
            rows = [table[table.index("flat%"):] for table in tables]
            check_equal(rows[1], rows[0], f"table of {kind}")


@case
def kinds_that_share_a_unit_are_never_added():
    with running(OFFBEAT) as server:
        for name, work in (("cpu", b"compute 10\n"), ("wall", b"sleep 1000\n"), ("inuse_objects", b"alloc 7\n")):
            query = urllib.parse.urlencode({"name": f"shop.{name}", "from": NOW - 10, "until": NOW, "format": "folded",
                                            "units": "objects" if name == "inuse_objects" else "samples"})
            check_equal(server.request("POST", f"/ingest?{query}", work, {"Authorization": f"Bearer {server.key}"}).status, 200, name)
        for kind, expected in (("cpu", {"compute": 10}), ("wall", {"sleep": 1000}), ("inuse_objects", {"alloc": 7})):
            check_equal(selves(top(server, service="shop", type=kind)), expected, kind)
        check_equal(selves(top(server, service="shop")), {"compute": 10}, "without a type")


# --- Over time --------------------------------------------------------------------------------------------------------


@case
def snapshots_are_averaged_for_each_process_and_added_over_processes():
    with running(OFFBEAT) as server:
        for host, sizes in (("a", (100, 200, 600)), ("b", (1000,))):
            for i, size in enumerate(sizes):
                send(server, pprof(HEAP, {("main", "grow"): (1, size, 1, size)}, NOW - 100 + 10 * i), service="shop", host=host)
        answer = top(server, service="shop", type="inuse_space")
        check_equal((answer["total"], answer["kind"]["profiles"], answer["kind"]["series"]), (300 + 1000, 4, 2), "average")
        check_equal(total(server, service="shop", type="inuse_space", host="a", **{"from": NOW - 95}), 400, "of a range")
        check_equal(total(server, service="shop", type="inuse_space", at="last"), 600 + 1000, "last")
        check_equal(total(server, service="shop", type="inuse_space", at=NOW - 85), 200 + 1000, "at a time")
        answer = server.get("top?service=shop&type=alloc_space&at=last")
        check(answer.status == 400 and "snapshots" in answer.json()["detail"], f"at= of no snapshot: {answer.body}")


@case
def values_since_the_start_are_differences_and_a_restart_is_recognized():
    values = (100, 150, 400, 30, 90)  # the process starts again before the fourth
    with running(OFFBEAT) as server:
        for i, value in enumerate(values):
            stacks = {("main", "sync.(*Mutex).Unlock"): (value, 10 * value), ("main", "once", "sync.(*Mutex).Unlock"): (1, 7)}
            send(server, pprof(LOCKS, stacks, NOW - 1000 + 100 * i), service="shop", host="a")
            if i == 0:
                check_equal(total(server, service="shop", type="mutex"), 1007, "a single profile")
        answer = top(server, service="shop", type="mutex")
        check_equal((answer["total"], answer["kind"]["restarts"]), (3000 + 307 + 600, 1), "all")
        check_equal(total(server, service="shop", type="mutex:contentions"), 300 + 31 + 60, "another column")
        check_equal(total(server, service="shop", type="mutex", **{"from": NOW - 850, "to": NOW - 750}), 2500, "from the profile before the range")
        check_equal(total(server, service="shop", type="mutex", **{"from": NOW - 950, "to": NOW - 650}), 500 + 2500 + 307, "a range with a restart")
        parts = server.read(f"trend?service=shop&type=mutex&from={NOW - 1000}&to={NOW}&buckets=10")["totals"]
        check_equal(parts, [0, 500, 2500, 307, 600, 0, 0, 0, 0, 0], "parts of the time")
        send(server, pprof(LOCKS, {("main", "sync.(*Mutex).Unlock"): (5, 50)}, NOW - 20, duration=10), service="shop", host="a")
        check_equal(total(server, service="shop", type="mutex", **{"from": NOW - 50}), 50, "a profile of a duration")


# --- Times ------------------------------------------------------------------------------------------------------------


@case
def ingest_reads_times_in_seconds_milliseconds_microseconds_and_nanoseconds():
    with running(OFFBEAT) as server:
        for power in (0, 3, 6, 9):
            query = urllib.parse.urlencode({"name": f"shop{power}.cpu", "from": (NOW - 10) * 10 ** power, "until": NOW * 10 ** power, "format": "folded"})
            check_equal(server.request("POST", f"/ingest?{query}", b"a;b 3\n", {"Authorization": f"Bearer {server.key}"}).status, 200, str(power))
            one, = server.read(f"chunks?service=shop{power}&seconds=600")["chunks"]
            check_equal((one["start"], one["end"]), tuple(time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(NOW - ago)) for ago in (10, 0)), str(power))


@case
def what_is_dated_ahead_or_before_the_retention_is_listed_as_rejected():
    day = 86400
    with running(OFFBEAT, "--keep", "7") as server:
        for days, status in ((0, 200), (0.9, 200), (-6, 200), (1.1, 400), (-8, 400), (-20000, 400)):
            answer = server.upload(pprof(HEAP, {("main",): (1, 1, 1, 1)}, NOW + int(days * day)), f"service=shop{days}")
            check_equal(answer.status, status, f"{days} days: {answer.body}")
        for number, days in ((1, 0), (2, 2), (3, -30)):
            check_equal(server.send(chunk_envelope(number, start=NOW + days * day)).status, 200, "status of an envelope")
        check_equal(server.chunk_numbers("platform=python"), [1], "chunks")
        reasons = [(one["type"], one["reason"]) for one in server.read("rejected")["rejected"]]
        check_equal(sorted(reasons), sorted([("profile_file", "future_timestamp"), *2 * [("profile_file", "older_than_retention")],
                                             ("profile_chunk", "future_timestamp"), ("profile_chunk", "older_than_retention")]), "rejected")
        check_equal(sum(count for (outcome, *_), count in server.outcomes().items() if outcome == "invalid"), 5, "outcomes")


# --- Transactions -----------------------------------------------------------------------------------------------------


@case
def a_profile_of_v1_is_joined_with_the_transaction_of_its_envelope():
    with running(OFFBEAT) as server:
        check_equal(server.send((TRIALS / "node8_v1.envelope").read_bytes()).status, 200, "status")
        one, = server.read("transactions")["transactions"]
        check_equal((one["name"], one["profile"], one["thread"]), ("GET /cart", "5db1a219ea11453890ed1f8516e5f0c0", "0"), "transaction")
        check_equal({one["profile"] for one in server.read("spans")["spans"]}, {one["profile"]}, "profiles of the spans")
        whole = total(server, chunk=one["profile"])
        check(0.9 * whole < total(server, transaction="GET /cart") <= whole, "time of the transaction")
        check(0.3 * whole < total(server, span="bbcee60d10f80762") < 0.7 * whole, "time of a span")
        check_equal(server.get(f"flamechart?span={one['span']}").status, 200, "its chart")
        check_equal(server.get("page?times=1&chunk=" + one["profile"]).status, 200, "its page")


@case
def samples_of_otlp_are_found_by_the_span_that_they_are_linked_to():
    trace, spans = bytes(range(16)), (bytes(range(8)), bytes(range(8, 16)))
    dictionary = (field(1, b"") + fields(2, [b"", field(3, field(1, 1)), field(3, field(1, 2))]) + fields(3, [b"", field(1, 3), field(1, 4)]) +
                  fields(4, [b"", *(field(1, trace) + field(2, span) for span in spans)]) +
                  fields(5, ["", "samples", "count", "work", "wait"]) + field(6, b"") + fields(7, [b"", field(1, b"\x01"), field(1, b"\x02")]))
    samples = b"".join(field(2, field(1, i) + field(3, i) + field(4, varint(10 * i))) for i in (1, 2))
    profile = field(1, field(1, 1) + field(2, 2)) + samples + varint(3 << 3 | 1) + (NOW * 10 ** 9).to_bytes(8, "little") + field(7, bytes(range(16)))
    attribute = field(1, "service.name") + field(2, field(1, "shop"))
    request = field(1, field(1, field(1, attribute)) + field(2, field(2, profile))) + field(2, dictionary)
    with running(OFFBEAT) as server:
        answer = server.request("POST", "/v1development/profiles", request, {"Authorization": f"Bearer {server.key}", "Content-Type": "application/x-protobuf"})
        check_equal(answer.status, 200, str(answer.body))
        check_equal(selves(top(server)), {"work": 10, "wait": 20}, "all")
        for span, expected in zip(spans, ({"work": 10}, {"wait": 20})):
            check_equal(selves(top(server, span=span.hex())), expected, "a span")
        check_equal(selves(top(server, trace=trace.hex())), {"work": 10, "wait": 20}, "the trace")
        check_equal(server.get("top?span=" + "f" * 16).status, 404, "another span")


main()
