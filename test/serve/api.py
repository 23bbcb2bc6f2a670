"""The routes of `offbeat serve`: doc/openapi.json describes them all, and each checks who asks. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import base64
import contextlib
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from openapi import DOCUMENT, faults, operations, resolve, routes_of_program  # noqa: E402
from server_process import Server, chunk_envelope, envelope, item  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
START = 1_800_000_000
# What a route needs to answer 200.
QUERIES = {"export": "format=collapsed", "raw": f"chunk={1:032x}", "flamechart": f"profiler={1:032x}&thread=1",
           "diff": "release=shop@2.0&base_release=shop@1.0"}


def run(*arguments):
    return subprocess.run([OFFBEAT, "serve", *arguments], capture_output=True, text=True, timeout=60)


def transaction():
    return {"type": "transaction", "event_id": "b" * 32, "transaction": "GET /", "release": "shop@1.0", "environment": "test",
            "start_timestamp": START + 0.05, "timestamp": START + 0.15, "platform": "python",
            "contexts": {"trace": {"trace_id": "c" * 32, "span_id": "d" * 16, "op": "http", "data": {"thread.id": "1"}},
                         "profile": {"profiler_id": f"{1:032x}"}},
            "spans": [{"span_id": "1" * 16, "trace_id": "c" * 32, "start_timestamp": START + 0.1, "timestamp": START + 0.15, "op": "db"}]}


def fill(server):
    """A few chunks of two releases, spans, and an item that the rules reject."""
    for number in (1, 2):
        check_equal(server.send(chunk_envelope(number, start=START + number - 1, release=f"shop@{number}.0")).status, 200, "status")
    check_equal(server.send(envelope(item("transaction", transaction()), event_id="b" * 32)).status, 200, "status")
    check_equal(server.send(envelope(item("profile_chunk", b"{}", platform="python"))).status, 200, "status")


@contextlib.contextmanager
def two_projects():
    """A server, the key of its second project, and tokens for: that project, the first one, the metrics."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        check_equal(server.stop(), 0, "exit status")
        added = run("--data", folder, "--add-project", "second")
        check_equal((added.returncode, added.stdout[-3:]), (0, "/2\n"), added.stderr)
        tokens = []
        for arguments in (("2",), ("1",), ("all", "--role", "metrics")):
            done = run("--data", folder, "--add-token", *arguments)
            check_equal(done.returncode, 0, done.stderr)
            tokens.append(done.stdout.removeprefix("token: ").strip())
        server = Server(OFFBEAT, folder)
        try:
            fill(server)
            yield (server, added.stdout.split("//")[1].split("@")[0], *tokens)
        finally:
            server.kill()


def read_path(path):
    name = path.rsplit("/", 1)[1]
    return path.replace("{project}", "1") + ("?" + QUERIES[name] if name in QUERIES else "")


# --- The description --------------------------------------------------------------------------------------------------


@case
def every_route_of_the_program_is_described_and_the_reverse():
    described = {(method, path): operation for method, path, operation in operations()}
    program = routes_of_program()
    check_equal(sorted(described), sorted(program), "routes of the description and of the program")
    names = {"ALL": set(), "WRITE": {"key", "key_in_query"}}
    for route, access in program.items():
        security = {name for entry in described[route]["security"] for name in entry}
        check_equal(security, names.get(access, {"token", "token_as_password"}), f"security of {route}")


@case
def every_answer_is_as_described():
    with two_projects() as (server, *_):
        for method, path, operation in operations():
            if method != "GET":
                continue
            answer = server.request("GET", read_path(path), headers=server.read_header())
            check_equal(answer.status, 200, f"status of {path}: {answer.body[:200]}")
            (kind, content), = operation["responses"]["200"]["content"].items()
            check_equal(answer.headers["Content-Type"].split(";")[0], kind, f"type of {path}")
            if kind == "application/json":
                check_equal(faults(content["schema"], answer.json()), [], f"faults of {path}")
        error = server.get("top?service=none")
        check_equal((error.status, faults(DOCUMENT["components"]["schemas"]["error"], error.json())), (404, []), "an error")
        for schema, value in (("sample_type", {"type": "wall"}), ("sample_type", {"type": 1, "unit": ""}),
                              ("sample_type", {"type": "", "unit": "", "more": 1}), ("noise", "loud")):
            check(faults(resolve({"$ref": f"#/components/schemas/{schema}"}), value), f"{value} is accepted as {schema}")


# --- Access -----------------------------------------------------------------------------------------------------------


def basic(password):
    return {"Authorization": "Basic " + base64.b64encode(f"offbeat:{password}".encode()).decode()}


def forms_of(secret):
    """Each form in which a key or a token can be sent."""
    return [{"X-Sentry-Auth": f"Sentry sentry_key={secret}"}, {"Authorization": f"Sentry sentry_key={secret}"},
            {"Authorization": f"Bearer {secret}"}, basic(secret)]


@case
def every_route_refuses_each_wrong_credential_and_does_nothing():
    tried = 0
    with two_projects() as (server, key_of_second, token_of_second, token_of_first, token_of_metrics):
        unknown = "0" * 32
        broken = [{}, {"Authorization": "Bearer "}, {"Authorization": "Basic ?"}, {"Authorization": "Sentry"}, {"X-Sentry-Auth": "Sentry"},
                  {"Authorization": f"Bearer {server.token}x"}, {"X-Sentry-Auth": f"Sentry sentry_key={server.key}x"}]
        before = server.read("chunks"), server.outcomes(), server.read("rejected")
        for (method, path), access in routes_of_program().items():
            if access == "ALL":
                continue
            wrong = broken + forms_of(unknown) + forms_of(key_of_second) + forms_of(token_of_second)
            wrong += forms_of(server.token if access == "WRITE" else server.key)
            if access != "METRICS":
                wrong += forms_of(token_of_metrics)
            if access in ("READ_ALL", "METRICS"):
                wrong += forms_of(token_of_first)
            queries = [""] + [f"sentry_key={secret}" for secret in (unknown, key_of_second, token_of_second, server.token, "")]
            for headers, query in [(headers, "") for headers in wrong] + [({}, query) for query in queries]:
                target = read_path(path)
                target += ("&" if "?" in target else "?") + query if query else ""
                body = chunk_envelope(9) if method == "POST" else None
                answer = server.request(method, target, body, headers)
                allowed = (400, 401, 403) if access == "WRITE" else (401, 403)
                check(answer.status in allowed, f"{method} {target} with {headers}: {answer.status} {answer.body[:100]}")
                check_equal(list(answer.json()), ["detail"], f"answer to {method} {target} with {headers}")
                tried += 1
            for other in ("/api/2/", "/api/3/"):  # the right key, the wrong project
                if access == "READ" or access == "WRITE":
                    headers = server.auth() if access == "WRITE" else {"Authorization": f"Bearer {token_of_first}"}
                    target = read_path(path).replace("/api/1/", other)
                    answer = server.request(method, target, chunk_envelope(9) if method == "POST" else None, headers)
                    check_equal(answer.status, 403, f"status of {method} {target}")
                    tried += 1
        dsn = f"http://{key_of_second}@127.0.0.1:{server.port}/1"
        check_equal(server.request("POST", "/api/1/envelope/", envelope(dsn=dsn)).status, 403, "status of a DSN with another project's key")
        check_equal((server.read("chunks"), server.outcomes(), server.read("rejected")), before, "what is stored")
        second = server.request("GET", "/api/2/chunks", headers={"Authorization": f"Bearer {token_of_second}"})
        check_equal(second.json()["chunks"], [], "chunks of the second project")
    print(f"# {tried} requests")
    check(tried > 500, f"{tried} requests")


@case
def the_right_credential_is_accepted_on_every_route():
    """So that the case above does not pass because everything is refused."""
    with two_projects() as (server, key_of_second, token_of_second, token_of_first, token_of_metrics):
        for (method, path), access in routes_of_program().items():
            if access == "WRITE":
                continue
            good = {"ALL": [{}], "READ": [server.token, token_of_first], "READ_ALL": [server.token],
                    "METRICS": [server.token, token_of_metrics]}[access]
            for one in good:
                for headers in [one] if one == {} else [basic(one), {"Authorization": f"bearer {one}"}]:
                    check_equal(server.request(method, read_path(path), headers=headers).status, 200, f"status of {path}")
        header = {"X-Sentry-Auth": f"Sentry sentry_key={key_of_second}"}
        check_equal(server.request("POST", "/api/2/envelope/", chunk_envelope(7), header).status, 200, "status of the second project's envelope")
        check_equal(server.request("POST", "/api/2/profiles", b"main;work 3\n", header).status, 200, "status of its profile")
        second = server.request("GET", "/api/2/chunks", headers={"Authorization": f"Bearer {token_of_second}"})
        check_equal(len(second.json()["chunks"]), 2, "chunks of the second project")
        check_equal(len(server.read("chunks")["chunks"]), 2, "chunks of the first one")


@case
def an_address_of_the_network_needs_a_project_first():
    with tempfile.TemporaryDirectory() as folder:
        for address in ("0.0.0.0:0", "[::]:0"):
            done = run("--data", folder, "--listen", address)
            check_equal((done.returncode, done.stdout), (2, ""), done.stderr)
            check("has no project and no keys" in done.stderr, done.stderr)
        check_equal(run("--data", folder, "--add-project", "one").returncode, 0, "exit status of --add-project")
        server = Server(OFFBEAT, folder, "--listen", "0.0.0.0:0")
        check_equal(server.send(chunk_envelope(1)).status, 200, "status")
        check_equal(server.request("GET", "/api/1/chunks").status, 401, "status without a token")
        check_equal(server.stop(), 0, "exit status")


@case
def wrong_projects_and_roles_are_refused_on_the_command_line():
    with tempfile.TemporaryDirectory() as folder:
        for arguments in (("--add-token", "1"), ("--add-token", "0"), ("--add-token", "x"), ("--add-token", "all", "--role", "king"),
                          ("--add-token", "1", "--role", "metrics")):
            done = run("--data", folder, *arguments)
            check_equal((done.returncode, done.stdout), (2, ""), f"{arguments}: {done.stderr}")


main(sys.argv[2] if len(sys.argv) > 2 else "")
