"""A cluster with troubles: servers that are away, killed or frozen, wrong logins and tables. Arguments: the build folder.
SPDX-License-Identifier: MIT"""
import atexit
import base64
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "serve"), str(HERE.parent / "end_to_end")]
import clickhouse  # noqa: E402
from server import make_certificate  # noqa: E402
from protobuf_wire import varint  # noqa: E402
from server_process import administer, chunk_envelope, envelope, item, new_project, new_token  # noqa: E402
from store_kinds import OFFBEAT, Cluster, cluster, one_server, wait_for_chunks  # noqa: E402
from tap import IS_LONG, case, check, check_equal, long, main, skip, some_of, wait_until  # noqa: E402

KILLS = len(some_of(range(50), 13))


def send(server, numbers, **options):
    for number in numbers:
        check_equal(server.send(chunk_envelope(number, **options)).status, 200, "status")


def repeat_rows(store, table, **changes):
    """Inserts each row of TABLE once more, with CHANGES to some columns."""
    names = ", ".join(f"'{name}'" for name in changes)
    rest = ",".join(store.servers[0].query(f"SELECT name FROM system.columns WHERE database = '{store.database}' AND table = '{table}' AND "
                                           f"name NOT IN ({names})").split())
    store.servers[0].query(f"INSERT INTO {store.database}.{table} ({','.join(changes)}, {rest}) SELECT {', '.join(changes.values())}, {rest} "
                           f"FROM {store.database}.{table}")


@case
def a_cluster_is_reached_over_tls():
    missing = clickhouse.missing() or (None if shutil.which("openssl") else "openssl")
    if missing:
        skip(f"{missing} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        certificate = make_certificate(folder)
        one = clickhouse.Server(f"{folder}/tls", macros=False, certificate=certificate)
        atexit.register(one.stop)
        store = Cluster(folder, [one.start()])
        store.address = f"clickhouses://127.0.0.1:{one.tls_port}/{store.database}"
        done = store.run("create")
        check_equal((done.returncode, "certificate" in done.stderr, done.stderr.count("\n")), (3, True, 1), done.stderr)
        done = store.run("create", "--store-ca", certificate[0])
        check_equal(done.returncode, 0, done.stderr)
        server = store.server("--store-ca", certificate[0])
        send(server, range(1, 4))
        check_equal((server.chunk_numbers(), server.read("top?type=samples")["total"]), ([1, 2, 3], 60), "chunks and samples")
        check_equal(server.stop(), 0, "exit status")
        one.stop()


# --- One server -------------------------------------------------------------------------------------------------------


@case
def what_arrives_while_the_tables_are_missing_is_kept_and_counts_once():
    store_server = one_server()
    with tempfile.TemporaryDirectory() as folder:
        store = Cluster(folder, [store_server])
        server = store.server(ack="spool")
        try:
            send(server, range(1, 6))
            wait_until(lambda: "has no tables in the database" in server.said() and "offbeat store create" in server.said(), server.said)
            check_equal(server.get("services").status, 503, "status of a question")
            check_equal(server.stop(), 0, "exit status")
            server = store.server(ack="spool")
            send(server, range(5, 9))
            store.create()
            wait_for_chunks(server, 8)
            check_equal({one["name"]: one["self"] for one in server.read("top?type=samples")["functions"]}, {"main": 80, "work": 80}, "samples")
            server.kill()  # what is kept is sent once more after this
            server = store.server(ack="cluster")
            send(server, [9])
            check_equal(server.chunk_numbers(), list(range(1, 10)), "chunks")
            check_equal(server.read("top?type=samples")["total"], 180, "samples")
        finally:
            server.end()
            store.drop()


def spool_of_version_1(content):
    """A file of the spool whose sums lack the last column."""
    records = []
    while content:
        size, = struct.unpack("<I", content[:4])
        record, content, rows = content[8:8 + size], content[8 + size:], b""
        while record:  # a table, the hash that chooses a shard, the size in LEB128, the columns
            end, length = 9, 0
            while True:
                length |= (record[end] & 0x7F) << 7 * (end - 9)
                end += 1
                if record[end - 1] < 0x80:
                    break
            row = record[end:end + length - (8 if record[0] == 2 else 0)]
            rows, record = rows + record[:9] + varint(len(row)) + row, record[end + length:]
        records.append(struct.pack("<II", len(rows), zlib.crc32(rows)) + rows)
    return b"".join(records)


@case
def tables_and_a_spool_of_the_version_before_are_taken():
    with cluster() as store:
        for statement in ("ALTER TABLE {}.sum DROP COLUMN set_rows", "DROP TABLE {}.schema",
                          "CREATE TABLE {}.schema (version UInt64, oldest_reader UInt64) ENGINE = MergeTree ORDER BY version",
                          "INSERT INTO {}.schema VALUES (1, 1)"):
            store.servers[0].query(statement.format(store.database))
        server = store.server(ack="spool")
        send(server, range(1, 4))
        wait_until(lambda: "of an older version (1); offbeat store create adds to them" in server.said(), server.said)
        check_equal(server.stop(), 0, "exit status")
        for path in pathlib.Path(store.folder, "inserts").glob("*.rows"):
            path.write_bytes(spool_of_version_1(path.read_bytes()))
        store.create()
        server = store.server(ack="spool")
        wait_for_chunks(server, 3)
        check_equal(server.read("top?type=samples")["total"], 60, "samples")
        check_equal(server.stop(), 0, "exit status")


@case
def a_wrong_login_another_schema_and_a_wrong_address_are_one_line_each():
    with cluster() as store:
        pathlib.Path(store.login).write_text("offbeat\nwrong\n", encoding="utf-8")
        done = store.run("check")
        check_equal((done.returncode, "rejects the user \"offbeat\" or the password" in done.stderr), (1, True), done.stderr)
        server = store.server(ack="spool")
        send(server, [1])
        wait_until(lambda: "rejects the user" in server.said(), server.said)
        check_equal(server.stop(), 0, "exit status")
        pathlib.Path(store.login).write_text(f"{clickhouse.USER}\n{clickhouse.PASSWORD}\n", encoding="utf-8")
        store.servers[0].query(f"ALTER TABLE {store.database}.chunk DROP COLUMN packed")
        done = store.run("check")
        check_equal((done.returncode, "the table chunk lacks the column packed UInt64" in done.stderr), (1, True), done.stderr)
        server = store.server(ack="spool")
        wait_until(lambda: "of another version; offbeat store check says how they differ" in server.said(), server.said)
        store.servers[0].query(f"ALTER TABLE {store.database}.chunk ADD COLUMN packed UInt64")
        wait_for_chunks(server, 1)  # nothing was lost
        check_equal(server.stop(), 0, "exit status")
        store.servers[0].query(f"INSERT INTO {store.database}.schema (version, oldest_reader) VALUES (99, 99)")
        server = store.server(ack="spool")
        wait_until(lambda: "are of a newer version (99); this offbeat is too old" in server.said(), server.said)
        send(server, [2])
        check_equal(server.get("services").status, 503, "status of a question")
        figures = server.request("GET", "/metrics", headers=server.read_header()).body.decode()
        check(re.search(r"^offbeat_spool_bytes [1-9]", figures, re.MULTILINE), figures)
        check_equal(server.stop(), 0, "exit status")
        for address, text in (("clickhouse://ch1", "a database is needed"), ("clickhouse:///offbeat", "a server is needed"),
                              ("http://ch1/offbeat", "an address as in clickhouse://")):
            store.address = address
            done = store.run("check")
            check_equal((done.returncode, text in done.stderr), (2, True), f"{address}: {done.stderr}")


@case
def no_server_and_clocks_that_differ_are_one_line_each():
    port, = clickhouse.free_ports(1)
    with cluster() as store:
        places = store.address
        store.address = f"clickhouse://127.0.0.1:{port}/{store.database}"
        done = store.run("check")
        check_equal((done.returncode, done.stderr.count("\n"), "Couldn't connect to server" in done.stderr), (1, 1, True), done.stderr)
        server = store.server(ack="spool")
        send(server, [1])
        time.sleep(3)
        said = server.said()
        check_equal((said.count("Couldn't connect to server; what arrives waits in the spool"), said.count("\n") <= 2), (1, True), said)
        proxy = Proxy(store.servers[0], port=port)
        try:
            wait_for_chunks(server, 1)
            check_equal(server.stop(), 0, "exit status")
            proxy.replaced = (b"(now())", b"(now()+99)")
            done = store.run("check")
            check_equal((done.returncode, "its clock differs from this machine's by" in done.stderr), (1, True), done.stderr)
            server = store.server(ack="spool")
            send(server, [2])
            wait_until(lambda: f"the clock of 127.0.0.1:{port} differs from this machine's by" in server.said(), server.said)
            proxy.replaced = None
            wait_for_chunks(server, 2)
            check_equal((server.said().count("differs"), server.stop()), (1, 0), server.said())
        finally:
            proxy.listening.close()
            store.address = places


@case
def a_full_spool_rejects_and_says_so():
    with cluster() as store:
        store.drop()
        server = store.server("--spool", "1", ack="spool")
        statuses, number = set(), 0
        while 503 not in statuses and number < 2000:
            number += 1
            statuses.add(server.send(chunk_envelope(number, samples=2000, functions=[f"f{number}_{i}" for i in range(400)])).status)
        check_equal(statuses, {200, 503}, "statuses")
        check("the spool in" in server.said() and "is full" in server.said(), server.said())
        store.create()
        wait_for_chunks(server, number - 1)
        check_equal(server.stop(), 0, "exit status")


@case
def partitions_that_are_over_are_dropped():
    with cluster() as store:
        server = store.server("--keep", "14")
        send(server, [1])
        check_equal(server.stop(), 0, "exit status")
        for table in ("raw", "chunk", "sum"):
            repeat_rows(store, table, day="day - 16", id="toFixedString('0123456789abcdef', 16)")
        server = store.server("--keep", "0")
        check_equal(server.read("services")["services"][0]["chunks"], 2, "chunks")
        check_equal(server.stop(), 0, "exit status")
        server = store.server("--keep", "14")
        wait_until(lambda: server.read("services")["services"][0]["chunks"] == 1, "the old day is still there")
        check_equal(server.chunk_numbers(), [1], "chunks")
        check_equal(server.stop(), 0, "exit status")


@case
def a_chunk_that_came_twice_and_has_one_sum_counts_once():
    with cluster() as store:
        server = store.server()
        send(server, [1])
        for table in ("raw", "chunk"):
            repeat_rows(store, table, summed="0")
        check_equal(server.read("top?type=samples")["total"], 20, "samples")
        check_equal(server.stop(), 0, "exit status")


@case
def what_is_deleted_stays_away_and_later_sums_have_stacks():
    with cluster() as store:
        server = store.server()
        send(server, [1, 2])
        done = administer(OFFBEAT, store.folder, "delete", server.project, "--service", "shop")
        check_equal(done.returncode, 0, done.stderr)
        send(server, [3])
        check_equal(store.servers[0].query(f"SELECT count() FROM {store.database}.sum WHERE space NOT IN (SELECT space FROM {store.database}.dict)"), "0",
                    "sums without stacks")
        server.kill()
        server = store.server()  # sends what is kept
        send(server, [4])
        check_equal(server.chunk_numbers(), [3, 4], "chunks")
        check_equal(server.stop(), 0, "exit status")


@case
def what_another_server_has_in_its_spool_is_not_sent_after_its_deletion():
    with cluster() as store, tempfile.TemporaryDirectory() as folder:
        server = store.server()
        other = store.server(folder=folder)
        other.key, other.project = server.key, server.project
        wait_until(lambda: other.send(chunk_envelope(1)).status == 200, "the other server does not know the key")
        other.kill()  # it keeps what it has sent
        check_equal(server.chunk_numbers(), [1], "chunks")
        done = administer(OFFBEAT, store.folder, "delete", server.project, "--service", "shop")
        check_equal(done.returncode, 0, done.stderr)
        other = store.server(folder=folder)  # sends it again, but for what was deleted
        other.key, other.project = server.key, server.project
        check_equal(other.send(chunk_envelope(2)).status, 200, "status")
        check_equal(server.chunk_numbers(), [2], "chunks")
        check_equal([one.stop() for one in (other, server)], [0, 0], "exit status")


@case
def deletion_ends_while_data_arrives():
    with cluster() as store:
        server, ends = store.server(ack="spool"), threading.Event()

        def load():
            number = 100
            while not ends.is_set():
                number += 1
                server.send(chunk_envelope(number, release="mail@1"))
                time.sleep(0.01)

        send(server, [1])
        sender = threading.Thread(target=load)
        sender.start()
        try:
            done = administer(OFFBEAT, store.folder, "delete", server.project, "--service", "shop")
        finally:
            ends.set()
            sender.join()
        check_equal((done.returncode, server.get("top?service=shop").status), (0, 404), done.stderr)
        check_equal(server.stop(), 0, "exit status")


class Proxy:
    """Passes requests on to a server. Each of CUTS is ("request" or "answer", place): one exchange ends there, behind so many bytes, or behind
    such a part of all bytes. Chance chooses the exchanges among those that have WORD in them."""

    def __init__(self, server, word=b"", seed=None, port=0):
        self.server, self.word, self.cuts, self.count = server, word, [], 0
        self.replaced = None  # (bytes, other bytes) of the bodies of requests
        self.statements = None  # a list: the statements that pass
        self.numbers, self.lock = random.Random(seed) if seed else None, threading.Lock()
        self.listening = socket.create_server(("127.0.0.1", port))
        self.place = f"127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError, http.client.HTTPException), client, client.makefile("rb") as stream:
            while request := self.read_request(stream):
                side, place = self.take_cut(request)
                self.note(request)
                with socket.create_connection(("127.0.0.1", self.server.port)) as server:
                    server.sendall(self.part(request, place) if side == "request" else request)
                    if side == "request":
                        return
                    answer = self.read_answer(server)
                client.sendall(self.part(answer, place) if side == "answer" else answer)
                if side:
                    return

    def note(self, request):
        if self.statements is not None:
            head, body = request.split(b"\r\n\r\n", 1)
            options = urllib.parse.parse_qs(urllib.parse.urlparse(head.split(b" ")[1].decode()).query)
            has_body = "query" in options
            with self.lock:
                self.statements.append({"database": options.get("database", [""])[0], "sql": options["query"][0] if has_body else body.decode("latin-1"),
                                        "body": base64.b64encode(body).decode() if has_body else ""})

    def read_request(self, stream):
        head, size = b"", 0
        while (line := stream.readline()) not in (b"", b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
            else:
                head += line
        body = stream.read(size)
        body = body.replace(*self.replaced) if self.replaced else body
        return head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body if line else b""

    @staticmethod
    def read_answer(server):
        answer = http.client.HTTPResponse(server)
        answer.begin()
        body = answer.read()
        headers = [one for one in answer.getheaders() if one[0].lower() not in ("transfer-encoding", "content-length", "connection")]
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}", *(": ".join(one) for one in headers), f"Content-Length: {len(body)}", "", ""]
        return "\r\n".join(lines).encode() + body

    def take_cut(self, request):
        with self.lock:
            if not self.cuts or self.word not in request or (self.numbers and self.numbers.random() > 0.4):
                return None, 0
            self.count += 1
            return self.cuts.pop()

    @staticmethod
    def part(data, place):
        return data[:place if isinstance(place, int) else max(1, min(len(data) - 1, int(len(data) * place)))]

    def query(self, *arguments):
        return self.server.query(*arguments)


def chunks_count_once_though_inserts_are_cut(places):
    """At each of PLACES, parts of the whole, an insertion is cut, and an answer to one."""
    seed = random.SystemRandom().randrange(1, 1 << 32)
    print(f"# seed {seed}")
    proxy = Proxy(one_server(), b"INSERT", seed)
    with tempfile.TemporaryDirectory() as folder:
        store = Cluster(folder, [proxy]).create()
        server = store.server(ack="spool")
        try:
            proxy.cuts = [(side, place) for place in places for side in ("request", "answer")]
            cuts, number, end = len(proxy.cuts), 0, time.monotonic() + 60 + 4 * len(proxy.cuts)
            while proxy.cuts and time.monotonic() < end:
                number += 1
                send(server, [number])
                time.sleep(0.1)
            check_equal(proxy.count, cuts, "cut insertions")
            for _ in range(2):
                wait_for_chunks(server, number)
                check_equal(server.chunk_numbers("limit=10000"), list(range(1, number + 1)), "chunks")
                check_equal(server.read("top?type=samples")["total"], 20 * number, "samples")
                check_equal(server.outcomes()["accepted", "profile_chunk", ""], number, "outcomes")
                server.kill()
                server = store.server(ack="spool")  # sends all of it again
            check_equal(server.stop(), 0, "exit status")
        finally:
            server.end()
            proxy.listening.close()
            store.drop()


@case
def cut_insertions_and_lost_answers_neither_lose_nor_repeat_a_chunk():
    chunks_count_once_though_inserts_are_cut([(place + 0.5) / 9 for place in range(9)])


@long
@case
def two_hundred_cuts_neither_lose_nor_repeat_a_chunk():
    chunks_count_once_though_inserts_are_cut([(place + 0.5) / 100 for place in range(100)])


@case
def an_answer_that_is_cut_between_its_headers_is_a_failure():
    proxy = Proxy(one_server())
    with tempfile.TemporaryDirectory() as folder:
        store = Cluster(folder, [proxy]).create()
        try:
            for size in (20, 40):
                proxy.cuts = [("answer", size)]
                done = store.run("check")
                check_equal((done.returncode, "the answer is cut" in done.stderr), (1, True), f"{size} bytes: {done.stderr}")
        finally:
            proxy.listening.close()
            store.drop()


@case
def a_copy_of_a_shard_that_lacks_rows_is_not_called_complete():
    proxy = Proxy(one_server())
    with tempfile.TemporaryDirectory() as folder:
        store = Cluster(folder, [proxy]).create()
        try:
            server = store.server()
            send(server, range(1, 4))
            check_equal(server.stop(), 0, "exit status")
            proxy.replaced = (b"toUInt64(max(is_readonly", b"toUInt64(1 + max(is_readonly")  # it is behind its twin
            done = store.run("copy", f"{folder}/back")
            check_equal((done.returncode, "lacks rows for now; run the command again to continue" in done.stderr), (3, True), done.stderr)
            proxy.replaced = None
            done = store.run("copy", f"{folder}/back")
            check_equal((done.returncode, "of 3 chunks" in done.stderr), (0, True), done.stderr)
        finally:
            proxy.listening.close()
            store.drop()


@case
def servers_share_projects_keys_and_data():
    with cluster() as store:
        first = store.server()
        second = store.server(folder=f"{store.folder}-2")
        check_equal(second.project, first.project, "project of the second server")
        send(first, [1])
        check_equal(second.request("POST", f"/api/{first.project}/envelope/", chunk_envelope(2), first.auth()).status, 200, "status")
        check_equal(second.chunk_numbers(), [1, 2], "chunks")
        check_equal(first.read("top?type=samples")["total"], 40, "samples")  # each server numbers stacks by itself
        for server, other, name in ((first, second, "one"), (second, first, "two")):
            token, key = new_token(OFFBEAT, server.data, server.project), new_project(OFFBEAT, server.data, name)
            header = {"Authorization": f"Bearer {token}"}
            wait_until(lambda: other.get("services", header).status == 200, f"the token of {name} is not known")
            wait_until(lambda: key in administer(OFFBEAT, other.data, "projects").stdout, f"the key of {name} is not known")
        number = re.findall(r"^(\d+) +\d+ +read ", administer(OFFBEAT, first.data, "keys").stdout, re.MULTILINE)[-1]
        tokens = administer(OFFBEAT, second.data, "keys").stdout.count(" read ")
        check_equal(administer(OFFBEAT, first.data, "revoke-key", number).returncode, 0, "status")
        wait_until(lambda: administer(OFFBEAT, second.data, "keys").stdout.count(" read ") == tokens - 1, "the key is still valid")
        check_equal((first.stop(), second.stop()), (0, 0), "exit status")


@long
@case
def the_current_engine_takes_all_statements():
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "offbeat-npm-chdb/node_modules/chdb")
    if not folder.exists() or not shutil.which("node"):
        skip("chdb of npm is not installed")
    proxy = Proxy(one_server())
    with tempfile.TemporaryDirectory() as scratch:
        store = Cluster(scratch, [proxy])
        proxy.statements = []
        try:
            store.create()
            check_equal(store.run("check").returncode, 0, "status of check")
            server = store.server("--keep", "14")
            now = time.time()
            send(server, range(1, 21), start=now - 7200)
            send(server, range(21, 26), start=now - 60)
            check_equal(server.send(envelope(item("profile_chunk", {"version": "2"}, platform="python"))).status, 200, "status")
            wait_for_chunks(server, 25)
            check_equal(server.stop(), 0, "exit status")
            server = store.server("--keep", "14")  # its first turn makes the roll-ups
            wait_until(lambda: any("level > 0" in one["sql"] for one in proxy.statements), "no roll-up was looked for")
            for route in ("services", "spans", "rejected", "outcomes", "chunks?host=x", "top?type=samples", "top?type=samples&service=shop&release=shop@1.0",
                          "series?type=samples", "tags", f"top?type=samples&at={int(now) - 100}"):
                server.get(route)
            check(b"chunk_id" in server.payload(21), "no payload")
            done = administer(OFFBEAT, store.folder, "delete", server.project, "--service", "shop")
            check_equal(done.returncode, 0, done.stderr)
            check_equal(server.stop(), 0, "exit status")
            check_equal(store.run("copy", f"{scratch}/back").returncode, 0, "status of the copy")
            check_equal(store.run("delete", store.database).returncode, 0, "status of delete")
        finally:
            proxy.listening.close()
            store.drop()
        check(len(proxy.statements) > 100, f"{len(proxy.statements)} statements")
        lines = [one | {"named": store.database} for one in proxy.statements if not one["sql"].startswith("DROP")]
        pathlib.Path(scratch, "statements").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
        done = subprocess.run(["node", HERE / "current_engine.mjs", folder, f"{scratch}/statements", f"{scratch}/engine"], capture_output=True, text=True)
        check_equal(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        print(f"# {found['version']}: {found['statements']} statements, {found['rows']} chunks")
        check_equal((found["refused"], found["rows"]), ([], "25"), "refused statements, and chunks")


# --- Two shards, one of which has two replicas ------------------------------------------------------------------------

_machines = {}


_turn = threading.Lock()  # of the cases with replicas
PLACES = {"a": ("1", "1"), "b": ("1", "2"), "c": ("2", "1"), "d": ("2", "2")}  # shard and replica


def machine(name):
    """One of PLACES, or the "keeper". They end with the program."""
    if name not in _machines:
        folder = tempfile.TemporaryDirectory(prefix=f"offbeat-cluster-{name}-")
        atexit.register(folder.cleanup)
        _machines[name] = (clickhouse.ZooKeeper(f"{folder.name}/zookeeper") if name == "keeper" else
                           clickhouse.Server(f"{folder.name}/{name}", *PLACES[name], machine("keeper")))
        atexit.register(_machines[name].kill)
    if _machines[name].process is None or _machines[name].process.poll() is not None:  # its end says nothing of offbeat
        _machines[name].start()
    return _machines[name]


@contextlib.contextmanager
def replicas(*names):
    missing = clickhouse.missing_for_replicas()
    if missing:
        skip(f"{missing} is not installed: replicas are not tried")
    with _turn, tempfile.TemporaryDirectory() as folder:
        servers = [machine(name) for name in names]
        store = Cluster(folder, servers)
        for server in servers:
            server.wait()
        try:
            yield store.create()
        finally:
            for server in servers:
                server.send(signal.SIGCONT)  # its tables end with it: to drop them takes half a minute after a trouble


@case
def columns_that_tables_of_two_replicas_lack_are_added():
    with replicas("a", "b") as store:
        columns = f"SELECT count() FROM system.columns WHERE database = '{store.database}' AND table = 'sum' AND name = 'set_rows'"
        store.servers[0].query(f"ALTER TABLE {store.database}.sum DROP COLUMN set_rows")
        wait_until(lambda: all(one.query(columns).strip() == "0" for one in store.servers), "the replicas differ")
        store.create()
        wait_until(lambda: all(one.query(columns).strip() == "1" for one in store.servers), "the replicas differ")


class Load:
    """Sends chunks of eight services to SERVERS, a list that may change, one after the other. A chunk without an answer is sent again, to another one."""

    def __init__(self, servers, pause=0.01):
        self.servers, self.pause, self.count, self.attempts, self.ends = servers, pause, 0, 0, threading.Event()
        self.sender = threading.Thread(target=self.run)

    def __enter__(self):
        self.sender.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.sender.join()

    def run(self):
        while not self.ends.is_set():
            self.send(self.count + 1)
            self.count += 1
            time.sleep(self.pause)

    def send(self, number):
        while True:
            self.attempts += 1
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.servers[self.attempts % len(self.servers)].send(chunk_envelope(number, release=f"service-{number % 8}@1")).status == 200:
                    return
            time.sleep(0.01)

    def check(self, server):
        wait_for_chunks(server, self.count)
        check_equal(server.chunk_numbers("limit=10000"), list(range(1, self.count + 1)), "chunks")
        check_equal(server.read("top?type=samples")["total"], 20 * self.count, "samples")


@case
def chunks_count_once_while_servers_and_replicas_are_killed():
    seed = random.SystemRandom().randrange(1, 1 << 32)
    print(f"# seed {seed}")
    numbers, killed = random.Random(seed), {}
    with replicas(*("abcd" if IS_LONG else "ab")) as store:
        start = lambda i: store.server(ack="spool", folder=f"{store.folder}-{i}")  # noqa: E731
        servers = [start(0)]
        servers += [start(i) for i in range(1, 3)]
        for server in servers:
            server.key, server.project, server.token = servers[0].key, servers[0].project, servers[0].token
        wait_until(lambda: all(server.get("services").status != 401 for server in servers), "the key is not shared")
        with Load(servers) as load:
            for turn in range(KILLS):
                time.sleep(0.5)
                i = numbers.randrange(len(servers) + len(store.servers)) if IS_LONG else (0, 3, 1, 4)[turn % 4]
                killed[i] = killed.get(i, 0) + 1
                if i < len(servers):
                    access = {name: getattr(servers[i], name) for name in ("key", "project", "token")}
                    servers[i].kill()
                    servers[i] = start(i)
                    vars(servers[i]).update(access)
                else:
                    one = store.servers[i - len(servers)]
                    one.kill()
                    time.sleep(0.5)
                    one.launch()
                    one.wait(table=f"{store.database}.chunk")
        check(load.count > 50, f"{load.count} chunks")
        print(f"# {load.count} chunks, sent {load.attempts} times; kills of servers 0 to 2 and of replicas: {sorted(killed.items())}")
        for server in servers:
            load.check(server)
            server.kill()
        access = {name: getattr(servers[0], name) for name in ("key", "project", "token")}
        server = start(0)  # sends all of it again
        vars(server).update(access)
        servers[:] = [server]
        load.send(load.count + 1)
        load.count += 1
        load.check(server)
        check_equal(server.stop(), 0, "exit status")


@long
@case
def every_chunk_counts_once_when_zookeeper_dies_in_inserts():
    with replicas("a", "b") as store:
        server, number, keeper = store.server(ack="spool"), 0, machine("keeper")
        for _ in range(3):
            for step in range(200):
                number += 1
                send(server, [number])
                time.sleep(0.01)
                if step == 100:
                    keeper.kill()
            keeper.start()
        wait_for_chunks(server, number, seconds=120)
        check_equal(server.read("top?type=samples")["total"], 20 * number, "samples")
        check_equal(server.stop(), 0, "exit status")


def in_time(what, seconds):
    """Three seconds are the goal; a busy machine has more."""
    print(f"# {seconds:.1f} s until {what}")
    check(seconds < 6, f"{what} comes after {seconds:.1f} s")


@contextlib.contextmanager
def second_machine():
    """A network namespace with a cable to it: (its name, our end of the cable, the address here, the address there)."""
    name, cable = f"offbeat{os.getpid()}", f"ob{os.getpid()}"
    run = lambda *words: subprocess.run(["ip", *words], capture_output=True, text=True)  # noqa: E731
    made = run("netns", "add", name)
    if made.returncode:
        skip(f"no network namespaces here: {made.stderr.strip()}")
    try:
        for words in (("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name), ("address", "add", "10.213.77.1/30", "dev", cable),
                      ("link", "set", cable, "up"), ("-n", name, "address", "add", "10.213.77.2/30", "dev", "eth0"), ("-n", name, "link", "set", "eth0", "up"),
                      ("-n", name, "link", "set", "lo", "up")):
            done = run(*words)
            check_equal(done.returncode, 0, f"ip {' '.join(words)}: {done.stderr}")
        yield name, cable, "10.213.77.1", "10.213.77.2"
    finally:
        run("netns", "delete", name)


@long
@case
def chunks_count_once_though_the_network_is_cut():
    missing = clickhouse.missing_for_replicas() or (None if shutil.which("ip") else "iproute2")
    if missing:
        skip(f"{missing} is not installed")
    with second_machine() as (namespace, cable, here, there), tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        keeper = clickhouse.ZooKeeper(f"{folder}/keeper", here)
        ends.callback(keeper.stop)
        keeper.start()
        near = clickhouse.Server(f"{folder}/near", "1", "1", keeper, host=here)
        far = clickhouse.Server(f"{folder}/far", "1", "2", keeper, host=there, namespace=namespace)
        for one in (near, far):
            ends.callback(one.stop)
            one.start()
        store = Cluster(folder, [far, near]).create()
        server = store.server(ack="spool")
        slowest = 0
        with Load([server]) as load:
            for _ in range(5):
                time.sleep(2)
                subprocess.run(["ip", "link", "set", cable, "down"], check=True)
                end = time.monotonic() + 8  # the replica's session ends after 6 s
                while time.monotonic() < end:
                    begin = time.monotonic()
                    check_equal(server.get("top?type=samples").status, 200, "status")
                    slowest = max(slowest, time.monotonic() - begin)
                subprocess.run(["ip", "link", "set", cable, "up"], check=True)
                far.wait(table=f"{store.database}.chunk")
        in_time("the slowest answer", slowest)
        load.check(server)
        server.kill()
        load.servers[:] = [store.server(ack="spool")]  # sends all of it again
        load.send(load.count + 1)
        load.count += 1
        load.check(load.servers[0])
        check_equal(load.servers[0].stop(), 0, "exit status")
        print(f"# {load.count} chunks")


@case
def a_frozen_replica_is_passed_over_for_its_twin():
    with replicas("a", "b") as store:
        for one in store.servers:
            one.wait(table=f"{store.database}.chunk")  # it takes part again after an earlier case
        server = store.server()
        send(server, range(1, 4))
        wait_until(lambda: all(one.query(f"SELECT count() FROM {store.database}.sum") == "3" for one in store.servers),
                   "the replicas differ")
        for frozen in store.servers:
            frozen.send(signal.SIGSTOP)
            answers = [server.read("top?type=samples") for _ in range(4)]
            check_equal([one["total"] for one in answers], [60] * 4, "samples")
            wait_until(lambda: "is_incomplete" not in server.read("top?type=samples"), "the twin does not count as complete")
            frozen.send(signal.SIGCONT)
            frozen.wait(table=f"{store.database}.chunk")  # its session may have ended
        for frozen in store.servers:
            frozen.send(signal.SIGSTOP)
        begin = time.monotonic()
        check_equal(server.get("top?type=samples").status, 503, "status without replicas")
        answered = time.monotonic()
        sender = threading.Thread(target=server.send, args=[chunk_envelope(4)])
        sender.start()
        time.sleep(0.5)
        begun = time.monotonic()
        check_equal(server.stop(), 0, "exit status")
        sender.join()
        in_time("the answer", answered - begin)
        in_time("the end", time.monotonic() - begun)


@case
def an_answer_that_lacks_a_shard_says_so():
    with replicas("a", "b", "c") as store:
        for one in store.servers:
            one.wait(table=f"{store.database}.chunk")
        server = store.server(ack="spool")
        for number in range(1, 13):
            send(server, [number], release=f"service-{number}@1")
        wait_for_chunks(server, 12)
        check_equal(len(server.read("services")["services"]), 12, "services")
        wait_until(lambda: len({one.query(f"SELECT uniqExact(id) FROM {store.database}.chunk") for one in store.servers[:2]}) == 1,
                   "the replicas differ")
        counts = [int(one.query(f"SELECT uniqExact(id) FROM {store.database}.chunk")) for one in store.servers]
        check(counts[2] > 0 and counts[0] + counts[2] == 12, f"chunks of the servers: {counts}")
        store.servers[2].send(signal.SIGSTOP)
        for route in ("top?type=samples", "services", "top?type=samples"):
            begin = time.monotonic()
            check_equal(server.read(route)["is_incomplete"], True, "is_incomplete")
            in_time(f"the answer without a frozen shard to {route}", time.monotonic() - begin)
        store.servers[2].kill()
        answer = server.get("services")
        check_equal((answer.status, answer.json().get("is_incomplete"), answer.headers.get("X-Offbeat-Incomplete"),
                     len(answer.json()["services"])), (200, True, "shard 2", counts[0]), "services")
        answer = server.get("top?type=samples")
        check_equal((answer.json()["is_incomplete"], answer.json()["total"]), (True, 20 * counts[0]), "samples")
        done = subprocess.run([OFFBEAT, "top", server.url + "?type=samples", "--json"], capture_output=True, text=True, check=True)
        check("shard 2" in done.stderr and "shard 2" in json.loads(done.stdout)["omissions"][0], f"{done.stderr}{done.stdout[:300]}")
        for number in range(1, 13):
            send(server, [100 + number], release=f"service-{number}@1")
        store.servers[2].start(table=f"{store.database}.chunk")
        wait_until(lambda: "is_incomplete" not in server.read("services"), "the shard stays away")
        wait_for_chunks(server, 24)
        check_equal(server.stop(), 0, "exit status")


main(sys.argv[2] if len(sys.argv) > 2 else "", at_once=3)  # they mostly wait
