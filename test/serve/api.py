"""The routes of `offbeat serve`: doc/openapi.json describes them all, and each checks who asks. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import base64
import contextlib
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from openapi import DOCUMENT, faults, operations, parameters_of_program, resolve, routes_of_program  # noqa: E402
from server_process import Server, chunk, chunk_envelope, envelope, item, new_project, new_token, running  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
START = 1_736_928_000
# What a route needs to answer 200.
QUERIES = {"export": "format=collapsed", "raw": f"chunk={1:032x}", "flamechart": f"profiler={1:032x}&thread=1",
           "diff": "release=shop@2.0&base_release=shop@1.0", "flame-diff": "release=shop@2.0&base_release=shop@1.0",
           "regressions": "release=shop@2.0&base_release=shop@1.0", "function": "name=work"}


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
    check_equal(server.chunk_numbers(), [1, 2], "chunks")
    check_equal([one["span"] for one in server.read("spans")["spans"]], ["d" * 16, "1" * 16], "spans")
    check_equal([one["reason"] for one in server.read("rejected")["rejected"]], ["profiling_invalid_json"], "rejected")


@contextlib.contextmanager
def two_projects():
    """A server, the key of its second project, and tokens for: that project, the first one, the metrics."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        key = new_project(OFFBEAT, folder, "second")
        tokens = [new_token(OFFBEAT, folder, *arguments) for arguments in (("2",), ("1",), ("all", "metrics"))]
        try:
            fill(server)
            yield (server, key, *tokens)
        finally:
            server.kill()


def read_path(path):
    name = path.rsplit("/", 1)[1]
    return path.replace("{project}", "1").replace("{organization}", "any").replace("{command}", "projects") + ("?" + QUERIES[name] if name in QUERIES else "")


def header_for(server, path):
    if path.startswith("/api/admin"):
        return {"Authorization": f"Bearer {new_token(OFFBEAT, server.data, 'all', 'admin')}"}
    return {"Authorization": f"Bearer {server.upload_token}"} if path.startswith("/api/0") else server.read_header()


# --- The description --------------------------------------------------------------------------------------------------


@case
def every_route_of_the_program_is_described_and_the_reverse():
    described = {(method, path): operation for method, path, operation in operations()}
    program = routes_of_program()
    check_equal(sorted(described), sorted(program), "routes of the description and of the program")
    keys = {"key", "key_in_query", "key_as_token", "key_as_password"}
    names = {"ALL": set(), "WRITE": keys, "WRITE_BY_KEY": keys, "UPLOAD": {"upload_token", "upload_token_as_password"},
             "ADMIN": {"admin_token"}}
    for route, access in program.items():
        security = {name for entry in described[route]["security"] for name in entry}
        check_equal(security, names.get(access, {"token", "token_as_password"}), f"security of {route}")


@case
def every_answer_is_as_described():
    with two_projects() as (server, *_):
        for method, path, operation in operations():
            if method != "GET":
                continue
            answer = server.request("GET", read_path(path), headers=header_for(server, path))
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


@case
def every_parameter_of_a_query_is_described_and_another_one_is_rejected():
    readable = {resolve(parameter)["name"] for _, _, operation in operations() if {"token": []} in operation["security"]
                for parameter in operation["parameters"]}
    check_equal(readable, parameters_of_program(), "parameters of the description and of the program")
    with two_projects() as (server, *_):
        for query in ("servce=shop", "base_limit=1", "limit=x", "limit=", "limit=-1", "limit=99999999999", "buckets=1x"):
            for route in ("top", "chunks", "trend"):
                answer = server.get(f"{route}?{query}")
                check_equal(answer.status, 400, f"status of {route}?{query}")


# --- Lists ---------------------------------------------------------------------------------------------------------------


def pages(server, route, name, limit):
    """The entries of all pages, and how many pages there are."""
    entries, count, after = [], 0, ""
    while True:
        answer = server.read(f"{route}{'&' if '?' in route else '?'}limit={limit}{after}")
        entries += answer[name]
        count += 1
        check_equal("next" in answer, answer["is_cut"], "a page that is cut says where the next one begins")
        if not answer["is_cut"]:
            return entries, count
        after = "&after=" + urllib.parse.quote(answer["next"])


@case
def the_pages_of_a_list_have_each_entry_once():
    with running(OFFBEAT) as server:
        names = [f"{name}&=\u00e9 {number:03}" for number in range(23) for name in ("shop", "bank")] + ["x" * 190 + "\u20ac" * 10]
        for number, name in enumerate(names):  # one name is cut after 200 bytes, in the middle of a character
            check_equal(server.upload(b"main;work 3\n", "service=" + urllib.parse.quote(name)).status, 200, "status")
        for number in range(7):
            check_equal(server.send(envelope(item("profile_chunk", b"{}", platform="python"))).status, 200, "status")
        for route in ("services", "chunks", "rejected", "outcomes", "chunks?service=" + urllib.parse.quote(names[3])):
            name = route.split("?")[0]
            whole = server.read(route)
            check_equal(whole["is_cut"], False, f"{route} is cut")
            for limit in (1, 10, len(whole[name]), 1000):
                entries, count = pages(server, route, name, limit)
                check_equal(entries, whole[name], f"entries of {route} in pages of {limit}")
                check_equal(count, max(1, -(-len(whole[name]) // limit)), f"pages of {route} in pages of {limit}")
        check_equal(len(server.read("services")["services"]), len(names), "services")
        for wrong in ("x", "", "-1", "99999999999999999999"):
            check_equal(server.get(f"chunks?after={wrong}").status, 400, f"status of after={wrong}")


@case
def the_pages_of_spans_have_the_filters_of_the_list():
    with two_projects() as (server, *_):
        for route in ("spans", "transactions", f"spans?span={'1' * 16}"):
            name = route.split("?")[0]
            entries, _ = pages(server, route, name, 1)
            check_equal(entries, server.read(route)[name], f"entries of {route}")
            check(entries, f"{route} is empty")


# --- Queries ----------------------------------------------------------------------------------------------------------

MS = 1_000_000


def near(actual, expected, what):
    check(abs(actual - expected) <= 2000, f"{what}: {actual}, expected about {expected}")


@case
def a_span_cuts_every_answer_to_its_thread_and_time():
    """The transaction runs from 50 to 150 ms: 50 in main, 50 in work. Its span has the second half."""
    with two_projects() as (server, *_):
        for query, expected in ((f"span={'d' * 16}", 100), (f"span={'1' * 16}", 50), (f"span={'1' * 16}&trace={'c' * 32}", 50),
                                ("transaction=GET%20/", 100), (f"span={'d' * 16}&to={START + 0.08}", 30)):
            near(server.read(f"top?{query}")["total"], expected * MS, query)
            near(server.read(f"flame?{query}")["total"], expected * MS, f"flame graph of {query}")
            chart = server.read(f"flamechart?{query}&thread=1" if "span" in query else f"flamechart?{query}&profiler={1:032x}")
            near(chart["boxes"][0]["duration_ns"], expected * MS, f"flamechart of {query}")
        functions = {one["name"]: one["self"] for one in server.read(f"top?span={'1' * 16}")["functions"]}
        near(functions["work"], 50 * MS, "work in the span")
        for query in (f"span={'2' * 16}", "transaction=POST", f"trace={'d' * 32}", f"span={'d' * 16}&service=other"):
            check_equal(server.get(f"top?{query}").status, 404, f"status of {query}")
        check_equal(len(server.read(f"spans?span={'1' * 16}")["spans"]), 1, "spans with that id")
        check_equal(len(server.read("spans?transaction=nothing")["spans"]), 0, "spans of another transaction")


@case
def a_segment_that_was_sent_alone_is_a_transaction():
    """As SDKs stream spans: version 2, with the release and the profiler in attributes."""
    attributes = {"sentry.release": "shop@1.0", "sentry.environment": "test", "sentry.op": "task", "thread.id": "1", "sentry.profiler_id": f"{1:032x}"}
    span = {"name": "job", "trace_id": "c" * 32, "span_id": "2" * 16, "start_timestamp": START + 0.02, "end_timestamp": START + 0.08, "status": "ok",
            "is_segment": True, "attributes": {name: {"value": value, "type": "string"} for name, value in attributes.items()}}
    inner = span | {"name": "inner", "span_id": "3" * 16, "is_segment": False, "end_timestamp": START + 0.04}
    with two_projects() as (server, *_):
        header = {"item_count": 2, "content_type": "application/vnd.sentry.items.span.v2+json"}
        check_equal(server.send(envelope(item("span", {"version": 2, "items": [span, inner]}, **header))).status, 200, "status")
        found = server.read("transactions?transaction=job&service=shop&environment=test")["transactions"]
        check_equal([(one["name"], one["op"], one["release"]) for one in found], [("job", "task", "shop@1.0")], "transactions")
        near(server.read("top?transaction=job&service=shop")["total"], 60 * MS, "the segment")
        near(server.read(f"flamechart?span={'3' * 16}")["boxes"][0]["duration_ns"], 20 * MS, "the span inside")


@case
def all_transactions_of_a_name_are_summed_and_a_chart_needs_one():
    with two_projects() as (server, *_):
        second = transaction()
        second["contexts"]["trace"]["span_id"] = "e" * 16
        second |= {"event_id": "f" * 32, "start_timestamp": START + 1.0, "timestamp": START + 1.03}
        check_equal(server.send(envelope(item("transaction", second), event_id="f" * 32)).status, 200, "status")
        near(server.read("top?transaction=GET%20/")["total"], 130 * MS, "two transactions")
        answer = server.get(f"flamechart?transaction=GET%20/&profiler={1:032x}")
        check_equal((answer.status, "choose one" in answer.json()["detail"]), (400, True), str(answer.body))


@case
def a_profile_of_v1_is_cut_to_its_transaction():
    with two_projects() as (server, *_):
        start = "2025-01-15T09:00:00Z"
        profile = {"event_id": "a" * 32, "version": "1", "platform": "python", "release": "old@1", "environment": "test", "timestamp": start,
                   "runtime": {"name": "CPython", "version": "3"}, "os": {"name": "Linux", "version": "6"}, "device": {"architecture": "x86_64"},
                   "transaction": {"id": "b" * 32, "name": "old", "trace_id": "c" * 32, "active_thread_id": 1},
                   "profile": {"frames": [{"function": "main", "in_app": True}], "stacks": [[0]],
                               "samples": [{"elapsed_since_start_ns": str(i * 10 * MS), "stack_id": 0, "thread_id": "1"} for i in range(20)]}}
        old = transaction() | {"transaction": "old", "release": "old@1", "timestamp": 1_736_931_600.1, "start_timestamp": 1_736_931_600, "spans": []}
        old["contexts"] = {"trace": {"trace_id": "c" * 32, "span_id": "f" * 16, "op": "http"}, "profile": {"profile_id": "a" * 32}}
        sent = envelope(item("transaction", old), item("profile", profile), event_id="b" * 32)
        check_equal(server.send(sent).status, 200, "status")
        check_equal([one["kind"] for one in server.read("chunks?service=old")["chunks"]], ["profile"], str(server.read("rejected")))
        near(server.read("top?transaction=old")["total"], 100 * MS, "the transaction")
        near(server.read(f"flamechart?span={'f' * 16}")["boxes"][0]["duration_ns"], 100 * MS, "its chart")


@case
def filters_equal_the_options_of_the_command_line():
    with two_projects() as (server, *_):
        total = server.read("top")["total"]
        work = next(one["total"] for one in server.read("top")["functions"] if one["name"] == "work")
        near(server.read("top?focus=^work$")["total"], work, "focus")
        near(server.read("top?ignore=^work$")["total"], total - work, "ignore")
        names = {box["name"] for box in server.read("flame?show_from=^work$")["boxes"] if box["depth"]}
        check_equal(names, {"work"}, "boxes from work on")
        names = [box["name"] for box in server.read("flame?inverted=1&focus=^work$")["boxes"] if box["depth"]]
        check_equal(names, ["work", "main"], "boxes of the inverted graph")
        check_equal(server.get("top?focus=nothing").status, 404, "status of a filter that leaves nothing")
        check_equal(server.get("top?focus=(").status, 400, "status of a broken expression")


@case
def a_function_has_its_callers_and_callees():
    with two_projects() as (server, *_):
        top = {one["name"]: one for one in server.read("top")["functions"]}
        work, main_function = server.read("function?name=work"), server.read("function?name=main")
        check_equal([(one["name"], one["total"]) for one in work["callers"]], [("main", top["work"]["total"])], "callers of work")
        check_equal([(one["name"], one["total"]) for one in main_function["callees"]], [("work", top["work"]["total"])], "callees of main")
        for name, one in (("work", work), ("main", main_function)):
            check_equal((one["self"], one["total"]), (top[name]["self"], top[name]["total"]), f"values of {name}")
        check_equal(server.get("function?name=none").status, 404, "status of another function")
        check_equal(server.get("function").status, 400, "status without a name")


@case
def the_parts_of_a_trend_add_up():
    with two_projects() as (server, *_):
        total, buckets = server.read("top")["total"], 12
        trend = server.read(f"trend?buckets={buckets}")
        check_equal((len(trend["starts"]), len(trend["totals"])), (buckets + 1, buckets), "parts")
        check(abs(sum(trend["totals"]) - total) <= buckets, f"{trend['totals']} do not add up to {total}")
        for number, part in enumerate(trend["totals"]):
            check_equal(sum(one["self_by_time"][number] for one in trend["functions"]), part, f"sum of part {number}")
        # The chunks begin 1 s apart and last 190 ms.
        check_equal([part > 0 for part in trend["totals"]], [True, True] + [False] * 8 + [True] * 2, f"parts with samples: {trend['totals']}")
        for query in ("buckets=0", "buckets=201"):
            check_equal(server.get(f"trend?{query}").status, 400, f"status of {query}")


@case
def the_work_for_a_client_that_disconnects_is_cancelled():
    with two_projects() as (server, *_):
        for number in range(150):
            server.send(chunk_envelope(1000 + number, start=START + number, samples=4000, period=0.001, functions=("main", f"work{number}")))
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(f"GET /api/1/top?thread=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
            time.sleep(0.02)
        deadline, metrics = time.time() + 120, ""
        while "offbeat_queries_cancelled_total 1\n" not in metrics and time.time() < deadline:
            time.sleep(0.05)
            metrics = server.request("GET", "/metrics", headers=server.read_header()).body.decode()
        check("offbeat_queries_cancelled_total 1\n" in metrics, metrics)


@case
def regressions_are_what_grew_by_more_than_noise():
    with two_projects() as (server, *_):
        for number in range(20):
            for release, names in (("9", ("main", "work")), ("10", ("main", "work", "slow"))):
                one = chunk(100 + number * 2 + (release == "10"), start=START + 100 + number, release=f"shop@{release}", samples=200, functions=names)
                if release == "10":
                    one["profile"]["stacks"] = [[0], [1, 0], [2, 0]]
                    for place, sample in enumerate(one["profile"]["samples"]):
                        sample["stack_id"] = (0, 1, 2)[place // 10 % 3]
                check_equal(server.send(envelope(item("profile_chunk", one, platform="python"))).status, 200, "status")
        found = server.read("regressions?release=shop@10&base_release=shop@9")
        check_equal([(one["name"], one["change"], one["noise"]) for one in found["functions"]], [("slow", "added", "exceeds")], "regressions")
        check_equal(server.read("regressions?release=shop@9&base_release=shop@9")["functions"], [], "regressions of a release from itself")


# --- Access -----------------------------------------------------------------------------------------------------------


def basic(password):
    return {"Authorization": "Basic " + base64.b64encode(f"offbeat:{password}".encode()).decode()}


def forms_of(secret):
    """Each form in which a key or a token can be sent."""
    return [{"X-Sentry-Auth": f"Sentry sentry_key={secret}"}, {"Authorization": f"Sentry sentry_key={secret}"},
            {"Authorization": f"Bearer {secret}"}, basic(secret)]


def members_of_error(path):
    return ["message"] if "v1development" in path else ["code", "message"] if "push.v1" in path else ["detail"]


@case
def every_route_rejects_each_wrong_credential_and_does_nothing():
    tried = 0
    with two_projects() as (server, key_of_second, token_of_second, token_of_first, token_of_metrics):
        unknown = "0" * 32
        broken = [{}, {"Authorization": "Bearer "}, {"Authorization": "Basic ?"}, {"Authorization": "Sentry"}, {"X-Sentry-Auth": "Sentry"},
                  {"Authorization": f"Bearer {server.token}x"}, {"X-Sentry-Auth": f"Sentry sentry_key={server.key}x"}]
        before = server.read("chunks"), server.outcomes(), server.read("rejected")
        for (method, path), access in routes_of_program().items():
            if access == "ALL":
                continue
            wrong = broken + forms_of(unknown) + forms_of(token_of_second)
            if access != "WRITE_BY_KEY":  # there the key says which project it is
                wrong += forms_of(key_of_second)
            wrong += forms_of(server.token if access.startswith("WRITE") else server.key)
            wrong += forms_of(server.token if access in ("UPLOAD", "ADMIN") else server.upload_token)
            if access != "METRICS":
                wrong += forms_of(token_of_metrics)
            if access in ("READ_ALL", "METRICS"):
                wrong += forms_of(token_of_first)
            secrets = (unknown, token_of_second, server.token, "") + (() if access == "WRITE_BY_KEY" else (key_of_second,))
            queries = [""] + [f"sentry_key={secret}" for secret in secrets]
            for headers, query in [(headers, "") for headers in wrong] + [({}, query) for query in queries]:
                target = read_path(path)
                target += ("&" if "?" in target else "?") + query if query else ""
                body = chunk_envelope(9) if method == "POST" else None
                answer = server.request(method, target, body, headers)
                allowed = (400, 401, 403) if access.startswith("WRITE") else (401, 403)
                check(answer.status in allowed, f"{method} {target} with {headers}: {answer.status} {answer.body[:100]}")
                check_equal(list(answer.json()), members_of_error(path), f"answer to {method} {target} with {headers}")
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
    """So that the case above does not pass because everything is rejected."""
    with two_projects() as (server, key_of_second, token_of_second, token_of_first, token_of_metrics):
        admin = new_token(OFFBEAT, server.data, "all", "admin")
        for (method, path), access in routes_of_program().items():
            bodies = set()
            if access.startswith("WRITE") or (access in ("UPLOAD", "ADMIN") and method == "POST"):
                continue
            good = {"ALL": [{}], "READ": [server.token, token_of_first], "READ_ALL": [server.token],
                    "METRICS": [server.token, token_of_metrics], "UPLOAD": [server.upload_token], "ADMIN": [admin]}[access]
            for one in good:
                bearer = {"Authorization": f"bearer {one}"}
                for headers in [one] if one == {} else [bearer] if access == "ADMIN" else [basic(one), bearer]:
                    answer = server.request(method, read_path(path), b"main;work 3\n" if method == "POST" else None, headers)
                    check_equal(answer.status, 200, f"status of {path}")
                    bodies.add(answer.body)
            check(path == "/metrics" or len(bodies) == 1, f"{len(bodies)} answers of {path}")
            check(bodies != {b""}, f"empty answer of {path}")
        header = {"X-Sentry-Auth": f"Sentry sentry_key={key_of_second}"}
        for number, form in enumerate(forms_of(server.key)):
            check_equal(server.request("POST", "/api/1/envelope/", chunk_envelope(20 + number), form).status, 200, f"status of an envelope with {form}")
            check_equal(server.request("POST", "/api/1/profiles", b"main;work 3\n", form).status, 200, f"status of a profile with {form}")
        check_equal(server.request("POST", "/api/2/envelope/", chunk_envelope(7), header).status, 200, "status of the second project's envelope")
        check_equal(server.request("POST", "/api/2/profiles", b"main;work 3\n", header).status, 200, "status of its profile")
        second = server.request("GET", "/api/2/chunks", headers={"Authorization": f"Bearer {token_of_second}"})
        check_equal(sorted(one["kind"] for one in second.json()["chunks"]), ["chunk", "file"], "chunks of the second project")
        check_equal([one for one in server.chunk_numbers() if one < 100], [1, 2, 20, 21, 22, 23], "chunks of the first one")


@case
def an_address_of_the_network_needs_a_project_first():
    with tempfile.TemporaryDirectory() as folder:
        for address in ("0.0.0.0:0", "[::]:0"):
            done = run("--data", folder, "--listen", address)
            check_equal((done.returncode, done.stdout), (2, ""), done.stderr)
            check("has no project and no keys" in done.stderr, done.stderr)
        new_project(OFFBEAT, folder, "one")
        server = Server(OFFBEAT, folder, "--listen", "0.0.0.0:0")
        check_equal(server.send(chunk_envelope(1)).status, 200, "status")
        check_equal(server.chunk_numbers(), [1], "chunks")
        check_equal(server.request("GET", "/api/1/chunks").status, 401, "status without a token")
        check_equal(server.stop(), 0, "exit status")


main(sys.argv[2] if len(sys.argv) > 2 else "")
