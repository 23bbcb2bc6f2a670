"""The server beside its goals: chunks per second on disk and per second of CPU time, bytes per sample, memory, queries.

The chunk is a real one of the Python SDK (60 s, 1.3 MB of JSON); each copy has its own chunk id. What has no fixtures has no
row. SPDX-License-Identifier: MIT"""
import gzip
import http.client
import os
import pathlib
import re
import sys
import tempfile
import threading
import time

from common import table

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "serve"))
from server_process import Server  # noqa: E402

CHUNK = ROOT.parent / "shared/fixtures/real/envelopes/py-2.68.0-v2-long/0030.body"
CONNECTIONS, MINUTES, SESSION = 8, 10, "5e" * 16


def cpu_seconds(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


def send_all(server, bodies):
    """Sends BODIES over several connections; an answer that is not 200 raises in the end."""
    wrong = []

    def send(first):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        for body in bodies[first::CONNECTIONS]:
            connection.request("POST", f"/api/{server.project}/envelope/", body, server.auth())
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                wrong.append(answer.status)

    threads = [threading.Thread(target=send, args=(first,)) for first in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise RuntimeError(f"the server answered {wrong[:5]}")


def measure(action):
    start = time.monotonic()
    action()
    return time.monotonic() - start


def query_seconds(server, route):
    return min(measure(lambda: server.read(route)) for _ in range(3))


def minutes_of(body, profiler, count):
    """COUNT chunks of one session of another profiler: BODY, a minute later each."""
    def shift(seconds):
        return re.sub(rb'("timestamp": ?)(\d+)(\.\d+)?', lambda found: b"%s%d%s" % (found[1], int(found[2]) + seconds, found[3] or b""), body)

    other = SESSION.encode()
    own_id = re.search(rb'"chunk_id": ?"(\w{32})"', body)[1]
    return [shift(60 * minute).replace(profiler.encode(), other).replace(own_id, b"%031xf" % minute) for minute in range(count)]


def disk_bytes(folder):
    return sum(path.stat().st_blocks * 512 for path in pathlib.Path(folder).iterdir())


def server(build, chunks=300):
    """CHUNKS copies of the real chunk."""
    if not CHUNK.exists():
        print("server: the real chunk is not there (../shared/fixtures)")
        return
    body = CHUNK.read_bytes()
    profiler = re.search(rb'"profiler_id": ?"(\w{32})"', body)[1].decode()
    own_id = re.search(rb'"chunk_id": ?"(\w{32})"', body)[1]
    thread = re.search(rb'"thread_id": ?"(\d+)"', body)[1].decode()
    bodies = [body.replace(own_id, b"%032x" % number) for number in range(chunks)]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        running = Server(build / "offbeat", f"{folder}/data")
        idle = resident_mib(running)
        cpu = cpu_seconds(running)
        seconds = measure(lambda: send_all(running, bodies))
        cpu = cpu_seconds(running) - cpu
        peak = running.memory_peak_mib()
        top = query_seconds(running, f"top?profiler={profiler}")
        chart = query_seconds(running, f"flamechart?profiler={profiler}&thread={thread}&chunk={0:032x}")
        send_all(running, minutes_of(body, profiler, MINUTES))
        session = f"flamechart?profiler={SESSION}&thread={thread}"
        long_chart = query_seconds(running, session)
        boxes = len(running.read(session)["boxes"])
        all_peak = running.memory_peak_mib()
        stored = running.read("chunks?limit=10000")["chunks"]
        samples = sum(chunk["samples"] for chunk in stored)
        if len(stored) != chunks + MINUTES:
            raise RuntimeError(f"{len(stored)} of {chunks + MINUTES} chunks are stored")
        if running.stop() != 0:
            raise RuntimeError("the server did not stop")
        stored_bytes = disk_bytes(f"{folder}/data")
    table([
        [f"server: {chunks} real chunks, {CONNECTIONS} connections", "measured", "goal"],
        ["chunks per second, acknowledged on disk", f"{chunks / seconds:.0f}", ""],
        ["chunks per second of the server's CPU time", f"{chunks / cpu:.0f}", ">= 300"],
        ["bytes per sample on disk, everything included", f"{stored_bytes / samples:.2f}", "<= 2"],
        ["bytes per sample of the gzipped JSON", f"{len(gzip.compress(body, 6)) * len(stored) / samples:.2f}", ""],
        [f"aggregate of {chunks} chunks (top), s", f"{top:.2f}", ""],
        ["flamechart of one thread, 60 s, s", f"{chart:.3f}", ""],
        [f"flamechart of one thread, {MINUTES} minutes, {boxes} boxes, s", f"{long_chart:.3f}", "<= 0.1"],
        ["resident, idle, MiB", f"{idle:.0f}", "<= 64"],
        ["resident, peak while receiving, MiB", f"{peak:.0f}", "<= 512"],
        ["resident, peak with the queries, MiB", f"{all_peak:.0f}", "<= 512"],
    ])
