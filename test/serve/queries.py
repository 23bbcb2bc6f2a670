"""Random queries over a random store, answered by `offbeat serve` and by a second implementation, which decodes each chunk
and adds it up. Arguments: the build folder, the number of queries, a seed. SPDX-License-Identifier: MIT"""
import bisect
import contextlib
import pathlib
import random
import sqlite3
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from random_store import Decoded, ask, compare_flame, compare_top, random_payload  # noqa: E402
from server_process import Server, envelope, item, roll_ups, seal, wait_for_roll_ups  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
QUERIES = int(sys.argv[2]) if len(sys.argv) > 2 else 300
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 32)

CHUNKS, ROUNDS = 400, 5


@case
def random_queries_have_the_answers_of_a_second_implementation():
    numbers = random.Random(SEED)
    print(f"# seed {SEED}, {QUERIES} queries")
    payloads = [random_payload(numbers, number) for number in range(CHUNKS)]
    decoded = [Decoded(payload) for payload in payloads]
    asked = rolled_up = duplicates = 0
    with tempfile.TemporaryDirectory() as folder:
        known = []
        for turn in range(ROUNDS):
            server = Server(OFFBEAT, folder)
            if turn:
                wait_for_roll_ups(server)
            first, last = CHUNKS * turn // ROUNDS, CHUNKS * (turn + 1) // ROUNDS
            queries = QUERIES * (turn + 1) // ROUNDS - QUERIES * turn // ROUNDS
            # The chunks come between the queries: into sums that were rolled up, and some of them again.
            sent_after = sorted(numbers.randrange(queries // 2 + 1) for _ in range(first, last))
            for query in range(queries):
                while len(known) - first < bisect.bisect_right(sent_after, query):
                    known.append(decoded[len(known)])
                    again = numbers.randrange(len(known)) if numbers.random() < 0.2 else len(known) - 1
                    duplicates += again != len(known) - 1
                    for number in (len(known) - 1, again):
                        body = envelope(item("profile_chunk", payloads[number], platform=payloads[number]["platform"]))
                        check_equal(server.send(body).status, 200, "status")
                if known:
                    ask(server, known, numbers)
                    asked += 1
            check_equal(len(server.read("chunks?limit=10000")["chunks"]), len(known), "stored chunks")
            rolled_up += roll_ups(server)
            check_equal(server.stop(), 0, "exit status")
            while len(known) < last:
                known.append(decoded[len(known)])
    print(f"# {asked} queries, {CHUNKS} chunks, {duplicates} of them late duplicates, {rolled_up} sums rolled up")
    check(rolled_up > 0, "nothing was rolled up")


@case
def damaged_sums_are_not_used():
    numbers = random.Random(SEED)
    payloads = [random_payload(numbers, number) for number in range(50)]
    chunks = [Decoded(payload) for payload in payloads]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        for payload in payloads:
            check_equal(server.send(envelope(item("profile_chunk", payload, platform=payload["platform"]))).status, 200, "status")
        check_equal(server.stop(), 0, "exit status")
        for number, damage in enumerate(("UPDATE sum SET entries=x'02ff'", "UPDATE sum SET entries=x'02ffff3f0101'", "UPDATE segment SET bytes=x'00'",
                                         "DELETE FROM segment")):
            for data in pathlib.Path(folder).glob("20*.db"):
                with contextlib.closing(sqlite3.connect(data)) as database:
                    database.execute(damage)
                    database.commit()
                seal(data)
            server = Server(OFFBEAT, folder)
            compare_top(server, chunks, {}, "wall")
            more = random_payload(numbers, 1000 + number)
            check_equal(server.send(envelope(item("profile_chunk", more, platform=more["platform"]))).status, 200, f"status after {damage}")
            chunks.append(Decoded(more))
            compare_flame(server, chunks, {}, "samples")
            check_equal(server.stop(), 0, "exit status")


main(sys.argv[4] if len(sys.argv) > 4 else "")
