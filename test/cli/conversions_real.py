"""Whether every conversion of every real profile keeps the time of each function (FMT-4, FMT-11, ENV-1): captured requests
of Sentry's clients against their own JSON, other files against what `offbeat top` says of them (test/cli/real.py and
pprof_peer.py hold that against other readers), each in every value that it has. Arguments: the program; how many files,
taken at random, or "all". SPDX-License-Identifier: MIT"""
import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import random
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from fixtures import REAL  # noqa: E402
from function_times import JITTER, TARGETS, check_all, converted, of_payload, payloads_of, run  # noqa: E402
from pprof_readers import CheckedFolder  # noqa: E402
from tap import Failed, case, check, main  # noqa: E402

COUNT = sys.argv[2]
SEED = int(os.environ.get("OFFBEAT_SEED", random.randrange(1 << 32)))
OTHERS = ("cpuprofile/*.cpuprofile", "pprof/*/*.pb.gz", "pprof/*/*.txt", "jfr/*.collapsed", "gperftools/*.cpu",
          "gperftools/*.heap", "perf/*.script.txt")

unpacked = tempfile.TemporaryDirectory()


def unpack():
    for path in sorted((REAL / "envelopes").glob("*.tar.gz")):
        folder = pathlib.Path(unpacked.name) / path.name.removesuffix(".tar.gz")
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                if member.isfile():
                    folder.mkdir(exist_ok=True)
                    (folder / pathlib.Path(member.name).name).write_bytes(archive.extractfile(member).read())


def requests():
    folders = [REAL / "envelopes", pathlib.Path(unpacked.name)]
    return sorted(path for folder in folders for path in folder.glob("*/*.raw"))


def payloads_in(path):
    """The profiles that a request holds; none if it is no envelope."""
    plain = path.with_suffix(".body") if path.with_suffix(".body").exists() else path
    plain = plain.read_bytes()
    try:
        plain = gzip.decompress(plain) if plain[:2] == b"\x1f\x8b" else plain
        return [payload for payload in payloads_of(plain.decode()) if "profile" in payload]
    except (ValueError, KeyError, UnicodeDecodeError):
        return []


def chosen(paths):
    if COUNT == "all":
        return paths
    print(f"# OFFBEAT_SEED={SEED}")
    return random.Random(SEED).sample(paths, min(int(COUNT), len(paths)))


def check_request(path):
    """How many conversions were compared."""
    payloads = payloads_in(path)
    if len(payloads) != 1:
        return 0
    payload = payloads[0]
    with CheckedFolder() as folder:
        # Times have microseconds in V2.
        least = 2e-6 * (len(payload["profile"]["samples"]) + 1)
        return check_all(path, of_payload(payload), 1e-6, least, pathlib.Path(folder))


UNITS = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1}


def check_file(path):
    """What is no time is compared as it is, and not written for Sentry."""
    top = json.loads(run("top", "--json", "--all-frames", path).stdout)
    unit = UNITS.get(top["sample_type"]["unit"])
    scale = unit or 1
    expected = collections.Counter({row["name"]: row["self"] * scale for row in top["functions"] if row["self"]})
    # The readers take numbers for nanoseconds, and Firefox's for milliseconds; pprof keeps its units.
    scales = {"pprof": scale * 1e9} | ({} if unit else {"collapsed": 1e9, "speedscope": 1e9, "firefox": 1e3})
    targets = tuple(TARGETS) if unit else tuple(scales)
    with CheckedFolder() as folder:
        return check_all(path, expected, JITTER if unit else 1e-6, 0.02 if unit else 0.5, pathlib.Path(folder), targets, scales)


def check_each(paths, check_one):
    """All of them, so that one run names all that is wrong."""
    failed, count = [], 0

    def tried(path):
        try:
            return check_one(path), None
        except Failed as why:
            return 0, f"{path.relative_to(path.parents[1])}: {why}"

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for compared, why in pool.map(tried, paths):
            count += compared
            failed += [why] if why else []
    print(f"# {len(paths)} files, {count} conversions compared")
    check(not failed, f"{len(failed)} files differ:\n" + "\n".join(failed))
    return count


@case
def captured_requests_keep_the_time_of_each_function():
    check_each(chosen([path for path in requests() if len(payloads_in(path)) == 1]), check_request)


@case
def profiles_of_other_tools_keep_the_time_of_each_function():
    check_each(chosen(sorted(path for pattern in OTHERS for path in REAL.glob(pattern))), check_file)


@case
def every_envelope_that_is_written_is_valid_ENV_1():
    def check_valid(path):
        written = 0
        with CheckedFolder() as name:
            for target in ("envelope", "envelope-v1"):
                for output in converted(path, target, pathlib.Path(name))[0]:
                    written += 1
                    done = run("validate", output, may_fail=True)
                    check(done.returncode == 0, f"{path} to {target}: {done.stdout}")
        return written

    check_each(chosen([path for path in requests() if payloads_in(path)]), check_valid)


unpack()
main()
