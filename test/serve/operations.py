"""Running `offbeat serve`: logs, signals, the systemd unit. Argument: the build folder. SPDX-License-Identifier: MIT"""
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import Server, chunk, chunk_envelope, envelope, item, running  # noqa: E402
from tap import case, check, check_equal, leave_out, main, skip  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
OFFBEAT = BUILD / "offbeat"
START = 1_736_928_000
IS_ASAN = "libasan" in subprocess.run(["ldd", OFFBEAT], capture_output=True, text=True, check=False).stdout


@case
def json_logs_have_each_request_and_no_secret():
    with running(OFFBEAT, "--log-json") as server:
        first = chunk_envelope(1)
        check_equal(server.send(first).status, 200, "status")
        check_equal(server.request("POST", f"/api/1/envelope/?sentry_key={server.key}", chunk_envelope(2)).status, 200, "status")
        check_equal(server.get("top?service=shop").status, 200, "status")
        check_equal(server.get("top?service=a%22b").status, 404, "status")
        check_equal(server.request("GET", '/a"b%0a').status, 404, "status of no route")
        check_equal(server.stop(), 0, "exit status")
        text = server.said()
        lines = [json.loads(line) for line in text.splitlines()]
        requests = [(line["method"], line["path"], line["status"]) for line in lines if line["event"] == "request"]
        check_equal(requests, [("POST", "/api/1/envelope", 200)] * 2 + [("GET", "/api/1/top", 200), ("GET", "/api/1/top", 404),
                                                                        ("GET", '/a"b\n', 404)], "requests")
        check_equal(lines[0]["body_bytes"], len(first), "bytes of the first body")
        for secret in (server.key, server.token, "sentry_key"):
            check(secret not in text, f"{secret} is in the log")


def query(server):
    with_answer = []
    thread = threading.Thread(target=lambda: with_answer.append(server.get("top?thread=1").status))
    thread.start()
    return thread, with_answer


@case
def ctrl_c_ends_long_queries_and_the_server_with_status_0():
    with running(OFFBEAT) as server:
        for number in range(400):
            server.send(chunk_envelope(number, start=START + number, samples=4000, period=0.001, functions=("main", f"work{number}")))
        queries = [query(server) for _ in range(30)]
        time.sleep(0.2)
        server.process.send_signal(signal.SIGINT)
        check_equal(server.process.wait(120), 0, "exit status")
        for thread, _ in queries:
            thread.join()
        statuses = [status for _, answers in queries for status in answers]
        given_up = statuses.count(503)
        check(given_up > len(queries) / 2, f"statuses {statuses}: {given_up} queries were given up")


@case
def a_second_signal_ends_the_server_at_once():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder, "--workers", "1")
        for number in range(10):
            server.send(chunk_envelope(number, start=START + number))
        for _ in range(1000):
            server.process.send_signal(signal.SIGINT)
            if server.process.poll() is not None:
                break
            time.sleep(0.001)
        check(server.process.wait(10) in (0, -signal.SIGINT), f"exit status {server.process.returncode}")
        server = Server(OFFBEAT, folder)
        check_equal(len(server.read("chunks")["chunks"]), 10, "chunks that were acknowledged")
        server.stop()


@case
def speaks_tls_with_a_certificate_from_files():
    openssl = shutil.which("openssl")
    if not openssl:
        skip("openssl is not installed")
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = f"{folder}/cert.pem", f"{folder}/key.pem"
        subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        server = subprocess.Popen([OFFBEAT, "serve", "--data", f"{folder}/data", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key],
                                  stdout=subprocess.PIPE, text=True)
        dsn, url = (server.stdout.readline().split()[1] for _ in range(2))
        found = re.fullmatch(r"https://(\w{32})@127\.0\.0\.1:(\d+)/1", dsn)
        check(found and url.startswith("https://offbeat:"), f"{dsn} {url}")
        trusted = ssl.create_default_context(cafile=certificate)
        body = chunk_envelope(1, samples=20000, period=0.001)
        for context, expected in ((trusted, 200), (ssl.create_default_context(), None)):
            connection = http.client.HTTPSConnection("127.0.0.1", int(found[2]), context=context, timeout=30)
            try:
                connection.request("POST", f"/api/1/envelope/?sentry_key={found[1]}", body)
                status = connection.getresponse().status
            except ssl.SSLCertVerificationError:
                status = None
            check_equal(status, expected, "status")
        connection = http.client.HTTPSConnection("127.0.0.1", int(found[2]), context=trusted, timeout=30)
        connection.request("GET", "/api/1/top", headers={"Authorization": "Bearer " + url.split(":")[2].split("@")[0]})
        check_equal(connection.getresponse().status, 200, "status of a query")
        connection.close()
        check(server.poll() is None, "the server ended")
        server.terminate()
        check_equal(server.wait(30), 0, "exit status")
        for arguments in (("--tls-cert", certificate), ("--tls-cert", certificate, "--tls-key", f"{folder}/none")):
            done = subprocess.run([OFFBEAT, "serve", "--data", f"{folder}/data", *arguments], capture_output=True, text=True, timeout=30)
            check_equal(done.returncode, 2, f"{arguments}: {done.stderr}")
        broken = ("--tls-cert", certificate, "--tls-key", certificate, "--listen", "127.0.0.1:0")
        done = subprocess.run([OFFBEAT, "serve", "--data", f"{folder}/data", *broken], capture_output=True, text=True, timeout=30)
        check_equal((done.returncode, "not usable" in done.stderr), (3, True), done.stderr)


def make_certificate(folder, name):
    certificate, key = f"{folder}/{name}.pem", f"{folder}/{name}-key.pem"
    subprocess.run([shutil.which("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return certificate, key


def served_name(port):
    """The common name of the certificate that a new connection gets."""
    text = ssl.get_server_certificate(("127.0.0.1", port), timeout=30)
    done = subprocess.run([shutil.which("openssl"), "x509", "-noout", "-subject"], input=text, capture_output=True, text=True, timeout=30)
    return done.stdout.strip().rsplit("=", 1)[1].strip()


def wait_for_name(port, name):
    deadline = time.monotonic() + 30
    while served_name(port) != name:
        check(time.monotonic() < deadline, f"new connections do not get {name}")
        time.sleep(0.2)


@case
def a_changed_certificate_is_served_and_no_connection_is_lost():
    if not shutil.which("openssl"):
        skip("openssl is not installed")
    with tempfile.TemporaryDirectory() as folder:
        pairs = {name: make_certificate(folder, name) for name in ("first", "second", "third")}
        for path, used in zip(pairs["first"], ("cert.pem", "key.pem")):
            shutil.copy(path, f"{folder}/{used}")
        with open(f"{folder}/errors", "wb") as errors:
            # The leak checker crashes here while it searches thread-local memory; without that it still finds leaks.
            server = subprocess.Popen([OFFBEAT, "serve", "--data", f"{folder}/data", "--listen", "127.0.0.1:0", "--tls-cert", f"{folder}/cert.pem",
                                       "--tls-key", f"{folder}/key.pem"], stdout=subprocess.PIPE, stderr=errors, text=True,
                                      env=os.environ | {"LSAN_OPTIONS": "use_tls=0"})
        dsn, _ = (server.stdout.readline().split()[1] for _ in range(2))
        key, port = re.fullmatch(r"https://(\w{32})@127\.0\.0\.1:(\d+)/1", dsn).groups()
        port = int(port)
        anyone = ssl._create_unverified_context()
        body = chunk_envelope(1)
        open_one = http.client.HTTPSConnection("127.0.0.1", port, context=anyone, timeout=30)
        open_one.putrequest("POST", f"/api/1/envelope/?sentry_key={key}")
        open_one.putheader("Content-Length", str(len(body)))
        open_one.endheaders()
        open_one.send(body[:100])  # its rest follows after the change
        statuses, is_over = [], threading.Event()

        def ask():
            while not is_over.is_set():
                connection = http.client.HTTPSConnection("127.0.0.1", port, context=anyone, timeout=30)
                try:
                    connection.request("GET", "/healthz")
                    statuses.append(connection.getresponse().status)
                except OSError as error:
                    statuses.append(str(error))
                finally:
                    connection.close()

        thread = threading.Thread(target=ask)
        thread.start()
        check_equal(served_name(port), "first", "certificate at the start")
        for name in ("second", "third"):
            for path, used in zip(pairs[name], ("cert.pem", "key.pem")):
                shutil.copy(path, f"{folder}/new")
                pathlib.Path(folder, "new").rename(f"{folder}/{used}")
            wait_for_name(port, name)
        pathlib.Path(folder, "cert.pem").write_text("no certificate", encoding="utf-8")
        deadline = time.monotonic() + 30
        while b"not usable" not in pathlib.Path(folder, "errors").read_bytes():
            check(time.monotonic() < deadline, "a broken certificate is not reported")
            time.sleep(0.1)
        check_equal(served_name(port), "third", "certificate after a broken one")
        open_one.send(body[100:])
        check_equal(open_one.getresponse().status, 200, "status of the request that was open all the time")
        open_one.close()
        is_over.set()
        thread.join()
        print(f"# {len(statuses)} connections")
        check_equal((set(statuses), len(statuses) > 10), ({200}, True), "answers while certificates changed")
        server.terminate()
        check_equal(server.wait(30), 0, "exit status")


@case
def a_backup_of_a_running_server_has_everything_acknowledged_before_it():
    with tempfile.TemporaryDirectory() as folder:
        server, is_over, sent = Server(OFFBEAT, f"{folder}/data"), threading.Event(), []

        def send():
            while not is_over.is_set():
                number = len(sent)
                body = chunk(number, start=START + number)
                check_equal(server.send(envelope(item("profile_chunk", body, platform="python"))).status, 200, "status")
                sent.append(json.dumps(body).encode())

        thread = threading.Thread(target=send)
        thread.start()
        while len(sent) < 50:
            time.sleep(0.01)
        before = len(sent)
        done = backup(folder, "copy")
        check_equal(done.returncode, 0, done.stderr)
        after = len(sent)
        is_over.set()
        thread.join()
        check(after > before, "nothing was sent while the copy was made")
        token, key = server.token, server.key
        server.kill()
        checked = subprocess.run([OFFBEAT, "store", "check", "--data", f"{folder}/copy"], capture_output=True, text=True, timeout=60)
        check_equal(checked.returncode, 0, checked.stderr)
        copy = Server(OFFBEAT, f"{folder}/copy")
        check_equal(copy.key, key, "key")
        check_equal(copy.get("chunks", {"Authorization": f"Bearer {token}"}).status, 200, "status with the token of before")
        ids = {one["chunk"] for one in copy.read("chunks")["chunks"]}
        print(f"# {before} chunks before, {len(ids)} in the copy, {after} after")
        check(ids >= {f"{number:032x}" for number in range(before)}, "a chunk is missing")
        for number in (0, before - 1):
            check_equal(copy.get(f"raw?chunk={number:032x}").body, sent[number], "a payload")
        copy.stop()
        name, = pathlib.Path(folder, "copy").glob("????-??-??.db")
        data = bytearray(name.read_bytes())
        data[len(data) // 2:len(data) // 2 + 20000] = bytes(20000)
        name.write_bytes(data)
        checked = subprocess.run([OFFBEAT, "store", "check", "--data", f"{folder}/copy"], capture_output=True, text=True, timeout=60)
        check_equal(checked.returncode, 1, f"the check of a damaged copy: {checked.stderr}")


def backup(folder, name, data="data"):
    return subprocess.run([OFFBEAT, "store", "backup", f"{folder}/{name}", "--data", f"{folder}/{data}"], capture_output=True, text=True, timeout=60)


@case
def a_backup_never_writes_over_something():
    with tempfile.TemporaryDirectory() as folder:
        Server(OFFBEAT, f"{folder}/data").stop()
        check_equal(backup(folder, "copy").returncode, 0, "status of the first")
        files = {path.name: path.read_bytes() for path in pathlib.Path(folder, "copy").iterdir()}
        check_equal(backup(folder, "copy").returncode, 3, "status of the second")
        check_equal({path.name: path.read_bytes() for path in pathlib.Path(folder, "copy").iterdir()}, files, "the first copy")
        pathlib.Path(folder, "other.part").mkdir()
        check_equal(backup(folder, "other").returncode, 3, "status beside an interrupted copy")
        check_equal((backup(folder, "third", "nothing").returncode, pathlib.Path(folder, "nothing").exists(), pathlib.Path(folder, "third").exists()),
                    (3, False, False), "no data")
        pathlib.Path(folder, "empty").mkdir()
        check_equal(backup(folder, "empty").returncode, 0, "status with an empty folder")


@case
def what_cannot_be_used_is_reported_in_one_line():
    def run(data, listen):
        return subprocess.run([OFFBEAT, "serve", "--data", data, "--listen", listen], capture_output=True, text=True, timeout=30)

    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT, data=f"{folder}/data") as server:
        pathlib.Path(folder, "file").touch()
        used = f"127.0.0.1:{server.port}"
        for data, listen, status, said in ((f"{folder}/other", used, 3, "Address already in use"), (f"{folder}/data", "127.0.0.1:0", 3, "has it open"),
                                           (f"{folder}/file", "127.0.0.1:0", 3, "Not a directory"), ("/proc/x", "127.0.0.1:0", 3, "/proc/x"),
                                           (f"{folder}/other", "localhost:1", 2, "an address in numbers"), (f"{folder}/other", "127.0.0.1:x", 2, "a port")):
            done = run(data, listen)
            check_equal((done.returncode, done.stdout, done.stderr.count("\n")), (status, "", 1), f"{data} {listen}: {done.stderr}")
            check(said in done.stderr, done.stderr)
        server.kill()
        again = Server(OFFBEAT, f"{folder}/data", "--listen", used)  # at once, although its connections are not forgotten
        check_equal((again.port, again.stop()), (server.port, 0), "port and status")


@case
def store_needs_one_of_its_two_actions():
    with tempfile.TemporaryDirectory() as folder:
        Server(OFFBEAT, f"{folder}/data").stop()
        for arguments, status in (((), 2), (("frob",), 2), (("check", "x"), 2), (("backup",), 2), (("backup", f"{folder}/x", "--repair"), 2),
                                  (("check",), 0), (("check", "--repair"), 0)):
            done = subprocess.run([OFFBEAT, "store", *arguments, "--data", f"{folder}/data"], capture_output=True, text=True, timeout=60)
            check_equal(done.returncode, status, f"status with {arguments}: {done.stderr}")
        done = subprocess.run([OFFBEAT, "store", "check", "--data", f"{folder}/nothing"], capture_output=True, text=True, timeout=60)
        check_equal((done.returncode, pathlib.Path(folder, "nothing").exists()), (3, False), done.stderr)
        with running(OFFBEAT, data=f"{folder}/data"):
            done = subprocess.run([OFFBEAT, "store", "check", "--data", f"{folder}/data"], capture_output=True, text=True, timeout=60)
            check_equal(done.returncode, 3, f"status beside a server: {done.stderr}")


@case
def the_server_profiles_itself_into_its_own_project():
    """With TLS, which its own connection does not need."""
    if IS_ASAN:
        leave_out("the library with a sanitizer can be loaded into its own programs only")
    if not shutil.which("openssl"):
        skip("openssl is not installed")
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = make_certificate(folder, "self")
        environment = os.environ | {"OFFBEAT_CHUNK_SECONDS": "1"}
        server = subprocess.Popen([OFFBEAT, "serve", "--data", f"{folder}/data", "--listen", "127.0.0.1:0", "--tls-cert", certificate,
                                   "--tls-key", key, "--profile-self"], env=environment, stdout=subprocess.PIPE, text=True)
        server.stdout.readline()
        url = server.stdout.readline().removeprefix("URL: ").strip().replace("/api/1/profile.pb.gz", "/api/2/top")
        curl, deadline, answer = ["curl", "-sk", f"{url}?service=offbeat-serve"], time.time() + 60, ""
        while "sample_type" not in answer and time.time() < deadline:
            time.sleep(0.5)
            answer = subprocess.run(curl, capture_output=True, text=True, timeout=60).stdout
        functions = [one["name"] for one in json.loads(answer)["functions"]]
        begun = time.monotonic()
        server.send_signal(signal.SIGTERM)
        check_equal(server.wait(60), 0, "exit status")
        print(f"# stopped in {time.monotonic() - begun:.1f} s")
        check("work" in functions, f"functions {functions[:20]}")  # of src/serve/server.c
        server = Server(OFFBEAT, f"{folder}/data")
        check_equal([one["name"] for one in json.loads(server.request("GET", "/api/projects", headers=server.read_header()).body)["projects"]],
                    ["default", "offbeat serve"], "projects")
        server.kill()


def data_bytes(folder):
    total = 0
    for path in pathlib.Path(folder).glob("20*.db*"):
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:
            pass
    return total


@case
def the_disk_limit_holds_within_a_day():
    with tempfile.TemporaryDirectory() as folder:
        with running(OFFBEAT, "--disk", "12", data=folder) as server:
            largest, numbers = 0, random.Random(1)
            for number in range(500):
                functions = tuple(f"f{numbers.getrandbits(256):064x}" for _ in range(500))
                sent = chunk(number, samples=1000, functions=functions)
                check_equal(server.send(envelope(item("profile_chunk", sent, platform="python"))).status, 200, f"status of chunk {number}")
                largest = max(largest, data_bytes(folder))
            check_equal(server.send(envelope(item("profile_chunk", sent, platform="python"))).status, 200, "status of a repeated chunk")
            left = server.chunk_numbers()
            files = sorted(path.name for path in pathlib.Path(folder).glob("20*.db"))
            print(f"# at most {largest / 2**20:.1f} MiB, {len(left)} chunks left in {files}")
            check(largest < 1.05 * (12 << 20), f"{largest} bytes")
            check(largest > 0.6 * (12 << 20) and 50 < len(left) < 450, f"{largest} bytes, {len(left)} chunks: too much was removed, or too little was sent")
            check_equal(left, list(range(500 - len(left), 500)), "the latest chunks are left, each once")
            check_equal(len(server.read("chunks?limit=10000")["chunks"]), len(left), "chunks of all files")
            check_equal(server.stop(), 0, "exit status")
        # The last file is continued after a restart.
        with running(OFFBEAT, "--disk", "12", data=folder) as again:
            check_equal(again.chunk_numbers(), left, "chunks after a restart")
            check_equal(again.send(chunk_envelope(1000)).status, 200, "status after a restart")
            check_equal(again.chunk_numbers()[-1], 1000, "the chunk after a restart")


@case
def health_and_readiness_need_no_token():
    with running(OFFBEAT) as server:
        for path in ("/healthz", "/readyz", "/ready"):
            answer = server.request("GET", path)
            check_equal((answer.status, answer.json()), (200, {"status": "ok"}), path)
            check_equal(server.request("POST", path, b"").status, 405, f"status of POST {path}")


@case
def the_systemd_unit_is_valid_and_locked_down():
    tool = shutil.which("systemd-analyze")
    if not tool:
        skip("systemd-analyze is not installed")
    text = (BUILD / "package/offbeat.service").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder, "offbeat.service")
        start = next(line for line in text.splitlines() if line.startswith("ExecStart="))
        unit.write_text(text.replace(start.split("=", 1)[1].split()[0], str(OFFBEAT)), encoding="utf-8")
        done = subprocess.run([tool, "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
        check_equal((done.returncode, [line for line in done.stderr.splitlines() if "offbeat" in line]), (0, []), "systemd-analyze verify")
        done = subprocess.run([tool, "security", "--offline=true", "--threshold=20", unit], capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 0, f"systemd-analyze security: {done.stdout[-1500:]}{done.stderr}; status")
        print("#", done.stdout.strip().splitlines()[-1])


main(sys.argv[2] if len(sys.argv) > 2 else "")
