"""Whether every conversion names what it loses: each format that is read, written in each format that is written.

What a file has is looked up in the file that was written from it, with info --json and raw. What is missing there must be in
the line that convert printed. Arguments: the program, the folder test. SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
TEST = pathlib.Path(sys.argv[2]).resolve()

# One file of each format that is read, as rich as there is one.
SOURCES = {
    "perf-data": "data/perf/events.data", "jfr": "data/jfr/serial.jfr.gz", "otlp": "data/otlp/two-resources.otlp",
    "otlp-json": "data/otlp/two-resources.otlp.json", "pstats": "data/pstats/python3.11.pstats",
    "massif": "data/massif/massif.out", "bpftrace": "data/bpftrace/stacks.txt", "dtrace": "fuzz/corpus/dtrace/small",
    "macos-sample": "fuzz/corpus/macos-sample/small", "pprof-legacy": "data/heap-profile.txt",
    "callgrind": "data/callgrind/xdebug.out.gz", "dhat": "data/dhat/dhat.out", "stackprof": "data/stackprof/wall.json",
    "v8-heap": "data/v8-heap/node20.heapprofile", "v8-log": "data/v8-log/node20.v8log.json",
    "envelope": "data/bound.envelope", "sentry-v1": "data/sentry-v1.json",
    "sentry-v2": "data/sentry-v2-chunk.json", "chrome": "data/real/cpuprofile/mixed-1ms.cpuprofile",
    "android-trace": "fuzz/corpus/android-trace/dual", "perf-script": "data/perf/chains.script.gz", "firefox": "data/firefox/raw.json.gz",
}
# Made here by convert from these: what another format has and the written file keeps is the most that it can have.
WRITTEN = {"pprof": "data/perf/events.data", "collapsed": "data/perf/chains.data", "speedscope": "data/jfr/serial.jfr.gz",
           "chrome-trace": "data/jfr/serial.jfr.gz"}
RECORDING = "recording"
# What info --json has, and what convert calls it.
MEMBERS = {
    "threads": "threads", "comments": "comments", "recorder": "facts of the recorder",
    "measurements": "measurements", "markers": "markers", "doc_url": "doc_url", "release": "release",
    "environment": "environment", "profiler_id": "ids", "chunk_id": "ids",
}
# What raw prints, and what convert calls it.
LINES = {
    "files": (re.compile(r"^ +(?:\d+: )?(?:0x[0-9a-f]+ )?(?:M=\d+ )?.* \S+:[1-9]\d*:\d+ s=\d+", re.M), "files and lines of functions"),
    "addresses": (re.compile(r"^ +\d+: 0x[0-9a-f]*[1-9a-f][0-9a-f]* ", re.M), "addresses"),
    "labels": (re.compile(r"^ {16}\w", re.M), "labels"),
}


def run(*arguments):
    return subprocess.run([OFFBEAT, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=60)


def targets():
    found = re.search(r"--to (\S+\|\S+)", run("convert", "--help").stdout)
    check(found is not None, "convert --help names no formats")
    return found.group(1).split("|")


def describe(path):
    info = run("info", "--json", path)
    check_equal(info.returncode, 0, f"info {path}: {info.stderr}")
    members = json.loads(info.stdout.splitlines()[0])
    raw = run("raw", path).stdout
    return members, {name for name, (pattern, _) in LINES.items() if pattern.search(raw)}


def losses_of(source, written):
    """What SOURCE has and WRITTEN has not, in the words of convert."""
    (before, lines_before), (after, lines_after) = source, written
    lost = {words for member, words in MEMBERS.items() if before.get(member) and not after.get(member)}
    lost |= {LINES[name][1] for name in lines_before - lines_after}
    # A count of samples is not a separate value.
    counted = [{kind["type"] for kind in members["sample_types"]} - {"samples"} for members in (before, after)]
    if len(counted[0]) > max(1, len(counted[1])):
        lost.add("values")
    # An image without an address is the package of its functions where there are no images.
    if any(image["address"] or image["size"] for image in before["images"]) and not after["images"]:
        lost.add("images")
    if before["last_sample"] and not after["last_sample"]:
        lost.add("times of samples")
    return lost


# Sentry's formats name what a server computes again, and pprof keeps threads and times as labels.
def is_named(words, said, target):
    if words in said:
        return True
    if words == "markers" and "items of the envelope" in said:
        return True  # its spans
    if words == "ids":
        return "profiler_id" in said
    if words == "labels" and target not in ("pprof", "otlp", "otlp-json"):
        return "threads" in said or "times" in said or "further members of samples" in said
    return False


def check_pair(kind, source, described, target, folder):
    output = folder / "out.x"
    for old in folder.glob("out*"):
        old.unlink()
    converted = run("convert", source, "--to", target, "-o", output)
    if converted.returncode != 0:
        check(converted.stderr.startswith("offbeat: "), f"{kind} to {target}: rejected without a line")
        return False
    written = describe(output)
    for words in losses_of(described, written):
        check(is_named(words, converted.stderr, target),
              f"{kind} to {target}: the loss of \"{words}\" is not named: {converted.stderr.strip()}")
    return True


def record(folder):
    """A recording as liboffbeat leaves it."""
    environment = {**os.environ, "LD_PRELOAD": str(OFFBEAT.parent / "liboffbeat.so"), "OFFBEAT_RECORD_DIRECTORY": str(folder)}
    program = "import threading, time\nthreading.Thread(target=lambda: sum(range(10**7))).start()\ntime.sleep(0.3)"
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
    found = [path for path in folder.iterdir() if path.is_file()]
    check(found, "nothing was recorded")
    return max(found, key=lambda path: path.stat().st_size)


def source_of(kind, folder):
    if kind in SOURCES:
        return TEST / SOURCES[kind]
    (folder / "source").mkdir()
    if kind == RECORDING:
        return record(folder / "source")
    path = folder / "source" / "x"
    written = run("convert", TEST / WRITTEN[kind], "--to", kind, "-o", path)
    check_equal(written.returncode, 0, f"{kind}: {written.stderr}")
    return path


for name in (*SOURCES, *WRITTEN, RECORDING):
    def one(kind=name):
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            source = source_of(kind, folder)
            described = describe(source)
            check_equal(described[0]["format"], kind, source)
            count = sum(check_pair(kind, source, described, target, folder) for target in targets())
        print(f"# {kind}: {count} of {len(targets())} formats were written")
        check(count >= 5, f"only {count} formats were written")
    one.__name__ = f"every_loss_of_{name}_is_named"
    case(one)


@case
def every_format_that_is_read_is_a_source():
    """convert --help and its manual page name the formats; envelope-v1 is read as an envelope."""
    page = (TEST.parent / "doc/man/offbeat-convert.1").read_text(encoding="utf-8").replace("\\-", "-")
    read_only = page.split("These formats are only read:\n")[1].split("\n.SH ")[0]
    named = set(targets()) | {name for line in re.findall(r"^\.TP\n\.B (.*)$", read_only, re.M) for name in line.split(", ")}
    check(len(named) > 20, f"only {sorted(named)} are known")
    check_equal(sorted(named - {"envelope-v1"}), sorted({*SOURCES, *WRITTEN, RECORDING}), "formats and sources")


@case
def a_loss_that_is_not_named_is_found():
    full = ({"threads": {"1": {}}, "images": [], "sample_types": [{"type": "wall"}, {"type": "cpu"}], "first_sample": 1, "last_sample": 9}, {"labels"})
    empty = ({"threads": {}, "images": [], "sample_types": [{"type": "wall"}], "first_sample": 0, "last_sample": 0}, set())
    check_equal(losses_of(full, empty), {"threads", "labels", "times of samples", "values"}, "what is lost")
    check(not is_named("threads", "offbeat: x: collapsed cannot store labels", "collapsed"), "threads count as named")


main()
