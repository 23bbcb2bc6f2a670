"""Profiles from a web server are read as files are. Argument: the program. SPDX-License-Identifier: MIT"""
import contextlib
import http.server
import os
import pathlib
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from pprof_readers import CheckedFolder  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = sys.argv[1]
COLLAPSED = b"main;parse 30\nmain;write 12\n"


class Server(http.server.BaseHTTPRequestHandler):
    """Answers with a profile, or as the path says; notes what was asked."""

    asked = []

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("Authorization")))
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/profile")
            self.end_headers()
            return
        status, body = (500, b"profiling is in use\nand more") if self.path.startswith("/busy") else (200, COLLAPSED)
        if self.path.startswith("/nothing"):
            body = b""
        if self.path.startswith("/away"):
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + (9 if self.path.startswith("/cut") else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving():
    """The port of a server."""
    Server.asked.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def offbeat(*arguments):
    environment = {**os.environ, "TZ": "UTC", "no_proxy": "*"}
    return subprocess.run([OFFBEAT, *arguments], capture_output=True, text=True, env=environment, check=False)


def rows(done):
    """The table of TOP, without the name of the file."""
    check_equal(done.returncode, 0, f"status; {done.stderr}")
    return [line for line in done.stdout.splitlines() if "%" in line]


@case
def every_command_reads_an_address_as_it_reads_a_file():
    with serving() as port, CheckedFolder() as folder:
        path = pathlib.Path(folder, "x.collapsed")
        path.write_bytes(COLLAPSED)
        check("parse" in offbeat("top", path).stdout, "the file is read")
        for place in ("/profile", "/moved"):
            check_equal(rows(offbeat("top", f"http://127.0.0.1:{port}{place}")), rows(offbeat("top", path)), place)
        check_equal(rows(offbeat("pprof", "-top", f"http://127.0.0.1:{port}/profile")), rows(offbeat("pprof", "-top", path)),
                    "pprof")


@case
def pprof_asks_for_seconds_and_takes_an_address_without_a_scheme():
    with serving() as port:
        for source, asked in ((f"127.0.0.1:{port}/profile", "/profile?seconds=7"),
                              (f"http://127.0.0.1:{port}/profile?seconds=30&debug=0",
                               "/profile?seconds=7&seconds=30&debug=0")):
            check_equal(offbeat("pprof", "-seconds=7", "-top", source).returncode, 0, "status")
            check_equal(Server.asked[-1][0], asked, "what was asked")
        check_equal(offbeat("pprof", "-top", f"127.0.0.1:{port}/profile").returncode, 0, "status")
        check_equal(Server.asked[-1][0], "/profile", "what was asked")


@case
def a_password_in_the_address_is_sent():
    with serving() as port:
        check_equal(offbeat("top", f"http://me:secret@127.0.0.1:{port}/profile").returncode, 0, "status")
        check_equal(Server.asked[-1][1], "Basic bWU6c2VjcmV0", "authorization")


@case
def what_is_no_profile_is_said_in_one_line():
    with serving() as port:
        for place, words in (("/busy", "status 500: profiling is in use"), ("/nothing", "is empty"), ("/cut", ""),
                             ("/away", "")):
            done = offbeat("top", f"http://127.0.0.1:{port}{place}")
            check(done.returncode not in (0, -11) and words in done.stderr, f"{place}: {done.returncode} {done.stderr}")
            check_equal(len(done.stderr.splitlines()), 1, f"{place}: lines of {done.stderr!r}")
    done = offbeat("top", f"http://127.0.0.1:{port}/profile")
    check(done.returncode != 0 and len(done.stderr.splitlines()) == 1, f"nobody listens: {done.stderr}")


main()
