"""Running `offbeat serve`: logs, signals, the systemd unit. Argument: the build folder. SPDX-License-Identifier: MIT"""
import http.client
import json
import pathlib
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
from server_process import Server, chunk_envelope, running  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
OFFBEAT = BUILD / "offbeat"
START = 1_800_000_000


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
    thread = threading.Thread(target=lambda: with_answer.append(server.get("top?by=thread").status))
    thread.start()
    return thread, with_answer


@case
def ctrl_c_ends_long_queries_and_the_server_with_status_0():
    with running(OFFBEAT) as server:
        for number in range(400):
            server.send(chunk_envelope(number, start=START + number, samples=4000, period=0.001, functions=("main", f"work{number}")))
        queries = [query(server) for _ in range(30)]
        time.sleep(0.2)
        begun = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        check_equal(server.process.wait(60), 0, "exit status")
        took = time.monotonic() - begun
        for thread, _ in queries:
            thread.join()
        statuses = [status for _, answers in queries for status in answers]
        print(f"# {took:.2f} s, answers {sorted(set(statuses))}: {len(statuses)}")
        check(503 in statuses, f"statuses {statuses}: no query was running")
        check(took < 10, f"the end took {took:.1f} s")


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


@case
def health_and_readiness_need_no_token():
    with running(OFFBEAT) as server:
        for path in ("/healthz", "/readyz"):
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
