"""Clients of npm send to `offbeat serve`: Sentry's SDKs for Node (8, 9, 10, 11) and browsers, and Pyroscope's client for Node. Each is
visible, has the numbers that the client sent, which a relay keeps, and is joined with its traces. A client samples late on a busy machine, so
the clock says little. `./dev test nightly` installs them. Argument: the build folder. SPDX-License-Identifier: MIT"""
import calendar
import collections
import contextlib
import gzip
import http.client
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end")]
from server_process import running  # noqa: E402
import chromium  # noqa: E402
from pprof_fields import pprof_fields, varints  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
PROGRAMS = pathlib.Path(__file__).with_suffix("")


class Relay(http.server.BaseHTTPRequestHandler):
    """Passes each request on to the server, and keeps the bodies."""

    def read_body(self):
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"] or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def pass_on(self):
        body = self.read_body()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.to)
        connection.request(self.command, self.path, body, {name: value for name, value in self.headers.items() if name != "Transfer-Encoding"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name not in ("Connection", "Transfer-Encoding", "Content-Length", "Date", "Server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        if body:
            self.server.bodies.append(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)

    do_POST = do_OPTIONS = pass_on  # noqa: N815

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def relayed(server):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay) as relay:
        relay.to, relay.bodies = server.port, []
        relay.dsn = server.dsn.replace(f":{server.port}/", f":{relay.server_port}/")
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        yield relay
        relay.shutdown()


def folder_of(name):
    folder = CACHE / f"offbeat-npm-{name}"
    if not (folder / "node_modules").is_dir():
        skip(f"{folder} is not there: ./dev test nightly installs it")
    return folder


def node(client, program, *words, **environment):
    if not shutil.which("node"):
        skip("node is not installed")
    with tempfile.TemporaryDirectory(dir=folder_of(client)) as folder:
        done = subprocess.run(["node", shutil.copy(PROGRAMS / program, folder), *words], env=os.environ | environment, capture_output=True,
                              text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)


def items_of(envelope):
    """(type, payload) of each item."""
    at = envelope.index(b"\n") + 1
    while at < len(envelope):
        end = envelope.index(b"\n", at)
        header = json.loads(envelope[at:end])
        size = header.get("length", (envelope + b"\n").index(b"\n", end + 1) - end - 1)
        yield header["type"], envelope[end + 1:end + 1 + size]
        at = end + 2 + size


def time_of_text(text):
    """Nanoseconds of a time of UTC."""
    seconds, _, fraction = text.replace("+00:00", "").rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) * 10 ** 9 + int(fraction.ljust(9, "0")[:9])


def callers_of_both(left, right):
    """What two stacks, innermost first, have in common."""
    count = 0
    while count < min(len(left), len(right)) and left[-1 - count] == right[-1 - count]:
        count += 1
    return left[len(left) - count:]


def fill_idle(samples):
    """An idle sample of V1 has the callers of those around it (doc/formats/sentry-v1.md)."""
    for number, (time_ns, stack) in enumerate(samples):
        if not stack and number > 0:
            following = next((other for _, other in samples[number:] if other), [])
            samples[number] = time_ns, callers_of_both(samples[number - 1][1], following)


def intervals_sent(bodies, function):
    """(begin, end) of each sample of FUNCTION: it lasts until the next one of its thread."""
    for kind, payload in (one for body in bodies for one in items_of(body)):
        if kind not in ("profile", "profile_chunk"):
            continue
        payload = json.loads(payload)
        profile, threads = payload["profile"], collections.defaultdict(list)
        begin = time_of_text(payload["timestamp"]) if kind == "profile" else 0
        for sample in profile["samples"]:
            time_ns = begin + int(sample["elapsed_since_start_ns"]) if kind == "profile" else int(sample["timestamp"] * 1e9)
            threads[sample["thread_id"]].append((time_ns, profile["stacks"][sample["stack_id"]]))
        for samples in threads.values():
            samples.sort(key=lambda one: one[0])
            if kind == "profile":
                fill_idle(samples)
            yield from ((one[0], after[0]) for one, after in zip(samples, samples[1:])
                        if one[1] and profile["frames"][one[1][0]]["function"].endswith(function))


def self_of(server, query, part):
    return sum(one["self"] for one in server.read(f"top?{query}")["functions"] if part in f"{one['name']}:")


def check_joined(server, relay, service):
    """One transaction, which has the profile."""
    found = server.read(f"transactions?service={service}")["transactions"]
    check_equal([one["name"] for one in found], ["work"], f"transactions of {service}")
    begin, end = (time_of_text(found[0][name]) for name in ("start", "end"))
    sent = list(intervals_sent(relay.bodies, "burn"))
    for query, value in ((f"service={service}", sum(last - first for first, last in sent)),
                         (f"service={service}&transaction=work", sum(max(min(last, end) - max(first, begin), 0) for first, last in sent))):
        answer = self_of(server, query, "burn:")
        print(f"# {query}: sent {value / 1e6:.3f} ms, answered {answer / 1e6:.3f}")
        check(value > 0 and abs(answer - value) < 1000 * len(sent), f"{query}: {answer}, {value} sent")
    boxes = server.read(f"flamechart?span={found[0]['span']}")["boxes"]
    charted = sum(one["self"] for one in boxes if one["name"].endswith("burn"))
    check(abs(charted - value) < 1000 * len(sent), f"chart of {service}: {charted}, {value} sent")


def check_sentry_node(version, lifecycles, traces=("static",)):
    with running(OFFBEAT) as server:
        for lifecycle in lifecycles:
            for kind in traces:
                service = f"node{version}-{lifecycle}-{kind}"
                with relayed(server) as relay:
                    node(f"sentry-node-{version}", "sentry_node.js", lifecycle, kind, SENTRY_DSN=relay.dsn, SENTRY_RELEASE_NAME=service)
                check_joined(server, relay, service)
        check_equal(server.read("rejected")["rejected"], [], "rejected items")


@case
def sentry_node_8():
    check_sentry_node(8, ["v1", "manual"])


@case
def sentry_node_9():
    check_sentry_node(9, ["v1", "manual", "trace"])


@case
def sentry_node_10():
    check_sentry_node(10, ["v1", "manual", "trace"])


@case
def sentry_node_11():
    check_sentry_node(11, ["manual", "trace"], ["static", "stream"])


def values_of(file):
    """{type: [value of each sample]} and the function of each sample, of a pprof file."""
    message = list(pprof_fields(file))
    strings = [value.decode() for number, value in message if number == 6]
    names = {dict(pprof_fields(value))[1]: strings[dict(pprof_fields(value))[2]] for number, value in message if number == 5}
    innermost = {}
    for place in (dict(reversed(list(pprof_fields(value)))) for number, value in message if number == 4):
        innermost[place[1]] = names[dict(pprof_fields(place[4]))[1]]
    samples = [collections.defaultdict(list) for number, _ in message if number == 2]
    for sample, content in zip(samples, (value for number, value in message if number == 2)):
        for number, value in pprof_fields(content):
            sample[number].extend(varints(value))
    types = [strings[dict(pprof_fields(value))[1]] for number, value in message if number == 1]
    return {name: [sample[2][column] for sample in samples] for column, name in enumerate(types)}, [innermost[sample[1][0]] for sample in samples]


@case
def pyroscope_node():
    with running(OFFBEAT) as server:
        with relayed(server) as relay:
            node("pyroscope-node", "pyroscope_node.js", SERVER_ADDRESS=f"http://127.0.0.1:{relay.server_port}", KEY=server.key)
        types = {one["name"]: one["rule"] for one in server.read("types?service=node.shop")["types"]}
        check_equal(types, {"cpu": "sum", "wall": "sum", "wall:samples": "sum", "inuse_objects": "average", "inuse_space": "average"}, "types")
        sent = [values_of(body) for body in relay.bodies]
        for kind, function in (("wall", "burn"), ("cpu", "burn"), ("inuse_space", "keep")):
            values = [[value for value, name in zip(columns[kind], names) if f":{function}:" in f"{name}:"] for columns, names in sent if kind in columns]
            expected = sum(map(sum, values)) / (len(values) if types[kind] == "average" else 1)
            slack = sum(map(len, values)) if types[kind] == "average" else 0  # an average is rounded for each stack
            answer = self_of(server, f"service=node.shop&type={kind}", f":{function}:")
            print(f"# {kind} of {function}: {len(values)} profiles, {expected:.1f} sent, {answer} answered")
            check(expected > 0 and abs(answer - expected) <= slack, f"{kind} of {function}: {answer}, {expected} sent")
        check(server.read("top?service=node.shop&type=wall&tag_focus=region=eu")["total"] > 0, "wall time of a tag")
        check_equal({(one["host"], one["platform"]) for one in server.read("chunks?service=node.shop")["chunks"]}, {("h1", "node")}, "columns")
        check_equal(server.read("rejected")["rejected"], [], "rejected profiles")


class Page(http.server.BaseHTTPRequestHandler):
    """Serves the page, with the policy that lets it profile itself."""

    def do_GET(self):  # noqa: N802
        is_script = self.path.endswith(".js")
        body = self.server.script if is_script else f"<!doctype html><script>window.DSN = '{self.server.dsn}'</script><script src=bundle.js></script>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if is_script else "text/html")
        self.send_header("Document-Policy", "js-profiling")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@case
def sentry_browser():
    if not shutil.which("esbuild"):
        skip("esbuild is not installed")
    modules = folder_of("sentry-browser-10")
    bundle = subprocess.run(["esbuild", "--bundle", "--log-level=error", PROGRAMS / "sentry_browser.js"], capture_output=True, timeout=120,
                            env=os.environ | {"NODE_PATH": str(modules / "node_modules")}, check=True).stdout
    with running(OFFBEAT) as server, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        for lifecycle in ("v1", "trace"):
            with relayed(server) as relay, chromium.started() as browser:
                pages.script, pages.dsn = bundle, relay.dsn
                browser.open(f"http://127.0.0.1:{pages.server_port}/?{lifecycle}")
                browser.wait("window.done !== undefined")
                browser.run("window.done")
            check_joined(server, relay, f"browser-{lifecycle}")
        pages.shutdown()
        check_equal(server.read("rejected")["rejected"], [], "rejected items")


main()
