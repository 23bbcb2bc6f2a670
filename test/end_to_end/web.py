"""A web application in Python under load: its threads' functions, sent to a server. Arguments: the build folder, and optionally a
part of the names of the cases. SPDX-License-Identifier: MIT"""
import concurrent.futures
import http.client
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "serve")]
from recording import Folder, Offbeat, case, check, main, skip, text, wait_until  # noqa: E402
from server_process import Server  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
PYTHON = "/usr/bin/python3"  # the one that Debian's packages are for
HERE = pathlib.Path(__file__).resolve().parent
THREADS, SECONDS = 2, 3


class Shop:
    """The application with THREADS, recorded, until the end of the block."""

    def __init__(self, folder):
        self.log = folder / "gunicorn.log"
        words = [OFFBEAT.program, "record", "--release", "shop@1", "-o", "shop.envelope", "--", PYTHON, "-m", "gunicorn", "--chdir", HERE,
                 "--bind", "127.0.0.1:0", "--worker-class", "gthread", "--threads", str(THREADS), "shop:app"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(word) for word in words], cwd=folder, stderr=log, stdout=log)

    def port(self):
        found = re.search(r"Listening at: http://127.0.0.1:(\d+)", text(self.log.read_bytes()))
        return int(found[1]) if found else 0

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def load(port, end):
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for path in ("/book/7", "/book/8", "/similar/Buch%2012"):
            connection.request("GET", path)
            check(connection.getresponse().read().startswith((b"{", b"[")), path)


def record_shop(folder):
    shop = Shop(folder)
    try:
        wait_until(lambda: shop.port() or shop.process.poll() is not None, "gunicorn does not begin")
        check(shop.port(), text(shop.log.read_bytes()))
        end = time.monotonic() + SECONDS
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for client in [pool.submit(load, shop.port(), end) for _ in range(THREADS)]:
                client.result()
        check(shop.stop() == 0, text(shop.log.read_bytes()))
    finally:
        shop.process.kill()
        shop.process.wait()


def parents_of(boxes, name):
    """The names of all callers of the function NAME in a flame graph."""
    found = set()
    for box in boxes:
        is_below = box["name"] == name
        while is_below and box["depth"] > 0:
            box = boxes[box["parent"]]
            found.add(box["name"])
    return found


@case
def a_slow_view_is_named_by_thread():
    if subprocess.run([PYTHON, "-c", "import flask, gunicorn"], capture_output=True, check=False).returncode:
        skip("python3-flask and gunicorn are not installed")
    with Folder() as folder:
        server = Server(OFFBEAT.program, folder / "data")
        record_shop(folder)
        sent = subprocess.run([OFFBEAT.program, "send", *sorted(folder.glob("shop*.envelope")), "--dsn", server.dsn], cwd=folder, capture_output=True, check=False)
        check(sent.returncode == 0, text(sent.stderr))
        views = {one["name"]: one["total"] for one in server.read("top?focus=show_book|find_similar")["functions"]}
        slow, fast = views.get("find_similar", 0), views.get("show_book", 0)
        check(slow > 3 * fast and views.get("distance", 0) > 0.8 * slow, f"find_similar() has {slow} ns, show_book() {fast}: {views}")
        threads = server.read("top?focus=find_similar&by=thread")["threads"]
        check(any(one["name"] == "distance" for thread in threads.values() for one in thread["functions"]), f"{threads}")
        callers = parents_of(server.read("flame?focus=find_similar")["boxes"], "distance")
        check(callers >= {"find_similar", "Flask.dispatch_request", "ThreadWorker.handle", "Thread.run"}, f"callers of distance(): {callers}")
        server.stop()


main(sys.argv[2] if len(sys.argv) > 2 else "")
