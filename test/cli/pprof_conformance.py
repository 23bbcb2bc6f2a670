"""offbeat pprof prints what pprof's own golden files say, byte for byte, with the flags of their manifest. Two of them need
a mocked object tool. Reads the fixtures that test/fixtures.py finds. Argument: the program. SPDX-License-Identifier: MIT"""
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from fixtures import CONFORMANCE  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
NEED_OBJECT_TOOL = {"pprof.cpu.flat.addresses.disasm", "pprof.cpu.flat.addresses.weblist"}
COUNT = 48


def needs_goldens():
    if not (CONFORMANCE / "manifest.tsv").exists():
        skip(f"no golden files: {CONFORMANCE} is not there")


def run(*words):
    environment = {**os.environ, "TZ": "UTC", "HOME": "/nonexistent"}
    return subprocess.run([OFFBEAT, "pprof", "-symbolize=none", *words], cwd=CONFORMANCE, capture_output=True, env=environment)


def manifest():
    lines = (CONFORMANCE / "manifest.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines]


@case
def every_golden_file_is_equal():
    needs_goldens()
    equal = 0
    for profile, golden, flags in manifest():
        if golden in NEED_OBJECT_TOOL:
            continue
        done = run(*shlex.split(flags), f"profiles/{profile}")
        check_equal(done.returncode, 0, f"{golden}: {done.stderr.decode()}; status")
        check_equal(done.stdout.decode(), (CONFORMANCE / "golden" / golden).read_text(encoding="utf-8"), golden)
        equal += 1
    check_equal(equal, COUNT, "golden files that were compared")


@case
def topproto_is_a_profile_with_the_rows_of_the_table():
    needs_goldens()
    profile = "profiles/00.cpu.pb.gz"
    done = run("-topproto", "-lines", "-unit=ms", profile)
    check_equal(done.returncode, 0, done.stderr.decode())
    raw = subprocess.run([OFFBEAT, "raw", "-"], input=done.stdout, capture_output=True, check=True).stdout.decode()
    check("cum/ms flat/ms" in raw, "the values are not cum and flat in the unit of the table")
    check("       1100       1100: 1 " in raw, "the hottest line is not the first sample")


@case
def what_is_not_there_yet_is_one_line():
    needs_goldens()
    for flag in ("-eog", "-http=0.0.0.0:1", "-http=8080", "-symbolize=local"):
        done = run(flag, "profiles/00.cpu.pb.gz")
        check_equal((done.returncode, done.stdout, done.stderr.count(b"\n")), (2, b"", 1), flag)


main()
