"""Whether others read the pprof files that offbeat writes: protoc, Python's protobuf and `go tool pprof`. The first two are
strict: they reject a file in which one string is not UTF-8 (PPF-1).  SPDX-License-Identifier: MIT"""
import atexit
import functools
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tap import check, check_equal

DATA = pathlib.Path(__file__).resolve().parent / "data"

# Reads the files that its arguments name, with the module that protoc made.
READS = """
import gzip, sys
sys.path.insert(0, sys.argv[1])
import profile_pb2
for path in sys.argv[2:]:
    data = open(path, "rb").read()
    profile = profile_pb2.Profile()
    try:
        profile.ParseFromString(gzip.decompress(data) if data[:2] == b"\\x1f\\x8b" else data)
        if not profile.string_table or profile.string_table[0] != "":
            raise ValueError("the first string is not empty")
        print(path, len(profile.sample))
    except Exception as error:
        sys.exit(f"{path}: {error!r}")
"""


@functools.lru_cache(maxsize=None)
def python_with_protobuf():
    """The interpreter that has the package: Debian's has it, the one that runs the tests need not be Debian's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import google.protobuf"], capture_output=True).returncode == 0:
            return python
    return None


@functools.lru_cache(maxsize=None)
def missing():
    """What must be installed before all three can read, as Debian names it."""
    packages = {"protobuf-compiler": shutil.which("protoc"), "python3-protobuf": python_with_protobuf(), "golang-go": shutil.which("go")}
    return [name for name, found in packages.items() if not found]


@functools.lru_cache(maxsize=None)
def generated():
    folder = tempfile.mkdtemp(prefix="offbeat-test-proto-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(["protoc", f"--python_out={folder}", f"-I{DATA}", "profile.proto"], check=True)
    return folder


def contents(path):
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def check_protoc(path):
    done = subprocess.run(["protoc", f"-I{DATA}", "--decode=perftools.profiles.Profile", "profile.proto"], input=contents(path), capture_output=True)
    check_equal((done.returncode, done.stderr), (0, b""), f"protoc {path}")
    # fields that it does not know are shown by their numbers
    unknown = [line for line in done.stdout.splitlines() if line.split(b":")[0].strip(b" {").isdigit()]
    check(not unknown, f"protoc {path}: {unknown[:1]}")


def check_protobuf(paths):
    """The number of samples of each."""
    done = subprocess.run([python_with_protobuf(), "-c", READS, generated(), *map(str, paths)], capture_output=True, text=True)
    check_equal(done.returncode, 0, f"Python's protobuf: {done.stderr.strip()[-500:]}; status")
    check_equal(len(done.stdout.splitlines()), len(paths), "files that Python's protobuf read")
    return [int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()]


def check_go(path, samples):
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "TZ": "UTC", "HOME": home, "PPROF_TMPDIR": home}
        done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-raw", path], capture_output=True, env=environment)
    if samples == 0 and b"profile has no samples" in done.stderr:
        return  # read, but there is nothing to show
    check_equal(done.returncode, 0, f"go tool pprof {path}: {done.stderr.decode(errors='replace').strip()}; status")


def check_readers(paths):
    """Fails unless all three read each file. The caller has asked missing()."""
    paths = [pathlib.Path(path) for path in paths]
    if not paths:
        return
    for path, samples in zip(paths, check_protobuf(paths)):
        check_protoc(path)
        check_go(path, samples)


def check_pprof_files(folder):
    """For every test that leaves pprof files of offbeat's in FOLDER. Without the tools nothing is checked here; the test
    "pprof readers" says that they are missing."""
    if not missing():
        check_readers(sorted(path for path in pathlib.Path(folder).rglob("*.pb.gz") if path.is_file() and not path.is_symlink()))


class CheckedFolder(tempfile.TemporaryDirectory):
    """A temporary folder in which, at its end, others must read all pprof files."""

    def __exit__(self, exception, *more):
        try:
            if not exception:
                check_pprof_files(self.name)
        finally:
            super().__exit__(exception, *more)
