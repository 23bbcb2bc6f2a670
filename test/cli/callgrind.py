"""Files of callgrind, cachegrind and xdebug, compared with callgrind_annotate: what each function of each file cost, in every
event, and what some of them cost with their callees. test/data/callgrind/make.sh made the files.

    callgrind.py OFFBEAT DATA

SPDX-License-Identifier: MIT"""
import collections
import contextlib
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
DATA = pathlib.Path(sys.argv[2]).resolve() / "callgrind"
NAMES = sorted(path.name.removesuffix(".out.gz") for path in DATA.glob("*.out.gz"))


def run(*command):
    done = subprocess.run(command, capture_output=True)
    check_equal(done.returncode, 0, f"{command}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


def annotated(name, *options):
    """{(file, function): [cost of each event]} and the events, as callgrind_annotate says."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.write_bytes(gzip.decompress((DATA / f"{name}.out.gz").read_bytes()))
        return annotated_file(path, *options)


def annotated_file(path, *options):
    if not shutil.which("callgrind_annotate"):
        skip("callgrind_annotate (package valgrind) is not installed")
    text = run("callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", *options, str(path))
    events = re.search(r"Events shown: +(.*)", text)[1].split()
    rows = collections.defaultdict(lambda: [0] * len(events))
    for line in text.splitlines():
        words = line.split(None, len(events))
        if len(words) != len(events) + 1 or not re.fullmatch(r"-?[\d,]+", words[0]) or words[-1] == "PROGRAM TOTALS":
            continue
        place = re.sub(r"( \[[^]]*\])+$", "", words[-1])
        values = [0 if word == "." else int(word.replace(",", "")) for word in words[:-1]]
        file, function = place.split(":", 1) if "::" not in place else place.split(":php::")
        key = (file.rsplit("/", 1)[-1], function.removeprefix("php::"))
        rows[key] = [a + b for a, b in zip(rows[key], values)]
    return events, rows


def opened(name, event, what="self"):
    """What offbeat says of the same."""
    return opened_file(DATA / f"{name}.out.gz", event, what)


def opened_file(path, event, what):
    report = json.loads(run(OFFBEAT, "top", "--json", "-n", "0", "--granularity", "filefunctions", "--sample-index", event,
                            str(path)))
    rows = collections.Counter()
    for row in report["functions"]:
        name_only = row["name"].rsplit(" ", 1)[0] if row["file"] else row["name"]
        name_only = re.sub(r" \[[^]]*\]$", "", name_only).removeprefix("php::").replace("<unknown>", "???")
        rows[(row["file"] or "???").rsplit("/", 1)[-1], name_only] += row[what]
    return rows


for one in NAMES:
    def same(name=one):
        events, expected = annotated(name)
        for i, event in enumerate(events):
            type_name, unit, _ = re.fullmatch(r"(.*?)(?:_\((.*)\))?()", event).groups()
            factor = 10 if unit == "10ns" else 1
            wanted = {key: values[i] * factor for key, values in expected.items() if values[i]}
            check(wanted, f"{event}: callgrind_annotate shows nothing")
            found = {key: value for key, value in opened(name, type_name).items() if value}
            for key in sorted(found.keys() | wanted.keys()):
                check_equal(found.get(key), wanted.get(key), f"{event} of {key}")
    same.__name__ = f"every_event_of_each_function_in_{one}_is_callgrind_annotates"
    case(same)


@case
def each_tool_has_three_files():
    for tool in ("cachegrind", "xdebug", ""):
        names = [name for name in NAMES if (name.split("-")[0] == tool if tool else not re.match("cachegrind|xdebug", name))]
        check(len(names) >= 3, f"{tool or 'callgrind'}: {names}")


@case
def functions_that_do_not_call_themselves_cost_as_much_with_their_callees():
    for name in ("calls", "instructions", "threads"):
        _, expected = annotated(name, "--inclusive=yes")
        found = opened(name, "Ir", "total")
        for key in (("program.c" if ("program.c", "main") in expected else "p.c", function)
                    for function in ("main", "middle", "leaf", "compare")):
            # Their callees may be called from elsewhere, too: each share of these is rounded.
            check(abs(found[key] - expected[key][0]) <= 4, f"{name}: {key}: {found[key]} and {expected[key][0]}")


# The files of other tools that convert writes in callgrind's format.
SOURCES = {"jfr": "jfr/serial.jfr.gz", "perf.data": "perf/chains.data", "stackprof": "stackprof/wall.json", "pstats": "pstats/python3.11.pstats",
           "callgrind": "callgrind/calls.out.gz"}


@contextlib.contextmanager
def converted(source):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.callgrind"
        run(OFFBEAT, "convert", str(DATA.parent / SOURCES[source]), "-o", str(path))
        yield path


def by_function(rows):
    """Files may begin with different folders, and frames without a function have different names."""
    sums = collections.Counter()
    for (_, function), value in rows.items():
        sums["???" if re.fullmatch(r"\[.*|(.*\+)?0x[0-9a-f]+", function) else function] += value
    return {function: value for function, value in sums.items() if value}


def functions_that_call_themselves(path):
    """By the calls that the file states: callgrind_annotate adds those, too."""
    names, caller = {}, None
    for key, number, name in re.findall(r"^(c?fn)=\((\d+)\)(?: (.*))?$", path.read_text(), re.M):
        names.setdefault(number, name)
        if key == "fn":
            caller = number
        elif number == caller:
            yield names[number]


def functions_that_annotate_counts_otherwise(source):
    """callgrind_annotate adds the costs of a recursion again, and of a function that was called it leaves out the stacks that
    begin with it. Which functions these are depends on the names that this machine knows."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.collapsed"
        run(OFFBEAT, "convert", str(DATA.parent / SOURCES[source]), "-o", str(path))
        lines = [line.rsplit(" ", 1)[0] for line in path.read_text().splitlines() if not line.startswith("#")]
        stacks = [[re.sub(r"_\[[a-z]\]$", "", name) for name in line.split(";")] for line in lines]  # without the marks of kinds
    recursive = {name for stack in stacks for name, times in collections.Counter(stack).items() if times > 1}
    called = {name for stack in stacks for name in stack[1:]}
    return {re.sub(r" \[[^]]*\]$", "", name) for name in recursive | called & {stack[0] for stack in stacks}}


for one in SOURCES:
    def written(source=one):
        with converted(source) as path:
            events, costs = annotated_file(path)
            _, with_callees = annotated_file(path, "--inclusive=yes")
            recursive = set(functions_that_call_themselves(path))
        event = re.sub(r"\(.*", "", events[0])
        for what, rows in (("self", costs), ("total", with_callees)):
            wanted = by_function(opened_file(DATA.parent / SOURCES[source], event, what))
            found = by_function({key: values[0] for key, values in rows.items()})
            check(wanted, "there is nothing to compare")
            # Functions without a name are one in the file.
            if what == "self":
                names = wanted.keys() | found.keys()
            else:
                names = wanted.keys() - functions_that_annotate_counts_otherwise(source) - recursive - {"???"}
            check(names, "no function is compared")
            for name in sorted(names):
                check_equal(found.get(name), wanted.get(name), f"{what} of {name}")
    written.__name__ = f"callgrind_annotate_reads_what_convert_writes_of_{one}"
    case(written)


main()
