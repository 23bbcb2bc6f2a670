"""Random chunks, random queries about them, and a second implementation, which decodes each chunk and adds it up.
SPDX-License-Identifier: MIT"""
import collections
import pathlib
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tap import check, check_equal  # noqa: E402

NS = 1_000_000_000
BEGIN = 1_700_000_400  # a multiple of ten minutes
SECONDS = 27 * 3600  # more than a day, so that sums of days are among the answers
COMMON = ("service", "environment", "release", "platform")


# --- The second implementation ----------------------------------------------------------------------------------------


class Sample:
    def __init__(self, time_ns, thread, stack):
        self.time_ns, self.thread, self.stack, self.wall = time_ns, thread, stack, 0


class Decoded:
    """A chunk as its JSON says: each sample lasts until the next one of its thread."""

    def __init__(self, payload):
        profile = payload["profile"]
        names = [frame["function"] for frame in profile["frames"]]
        stacks = [tuple(names[i] for i in reversed(stack)) for stack in profile["stacks"]]
        samples = [Sample(int(one["timestamp"] * 1e9), one["thread_id"], stacks[one["stack_id"]]) for one in profile["samples"]]
        self.samples = sorted(samples, key=lambda sample: sample.time_ns)
        following = {}
        for sample in reversed(self.samples):
            sample.wall = following.get(sample.thread, sample.time_ns) - sample.time_ns
            following[sample.thread] = sample.time_ns
        self.start, self.end = self.samples[0].time_ns, self.samples[-1].time_ns
        self.labels = {"service": payload["release"].split("@")[0], "environment": payload["environment"],
                       "release": payload["release"], "platform": payload["platform"], "profiler": payload["profiler_id"],
                       "chunk": payload["chunk_id"]}

    def sums(self, begin, end, thread):
        """(thread, stack, samples, wall) of what is in [BEGIN, END)."""
        is_inside = self.start >= begin and self.end < end
        for sample in self.samples:
            if thread is not None and sample.thread != thread:
                continue
            first, last = max(sample.time_ns, begin), min(sample.time_ns + sample.wall, end)
            if is_inside or (first < last if sample.wall else begin <= sample.time_ns < end):
                yield sample.thread, sample.stack, 1, sample.wall if is_inside else max(last - first, 0)


def add_up(chunks, choice, by_thread=False):
    """{stack: [samples, wall]}, or {(thread, stack): …}; None if there is nothing."""
    begin, end = choice.get("from", 0), choice.get("to") or 1 << 64
    sums = collections.defaultdict(lambda: [0, 0])
    for chunk in chunks:
        if not (chunk.start < end and chunk.end >= begin):
            continue
        if any(chunk.labels[key] != value for key, value in choice.items() if key in chunk.labels):
            continue
        for thread, stack, count, wall in chunk.sums(begin, end, choice.get("thread")):
            values = sums[(thread, stack) if by_thread else stack]
            values[0] += count
            values[1] += wall
    return sums or None


def functions_of(sums, column):
    """{name: (self, total)}, without those that are 0."""
    found = collections.defaultdict(lambda: [0, 0])
    for stack, values in sums.items():
        found[stack[-1]][0] += values[column]
        for name in set(stack):
            found[name][1] += values[column]
    return {name: tuple(pair) for name, pair in found.items() if any(pair)}


def tree_of(sums, column):
    """{path: total}, without those that are 0."""
    found = collections.Counter()
    for stack, values in sums.items():
        for depth in range(len(stack) + 1):
            found[stack[:depth]] += values[column]
    return {path: total for path, total in found.items() if total}


# --- A random store ---------------------------------------------------------------------------------------------------


def random_payload(numbers, number):
    service = numbers.choice(("shop", "shop", "mail", "search"))
    names = [f"{service}.{name}" for name in "abcdefgh"[:numbers.randrange(2, 9)]] + ["main", "poll"]
    frames = numbers.sample(names, len(names))
    stacks = [[numbers.randrange(len(frames)) for _ in range(numbers.randrange(1, 7))] for _ in range(numbers.randrange(1, 8))]
    length = numbers.choice((0.5, 5, 30, 59))
    # Many chunks are close to each other, and some end or begin where a bucket does.
    start = BEGIN + numbers.choice((numbers.randrange(SECONDS), numbers.randrange(3600), 600 * numbers.randrange(160),
                                    600 * numbers.randrange(160) - length, 3600 * numbers.randrange(1, 27) - length / 2))
    threads = [str(thread) for thread in range(1, numbers.randrange(2, 5))]
    times = sorted({start, start + length} | {start + numbers.random() * length for _ in range(numbers.randrange(2, 20))})
    if numbers.random() < 0.3:
        times = [round(moment, 1) for moment in times]  # also several samples of a thread at one time
    samples = [{"timestamp": moment, "thread_id": thread, "stack_id": numbers.randrange(len(stacks))}
               for moment in times for thread in threads if numbers.random() < 0.9 or moment in times[:2]]
    if numbers.random() < 0.2:
        numbers.shuffle(samples)
    return {"version": "2", "profiler_id": f"{numbers.randrange(1, 40):032x}", "chunk_id": f"{number:032x}",
            "platform": numbers.choice(("python", "python", "node")), "release": f"{service}@{numbers.randrange(1, 4)}.0",
            "environment": numbers.choice(("production", "staging", "")), "client_sdk": {"name": "test", "version": "1"},
            "profile": {"frames": [{"function": name, "in_app": True} for name in frames], "stacks": stacks, "samples": samples,
                        "thread_metadata": {thread: {"name": f"thread {thread}"} for thread in threads}}}


def random_time(numbers, chunks):
    chunk = numbers.choice(chunks)
    moment = numbers.choice((chunk.start, chunk.end, numbers.choice(chunk.samples).time_ns, (chunk.start + chunk.end) // 2,
                             NS * (BEGIN + numbers.randrange(SECONDS)), NS * (BEGIN + 600 * numbers.randrange(165)),
                             NS * (BEGIN + 3600 * numbers.randrange(28)), NS * 86400 * (BEGIN // 86400 + numbers.randrange(3))))
    return moment + numbers.choice((0, 0, 0, -1, 1))


def random_choice(numbers, chunks):
    choice = {}
    if numbers.random() < 0.8:
        choice["from"] = random_time(numbers, chunks)
    if numbers.random() < 0.8:
        choice["to"] = random_time(numbers, chunks)
    if choice.get("from", 0) >= choice.get("to", 1 << 64):
        choice["from"], choice["to"] = choice["to"], choice["from"] + (choice["from"] == choice["to"])
    chunk = numbers.choice(chunks)
    for key in COMMON:
        if numbers.random() < 0.2 and chunk.labels[key]:
            choice[key] = chunk.labels[key]
    if numbers.random() < 0.1:
        choice["thread"] = numbers.choice("1234")
    if numbers.random() < 0.05:
        choice["profiler"] = chunk.labels["profiler"]
    if numbers.random() < 0.03:
        choice["chunk"] = chunk.labels["chunk"]
    return choice


# --- Comparing --------------------------------------------------------------------------------------------------------


def text_of_time(time_ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_ns // NS)) + f".{time_ns % NS:09d}Z"


def text_of(choice, prefix=""):
    return "".join(f"&{prefix}{key}=" + urllib.parse.quote(text_of_time(value) if isinstance(value, int) else value)
                    for key, value in choice.items())


def compare_top(server, chunks, choice, kind):
    answer = server.get(f"top?type={kind}{text_of(choice)}")
    sums = add_up(chunks, choice)
    if sums is None:
        check_equal(answer.status, 404, f"status: {answer.body[:300]}")
        return
    check_equal(answer.status, 200, f"status: {answer.body[:300]}")
    column = ("samples", "wall").index(kind)
    found = {one["name"]: (one["self"], one["total"]) for one in answer.json()["functions"] if one["total"]}
    check_equal(found, functions_of(sums, column), "functions")
    check_equal(answer.json()["total"], sum(values[column] for values in sums.values()), "total")


def compare_threads(server, chunks, choice, kind):
    """Threads are known by their names, and by their ids where a process or thread is chosen."""
    answer = server.get(f"top?by=thread&type={kind}{text_of(choice)}")
    sums = add_up(chunks, choice, by_thread=True)
    if sums is None:
        check_equal(answer.status, 404, f"status: {answer.body[:300]}")
        return
    check_equal(answer.status, 200, f"status: {answer.body[:300]}")
    column, found, expected = ("samples", "wall").index(kind), collections.Counter(), collections.Counter()
    for thread in answer.json()["threads"].values():
        for one in thread["functions"]:
            found[thread["name"], one["name"]] += one["self"]
    for (thread, stack), values in sums.items():
        expected[f"thread {thread}", stack[-1]] += values[column]
    check_equal(+found, +expected, "self time by thread and function")


def compare_flame(server, chunks, choice, kind):
    answer = server.get(f"flame?limit=0&type={kind}{text_of(choice)}")
    sums = add_up(chunks, choice)
    if sums is None:
        check_equal(answer.status, 404, f"status: {answer.body[:300]}")
        return
    check_equal(answer.status, 200, f"status: {answer.body[:300]}")
    column, paths, found = ("samples", "wall").index(kind), [], {}
    for place, box in enumerate(answer.json()["boxes"]):
        paths.append(paths[box["parent"]] + (box["name"],) if place else ())
        found[paths[-1]] = box["total"]
    check_equal({path: total for path, total in found.items() if total}, tree_of(sums, column), "boxes")


def compare_diff(server, chunks, choice, base):
    base = choice | base
    answer = server.get(f"diff?type=wall{text_of(choice)}{text_of(base, 'base_')}")
    sums = [add_up(chunks, one) for one in (choice, base)]
    if None in sums:
        check_equal(answer.status, 404, f"status: {answer.body[:300]}")
        return
    check_equal(answer.status, 200, f"status: {answer.body[:300]}")
    new, old = (functions_of(one, 1) for one in sums)
    found = {one["name"]: [(one[side]["self"], one[side]["total"]) for side in ("new", "base")] for one in answer.json()["functions"]}
    for name in new.keys() | old.keys() | found.keys():
        expected = [one.get(name, (0, 0)) for one in (new, old)]
        is_listed = name in found or expected[0][0] != expected[1][0]  # those whose self time is equal may be left out
        check_equal(found.get(name, expected) if is_listed else expected, expected, f"{name}, new and base")
        check(name in found or not is_listed, f"{name} is not listed")


def ask(server, chunks, numbers):
    choice = random_choice(numbers, chunks)
    kind = numbers.choice(("samples", "wall"))
    route = numbers.choice(("top", "top", "threads", "flame", "diff"))
    try:
        if route == "top":
            compare_top(server, chunks, choice, kind)
        elif route == "threads":
            compare_threads(server, chunks, choice, kind)
        elif route == "flame":
            compare_flame(server, chunks, choice, kind)
        elif route == "diff":
            other = random_choice(numbers, chunks)
            base = {key: other[key] for key in ("service", "release") if key in other}
            if choice.get("from", 0) < other.get("to", 1 << 64) and "to" in other:
                base["to"] = other["to"]
            if base.get("to", 1 << 64) <= choice.get("from", 0):
                del base["to"]
            compare_diff(server, chunks, choice, base)
    except Exception:
        print(f"# {len(chunks)} chunks: {route} type={kind} {choice} {text_of(choice)}")
        raise
