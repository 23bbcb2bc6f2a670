"""A day of 1000 services with 5000 processes, a chunk an hour each, with a host and a label of its own for each process: what the first
page, `top` and a filter by a label take from roll-ups. Answers about a day are added from sums of the day, so that more chunks an hour change
nothing. OFFBEAT_BENCH_STORE names a folder that keeps the store: the next run measures it again without sending. SPDX-License-Identifier: MIT"""
import contextlib
import http.client
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import time

from common import table
from fleet import wait_for_roll_ups
from serving import cpu_seconds

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "serve"))
from protobuf_wire import field, fields, varint  # noqa: E402
from server_process import Server  # noqa: E402

DAY, HOURS, SENDERS, FUNCTIONS, STACKS = 1_699_920_000, 24, 2, 60, 80  # a day of UTC


def pprof(service, process):
    """CPU time of STACKS stacks of a service, with the labels of Pyroscope's clients, without a time."""
    numbers = random.Random(service)
    names = [f"function_{service}_{i}" for i in range(FUNCTIONS)]
    strings = ["", "cpu", "nanoseconds", "region", ("eu", "us")[process % 2], "pod", f"pod-{process}", *names]
    labels = fields(3, [field(1, 3) + field(2, 4), field(1, 5) + field(2, 6)])
    samples = [field(2, field(1, b"".join(varint(1 + numbers.randrange(FUNCTIONS)) for _ in range(12))) + field(2, varint(10_000_000)) + labels) for _ in range(STACKS)]
    return (field(1, field(1, 1) + field(2, 2)) + b"".join(samples) +
            b"".join(field(4, field(1, i + 1) + field(4, field(1, i + 1))) + field(5, field(1, i + 1) + field(2, 7 + i)) for i in range(FUNCTIONS)) +
            fields(6, strings) + field(10, 60 * 10 ** 9))


def send(port, project, key, services, processes, first):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for process in range(first, processes, SENDERS):
        service = process % services
        profile = pprof(service, process)
        for hour in range(HOURS):
            body = profile + field(9, (DAY + 3600 * hour + process % 3500) * 10 ** 9)
            connection.request("POST", f"/api/{project}/profiles?service=service{service}&host=host{process}&sentry_key={key}", body)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                sys.exit(1)


@contextlib.contextmanager
def store_folder():
    """The folder of the store, and a file that says that it is complete."""
    kept = os.environ.get("OFFBEAT_BENCH_STORE")
    if kept:
        yield pathlib.Path(kept), pathlib.Path(kept).with_suffix(".complete")
    else:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            yield pathlib.Path(folder, "data"), pathlib.Path(folder, "complete")


def send_all(server, services, processes):
    """Seconds of the server's CPU time and of the clock."""
    senders = [multiprocessing.Process(target=send, args=(server.port, server.project, server.key, services, processes, first)) for first in range(SENDERS)]
    begun, cpu = time.monotonic(), cpu_seconds(server)
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    if any(sender.exitcode for sender in senders):
        raise RuntimeError("a chunk was not stored")
    return cpu_seconds(server) - cpu, time.monotonic() - begun


def best_of_three(server, route):
    """(Seconds of the clock, seconds of the server's CPU time), and the answer."""
    tries = []
    for _ in range(3):
        begun, cpu = time.monotonic(), cpu_seconds(server)
        answer = server.get(route)
        tries.append((time.monotonic() - begun, cpu_seconds(server) - cpu))
        if answer.status != 200:
            raise RuntimeError(f"{route}: {answer.status} {answer.body[:200]}")
    return [min(column) for column in zip(*tries)], answer


def many_services(build, services=1000, processes=5000):
    day, one = f"from={DAY}&to={DAY + 86400}", f"service=service0&from={DAY}&to={DAY + 86400}"
    goals = {f"activity?{day}&buckets=60": "<= 2", f"page?{one}": "<= 2", f"top?{one}": "<= 0.3"}
    rows = []
    with store_folder() as (folder, complete):
        server = Server(build / "offbeat", folder)
        if not complete.exists():
            cpu, took = send_all(server, services, processes)
            rows.append(["chunks per second while receiving; of the server's CPU time", f"{processes * HOURS / took:.0f}", f"{processes * HOURS / cpu:.0f}", ""])
        wait_for_roll_ups(server)
        complete.touch()
        for route in (f"activity?{day}&buckets=60", f"page?{one}", f"top?{one}", f"top?{day}", f"page?{day}", f"top?{one}&tag_focus=region=eu", f"top?{day}&tag_focus=region=eu",
                      f"tags?{one}", f"regressions?{one}&base_from={DAY - 86400}&base_to={DAY + 43200}"):
            (took, cpu), answer = best_of_three(server, route)
            rows.append([f"{route.replace(day, 'DAY')}, s", f"{took:.2f}", f"{cpu:.2f}", goals.get(route, "")])
            if route == f"top?{day}" and answer.json()["total"] != processes * HOURS * STACKS * 10_000_000:
                raise RuntimeError(f"{answer.json()['total']} ns")
        rows.append(["resident, peak, MiB", f"{server.memory_peak_mib():.0f}", "", "<= 512"])
        server.stop()
        disk = sum(path.stat().st_blocks * 512 for path in folder.iterdir())
    table([[f"a day of {services} services, {processes} processes, {processes * HOURS} chunks", "clock", "CPU", "goal"], *rows,
           ["bytes per chunk on disk; per sample", f"{disk / processes / HOURS:.0f}", f"{disk / processes / HOURS / STACKS:.1f}", ""]])
