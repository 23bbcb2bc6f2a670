"""`offbeat serve`, the program itself: what it accepts, stores and answers. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import collections
import contextlib
import datetime
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import ROOT, Server, chunk, chunk_envelope, envelope, item, running, seal  # noqa: E402
from fixtures import REAL  # noqa: E402
from tap import case, check, check_equal, leave_out, main, short, skip  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
OFFBEAT = BUILD / "offbeat"
IS_ASAN = "libasan" in subprocess.run(["ldd", OFFBEAT], capture_output=True, text=True).stdout
READ_ROUTES = ("profile.pb.gz", "export?format=collapsed", "top", "flame", "diff", "flamechart?profiler=1", "chunks", "raw?chunk=1",
               "services", "environments", "releases", "hosts", "platforms", "sessions", "transactions", "spans", "rejected",
               "outcomes")


def total_of(server, query=""):
    return server.read(f"top?{query}")["total"]


def tool(program):
    path = shutil.which(program)
    if not path:
        skip(f"{program} is not installed")
    return path


# --- Start ------------------------------------------------------------------------------------------------------------


@case
def creates_a_private_folder_and_a_project_once():
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/a/data"
        server = Server(OFFBEAT, data)
        check_equal(stat.S_IMODE(os.stat(data).st_mode), 0o700, "mode of the folder")
        key, token = server.key, server.token
        check_equal(server.send(chunk_envelope(1)).status, 200, "status")
        check_equal(server.stop(), 0, "exit status")
        server = Server(OFFBEAT, data)
        check_equal((server.key, server.token), (key, token), "key and token")
        check_equal(server.chunk_numbers(), [1], "chunks")
        check_equal(server.stop(), 0, "exit status")


@case
def rejects_network_addresses_without_keys_and_open_folders():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([OFFBEAT, "serve", "--data", folder, "--listen", "0.0.0.0:0"], capture_output=True, text=True, timeout=30)
        check_equal(done.returncode, 2, "exit status")
        check("add-project" in done.stderr, done.stderr)
        server = Server(OFFBEAT, folder)
        done = subprocess.run([OFFBEAT, "serve", "--data", folder, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=30)
        check_equal((done.returncode, "another process" in done.stderr), (3, True), done.stderr)
        server.stop()


# --- Ingest -----------------------------------------------------------------------------------------------------------


@case
def decompresses_every_encoding_of_the_protocol():
    with running(OFFBEAT) as server:
        payloads = [json.dumps(chunk(number)).encode() for number in range(8)]
        envelopes = [envelope(item("profile_chunk", payload, platform="python")) for payload in payloads]
        bodies = {"gzip": gzip.compress(envelopes[1]), "deflate": zlib.compress(envelopes[2]),
                  "identity": envelopes[3], "": envelopes[4], "UTF-8": envelopes[5]}
        for number, program in enumerate(("brotli", "zstd"), 6):
            path = tool(program)
            bodies["br" if program == "brotli" else "zstd"] = subprocess.run([path, "-c"], input=envelopes[number], check=True,
                                                                             capture_output=True).stdout
        for encoding, body in bodies.items():
            answer = server.send(body, **{"Content-Encoding": encoding})
            check_equal((answer.status, answer.json()), (200, {}), f"answer to {encoding!r}")
        check_equal(server.send(b"\0\1\2", **{"Content-Encoding": "gzip"}).status, 400, "status of broken gzip")
        check_equal(server.send(chunk_envelope(9), **{"Content-Encoding": "lzma"}).status, 400, "status of lzma")
        check_equal(server.chunk_numbers(), list(range(1, 8)), "chunks")
        for number in range(1, 8):
            check(server.payload(number) == payloads[number], f"chunk {number} is stored differently")


@short
@case
def accepts_each_form_of_authentication_and_no_two():
    with running(OFFBEAT) as server:
        path, key = "/api/1/envelope/", server.key
        header = f"Sentry sentry_version=7, sentry_key={key}"
        dsn = server.dsn
        forms = (({"X-Sentry-Auth": header}, "", {}, 200), ({"Authorization": header}, "", {}, 200),
                 ({"X-Sentry-Auth": f"sentry sentry_key={key.upper()},sentry_version=7"}, "", {}, 200),
                 ({}, f"?sentry_key={key}&sentry_version=7", {}, 200), ({}, "", {"dsn": dsn}, 200),
                 ({"X-Sentry-Auth": header}, "", {"dsn": dsn}, 200),
                 ({}, "", {}, 401), ({"X-Sentry-Auth": header}, f"?sentry_key={key}", {}, 401),
                 ({"X-Sentry-Auth": header}, "", {"dsn": dsn.replace(key, "f" * 32)}, 400),
                 ({"X-Sentry-Auth": header}, "", {"dsn": dsn[:-1] + "7"}, 400),
                 ({"X-Sentry-Auth": "Sentry sentry_key=short"}, "", {}, 400),
                 ({"X-Sentry-Auth": "Sentry sentry_key=" + "f" * 32}, "", {}, 403))
        for number, (headers, query, attributes, expected) in enumerate(forms):
            one = item("profile_chunk", chunk(number), platform="python")
            answer = server.request("POST", path + query, envelope(one, **attributes), headers)
            check_equal(answer.status, expected, f"status of {headers} {query} {attributes}: {answer.body}")
            check_equal(list(answer.json()), [] if expected == 200 else ["detail"], f"members of the answer to {headers} {query} {attributes}")
        check_equal(server.chunk_numbers(), [number for number, form in enumerate(forms) if form[3] == 200], "chunks")
        check_equal(server.request("POST", "/api/2/envelope/", envelope(), server.auth()).status, 403, "status of another project")
        check_equal(server.request("POST", "/api/0/envelope/", envelope(), server.auth()).status, 400, "status of project 0")
        check_equal(server.request("POST", "/api/x/envelope/", envelope(), server.auth()).status, 400, "status of project x")


@case
def answers_as_the_protocol_says():
    with running(OFFBEAT) as server:
        event = "a" * 32
        answer = server.send(envelope(event_id=event))
        check_equal((answer.status, answer.json()), (200, {"id": event}), "answer with an id")
        check_equal(server.send(envelope()).json(), {}, "answer without one")
        check_equal(answer.headers["Access-Control-Allow-Origin"], "*", "origin")
        asked = server.request("OPTIONS", "/api/1/envelope/")
        check_equal(asked.status, 200, "status of OPTIONS")
        check("x-sentry-auth" in asked.headers["Access-Control-Allow-Headers"], str(asked.headers))
        check_equal(server.send(b"").status, 400, "status of no body")
        check_equal(server.send(b"{}\n{").status, 400, "status of broken framing")
        check_equal(server.send(envelope(item("profile_chunk", b"x" * 100, platform="python")[:-50])).status, 400, "status of a false length")
        two = envelope(item("profile_chunk", chunk(1), platform="python"), item("profile_chunk", chunk(2), platform="python"))
        check_equal(server.send(two).status, 413, "status of two chunks")
        check_equal(server.send(envelope(item("event", b"[]" + b" " * (2 << 20)))).status, 413, "status of a large event")
        check("detail" in server.send(two).json(), "an error has a detail")
        check_equal(server.send(envelope(item("unheard_of", b"x"))).status, 200, "status of an unknown item")
        check_equal(server.outcomes(), {("not_stored", "default", ""): 1}, "outcomes")


@case
def each_rejected_item_has_its_own_type_and_reason():
    with running(OFFBEAT) as server:
        bad = chunk(1)
        bad["profile"]["samples"][3]["stack_id"] = 99
        server.send(envelope(item("profile_chunk", bad, platform="python"), item("transaction", b"[1]"), item("span", b'"x"'), event_id="a" * 32))
        rejected = {one["type"]: one for one in server.read("rejected")["rejected"]}
        check_equal(sorted(rejected), ["profile_chunk", "span", "transaction"], "types")
        check_equal([rejected[kind]["bytes"] for kind in ("transaction", "span")], [3, 3], "sizes")
        check("stack" in rejected["profile_chunk"]["place"], rejected["profile_chunk"]["place"])
        check_equal({rejected[kind]["expected"] for kind in ("transaction", "span")}, {"a profile that can be stored"}, "what was expected")
        check_equal({one["sdk"] for one in rejected.values()}, {""}, "the SDK of an envelope that names none")


@case
def lists_rejected_items_with_reason_and_place():
    with running(OFFBEAT) as server:
        broken = chunk(1)
        broken["profile"]["samples"][3]["thread_id"] = 7
        check_equal(server.send(envelope(item("profile_chunk", broken, platform="python"))).status, 200, "status")
        check_equal(server.send(envelope(item("profile_chunk", b"{}", platform="python"))).status, 200, "status")
        rejected = server.read("rejected")["rejected"]
        check_equal([one["reason"] for one in rejected], ["profiling_invalid_json"] * 2, "reasons")
        check_equal((rejected[0]["place"], rejected[0]["found"], rejected[0]["type"]),
                    ("profile.samples[3].thread_id", "number", "profile_chunk"), "the first")
        check_equal(server.outcomes(), {("invalid", "profile_chunk", "profiling_invalid_json"): 2}, "outcomes")
        check_equal(server.read("chunks")["chunks"], [], "chunks")


@case
def stores_chunks_with_a_trace_as_they_came():
    trials = ROOT / "test/cli/data/trials"
    android = (trials / "android-trace-chunk.envelope").read_bytes().replace(b'"release"', b'"timestamp": 1.5, "release"')
    head, metadata = (trials / "perfetto-chunk.envelope").read_bytes().split(b"\n", 2)[1:]
    size = json.loads(head)["meta_length"]
    metadata = metadata[:size].replace(b"3e11a5c9", b"3e11a5ca")
    trace = b"\x0a\x03\x92\x04\x00"  # a packet with an empty sample of perf
    perfetto = b"{}\n" + head.replace(b'"length": 301', b'"length": %d' % (size + len(trace))) + b"\n" + metadata + trace
    with running(OFFBEAT) as server:
        for body in (android, perfetto):
            check_equal(server.send(body).status, 200, "status")
        check_equal(server.read("rejected")["rejected"], [], "rejected")
        check_equal(server.outcomes(), {("accepted", "profile_chunk_ui", ""): 2}, "outcomes")
        server.send(envelope(item("profile_chunk", chunk(1), platform="python")))
        listed = server.read("chunks")["chunks"]
        check_equal(sorted(one["kind"] for one in listed), ["chunk", "trace", "trace"], "kinds")
        raw = {server.get(f"raw?chunk={one['chunk']}").body for one in listed if one["kind"] == "trace"}
        check(all(any(stored.endswith(sent.split(b"\n", 2)[2].rstrip(b"\n")) for stored in raw) for sent in (android, perfetto)), f"{raw}")
        for route in ("top", "flame", "services", "activity", "profile.pb.gz"):
            check_equal(server.get(route).status, 200, route)


@short
@case
def stores_a_chunk_that_is_sent_again_once():
    with running(OFFBEAT) as server:
        payload = json.dumps(chunk(1)).encode()
        for _ in range(3):
            answer = server.send(envelope(item("profile_chunk", payload, platform="python")))
            check_equal((answer.status, answer.json()), (200, {}), "answer")
        check_equal((server.chunk_numbers(), server.payload(1)), ([1], payload), "chunks")


def real_requests():
    for path in sorted((REAL / "envelopes").glob("*/*.headers.json")):
        request = json.loads(path.read_text(encoding="utf-8"))
        if "/envelope" in request["target"] and request["method"] == "POST":
            yield path, request


def expected_items(raw, encoding):
    """[(type, payload)] of the profiles in an envelope that was recorded."""
    if encoding in ("br", "zstd"):
        program = {"br": ["brotli", "-dc"], "zstd": ["zstd", "-dc"]}[encoding]
        raw = subprocess.run(program, input=raw, capture_output=True, check=True).stdout
    elif encoding == "gzip":
        raw = gzip.decompress(raw)
    elif encoding == "deflate":
        raw = zlib.decompress(raw)
    place, items = raw.index(b"\n") + 1, []
    while place < len(raw):
        end = raw.find(b"\n", place)
        header = json.loads(raw[place:end])
        size = header.get("length", (raw + b"\n").index(b"\n", end + 1) - end - 1)
        items.append((header["type"], raw[end + 1:end + 1 + size]))
        place = end + 2 + size
    return items


def is_accepted(payload):
    with tempfile.NamedTemporaryFile() as file:
        file.write(payload)
        file.flush()
        return subprocess.run([OFFBEAT, "validate", file.name], capture_output=True, check=False).returncode == 0


@short
@case
def real_envelopes_are_answered_stored_exactly_and_counted():
    """Every recorded request, with its own headers but the key of this server."""
    sent, rejected, payloads, counts = 0, 0, {}, collections.Counter()
    with running(OFFBEAT) as server:
        for path, request in real_requests():
            headers = {name: value for name, value in request["headers"]
                       if name.lower() not in ("host", "content-length", "transfer-encoding", "connection", "expect")}
            raw = path.with_name(path.name.replace(".headers.json", ".raw")).read_bytes()
            target = re.sub(r"/api/\d+/", "/api/1/", request["target"])
            target = re.sub(r"sentry_key=[^&]*", f"sentry_key={server.key}", target)
            headers = {name: re.sub(r"sentry_key=[^,]*", f"sentry_key={server.key}", value) for name, value in headers.items()}
            encoding = next((value for name, value in headers.items() if name.lower() == "content-encoding"), "")
            items = expected_items(raw, encoding)
            if b'"dsn"' in (zlib.decompress(raw, 47) if encoding == "gzip" else raw)[:2000].split(b"\n")[0]:
                headers.pop("Content-Encoding", None)
                headers.pop("content-encoding", None)
                plain = gzip.decompress(raw) if encoding == "gzip" else raw
                first, rest = plain.split(b"\n", 1)
                raw = json.dumps(json.loads(first) | {"dsn": server.dsn}).encode() + b"\n" + rest
            answer = server.request("POST", target, raw, headers)
            check_equal(answer.status, 200, f"status of {path.parent.name}/{path.name}: {answer.body}")
            check(list(answer.json()) in ([], ["id"]), f"answer to {path.parent.name}/{path.name}: {answer.body}")
            sent += 1
            counts.update(kind for kind, _ in items)
            for kind, payload in items:
                if kind in ("profile", "profile_chunk", "profile_chunk_ui"):
                    payloads[json.loads(payload).get("chunk_id" if kind != "profile" else "event_id", "").replace("-", "")] = payload
        check(sent > 0, f"no requests in {REAL}")
        stored = server.read("chunks")["chunks"]
        rejected = server.read("rejected")["rejected"]
        print("#", rejected)
        accepted = {identifier: payload for identifier, payload in payloads.items() if is_accepted(payload)}
        check_equal(sorted(one["chunk"] for one in stored), sorted(accepted), "chunks that are stored")
        check_equal(len(rejected), len(payloads) - len(accepted), "rejected items")
        for identifier, payload in accepted.items():
            check(server.get(f"raw?chunk={identifier}").body == payload, f"{identifier} is stored differently")
        outcomes = collections.Counter()
        for (outcome, category, _), quantity in server.outcomes().items():
            outcomes[outcome, category] += quantity
        check_equal(outcomes["accepted", "transaction"], counts["transaction"], "transactions")
        kinds = {"profile": counts["profile"], "profile_chunk": counts["profile_chunk"]}
        for category, count in kinds.items():
            categories = (category, "profile_chunk_ui") if category == "profile_chunk" else (category,)
            found = sum(outcomes[outcome, name] for outcome in ("accepted", "invalid") for name in categories)
            check_equal(found, count, f"items of {category}")
        print(f"# {sent} requests, {len(stored)} profiles, outcomes {server.outcomes()}")


@case
def totals_of_real_chunks_equal_sentrys_backend():
    """Per thread and function, as top prints them: vroom's numbers."""
    compared = 0
    with running(OFFBEAT) as server:
        for path in sorted((REAL / "expected").glob("*.vroom.json")):
            directory, number = path.name.split(".vroom.json")[0].rsplit(".", 1)
            raw = REAL / "envelopes" / directory / f"{number}.raw"
            if not number.isdigit() or not raw.is_file():
                continue
            headers = json.loads(raw.with_name(f"{number}.headers.json").read_text(encoding="utf-8"))["headers"]
            encoding = next((value for name, value in headers if name.lower() == "content-encoding"), "")
            chunks = [payload for kind, payload in expected_items(raw.read_bytes(), encoding) if kind.startswith("profile_chunk")]
            if len(chunks) != 1:
                continue
            payload = json.loads(chunks[0])
            check_equal(server.send(envelope(item("profile_chunk", chunks[0], platform=payload["platform"]))).status, 200, "status")
            threads = server.read(f"top?by=thread&chunk={payload['chunk_id'].replace('-', '')}")["threads"]
            expected = json.loads(path.read_text(encoding="utf-8"))["threads"]
            for thread, values in expected.items():
                ours = {one["name"]: one["self"] for one in threads.get(thread, {}).get("functions", [])}
                check_equal(sum(ours.values()), sum(one["self_ns"] for one in values["functions"]), f"{path.name}: sum of thread {thread}")
            compared += 1
    check(compared > 0, f"nothing to compare in {REAL}")
    print(f"# {compared} chunks")


@case
def profiles_of_other_formats_are_uploaded_with_labels():
    with running(OFFBEAT) as server, tempfile.TemporaryDirectory() as folder:
        collapsed = pathlib.Path(folder, "x.collapsed")
        collapsed.write_text("main;work 30\nmain;rest 12\n", encoding="utf-8")
        subprocess.run([OFFBEAT, "convert", collapsed, "-o", f"{folder}/x.pb.gz"], check=True, capture_output=True)
        query = "service=shop&environment=prod&release=2&host=h1"
        for name in ("x.collapsed", "x.pb.gz"):
            sent = pathlib.Path(folder, name).read_bytes()
            answer = server.upload(sent, query)
            check_equal((answer.status, list(answer.json())), (200, ["id"]), f"answer to {name}: {answer.body}")
            identifier = answer.json()["id"]
            check(server.get(f"raw?chunk={identifier}").body == sent, f"{name} is stored differently")
            one, = server.read(f"chunks?chunk={identifier}")["chunks"]
            check_equal([one[key] for key in ("kind", "service", "environment", "release", "host", "samples")],
                        ["file", "shop", "prod", "2", "h1", 2], f"chunk of {name}")
        check_equal(total_of(server, "service=shop&host=h1&release=2"), 84, "total")
        check_equal(server.get("top?service=other").status, 404, "status for another service")
        check_equal(server.upload(b"nothing that is known \1").status, 400, "status of nonsense")
        check_equal(server.upload(b"").status, 400, "status of nothing")


@case
def transactions_spans_and_client_reports_are_kept():
    with running(OFFBEAT) as server:
        now = time.time()
        transaction = {"type": "transaction", "event_id": "b" * 32, "transaction": "GET /", "release": "shop@1", "environment": "test",
                       "start_timestamp": now - 1, "timestamp": now, "platform": "python",
                       "contexts": {"trace": {"trace_id": "c" * 32, "span_id": "d" * 16, "op": "http",
                                              "data": {"thread.id": "1"}}, "profile": {"profiler_id": "e" * 32}},
                       "spans": [{"span_id": "1" * 16, "trace_id": "c" * 32, "start_timestamp": now - 1, "timestamp": now - 0.5, "op": "db"}]}
        report = {"discarded_events": [{"reason": "queue_overflow", "category": "profile_chunk", "quantity": 3}]}
        check_equal(server.send(envelope(item("transaction", transaction), item("client_report", report), event_id="b" * 32)).status, 200, "status")
        found = server.read("transactions")["transactions"]
        check_equal([(one["name"], one["profiler"], one["thread"], one["service"]) for one in found], [("GET /", "e" * 32, "1", "shop")], "transactions")
        check_equal(len(server.read("spans")["spans"]), 2, "spans")
        check_equal(server.outcomes()[("client_discard", "profile_chunk", "queue_overflow")], 3, "discarded")


# --- Queries ----------------------------------------------------------------------------------------------------------


@short
@case
def an_aggregate_is_the_sum_of_all_chunks_and_ranges_add_up():
    with running(OFFBEAT) as server:
        start, count = 1_736_928_000.0, 40
        for number in range(count):
            check_equal(server.send(chunk_envelope(number, start=start + number, profiler=number + 1)).status, 200, "status")
        expected = count * 190_000_000
        total = total_of(server, "service=shop")
        check(abs(total - expected) <= 1000 * count, f"total {total}, expected {expected}")
        middle = start + 20.095
        parts = [total_of(server, query) for query in (f"to={middle}", f"from={middle}")]
        check(abs(sum(parts) - total) <= 2, f"{parts} do not add up to {total}")
        functions = {one["name"]: one["self"] for one in server.read("top")["functions"]}
        check_equal(sum(functions.values()), total, "sum of self")
        check_equal([one["name"] for one in server.read("services")["services"]], ["shop"], "services")
        check_equal(len(server.read("sessions")["sessions"]), count, "sessions")
        check_equal(len(server.read("sessions?limit=5")["sessions"]), 5, "sessions with a limit")
        flame = server.read("flame")
        check_equal((flame["total"], flame["boxes"][0]["total"]), (total, total), "total of the flame graph")


@case
def activity_counts_the_samples_of_each_service_by_time():
    starts = {"b": (0, 10), "a": (0, 30), "ab": (20,), "a-": (10, 11, 12), "": (30,)}  # seconds after the start
    begun = 1_736_928_000
    with running(OFFBEAT) as server:
        numbers = iter(range(1, 100))
        for service, times in starts.items():
            for seconds in times:
                server.send(chunk_envelope(next(numbers), start=begun + seconds, release=service + "@1" if service else "1"))
        found = {one["name"]: one for one in server.read(f"activity?buckets=4&from={begun}&to={begun + 40}")["services"]}
        for service, times in starts.items():
            expected = [20 * sum(seconds // 10 == part for seconds in times) for part in range(4)]
            one = found.pop(service)
            check_equal((one["samples_by_time"], one["chunks"], one["samples"]), (expected, len(times), sum(expected)), f"activity of {service!r}")
        check_equal(found, {}, "other services")


@case
def random_queries_agree_with_a_plain_implementation():
    """A second implementation decodes every chunk; ranges cut chunks, filters choose services and environments."""
    import random
    random_numbers = random.Random(18)
    chunks = []
    with running(OFFBEAT) as server:
        for number in range(30):
            release = f"s{random_numbers.randrange(3)}@{random_numbers.randrange(2)}"
            one = chunk(number, start=1_736_928_000 + random_numbers.randrange(0, 20), release=release, profiler=number + 1,
                        samples=random_numbers.randrange(2, 60))
            chunks.append(one)
        for one in random_numbers.sample(chunks * 2, 60):
            check_equal(server.send(envelope(item("profile_chunk", one, platform="python"))).status, 200, "status")
        for _ in range(150):
            start = 1_736_928_000 * 10**9 + random_numbers.randrange(0, 22 * 10**9)
            end = start + random_numbers.randrange(1, 8 * 10**9)
            service = random_numbers.choice(("", "s0", "s1", "s2"))
            expected = plain_sum(chunks, start, end, service)
            query = f"top?from={start / 10**9:.9f}&to={end / 10**9:.9f}&service={service}"
            answer = server.get(query)
            total = answer.json()["total"] if answer.status == 200 else 0
            check(abs(total - expected) < 2000 * len(chunks), f"{query}: {total}, expected {expected}")


def plain_sum(chunks, start, end, service):
    total = 0
    for one in chunks:
        if service and one["release"].split("@")[0] != service:
            continue
        times = [int(sample["timestamp"] * 1e9) for sample in one["profile"]["samples"]]
        total += sum(max(0, min(after, end) - max(before, start)) for before, after in zip(times, times[1:]))
    return total


@case
def a_flamechart_is_stitched_across_chunks_and_cut_to_a_range():
    with running(OFFBEAT) as server:
        start = 1_736_928_000.0
        for number in range(3):
            check_equal(server.send(chunk_envelope(number, start=start + number * 0.2)).status, 200, "status")
        chart = server.read(f"flamechart?profiler={1:032x}&thread=1")
        root = chart["boxes"][0]
        check(abs(root["duration_ns"] - 590_000_000) < 1000, f"duration {root['duration_ns']}")
        mains = [box for box in chart["boxes"] if box["depth"] == 1]
        check_equal([box["name"] for box in mains], ["main"], "outermost boxes: one, across the chunks")
        works = [box for box in chart["boxes"] if box["name"] == "work"]
        check_equal(len(works), 3, "boxes of work")
        cut = server.read(f"flamechart?profiler={1:032x}&thread=1&from={start + 0.15}&to={start + 0.35}")
        check(abs(cut["boxes"][0]["duration_ns"] - 200_000_000) < 1000, f"duration of the cut {cut['boxes'][0]['duration_ns']}")
        check_equal(server.get("flamechart").status, 400, "status without a profiler")


@case
def a_flamechart_does_not_fill_the_time_of_a_chunk_that_is_missing():
    with running(OFFBEAT) as server:
        start = 1_736_928_000.0
        for number in (0, 1, 60):
            check_equal(server.send(chunk_envelope(number, start=start + number * 0.2)).status, 200, "status")
        chart = server.read(f"flamechart?profiler={1:032x}&thread=1")
        check(abs(sum(box["duration_ns"] for box in chart["boxes"] if box["depth"] == 1) - 580_000_000) < 1000, f"boxes: {chart['boxes']}")


@case
def a_file_whose_clock_is_the_time_since_a_start_ends_when_it_is_received():
    with running(OFFBEAT, "--keep", "14") as server:  # a file of 1970 would be too old
        text = "".join(f"work  100 {3224 + i / 10:.6f}:   100000000 cpu-clock: \n\t  1000 work{i // 10}+0x0 (/bin/work)\n\n" for i in range(20))
        before = time.time()
        check_equal(server.upload(text.encode(), "service=perf").status, 200, "status")
        chunk = server.read("chunks?service=perf")["chunks"][0]
        start, end = (datetime.datetime.fromisoformat(chunk[name][:26].rstrip("Z") + "+00:00").timestamp() for name in ("start", "end"))
        check(before - 0.001 < end < time.time() and abs(end - start - 1.9) < 0.001, f"{chunk}")
        check_equal(server.read("top?service=perf&seconds=60")["total"], 2_000_000_000, "total")
        later = {one["name"] for one in server.read(f"top?service=perf&from={start + 1.05}")["functions"]}
        check_equal(later, {"work1"}, "functions of the second half")
        check("work1" in server.get(f"flamechart?chunk={chunk['chunk']}&thread=100").body.decode(), "the flamechart of the file")


@case
def a_sample_without_a_time_does_not_move_the_others():
    """It has time 0; the others have dates, which stay."""
    with running(OFFBEAT, "--keep", "14") as server:
        start = int(time.time()) - 100
        text = "".join(f"work  100 {moment:.6f}:   100000000 cpu-clock: \n\t  1000 work{i}+0x0 (/bin/work)\n\n"
                       for i, moment in enumerate((0, start, start + 50, start + 60)))
        check_equal(server.upload(text.encode(), "service=perf").status, 200, "status")
        chunk = server.read("chunks?service=perf")["chunks"][0]
        times = [datetime.datetime.fromisoformat(chunk[name][:26].rstrip("Z") + "+00:00").timestamp() - start for name in ("start", "end")]
        check(abs(times[0]) < 0.001 and abs(times[1] - 60) < 0.001, f"{chunk}")
        later = {one["name"] for one in server.read(f"top?service=perf&from={start + 55}")["functions"]}
        check_equal(later, {"work2", "work3"}, "functions of the end")


@case
def a_diff_names_what_grew():
    with running(OFFBEAT) as server:
        server.send(chunk_envelope(1, start=1_736_928_000, release="shop@1"))
        server.send(chunk_envelope(2, start=1_736_928_100, release="shop@2", samples=60))
        diff = server.read("diff?service=shop&release=shop@2&base_release=shop@1")
        changes = {one["name"]: one for one in diff["functions"]}
        work = changes["work"]
        check_equal([work["change"]] + [round(work[side]["self"] / 1e6) for side in ("base", "new")], ["grown", 90, 290], "work")


@case
def go_tool_pprof_reads_ranges_and_their_difference():
    go = tool("go")
    with running(OFFBEAT) as server, tempfile.TemporaryDirectory() as home:
        start = 1_736_928_000
        for number in range(10):
            server.send(chunk_envelope(number, start=start + number))
        environment = os.environ | {"HOME": home, "PPROF_TMPDIR": home}
        query = f"{server.url}?service=shop"
        done = subprocess.run([go, "tool", "pprof", "-top", "-unit=ms", query], capture_output=True, text=True, env=environment, timeout=120)
        check_equal(done.returncode, 0, f"pprof -top: {done.stderr}; status")
        check("1900ms" in done.stdout, done.stdout)
        base = [go, "tool", "pprof", "-top", f"-diff_base={query}&to={start + 5}", f"{query}&from={start + 5}"]
        done = subprocess.run(base, capture_output=True, text=True, env=environment, timeout=120)
        check_equal(done.returncode, 0, f"pprof -diff_base: {done.stderr}; status")
        done = subprocess.run([OFFBEAT, "top", "--json", query], capture_output=True, text=True, timeout=120)
        check_equal(json.loads(done.stdout)["total"], total_of(server), "total of offbeat top URL")
        nothing = subprocess.run([go, "tool", "pprof", "-top", f"{server.url}?service=none"], capture_output=True, text=True, env=environment, timeout=120)
        check(nothing.returncode != 0, "pprof of nothing")


@case
def exports_other_formats():
    with running(OFFBEAT) as server:
        server.send(chunk_envelope(1))
        for name in ("speedscope", "collapsed", "firefox", "sentry-v2", "pprof"):
            answer = server.get(f"export?format={name}")
            check_equal(answer.status, 200, f"status of {name}: {answer.body[:200]}")
            with tempfile.NamedTemporaryFile() as file:
                file.write(answer.body)
                file.flush()
                done = subprocess.run([OFFBEAT, "top", "--json", file.name], capture_output=True, text=True, timeout=60)
            functions = {one["name"]: round(one["self"] / 1e6) for one in json.loads(done.stdout)["functions"] if one["self"]}
            check_equal(functions, {"main": 100, "work": 90}, f"functions of {name}")
        check_equal(server.get("export?format=perf-script").status, 400, "status of a format that is only read")


# --- Access -----------------------------------------------------------------------------------------------------------


@case
def every_route_rejects_no_key_a_wrong_key_and_a_key_that_only_writes():
    with running(OFFBEAT) as server:
        server.send(chunk_envelope(1))
        wrong = ({}, {"Authorization": "Bearer " + "0" * 32}, {"Authorization": f"Bearer {server.key}"}, server.auth(),
                 {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer "}, {"Authorization": "Basic ?"},
                 {"Authorization": f"Bearer {server.token}x"})
        paths = [f"/api/1/{route}" for route in READ_ROUTES] + ["/api/projects", "/metrics"]
        for path in paths:
            for headers in wrong:
                answer = server.request("GET", path, headers=headers)
                check(answer.status in (401, 403), f"GET {path} with {headers}: {answer.status}")
                check(list(answer.json()) == ["detail"], f"GET {path} with {headers} answered {answer.body[:200]}")
        for route in ("envelope/", "profiles"):
            for headers in ({}, {"X-Sentry-Auth": "Sentry sentry_key=" + "0" * 32}, server.read_header(),
                            {"Authorization": f"Bearer {server.token}"}, {"X-Sentry-Auth": f"Sentry sentry_key={server.token}"}):
                answer = server.request("POST", f"/api/1/{route}", chunk_envelope(2), headers)
                check(answer.status in (401, 403), f"POST {route} with {headers}: {answer.status}")
            check_equal(server.request("POST", f"/api/2/{route}", chunk_envelope(2), server.auth()).status, 403, "status of another project")
        check_equal(len(server.read("chunks")["chunks"]), 1, "chunks")
        for path in ("/healthz", "/readyz", "/ready"):
            answer = server.request("GET", path)
            check_equal((answer.status, answer.json()), (200, {"status": "ok"}), f"answer of {path}")
        check_equal(server.request("GET", "/nothing", headers=server.read_header()).status, 404, "status of no route")
        check_equal(server.request("DELETE", "/api/1/chunks", headers=server.read_header()).status, 405, "status of DELETE")


@case
def metrics_are_prometheus_text():
    with running(OFFBEAT) as server:
        server.send(chunk_envelope(1))
        text = server.request("GET", "/metrics", headers=server.read_header()).body.decode()
        check(re.search(r"^offbeat_chunks_stored_total 1$", text, re.MULTILINE), text)
        check(re.search(r'^offbeat_answers_total\{code="200"\} 1$', text, re.MULTILINE), text)
        version = subprocess.run([OFFBEAT, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        for line in (f'offbeat_build_info{{version="{version}"}} 1', 'offbeat_project_chunks_total{project="1"} 1', 'offbeat_request_seconds_count{kind="ingest"} 1',
                     'offbeat_request_seconds_bucket{kind="ingest",le="+Inf"} 1', 'offbeat_project_rejected_total{project="1"} 0'):
            check(f"{line}\n" in text, f"{line} is not in {text}")
        types = re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)
        names = {re.sub(r"_(bucket|sum|count)$", "", re.match(r"\w+", line)[0]) if "request_seconds" in line else re.match(r"\w+", line)[0]
                 for line in text.splitlines() if not line.startswith("#")}
        check_equal((len(types), set(types) - names), (len(set(types)), set()), "each name has one type")


# --- Loss -------------------------------------------------------------------------------------------------------------


def send_until(server, acknowledged, numbers, stop):
    for number in numbers:
        if stop.is_set():
            return
        try:
            if server.send(chunk_envelope(number, start=1_736_928_000 + number)).status == 200:
                acknowledged.append(number)
        except OSError:
            return
        except Exception:
            return


@case
def every_acknowledged_chunk_survives_kill_9():
    rounds = int(os.environ.get("SERVE_KILLS", "8"))
    with tempfile.TemporaryDirectory() as folder:
        acknowledged = []
        for turn in range(rounds):
            server, stop = Server(OFFBEAT, folder), threading.Event()
            threads = [threading.Thread(target=send_until, args=(server, acknowledged, range((turn * 4 + k) * 1000, (turn * 4 + k) * 1000 + 1000), stop))
                       for k in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(0.1 + 0.05 * (turn % 7))
            server.kill()
            stop.set()
            for thread in threads:
                thread.join()
        server = Server(OFFBEAT, folder)
        found = []
        for turn in range(rounds):  # a list has at most 10000 entries
            start = 1_736_928_000 + turn * 4000
            answer = server.read(f"chunks?from={start - 0.5}&to={start + 3999.5}")
            check(not answer["is_cut"], "the list is cut")
            found += [int(one["chunk"], 16) for one in answer["chunks"]]
        check_equal(len(found), len(set(found)), "chunks that are there twice")
        check(set(acknowledged) <= set(found), f"lost: {sorted(set(acknowledged) - set(found))[:10]}")
        check(acknowledged, "nothing was acknowledged")
        server.stop()
        print(f"# {rounds} kills, {len(acknowledged)} chunks acknowledged, {len(found)} stored")


@short
@case
def sigterm_loses_nothing():
    with tempfile.TemporaryDirectory() as folder:
        acknowledged, stop = [], threading.Event()
        server = Server(OFFBEAT, folder)
        threads = [threading.Thread(target=send_until, args=(server, acknowledged, range(k * 1000, k * 1000 + 1000), stop)) for k in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.4)
        check_equal(server.stop(), 0, "exit status")
        stop.set()
        for thread in threads:
            thread.join()
        server = Server(OFFBEAT, folder)
        found = {int(one["chunk"], 16) for one in server.read("chunks")["chunks"]}
        check(set(acknowledged) <= found, "a chunk was lost")
        server.stop()


@case
def a_damaged_data_file_is_moved_aside_and_reported():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        server.send(chunk_envelope(1))
        server.stop()
        done = subprocess.run([OFFBEAT, "store", "check", "--data", folder], capture_output=True, text=True, timeout=60)
        check_equal((done.returncode, "no damage" in done.stderr), (0, True), done.stderr)
        data = next(pathlib.Path(folder).glob("2*.db"))
        data.write_bytes(b"no database at all" * 1000)
        done = subprocess.run([OFFBEAT, "store", "check", "--data", folder], capture_output=True, text=True, timeout=60)
        check_equal((done.returncode, "is damaged" in done.stderr), (1, True), done.stderr)
        server = Server(OFFBEAT, folder)
        check("is damaged; it was moved" in server.said(), server.said())
        check_equal(server.send(chunk_envelope(2)).status, 200, "status afterwards")
        check_equal(server.chunk_numbers(), [2], "chunks afterwards")
        server.stop()


@case
def an_answer_that_lacks_damaged_data_says_so():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        for number in range(2):
            server.send(chunk_envelope(number, start=1_700_000_000 + number))
        check("is_damaged" not in server.read("top"), "whole data")
        server.stop()
        data = next(pathlib.Path(folder).glob("2*.db"))
        with contextlib.closing(sqlite3.connect(data)) as database:
            database.execute("UPDATE chunk_raw SET payload=x'00' WHERE id=1")
            database.commit()
        seal(data)
        server = Server(OFFBEAT, folder)
        for route in ("top?by=thread&thread=1", "trend?from=1700000000.05", "flame?thread=1", f"flamechart?profiler={1:032x}&thread=1"):
            answer = server.get(route)
            check_equal((answer.status, answer.json().get("is_damaged"), answer.headers.get("X-Offbeat-Damaged")), (200, True, "true"), route)
        check_equal(server.get("profile.pb.gz?thread=1").headers.get("X-Offbeat-Damaged"), "true", "header of a pprof profile")
        check("is_damaged" not in server.read("top"), "sums need no payloads")
        check("is_damaged" not in server.read("chunks"), "lists need no payloads")
        server.stop()


@case
def the_repair_keeps_what_is_readable():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        for number in range(400):
            server.send(chunk_envelope(number, samples=200))
        server.stop()
        data = next(pathlib.Path(folder).glob("2*.db"))
        content = bytearray(data.read_bytes())
        check(len(content) > 20 * 16384, f"the file has {len(content)} bytes")
        content[-4 * 16384:-3 * 16384] = os.urandom(16384)
        data.write_bytes(content)
        done = subprocess.run([OFFBEAT, "store", "check", "--repair", "--data", folder], capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 1, f"exit status: {done.stderr}")
        server = Server(OFFBEAT, folder)
        check(len(server.read("chunks")["chunks"]) > 0, done.stderr)
        server.stop()


@case
def old_days_are_removed():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        server.send(chunk_envelope(1))
        server.stop()
        data = next(pathlib.Path(folder).glob("2*.db"))
        shutil.copy(data, data.with_name("2001-02-03.db"))
        server = Server(OFFBEAT, folder, "--keep", "7")
        deadline = time.time() + 120
        while data.with_name("2001-02-03.db").exists() and time.time() < deadline:
            time.sleep(0.1)
        check_equal(sorted(path.name for path in pathlib.Path(folder).glob("2*.db")), [data.name], "data files")
        check_equal(server.send(chunk_envelope(2)).status, 200, "status afterwards")
        check_equal(server.chunk_numbers(), [1, 2], "chunks afterwards")
        server.stop()


# --- Hostile input ----------------------------------------------------------------------------------------------------

MEMORY_MAX_MIB = 512


@case
def hostile_requests_cost_bounded_memory_and_others_are_served():
    with running(OFFBEAT) as server:
        bomb = gzip.compress(b"{}\n" + b"\0" * (300 << 20), 9)
        deep = b'{"a":' * 10000 + b"1" + b"}" * 10000
        attacks = [(bomb, {"Content-Encoding": "gzip"}), (gzip.compress(bomb), {"Content-Encoding": "gzip"}),
                   (envelope(item("profile_chunk", deep, platform="python")), {}), (deep, {}), (b"\n" * 100000, {}),
                   (b'{}\n{"type":"profile_chunk","length":99999999999}\n{}', {}), (b"x" * (41 << 20), {})]
        answers = []

        def attack(body, headers):
            try:
                answers.append(server.send(body, **headers).status)
            except OSError:
                answers.append(413)  # closed while it was sent

        threads = [threading.Thread(target=attack, args=one) for one in attacks * 4]
        for thread in threads:
            thread.start()
        check_equal(server.send(chunk_envelope(1)).status, 200, "status of an honest client")
        for thread in threads:
            thread.join()
        check(set(answers) <= {200, 400, 413, 503}, f"answers {sorted(set(answers))}")
        check_equal(server.chunk_numbers(), [1], "chunks: that of the honest client")
        for number in range(300):
            server.send(chunk_envelope(1000 + number, release=f"service{number}@1"))
        check_equal(len(server.read("services")["services"]), 301, "services")
        peak = server.memory_peak_mib()
        print(f"# peak {peak:.0f} MiB, answers {sorted(set(answers))}")
        check(peak <= MEMORY_MAX_MIB or IS_ASAN,
              f"peak {peak:.0f} MiB")


@case
def slow_and_silent_connections_do_not_stop_others():
    with running(OFFBEAT) as server:
        sockets = []
        for number in range(1000):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            kind = number % 3
            if kind == 0:
                connection.sendall(b"POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\n")
            elif kind == 1:
                connection.sendall(f"POST /api/1/envelope/?sentry_key={server.key} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{{".encode())
            else:
                connection.shutdown(socket.SHUT_WR)
            sockets.append(connection)
        for number in range(20):
            check_equal(server.send(chunk_envelope(number)).status, 200, "status of an honest client")
        check_equal(server.chunk_numbers(), list(range(20)), "chunks of the honest client")
        peak = server.memory_peak_mib()
        for connection in sockets:
            connection.close()
        check_equal(server.stop(), 0, "exit status")
        print(f"# 1000 connections, peak {peak:.0f} MiB")


@case
def paths_inside_a_profile_are_never_opened():
    with running(OFFBEAT) as server, tempfile.TemporaryDirectory() as folder:
        fifo = f"{folder}/fifo"
        os.mkfifo(fifo)  # who opened it would wait without end
        named = chunk(1, debug_meta={"images": [{"type": "symbolic", "code_file": fifo, "debug_file": fifo, "image_addr": "0x1000", "image_size": 4096,
                                                 "debug_id": "00000000-0000-0000-0000-000000000001"}]})
        named["profile"]["frames"] = [{"instruction_addr": "0x1010", "package": fifo, "abs_path": fifo}] * 2
        check_equal(server.send(envelope(item("profile_chunk", named, platform="python"))).status, 200, "status")
        check_equal(server.chunk_numbers(), [1], "chunks")
        check_equal(round(total_of(server) / 1e6), 190, "total in ms")
        for route in ("top", "flame", "profile.pb.gz", "export?format=speedscope"):
            check_equal(server.get(route).status, 200, f"status of {route}")


# --- Live -------------------------------------------------------------------------------------------------------------


@short
@case
def a_program_with_liboffbeat_preloaded_sends_here():
    if IS_ASAN:
        leave_out("the library with a sanitizer can be loaded into its own programs only")
    with running(OFFBEAT) as server:
        environment = os.environ | {"OFFBEAT_DSN": server.dsn, "LD_PRELOAD": str(BUILD / "liboffbeat.so"), "OFFBEAT_RELEASE": "counter@1",
                                    "OFFBEAT_PROFILE_SESSION_SAMPLE_RATE": "1", "OFFBEAT_START_PROFILER_ON_APP_START": "1",
                                    "OFFBEAT_DEBUG": "1", "OFFBEAT_SHUTDOWN_TIMEOUT_MS": "60000"}
        subprocess.run([sys.executable, "-c", "sum(i * i for i in range(12000000))"], env=environment, check=True, timeout=120,
                       stderr=subprocess.DEVNULL)
        deadline = time.time() + 30
        while not server.read("chunks")["chunks"] and time.time() < deadline:
            time.sleep(0.2)
        check_equal([one["name"] for one in server.read("services")["services"]], ["counter"], "services")
        check(total_of(server, "service=counter") > 10**8, "total")


main(sys.argv[2] if len(sys.argv) > 2 else "")
