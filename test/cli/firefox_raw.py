"""A raw profile, as Firefox itself wrote it, beside a second reader of the same tables: each stack, each thread's samples,
the times and the CPU time. test/data/firefox/reduce.py says how the file was made.

    firefox_raw.py OFFBEAT DATA

SPDX-License-Identifier: MIT"""
import collections
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
FILE = pathlib.Path(sys.argv[2]).resolve() / "firefox/raw.json.gz"
PROFILE = json.loads(gzip.decompress(FILE.read_bytes()))
PROCESSES = [PROFILE, *PROFILE["processes"]]


def run(*arguments):
    done = subprocess.run([OFFBEAT, *arguments], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, f"{arguments}: {done.stderr}")
    return done.stdout


def rows(table):
    """Each row as {column: value}."""
    names = {place: name for name, place in table["schema"].items()}
    return [{names[place]: value for place, value in enumerate(row)} for row in table["data"]]


def name_of(process, location, is_caller):
    if re.fullmatch("0x[0-9a-f]+", location):
        address = int(location, 16) - is_caller
        for library in process["libs"]:
            if library["start"] <= address < library["end"]:
                return f"[{library['name']}]" if library["name"] else "?"
        return location
    script = re.fullmatch(r"(?:(.*?) \()?(.*?):(\d+)(?::(\d+))?(\)?)(?:\[\d+\])?", location)
    if script and bool(script[1] is not None) == bool(script[5]):
        return script[1] if script[1] is not None else re.sub(r"\[\d+\]$", "", location)
    return location


def stacks_of(process, thread):
    """[names from the root to the leaf] and the CPU time of each sample that has some."""
    strings, frames, table = thread["stringTable"], rows(thread["frameTable"]), rows(thread["stackTable"])
    for sample in rows(thread["samples"]):
        names, at = [], sample.get("stack")
        if not sample.get("threadCPUDelta"):
            continue
        while at is not None:
            names.append(name_of(process, strings[frames[table[at]["frame"]]["location"]], bool(names)))
            at = table[at]["prefix"]
        yield names[::-1] or ["[unknown]"], sample["threadCPUDelta"]


def comparable(stack):
    """A place in a library without a name has an address in the library's own 4 GiB, of 9 to 11 digits, as code of a compiler may have."""
    return re.sub(r"(?<![^;])0x[1-9a-f][0-9a-f]{8,10}(?=;|$)", "?", stack)


def as_written(names):
    """Collapsed stacks replace what would break their lines."""
    return comparable(";".join(name.replace(";", ":") for name in names))


@case
def each_stack_is_that_of_the_second_reader():
    expected, found = collections.Counter(), collections.Counter()
    for process in PROCESSES:
        for thread in process["threads"]:
            for names, cpu_ns in stacks_of(process, thread):
                expected[as_written(names)] += cpu_ns
    for line in run("convert", str(FILE), "--to", "collapsed", "-o", "-").splitlines():
        stack, cpu_ns = line.rsplit(" ", 1)
        found[comparable(stack)] += int(cpu_ns)
    check(len(expected) > 50, f"only {len(expected)} stacks")
    for stack in sorted(expected.keys() | found.keys()):
        check_equal(found.get(stack), expected.get(stack), stack)


@case
def threads_processes_and_times_are_as_the_second_reader_finds_them():
    info = json.loads(run("info", "--json", str(FILE)))
    threads = {str(thread["tid"]): len(thread["samples"]["data"]) for process in PROCESSES for thread in process["threads"]}
    check_equal({key: value["samples"] for key, value in info["threads"].items()}, threads, "samples of threads")
    pids = {process["threads"][0]["pid"]: process["threads"][0]["processName"] for process in PROCESSES}
    check_equal({process["pid"]: process["name"] for process in info["processes"]}, pids, "processes")
    check(abs(info["start"] - PROFILE["meta"]["startTime"] * 1e6) < 1000, f"the start is {info['start']}")
    check_equal(info["markers"], sum(len(thread["markers"]["data"]) for process in PROCESSES for thread in process["threads"]), "markers")


REFERENCES = ("unique-string", "flow-id", "terminating-flow-id")


def markers_of(thread, strings, rows, start, categories, schemas):
    """[(name, category, phase, start, end, data)] of a thread, with strings for their numbers and without stacks."""
    fields = {schema["name"]: {field["key"] for field in schema.get("fields", schema.get("data", [])) if field.get("format") in REFERENCES}
              for schema in schemas}
    found = []
    for name, begin, end, phase, category, data in rows:
        data = {key: value for key, value in (data or {}).items() if key not in ("stack", "cause")}
        for key in fields.get(data.get("type"), set()) & data.keys():
            data[key] = strings[data[key]]
        times = [round(start * 1e6 + time * 1e6) if used else None for time, used in ((begin, phase != 3), (end, phase in (1, 3)))]
        found.append((strings[name], categories[category]["name"], phase, times, data))
    return found


def close(a, b):
    return a == b or None not in (a, b) and abs(a - b) < 1000  # of nanoseconds since 1970 as a double


@case
def markers_are_passed_through_to_the_processed_form():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x.firefox.json"
        run("convert", str(FILE), "-o", path)
        with open(path, encoding="utf-8") as file:
            written = json.load(file)
    meta = written["meta"]
    threads = {thread["tid"]: thread for thread in written["threads"]}
    kinds = set()
    for process in PROCESSES:
        for thread in process["threads"]:
            rows = [(row + [None] * 6)[:6] for row in thread["markers"]["data"]]
            expected = markers_of(thread, thread["stringTable"], rows, process["meta"]["startTime"], process["meta"]["categories"],
                                  process["meta"]["markerSchema"])
            table = threads[str(thread["tid"])]["markers"]
            rows = list(zip(*(table[column] for column in ("name", "startTime", "endTime", "phase", "category", "data"))))
            found = markers_of(thread, written["shared"]["stringArray"], rows, meta["startTime"], meta["categories"], meta["markerSchema"])
            check_equal(len(found), len(expected), f"markers of {thread['tid']}")
            for ours, theirs in zip(found, expected):
                check_equal(ours[:3] + ours[4:], theirs[:3] + theirs[4:], "a marker")
                check(all(map(close, ours[3], theirs[3])), f"{ours} at {ours[3]}, not {theirs[3]}")
                kinds.add(theirs[4].get("type"))
    names = {schema["name"] for schema in PROFILE["meta"]["markerSchema"]}
    check(names <= {schema["name"] for schema in meta["markerSchema"]}, "schemas are missing")
    check(len(kinds) > 20, f"only {kinds}")


main()
