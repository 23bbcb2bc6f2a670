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
    check_equal(info["recorder"], {"markers_not_read": 3 * len(PROCESSES)}, "facts")


main()
