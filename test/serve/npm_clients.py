"""Clients of npm send to `offbeat serve`: Sentry's SDKs for Node (8, 9, 10, 11) and browsers, and Pyroscope's client for Node. Each is
visible, has the numbers that the program means to burn, and is joined with its traces. `./dev test nightly` installs them.
Argument: the build folder. SPDX-License-Identifier: MIT"""
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import running  # noqa: E402
import chromium  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
PROGRAMS = pathlib.Path(__file__).with_suffix("")
BURNT_NS = 10 * 100_000_000  # by each program of Sentry's, as it means to


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


def burnt(server, query):
    answer = server.read(f"top?{query}")
    return sum(one["self"] for one in answer["functions"] if one["name"].endswith("burn"))


def check_joined(server, service):
    """One transaction, which has the profile."""
    found = server.read(f"transactions?service={service}")["transactions"]
    check_equal([one["name"] for one in found], ["work"], f"transactions of {service}")
    for query in (f"service={service}", f"service={service}&transaction=work"):
        value = burnt(server, query)
        check(0.7 * BURNT_NS < value < 1.15 * BURNT_NS, f"{query}: {value}")
    chart = server.read(f"flamechart?span={found[0]['span']}")
    check(chart["boxes"][0]["duration_ns"] > BURNT_NS, f"chart of {service}: {chart['boxes'][0]}")


def check_sentry_node(version, lifecycles, traces=("static",)):
    with running(OFFBEAT) as server:
        for lifecycle in lifecycles:
            for kind in traces:
                service = f"node{version}-{lifecycle}-{kind}"
                node(f"sentry-node-{version}", "sentry_node.js", lifecycle, kind, SENTRY_DSN=server.dsn, SENTRY_RELEASE_NAME=service)
                check_joined(server, service)
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


@case
def pyroscope_node():
    with running(OFFBEAT) as server:
        node("pyroscope-node", "pyroscope_node.js", SERVER_ADDRESS=f"http://127.0.0.1:{server.port}", KEY=server.key)
        types = {one["name"]: one["rule"] for one in server.read("types?service=node.shop")["types"]}
        check_equal(types, {"cpu": "sum", "wall": "sum", "wall:samples": "sum", "inuse_objects": "average", "inuse_space": "average"}, "types")
        for kind, function, least, most in (("wall", "burn", 1.4e9, 2.4e9), ("cpu", "burn", 0.5e9, 2.4e9), ("inuse_space", "keep", 2e6, 2e8)):
            functions = server.read(f"top?service=node.shop&type={kind}")["functions"]
            value = sum(one["self"] for one in functions if f":{function}:" in one["name"])
            check(least < value < most, f"{kind} of {function}: {value}")
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
        pages.script, pages.dsn = bundle, server.dsn
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        for lifecycle in ("v1", "trace"):
            with chromium.started() as browser:
                browser.open(f"http://127.0.0.1:{pages.server_port}/?{lifecycle}")
                browser.wait("window.done !== undefined")
                browser.run("window.done")
            check_joined(server, f"browser-{lifecycle}")
        pages.shutdown()
        check_equal(server.read("rejected")["rejected"], [], "rejected items")


main()
