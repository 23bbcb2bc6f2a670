"""A server of envelopes with configured answers, and a proxy, for the tests. It has accepted an envelope only if it answered
with 2xx. SPDX-License-Identifier: MIT"""
import gzip
import http.client
import http.server
import json
import pathlib
import re
import select
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tap import check_equal  # noqa: E402

KEY = "0123456789abcdef0123456789abcdef"
HANG, RESET, RESET_EARLY, CUT = "hang", "reset", "reset early", "cut"


def answer(status, body="{}", **headers):
    return status, body, {name.replace("_", "-"): value for name, value in headers.items()}


def items_of(envelope):
    """[(item header, payload)] as the server reads them: strictly."""
    end = envelope.index(b"\n")
    header, place, items = json.loads(envelope[:end]), end + 1, []
    assert isinstance(header, dict) and "sent_at" in header and "dsn" not in header, header
    while place < len(envelope):
        end = envelope.index(b"\n", place)
        item = json.loads(envelope[place:end])
        start = end + 1
        size = item.get("length", (envelope + b"\n").index(b"\n", start) - start)
        payload = envelope[start:start + size]
        assert len(payload) == size and envelope[start + size:][:1] in (b"\n", b""), "torn"
        is_read = item["type"] in ("profile_chunk", "client_report")
        items.append((item, json.loads(payload) if is_read else payload))
        place = start + size + 1
    return items


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


class QuietHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass


class FakeServer:
    """Answers with what is in SCRIPT, one for each request, and then with DEFAULT."""

    def __init__(self, script=(), default=answer(200), certificate=None):
        self.script, self.default = list(script), default
        self.lock = threading.Lock()
        self.bodies = []      # decompressed, of what was taken
        self.chunks = []      # ids, in the order in which they were taken
        self.limited = []     # ids of those answered with 429
        self.rejected = []     # and with anything else
        self.reported = {}    # {"reason:category": quantity}
        self.requests = 0
        self.connections = set()
        self.problems = []
        self.headers = []
        self.released = threading.Event()
        server = self

        class Handler(QuietHandler):
            def do_POST(self):
                server.handle(self)

        self.server = Server(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.scheme = "https" if certificate else "http"

    @property
    def dsn(self):
        return f"{self.scheme}://{KEY}@127.0.0.1:{self.port}/42"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, exception, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        if not exception:
            check_equal(self.problems, [], "what is wrong with requests")

    def check_request(self, handler):
        if handler.path != "/api/42/envelope/":
            self.problems.append(f"path {handler.path}")
        if not re.fullmatch(rf"Sentry sentry_version=7, sentry_client=offbeat/[0-9.]+, sentry_key={KEY}",
                            handler.headers.get("X-Sentry-Auth", "")):
            self.problems.append(f"auth {handler.headers.get('X-Sentry-Auth')}")
        for name, value in (("Content-Type", "application/x-sentry-envelope"), ("Content-Encoding", "gzip")):
            if handler.headers.get(name) != value:
                self.problems.append(f"{name}: {handler.headers.get(name)}")
        if not handler.headers.get("User-Agent", "").startswith("offbeat/"):
            self.problems.append("User-Agent")

    def handle(self, handler):
        with self.lock:
            self.requests += 1
            self.connections.add(handler.client_address)
            self.headers.append(dict(handler.headers))
            action = self.script.pop(0) if self.script else self.default
        self.check_request(handler)
        size = int(handler.headers["Content-Length"])
        if action == RESET_EARLY:
            return self.reset(handler)
        if action == RESET:
            handler.rfile.read(size // 2)
            return self.reset(handler)
        body = handler.rfile.read(size)
        if action == HANG:
            self.released.wait(60)
            return self.reset(handler)
        self.respond(handler, body, *(answer(200) if action == CUT else action), cut=action == CUT)

    @staticmethod
    def reset(handler):
        handler.close_connection = True
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()

    def respond(self, handler, body, status, text, headers, cut=False):
        self.take(body, status)
        data = text.encode()
        handler.send_response(status)
        for name, value in headers.items():
            for single in value if isinstance(value, list) else [value]:
                handler.send_header(name, single)
        handler.send_header("Content-Length", str(len(data) + (100 if cut else 0)))
        handler.end_headers()
        handler.wfile.write(data)
        if cut:
            handler.wfile.flush()
            self.reset(handler)

    def take(self, body, status):
        with self.lock:
            try:
                envelope = gzip.decompress(body)
                items = items_of(envelope)
            except (AssertionError, ValueError, OSError, EOFError, KeyError) as error:
                self.problems.append(f"torn: {error!r}")
                return
            ids = [payload["chunk_id"] for item, payload in items if item["type"] == "profile_chunk"]
            if status == 429:
                self.limited += ids
            elif status >= 300:
                self.rejected += ids
            else:
                self.bodies.append(envelope)
                self.chunks += ids
                self.take_reports(items)

    def take_reports(self, items):
        for item, payload in items:
            if item["type"] != "client_report":
                continue
            for entry in payload["discarded_events"]:
                name = f"{entry['reason']}:{entry['category']}"
                self.reported[name] = self.reported.get(name, 0) + entry["quantity"]

    def reported_of(self, category):
        return sum(count for name, count in self.reported.items() if name.endswith(":" + category))


class Proxy:
    """Passes on requests with a whole URL, and tunnels."""

    def __init__(self):
        self.forwarded = self.tunnels = 0
        proxy = self

        class Handler(QuietHandler):
            def do_POST(self):
                proxy.forwarded += 1
                host, path = re.fullmatch(r"http://([^/]+)(/.*)", self.path).groups()
                onward = http.client.HTTPConnection(host, timeout=20)
                headers = {name: value for name, value in self.headers.items() if not name.startswith("Proxy-")}
                onward.request("POST", path, self.rfile.read(int(self.headers["Content-Length"])), headers)
                response = onward.getresponse()
                data = response.read()
                self.send_response(response.status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_CONNECT(self):
                proxy.tunnels += 1
                host, port = self.path.split(":")
                with socket.create_connection((host, int(port)), timeout=20) as onward:
                    self.send_response(200)
                    self.end_headers()
                    pair = {self.connection: onward, onward: self.connection}
                    while True:
                        for source in select.select(list(pair), [], [], 20)[0] or [None]:
                            data = source.recv(65536) if source else b""
                            if not data:
                                self.close_connection = True
                                return
                            pair[source].sendall(data)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def make_certificate(folder):
    """(certificate, key) for 127.0.0.1, self-signed."""
    paths = str(pathlib.Path(folder) / "certificate.pem"), str(pathlib.Path(folder) / "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]],
                   check=True, capture_output=True)
    return paths


def closed_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
