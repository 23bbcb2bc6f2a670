"""What Pyroscope's clients and OpenTelemetry send to `offbeat serve`. The bodies are written here, field by field, from the published
schemas (pprof's profile.proto, opentelemetry-proto's profiles.proto). Argument: the build folder. SPDX-License-Identifier: MIT"""
import base64
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from protobuf_wire import field, fields, pprof, push_series, varint  # noqa: E402
from server_process import Server, new_project, running  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
START = 1_736_928_000
BOUNDARY = "5f2c9b4e7d"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}


STACKS = {("main", "work"): 70, ("main", "wait"): 30}

# --- Pyroscope --------------------------------------------------------------------------------------------------------


def basic(secret):
    return {"Authorization": "Basic " + base64.b64encode(f"any:{secret}".encode()).decode()}


def ingest(server, body, headers=None, key=None, **query):
    query = {"name": "shop{env=live,region=eu}", "from": START, "until": START + 10} | query
    return server.request("POST", "/ingest?" + urllib.parse.urlencode({name: value for name, value in query.items() if value is not None}),
                          body, basic(key or server.key) | (headers or {}))


def form(**parts):
    """As Go's mime/multipart writes it."""
    body = b""
    for name, data in parts.items():
        body += (f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.pprof"\r\n'
                 "Content-Type: application/octet-stream\r\n\r\n").encode() + data + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def functions(server, query=""):
    return {one["name"]: one["self"] for one in server.read(f"top?{query}")["functions"] if one["self"]}


@case
def a_form_of_a_pyroscope_client_is_stored_as_it_came():
    profile = gzip.compress(pprof(STACKS))
    with running(OFFBEAT) as server:
        body = form(sample_type_config=b'{"cpu":{"units":"nanoseconds"}}', profile=profile)
        answer = ingest(server, body, FORM, name="shop.cpu{env=live,service_version=2.0,hostname=h1,__session_id__=7}", spyName="gospy",
                        **{"from": START * 10 ** 9, "until": (START + 10) * 10 ** 9})
        check_equal((answer.status, list(answer.json())), (200, ["id"]), str(answer.body))
        one, = server.read("chunks")["chunks"]
        check_equal({name: one[name] for name in ("service", "environment", "release", "host", "platform", "start", "end", "samples")},
                    {"service": "shop", "environment": "live", "release": "2.0", "host": "h1", "platform": "go",
                     "start": "2025-01-15T08:00:00.000000Z", "end": "2025-01-15T08:00:10.000000Z", "samples": 2}, "the chunk")
        check_equal(server.get(f"raw?chunk={one['chunk']}").body, profile, "what was stored")
        check_equal(functions(server, "service=shop"), {"work": 70, "wait": 30}, "functions")


@case
def curl_sends_a_form_that_is_read():
    with running(OFFBEAT) as server, tempfile.NamedTemporaryFile() as file:
        file.write(pprof(STACKS))
        file.flush()
        url = f"http://127.0.0.1:{server.port}/ingest?name=shop&from={START}&until={START + 1}"
        done = subprocess.run(["curl", "-s", "-w", "%{http_code}", "-u", f"any:{server.key}", "-F", f"profile=@{file.name}", url],
                              capture_output=True, text=True, timeout=60)
        check(done.stdout.endswith("200"), done.stdout + done.stderr)
        check_equal(functions(server), {"work": 70, "wait": 30}, "functions")


@case
def forms_of_other_writers_are_read():
    """RFC 7578 and RFC 9110 allow each of them, and clients in the field write them."""
    def written(head, boundary=BOUNDARY):
        return f"--{boundary}\r\n{head}\r\n\r\n".encode() + pprof(STACKS) + f"\r\n--{boundary}--\r\n".encode()

    usual = 'Content-Disposition: form-data; name="profile"; filename="x"'
    with running(OFFBEAT) as server:
        password = base64.b64encode(f"any:{server.key}".encode()).decode()
        for number, (kind, body, headers) in enumerate((
                (f'multipart/form-data; boundary="{BOUNDARY}"', written(usual), {}),
                (f"multipart/form-data; boundary={BOUNDARY}; charset=utf-8", written(usual), {}),
                (f"Multipart/Form-Data; Boundary={BOUNDARY}", written(usual), {}),
                ("multipart/form-data; boundary=x", written(usual, "x"), {}),
                (f"multipart/form-data; boundary={BOUNDARY}", written("content-disposition: form-data;name=profile"), {}),
                (f"multipart/form-data; boundary={BOUNDARY}", written('Content-Disposition: form-data; filename="x"; name="profile"'), {}),
                (f"multipart/form-data; boundary={BOUNDARY}", written('Content-Disposition: form-data; filename="a; name=zzz"; name="profile"'), {}),
                (f"multipart/form-data; boundary={BOUNDARY}",
                 written(r'Content-Disposition: form-data; filename="a\"; name=\"zzz"; name="profile"'), {}),
                (f"multipart/form-data; boundary={BOUNDARY}", b"a preamble\r\n" + written(usual), {}),
                (f"multipart/form-data; boundary={BOUNDARY}", written(usual), {"Authorization": f"basic   {password}"}))):
            answer = ingest(server, body, {"Content-Type": kind} | headers, name=f"shop{number}")
            check_equal((answer.status, list(answer.json())), (200, ["id"]), f"{kind}: {answer.body}")
            check_equal(functions(server, f"service=shop{number}"), {"work": 70, "wait": 30}, f"functions of {kind}")


@case
def labels_without_a_column_become_labels_of_the_samples():
    with running(OFFBEAT) as server:
        for region, share in (("eu", 1), ("us", 3)):
            body = pprof({stack: value * share for stack, value in STACKS.items()})
            check_equal(ingest(server, body, name=f"shop{{region={region}}}", format="pprof").status, 200, "status")
        check_equal(functions(server), {"work": 280, "wait": 120}, "all")
        check_equal(functions(server, "tag_focus=region=us"), {"work": 210, "wait": 90}, "one region")


@case
def collapsed_stacks_have_the_types_of_the_query():
    folded = b"main;work 7\nmain;wait 3\n"
    lines = b"main;work\nmain;wait\nmain;work\n"
    with running(OFFBEAT) as server:
        for number, (query, body, unit, expected) in enumerate((
                ({"format": "folded", "sampleRate": "50"}, folded, ("samples", "count"), {"work": 7, "wait": 3}),
                ({"format": None}, folded, ("samples", "count"), {"work": 7, "wait": 3}),
                ({"format": "lines"}, lines, ("samples", "count"), {"work": 2, "wait": 1}),
                ({"suffix": ".alloc_space", "units": "bytes"}, folded, ("alloc_space", "bytes"), {"work": 7, "wait": 3}))):
            name = f"shop{number}"
            check_equal(ingest(server, body, name=name + query.pop("suffix", ""), **query).status, 200, f"status of {query}")
            top = server.read(f"top?service={name}")
            check_equal((top["sample_type"]["type"], top["sample_type"]["unit"]), unit, f"type of {name}")
            check_equal({one["name"]: one["self"] for one in top["functions"] if one["self"]}, expected, f"functions of {name}")


def node(name, value, *children):
    """A node of a tree or trie of Pyroscope's older clients."""
    return varint(len(name)) + name + varint(value) + varint(len(children)) + b"".join(children)


@case
def trees_and_tries_of_older_clients_are_stacks():
    trie = node(b"", 0, node(b"ma", 0, node(b"in;work", 300, node(b"er", 2)), node(b"p", 4)), node(b"idle", 1))
    tree = node(b"", 0, node(b"main", 0, node(b"work", 300), node(b"worker", 2)), node(b"map", 4), node(b"idle", 1))
    with running(OFFBEAT) as server:
        for number, (body, headers, query) in enumerate(((trie, {}, {"format": "trie"}), (trie, {"Content-Type": "binary/octet-stream+trie"}, {"format": None}), (tree, {}, {"format": "tree"}),
                                                         (tree, {"Content-Type": "binary/octet-stream+tree"}, {"format": None}))):
            check_equal(ingest(server, body, headers, name=f"old{number}", **{"from": "now-10s", "until": "now"} | query).status, 200, f"status of {number}")
            functions = {one["name"]: (one["self"], one["total"]) for one in server.read(f"top?service=old{number}&from=now-1d&to=now")["functions"]}
            check_equal(functions, {"work": (300, 300), "worker": (2, 2), "map": (4, 4), "idle": (1, 1), "main": (0, 302)}, f"functions of {number}")
        for body in [trie[:size] for size in range(1, len(trie))] + [trie + b"\0"]:
            check_equal(ingest(server, body, {}, name="cut", format="trie").status, 400, "status of a cut trie")
        long = node(b"", 0, node(b"a" * 200_000, 0, node(b"b" * 200_000, 3)))
        for body, expected in ((b"\0\0\1" * 5000, "a stack has over 4096 levels"), (long, "a stack has over 262144 bytes")):
            answer = ingest(server, body, {}, name="large", format="trie")
            check_equal((answer.status, answer.json()), (413, {"detail": expected}), "answer to a large trie")
        check_equal(server.get("top?service=old0&from=now-1y").status, 400, "status of another unit")


@case
def what_cannot_be_read_is_rejected_and_not_stored():
    with running(OFFBEAT) as server:
        for what, body, headers, query in (
                ("no name", b"a 1\n", {}, {"name": None}), ("trie", b"\x01\x02", {}, {"format": "trie"}),
                ("not folded", b"\x00\x01", {}, {"format": "folded"}), ("broken pprof", pprof(STACKS)[:-7], {}, {"format": "pprof"}),
                ("no boundary", form(profile=pprof(STACKS)), {"Content-Type": "multipart/form-data"}, {}),
                ("another boundary", form(profile=pprof(STACKS)), {"Content-Type": "multipart/form-data; boundary=x"}, {}),
                ("no such part", form(other=pprof(STACKS)), FORM, {}), ("cut", form(profile=pprof(STACKS))[:-20], FORM, {}),
                ("broken gzip", b"\x1f\x8b\x08broken", {"Content-Encoding": "gzip"}, {})):
            answer = ingest(server, body, headers, **query)
            check_equal((answer.status, list(answer.json())), (400, ["detail"]), f"{what}: {answer.body}")
        answer = ingest(server, b"", {})
        check_equal((answer.status, answer.json()), (200, {}), "answer to nothing")
        check_equal(server.read("chunks")["chunks"], [], "chunks")


# --- Pushes of Grafana Alloy -------------------------------------------------------------------------------------------


def push(server, *series, headers=None, key=None):
    """Each SERIES: (labels, profiles), of push.proto."""
    body = fields(1, [push_series(*one) for one in series])
    return server.request("POST", "/push.v1.PusherService/Push", body, {"Content-Type": "application/proto"} | basic(key or server.key) | (headers or {}))


@case
def each_profile_of_a_push_is_stored_once_with_its_labels():
    labels = {"__name__": "process_cpu", "service_name": "shop", "instance": "h1", "region": "eu", "__session_id__": "7"}
    series = [(labels, [(gzip.compress(pprof(STACKS)), f"{1:032x}"), (pprof(STACKS), f"{2:032x}")]),
              (labels | {"service_name": "bank", "region": "us"}, [(pprof(STACKS), "")])]
    with running(OFFBEAT) as server:
        for _ in range(2):  # as a client that had no answer
            answer = push(server, *series)
            check_equal((answer.status, answer.body, answer.headers["Content-Type"]), (200, b"", "application/proto"), "answer")
        found = sorted((one["service"], one["host"], one["chunk"] in (f"{1:032x}", f"{2:032x}")) for one in server.read("chunks")["chunks"])
        check_equal(found, [("bank", "h1", False), ("bank", "h1", False), ("shop", "h1", True), ("shop", "h1", True)], "chunks")
        check_equal(functions(server, "service=shop"), {"work": 140, "wait": 60}, "functions")
        check_equal(functions(server, "tag_focus=region=us"), {"work": 140, "wait": 60}, "functions of a label")


@case
def a_push_of_json_is_the_push_that_it_stands_for():
    labels = [{"name": "service_name", "value": "sh\"op"}, {"value": "eu", "name": "region"}, {"name": "extra", "value": None, "other": [{}]}]
    with running(OFFBEAT) as server:
        def push_json(text):
            return server.request("POST", "/push.v1.PusherService/Push", text, basic(server.key) | JSON)

        for name in ("rawProfile", "raw_profile"):
            sample = {name: base64.b64encode(gzip.compress(pprof(STACKS))).decode(), "ID": f"{1:08x}-0000-4000-8000-{len(name):012x}"}
            answer = push_json(json.dumps({"series": [{"labels": labels, "samples": [sample]}], "annotations": None}))
            check_equal((answer.status, answer.body, answer.headers["Content-Type"]), (200, b"{}", "application/json"), f"answer to {name}")
        check_equal([one["service"] for one in server.read("chunks")["chunks"]], ['sh"op'] * 2, "services")
        check_equal(functions(server, "tag_focus=region=eu"), {"work": 140, "wait": 60}, "functions of a label")
        for text in ("", "[]", '{"series":{}}', '{"series":[{"samples":[{"rawProfile":3}]}]}', '{"series":[{"samples":[{"rawProfile":"AAAA"}]}]}', '{"series":[]'):
            answer = push_json(text)
            check_equal((answer.status, answer.json().get("code")), (400, "invalid_argument"), f"answer to {text}: {answer.body}")


@case
def a_key_may_be_the_user_of_basic_authentication():
    with running(OFFBEAT) as server:
        for secret, status in ((f"{server.key}:", 200), (f"any:{server.key}", 200), (f"{server.key}:x", 400), (f"{server.token}:", 403), (":", 400)):
            answer = ingest(server, b"a 1\n", {"Authorization": "Basic " + base64.b64encode(secret.encode()).decode()})
            check_equal(answer.status, status, f"status of {secret}: {answer.body}")
        reader = {"Authorization": "Basic " + base64.b64encode(f"{server.token}:".encode()).decode()}
        check_equal(server.get("top?from=1", reader).json()["total"], 2, "total for a reader")


@case
def errors_of_a_push_follow_the_connect_protocol():
    good = ({"service_name": "shop"}, [(pprof(STACKS), "")])
    with running(OFFBEAT) as server:
        for what, answer, status, code in (
                ("a broken profile", push(server, good, ({"a": "b"}, [(pprof(STACKS)[:-7], "")])), 400, "invalid_argument"),
                ("an unknown key", push(server, good, key="0" * 32), 403, "permission_denied"),
                ("another type", push(server, good, headers={"Content-Type": "application/grpc"}), 415, "invalid_argument"),
                ("too many", push(server, ({}, [(pprof(STACKS), "")] * 257)), 413, "invalid_argument"),
                ("no protobuf", server.request("POST", "/push.v1.PusherService/Push", b"\x0a\xff", basic(server.key) | {"Content-Type": "application/proto"}),
                 400, "invalid_argument")):
            check_equal((answer.status, answer.json().get("code")), (status, code), f"answer to {what}: {answer.body}")
        check_equal(server.read("chunks")["chunks"], [], "chunks: a request is stored all or not at all")
        answer = push(server, *[({}, [])] * 3)
        check_equal((answer.status, answer.body, server.read("chunks")["chunks"]), (200, b"", []), "answer to nothing")


# --- OTLP -------------------------------------------------------------------------------------------------------------


def attribute(key, value):
    return field(1, key) + field(2, field(1, value))


DICTIONARY = (field(1, b"") +  # mapping_table
              fields(2, [b"", field(3, field(1, 1)), field(3, field(1, 2))]) +  # location_table: lines
              fields(3, [b"", field(1, 3), field(1, 4)]) +  # function_table: names
              field(4, b"") + fields(5, ["", "samples", "count", "main", "work"]) + field(6, b"") +
              fields(7, [b"", field(1, b"\x02\x01"), field(1, b"\x01")]))  # stack_table: leaf first


def resource(service, value, profile_id, stack=1, **attributes):
    """ResourceProfiles with one profile of one sample."""
    names = {"service.name": service} | {name.replace("_", "."): text for name, text in attributes.items()}
    profile = (field(1, field(1, 1) + field(2, 2)) + field(2, field(1, stack) + field(4, varint(value))) +
               varint(3 << 3 | 1) + (START * 10 ** 9).to_bytes(8, "little") + field(4, 10 ** 9) + field(7, bytes([profile_id]) * 16))
    return (field(1, fields(1, [attribute(key, text) for key, text in names.items() if text])) +
            field(2, field(1, field(1, "test")) + field(2, profile)))


def export(*resources):
    return fields(1, resources) + field(2, DICTIONARY)


def post(server, body, headers=None, key=None):
    return server.request("POST", "/v1development/profiles", body,
                          {"Authorization": f"Bearer {key or server.key}"} | (PROTOBUF if headers is None else headers))


def parse(message):
    """{number: last value} of a message."""
    found, place = {}, 0

    def number():
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        tag = number()
        if tag & 7 == 0:
            found[tag >> 3] = number()
        else:
            size = number()
            found[tag >> 3] = message[place:place + size]
            place += size
    return found


@case
def an_export_of_one_service_is_stored_as_it_came_and_once():
    body = export(resource("shop", 7, 1, service_version="shop@3.0", host_name="h1", deployment_environment_name="live"))
    with running(OFFBEAT) as server:
        for _ in range(2):
            answer = post(server, body)
            check_equal((answer.status, answer.body, answer.headers["Content-Type"]), (200, b"", "application/x-protobuf"), "answer")
        one, = server.read("chunks")["chunks"]
        check_equal({name: one[name] for name in ("service", "environment", "release", "host", "start", "end")},
                    {"service": "shop", "environment": "live", "release": "shop@3.0", "host": "h1",
                     "start": "2025-01-15T08:00:00.000000Z", "end": "2025-01-15T08:00:01.000000Z"}, "the chunk")
        check_equal(server.get(f"raw?chunk={one['chunk']}").body, body, "what was stored")
        check_equal(functions(server), {"work": 7}, "functions")
        check_equal(post(server, gzip.compress(export(resource("shop", 1, 2))), PROTOBUF | {"Content-Encoding": "gzip"}).status, 200, "gzip")
        check_equal(functions(server), {"work": 8}, "functions of both")
        for sent, headers, expected in ((b"", PROTOBUF, b""), (b"{}", JSON, b"{}")):
            answer = post(server, sent, headers)
            check_equal((answer.status, answer.body), (200, expected), "answer to an empty export")
        check_equal(len(server.read("chunks")["chunks"]), 2, "chunks")


@case
def each_service_of_an_export_is_a_chunk():
    first = fields(1, [resource("shop", 7, 1), resource("bank", 5, 2, stack=2), resource("shop", 2, 3), resource("", 1, 4, process_executable_name="sh")])
    with running(OFFBEAT) as server:
        for number, body in enumerate((first + field(2, DICTIONARY), field(2, DICTIONARY) + first.replace(bytes([1]) * 16, bytes([9]) * 16)
                                       .replace(bytes([2]) * 16, bytes([8]) * 16).replace(bytes([4]) * 16, bytes([6]) * 16))):
            answer = post(server, body)
            check_equal((answer.status, answer.body), (200, b""), "answer")
            times = number + 1
            check_equal([one["name"] for one in server.read("services")["services"]], ["bank", "sh", "shop"], "services")
            check_equal(functions(server, "service=shop"), {"work": 9 * times}, "shop")
            check_equal(functions(server, "service=bank"), {"main": 5 * times}, "bank")


@case
def an_export_in_json_is_the_same():
    message = {"resourceProfiles": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": name}}]},
                                     "scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                                                                      "samples": [{"stackIndex": 1, "values": [str(value)]}],
                                                                      "timeUnixNano": str(START * 10 ** 9), "profileId": f"{value:032x}"}]}]}
                                    for name, value in (("shop", 7), ("bank", 5))],
               "dictionary": {"mappingTable": [{}], "locationTable": [{}, {"lines": [{"functionIndex": 1}]}, {"lines": [{"functionIndex": 2}]}],
                              "functionTable": [{}, {"nameStrindex": 3}, {"nameStrindex": 4}], "linkTable": [{}], "attributeTable": [{}],
                              "stringTable": ["", "samples", "count", "main", "work"], "stackTable": [{}, {"locationIndices": [2, 1]}]}}
    with running(OFFBEAT) as server:
        answer = post(server, json.dumps(message).encode(), JSON | {"Content-Type": "application/json; charset=utf-8"})
        check_equal((answer.status, answer.body, answer.headers["Content-Type"]), (200, b"{}", "application/json"), "answer")
        for name, value in (("shop", 7), ("bank", 5)):
            check_equal(functions(server, f"service={name}"), {"work": value}, name)
        answer = post(server, json.dumps(message).encode()[:-9], JSON)
        check_equal((answer.status, list(answer.json())), (400, ["message"]), str(answer.body))


@case
def the_answer_says_what_was_rejected():
    broken = resource("bank", 5, 2, stack=99)  # there is no such stack
    with running(OFFBEAT) as server:
        answer = post(server, export(resource("shop", 7, 1), broken))
        partial = parse(parse(answer.body)[1])
        check_equal((answer.status, partial[1]), (200, 1), "profiles that were rejected")
        check(partial[2], "there is no message")
        check_equal(functions(server), {"work": 7}, "what was stored")
        for what, body, headers, status in (("all broken", export(broken), PROTOBUF, 400), ("no protobuf", b"\xff\xff", PROTOBUF, 400),
                                            ("a type", b"x", {"Content-Type": "text/plain"}, 415), ("no type", b"x", {}, 415)):
            answer = post(server, body, headers)
            check_equal(answer.status, status, f"status of {what}: {answer.body}")
            said = parse(answer.body)[2] if headers == PROTOBUF else answer.json()["message"]
            check(said, f"no message about {what}")
        answer = post(server, export(resource("shop", 7, 1)), key="0" * 32)
        check_equal((answer.status, b"key" in parse(answer.body)[2]), (403, True), "an unknown key")
        check_equal(len(server.read("chunks")["chunks"]), 1, "chunks")


@case
def too_many_services_in_one_request_are_rejected():
    with running(OFFBEAT) as server:
        many = [resource(f"s{number}", 1, 1) for number in range(257)]
        check_equal((post(server, export(*many)).status, server.read("chunks")["chunks"]), (413, []), "257 services")
        check_equal(post(server, fields(1, [b""] * 70000) + field(2, DICTIONARY)).status, 413, "70000 resources")


# --- Both -------------------------------------------------------------------------------------------------------------


@case
def an_instance_is_a_session_only_if_it_is_an_id():
    with running(OFFBEAT) as server:
        for number, instance in enumerate(("a" * 32, f"{'a' * 8}-{'b' * 4}-4{'c' * 3}-8{'d' * 3}-{'e' * 12}", "a" * 33, "a" * 3000, "-" * 100 + "a" * 32, "A" * 32, "a" * 31, "pod-7")):
            check_equal(post(server, export(resource(f"shop{number}", 7, number + 1, service_instance_id=instance))).status, 200, f"status of {instance}")
            plain = instance.replace("-", "")
            is_id = len(plain) == 32 and plain.islower()
            check_equal([one["profiler"] for one in server.read(f"chunks?service=shop{number}")["chunks"]], [plain if is_id else ""], f"session of {instance}")


@case
def the_key_says_which_project_it_is():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        key = new_project(OFFBEAT, folder, "second")
        check_equal((ingest(server, b"a 1\n", key=key).status, post(server, export(resource("shop", 7, 1)), key=key).status), (200, 200), "status")
        check_equal(server.read("chunks")["chunks"], [], "chunks of the first project")
        second = server.request("GET", "/api/2/chunks", headers=server.read_header()).json()["chunks"]
        check_equal(sorted((one["service"], one["samples"]) for one in second), [("shop", 1), ("shop", 1)], "chunks of the second project")
        server.kill()


@case
def what_was_acknowledged_survives_a_kill():
    with tempfile.TemporaryDirectory() as folder:
        for number in range(10):
            server = Server(OFFBEAT, folder)
            check_equal(ingest(server, b"a 1\n").status if number % 2 else post(server, export(resource("shop", 1, number + 1))).status, 200, "status")
            server.kill()
        server = Server(OFFBEAT, folder)
        check_equal(len(server.read("chunks")["chunks"]), 10, "chunks")
        server.kill()


main(sys.argv[2] if len(sys.argv) > 2 else "")
