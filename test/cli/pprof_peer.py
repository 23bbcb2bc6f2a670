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

OFFBEAT = sys.argv[1]
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
def pprof_reports_the_same_of_its_own_profiles_that_were_converted():
    if not CONFORMANCE.exists():
        skip(f"{CONFORMANCE} is not there")
    check_all([*sorted(CONFORMANCE.glob("profiles/*.pb.gz")), CONFORMANCE / "large.cpu"], 51)


@case
def pprof_opens_what_offbeat_made_of_another_format():
    needs_pprof()
    with CheckedFolder() as folder:
        report = pprof(folder, "-top", converted(folder, WORK))
        check("Type: samples" in report, report)


main()
