"""What pprof itself says of a profile, it says of the profile that offbeat wrote of it too (PPF-1, PPF-2, PPF-8).
Reads the fixtures that test/fixtures.py finds. Argument: the program. SPDX-License-Identifier: MIT"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from fixtures import CONFORMANCE, REAL  # noqa: E402
from pprof_readers import CheckedFolder  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
MAKE_PPROF = pathlib.Path(__file__).resolve().parent / "data/make_pprof.py"
WORK = pathlib.Path(__file__).resolve().parent / "data/work.collapsed"


def pprof(folder, report, path):
    environment = {**os.environ, "TZ": "UTC", "HOME": folder, "PPROF_TMPDIR": folder}
    done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", report, path], capture_output=True, text=True,
                          env=environment)
    check_equal(done.returncode, 0, f"pprof {report} {path}: {done.stderr.strip()}; status")
    return done.stdout


def converted(folder, path):
    out = pathlib.Path(folder) / "converted.pb.gz"
    done = subprocess.run([OFFBEAT, "convert", path, "-o", out], capture_output=True, text=True)
    check_equal(done.returncode, 0, f"offbeat convert {path}: {done.stderr.strip()}; status")
    return out


def check_reports(folder, path):
    out = converted(folder, path)
    for report in ("-raw", "-top"):
        check_equal(pprof(folder, report, out), pprof(folder, report, path), f"{report} of {path}")


def needs_pprof():
    if not shutil.which("go"):
        skip("go is not installed (Debian: golang-go)")


def check_all(profiles, count_min):
    needs_pprof()
    check(len(profiles) >= count_min, f"only {len(profiles)} profiles")
    with CheckedFolder() as folder:
        for path in profiles:
            check_reports(folder, path)


@case
def pprof_reports_the_same_of_real_profiles_that_were_converted():
    check_all(sorted(REAL.glob("pprof/*/*.pb.gz")), 8)


@case
def pprof_reports_the_same_after_a_conversion():
    if not CONFORMANCE.exists():
        skip(f"{CONFORMANCE} is not there")
    check_all([*sorted(CONFORMANCE.glob("profiles/*.pb.gz")), CONFORMANCE / "large.cpu"], 51)


LISTS = (["."], ["parse"], [".", "-source_path=SOURCES"], [".", "-noinlines", "-source_path=SOURCES/src"],
         [".", "-trim_path=/src", "-source_path=SOURCES/src"], [".", "-source_path=/nowhere:SOURCES/src/deeper"],
         [".", "-sample_index=objects", "-divide_by=3"], ["grow|main", "-focus=parse", "-relative_percentages"])


def lists(path, flags, folder):
    """What pprof and offbeat print for -list=REGEX and further flags."""
    words = [f"-list={flags[0]}", *(flag.replace("SOURCES", folder) for flag in flags[1:]), str(path)]
    run = {"capture_output": True, "text": True, "check": False, "cwd": folder}
    theirs = subprocess.run(["go", "tool", "pprof", "-symbolize=none", *words], **run)
    ours = subprocess.run([OFFBEAT, "pprof", *words], **run)
    check_equal((ours.returncode, ours.stderr), (0, ""), f"offbeat pprof {words}; status and errors")
    return theirs.stdout, ours.stdout


@case
def list_prints_what_pprof_prints():
    needs_pprof()
    made = subprocess.run([sys.executable, MAKE_PPROF], check=True, capture_output=True).stdout
    with CheckedFolder() as folder:
        heap = pathlib.Path(folder) / "heap.pb"
        heap.write_bytes(made)
        source = pathlib.Path(folder) / "src/a.c"
        source.parent.mkdir()
        source.write_text("".join(f"\tline {i};\n" for i in range(1, 31)) + "the end", encoding="utf-8")
        for flags in LISTS:
            theirs, ours = lists(heap, flags, folder)
            check_equal(ours, theirs, f"-list {flags}")
            check("ROUTINE" in ours, f"-list {flags} lists nothing")


@case
def list_prints_what_pprof_prints_of_real_profiles():
    needs_pprof()
    profiles = sorted(REAL.glob("pprof/*/*.pb.gz"))
    check(len(profiles) >= 8, f"only {len(profiles)} profiles")
    with CheckedFolder() as folder:
        for path in profiles:
            theirs, ours = lists(path, [".", "-source_path=/usr"], folder)  # the Go library's sources
            check_equal(ours, theirs, f"-list of {path}")


@case
def pprof_opens_what_offbeat_made_of_another_format():
    needs_pprof()
    with CheckedFolder() as folder:
        report = pprof(folder, "-top", converted(folder, WORK))
        check("Type: samples" in report, report)


main()
