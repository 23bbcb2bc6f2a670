"""The kinds of stores that `offbeat serve` can have, for tests. SPDX-License-Identifier: MIT"""
import atexit
import contextlib
import itertools
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "serve")]
import clickhouse  # noqa: E402
from server_process import Server  # noqa: E402
from tap import check_equal, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
_numbers = itertools.count(1)


class Days:
    """The store in files of days."""
    name = "sqlite"

    def __init__(self, folder):
        self.folder = f"{folder}/data"

    def server(self, *options, ack=None):  # everything is on disk when it is acknowledged
        return Server(OFFBEAT, self.folder, *options)


class Cluster:
    """A database of its own on the servers of a cluster. What is acknowledged is visible at once."""
    name = "clickhouse"

    def __init__(self, folder, servers):
        self.folder, self.servers = f"{folder}/data", servers
        self.database = f"test_{next(_numbers)}"
        self.address = f"clickhouse://{','.join(server.place for server in servers)}/{self.database}"
        self.login = f"{folder}/login"
        pathlib.Path(self.login).write_text(f"{clickhouse.USER}\n{clickhouse.PASSWORD}\n", encoding="utf-8")

    def run(self, *words):
        return subprocess.run([OFFBEAT, "store", *words, "--store", self.address, "--store-login", self.login],
                              capture_output=True, text=True, timeout=120)

    def copy_words(self, folder):
        return [OFFBEAT, "store", "copy", "--data", folder, "--store", self.address, "--store-login", self.login]

    def copy(self, folder):
        return subprocess.run(self.copy_words(folder), capture_output=True, text=True, timeout=120)

    def create(self):
        done = self.run("create")
        check_equal(done.returncode, 0, done.stderr)
        return self

    def server(self, *options, ack="cluster", folder=None):
        return Server(OFFBEAT, folder or self.folder, "--store", self.address, "--store-login", self.login, "--ack", ack, *options)

    def drop(self):
        for server in self.servers:
            with contextlib.suppress(OSError, RuntimeError):
                server.query(f"DROP DATABASE IF EXISTS {self.database}")


_servers, _lock = {}, threading.Lock()  # cases may run at the same time


def one_server():
    """A ClickHouse server of all cases, which ends with the program."""
    missing = clickhouse.missing()
    if missing:
        skip(f"{missing} is not installed: the store is tried in files only")
    with _lock:
        if "one" not in _servers:
            folder = tempfile.TemporaryDirectory(prefix="offbeat-clickhouse-")
            server = clickhouse.Server(f"{folder.name}/one", macros=False)
            atexit.register(folder.cleanup)
            atexit.register(server.kill)
            _servers["one"] = server.start()
    return _servers["one"]


@contextlib.contextmanager
def days():
    with tempfile.TemporaryDirectory() as folder:
        yield Days(folder)


@contextlib.contextmanager
def cluster():
    server = one_server()
    with tempfile.TemporaryDirectory() as folder:
        store = Cluster(folder, [server])
        try:
            yield store.create()
        finally:
            store.drop()


def wait_for_chunks(server, count, seconds=60):
    """What a folder has is sent within a second or so; a busy machine may go on for long, but not without a further chunk for SECONDS."""
    end, found, most = time.monotonic() + seconds, 0, 0
    while found < count and time.monotonic() < end:
        answer = server.get("chunks?limit=10000")
        found = len(answer.json()["chunks"]) if answer.status == 200 and "is_incomplete" not in answer.json() else 0
        if found > most:
            most, end = found, time.monotonic() + seconds
        time.sleep(0.05)
    check_equal(found, count, "chunks")
