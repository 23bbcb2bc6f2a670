"""protoc, Python's protobuf and `go tool pprof` read every pprof file that offbeat writes: of real profiles of all formats,
of names of random bytes, of a program whose threads have such names, and every file that the unit tests write (PPF-1). Other
tests check what they write by the same code (pprof_readers.py). Arguments: the program, then unit tests that write pprof.  SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from fixtures import CONFORMANCE, REAL  # noqa: E402
from pprof_readers import check_readers, contents, missing  # noqa: E402
from pprof_written import Profile, field, varint  # noqa: E402
from tap import Failed, case, check, check_equal, main, skip  # noqa: E402

OFFBEAT, *UNIT_TESTS = sys.argv[1:]
OF_EACH_KIND = 12
SEED = 15


def needs_readers():
    if missing():
        skip(f"not installed: {' '.join(missing())}")


def offbeat(*words):
    done = subprocess.run([OFFBEAT, *map(str, words)], capture_output=True)
    check_equal(done.returncode, 0, f"offbeat {' '.join(map(str, words))}: {done.stderr.decode(errors='replace').strip()}; status")
    return done


def spread(paths, count):
    paths = sorted(paths)
    return paths[::max(1, len(paths) // count)][:count]


def real_files():
    patterns = ("pprof/*/*.pb.gz", "perf/**/*.txt", "cpuprofile/**/*.cpuprofile", "envelopes/*/*.body", "gperftools/**/*")
    found = [path for pattern in patterns for path in spread([path for path in REAL.glob(pattern) if path.is_file()], OF_EACH_KIND)]
    found += [path for path in (ROOT / "test/cli/data").iterdir() if path.suffix != ".py"]
    found += [path for kind in (ROOT / "test/fuzz/corpus").iterdir() for path in spread(kind.iterdir(), OF_EACH_KIND)]
    return found + spread(CONFORMANCE.glob("profiles/*.pb.gz"), OF_EACH_KIND)


@case
def others_read_what_convert_and_merge_write_of_real_profiles():
    needs_readers()
    with tempfile.TemporaryDirectory() as folder:
        written = []
        for number, path in enumerate(real_files()):
            out = pathlib.Path(folder) / f"{number}.pb.gz"
            # what is no profile, or no whole one, is not written
            if subprocess.run([OFFBEAT, "convert", path, "-o", out], capture_output=True).returncode == 0:
                written.append(out)
        check(len(written) >= 30, f"only {len(written)} profiles were written")
        offbeat("merge", *[path for path in spread(written, 4) if b"wall" in contents(path)] or written[:1], "-o", pathlib.Path(folder) / "sum.pb.gz")
        check_readers([*written, pathlib.Path(folder) / "sum.pb.gz"])
        print(f"# {len(written) + 1} files")


def random_bytes(numbers, without=b""):
    """Parts of characters, characters that UTF-8 must not have, and all other bytes."""
    parts = (b"\xe2\x82", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\xaf", b"\xff", "ü".encode("latin-1"), "ü".encode(), bytes([numbers.randrange(1, 256)]))
    text = b"".join(numbers.choice(parts) for _ in range(numbers.randrange(1, 9)))
    return bytes(byte for byte in text if byte not in without) or b"x"


def random_pprof(numbers):
    profile = Profile([(random_bytes(numbers), "nanoseconds")], drop_frames=random_bytes(numbers))
    for _ in range(5):
        labels = [(random_bytes(numbers), random_bytes(numbers)), (random_bytes(numbers), (7, random_bytes(numbers))), ("thread", random_bytes(numbers))]
        profile.add([random_bytes(numbers) for _ in range(3)], [10], labels)
    mapping = field(1, 1) + field(3, 4096) + field(5, profile.string(random_bytes(numbers))) + field(6, profile.string(random_bytes(numbers)))
    profile.body += field(3, mapping) + varint(13 << 3) + varint(profile.string(random_bytes(numbers)))
    return profile.bytes()


def random_collapsed(numbers):
    line = b";".join(random_bytes(numbers, b"\n\r ;") for _ in range(3))
    return b"main;" + line + b" 5\nmain 3\n"


def random_perf(numbers):
    name, symbol, path = (random_bytes(numbers, b"\n\r \t()+[]:") for _ in range(3))
    return b"a" + name + b" 7/9 12.5: 1000000 task-clock:u: \n\t1010 f" + symbol + b"+0x10 (/opt/" + path + b")\n\n"


@case
def others_read_what_offbeat_writes_of_names_of_random_bytes():
    needs_readers()
    numbers = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        written, repaired = [], 0
        for round_number in range(12):
            for kind, write in (("pb", random_pprof), ("collapsed", random_collapsed), ("perf.txt", random_perf)):
                source = pathlib.Path(folder) / f"{round_number}.{kind}"
                out = pathlib.Path(folder) / f"{round_number}.{kind}.pb.gz"
                source.write_bytes(write(numbers))
                offbeat("convert", source, "-o", out)
                repaired += b"\xef\xbf\xbd" in contents(out)
                written.append(out)
        check(repaired >= 24, f"only {repaired} of {len(written)} files have a repaired string: the names are not random enough")
        check_readers(written)
        try:
            check_readers([pathlib.Path(folder) / "0.pb"])
        except Failed:
            return
        raise Failed("the readers take strings that are not UTF-8")


THREADS = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
def run(name):
    libc.prctl(15, ctypes.c_char_p(name), 0, 0, 0)
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        sum(range(1000))
names = NAMES
threads = [threading.Thread(target=run, args=(name,)) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@case
def others_read_a_recording_of_threads_with_names_of_random_bytes():
    needs_readers()
    numbers = random.Random(SEED)
    names = [random_bytes(numbers) for _ in range(4)] + ["vierzehn_Byte_ü€".encode()[:15]]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "threads.pb.gz"
        done = subprocess.run([OFFBEAT, "record", "-o", out, "-q", "--", sys.executable, "-c", THREADS.replace("NAMES", repr(names))], capture_output=True)
        check_equal(done.returncode, 0, done.stderr.decode(errors="replace"))
        info = json.loads(offbeat("info", "--json", out).stdout)
        check(info["samples"] > 0 and b"\xef\xbf\xbd" in contents(out), "no thread has its name of random bytes")
        check_readers([out])


@case
def others_read_what_the_unit_tests_write():
    needs_readers()
    with tempfile.TemporaryDirectory() as folder:
        for program in UNIT_TESTS:
            done = subprocess.run([program], capture_output=True, text=True, env={**os.environ, "OFFBEAT_TEST_PPROF_FOLDER": folder})
            check_equal(done.returncode, 0, f"{program}: {done.stderr}; status")
            check(list(pathlib.Path(folder).glob(f"{pathlib.Path(program).name}-*")), f"{program} wrote no file")
        written = {path.read_bytes(): path for path in sorted(pathlib.Path(folder).iterdir())}
        print(f"# {len(written)} different files")
        check_readers(written.values())


main()
