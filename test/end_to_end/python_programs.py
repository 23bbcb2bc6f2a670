"""Work of real programs, done by Python's own library, which test/end_to_end/interpreters.py records while cProfile watches it. Arguments:
`texts` or `objects`; seconds of CPU time; the file for cProfile. SPDX-License-Identifier: MIT"""
import ast
import copy
import cProfile
import dataclasses
import difflib
import fractions
import io
import json
import logging
import statistics
import sys
import textwrap
import time
import tokenize


def read_tokens(text):
    return sum(1 for _ in tokenize.generate_tokens(io.StringIO(text).readline))


def write_syntax(text):
    return len(ast.unparse(ast.parse(text)))


def compare(text):
    lines = text.splitlines()[:500]
    return len(list(difflib.unified_diff(lines, [line.replace("self", "this") for line in lines])))


def fill(text):
    return len(textwrap.fill(text[:20000]))


@dataclasses.dataclass
class Order:
    number: int
    lines: list
    tags: dict


ORDERS = [Order(i, list(range(i % 7)), {"customer": i % 13, "paid": i % 2}) for i in range(150)]
LOG = logging.getLogger("orders")
LOG.addHandler(logging.StreamHandler(io.StringIO()))


def as_text(_):
    return len(json.dumps([dataclasses.asdict(order) for order in ORDERS], indent=1))


def as_copies(_):
    return len(copy.deepcopy(ORDERS[:60]))


def averages(_):
    return statistics.mean(fractions.Fraction(order.number, 7) for order in ORDERS)


def logs(_):
    for order in ORDERS:
        LOG.warning("order %d has %d lines", order.number, len(order.lines))


PROGRAMS = {"texts": (read_tokens, write_syntax, compare, fill), "objects": (as_text, as_copies, averages, logs)}


def main():
    with open(textwrap.__file__, encoding="utf-8") as file:
        text = file.read() * 3
    end = time.process_time() + float(sys.argv[2])
    while time.process_time() < end:
        for part in PROGRAMS[sys.argv[1]]:
            part(text)


PROFILE = cProfile.Profile(time.thread_time)
PROFILE.runcall(main)
PROFILE.dump_stats(sys.argv[3])
