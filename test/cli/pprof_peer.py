"""What pprof itself says of a profile, it says of the profile that offbeat wrote of it too (PPF-1, PPF-2, PPF-8).
Reads ../shared/fixtures in place. Argument: the program. SPDX-License-Identifier: MIT"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = sys.argv[1]
FIXTURES = ROOT.parent / "shared/fixtures"
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


@case
def pprof_reports_the_same_of_real_profiles_that_were_converted():
    needs_pprof()
    profiles = sorted(FIXTURES.glob("pprof-conformance/profiles/*.pb.gz"))
    profiles += sorted(FIXTURES.glob("real/pprof/*/*.pb.gz"))
    if not profiles:
        skip(f"{FIXTURES} is not there")
    check(len(profiles) > 50, f"only {len(profiles)} profiles in {FIXTURES}")
    with tempfile.TemporaryDirectory() as folder:
        for path in profiles + [FIXTURES / "pprof-conformance/large.cpu"]:
            check_reports(folder, path)


@case
def pprof_opens_what_offbeat_made_of_another_format():
    needs_pprof()
    with tempfile.TemporaryDirectory() as folder:
        report = pprof(folder, "-top", converted(folder, WORK))
        check("Type: samples" in report, report)


main()
