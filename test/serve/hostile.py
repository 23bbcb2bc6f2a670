"""Hostile clients with a key of `offbeat serve`, in full size: bombs, files that take the most memory for their bytes, false lengths, slow and
half-closed connections, hash flooding, a million services. Beside each attack, an honest client sends and asks; the peaks and its longest
wait are printed. Arguments: the build folder, how many services, a part of the name of a case. SPDX-License-Identifier: MIT"""
import contextlib
import gzip
import http.client
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from protobuf_wire import field, fields, pprof, push_series  # noqa: E402
from server_process import chunk_envelope, envelope, item, running  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
OFFBEAT = BUILD / "offbeat"
SERVICES = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
IS_ASAN = "libasan" in subprocess.run(["ldd", OFFBEAT], capture_output=True, text=True, check=False).stdout or "asan" in str(BUILD)
START = 1_736_928_000
MIB = 1 << 20
# doc/serve.md: what the bounds add up to. A sanitizer needs a multiple.
MEMORY_MAX_MIB = 2560
STATUSES = {200, 400, 413, 429, 503}


class Honest(threading.Thread):
    """Sends a small chunk and asks a small question, again and again; busy answers are tried again, as clients do."""

    def __init__(self, server):
        super().__init__()
        self.server, self.stops, self.waits, self.wrong, self.busy = server, False, [], [], 0

    def run(self):
        number = 0
        while not self.stops:
            number += 1
            for ask in (lambda: self.server.send(chunk_envelope(10 ** 6 + number, start=START, release="honest@1")),
                        lambda: self.server.get("top?service=honest&limit=1")):
                begun = time.monotonic()
                try:
                    status = ask().status
                except (OSError, http.client.HTTPException) as error:
                    status = repr(error)
                self.waits.append(time.monotonic() - begun)
                self.busy += status == 503
                if status not in (200, 503):
                    self.wrong.append(status)
            time.sleep(0.02)


@contextlib.contextmanager
def under_attack(what, memory_max_mib=MEMORY_MAX_MIB):
    with running(OFFBEAT) as server:
        check_equal(server.send(chunk_envelope(1, start=START, release="honest@1")).status, 200, "status before")
        honest = Honest(server)
        honest.start()
        try:
            yield server
        finally:
            honest.stops = True
            honest.join()
        peak = server.memory_peak_mib()
        print(f"# {what}: peak {peak:.0f} MiB; an honest client: {len(honest.waits)} requests, {honest.busy} busy, longest {max(honest.waits):.2f} s")
        check_equal(honest.wrong, [], "answers to the honest client")
        check(len(honest.waits) > 2, "the honest client was not served")
        check(peak <= memory_max_mib or IS_ASAN, f"peak {peak:.0f} MiB")
        check_equal(server.stop(), 0, "exit status")
        said = server.said()
        check("ERROR: " not in said and "runtime error" not in said, said[-3000:])


def attack(server, requests, threads=32):
    """Sends each of REQUESTS (path, body, headers) over THREADS connections; the statuses."""
    statuses, left, lock = [], list(requests), threading.Lock()

    def run():
        while True:
            with lock:
                if not left:
                    return
                path, body, headers = left.pop()
            try:
                status = server.request("POST", path, body, server.auth() | headers, timeout=600).status
            except (OSError, http.client.HTTPException):
                status = 413  # closed while it was sent
            statuses.append(status)

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"# statuses: {({status: statuses.count(status) for status in sorted(set(statuses))})}")
    check(set(statuses) <= STATUSES, f"statuses {set(statuses)}")


def through(program, data):
    path = shutil.which(program)
    if not path:
        skip(f"{program} is not installed")
    return subprocess.run([path, "-c"] + (["-3"] if program == "zstd" else ["-q", "5"]), input=data, capture_output=True, check=True).stdout


# --- Bombs ------------------------------------------------------------------------------------------------------------


@case
def bombs_of_each_encoding():
    plain = b"{}\n" + bytes(400 * MIB)
    with under_attack("bombs") as server:
        bombs = {"gzip": gzip.compress(plain, 9), "deflate": zlib.compress(plain, 9), "br": through("brotli", plain), "zstd": through("zstd", plain)}
        requests = [(path, bomb, {"Content-Encoding": encoding}) for encoding, bomb in bombs.items()
                    for path in ("/api/1/envelope/", "/api/1/profiles", "/ingest?name=x")]
        # The file in the body is compressed, once and again; and in a push.
        requests += [("/api/1/profiles", bomb, {}) for bomb in bombs.values()]
        requests += [("/api/1/profiles", gzip.compress(bomb), {}) for bomb in bombs.values()]
        requests += [("/push.v1.PusherService/Push", field(1, push_series({}, [(bomb, "")] * 8)), {"Content-Type": "application/proto"})
                     for bomb in bombs.values()]
        attack(server, requests * 4)


# --- Files that take the most memory for their bytes -------------------------------------------------------------------


def tiny_samples(size):
    """A pprof file whose samples have two bytes each."""
    return pprof({("main",): 1}) + b"\x12\x00" * (size // 2)


def short_lines(size):
    """Collapsed stacks, all of them different."""
    lines, total, number = [], 0, 0
    while total < size:
        line = b"%x 1\n" % number
        lines.append(line)
        total += len(line)
        number += 1
    return b"".join(lines)


def small_chunk(size):
    sample = '{"stack_id":0,"thread_id":"1","timestamp":%d.%06d}'
    count = size // 55
    samples = ",".join(sample % (START + i // 10 ** 6, i % 10 ** 6) for i in range(count))
    return (f'{{"version":"2","profiler_id":"{1:032x}","chunk_id":"{1:032x}","platform":"python","release":"a@1","environment":"e",'
            f'"client_sdk":{{"name":"t","version":"1"}},"profile":{{"frames":[{{"function":"m"}}],"stacks":[[0]],"samples":[{samples}]}}}}').encode()


def many_keys(size):
    return b'{"a":{' + b",".join(b'"%08x":0' % number for number in range(size // 13)) + b"}}"


FILES = {"a pprof file of empty samples": tiny_samples, "a pprof file of empty functions": lambda size: pprof({("main",): 1}) + b"\x2a\x00" * (size // 2),
         "a pprof file of empty strings": lambda size: pprof({("main",): 1}) + b"\x32\x00" * (size // 2),
         "collapsed stacks": short_lines, "one deep stack": lambda size: b";".join(b"%x" % number for number in range(size // 8)) + b" 1\n",
         "an object of many keys": many_keys, "speedscope": lambda size: b'{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[' +
         b",".join([b'{"name":""}'] * (size // 12)) + b"]},\"profiles\":[]}", "trace events": lambda size: b"[" + b",".join([b'{"ph":"B"}'] * (size // 11)) + b"]"}


@case
def files_that_take_the_most_memory_for_their_bytes():
    with under_attack("crafted files") as server:
        for name, make in FILES.items():
            for size in (8 * MIB - 4096, 31 * MIB):
                body = gzip.compress(make(size), 6)
                begun = time.monotonic()
                attack(server, [("/api/1/profiles", body, {})] * (12 if size < 8 * MIB else 6))
                print(f"# {name}, {size >> 20} MiB, as sent {len(body) >> 10} KiB: {time.monotonic() - begun:.1f} s, peak {server.memory_peak_mib():.0f} MiB")


@case
def envelopes_that_take_the_most_memory_for_their_bytes():
    spans = b'{"version":2,"items":[' + b",".join([b'{"trace_id":"%032d","span_id":"%016d","start_timestamp":1,"end_timestamp":2}' % (1, 1)] * 10 ** 6) + b"]}"
    with under_attack("crafted envelopes") as server:
        for name, body in {"a chunk of 45 MiB": envelope(item("profile_chunk", small_chunk(45 * MIB), platform="python")),
                           "a chunk of 7 MiB": envelope(item("profile_chunk", small_chunk(7 * MIB), platform="python")),
                           "a million spans": envelope(item("span", spans, item_count=10 ** 6)),
                           "a million items": b"{}\n" + b'{"type":"x","length":0}\n\n' * 10 ** 6,
                           "many reports": envelope(*[item("client_report", b'{"discarded_events":[]}')] * 10 ** 5)}.items():
            body = gzip.compress(body, 6)
            begun = time.monotonic()
            attack(server, [("/api/1/envelope/", body, {"Content-Encoding": "gzip"})] * 8)
            print(f"# {name}, as sent {len(body) >> 10} KiB: {time.monotonic() - begun:.1f} s, peak {server.memory_peak_mib():.0f} MiB")


@case
def deep_nesting_in_each_format_of_json():
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    lists = b"[" * 100_000
    with under_attack("deep JSON", 512) as server:
        requests = []
        for inner in (deep, lists):
            requests += [("/api/1/envelope/", envelope(item(kind, inner, platform="python")), {}) for kind in ("profile_chunk", "profile", "transaction", "span", "client_report")]
            requests += [("/api/1/envelope/", inner, {}), ("/v1development/profiles", inner, {"Content-Type": "application/json"}),
                         ("/v1development/profiles", b'{"resourceProfiles":' + inner, {"Content-Type": "application/json"})]
            requests += [("/api/1/profiles", start + inner + b"}", {}) for start in (
                b'{"$schema":"https://www.speedscope.app/file-format-schema.json","x":', b'{"traceEvents":', b'{"meta":', b'{"head":', b'{"nodes":', b'{"version":"2","x":')]
        attack(server, requests * 4)


# --- Connections ------------------------------------------------------------------------------------------------------


@case
def a_thousand_slow_half_closed_and_false_connections():
    with under_attack("1000 connections", 512) as server:
        head = f"POST /api/1/envelope/?sentry_key={server.key} HTTP/1.1\r\nHost: x\r\n"
        starts = [b"", b"POST", head.encode(), f"{head}Content-Length: 30000000\r\n\r\n{{".encode(), f"{head}Transfer-Encoding: chunked\r\n\r\nfffffff\r\n{{".encode(),
                  f"{head}Content-Length: 5\r\n\r\n{{}}\n".encode(), f"GET /api/1/chunks HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\nHost: x\r\n\r\n".encode() * 20]
        sockets = []
        for number in range(1000):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            connection.sendall(starts[number % len(starts)])
            if number % 3 == 0:
                connection.shutdown(socket.SHUT_WR)
            sockets.append(connection)
        stop = time.monotonic() + 40  # longer than a connection may be silent
        while time.monotonic() < stop:
            for number, connection in enumerate(sockets):
                with contextlib.suppress(OSError):
                    if number % 3:
                        connection.send(b"x", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            time.sleep(2)
        for connection in sockets:
            connection.close()


# --- Hash flooding ----------------------------------------------------------------------------------------------------


@case
def strings_that_collide_without_the_seed_cost_no_more_than_others():
    count, bits = 20_000, 15
    program = BUILD / "test/serve/collisions"
    if not program.exists():
        skip("test/serve/collisions is not built")
    chosen = subprocess.run([program, str(count), str(bits)], capture_output=True, text=True, check=True).stdout.split("\n")[:count]
    others = [f"K{number:07}" for number in range(count)]
    with under_attack("hash flooding", 512) as server:
        def seconds(names):
            body = "".join(f"main;{name} 1\n" for name in names).encode()
            times = []
            for _ in range(5):
                begun = time.monotonic()
                check_equal(server.upload(body, f"service=s{len(times)}{names[0][0]}").status, 200, "status")
                times.append(time.monotonic() - begun)
            return min(times)
        usual, flood = seconds(others), seconds(chosen)
        print(f"# {count} functions: {usual * 1000:.0f} ms, those that collide {flood * 1000:.0f} ms")
        check(flood < 4 * usual + 0.05, f"{flood:.3f} s instead of {usual:.3f} s")


# --- Services ---------------------------------------------------------------------------------------------------------


@case
def a_million_services():
    at_once, connections = 256, 8
    profile = pprof({("main", "work"): 7})
    numbers = iter(range(0, SERVICES, at_once))
    lock = threading.Lock()
    failed = []
    with under_attack(f"{SERVICES} services", 512) as server:
        def send():
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
            headers = server.auth() | {"Content-Type": "application/proto"}
            while True:
                with lock:
                    first = next(numbers, None)
                if first is None:
                    return
                body = fields(1, [push_series({"service_name": f"service-{number}"}, [(profile, "")]) for number in range(first, min(first + at_once, SERVICES))])
                connection.request("POST", "/push.v1.PusherService/Push", body, headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    failed.append(answer.status)

        begun = time.monotonic()
        threads = [threading.Thread(target=send) for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check_equal(failed, [], "failures")
        print(f"# stored in {time.monotonic() - begun:.0f} s, peak {server.memory_peak_mib():.0f} MiB, {sum(p.stat().st_blocks for p in data_files(server)) // 2048} MiB on disk")
        for route in ("services", "activity", "chunks", "services?after=service-5", "top?limit=5", "flame?limit=5"):
            begun = time.monotonic()
            status = server.request("GET", f"/api/1/{route}", headers=server.read_header(), timeout=600).status
            print(f"# {route}: {status} in {time.monotonic() - begun:.1f} s, peak {server.memory_peak_mib():.0f} MiB")
            # 400: the honest client's chunks have other types; 413: more chunks than one answer may have.
            check(status in (200, 400, 413), f"status of {route}")


def data_files(server):
    return [path for path in pathlib.Path(server.data).iterdir() if path.is_file()]


main(sys.argv[3] if len(sys.argv) > 3 else "")
