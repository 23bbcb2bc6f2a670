"""Runs one program in one form (bare, recorded, with the SDK preloaded, ...) in folders that are empty before, and keeps all that
another program or a person could see of it. SPDX-License-Identifier: MIT"""
import contextlib
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from server import FakeServer  # noqa: E402
from recording_figures import cpu_seconds  # noqa: E402

TIMEOUT_SECONDS = 180
NOBODY = 65534
DSN_KEY = "0123456789abcdef0123456789abcdef"
BUILT = ("offbeat", "offbeat-helper", "liboffbeat.so")


RECORDED = ("record", "timed")


@dataclasses.dataclass(frozen=True)
class Form:
    kind: str  # bare, record, timed (recorded, and the shell says what CPU time it took), sdk, dead (the DSN's port is closed)
    user: str  # root, nobody
    mode: str = "wall"
    hz: int = 101

    def __str__(self):
        more = f" {self.mode} {self.hz} Hz" if self.kind in RECORDED else ""
        return f"{self.kind}{more} as {self.user}"


SAME_FORMS = (
    Form("record", "root", "wall", 101), Form("record", "root", "cpu", 997), Form("sdk", "root"), Form("dead", "root"),
    Form("record", "nobody", "wall", 997), Form("record", "nobody", "cpu", 101), Form("sdk", "nobody"), Form("dead", "nobody"),
)
QUICK_FORMS = (Form("record", "root", "cpu", 997), Form("record", "nobody", "wall", 997), Form("sdk", "root"), Form("dead", "nobody"))
MEASURED_FORMS = (Form("timed", "root", "cpu", 997), Form("timed", "nobody", "cpu", 997))


@dataclasses.dataclass
class Outcome:
    status: int           # exit status, or minus the signal
    stdout: bytes
    stderr: bytes
    files: dict           # {path: (kind and mode, content)}
    own_lines: list       # what `offbeat record` printed
    cpu_seconds: float    # user + system, of the program and all children that it waited for; timed: without the sampler's
    seconds: float
    recordings: tuple = ()  # what `offbeat info` says of each
    profile_cpu_seconds: float = 0
    is_profiled: bool = True  # SDK: the server received a chunk, or one waits in the spool


class Stage:
    """The programs under test and the inputs, in a folder that every user can read: the build folder may be private."""

    def __init__(self, build, folder):
        self.folder, self.build = pathlib.Path(folder), pathlib.Path(build)
        self.folder.chmod(0o755)
        self.offbeat, self.inputs = self.folder / "offbeat", self.folder / "input"
        self.inputs.mkdir()
        for name in BUILT:
            shutil.copy(self.build / name, self.folder / name)
            (self.folder / name).chmod(0o755)

    @property
    def library(self):
        return self.folder / "liboffbeat.so"

    def info(self, paths):
        """What `offbeat info` knows of each of PATHS."""
        done = subprocess.run([self.offbeat, "info", "--json", *paths], capture_output=True, check=False, timeout=TIMEOUT_SECONDS)
        return [json.loads(line) for line in done.stdout.splitlines()]


class Folders:
    """Three folders that the program may write to, always at the same paths, and one for what belongs to the form."""

    def __init__(self, stage, name):
        self.top = stage.folder / name
        self.work, self.home, self.scratch, self.own = (self.top / part for part in ("work", "home", "scratch", "own"))

    def make(self, user):
        shutil.rmtree(self.top, ignore_errors=True)
        self.top.mkdir(mode=0o755)
        for folder in (self.work, self.home, self.scratch, self.own):
            folder.mkdir(mode=0o755)
            if user == "nobody":
                os.chown(folder, NOBODY, NOBODY)

    def files(self, ignored):
        """{path: (kind and mode, content)} of all that the program left."""
        found = {}
        for folder in (self.work, self.home, self.scratch):
            for path in sorted(folder.rglob("*")):
                name = str(path.relative_to(self.top))
                if not any(fnmatch.fnmatch(name, pattern) for pattern in ignored):
                    found[name] = describe_file(path)
        return found


def describe_file(path):
    status = path.lstat()
    mode = stat.filemode(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return mode, os.readlink(path)
    return mode, path.read_bytes() if stat.S_ISREG(status.st_mode) else b""


def environment(stage, folders, program):
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(folders.home), "TMPDIR": str(folders.scratch), "LANG": "C.UTF-8",
            "INPUT": str(stage.inputs), "BUILD": str(stage.build), "USER": "somebody", "PORT": str(program.port)}


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def sdk_environment(stage, folders, dsn):
    return {"LD_PRELOAD": str(stage.library), "OFFBEAT_DSN": dsn, "OFFBEAT_CACHE_DIRECTORY": str(folders.own / "cache"),
            "OFFBEAT_SPOOL_DIRECTORY": str(folders.own / "spool"),
            "OFFBEAT_PROFILE_SESSION_SAMPLE_RATE": "1", "OFFBEAT_START_PROFILER_ON_APP_START": "1"}


def as_user(user, variables):
    """The words before a command. The environment is set last, so that nothing is preloaded into these."""
    become = ["/usr/bin/setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"] if user == "nobody" else []
    return [*become, "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items())]


def command_of(stage, folders, form, script):
    shell = ["/bin/sh", "-e", "-c", script]
    if form.kind not in RECORDED:
        return shell
    if form.kind == "timed":
        shell = ["/bin/bash", "-c", '"$@"; status=$?; times >times; exit $status', "bash", *shell]  # dash says it in hundredths
    return [str(stage.offbeat), "record", "--mode", form.mode, "-F", str(form.hz), "-o", str(folders.own / "x.pb.gz"), "--", *shell]


def wait(process, deadline):
    """(status, resource usage, seconds); None for the status if the time is over."""
    start = time.monotonic()
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_utime + usage.ru_stime, time.monotonic() - start
        if time.monotonic() > deadline:
            return None, 0, 0
        time.sleep(0.005)


def where_it_hangs(group):
    """One line for each process of the session GROUP: what it is, and which system call it waits in."""
    lines = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == group:
                for task in (entry / "task").iterdir():
                    lines.append(f"{entry.name}/{task.name} {(task / 'comm').read_text().strip()} {fields[0]} "
                                 f"wchan {(task / 'wchan').read_text()} call {(task / 'syscall').read_text().strip()}")
    return "\n".join(lines)


def kill_remaining(folders):
    """Ends what works in FOLDERS still: daemons have left the session."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if pathlib.Path(os.readlink(entry / "cwd")).is_relative_to(folders.top):
                os.kill(int(entry.name), signal.SIGKILL)


def execute(command, folders, user, variables):
    """(status, stdout, stderr, CPU seconds, seconds)"""
    out, err = folders.own / "stdout", folders.own / "stderr"
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process = subprocess.Popen([*as_user(user, variables), *command], cwd=folders.work, stdin=subprocess.DEVNULL,
                                   stdout=out_file, stderr=err_file, start_new_session=True)
        status, cpu, seconds = wait(process, time.monotonic() + TIMEOUT_SECONDS)
        hanging = where_it_hangs(process.pid) if status is None else ""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        kill_remaining(folders)
        if status is None:
            process.wait()
            raise TimeoutError(f"not ended after {TIMEOUT_SECONDS} s:\n{hanging}\n{err.read_bytes()[-2000:].decode(errors='replace')}")
    return status, out.read_bytes(), err.read_bytes(), cpu, seconds


def split_own_lines(stderr):
    """(what the program wrote, what `offbeat record` wrote)"""
    lines = stderr.splitlines(keepends=True)
    own = [line.decode(errors="replace").strip() for line in lines if line.startswith(b"offbeat: ")]
    return b"".join(line for line in lines if not line.startswith(b"offbeat: ")), own


def start_variables(stage, folders, form, server):
    """What the form adds to the environment."""
    if form.kind == "sdk":
        return sdk_environment(stage, folders, server.dsn)
    if form.kind == "dead":
        return sdk_environment(stage, folders, f"http://{DSN_KEY}@127.0.0.1:{closed_port()}/42")
    if form.kind in RECORDED:
        return {"OFFBEAT_CACHE_DIRECTORY": str(folders.own / "cache")}
    return {}


def prepare(stage, folders, program, user):
    folders.make(user)
    if program.prepare:
        status, _, err, _, _ = execute(["/bin/sh", "-e", "-c", program.prepare], folders, user, environment(stage, folders, program))
        if status:
            raise RuntimeError(f"cannot prepare {program.name}: status {status}: {err.decode(errors='replace')}")


def has_spooled(spool):
    """Whether a chunk waits in SPOOL, or a recording from which the next launch makes one."""
    return any(path.is_file() and path.name != "this.session" for path in spool.glob("*/**/*"))


def shell_seconds(times):
    """What the shell's `times` says of itself and of the children that it waited for."""
    return sum(60 * float(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", times))


def run_form(stage, program, form):
    """The Outcome of PROGRAM in FORM. Raises TimeoutError if it hangs."""
    folders = Folders(stage, program.name)
    prepare(stage, folders, program, form.user)
    with FakeServer() as server:
        variables = {**environment(stage, folders, program), **start_variables(stage, folders, form, server)}
        status, out, err, cpu, seconds = execute(command_of(stage, folders, form, program.script), folders, form.user, variables)
    err, own_lines = split_own_lines(err) if form.kind in RECORDED else (err, [])
    outcome = Outcome(status, out, err, folders.files(program.ignored_files), own_lines, cpu, seconds)
    if form.kind in ("sdk", "dead"):
        outcome.is_profiled = bool(server.chunks) or has_spooled(folders.own / "spool")
    recording = folders.own / "x.pb.gz"
    outcome.recordings = tuple(stage.info([recording])) if recording.exists() else ()
    if form.kind == "timed" and outcome.recordings:
        sampler = sum(info["recorder"]["sampler_cpu_ns"] for info in outcome.recordings) / 1e9
        outcome.cpu_seconds = shell_seconds((folders.work / "times").read_text()) - sampler
        outcome.profile_cpu_seconds = cpu_seconds(recording)
    shutil.rmtree(folders.top, ignore_errors=True)
    return outcome


# --- comparing -------------------------------------------------------------------------------------------------------

def normalise(data, varies):
    for pattern, replacement in varies:
        data = re.sub(pattern.encode(), replacement.encode(), data)
    return data


def first_difference(bare, other):
    """The first line that differs, of each."""
    if isinstance(bare, bytes) and isinstance(other, bytes):
        left, right = bare.splitlines(), other.splitlines()
        for one, two in zip(left, right):
            if one != two:
                return f"{one[:200]!r} is {two[:200]!r}"
        return f"{len(left)} lines are {len(right)}: {(left[len(right):] or right[len(left):])[:3]!r}"
    return f"{bare!r} is {other!r}"


def differences(program, bare, other):
    """What of OTHER is not as in BARE: one line each."""
    found = []
    if bare.status != other.status:
        found.append(f"exit status {bare.status} is {other.status}")
    for name in ("stdout", "stderr"):
        left, right = (normalise(getattr(outcome, name), program.varies) for outcome in (bare, other))
        if left != right:
            found.append(f"{name}: {first_difference(left, right)}")
    for name in sorted(set(bare.files) | set(other.files)):
        if name not in other.files or name not in bare.files:
            found.append(f"file {name} is {'missing' if name in bare.files else 'new'}")
        else:
            (mode, content), (other_mode, other_content) = bare.files[name], other.files[name]
            if isinstance(content, bytes) and isinstance(other_content, bytes):
                content, other_content = normalise(content, program.varies), normalise(other_content, program.varies)
            if mode != other_mode or content != other_content:
                found.append(f"file {name}: {mode} {other_mode} {first_difference(content, other_content)}")
    return found
