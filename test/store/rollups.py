"""Roll-ups in a cluster: who may make them, and when they count. Arguments: the build folder. SPDX-License-Identifier: MIT"""
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "serve")]
from random_store import Decoded, ask, random_payload  # noqa: E402
import random_series  # noqa: E402
from server_process import envelope, item  # noqa: E402
from store_kinds import cluster, wait_for_chunks  # noqa: E402
from tap import case, check_equal, main, some_of, wait_until  # noqa: E402

CHUNKS, QUERIES = 150, int(sys.argv[2]) if sys.argv[2:] else len(some_of(range(700), 25))  # thrice as many are asked


def send(server, payload):
    check_equal(server.send(envelope(item("profile_chunk", payload, platform=payload["platform"]))).status, 200, "status")


def count(store, condition):
    return int(store.servers[0].query(f"SELECT count() FROM {store.database}.sum WHERE {condition}"))


def restart(store, server, **options):
    """The first turn of a server makes what is missing."""
    if server:
        check_equal(server.stop(), 0, "exit status")
    return store.server(ack="spool", **options)


@case
def random_queries_over_rollups_equal_a_second_implementation():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"# seed {seed}")
    numbers = random.Random(seed)
    payloads = [random_payload(numbers, number) for number in range(CHUNKS)]
    chunks = [Decoded(payload) for payload in payloads]
    with cluster() as store:
        server = restart(store, None)
        early = CHUNKS * 2 // 3
        for payload in payloads[:early]:
            send(server, payload)
        wait_for_chunks(server, early)
        server = restart(store, server)
        wait_until(lambda: count(store, "level = 3") > 0, "no roll-up of a day was made")
        wait_until(lambda: count(store, "level > 0 AND set_rows = 0") == 0, "a roll-up without rows")
        for _ in range(QUERIES):
            ask(server, chunks[:early], numbers)
        for payload in payloads[early:]:  # late ones make roll-ups void
            send(server, payload)
        wait_for_chunks(server, CHUNKS)
        for _ in range(QUERIES):
            ask(server, chunks, numbers)
        before = count(store, "level = 3")
        server = restart(store, server)
        wait_until(lambda: count(store, "level = 3") > before, "the roll-up of the day was not made again")
        for _ in range(QUERIES):
            ask(server, chunks, numbers)
        check_equal(server.stop(), 0, "exit status")


@case
def a_query_reads_the_longest_rollups_that_are_right():
    numbers = random.Random(7)
    payloads = [random_payload(numbers, number) for number in range(40)]
    with cluster() as store:
        server = restart(store, None)
        for payload in payloads:
            send(server, payload)
        wait_for_chunks(server, len(payloads))
        total = server.read("top?type=samples")["total"]
        server = restart(store, server)
        wait_until(lambda: count(store, "level = 3") > 0, "no roll-up of a day was made")
        wait_until(lambda: server.read("top?type=samples")["total"] == total, "the answer is another one with roll-ups")
        table = f"{store.database}.sum"
        before = count(store, "level > 0")
        store.servers[0].query(f"ALTER TABLE {table} UPDATE entries = substring(entries, 1, 1) WHERE level = 3")  # no stacks
        wait_until(lambda: server.get("top?type=samples").status == 404, "the roll-ups of days are not read")
        check_equal(server.read("top?type=samples&to=2023-11-14T23:00:00Z")["total"] > 0, True, "samples from roll-ups of hours")
        store.servers[0].query(f"ALTER TABLE {table} DELETE WHERE level = 3")
        wait_until(lambda: count(store, "level > 0") < before, "nothing was deleted")
        server = restart(store, server)
        wait_until(lambda: server.read("top?type=samples")["total"] == total, "the answer is not right again")
        check_equal(server.stop(), 0, "exit status")


@case
def random_series_over_rollups_equal_a_second_implementation():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"# seed {seed}")
    numbers = random.Random(seed)
    profiles = random_series.random_profiles(numbers, int(time.time()))
    with cluster() as store:
        server = restart(store, None)
        random_series.send_series(server, profiles)
        wait_for_chunks(server, sum(len(one) for one in profiles.values()))
        for has_rollups in (False, True):
            if has_rollups:
                server = restart(store, server)
                wait_until(lambda: count(store, "level > 0") > 0, "nothing was rolled up")
            for _ in range(QUERIES):
                random_series.ask(server, profiles, *random_series.random_question(numbers, profiles))
        check_equal(server.stop(), 0, "exit status")


main(sys.argv[3] if len(sys.argv) > 3 else "")
