"""What the end-to-end tests share: running `offbeat`, and reading what it wrote without code of offbeat.
SPDX-License-Identifier: MIT"""
import atexit
import functools
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))

from pprof_fields import pprof_fields  # noqa: E402,F401
from pprof_readers import check_pprof_files  # noqa: E402
from tap import Failed, Skipped, case, case_by_the_clock, check, check_equal, leave_out, long, main, short, skip, some_of, wait_until  # noqa: E402,F401
from times_of_threads import check_folder  # noqa: E402

TIMEOUT_SECONDS = 120


class Folder:
    """A fresh folder for what one case writes; gone when the case ends, after the times of its recordings were checked, and
    whether others read its pprof files."""

    path = None

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="offbeat-test-"))
        self.path.chmod(0o755)
        return self.path

    def __exit__(self, exception=None, *_):
        try:
            if self.path and not exception:
                check_folder(self.path)
                check_pprof_files(self.path)
        finally:
            if self.path:
                shutil.rmtree(self.path, ignore_errors=True)


def run(*command, cwd=None, **options):
    """Runs COMMAND to its end with its output captured as bytes."""
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if options["stdin"] is None:
        del options["stdin"]
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, timeout=TIMEOUT_SECONDS,
                          check=False, **options)


def slowness():
    """How much longer work takes than on an idle machine, at least 1: the wall time of a computation by its CPU time. Limits
    of time are multiplied by it."""
    WORK_SECONDS = 0.1
    began, cpu = time.monotonic(), time.process_time()
    while time.process_time() - cpu < WORK_SECONDS:
        pass
    return max(1, (time.monotonic() - began) / WORK_SECONDS)


def text(data):
    return data.decode("utf-8", errors="replace").strip()


def without_own_line(err):
    """Standard error as the program left it: `record` adds its lines at the end."""
    lines = err.splitlines(keepends=True)
    while lines and lines[-1].startswith(b"offbeat: "):
        lines.pop()
    return b"".join(lines)


def without_losses(lines):
    """Without the lines that a busy machine causes: samples are lost where the sampler gets no processor in time, and threads wait."""
    return [line for line in lines if not re.match(r"offbeat: [\d.]+ % of the (samples are lost|time are waits for a processor)", line)]


class Offbeat:
    """The program under test, in BUILD."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.program = self.build / "offbeat"
        self.programs = self.build / "test/end_to_end"

    @functools.lru_cache(maxsize=None)
    def reachable(self):
        """This build, or a copy of it where every user may go, for programs that run as user_without_rights(): the folders
        above the build may be closed to that user, as root's home is."""
        user = user_without_rights()
        if not user or can_run(user, self.program):
            return self
        folder = reachable_folder(user)
        patterns = ("offbeat*", "liboffbeat.so*", "test/end_to_end/*", "test/safety/*", "test/soak/*", "bench/interruptions")
        for path in [path for pattern in patterns for path in self.build.glob(pattern)]:
            if path.is_file() and os.access(path, os.X_OK):
                copy = folder / path.relative_to(self.build)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)
        run("chmod", "-R", "a+rX", folder)
        return Offbeat(folder)

    def command(self, *words):
        return [str(word) for word in (self.program, *words)]

    def record(self, folder, *command, options=(), prefix=(), **more):
        """Records COMMAND into x.pb.gz and x.envelope in FOLDER, where all other files are written too."""
        more.setdefault("env", {**os.environ, "TMPDIR": str(folder)})
        return run(*prefix, self.program, "record", "-o", "x.pb.gz", "-o", "x.envelope", *options, "--", *command, cwd=folder, **more)

    def answer(self, *words, cwd=None):
        """What `offbeat WORDS --json` says; fails the case if it does not work."""
        done = run(self.program, *words, "--json", cwd=cwd)
        check(done.returncode == 0, f"offbeat {' '.join(map(str, words))} --json: status {done.returncode}: {text(done.stderr)}")
        return json.loads(done.stdout)

    def threads(self, path):
        """[(name, {function: total in nanoseconds}, total of the thread)] of the profile at PATH."""
        answer = self.answer("top", "--by-thread", path)
        return [(thread["name"], {function["name"]: function["total"] for function in thread["functions"]},
                 sum(function["self"] for function in thread["functions"])) for thread in answer["threads"].values()]

    def stacks(self, path, folder):
        """[(frames root first, weight)] of the profile at PATH, by way of the collapsed format."""
        done = run(self.program, "convert", path, "-o", "stacks.collapsed", cwd=folder)
        check(done.returncode == 0, f"offbeat convert: status {done.returncode}: {text(done.stderr)}")
        lines = (folder / "stacks.collapsed").read_text(encoding="utf-8").splitlines()
        return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in lines]


def opens(offbeat, path):
    """The functions of the profile at PATH, which must open and hold at least one sample."""
    check(path.is_file() and path.stat().st_size > 0, f"{path.name} is not there or empty")
    answer = offbeat.answer("top", path)
    check(answer["total"] > 0, f"{path.name} holds no samples")
    return {function["name"]: function["total"] for function in answer["functions"]}


# --- pprof, read with as little as it takes --------------------------------------------------------------------------

def pprof_labels(path):
    """{key: {value, …}} over all samples of the pprof file at PATH."""
    fields = list(pprof_fields(gzip.decompress(path.read_bytes())))
    strings = [value.decode() for number, value in fields if number == 6]
    labels = {}
    for number, sample in fields:
        if number != 2:
            continue
        for sample_number, label in pprof_fields(sample):
            if sample_number == 3:
                parts = dict(pprof_fields(label))
                value = strings[parts[2]] if parts.get(2) else parts.get(3, 0)
                labels.setdefault(strings[parts[1]], set()).add(value)
    return labels


# --- envelopes -------------------------------------------------------------------------------------------------------

def envelope_chunks(path):
    """The payloads of the profile chunks in the envelope at PATH, as objects."""
    data = path.read_bytes()
    _, place = json.loads(data[:data.index(b"\n")]), data.index(b"\n") + 1
    chunks = []
    while place < len(data):
        end = data.index(b"\n", place)
        header = json.loads(data[place:end])
        payload = data[end + 1:end + 1 + header["length"]]
        place = end + 1 + header["length"] + 1
        check_equal(header["type"], "profile_chunk", f"item type in {path.name}")
        chunk = json.loads(payload)
        check_equal(header["platform"], chunk["platform"], f"platform in {path.name}")
        chunks.append(chunk)
    return chunks


def chunk_functions(chunk):
    return {frame.get("function") for frame in chunk["profile"]["frames"]}


# --- an ordinary user ------------------------------------------------------------------------------------------------

def user_without_rights():
    """Options for run() that give up root's rights. The programs of the build must come from OFFBEAT.reachable()."""
    if os.geteuid() != 0:
        return {}
    return {"user": 65534, "group": 65534, "extra_groups": []}


def can_run(user, program):
    return run("sh", "-c", 'test -r "$1" && test -x "$1"', "sh", program, cwd="/", **user).returncode == 0


def reachable_folder(user):
    """A fresh folder that USER reaches, although TMPDIR may be below a closed one; it is removed at exit. Programs that mount
    something over /tmp still find what is in /var/tmp."""
    for parent in ("/var/tmp", None, "/tmp"):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="offbeat-test-", dir=parent))
        atexit.register(shutil.rmtree, folder, True)
        folder.chmod(0o755)
        if can_run(user, folder):
            return folder
    return skip("an ordinary user reaches no folder for temporary files")
