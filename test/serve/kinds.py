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
from server_process import ROOT, running  # noqa: E402
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


main()
