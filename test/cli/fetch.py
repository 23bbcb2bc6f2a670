"""Profiles from a web server are read as files are. Argument: the program. SPDX-License-Identifier: MIT"""
import contextlib
import http.server
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from pprof_readers import CheckedFolder  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = sys.argv[1]
COLLAPSED = b"main;parse 30\nmain;write 12\n"


class Server(http.server.BaseHTTPRequestHandler):
    """Answers with a profile, or as the path says; notes what was asked."""

    asked = []

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("Authorization")))
        if self.path.startswith("/slow"):
            time.sleep(4)
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
def serving(tls=None):
    """The port of a server; TLS: a context of ssl."""
    Server.asked.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def offbeat(*arguments, **variables):
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "TZ": "UTC", "no_proxy": "*", "HOME": home, **variables}
        environment.setdefault("PPROF_TMPDIR", "")
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
def input_without_a_profile_is_reported_in_one_line():
    with serving() as port:
        for place, words in (("/busy", "status 500: profiling is in use"), ("/nothing", "is empty"), ("/cut", ""),
                             ("/away", "")):
            done = offbeat("top", f"http://127.0.0.1:{port}{place}")
            check(done.returncode not in (0, -11) and words in done.stderr, f"{place}: {done.returncode} {done.stderr}")
            check_equal(len(done.stderr.splitlines()), 1, f"{place}: lines of {done.stderr!r}")
    done = offbeat("top", f"http://127.0.0.1:{port}/profile")
    check(done.returncode != 0 and len(done.stderr.splitlines()) == 1, f"nobody listens: {done.stderr}")


@case
def pprof_keeps_what_it_fetches():
    with serving() as port, tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{port}/profile"
        for number in (1, 2):
            done = offbeat("pprof", "-top", url, PPROF_TMPDIR=folder)
            path = pathlib.Path(folder, f"pprof.00{number}.profile")
            check_equal(done.stderr, f"offbeat: the fetched profile is kept in {path}\n", "messages")
            check_equal(path.read_bytes(), COLLAPSED, "the copy")
        done = offbeat("pprof", "-top", url, PPROF_TMPDIR="", HOME=folder)
        check_equal(done.stderr, f"offbeat: the fetched profile is kept in {folder}/pprof/pprof.001.profile\n", "messages")
        done = offbeat("pprof", "-top", url, PPROF_TMPDIR="/dev/null/x")
        check_equal((done.returncode, len(done.stderr.splitlines())), (0, 1), f"status and lines of {done.stderr!r}")
        check_equal(offbeat("top", url, PPROF_TMPDIR=folder).stderr, "", "offbeat top keeps nothing")


@case
def pprof_waits_as_long_as_timeout_says():
    with serving() as port:
        done = offbeat("pprof", "-timeout=1", "-top", f"http://127.0.0.1:{port}/slow")
        check_equal(done.returncode, 3, f"status; {done.stderr}")
        check("timed out" in done.stderr, done.stderr)


@case
def pprof_proves_itself_by_a_certificate():
    if not shutil.which("openssl"):
        skip("openssl is not installed")
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        tls.load_verify_locations(certificate)
        tls.verify_mode = ssl.CERT_REQUIRED
        with serving(tls) as port:
            words = ("-top", f"https://127.0.0.1:{port}/profile")
            proof = (f"-tls_cert={certificate}", f"-tls_key={key}")
            check_equal(offbeat("pprof", f"-tls_ca={certificate}", *proof, *words).returncode, 0, "with all: status")
            check_equal(offbeat("pprof", *proof, *words).returncode, 3, "without the authority: status")
            check_equal(offbeat("pprof", f"-tls_ca={certificate}", *words).returncode, 3, "without the certificate: status")


main()
