"""A running `offbeat serve` for the tests, and requests to it. SPDX-License-Identifier: MIT"""
import atexit
import base64
import contextlib
import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import check  # noqa: E402


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Server:
    def __init__(self, offbeat, data, *options):
        self.errors, self.data = tempfile.TemporaryFile(), data
        usual = {"--listen": "127.0.0.1:0", "--keep": "0"}  # the times of fixtures are old
        options = [word for name, value in usual.items() if name not in options for word in (name, value)] + list(options)
        self.process = subprocess.Popen([offbeat, "serve", "--data", data, *options],
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        atexit.register(self.end)  # of a case that failed before it ended its server
        lines = [self.process.stdout.readline(), self.process.stdout.readline()]
        found = re.fullmatch(r"DSN: http://(\w{32})@[0-9.]+:(\d+)/(\d+)\nURL: (http://offbeat:(\w{32})@\S+)\n", "".join(lines))
        check(found, f"the server printed {lines}: {self.said()}")
        self.key, self.port, self.project, self.url, self.token = (found[1], int(found[2]), found[3], found[4], found[5])
        self.dsn = lines[0].removeprefix("DSN: ").strip()
        while not lines[-1].startswith("upload: "):
            lines.append(self.process.stdout.readline())
            check(lines[-1], f"the server printed {lines}: {self.said()}")
        self.page_url = next((line.split()[1] for line in lines if line.startswith("page: ")), None)
        self.upload_url = lines[-1].removeprefix("upload: ").strip()
        self.upload_token = self.upload_url.split("//")[1].split("@")[0]

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.kill()

    def memory_peak_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024

    def request(self, method, path, body=None, headers=None, timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status >= 500:
                print(f"# {method} {path}: {answer.status} {body[:300]}")
            return Answer(answer.status, dict(answer.getheaders()), body)
        finally:
            connection.close()

    def read_header(self):
        return {"Authorization": "Basic " + base64.b64encode(f"offbeat:{self.token}".encode()).decode()}

    def get(self, route, headers=None):
        return self.request("GET", f"/api/{self.project}/{route}", headers=headers or self.read_header())

    def read(self, route):
        answer = self.get(route)
        check(answer.status == 200, f"GET {route}: {answer.status} {answer.body[:300]}")
        return answer.json()

    def chunk_numbers(self, query=""):
        """The numbers that chunk() made ids of, in order; chunks without such an id are no part of it."""
        return sorted(int(one["chunk"], 16) for one in self.read(f"chunks?{query}")["chunks"])

    def payload(self, number):
        """What is stored of the chunk with that number."""
        return self.get(f"raw?chunk={number:032x}").body

    def auth(self):
        return {"X-Sentry-Auth": f"Sentry sentry_version=7, sentry_key={self.key}, sentry_client=test/1"}

    def send(self, envelope, **headers):
        return self.request("POST", f"/api/{self.project}/envelope/", envelope, self.auth() | headers)

    def upload(self, profile, query=""):
        return self.request("POST", f"/api/{self.project}/profiles?{query}", profile, self.auth())

    def outcomes(self):
        return {(one["outcome"], one["category"], one["reason"]): one["quantity"] for one in self.read("outcomes")["outcomes"]}


def administer(offbeat, folder, *words):
    """What `offbeat serve admin` does with the data in FOLDER, whether a server runs or not."""
    return subprocess.run([offbeat, "serve", "admin", "--data", folder, *words], capture_output=True, text=True, timeout=120)


def new_token(offbeat, folder, project, role="read"):
    done = administer(offbeat, folder, "add-key", project, "--role", role)
    check(done.stdout.startswith("token: "), done.stderr)
    return done.stdout.removeprefix("token: ").strip()


def new_project(offbeat, folder, name):
    """The key of a new project."""
    done = administer(offbeat, folder, "add-project", name)
    check("DSN: " in done.stdout, done.stderr)
    return done.stdout.split("//")[1].split("@")[0]


def seal(path):
    """Gives each page of a database that another program changed the checksum that store/checked_file.c expects."""
    data = bytearray(pathlib.Path(path).read_bytes())
    size = int.from_bytes(data[16:18], "big")
    for place in range(0, len(data), size):
        check_bytes = zlib.crc32(data[place:place + size - 8], zlib.crc32(place.to_bytes(8, "little")))
        data[place + size - 8:place + size] = check_bytes.to_bytes(8, "little")
    pathlib.Path(path).write_bytes(data)


def roll_ups(server):
    text = server.request("GET", "/metrics", headers=server.read_header()).body.decode()
    return int(next(line for line in text.splitlines() if line.startswith("offbeat_roll_ups_total ")).split()[1])


def wait_for_roll_ups(server):
    """They begin at once after the start. There are none if the server before this one has made them."""
    deadline, counts = time.monotonic() + 60, []
    while time.monotonic() < deadline and (len(counts) < 5 or len(set(counts[-5:])) > 1):
        time.sleep(0.3)
        counts.append(roll_ups(server))


@contextlib.contextmanager
def running(offbeat, *options, data=None):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(offbeat, data or f"{folder}/data", *options)
        try:
            yield server
        finally:
            server.end()


def item(kind, payload, **header):
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return json.dumps({"type": kind, "length": len(text), **header}).encode() + b"\n" + text + b"\n"


def envelope(*items, **header):
    return json.dumps(header).encode() + b"\n" + b"".join(items)


def chunk(number, start=None, period=0.01, samples=20, functions=("main", "work"), release="shop@1.0", profiler=1, **other):
    """A chunk whose samples are PERIOD apart: all but the last last that long, in "main" and "work" by turns of ten."""
    start = time.time() - 10 if start is None else start
    return {"version": "2", "profiler_id": f"{profiler:032x}", "chunk_id": f"{number:032x}", "platform": "python",
            "release": release, "environment": "test", "client_sdk": {"name": "test", "version": "1"},
            "profile": {"frames": [{"function": name, "in_app": True} for name in functions],
                        "stacks": [[0], [1, 0]],
                        "samples": [{"timestamp": round(start + i * period, 6), "stack_id": i // 10 % 2, "thread_id": "1"}
                                    for i in range(samples)],
                        "thread_metadata": {"1": {"name": "MainThread"}}}, **other}


def chunk_envelope(number, **options):
    return envelope(item("profile_chunk", chunk(number, **options), platform="python"))
