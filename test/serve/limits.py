"""The limits of `offbeat serve`: rates, sizes and hostile clients. Argument: the build folder. SPDX-License-Identifier: MIT"""
import gzip
import http.client
import json
import os
import pathlib
import re
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import chunk_envelope, envelope, item, running  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
START = 1_736_928_000


def metric(server, name):
    text = server.request("GET", "/metrics", headers=server.read_header()).body.decode()
    return int(re.search(rf"^offbeat_{name} (\d+)$", text, re.MULTILINE)[1])


# --- Rates ------------------------------------------------------------------------------------------------------------


@case
def more_requests_than_the_rate_are_answered_with_429_and_counted():
    with running(OFFBEAT, "--rate", "30") as server:
        big = chunk_envelope(1000, start=START, samples=20000)
        begun = time.monotonic()
        answers = [server.send(chunk_envelope(number, start=START + number)) for number in range(30)] + [server.send(big) for _ in range(10)]
        # One comes back every two seconds.
        good = sum(answer.status == 200 for answer in answers)
        check(30 <= good <= 31 + (time.monotonic() - begun) / 2, f"{good} requests were accepted")
        check_equal({answer.status for answer in answers}, {200, 429}, "statuses")
        limited = answers[-1]
        check_equal(limited.status, 429, "status of the last one")
        seconds = int(limited.headers["Retry-After"])
        check(1 <= seconds <= 3, f"Retry-After {seconds}")
        check_equal(limited.headers["X-Sentry-Rate-Limits"], f"{seconds}::key:too_many_requests", "X-Sentry-Rate-Limits")
        check("X-Sentry-Rate-Limits".lower() in limited.headers["Access-Control-Expose-Headers"], "browsers may see it")
        in_the_body = server.request("POST", "/api/1/envelope/", envelope(dsn=server.dsn))
        check_equal(in_the_body.status, 429, "status with the DSN in the body")
        check_equal(server.upload(b"main;work 3\n").status, 429, "status of another route")
        expected = list(range(30)) + ([1000] if good > 30 else [])
        check_equal(server.chunk_numbers(), expected, "chunks")
        check_equal(server.read("top")["total"] > 0, True, "a query is answered")
        check_equal(metric(server, "requests_limited_total"), 42 - good, "requests that are counted")
        time.sleep(seconds + 0.1)
        check_equal(server.send(chunk_envelope(50)).status, 200, "status later")
        check_equal(server.chunk_numbers(), sorted(expected + [50]), "chunks later")


@case
def rejected_requests_are_outcomes_after_the_end():
    with tempfile.TemporaryDirectory() as folder:
        with running(OFFBEAT, "--rate", "1", data=folder) as server:
            check_equal([server.send(envelope()).status for _ in range(4)], [200, 429, 429, 429], "statuses")
            check_equal(server.stop(), 0, "exit status")
        with running(OFFBEAT, data=folder) as server:
            check_equal(server.outcomes(), {("rate_limited", "default", "too_many_requests"): 3}, "outcomes")


@case
def more_bytes_than_the_rate_are_rejected():
    with running(OFFBEAT, "--rate-megabytes", "1") as server:
        body = envelope(item("event", b"[]" + b" " * 900_000))
        check_equal([server.send(body).status for _ in range(3)], [200, 200, 429], "statuses")
        check_equal(server.outcomes(), {("not_stored", "error", ""): 2}, "outcomes")


@case
def bytes_count_where_the_key_is_in_the_body_and_as_they_are_decompressed():
    event = item("event", b"[]" + b" " * 900_000)
    with running(OFFBEAT, "--rate-megabytes", "1") as server:
        statuses = [server.request("POST", "/api/1/envelope/", envelope(event, dsn=server.dsn)).status for _ in range(3)]
        check_equal(statuses, [200, 200, 429], "statuses with the DSN in the envelope")
    with running(OFFBEAT, "--rate-megabytes", "1") as server:
        packed = gzip.compress(envelope(event))
        check_equal([server.send(packed, **{"Content-Encoding": "gzip"}).status for _ in range(3)], [200, 200, 429], "statuses of compressed envelopes")
    with running(OFFBEAT, "--rate-megabytes", "1") as server:
        packed = gzip.compress(b"main;" + b"work;" * 180_000 + b"end 3\n")
        check_equal([server.upload(packed).status for _ in range(3)][-1], 429, "status of a compressed file")


@case
def what_a_reader_opens_takes_nothing_from_the_rate_of_clients():
    with running(OFFBEAT, "--rate-megabytes", "1") as server:
        for _ in range(3):
            check_equal(server.request("POST", "/api/1/page", b"main;work 3\n" * 100_000, server.read_header()).status, 200, "status of the page")
        check_equal(server.send(chunk_envelope(1)).status, 200, "status")


@case
def a_wrong_key_takes_nothing_from_the_rate():
    with running(OFFBEAT, "--rate", "2") as server:
        for _ in range(5):
            check_equal(server.request("POST", "/api/1/envelope/", envelope(), {"X-Sentry-Auth": "Sentry sentry_key=" + "0" * 32}).status, 403, "status")
        check_equal([server.send(chunk_envelope(number)).status for number in range(3)], [200, 200, 429], "statuses")
        check_equal(server.chunk_numbers(), [0, 1], "chunks")


# --- Sharing ----------------------------------------------------------------------------------------------------------


@case
def many_long_queries_leave_workers_to_those_that_send():
    with running(OFFBEAT) as server:
        for number in range(60):
            server.send(chunk_envelope(number, start=START + number, samples=4000, period=0.001, functions=("main", f"work{number}")))
        count, stop, answers = 20, threading.Event(), []

        def ask():
            while not stop.is_set():
                answers.append(server.get("top?thread=1&seconds=999999999").status)

        threads = [threading.Thread(target=ask) for _ in range(24)]
        for thread in threads:
            thread.start()
        while not answers:  # the others wait or compute
            time.sleep(0.01)
        overtaken = []  # queries that were answered while a chunk was sent
        for number in range(count):
            before = len(answers)
            check_equal(server.send(chunk_envelope(1000 + number)).status, 200, "status")
            overtaken.append(len(answers) - before)
        stop.set()
        for thread in threads:
            thread.join()
        print(f"# {len(answers)} queries; during each chunk {overtaken}")
        check_equal(set(answers), {200}, "statuses of the queries")
        check_equal(server.chunk_numbers(), list(range(60)) + list(range(1000, 1000 + count)), "chunks")
        check(sorted(overtaken)[count // 2] < len(threads) / 2, f"chunks wait for queries: {overtaken}")


@case
def bodies_without_a_key_in_front_have_a_small_part_of_the_memory():
    with running(OFFBEAT) as server:
        held = []
        for _ in range(8):  # 8 x 10 MB that never end
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            connection.sendall(b"POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n")
            try:
                connection.sendall(b"x" * 10_000_000)
            except OSError:
                pass  # rejected while it was sent
            held.append(connection)
        time.sleep(0.5)
        check(metric(server, "body_bytes") <= 32 << 20, f"{metric(server, 'body_bytes')} bytes are held")
        check_equal(server.send(chunk_envelope(1)).status, 200, "status of a client with a key")
        check_equal(server.chunk_numbers(), [1], "chunks")
        for connection in held:
            connection.close()
        bomb = gzip.compress(b"{}\n" + b"".join(os.urandom(64) + bytes(4032) for _ in range(20_000)), 1)
        answer = server.request("POST", "/api/1/envelope/", bomb, {"Content-Encoding": "gzip"})
        check_equal((answer.status, "key" in answer.json()["detail"]), (413, True), str(answer.body))
        deadline = time.time() + 60
        while metric(server, "body_bytes") and time.time() < deadline:
            time.sleep(0.1)
        check_equal(metric(server, "body_bytes"), 0, "bytes that are held afterwards")


# --- Hostile clients --------------------------------------------------------------------------------------------------


def raw(server, data, shut=False):
    """What the server answers to these bytes: the status, or 0 if it closes the connection without one."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        try:
            connection.sendall(data)
            if shut:
                connection.shutdown(socket.SHUT_WR)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return answer.status
        except (OSError, http.client.HTTPException):
            return 0


@case
def broken_requests_are_rejected_and_others_are_served():
    with running(OFFBEAT) as server:
        key, token = f"sentry_key={server.key}", f"Authorization: Bearer {server.token}\r\n"
        head = f"POST /api/1/envelope/?{key} HTTP/1.1\r\nHost: x\r\n"
        deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
        attacks = {
            "no HTTP": (b"\x16\x03\x01\0\xf4\1\0\0\xf0\3\3" * 20, {0, 400, 501, 505}),
            "a long line": (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", {0, 413, 414, 431}),
            "a long header": (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", {0, 413, 431}),
            "many headers": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n", {0, 413, 431}),
            "many parameters": (f"GET /api/1/top?{'limit=1&' * 3000} HTTP/1.1\r\nHost: x\r\n{token}\r\n".encode(), {0, 400, 404, 414}),
            "a negative length": (f"{head}Content-Length: -1\r\n\r\n".encode(), {0, 400}),
            "a huge length": (f"{head}Content-Length: 99999999999999999999\r\n\r\n".encode(), {0, 400, 413}),
            "a length of 41 MiB": (f"{head}Content-Length: {41 << 20}\r\n\r\n".encode(), {413}),
            "a false chunk": (f"{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n".encode() + b"x" * 100, {0, 400, 413}),
            "chunked and cut": (f"{head}Transfer-Encoding: chunked\r\n\r\n5\r\nab".encode(), {0, 400}),
            "a body for GET": (f"GET /api/1/chunks HTTP/1.1\r\nHost: x\r\n{token}Content-Length: 5\r\n\r\nabcde".encode(), {200, 413}),
            "a path with zeros": (b"GET /api/1/%00%00 HTTP/1.1\r\nHost: x\r\n\r\n", {400, 404}),
            "a path outside": (b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", {400, 404}),
            "deep JSON": (f"{head}Content-Length: {len(deep)}\r\n\r\n".encode() + deep, {400, 413}),
        }
        for name, (data, expected) in attacks.items():
            status = raw(server, data, shut=True)
            check(status in expected, f"{name}: {status}, expected one of {expected}")
            check_equal(server.send(chunk_envelope(1, start=START)).status, 200, f"status of an honest client after {name}")
        check_equal(server.chunk_numbers(), [1], "chunks: those of the honest client")
        for number, deep_item in enumerate((deep, b"[" * 100_000, b'{"profile":' + deep + b"}")):
            for kind in ("profile_chunk", "profile", "transaction", "span", "client_report"):
                check(server.send(envelope(item(kind, deep_item, platform="python"))).status in (200, 413), f"status of {kind} {number}")
        check_equal(server.chunk_numbers(), [1], "chunks after deep items")
        queries = {"top?focus=" + "(a*)*" * 100 + "b": {200, 400, 404, 413}, "top?from=nan": {400}, "top?from=1e400": {400}, "top?from=-1": {400},
                   "top?service=" + "%ff" * 3000: {400, 404}, "top?seconds=1e308": {400}, "top?to=0&from=0": {200, 400}, "top?type=%00": {200, 400},
                   "trend?buckets=200&from=0&to=8999999999": {200}, "top?by=function": {400}, "top?order=name": {400}, "flame?inverted=0": {400},
                   "top?order=self&by=thread": {200}, "top?base_service=shop": {400}, "diff?base_service=": {200}, "chunks?from=9999-99-99T99:99:99Z": {400}}
        for query, expected in queries.items():
            status = server.get(query).status
            check(status in expected, f"{query[:60]}: {status}")
        check_equal(server.stop(), 0, "exit status")


@case
def a_slow_reader_holds_one_connection_and_no_worker():
    with running(OFFBEAT, "--workers", "1") as server:
        for number in range(200):
            server.send(chunk_envelope(number, start=START + number, functions=("main", "w" * 5000 + str(number))))
        readers = []
        for _ in range(20):  # large answers that nobody reads
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(f"GET /api/1/top HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
            readers.append(connection)
        for number in range(20):
            check_equal(server.send(chunk_envelope(500 + number)).status, 200, "status of an honest client")
        check_equal(server.chunk_numbers(), list(range(200)) + list(range(500, 520)), "chunks")
        for connection in readers:
            connection.close()


@case
def many_services_cost_little_memory():
    """20 connections send 10 500 services; a list has 10 000 of them, and says that there are more."""
    count, connections = 10_500, 20
    with running(OFFBEAT) as server:
        def send(first):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            for number in range(first, count, connections):
                connection.request("POST", f"/api/1/profiles?service=service{number}", b"main;work 3\n", server.auth())
                answer = connection.getresponse()
                if answer.status != 200:
                    failed.append(answer.status)
                answer.read()
            connection.close()

        failed = []
        threads = [threading.Thread(target=send, args=(first,)) for first in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check_equal(failed, [], "failures")
        services = json.loads(server.get("services").body)
        check_equal((len(services["services"]), services["is_cut"]), (10_000, True), "services of a list")
        print(f"# {count} services, peak {server.memory_peak_mib():.0f} MiB")


main(sys.argv[2] if len(sys.argv) > 2 else "")
