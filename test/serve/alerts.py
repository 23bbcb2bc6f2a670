"""Rules of `offbeat serve --alert`, and the web hook that is told. Argument: the build folder. SPDX-License-Identifier: MIT"""
import contextlib
import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import running  # noqa: E402
from tap import case, check, check_equal, main, short  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 0:  # no answer until the client gives up
            self.server.released.wait(60)
            return
        self.send_response(status)
        self.end_headers()
        if status == 200:
            self.server.bodies.append(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def hook(*statuses):
    """A web hook that answers with STATUSES first and then with 200: its URL, and what it accepted."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.bodies, server.statuses, server.released = [], list(statuses), threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", server.bodies
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()


def wait_for(bodies, count):
    deadline = time.time() + 60
    while len(bodies) < count and time.time() < deadline:
        time.sleep(0.05)
    check_equal(len(bodies), count, f"notifications: {bodies}")
    return bodies[-1]


def firing(server):
    text = server.request("GET", "/metrics", headers=server.read_header()).body.decode()
    return [line for line in text.splitlines() if line.startswith("offbeat_alert_firing")]


@short
@case
def a_share_over_its_bound_is_sent_once_and_so_is_its_end():
    """The hook fails twice: the notification is sent again."""
    with hook(500, 503) as (url, bodies):
        rule = 'name="slow parse" service=shop function="Parser::parse(int, char)" share>50% minutes=10'
        with running(OFFBEAT, "--alert", rule, "--alert-webhook", url, "--alert-seconds", "1") as server:
            server.upload(b"main;Parser::parse(int, char) 30\nmain;rest 70\n", "service=shop&id=" + "1" * 32)
            server.upload(b"main;Parser::parse(int, char) 300\n", "service=other")
            time.sleep(2.5)
            check_equal((bodies, firing(server)), ([], ['offbeat_alert_firing{name="slow parse"} 0']), "below the bound")
            server.upload(b"main;Parser::parse(int, char) 300\n", "service=shop&id=" + "2" * 32)
            body = wait_for(bodies, 1)
            check_equal((body["alert"], body["state"], body["project"], body["service"], body["bound_percent"], round(body["share_percent"])),
                        ("slow parse", "firing", 1, "shop", 50, 82), f"the notification {body}")
            check(body["url"].startswith(f"http://127.0.0.1:{server.port}/?place=profile&project=1&from=") and "&service=shop" in body["url"]
                  and body["url"].endswith("#v=1&search=Parser%3A%3Aparse%28int%2C%20char%29"), body["url"])
            check("takes 82." in body["text"] and "bound is 50 %" in body["text"], body["text"])
            time.sleep(2.5)
            check_equal((len(bodies), firing(server)), (1, ['offbeat_alert_firing{name="slow parse"} 1']), "while it lasts")
            server.upload(b"main;rest 5000\n", "service=shop&id=" + "3" * 32)
            check_equal(wait_for(bodies, 2)["state"], "resolved", "the second notification")
            check("alert slow parse fires: " in server.said(), server.said())
            check_equal(server.stop(), 0, "exit status")


@case
def a_regression_between_the_two_newest_releases_is_sent():
    with hook() as (url, bodies):
        with running(OFFBEAT, "--alert", "name=release service=shop regression", "--alert-webhook", url, "--alert-seconds", "1") as server:
            for release, stacks in (("shop@1", b"main;fast 9000\nmain;slow 1000\n"), ("shop@2", b"main;fast 9010\nmain;slow 990\n")):
                server.upload(stacks, f"service=shop&release={release}")
                time.sleep(0.02)  # one begins after the other
            time.sleep(2.5)
            check_equal(bodies, [], "notifications about a change within the noise")
            server.upload(b"main;fast 9000\nmain;slow 4000\n", "service=shop&release=shop@3")
            body = wait_for(bodies, 1)
            check_equal((body["state"], body["release"], body["base_release"]), ("firing", "shop@3", "shop@2"), f"the notification {body}")
            check("&release=shop%403&base_release=shop%402&base_from=1&base_to=" in body["url"], body["url"])
            check(body["text"].endswith("slower in release shop@3 than in shop@2: slow"), body["text"])


@case
def a_hook_that_does_not_answer_delays_neither_the_server_nor_its_end():
    with hook(*[0] * 10) as (url, bodies):
        with running(OFFBEAT, "--alert", "name=a service=shop function=work share>1", "--alert-webhook", url, "--alert-seconds", "1") as server:
            server.upload(b"main;work 30\n", "service=shop")
            deadline = time.time() + 60
            while not firing(server)[0].endswith(" 1") and time.time() < deadline:
                time.sleep(0.05)
            check_equal(firing(server), ['offbeat_alert_firing{name="a"} 1'], "state")
            check_equal(server.read("top?service=shop")["functions"][0]["name"], "work", "an answer")
            begun = time.time()
            check_equal(server.stop(), 0, "exit status")
            check(time.time() - begun < 9, f"the end took {time.time() - begun:.1f} s: the time-out of the hook is 10 s")
            check_equal(bodies, [], "accepted notifications")


@case
def the_log_says_why_the_hook_did_not_accept():
    with hook(*[404] * 20) as (url, _):
        for address, reason in ((url, "status 404"), ("gopher://127.0.0.1", "nsupported protocol")):
            with running(OFFBEAT, "--alert", "name=a service=shop function=work share>1", "--alert-webhook", address, "--alert-seconds", "1") as server:
                server.upload(b"main;work 30\n", "service=shop")
                deadline = time.time() + 60
                while "did not accept" not in server.said() and time.time() < deadline:
                    time.sleep(0.05)
                check(re.search(rf"did not accept the alert a \([^)]*{reason}", server.said()), server.said())


@case
def a_wrong_rule_is_named():
    for rule in ("", "name=x", "name=x service=y", "service=y function=f share>5", "name=x service=y function=f", "name=x service=y share>5",
                 "name=x service=y function=f share>0", "name=x service=y function=f share>100", "name=x service=y function=f share>5x",
                 "name=x service=y regression function=f share>5", "name=x service=y regression minutes=0", "name=x service=y regression project=0",
                 "name=x service=y regression more", f"name=x service=y share>5 function={'f' * 250}"):
        done = subprocess.run([OFFBEAT, "serve", "--alert", rule, "--data", "/nowhere"], capture_output=True, text=True, timeout=60)
        check_equal((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), f"{rule!r}: {done.stderr}")
        check(done.stderr.startswith(f"offbeat: serve: --alert {rule}: "), done.stderr)


main(sys.argv[2] if len(sys.argv) > 2 else "")
