"""Connections of `offbeat serve`: ambiguous HTTP, clients that hold connections, pages of other origins. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import http.client
import pathlib
import re
import resource
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import chunk_envelope, running  # noqa: E402
from tap import case, check, check_equal, main, short  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"


def statuses(server, data):
    """The statuses of all answers to these bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while part := connection.recv(65536):
                got += part
        except ConnectionResetError:
            pass
        return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d+)", got)]


@case
@short
def a_request_with_two_ends_is_rejected_and_nothing_after_it_is_run():
    with running(OFFBEAT) as server:
        hidden = b"GET /hidden HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n"
        head = f"POST /api/1/envelope/?sentry_key={server.key} HTTP/1.1\r\nHost: x\r\n".encode()
        chunked = b"0\r\n\r\n"
        for name, request in {
                "two different lengths": head + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(hidden),
                "two equal lengths": head + b"Content-Length: 0\r\ncontent-length: 0\r\n\r\n",
                "a list of lengths": head + b"Content-Length: 0, 0\r\n\r\n",
                "a length with a sign": head + b"Content-Length: +0\r\n\r\n",
                "length and chunked": head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
                "chunked and length": head + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunked,
                "chunked twice": head + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
                "another encoding": head + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked,
                "a blank before the colon": head + b"Content-Length : %d\r\n\r\n" % len(hidden),
                "a tab before the colon": head + b"Transfer-Encoding\t: chunked\r\n\r\n" + chunked,
                "a control character in a name": head + b"Content-Length\x0b: 0\r\n\r\n",
                "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
                "two hosts": b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"}.items():
            check_equal(set(statuses(server, request + hidden)), {400}, f"statuses of {name}")
        for name, request in {
                "a length": head + b"Content-Length: 3\r\n\r\n{}\n" + hidden,
                "chunked": head + b"Transfer-Encoding: Chunked\r\n\r\n3\r\n{}\n\r\n0\r\n\r\n" + hidden}.items():
            check_equal(statuses(server, request), [200, 404], f"statuses of {name}")
        check_equal(statuses(server, b"GET /healthz HTTP/1.0\r\n\r\n"), [200], "status of HTTP/1.0 without a host")


@case
def only_envelopes_may_come_from_other_origins():
    with running(OFFBEAT) as server:
        for method in ("GET", "POST", "OPTIONS"):
            for path in ("/api/1/chunks/envelope", "/envelope", "/api/1/envelope/x", "/api/1/chunks", "/api/1/profiles", "/ingest", "/api/x/envelope/"):
                answer = server.request(method, path, headers=server.read_header())
                check("Access-Control-Allow-Origin" not in answer.headers, f"{method} {path}: {answer.headers}")
                check(method != "OPTIONS" or answer.status >= 400, f"OPTIONS {path}: {answer.status}")
        for answer in (server.send(chunk_envelope(1)), server.request("OPTIONS", "/api/1/envelope/"), server.request("POST", "/api/1/envelope", b"{}\n")):
            check_equal(answer.headers.get("Access-Control-Allow-Origin"), "*", "origin of an envelope")


# --- Clients that hold connections ------------------------------------------------------------------------------------


class Slow:
    """COUNT connections from ADDRESS that never end their header."""

    def __init__(self, server, count, address="127.0.0.1", begin=b"GET /healthz HTTP/1.1\r\nX: "):
        self.place, self.address, self.begin = ("127.0.0.1", server.port), address, begin
        self.held = [self.connect() for _ in range(count)]

    def connect(self):
        connection = socket.create_connection(self.place, 10, (self.address, 0))
        connection.setblocking(False)
        connection.send(self.begin)
        return connection

    def feed(self):
        """A byte more; a closed connection is opened again."""
        for i, connection in enumerate(self.held):
            try:
                connection.send(b"a")
            except OSError:
                connection.close()
                self.held[i] = self.connect()

    def open_count(self):
        count = 0
        for connection in self.held:
            try:
                count += connection.recv(1) != b""
            except BlockingIOError:
                count += 1
            except OSError:
                pass
        return count

    def close(self):
        for connection in self.held:
            connection.close()


@case
def others_are_served_while_one_client_holds_five_thousand_connections():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with running(OFFBEAT) as server:
        known = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        slow, body_slow = Slow(server, 5000), Slow(server, 100, begin=b"POST /api/1/envelope/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        for number in range(8):
            for address in ("127.0.0.1", "127.0.0.2"):
                other = socket.create_connection(("127.0.0.1", server.port), 20, (address, 0))
                other.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                check_equal(other.recv(12), b"HTTP/1.1 200", f"answer to {address}")
                other.close()
            known.request("POST", "/api/1/envelope/", chunk_envelope(number), server.auth())
            answer = known.getresponse()
            check_equal((answer.status, answer.read() != b""), (200, True), "answer to a client with a key")
            check(known.sock or number == 0, "the connection of a client with a key was closed")
            slow.feed()
        end = time.monotonic() + 60  # a busy server is still accepting and closing
        while slow.open_count() >= 400 and time.monotonic() < end:
            time.sleep(0.2)
        check(slow.open_count() < 400, f"one address holds {slow.open_count()} connections")
        check_equal(server.chunk_numbers(), list(range(8)), "chunks")
        slow.close()
        body_slow.close()


@case
def a_header_that_takes_too_long_is_closed():
    with running(OFFBEAT) as server:
        slow = Slow(server, 5)
        known = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        known.request("GET", "/api/1/chunks", headers=server.read_header())
        check_equal(known.getresponse().read() != b"", True, "an answer")
        first = known.sock
        begun = time.monotonic()
        while slow.open_count() > 0:
            check(time.monotonic() - begun < 60, f"{slow.open_count()} connections are open")
            time.sleep(1)
            for connection in slow.held:
                try:
                    connection.send(b"a")
                except OSError:
                    pass
        check(time.monotonic() - begun > 8, "closed at once")
        known.request("GET", "/api/1/chunks", headers=server.read_header())
        check_equal((known.getresponse().status, known.sock is first), (200, True), "status on the connection that showed a token")


main()
