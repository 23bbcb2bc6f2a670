"""One suite over the stores of `offbeat serve`: files of days (SQLite), and ClickHouse where it is installed. Each case has
a new store. Arguments: the build folder. SPDX-License-Identifier: MIT"""
import pathlib
import random
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "serve")]
from protobuf_wire import field, varint  # noqa: E402
from random_store import Decoded, ask, random_payload  # noqa: E402
from server_process import Server, administer, chunk_envelope, envelope, item, new_token  # noqa: E402
from store_kinds import OFFBEAT, cluster, days, wait_for_chunks  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

CHUNKS, QUERIES = 120, 40


def over_both(function):
    """Makes two cases of FUNCTION: with files of days, and in a cluster."""
    for name, opened in (("days", days), ("clickhouse", cluster)):
        def run(opened=opened):
            with opened() as store:
                function(store)
        run.__name__ = f"{function.__name__}_in_{name}"
        case(run)
    return function


# --- Both stores ------------------------------------------------------------------------------------------------------


@over_both
def what_was_sent_comes_back_and_a_repetition_counts_once(store):
    server = store.server()
    start = time.time() - 20
    for number in (1, 2, 3, 2):
        check_equal(server.send(chunk_envelope(number, start=start + number)).status, 200, "status")
    check_equal(server.chunk_numbers(), [1, 2, 3], "chunks")
    check(b'"chunk_id": "%032x"' % 2 in server.payload(2), "the payload is another one")
    service, = server.read("services")["services"]
    check_equal((service["name"], service["chunks"], service["samples"]), ("shop", 3, 60), "service")
    functions = {one["name"]: one["self"] for one in server.read("top?type=samples")["functions"]}
    check_equal(functions, {"main": 30, "work": 30}, "samples")
    check_equal(server.stop(), 0, "exit status")
    again = store.server()  # nothing is only in memory
    check_equal(again.send(chunk_envelope(3, start=start + 3)).status, 200, "status")
    check_equal(again.chunk_numbers(), [1, 2, 3], "chunks after a restart")
    check_equal({one["name"]: one["self"] for one in again.read("top?type=samples")["functions"]}, functions, "samples")
    check_equal(again.stop(), 0, "exit status")


@over_both
def random_queries_have_the_answers_of_a_second_implementation(store):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"# seed {seed}")
    numbers = random.Random(seed)
    payloads = [random_payload(numbers, number) for number in range(CHUNKS)]
    chunks = [Decoded(payload) for payload in payloads]
    for turn in range(2):
        server = store.server(ack="spool")  # the second one numbers stacks anew
        last = (turn + 1) * CHUNKS // 2
        for number in range(turn * CHUNKS // 2, last):
            for one in [payloads[number]] + numbers.sample(payloads[:number + 1], number % 5 == 0):  # some of them again
                check_equal(server.send(envelope(item("profile_chunk", one, platform=one["platform"]))).status, 200, "status")
        wait_for_chunks(server, last)
        for _ in range(QUERIES):
            ask(server, chunks[:last], numbers)
        check_equal(len(server.read("chunks?limit=10000")["chunks"]), last, "stored chunks")
        check_equal(server.stop(), 0, "exit status")


@over_both
def deletion_takes_a_service_and_leaves_the_others(store):
    server = store.server()
    for number, release in ((1, "shop@1"), (2, "mail@1"), (3, "shop@2")):
        check_equal(server.send(chunk_envelope(number, release=release)).status, 200, "status")
    done = administer(OFFBEAT, store.folder, "delete", server.project, "--service", "shop")
    check_equal(done.returncode, 0, done.stderr)
    check_equal(server.chunk_numbers(), [2], "chunks")
    check_equal([one["name"] for one in server.read("services")["services"]], ["mail"], "services")
    check_equal(server.get("top?service=shop").status, 404, "status of what was deleted")
    check_equal(server.read("top?service=mail&type=samples")["total"], 20, "samples of the other service")
    check_equal(server.stop(), 0, "exit status")


@over_both
def rejected_items_and_outcomes_are_listed(store):
    server = store.server()
    check_equal(server.send(envelope(item("profile_chunk", {"version": "2"}, platform="python"))).status, 200, "status")
    check_equal(server.send(chunk_envelope(1)).status, 200, "status")
    rejected, = server.read("rejected")["rejected"]
    check_equal(rejected["type"], "profile_chunk", "type")
    counts = {key[0]: quantity for key, quantity in server.outcomes().items()}
    check_equal(counts, {"accepted": 1, "invalid": 1}, "outcomes")
    check_equal(server.stop(), 0, "exit status")


def labelled(region, value):
    """CPU time of one function with one label."""
    strings = ["", "cpu", "nanoseconds", "work", "region", region]
    return (field(1, field(1, 1) + field(2, 2)) + field(2, field(1, varint(1)) + field(2, varint(value)) + field(3, field(1, 4) + field(2, 5))) +
            field(4, field(1, 1) + field(4, field(1, 1))) + field(5, field(1, 1) + field(2, 3)) + b"".join(field(6, each) for each in strings))


@over_both
def tags_choose_what_has_them(store):
    server = store.server()
    for number, region in enumerate(("eu", "us", "eu")):
        check_equal(server.upload(labelled(region, 1 << number), "service=shop").status, 200, "status")
    wait_for_chunks(server, 3)
    for region, expected in (("eu", 5), ("us", 2)):
        check_equal(server.read(f"top?service=shop&tag_focus=region={region}")["total"], expected, region)
    check_equal(server.get("tags?service=shop").status, 200, "status of the tags")
    check_equal(server.stop(), 0, "exit status")


# --- From one to another ----------------------------------------------------------------------------------------------


def span_envelope(number, release="shop@1.0"):
    trace, span = f"{number:032x}", f"{number:016x}"
    return envelope(item("transaction", {
        "type": "transaction", "event_id": f"{number:032x}", "transaction": f"request {number}", "release": release, "platform": "native",
        "start_timestamp": time.time() - 30, "timestamp": time.time() - 29,
        "contexts": {"trace": {"trace_id": trace, "span_id": span, "op": "http.server"}}, "spans": []}))


@case
def a_copy_to_a_cluster_and_back_has_all_and_is_continued():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"# seed {seed}")
    numbers = random.Random(seed)
    payloads = [random_payload(numbers, number) for number in range(60)]
    chunks = [Decoded(payload) for payload in payloads]
    with days() as files, cluster() as store:
        server = files.server()
        for payload in payloads:
            check_equal(server.send(envelope(item("profile_chunk", payload, platform=payload["platform"]))).status, 200, "status")
        for number in (1, 2):
            check_equal(server.send(span_envelope(number)).status, 200, "status")
        key, project, spans = server.key, server.project, server.read("spans")
        check_equal(len(spans["spans"]), 2, "spans")
        token, made = new_token(OFFBEAT, files.folder, project), administer(OFFBEAT, files.folder, "add-project", "other").stdout
        other_key, other = re.search(r"//(\w{32})@\S+/(\d+)", made).groups()
        check_equal(store.copy(files.folder).returncode, 3, "status while a server has the files open")
        check_equal(server.stop(), 0, "exit status")
        with subprocess.Popen(store.copy_words(files.folder), stderr=subprocess.DEVNULL) as begun:
            time.sleep(0.3)
            begun.kill()
        for turn, copied in enumerate(("", "copied 0 of 60 chunks, and 0 spans")):
            done = store.copy(files.folder)
            check_equal((done.returncode, copied in done.stderr), (0, True), done.stderr)
        server = store.server()
        check_equal((server.key, server.project), (key, project), "key and project of the copy")
        server.token = token

        def check_copy(sent):
            check_equal(len(server.read("chunks?limit=10000")["chunks"]), sent, "chunks")
            check_equal(server.read("spans"), spans, "spans")
            for _ in range(QUERIES):
                ask(server, chunks[:sent], numbers)

        check_copy(60)
        check_equal(server.request("POST", f"/api/{other}/envelope/", chunk_envelope(1), {"X-Sentry-Auth": f"Sentry sentry_version=7, sentry_key={other_key}"}).status,
                    200, "status of the other project")
        for number in range(60, 70):
            payloads.append(random_payload(numbers, number))
            chunks.append(Decoded(payloads[-1]))
            check_equal(server.send(envelope(item("profile_chunk", payloads[-1], platform=payloads[-1]["platform"]))).status, 200, "status")
        check_equal(server.stop(), 0, "exit status")
        back = f"{files.folder}-back"
        done = store.run("copy", back)
        check_equal((done.returncode, "copied 71 of 71 chunks, and 2 spans" in done.stderr), (0, True), done.stderr)
        server = Server(OFFBEAT, back)
        check_equal((server.key, server.project), (key, project), "key and project of the copy of the copy")
        server.token = token
        check_copy(70)
        check_equal(server.stop(), 0, "exit status")


@case
def a_copy_names_what_is_in_its_way_and_what_differs():
    with days() as files, cluster() as store:
        server = files.server()
        for number in (1, 2):
            check_equal(server.send(chunk_envelope(number)).status, 200, "status")
        check_equal(server.stop(), 0, "exit status")
        done = store.copy(f"{files.folder}-elsewhere")
        check_equal((done.returncode, "has no data of offbeat serve" in done.stderr), (3, True), done.stderr)
        store.servers[0].query(f"RENAME TABLE {store.database}.chunk TO {store.database}.away")
        done = store.copy(files.folder)
        check_equal((done.returncode, "offbeat store create makes them" in done.stderr), (3, True), done.stderr)
        store.servers[0].query(f"RENAME TABLE {store.database}.away TO {store.database}.chunk")
        check_equal(store.copy(files.folder).returncode, 0, "exit status")
        store.servers[0].query(f"ALTER TABLE {store.database}.raw UPDATE end_ns = end_ns + 1 WHERE chunk_id = '{1:032x}'")
        done = store.copy(files.folder)
        check_equal((done.returncode, "1 chunks cannot be read, or are not in the copy" in done.stderr), (1, True), done.stderr)
        done = store.run("delete", "another")
        check_equal((done.returncode, f"offbeat store delete {store.database}" in done.stderr), (2, True), done.stderr)
        store.servers[0].query(f"CREATE TABLE {store.database}.other (x UInt8) ENGINE = Memory")
        for expected in ("has tables of others only", "is deleted", "was not there"):
            done = store.run("delete", store.database)
            check_equal((done.returncode, expected in done.stderr), (0, True), done.stderr)
            store.servers[0].query(f"DROP TABLE IF EXISTS {store.database}.other")
        check_equal(store.run("check").returncode, 1, "status of check")
        store.create()
        check_equal(store.copy(files.folder).returncode, 0, "exit status")


main(sys.argv[2] if len(sys.argv) > 2 else "")
