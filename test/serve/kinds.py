"""Kinds of profiles: a service that sends several of them, and how each is added up over time. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import contextlib
import gzip
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from protobuf_wire import field, fields, push_series, varint  # noqa: E402
from random_series import HEAP, ask, pprof, random_profiles, random_question, selves, send, send_series  # noqa: E402
from server_process import ROOT, Server, chunk_envelope, running, seal, wait_for_roll_ups  # noqa: E402
from tap import case, check, check_equal, main, short, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
TRIALS = ROOT / "test/data/trials/server"
NOW = int(time.time())
BOUNDARY = "5f2c9b4e7d"
LOCKS = [("contentions", "count"), ("delay", "nanoseconds")]


def top(server, **query):
    return server.read("top?" + urllib.parse.urlencode(query))


def total(server, **query):
    return top(server, **query)["total"]


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
        check_equal([one["samples"] for one in server.read("chunks?service=shop&type=inuse_space")["chunks"]], [6], "chunks of a kind")
        check_equal([one["samples"] for one in server.read("services?type=cpu")["services"]], [42], "services with a kind")
        check_equal(sum(server.read("activity?type=goroutine&from=2026-11-27T00:00:00Z&to=2026-11-28T00:00:00Z")["services"][0]["samples_by_time"]), 5, "activity of a kind")
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


@case
def profiles_with_some_of_the_columns_of_another_are_of_other_kinds():
    with running(OFFBEAT) as server:
        send(server, pprof([("samples", "count"), ("cpu", "nanoseconds")], {("main", "work"): (4, 40_000_000)}, NOW - 30, 10), service="shop")
        send(server, pprof([("cpu", "nanoseconds")], {("main", "other"): (5_000_000,)}, NOW - 20, 10), service="shop")
        check_equal(total(server, service="shop", type="cpu"), 45_000_000, "CPU time of both")
        check_equal(top(server, service="shop", type="cpu:samples")["total"], 4, "samples of the one that has them")
        check_equal(len(server.read("chunks?service=shop&type=cpu:samples")["chunks"]), 1, "chunks with samples")


def form(**parts):
    body = b"".join(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'.encode() + data + b"\r\n"
                    for name, data in parts.items())
    return body + f"--{BOUNDARY}--\r\n".encode()


@case
def clients_say_what_profiles_are_called_and_what_is_cumulative():
    locks = {i: pprof(LOCKS, {("main", "wait"): (i, 100 * i)}, NOW - 100 + i) for i in (1, 3, 7)}
    with running(OFFBEAT) as server:
        key = {"Authorization": f"Bearer {server.key}"}
        for name, config in (("delta", '{"contentions": {"units": "lock_samples", "display-name": "mutex_count"}, "delay": {"display-name": "mutex_duration"}}'),
                             ("total", '{"contentions": {"display-name": "block_count", "cumulative": true}, "delay": {"cumulative": true}}')):
            for i, body in locks.items():  # as pyroscope-go sends, all of them at intervals of 15 s
                query = urllib.parse.urlencode({"name": name + "{region=eu}", "from": NOW - 150 + 15 * i, "until": NOW - 135 + 15 * i, "spyName": "gospy"})
                answer = server.request("POST", f"/ingest?{query}", form(sample_type_config=config.encode(), profile=body),
                                        key | {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
                check_equal(answer.status, 200, f"{name}: {answer.body}")
        for service, kind, rule, expected in (("delta", "mutex:delay", "sum", 1100), ("total", "block:delay", "difference", 600)):
            answer = top(server, service=service)
            check_equal((answer["kind"]["name"], answer["kind"]["rule"], answer["total"]), (kind, rule, expected), service)
        series = [({"service_name": "alloy", "instance": host, "__name__": name} | labels, [(body, "") for body in locks.values()])
                  for host in ("a", "b") for name, labels in (("mutex", {}), ("block", {}), ("godeltaprof_mutex", {"__delta__": "false", "kind": "delta"}))]
        answer = server.request("POST", "/push.v1.PusherService/Push", fields(1, [push_series(*one) for one in series]), key | {"Content-Type": "application/proto"})
        check_equal(answer.status, 200, f"push: {answer.body}")
        check_equal(total(server, service="alloy", type="block"), 2 * 600, "block of two processes")
        series = [({"service_name": "zones", "zone": zone, "__name__": "block"}, [(body, "") for body in locks.values()]) for zone in "ab"]
        answer = server.request("POST", "/push.v1.PusherService/Push", fields(1, [push_series(*one) for one in series]), key | {"Content-Type": "application/proto"})
        check_equal((answer.status, total(server, service="zones", type="block")), (200, 2 * 600), "processes that labels tell apart")
        check_equal(total(server, service="alloy", type="mutex", host="a"), 600 + 1100, "mutex, cumulative and not, of one process")
        for kind in ("gpu", "cpu"):
            send(server, pprof([("cpu", "nanoseconds")], {("main",): (5,)}, NOW - 10, 1), service="own", kind=kind)
        check_equal({one["name"] for one in server.read("types?service=own")["types"]}, {"cpu", "gpu:cpu"}, "a name of the sender's own")


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
        trend = server.read(f"trend?service=shop&type=mutex&from={NOW - 1000}&to={NOW}&buckets=10")
        check_equal((trend["kind"]["profiles"], trend["kind"]["series"], trend["kind"]["restarts"]), (5, 1, 1), "kind of the trend")
        check_equal(trend["totals"], [0, 500, 2500, 307, 600, 0, 0, 0, 0, 0], "parts of the time")
        send(server, pprof(LOCKS, {("main", "sync.(*Mutex).Unlock"): (5, 50)}, NOW - 20, duration=10), service="shop", host="a")
        check_equal(total(server, service="shop", type="mutex", **{"from": NOW - 50}), 50, "a profile of a duration")


def without_payloads(folder):
    """What sums do not have is not there any more."""
    for data in pathlib.Path(folder).glob("20*.db"):
        with contextlib.closing(sqlite3.connect(data)) as database:
            database.execute("DELETE FROM chunk_raw")
            database.commit()
        seal(data)


# --- Tags -------------------------------------------------------------------------------------------------------------


def labelled(function, value, seconds, *label_sets):
    """CPU time of FUNCTION, for each set of labels: a number or text for each key."""
    strings = ["", "cpu", "nanoseconds", function, *dict.fromkeys(word for labels in label_sets for pair in labels.items() for word in pair if isinstance(word, str))]

    def label(key, word):
        return field(1, strings.index(key)) + (field(3, word) if isinstance(word, int) else field(2, strings.index(word)))
    return gzip.compress(field(1, field(1, 1) + field(2, 2)) +
                         b"".join(field(2, field(1, varint(1)) + field(2, varint(value)) + fields(3, [label(*pair) for pair in labels.items()]))
                                  for labels in label_sets) +
                         field(4, field(1, 1) + field(4, field(1, 1))) + field(5, field(1, 1) + field(2, 3)) + fields(6, strings) + field(9, seconds * 10 ** 9))


def send_labelled(server):
    for i in range(20):
        region, at = ("eu", "us")[i % 2], NOW - 100 - 60 * i
        send(server, labelled(f"work_{region}", 1 << i, at, {"region": region, "pod": f"shop-{i % 4}"}), service="plain")
        send(server, labelled(f"work_{region}", 1 << i, at, {"region": region, "bytes": 64}, {"region": region, "bytes": 65}), service="sized")
        send(server, labelled("work", 1 << i, at, {"region": region, "trace": f"{i:032x}"}), service="traced")


def sum_where(condition, factor=1):
    return factor * sum(1 << i for i in range(20) if condition(i))


TAGS = [("plain", "tag_focus=region=eu", sum_where(lambda i: i % 2 == 0)), ("plain", "tag_focus=pod=shop-[12]", sum_where(lambda i: i % 4 in (1, 2))),
        ("plain", "tag_ignore=pod=shop-0", sum_where(lambda i: i % 4)), ("plain", "tag_focus=region=eu&tag_ignore=pod=shop-0", sum_where(lambda i: i % 4 == 2)),
        ("sized", "tag_focus=region=us", sum_where(lambda i: i % 2, 2)), ("traced", "tag_focus=region=eu", sum_where(lambda i: i % 2 == 0))]


@case
def tags_that_whole_profiles_have_choose_sums():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, f"{folder}/data")
        send_labelled(server)

        def check_tags():
            for service, query, expected in TAGS:
                check_equal(server.read(f"top?service={service}&type=cpu&{query}")["total"], expected, f"{service}, {query}")
            check_equal(server.get("top?service=plain&tag_focus=region=asia").status, 404, "a region that is nowhere")
        check_tags()
        check_equal(server.read("tags?service=plain")["tags"], [{"name": "pod", "values": [f"shop-{i}" for i in range(4)], "is_cut": False},
                                                               {"name": "region", "values": ["eu", "us"], "is_cut": False}], "tags")
        check_equal([one["name"] for one in server.read("tags?service=traced")["tags"]], ["region"], "tags without ids")
        for query, expected in (("sized&tag_focus=bytes=65b:", sum_where(lambda i: True)), ("traced&tag_focus=trace=00000013$", 1 << 19),
                                ("plain&tag_focus=eu", sum_where(lambda i: i % 2 == 0))):
            check_equal(server.read(f"top?service={query}")["total"], expected, query)
        check_equal(server.stop(), 0, "exit status")
        without_payloads(f"{folder}/data")
        server = Server(OFFBEAT, f"{folder}/data")
        check_tags()
        labels = [line.strip() for line in subprocess.run([OFFBEAT, "tags", f"{server.url}?service=plain"], capture_output=True, text=True, timeout=60).stdout.splitlines()]
        check(any("shop-3" in line for line in labels), f"tags of the file: {labels}")
        server.end()


# --- A second implementation ------------------------------------------------------------------------------------------

QUERIES = int(sys.argv[2]) if len(sys.argv) > 2 else 100
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 32)


@case
def random_series_have_the_answers_of_a_second_implementation():
    print(f"# seed {SEED}, {QUERIES} queries")
    numbers = random.Random(SEED)
    profiles = random_profiles(numbers, NOW)
    times = [at for of_host in profiles.values() for at, _ in of_host]
    with tempfile.TemporaryDirectory() as folder:
        for has_rolled_up in (False, True):
            with running(OFFBEAT, data=folder) as server:
                if has_rolled_up:
                    wait_for_roll_ups(server)
                else:
                    send_series(server, profiles)
                for _ in range(QUERIES // 2):
                    ask(server, profiles, *random_question(numbers, profiles))
                check_equal(server.stop(), 0, "exit status")
        without_payloads(folder)
        with running(OFFBEAT, data=folder) as server:  # from sums alone
            for end in times[::5]:
                ask(server, profiles, list(profiles), min(times), end)


# --- Times ------------------------------------------------------------------------------------------------------------


@case
def ingest_reads_times_in_each_unit():
    with running(OFFBEAT) as server:
        for power in (0, 3, 6, 9):
            query = urllib.parse.urlencode({"name": f"shop{power}.cpu", "from": (NOW - 10) * 10 ** power, "until": NOW * 10 ** power, "format": "folded"})
            check_equal(server.request("POST", f"/ingest?{query}", b"a;b 3\n", {"Authorization": f"Bearer {server.key}"}).status, 200, str(power))
            one, = server.read(f"chunks?service=shop{power}&seconds=600")["chunks"]
            check_equal((one["start"], one["end"]), tuple(time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(NOW - ago)) for ago in (10, 0)), str(power))


@case
def ingest_reads_other_forms_of_times_and_rejects_the_rest():
    with running(OFFBEAT) as server:
        now = int(time.time())
        utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 60))
        for number, (begin, ago) in enumerate((("now-1m", 60), ("now", 0), (utc, 60), (f"{now - 60}.5", 60), ("", 0), ("abc", None), (-5, None), ("now-1x", None), ("now-", None),
                                               ("now-999999999d", None), (now * 10 ** 12, None), ("9" * 30, None), (f"{now}x", None))):
            query = urllib.parse.urlencode({"name": f"shop{number}.cpu", "from": begin, "until": "", "format": "folded"})
            answer = server.request("POST", f"/ingest?{query}", b"a;b 3\n", {"Authorization": f"Bearer {server.key}"})
            check_equal(answer.status, 400 if ago is None else 200, f"status of {begin}: {answer.body}")
            if ago is not None:
                check_equal(len(server.read(f"chunks?service=shop{number}&from={now - ago - 1}&to={now + 600 if ago == 0 else now - ago + 60}")["chunks"]), 1, f"time of {begin}")


@case
def names_of_types_at_the_end_of_an_application():
    with running(OFFBEAT) as server:
        for name, service, kind in (("shop.goroutine", "shop", "goroutine"), ("shop.goroutines", "shop", "goroutines"), ("shop.alloc_outside_tlab_bytes", "shop", "alloc_outside_tlab_bytes"),
                                    ("shop.live.cpu", "shop.live", "cpu"), ("my.shop", "my.shop", None), (".cpu", ".cpu", None), ("cpu", "cpu", None)):
            query = urllib.parse.urlencode({"name": name, "from": NOW - 10, "until": NOW, "format": "folded", "units": "objects"})
            check_equal(server.request("POST", f"/ingest?{query}", b"a;b 3\n", {"Authorization": f"Bearer {server.key}"}).status, 200, name)
            types = {one["name"] for one in server.read("types?" + urllib.parse.urlencode({"service": service}))["types"]}
            check(types and (kind is None or kind in types), f"{name}: {types}")


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
