"""offbeat raw says of a profile what pprof -raw says (PPF-1 … PPF-8), says the same of what offbeat wrote of it, and
offbeat top leaves out what pprof leaves out (PPF-9). Reads the fixtures that test/fixtures.py finds. Argument: the program.
SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from fixtures import CONFORMANCE  # noqa: E402
from pprof_readers import CheckedFolder  # noqa: E402
from pprof_written import Profile  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = sys.argv[1]
LEGACY = CONFORMANCE / "legacy"


def offbeat(*arguments):
    done = subprocess.run([OFFBEAT, *map(str, arguments)], capture_output=True, text=True)
    check_equal(done.returncode, 0, f"offbeat {arguments}: {done.stderr.strip()}; status")
    return done.stdout


def pprof(folder, report, path):
    if not shutil.which("go"):
        skip("go is not installed (Debian: golang-go)")
    environment = {**os.environ, "TZ": "UTC", "HOME": folder, "PPROF_TMPDIR": folder}
    done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", report, path], capture_output=True, text=True,
                          env=environment)
    check_equal(done.returncode, 0, f"pprof {report} {path}: {done.stderr.strip()}; status")
    return done.stdout


def profiles():
    found = sorted(CONFORMANCE.glob("profiles/*.pb.gz"))
    if not found:
        skip(f"{CONFORMANCE} is not there")
    return found


def without_columns(text):
    """Go 1.19's copy of pprof does not know columns yet."""
    return re.sub(r":(-?\d+):-?\d+ s=", r":\1 s=", text)


def rows(report):
    """(flat, cum, function) of a table like pprof's -top."""
    found = re.findall(r"^ *(\S+) +\S+ +\S+ +(\S+) +\S+ +(.*?)(?: \((?:partial-)?inline\))?$", report, re.MULTILINE)
    return sorted(row for row in found if row[0] != "flat")


@case
def names_command_no_terminal_and_nothing_of_them_is_lost():
    with CheckedFolder() as folder:
        path = pathlib.Path(folder) / "x.speedscope.json"
        path.write_text('{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a\\u001b[2Jb"}]},'
                        '"profiles":[{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":1,"samples":[[0]],"weights":[1]}]}')
        shown = offbeat("raw", path)
        check("a\\x1b[2Jb" in shown and "\x1b" not in shown, f"{shown}")


@case
def the_14_legacy_captures_say_what_the_reference_says_of_them():
    captures = sorted(path for path in LEGACY.glob("*") if path.suffix != ".string")
    if not captures:
        skip(f"{LEGACY} is not there")
    check_equal(len(captures), 14, "captures")
    for path in captures:
        check_equal(offbeat("raw", path), pathlib.Path(f"{path}.string").read_text(), path.name)


@case
def each_of_the_50_profiles_says_the_same_once_it_was_decoded_and_encoded():
    found = profiles()
    check_equal(len(found), 50, "profiles")
    with CheckedFolder() as folder:
        for path in found:
            again = pathlib.Path(folder) / "again.pb.gz"
            offbeat("convert", path, "-o", again)
            check_equal(offbeat("raw", again), offbeat("raw", path), path.name)


@case
def raw_is_what_pprof_prints_of_a_profile_that_it_leaves_as_it_is():
    compared = 0
    with CheckedFolder() as folder:
        for path in profiles():
            said = without_columns(offbeat("raw", path))
            # pprof drops frames when it loads a profile, and makes a mapping up where there is none
            if "pruneme" in said or said.endswith("Mappings\n"):
                continue
            check_equal(said, pprof(folder, "-raw", path), path.name)
            compared += 1
    check(compared >= 25, f"only {compared} profiles compared")


@case
def top_leaves_out_what_drop_frames_name_as_pprof_does():
    compared = 0
    with CheckedFolder() as folder:
        for path in profiles():
            if "pruneme" not in offbeat("raw", path):
                continue
            expected = rows(pprof(folder, "-top", path))
            check_equal(rows(offbeat("top", path)), expected, path.name)
            check(rows(offbeat("top", "--all-frames", path)) != expected, f"{path.name}: --all-frames shows no more")
            compared += 1
    check(compared >= 20, f"only {compared} profiles compared")


@case
def a_start_before_1970_is_shown_and_kept():
    with CheckedFolder() as folder:
        path, again = pathlib.Path(folder) / "old.pb", pathlib.Path(folder) / "again.pb.gz"
        path.write_bytes(Profile([("samples", "count")], time_ns=-1500000000).bytes())
        check("\nStart         1969-12-31T23:59:58.500Z\n" in offbeat("info", path), offbeat("info", path))
        check_equal(json.loads(offbeat("info", "--json", path))["start"], -1500000000, "start in JSON")
        offbeat("convert", path, "-o", again)
        for file in (path, again):
            check_equal([line for line in pprof(folder, "-raw", file).splitlines() if line.startswith("Time: ")],
                        [line for line in offbeat("raw", file).splitlines() if line.startswith("Time: ")], file.name)


@case
def a_label_with_several_units_is_warned_of_PPF_8():
    with CheckedFolder() as folder:
        paths = [pathlib.Path(folder) / name for name in ("mixed.pb", "bytes.pb", "kb.pb")]
        profiles = [Profile([("space", "bytes")]) for _ in paths]
        profiles[0].add(["f"], [1], [("size", (1, "bytes"))]).add(["f"], [1], [("size", (2, "kb")), ("n", (3, "items"))])
        profiles[1].add(["f"], [1], [("size", (1, "bytes"))])
        profiles[2].add(["f"], [1], [("size", (1, "kb"))])
        for path, profile in zip(paths, profiles):
            path.write_bytes(profile.bytes())
        warning = "offbeat: label size has several units: bytes is used, kb also occurs\n"
        out = pathlib.Path(folder) / "out.pb.gz"
        for command in (["top", paths[0]], ["raw", paths[0]], ["info", paths[0]], ["convert", paths[0], "-o", out],
                        ["top", *paths[1:]], ["merge", *paths[1:], "-o", out]):
            done = subprocess.run([OFFBEAT, *command], capture_output=True, text=True)
            check_equal((done.returncode, done.stderr), (0, warning), f"{command}: status and messages")
        check_equal(subprocess.run([OFFBEAT, "top", paths[1]], capture_output=True, text=True).stderr, "", "one unit")


@case
def a_difference_is_in_percent_of_its_base_as_in_pprof():
    def shown(report):
        """Without the signs of percentages, which pprof leaves out."""
        report = re.sub(r"-([\d.]+%)", r"\1", re.sub(r" +", " ", report))
        return re.findall(r"^(?:Showing .*|.*%.*)$", report, re.MULTILINE)

    with CheckedFolder() as folder:
        path, again = pathlib.Path(folder) / "difference.pb", pathlib.Path(folder) / "again.pb.gz"
        base = [("pprof::base", "true")]
        difference = Profile([("samples", "count")])
        difference.add(["f", "main"], [60]).add(["g", "main"], [30]).add(["i", "main"], [8], [("pprof::base", "false")])
        difference.add(["f", "main"], [-15], base).add(["h", "main"], [-25], base)
        path.write_bytes(difference.bytes())
        offbeat("merge", path, "-o", again)
        for file in (path, again):
            expected = shown(pprof(folder, "-top", file))
            check("40 total" in expected[0], f"pprof has another total: {expected[0]}")
            check_equal(shown(offbeat("top", file)), expected, file.name)


@case
def formats_without_drop_frames_get_the_frames_dropped_PPF_9():
    with CheckedFolder() as folder:
        path = pathlib.Path(folder) / "x.pb"
        profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], drop_frames="malloc.*")
        for _ in range(3):
            profile.add(["brk", "malloc_more", "work", "main"], [1, 10000000]).add(["work", "main"], [1, 10000000])
        path.write_bytes(profile.bytes())
        for name in ("x.collapsed", "x.speedscope.json", "x.firefox.json", "x.json", "x.envelope"):
            out = pathlib.Path(folder) / name
            done = subprocess.run([OFFBEAT, "convert", path, "-o", out], capture_output=True, text=True)
            check_equal(done.returncode, 0, f"{name}: {done.stderr}")
            check("drop_frames" not in done.stderr, done.stderr)
            text = out.read_text(encoding="utf-8")
            check("work" in text and "malloc" not in text and "brk" not in text, f"{name}: {text}")
        offbeat("convert", path, "-o", pathlib.Path(folder) / "again.pb.gz")
        check("brk" in offbeat("raw", pathlib.Path(folder) / "again.pb.gz"), "pprof keeps the frames and the expression")
        profile = Profile([("samples", "count")], drop_frames="malloc(").add(["malloc", "main"], [1])
        path.write_bytes(profile.bytes())
        done = subprocess.run([OFFBEAT, "convert", path, "-o", out.with_suffix(".collapsed")], capture_output=True, text=True)
        check("all frames are kept: " in done.stderr and done.returncode == 0, f"{done.returncode}: {done.stderr}")
        check_equal(out.with_suffix(".collapsed").read_text(encoding="utf-8"), "main;malloc 1\n", "all frames")


@case
def envelopes_distinguish_cpu_from_wall_and_keep_lines_PPF_6():
    """There and back: Sentry's formats have samples only, and servers take the time between them for wall time."""
    with CheckedFolder() as folder:
        for kind in ("cpu", "wall"):
            path = pathlib.Path(folder) / f"{kind}.pb"
            profile = Profile([("samples", "count"), (kind, "nanoseconds")])
            profile.add(["work", "main"], [30, 300000000]).add(["rest", "main"], [10, 100000000])
            path.write_bytes(profile.bytes())
            for name in ("x.envelope", "x.json", "v1.envelope"):
                chunk, again = pathlib.Path(folder) / name, pathlib.Path(folder) / "again.pb.gz"
                offbeat("convert", path, "-o", chunk, *(["--to", "envelope-v1"] if name.startswith("v1") else []))
                offbeat("convert", chunk, "-o", again, "--no-times")
                types = json.loads(offbeat("info", "--json", again))["sample_types"]
                check_equal([one["type"] for one in types], ["samples", kind], f"{kind} by {name}: sample types")
                lines = dict(re.findall(r"(\w+) :\d+:\d+ s=(\d+)", offbeat("raw", again)))
                check_equal(lines, {"work": "10", "main": "20", "rest": "30"}, f"{kind} by {name}: start lines")
                functions = json.loads(offbeat("top", "--json", "--sample-index", kind, again))["functions"]
                times = {one["name"]: one["self"] for one in functions if one["self"]}
                check(times.keys() == {"work", "rest"}, f"{kind} by {name}: {times}")
                check(abs(times["work"] - 300000000) <= 10000000, f"{kind} by {name}: {times}")
                if kind == "cpu":
                    check(abs(times["rest"] - 100000000) <= 10000000, f"{kind} by {name}: {times}")


main()
