"""Profiles of real clients: per thread and function, `offbeat top` finds what Sentry's own backend found (REL-2, LNK-2).
Reads ../shared/fixtures/real in place. Argument: the program. SPDX-License-Identifier: MIT"""
import gzip
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = sys.argv[1]
REAL = ROOT.parent / "shared/fixtures/real"
TOLERANCE_NS = 1000  # a time is a double of seconds, which has a resolution of a quarter of a microsecond


def read_expected(path):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path, encoding="utf-8")
    with opened:
        return json.load(opened)


def body_of(folder, number, directory):
    """The request's body as a file; packed runs are unpacked to FOLDER. Brotli is not ours to read."""
    packed = REAL / f"envelopes/{directory}.tar.gz"
    if packed.exists():
        with tarfile.open(packed) as archive:
            member = next(name for name in archive.getnames() if name.endswith(f"{number}.raw"))
            path = folder / f"{directory}.{number}"
            path.write_bytes(archive.extractfile(member).read())
            return path
    body = REAL / f"envelopes/{directory}/{number}.body"
    return body if body.exists() else REAL / f"envelopes/{directory}/{number}.raw"


def top_by_thread(path):
    done = subprocess.run([OFFBEAT, "top", "--by-thread", "--json", path], capture_output=True, text=True)
    check_equal(done.returncode, 0, f"status of {path} ({done.stderr.strip()})")
    return json.loads(done.stdout)["threads"]


def check_thread(name, found, wanted):
    by_name = {function["name"]: function for function in found["functions"]}
    for function in wanted["functions"]:
        ours = by_name.get(function["name"])
        if not ours and function["total_ns"] <= TOLERANCE_NS:
            continue
        check(ours, f"{name}: no function {function['name']!r}")
        for key in ("self", "total"):
            difference = abs(ours[key] - function[f"{key}_ns"])
            check(difference <= TOLERANCE_NS, f"{name}: {key} of {function['name']}: {ours[key]}, expected "
                  f"{function[f'{key}_ns']}")


def chunks():
    """(directory, number, path of what is expected) of every request that carries one V2 chunk."""
    for path in sorted((REAL / "expected").glob("*.vroom.json*")):
        directory, number = path.name.split(".vroom.json")[0].rsplit(".", 1)
        if directory.endswith("-v1") or "wsgi" in directory:  # bound to transactions, not chunks
            continue
        yield directory, number, path


@case
def top_by_thread_agrees_with_the_backend_on_every_real_chunk():
    if not REAL.exists():
        skip(f"{REAL} is not here")
    count = 0
    with tempfile.TemporaryDirectory() as name:
        for directory, number, path in chunks():
            found = top_by_thread(body_of(pathlib.Path(name), number, directory))
            for thread, wanted in read_expected(path)["threads"].items():
                check(thread in found or not wanted["functions"], f"{path.name}: no thread {thread}")
                if thread in found:
                    check_thread(f"{path.name} thread {thread}", found[thread], wanted)
            count += 1
    check(count > 20, f"only {count} chunks were found")


main()
