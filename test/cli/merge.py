"""offbeat merge: what pprof says of several files, it says of their sum; and memory does not grow with the number of files
(PPF-2, PPF-7). Reads the fixtures that test/fixtures.py finds. Argument: the program. SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from fixtures import CONFORMANCE, REAL  # noqa: E402
from pprof_readers import CheckedFolder  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = sys.argv[1]


def pprof(folder, report, *paths):
    environment = {**os.environ, "TZ": "UTC", "HOME": folder, "PPROF_TMPDIR": folder}
    done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", report, *paths], capture_output=True, text=True,
                          env=environment)
    check_equal(done.returncode, 0, f"pprof {report}: {done.stderr.strip()}; status")
    return done.stdout


def merge(out, *paths):
    """Peak memory in bytes."""
    process = subprocess.Popen([OFFBEAT, "merge", *paths, "-o", out], stderr=subprocess.PIPE, text=True)
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check_equal(process.returncode, 0, f"offbeat merge: {complaint.strip()}; status")
    return usage.ru_maxrss * 1024


def by_sample_types():
    """The profiles of the conformance suite that can be merged, as lists."""
    groups = {}
    for path in sorted(CONFORMANCE.glob("profiles/*.pb.gz")):
        about = subprocess.run([OFFBEAT, "info", path], capture_output=True, text=True, check=True).stdout
        values, period = (re.search(f"^{name} .*", about, re.MULTILINE) for name in ("Values", "Period"))
        groups.setdefault((values and values[0], bool(period)), []).append(path)
    return [paths for paths in groups.values() if len(paths) > 1]


@case
def pprof_says_of_the_sum_what_it_says_of_the_files():
    if not shutil.which("go"):
        skip("go is not installed (Debian: golang-go)")
    groups = by_sample_types()
    if not groups:
        skip(f"{CONFORMANCE} is not there")
    check(len(groups) >= 3, f"only {len(groups)} kinds of profiles")
    with CheckedFolder() as folder:
        for paths in groups:
            out = f"{folder}/sum.pb.gz"
            merge(out, *paths)
            for report in ("-top", "-tags"):
                check_equal(pprof(folder, report, out), pprof(folder, report, *paths), f"{report} of {paths}")


@case
def runs_that_differ_in_dropped_labels_alone_add_up_PPF_2():
    with CheckedFolder() as folder:
        paths = []
        for thread in (78, 79):
            script, profile = pathlib.Path(folder) / f"{thread}.perf.txt", pathlib.Path(folder) / f"{thread}.pb.gz"
            script.write_text(f"prog  77/{thread}  [001] 1.000000:  5000000 cpu-clock:\n\t    401136 spin+0x6 (/bin/prog)\n\n", encoding="utf-8")
            subprocess.run([OFFBEAT, "convert", script, "-o", profile, "--no-times"], check=True, capture_output=True)
            paths.append(profile)

        def entries(*options):
            out = pathlib.Path(folder) / "sum.pb.gz"
            subprocess.run([OFFBEAT, "merge", *paths, "-o", out, *options], check=True, capture_output=True)
            about = json.loads(subprocess.run([OFFBEAT, "info", "--json", out], check=True, capture_output=True).stdout)
            return about["samples"], about["entries"], len([thread for thread in about["threads"] if thread])

        check_equal(entries(), (2, 2, 2), "samples, entries and threads with all labels")
        check_equal(entries("--drop-labels", "pid,thread_id,thread"), (2, 1, 0), "without threads")


@case
def memory_does_not_grow_with_the_number_of_files():
    path = CONFORMANCE / "large.cpu" if CONFORMANCE.exists() else REAL / "pprof/jvm/cpu.pb.gz"
    with CheckedFolder() as folder:
        few, many = merge(f"{folder}/few.pb", path, path), merge(f"{folder}/many.pb", *[path] * 24)
        check(many < few * 1.25 + (4 << 20), f"two files take {few >> 20} MiB, 24 take {many >> 20} MiB")


main()
