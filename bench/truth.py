"""Profiles of programs that measure themselves, beside what they measured. SPDX-License-Identifier: MIT"""
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from common import environment, table

SOURCES = pathlib.Path(__file__).resolve().parent / "truth"
LIBRARIES = {"constructors_library", "plugin_a", "plugin_b"}
# root: perf timers; user: an ordinary user, perf timers for user code; denied: the same under a filter that denies perf.
USERS = ("root", "user", "denied")
NOBODY = 65534
KERNEL_TICK_HZ = 1 / time.clock_getres(6)  # CLOCK_MONOTONIC_COARSE
TIMEOUT_SECONDS = 120
POINTS_OF_MANY, MANY = 2.0, 10000
# Programs that fill both processors with threads: they run alone and for longer, and their shares may be 3 points off.
CROWD, CROWD_POINTS, CROWD_SECONDS = "many_threads", 3.0, 6
# Their stacks are larger than what a perf timer copies: the threads' CPU clocks ask for them, as without perf events.
LARGE_STACKS = {"deep_stacks", "large_frames"}
POINTS_OF_ALL = {"wall": 1.0, "cpu": 2.0}

# A rate other than 101 Hz only makes the bound narrower.
CASES = [
    ("alternate_stack", 499),
    ("bursts_cpu 500 1000 20 10000", 101),
    ("constructors", 499),
    ("coroutine_sleeps", 101),
    ("deep_stacks", 499),
    ("dlopen_same_layout", 499),
    ("futex_ping_pong 50", 499),
    ("in_step 101", 101),
    ("in_step 202", 101),
    ("large_frames", 499),
    ("long_calls", 101),
    ("long_calls", 499),
    ("lockstep 101", 101),
    ("lockstep 50.5", 101),
    ("lockstep 202", 101),
    ("lockstep 100", 100),
    ("many_threads 16", 101),
    ("many_threads 60", 101),
    ("many_threads 220", 101),
    ("many_threads 1000", 101),
    ("poll_timeouts", 101),
    ("short_processes spawn 5000", 101),
    ("short_processes spawn 20000", 101),
    ("short_processes fork 5000", 101),
    ("short_processes fork 15000", 101),
    ("short_processes fork 50000", 101),
    ("short_threads 200", 101),
    ("short_threads 1000", 101),
    ("short_threads 3000", 101),
    ("short_user_code 5 32768", 499),
    ("short_user_code 20 32768", 499),
    ("short_user_code 50 32768", 499),
    ("short_user_code 100 32768", 499),
    ("smallest_alternate_stack", 101),
    ("stack_switch", 499),
    ("text_remapped 0", 499),
    ("text_remapped 1", 499),
    ("thread_names", 499),
    ("two_functions", 101),
    ("vfork_clone", 499),
    ("waits_in_calls", 499),
    ("wakes_in_calls", 997),
]

# What the kernel keeps from users who may not use all perf events, in the words of record, by program. Such rows are wrong all the same.
WAITS = "waits for a processor that are shown where the threads ran"
LIMITS = {
    "futex_ping_pong": WAITS,
    "many_threads": WAITS,
    "short_user_code": "short stretches of user code are attributed to the following system calls",
    "smallest_alternate_stack": "stacks too small for it",
}


class Row:
    """One name of one recording."""

    def __init__(self, name, truth, profile, bound, unit="%"):
        self.name, self.truth, self.profile, self.bound, self.unit = name, truth, profile, bound, unit
        self.error = profile - truth
        self.is_announced = False  # record said that the kernel's limits make such rows wrong

    @property
    def is_right(self):
        return abs(self.error) <= self.bound

    def cells(self):
        result = "ok" if self.is_right else "said" if self.is_announced else "NO"
        if self.unit != "%":
            return [self.name, f"{self.truth}", f"{self.profile}{self.unit}", f"{self.error:+d}", f"{self.bound}", result]
        return [self.name, f"{self.truth:.1f}", f"{self.profile:.1f}", f"{self.error:+.1f}", f"{self.bound:.1f}", result]


class Truth:
    """What a program, with all processes and threads of it, said of itself."""

    def __init__(self, lines, mode):
        self.functions, self.threads, self.never = collections.Counter(), collections.Counter(), []
        kinds = {"TRUTH": self.functions, "THREAD": self.threads}
        for line in lines:
            words = line.split()
            if len(words) == 4 and words[0] in kinds:
                kinds[words[0]][words[1]] += float(words[2 if mode == "wall" else 3])
            elif len(words) == 4 and words[0] == "NEVER":
                self.never.append((words[1], int(words[2]), int(words[3])))
        self.all = self.functions.pop("(all)", 0)


class Profile:
    """What `offbeat top` and `offbeat raw` say of a recording, in seconds."""

    def __init__(self, offbeat, path, folder):
        whole = report(offbeat, path, folder, "--all-frames")
        self.all = whole["total"] / 1e9
        self.functions = {function["name"]: function["total"] / 1e9 for function in whole["functions"]}
        self.threads = collections.Counter()
        for name, nanoseconds in named_samples(offbeat, path, folder):
            self.threads[name] += nanoseconds / 1e9


def report(offbeat, path, folder, option):
    done = subprocess.run([offbeat, "top", "--json", option, path], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def named_samples(offbeat, path, folder):
    """(name of the thread, nanoseconds) of each sample: a line of values and locations, and the lines of its labels."""
    done = subprocess.run([offbeat, "raw", path], cwd=folder, capture_output=True, text=True, check=True)
    nanoseconds = 0
    for line in done.stdout.splitlines():
        values = re.match(r" *\d+ +(\d+)[ :]", line)
        nanoseconds = int(values[1]) if values else nanoseconds
        name = re.search(r"\bthread:\[([^]]*)\]", line)
        if name:
            yield name[1], nanoseconds


def is_crowd(job):
    return job[0].startswith(CROWD)


def bound_points(share, count, points_of_many):
    """Of a share that COUNT samples estimate: three standard deviations."""
    if count > MANY:
        return points_of_many
    share = min(max(share, 1 / count), 1 - 1 / count)
    return 300 * math.sqrt(share * (1 - share) / count)


def share_rows(truths, profiles, truth, profile, job):
    command, rate, _, user = job
    if user == "denied" or command in LARGE_STACKS:
        rate = min(rate, KERNEL_TICK_HZ)
    points = CROWD_POINTS if is_crowd(job) else POINTS_OF_MANY
    for name, seconds in truths.items():
        share = seconds / truth.all
        found = profiles.get(name, 0) / profile.all if profile.all else 0
        yield Row(name, 100 * share, 100 * found, bound_points(share, max(profile.all * rate, 2), points))


def says_limit(job, lines):
    """Whether record named the limit of the kernel that this program is about."""
    limit = LIMITS.get(job[0].split()[0])
    return limit is not None and any(line.startswith("offbeat: ") and limit in line for line in lines)


def compare(truth, profile, job):
    rows = [Row("(all)", 100.0, 100 * profile.all / truth.all, POINTS_OF_ALL[job[2]])]
    rows += share_rows(truth.functions, profile.functions, truth, profile, job)
    threads = {f"thread {name}": seconds for name, seconds in truth.threads.items()}
    rows += share_rows(threads, {f"thread {name}": seconds for name, seconds in profile.threads.items()}, truth, profile, job)
    return rows + [Row(name, 0, count, 0, f" of {of}") for name, count, of in truth.never]


def identity(user):
    """For subprocess.run."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if user != "root" and os.geteuid() == 0 else {}


def without_perf(offbeat, user):
    """Words before a command."""
    return [str(pathlib.Path(offbeat).with_name("sleepers")), "unperfed"] if user == "denied" else []


def run(offbeat, folder, job, seconds, before=()):
    """(path of the profile, the finished process). The path is in a folder that every user may write to."""
    command, rate, mode, user = job
    own = pathlib.Path(tempfile.mkdtemp(dir=folder))
    own.chmod(0o777)
    words = [*before, *without_perf(offbeat, user), offbeat, "record", "-F", str(rate), "--mode", mode, "-o", f"{own}/x.pb.gz", "--", *f"./{command}".split()]
    done = subprocess.run(words, cwd=folder, env=environment(TRUTH_SECONDS=seconds), capture_output=True, text=True, check=False,
                          timeout=TIMEOUT_SECONDS, **identity(user))
    return f"{own}/x.pb.gz", done


def record(offbeat, folder, job, seconds, before=()):
    """The rows of one recording, or a text that says why there are none. BEFORE: words before the command."""
    path, done = run(offbeat, folder, job, seconds, before)
    truth = Truth(done.stderr.splitlines(), job[2])
    if done.returncode != 0 or not truth.all:
        return f"status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    rows = compare(truth, Profile(offbeat, path, folder), job)
    for row in rows:
        row.is_announced = row.unit == "%" and row.name != "(all)" and says_limit(job, done.stderr.splitlines())
    return rows


def compile_programs(folder):
    flags = ["cc", "-g", "-O1", "-pthread"]
    for name in LIBRARIES:
        subprocess.run([*flags, "-shared", "-fPIC", SOURCES / f"{name}.c", "-o", folder / f"{name}.so"], check=True)
    for source in SOURCES.glob("*.c"):
        if source.stem not in LIBRARIES:
            needed = [folder / "constructors_library.so", "-Wl,-rpath,$ORIGIN"] if source.stem == "constructors" else []
            subprocess.run([*flags, source, *needed, "-o", folder / source.stem], check=True)


def copy_offbeat(build, folder):
    """Where every user may go: the folders above the build may be closed to them."""
    copy = folder / "offbeat"
    copy.mkdir()
    for path in build.glob("*offbeat*"):
        if path.is_file():
            shutil.copy2(path, copy / path.name)
    shutil.copy2(build / "bench/sleepers", copy / "sleepers")
    return str(copy / "offbeat")


def users():
    if os.geteuid() == 0:
        return USERS
    print("root: skipped, this user is not root")
    return USERS[1:]


def results(offbeat, folder, jobs, seconds):
    """(job, what record() returns) of each."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        others = [job for job in jobs if not is_crowd(job)]
        yield from zip(others, pool.map(lambda job: record(offbeat, folder, job, seconds), others))
    for job in filter(is_crowd, jobs):
        yield job, record(offbeat, folder, job, max(seconds, CROWD_SECONDS))


def truth(build, seconds=3, names=()):
    """True if every row is right."""
    chosen = [case for case in CASES if not names or any(case[0].startswith(name) for name in names)]
    jobs = [(command, rate, mode, user) for command, rate in chosen for mode in ("wall", "cpu") for user in users()]
    print(f"Programs that measure themselves for {seconds} s: share of their time in % that stacks with NAME have, two at a time")
    print(f"({CROWD}: alone, {max(seconds, CROWD_SECONDS)} s);")
    print(f"root: perf timers; user: an ordinary user; denied: one without perf events, as in a container; bound: 3 sigma, or for over {MANY} samples {POINTS_OF_MANY:g} points "
          f"({CROWD}: {CROWD_POINTS:g}); (all): seconds in the profile; said: wrong, and record named the kernel's limit")
    failed, announced, total = 0, 0, 0
    rows = [["program", "Hz", "mode", "user", "name", "truth", "profile", "error", "bound", ""]]
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        offbeat = copy_offbeat(build, folder)
        compile_programs(folder)
        for job, result in results(offbeat, folder, jobs, seconds):
            head = [job[0], str(job[1]), job[2], job[3]]
            if isinstance(result, str):
                rows.append([*head, result, "", "", "", "", "NO"])
                failed, total = failed + 1, total + 1
                continue
            rows += [[*head, *row.cells()] for row in result]
            wrong = [row for row in result if not row.is_right]
            failed, announced, total = failed + len(wrong), announced + sum(row.is_announced for row in wrong), total + len(result)
    table(rows, texts=5)
    print(f"{total} rows, {failed} wrong, of which record said so of {announced} in its own lines")
    return failed == 0
