"""What liboffbeat costs the program that calls it: the start and the finish of a span and of a transaction, the best of
some runs. A span may take 200 ns to start. SPDX-License-Identifier: MIT"""
import ctypes

from common import table

KINDS = ["span, sampled", "span, not sampled", "span of the current one", "transaction, sampled", "transaction, not sampled"]
RUNS = 7


class Cost(ctypes.Structure):
    _fields_ = [("start", ctypes.c_double), ("finish", ctypes.c_double)]


def measure(library, kind, rounds):
    costs = [Cost() for _ in range(RUNS)]
    for cost in costs:
        assert library.bench_spans(kind, ctypes.c_size_t(rounds), ctypes.byref(cost)), "no memory"
    return min(cost.start for cost in costs), min(cost.finish for cost in costs)


def sdk(build, rounds=100):
    library = ctypes.CDLL(str(build / "bench/spans.so"))
    library.bench_spans.restype = ctypes.c_bool
    rows = [[name, *(f"{cost:.0f} ns" for cost in measure(library, kind, rounds))] for kind, name in enumerate(KINDS)]
    table([["", "start", "finish"], *rows])
