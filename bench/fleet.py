"""One hour of many processes, a chunk a minute each: aggregates from roll-ups, from the sums of each chunk, and with chunks
that the range cuts. The stacks are computed: each service has 1500, and a chunk has 300 of them. SPDX-License-Identifier: MIT"""
import contextlib
import http.client
import multiprocessing
import pathlib
import random
import sqlite3
import sys
import tempfile
import time

from common import table

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "serve"))
from server_process import Server, envelope, item, seal  # noqa: E402

HOUR, MINUTES, SERVICES, SENDERS = 1_700_002_800, 60, 20, 2
STACKS, STACKS_OF_CHUNK, SAMPLES = 1500, 300, 400
CHUNK_ID, PROFILER_ID = "c" * 32, "a" * 32


def service_stacks(numbers, service):
    """Stacks that share their callers, as the stacks of a program do."""
    frames = [{"function": f"function_{service}_{i}", "filename": f"module_{i % 40}.py", "lineno": i, "in_app": True} for i in range(600)]
    stacks = [[numbers.randrange(600)]]
    while len(stacks) < STACKS:
        caller = numbers.choice(stacks)
        stacks.append(([numbers.randrange(600)] + caller)[-24:])
    return frames, stacks


def template(numbers, service, minute, frames, stacks):
    chosen = numbers.sample(stacks, STACKS_OF_CHUNK)
    used = sorted({frame for stack in chosen for frame in stack})
    place = {frame: number for number, frame in enumerate(used)}
    start = HOUR + 60 * minute + service * 60 / SERVICES
    samples = [{"timestamp": start + i * 59.5 / SAMPLES, "thread_id": "1",
                "stack_id": i if i < STACKS_OF_CHUNK else int(STACKS_OF_CHUNK * numbers.random() ** 3)} for i in range(SAMPLES)]
    payload = {"version": "2", "profiler_id": PROFILER_ID, "chunk_id": CHUNK_ID, "platform": "python",
               "release": f"service{service}@1.0", "environment": "production", "client_sdk": {"name": "bench", "version": "1"},
               "profile": {"frames": [frames[frame] for frame in used], "stacks": [[place[frame] for frame in stack] for stack in chosen],
                           "samples": samples, "thread_metadata": {"1": {"name": "MainThread"}}}}
    return envelope(item("profile_chunk", payload, platform="python"))


def send(port, project, auth, processes, first):
    """The chunks of every second service. Wrong answers end the process with status 1."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for service in range(first, SERVICES, SENDERS):
        numbers = random.Random(service)
        frames, stacks = service_stacks(numbers, service)
        for minute in range(MINUTES):
            body = template(numbers, service, minute, frames, stacks)
            for process in range(service, processes, SERVICES):
                own = body.replace(CHUNK_ID.encode(), b"%032x" % (process * MINUTES + minute), 1)
                connection.request("POST", f"/api/{project}/envelope/", own.replace(PROFILER_ID.encode(), b"%032x" % process, 1), auth)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    sys.exit(1)


def load(server, processes):
    senders = [multiprocessing.Process(target=send, args=(server.port, server.project, server.auth(), processes, first))
               for first in range(SENDERS)]
    start = time.monotonic()
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
        if sender.exitcode != 0:
            raise RuntimeError("a chunk was not stored")
    return time.monotonic() - start


def drop_roll_ups(folder):
    """Their times are long over: the server makes them again when it starts, unless nothing says that they are missing."""
    for data in pathlib.Path(folder).glob("20*.db"):
        with contextlib.closing(sqlite3.connect(data)) as database:
            database.executescript("DELETE FROM sum WHERE level>0; DELETE FROM stale")
        seal(data)


def roll_ups(server):
    text = server.request("GET", "/metrics", headers=server.read_header()).body.decode()
    return int(next(line for line in text.splitlines() if line.startswith("offbeat_roll_ups_total ")).split()[1])


def wait_for_roll_ups(server):
    before = -1
    while roll_ups(server) != before:
        before = roll_ups(server)
        time.sleep(3)


def best_of_three(server, route):
    """Seconds, and the answer."""
    best = None
    for _ in range(3):
        begun = time.monotonic()
        answer = server.get(route)
        took = time.monotonic() - begun
        best = min(took, best or took)
    if answer.status != 200:
        raise RuntimeError(f"{route}: {answer.status} {answer.body[:200]}")
    return best, answer


def measure(folder, build, seconds, start=HOUR, waits=False):
    """((Seconds of top, samples), memory)."""
    server = Server(build / "offbeat", folder)
    if waits:
        wait_for_roll_ups(server)
    best, answer = best_of_three(server, f"top?type=samples&from={start}&to={start + seconds}")
    result = (best, answer.json()["total"]), server.memory_peak_mib()
    server.stop()
    return result


def measure_routes(folder, build):
    """Seconds of routes whose answers are of one selection."""
    server = Server(build / "offbeat", folder)
    wait_for_roll_ups(server)
    seconds = {route: best_of_three(server, f"{route}?from={HOUR}&to={HOUR + 3660}")[0] for route in ("flame", "page", "profile.pb.gz")}
    server.stop()
    return seconds


def fleet(build, processes=2000):
    """One hour of PROCESSES."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        server = Server(build / "offbeat", folder)
        seconds = load(server, processes)
        peak = server.memory_peak_mib()
        server.stop()
        (rolled, samples), rolled_peak = measure(folder, build, 3660, waits=True)
        if samples != processes * MINUTES * SAMPLES:
            raise RuntimeError(f"{samples} samples instead of {processes * MINUTES * SAMPLES}")
        routes = measure_routes(folder, build)
        (cut, _), cut_peak = measure(folder, build, 3300, HOUR + 130.2)
        drop_roll_ups(folder)
        (exact, same), exact_peak = measure(folder, build, 3660)
        if same != samples:
            raise RuntimeError(f"{same} samples instead of {samples}")
        disk = sum(path.stat().st_blocks * 512 for path in pathlib.Path(folder).iterdir())
    table([
        [f"fleet: 1 hour of {processes} processes, {processes * MINUTES} chunks", "measured", "goal"],
        ["aggregate (top) from roll-ups, s", f"{rolled:.2f}", "<= 0.5"],
        ["flame graph from roll-ups, s", f"{routes['flame']:.2f}", ""],
        ["page, profile.pb.gz from roll-ups, s", f"{routes['page']:.2f}, {routes['profile.pb.gz']:.2f}", "<= 2 flame graphs"],
        ["aggregate from the sums of all chunks, s", f"{exact:.2f}", "<= 3"],
        ["55 minutes that cut chunks at both ends, s", f"{cut:.2f}", ""],
        ["resident, peak while receiving, MiB", f"{peak:.0f}", "<= 512"],
        ["resident, peak of each of the queries, MiB", f"{rolled_peak:.0f}, {exact_peak:.0f}, {cut_peak:.0f}", "<= 512"],
        ["bytes per chunk on disk", f"{disk / processes / MINUTES:.0f}", ""],
        ["chunks per second while receiving", f"{processes * MINUTES / seconds:.0f}", ""],
    ])
