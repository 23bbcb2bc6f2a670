"""Random heap profiles of some hosts, one after the other, and a second implementation of what is asked about them: the average of
snapshots, and the difference of values that grow. SPDX-License-Identifier: MIT"""
import collections
import gzip
import math
import pathlib
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from protobuf_wire import field, fields, varint  # noqa: E402
from tap import check_equal  # noqa: E402

HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
STACKS = [("main", "a"), ("main", "b"), ("main", "a", "c")]


def pprof(types, stacks, seconds, duration=0):
    """A pprof file of TYPES: {("root", "leaf"): values}, with a time, and a duration unless that is 0."""
    names = sorted({name for stack in stacks for name in stack})
    strings = ["", *dict.fromkeys(word for pair in types for word in pair), *names]
    number = {name: i + 1 for i, name in enumerate(names)}
    return gzip.compress(
        b"".join(field(1, field(1, strings.index(name)) + field(2, strings.index(unit))) for name, unit in types) +
        b"".join(field(2, field(1, b"".join(varint(number[name]) for name in reversed(stack))) +
                       field(2, b"".join(varint(value) for value in values))) for stack, values in stacks.items()) +
        b"".join(field(4, field(1, i) + field(4, field(1, i))) + field(5, field(1, i) + field(2, strings.index(name)))
                 for name, i in number.items()) +
        fields(6, strings) + field(9, seconds * 10 ** 9) + (field(10, duration * 10 ** 9) if duration else b""))


def send(server, body, **query):
    check_equal(server.upload(body, urllib.parse.urlencode(query)).status, 200, f"status of {query}")


def selves(answer):
    return {one["name"]: one["self"] for one in answer["functions"] if one["self"]}


def average(profiles):
    sums = collections.Counter()
    for _, values in profiles:
        sums.update(values)
    ratio = 1 / len(profiles) if profiles else 0
    return {stack: math.floor(value * ratio + 0.5) for stack, value in sums.items()}


def difference(profiles, begin, end):
    """PROFILES: all of one host. Also whether one is in the range."""
    inside = [one for one in profiles if begin <= one[0] < end]
    before = [one for one in profiles if begin - 3600 <= one[0] < begin]
    after = [one for one in profiles if end <= one[0] < end + 3600]
    if not before and not after and len(inside) == 1:
        return inside[0][1]
    sums = collections.Counter()
    line = before[-1:] + inside
    for (_, old), (_, new) in zip(line, line[1:]):
        change = {stack: new.get(stack, 0) - old.get(stack, 0) for stack in old.keys() | new.keys()}
        has_restarted = -sum(value for value in change.values() if value < 0) > sum(old.values()) * 0.01
        sums.update(new if has_restarted else {stack: max(value, 0) for stack, value in change.items()})
    return sums


def random_profiles(numbers, now):
    """{host: [(time, {stack: value})]}, in the order of time. Values grow, and now and then begin again."""
    profiles = {}
    for host in ("a", "b", "c"):
        at, values, profiles[host] = now - 20_000, collections.Counter(), []
        for _ in range(numbers.choice((1, 2, 20, 40))):
            at += numbers.choice((15, 15, 15, 60, 3000, 5000))
            if numbers.random() < 0.1:
                values.clear()
            values.update({stack: numbers.randrange(0, 100) for stack in STACKS if numbers.random() < 0.7})
            if values and at < now:
                profiles[host].append((at, dict(values)))
    return profiles


def send_series(server, profiles):
    for host, of_host in profiles.items():
        for at, values in of_host:
            send(server, pprof(HEAP, {stack: (value, 2 * value, 3 * value, 4 * value) for stack, value in values.items()}, at), service="shop", host=host)


def random_question(numbers, profiles):
    """Hosts, the begin and the end of a range."""
    times = [at for of_host in profiles.values() for at, _ in of_host]
    begin, end = sorted((numbers.choice(times) + numbers.choice((0, 1, 700)), numbers.choice(times) + numbers.choice((1, 2, 900))))
    return [numbers.choice(list(profiles))] if numbers.random() < 0.5 else list(profiles), begin, end


def ask(server, profiles, hosts, begin, end):
    """Values of all stacks in [BEGIN, END], beside what the profiles of HOSTS say."""
    query = {"service": "shop", "from": begin, "to": end + 1} | ({"host": hosts[0]} if len(hosts) == 1 else {})
    is_there = any(begin <= at <= end for host in hosts for at, _ in profiles[host])
    for kind, factor in (("inuse_space", 4), ("alloc_space", 2)):
        expected = collections.Counter()
        for host in hosts:
            of_host = [(at, {stack: factor * value for stack, value in values.items()}) for at, values in profiles[host]]
            chosen = [one for one in of_host if begin <= one[0] <= end]
            for stack, value in (average(chosen) if kind == "inuse_space" else difference(of_host, begin, end + 1)).items():
                expected[stack[-1]] += value
        answer = server.get(f"top?type={kind}&{urllib.parse.urlencode(query)}")
        what = f"{kind} of {query}"
        check_equal(answer.status, 200 if is_there else 404, f"status of {what}")
        if answer.status == 200:
            check_equal(selves(answer.json()), {name: value for name, value in expected.items() if value}, what)
