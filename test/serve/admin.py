"""`offbeat serve admin`, and where the options of `offbeat serve` come from. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import ROOT, Server, administer, chunk_envelope, envelope, item, new_project, new_token, running  # noqa: E402
from tap import case, check, check_equal, main, short  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
HOUR = 3600


def admin(folder, *words):
    """The JSON that a command prints."""
    done = administer(OFFBEAT, folder, *words, "--json")
    check_equal(done.returncode, 0, f"{words}: {done.stderr}")
    return json.loads(done.stdout)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@contextlib.contextmanager
def with_and_without_a_server():
    """A folder that a server has open; its end stops the server, if it was not stopped."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        try:
            yield server, folder
        finally:
            server.end()


# --- Projects and keys -----------------------------------------------------------------------------------------------


@short
@case
def each_command_does_the_same_with_and_without_a_server():
    with with_and_without_a_server() as (server, folder):
        for number in (2, 3):
            done = administer(OFFBEAT, folder, "add-project", "shop")
            check_equal((done.returncode, done.stdout[-3:]), (0, f"/{number}\n"), done.stderr)
            check(re.search(r"^DSN: http://\w{32}@127.0.0.1:\d+/", done.stdout, re.MULTILINE), done.stdout)
            administer(OFFBEAT, folder, "rename-project", str(number), f"shop {number}")
            administer(OFFBEAT, folder, "limit-project", str(number), "--keep", "3", "--disk", "50")
            key = [one["key"] for one in admin(folder, "keys", "--project", str(number))["keys"]]
            check_equal(len(key), 1, f"keys of project {number}")
            administer(OFFBEAT, folder, "rename-key", str(key[0]), "phones")
            if number == 2:
                check_equal(server.stop(), 0, "exit status")
        projects = admin(folder, "projects")["projects"]
        check_equal([(one["project"], one["name"], one.get("keep_days"), one.get("disk_megabytes")) for one in projects],
                    [(1, "default", None, None), (2, "shop 2", 3, 50), (3, "shop 3", 3, 50)], "projects")
        check_equal([one["name"] for one in admin(folder, "keys")["keys"] if one["project"] in (2, 3)], ["phones", "phones"], "names of keys")
        table = administer(OFFBEAT, folder, "projects").stdout.splitlines()
        check_equal((table[0].split()[:2], len(table)), (["project", "name"], 4), "table")


@case
def a_revoked_or_rotated_key_is_invalid_at_once():
    with running(OFFBEAT) as server:
        token = new_token(OFFBEAT, server.data, "1")
        number = next(one["key"] for one in admin(server.data, "keys")["keys"] if one["name"] == "" and one["role"] == "read")
        check_equal(server.get("chunks", bearer(token)).status, 200, "status with the token")
        rotated = admin(server.data, "rotate-key", str(number))["token"]
        check_equal((server.get("chunks", bearer(token)).status, server.get("chunks", bearer(rotated)).status), (403, 200), "after its rotation")
        admin(server.data, "revoke-key", str(number))
        check_equal(server.get("chunks", bearer(rotated)).status, 403, "after its revocation")
        written = next(one for one in admin(server.data, "keys")["keys"] if one["role"] == "write")
        check(server.key in written["dsn"], f"{written} has not the key {server.key}")
        second = admin(server.data, "add-key", "1", "--role", "write")["dsn"]
        check_equal(server.send(chunk_envelope(1)).status, 200, "status with the first key")
        admin(server.data, "revoke-key", str(written["key"]))
        check_equal(server.send(chunk_envelope(2)).status, 403, "status with the revoked key")
        key = re.search(r"//(\w{32})@", second)[1]
        form = {"X-Sentry-Auth": f"Sentry sentry_key={key}"}
        check_equal(server.request("POST", "/api/1/envelope/", chunk_envelope(3), form).status, 200, "status with the second key")
        check_equal(server.chunk_numbers(), [1, 3], "chunks")


@case
def the_store_has_checksums_of_tokens_and_no_token():
    with with_and_without_a_server() as (server, folder):
        token = new_token(OFFBEAT, folder, "all", "admin")
        server.stop()
        bytes_of_files = b"".join(path.read_bytes() for path in pathlib.Path(folder).glob("control.db*"))
        for secret in (token, server.token, server.upload_token):
            check(secret.encode() not in bytes_of_files, "a token is in control.db")
        check(server.key.encode() in bytes_of_files, "the key is not in control.db")
        modes = {path.name: path.stat().st_mode & 0o777 for path in pathlib.Path(folder).glob("start-token-*")}
        check_equal(modes, {"start-token-read": 0o600, "start-token-upload": 0o600}, "files of tokens")
        backup = f"{folder}/backup"
        subprocess.run([OFFBEAT, "store", "backup", backup, "--data", folder], check=True, timeout=60)
        check_equal(list(pathlib.Path(backup).glob("start-token-*")), [], "tokens in the backup")
        check_equal((pathlib.Path(backup) / "control.db").stat().st_mode & 0o777, 0o600, "mode of the backup")


@case
def tokens_of_the_start_are_the_same_until_they_are_revoked():
    with tempfile.TemporaryDirectory() as folder:
        tokens = []
        for step in ("first", "again", "rotated", "revoked", "lost"):
            if step == "rotated":
                number = next(one["key"] for one in admin(folder, "keys")["keys"] if one["role"] == "read")
                rotated = admin(folder, "rotate-key", str(number))["token"]
            if step == "revoked":
                admin(folder, "revoke-key", str(number))
            if step == "lost":
                (pathlib.Path(folder) / "start-token-read").unlink()
            server = Server(OFFBEAT, folder)
            check_equal(server.get("chunks").status, 200, f"status of the token, {step}")
            tokens.append(server.token)
            check_equal(server.stop(), 0, "exit status")
        check_equal((tokens[0], tokens[2]), (tokens[1], rotated), "tokens of the first starts")
        check_equal(len(set(tokens)), 4, "different tokens")
        check_equal(len([one for one in admin(folder, "keys")["keys"] if one["role"] == "read"]), 2, "read tokens: a lost one stays valid until it is revoked")


@case
def wrong_words_are_rejected():
    with running(OFFBEAT) as server:
        for words in (("add-key", "7"), ("add-key", "0"), ("add-key", "x"), ("add-key", "all", "--role", "king"), ("add-key", "all", "--role", "write"),
                      ("add-key", "1", "--role", "metrics"), ("add-key", "1", "--role", "admin"), ("add-key",), ("add-project",), ("add-project", ""),
                      ("add-project", "x" * 64), ("rename-project", "7", "x"), ("rename-key", "99", "x"), ("revoke-key", "99"), ("rotate-key", "99"),
                      ("limit-project", "7"), ("limit-project", "1", "--keep", "x"), ("limit-project", "all"), ("delete", "1"), ("delete-project", "7"),
                      ("delete-project", "1", "--service", "shop"), ("delete", "1", "--service", "", "--to", "5"), ("projects", "--keep", "3"),
                      ("add-project", "x", "--name", "y"), ("add-project", "x", "--public-url", "shop"), ("delete", "1", "--from", "yesterday"), ("delete", "1", "--from", "20", "--to", "10"), ("keys", "1"), ("nothing",), ()):
            done = administer(OFFBEAT, server.data, *words)
            check_equal((done.returncode, done.stdout), (2, ""), f"{words}: {done.stderr}")
            check(done.stderr.startswith("offbeat: "), done.stderr)
        check_equal([one["name"] for one in admin(server.data, "projects")["projects"]], ["default"], "projects")


# --- Over HTTP -------------------------------------------------------------------------------------------------------


@case
def a_token_with_the_role_admin_administers_and_reads():
    with running(OFFBEAT) as server:
        token = new_token(OFFBEAT, server.data, "all", "admin")
        made = server.request("POST", "/api/admin/add-project?name=shop%20%26%20bank", headers=bearer(token))
        check_equal((made.status, made.json()["name"]), (200, "shop & bank"), str(made.body))
        names = [one["name"] for one in server.request("GET", "/api/admin/projects", headers=bearer(token)).json()["projects"]]
        check_equal(names, ["default", "shop & bank"], "projects")
        for route in ("/api/1/chunks", "/api/projects", "/metrics", "/api/2/services"):
            check_equal(server.request("GET", route, headers=bearer(token)).status, 200, f"status of {route}")
        for method, command, status in (("GET", "add-project?name=x", 405), ("POST", "projects", 405), ("POST", "nothing", 404), ("POST", "add-project", 400), ("POST", "delete?project=1&service=shop&relese=1", 400),
                                        ("POST", "revoke-key?key=999", 404)):
            answer = server.request(method, f"/api/admin/{command}", headers=bearer(token))
            check_equal((answer.status, list(answer.json())), (status, ["detail"]), f"{method} {command}")
        check("admin: add-project" in server.said(), server.said())
        password = {"Authorization": "Basic " + base64.b64encode(f"admin:{token}".encode()).decode()}
        check_equal((server.request("GET", "/api/1/chunks", headers=password).status,
                     server.request("POST", "/api/admin/add-project?name=x", headers=password).status), (200, 401), "status of the token as a password")


@case
def the_socket_is_the_owners_and_a_stop_removes_it():
    with with_and_without_a_server() as (server, folder):
        socket = pathlib.Path(folder) / "admin.sock"
        check_equal(socket.stat().st_mode & 0o777, 0o600, "mode")
        server.kill()
        check_equal(len(admin(folder, "projects")["projects"]), 1, "projects of a killed server")
        server = Server(OFFBEAT, folder)
        check_equal(server.stop(), 0, "exit status")
        check(not socket.exists(), "the socket is there after the stop")


# --- Deletion --------------------------------------------------------------------------------------------------------


def totals(server, *services):
    found = []
    for service in services:
        answer = server.get(f"top?service={service}")
        found.append(round(answer.json()["total"] / 1e9, 2) if answer.status == 200 else None)
    return found


@case
def a_deleted_range_or_service_is_in_no_answer():
    """Also not in the sums of ten minutes and hours that had it: the times are two days old, so that they exist."""
    start = int(time.time()) // (24 * HOUR) * 24 * HOUR - 2 * 24 * HOUR + HOUR
    with with_and_without_a_server() as (server, folder):
        for number in range(12):
            for place, service in enumerate(("shop", "bank")):
                sent = chunk_envelope(2 * number + place + 1, start=start + number * 600, samples=101, release=f"{service}@1", profiler=place + 1)
                check_equal(server.send(sent).status, 200, "status")
        check_equal(server.stop(), 0, "exit status")
        server = Server(OFFBEAT, folder)  # its first maintenance adds up
        deadline = time.time() + 60
        while time.time() < deadline and "offbeat_roll_ups_total 0\n" in server.request("GET", "/metrics", headers=server.read_header()).body.decode():
            time.sleep(0.1)
        one = totals(server, "shop")[0] / 12
        check_equal(totals(server, "shop", "bank"), [round(12 * one, 2)] * 2, "totals of all")
        done = admin(folder, "delete", "1", "--service", "shop", "--from", str(start + 600 * 6 - 1), "--to", str(start + 600 * 9 - 1))
        check_equal(done, {"deleted_chunks": 3}, "answer")
        for step in ("at once", "after a restart"):
            check_equal(totals(server, "shop", "bank"), [round(9 * one, 2), round(12 * one, 2)], f"totals {step}")
            check_equal(len(server.chunk_numbers("service=shop")), 9, f"chunks {step}")
            answer = server.get(f"top?service=shop&from={start + 3600}&to={start + 5400 - 1}")
            check_equal(answer.status, 404, f"status of the range {step}")
            server.kill()
            server = Server(OFFBEAT, folder)
        used = {row["service"]: (row["chunks"], row["samples"]) for row in admin(folder, "usage")["services"]}
        check_equal(used, {"shop": (9, 909), "bank": (12, 1212)}, "usage")
        check_equal(admin(folder, "delete", "1", "--service", "shop"), {"deleted_chunks": 9}, "answer")
        check_equal((totals(server, "shop", "bank"), [row["name"] for row in server.read("services")["services"]]), ([None, round(12 * one, 2)], ["bank"]), "what is left")
        server.stop()
        for path in pathlib.Path(folder).glob("20*.db"):
            check(b"shop@1" not in path.read_bytes(), f"{path} has the deleted service")
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                for table in ("space", "sum_group"):
                    check(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] <= 1, f"rows of the deleted service in {table}")


@case
def a_deleted_project_is_gone_with_its_keys():
    with running(OFFBEAT) as server:
        key = new_project(OFFBEAT, server.data, "second")
        token = new_token(OFFBEAT, server.data, "2")
        form = {"X-Sentry-Auth": f"Sentry sentry_key={key}"}
        for project, header, number in ((1, server.auth(), 1), (2, form, 2)):
            broken = envelope(item("profile_chunk", b"{}", platform="python"))
            check_equal(server.request("POST", f"/api/{project}/envelope/", chunk_envelope(number), header).status, 200, "status")
            check_equal(server.request("POST", f"/api/{project}/envelope/", broken, header).status, 200, "status")
        check_equal(admin(server.data, "delete-project", "2"), {"deleted_chunks": 1}, "answer")
        check_equal(server.request("GET", "/api/2/chunks", headers=bearer(token)).status, 403, "status with its token")
        check_equal(server.request("POST", "/api/2/envelope/", chunk_envelope(3), form).status, 403, "status with its key")
        for route in ("chunks", "rejected", "outcomes", "spans"):
            check_equal(server.request("GET", f"/api/2/{route}", headers=server.read_header()).json()[route], [], f"{route} of the deleted project")
        check_equal((server.chunk_numbers(), len(server.read("rejected")["rejected"])), ([1], 1), "what the other project has")
        done = administer(OFFBEAT, server.data, "add-project", "third")
        check("/3\n" in done.stdout, f"the number of a deleted project is used again: {done.stdout}")


# --- Options ---------------------------------------------------------------------------------------------------------


def start(folder, words, variables):
    """The lines of a start with WORDS and VARIABLES, or what it says."""
    process = subprocess.Popen([OFFBEAT, "serve", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                               env={"PATH": "/usr/bin:/bin", "HOME": folder, **variables})
    try:
        lines = []
        while not lines or (lines[-1] and not lines[-1].startswith("upload: ")):
            lines.append(process.stdout.readline())
        process.terminate()
        _, said = process.communicate(timeout=60)
        return "".join(lines), said, process.returncode
    finally:
        process.kill()


@case
def an_option_is_taken_from_the_line_then_a_variable_then_the_file():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(f"{folder}/serve.conf").write_text("# where\n\n  data = file\nlisten=127.0.0.1:0\r\nlog-json = yes\npublic-url = https://file.example.org/\n", encoding="utf-8")
        for words, variables, url in (([], {}, "https://file.example.org"), ([], {"OFFBEAT_SERVE_PUBLIC_URL": "https://variable.example.org/p"}, "https://variable.example.org/p"),
                                      (["--public-url", "http://line:8"], {"OFFBEAT_SERVE_PUBLIC_URL": "https://variable.example.org"}, "http://line:8")):
            said = start(folder, ["--config", "serve.conf", *words], variables)
            check(f"page: {url}/#" in said[0] and f"@{url.split('//')[1]}/1\n" in said[0], f"{words} {variables}: {said}")
        said = start(folder, [], {"OFFBEAT_SERVE_CONFIG": "serve.conf", "OFFBEAT_SERVE_DATA": "variable", "OFFBEAT_SERVE_LOG_JSON": "no"})
        check_equal((said[2], sorted(path.name for path in pathlib.Path(folder).iterdir())), (0, ["file", "serve.conf", "variable"]), f"folders: {said}")


@case
def a_wrong_option_is_named_with_its_place():
    with tempfile.TemporaryDirectory() as folder:
        for text, variables, expected in (("keep = x\n", {}, "serve.conf:1: keep must be a number from 0 to 36500, not \"x\""),
                                          ("\nkep = 1\n", {}, "serve.conf:2: serve has no option kep"),
                                          ("log-json = perhaps\n", {}, "serve.conf:1: log-json must be yes or no"),
                                          ("config = other\n", {}, "serve.conf:1: serve has no option config"),
                                          ("keep\n", {}, "serve.conf:1: \"keep\" must be an option, = and its value"),
                                          ("", {"OFFBEAT_SERVE_KEEP": "1d"}, "OFFBEAT_SERVE_KEEP must be a number"),
                                          ("public-url = shop\n", {}, "--public-url shop: a URL")):
            pathlib.Path(f"{folder}/serve.conf").write_text(text, encoding="utf-8")
            lines, said, status = start(folder, ["--config", "serve.conf", "--data", "data"], variables)
            check_equal((lines, status), ("", 2), f"{text!r} {variables}: {said}")
            check(expected in said and said.count("\n") == 1, f"{text!r} {variables}: {said}")
        check_equal(start(folder, ["--config", "none"], {})[1:], ("offbeat: serve: none: cannot open: No such file or directory\n", 2), "a file that is not there")


# --- The container ----------------------------------------------------------------------------------------------------


def container_image():
    """Instructions of the last stage of the Dockerfile: (word, rest)."""
    text = (ROOT / "package/container/Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    stages = [number for number, line in enumerate(lines) if line.startswith("FROM ")]
    return [line for line in lines[:stages[-1]] if line.startswith("FROM ")], [tuple(line.split(None, 1)) for line in lines[stages[-1]:]]


@case
def the_command_of_the_container_serves_as_its_user():
    """Without a registry: the user, the variables and the command of the Dockerfile, with another folder and port."""
    build, image = container_image()
    values = dict(image)
    check_equal([line.split()[1] for line in build] + [values["FROM"]], ["debian:12-slim"] * 2, "systems")
    variables = dict(word.split("=", 1) for word in values["ENV"].split())
    check(variables["OFFBEAT_SERVE_DATA"] in values["RUN"] and values["VOLUME"] == variables["OFFBEAT_SERVE_DATA"], "the data has another folder")
    user = int(values["USER"])
    check(user > 0 and f"--uid {user} " in values["RUN"], f"the user is {user}")
    known = {"FROM", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT"}
    check_equal({word for word, _ in image} - known, set(), "instructions")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / json.loads(values["ENTRYPOINT"])[0]
        shutil.copy(OFFBEAT, program)
        data = pathlib.Path(folder) / "data"
        data.mkdir()
        os.chmod(folder, 0o755)
        as_user = {}
        if os.getuid() == 0:
            os.chown(data, user, user)
            as_user = {"user": user, "group": user, "extra_groups": []}
        environment = {"PATH": f"{folder}:/usr/bin:/bin", **variables, "OFFBEAT_SERVE_DATA": str(data), "OFFBEAT_SERVE_LISTEN": "0.0.0.0:0"}
        command = json.loads(values["ENTRYPOINT"])
        first = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, **as_user)
        check("admin add-project" in first.stderr and first.returncode == 2, f"a start without a project: {first}")
        added = subprocess.run([*command, "admin", "add-project", "shop"], env=environment, capture_output=True, text=True, timeout=60, **as_user)
        check_equal(added.returncode, 0, added.stderr)
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **as_user) as process:
            url = re.match(r"DSN: http://\w+@[\d.]+:(\d+)/1", process.stdout.readline())
            with urllib.request.urlopen(f"http://127.0.0.1:{url[1]}/readyz", timeout=60) as answer:
                check_equal(answer.status, 200, "status")
            process.send_signal(getattr(signal, values["STOPSIGNAL"]))
            check_equal(process.wait(60), 0, "exit status")
        if os.getuid() == 0:
            check_equal({path.stat().st_uid for path in data.iterdir()}, {user}, "owners of the data")


main(sys.argv[2] if len(sys.argv) > 2 else "")
