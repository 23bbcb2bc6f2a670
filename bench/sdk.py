"""What liboffbeat costs the program that has it: the start and the finish of a span and of a transaction, the best of
some runs; and a service of 50 threads that profiles itself and sends, busy and idle. SPDX-License-Identifier: MIT"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "test/end_to_end"))
import server  # noqa: E402

KINDS = ["span, sampled", "span, not sampled", "span of the current one", "transaction, sampled", "transaction, not sampled"]
RUNS, ROUNDS = 7, 100


class Cost(ctypes.Structure):
    _fields_ = [("start", ctypes.c_double), ("finish", ctypes.c_double)]


def measure(library, kind, rounds):
    costs = [Cost() for _ in range(RUNS)]
    for cost in costs:
        assert library.bench_spans(kind, ctypes.c_size_t(rounds), ctypes.byref(cost)), "no memory"
    return min(cost.start for cost in costs), min(cost.finish for cost in costs)


def spans(build):
    library = ctypes.CDLL(str(build / "bench/spans.so"))
    library.bench_spans.restype = ctypes.c_bool
    rows = [[name, *(f"{cost:.0f} ns" for cost in measure(library, kind, ROUNDS))] for kind, name in enumerate(KINDS)]
    table([["", "start", "finish"], *rows])


def has_work(spool):
    return any(name.endswith((".request", ".done", ".envelope")) for _, _, names in os.walk(spool) for name in names)


def helper_ns(spool):
    """CPU time of the helper of SPOOL, which lives for a minute after its work, and of its children."""
    server.wait_until(lambda: not has_work(spool), 120)
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if spool.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                return sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:15])) * 10 ** 9 // os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
    return 0


def serve(build, kind, seconds, dsn):
    with tempfile.TemporaryDirectory() as cache:
        spool = f"{cache}/spool"
        env = {key: value for key, value in os.environ.items() if not key.startswith("OFFBEAT_")}
        env.update(XDG_CACHE_HOME=cache, OFFBEAT_SPOOL_DIRECTORY=spool, **({"OFFBEAT_DSN": dsn} if dsn else {}))
        done = subprocess.run([build / "bench/service", kind, str(seconds)], env=env, capture_output=True, text=True, check=True)
        return {**json.loads(done.stdout), "helper_ns": helper_ns(spool) if dsn else 0}


def service_row(build, kind, seconds):
    with server.FakeServer() as taken:
        profiled = serve(build, kind, seconds, taken.dsn)
    plain = serve(build, kind, min(seconds, 60), None)
    wall, chunks = profiled["wall_ns"], max(profiled["made"], 1)
    own, helper = profiled["own_ns"], profiled["helper_ns"]
    # What the program itself spent on a request, of which it does equally many.
    request = [(run["process_ns"] - run["own_ns"]) / run["rounds"] for run in (plain, profiled)]
    return [kind, f"{plain['process_ns'] / plain['wall_ns']:.1%}", f"{own / wall:.2%}", f"{helper / wall:.2%}",
            f"{(own + helper) / wall:.2%}", f"{request[1] / request[0] - 1:+.2%}", f"{helper / chunks / 1e6:.0f} ms",
            f"{sum(len(body) for body in taken.bodies) / chunks / 1e6:.2f} MB", f"{profiled['sent']}/{profiled['made']}"]


def sdk(build, seconds=300):
    spans(build)
    print(f"\nA service of 50 threads, {seconds} s at 101 Hz, in % of a core; the helper's time a chunk of 60 s")
    table([["", "itself", "sampler, transport", "helper", "together", "its requests", "a chunk", "JSON", "sent"],
           *(service_row(build, kind, seconds) for kind in ("busy", "idle"))])
