"""Programs that use liboffbeat, or have it preloaded, behave as the header promises whatever they do: fork, exit in a signal
handler, call from every thread, run with raised privileges. Arguments: the build folder, and optionally a part of the names of the
cases to run. SPDX-License-Identifier: MIT"""
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from server import HANG, FakeServer, answer, items_of, wait_until  # noqa: E402
from recording import ROOT, Folder, Offbeat, case, check, check_equal, leave_out, main, run, skip, slowness, text  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BUILD = Offbeat(sys.argv[1]).reachable().build  # some programs change their user
LIBRARY = BUILD / "liboffbeat.so"
OWN_SANITIZER = b"libasan" in run("ldd", LIBRARY).stdout
NOBODY_LISTENS = "http://0123456789abcdef0123456789abcdef@127.0.0.1:9/1"
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
PROMISED_SECONDS = 2 + 3  # shutdown_timeout_ms by default, and what the header grants for storing the rest
SLACK_SECONDS = 3         # on an idle machine


def program(name):
    return BUILD / "test/safety" / f"safety_{name}"


def variables(folder, dsn=NOBODY_LISTENS, **more):
    return {"PATH": os.environ["PATH"], "OFFBEAT_INVARIANTS": "abort", "HOME": str(folder), "TMPDIR": str(folder), "OFFBEAT_DSN": dsn,
            "XDG_STATE_HOME": str(folder / "state"),
            **{name: str(value) for name, value in more.items()}}


def ends_well(name, *arguments, repeat=1, **more):
    for _ in range(repeat):
        with Folder() as folder:
            done = run(program(name), *arguments, cwd=folder, env=variables(folder, **more))
            check_equal(done.returncode, 0, f"status of {name} {arguments}: {text(done.stdout + done.stderr)[-500:]}")
    return done


# --- Forks -----------------------------------------------------------------------------------------------------------

@case
def a_child_forked_while_other_threads_trace_does_not_hang():
    ends_well("fork_with_spans", 2, 300)
    ends_well("fork_with_spans", 8, 100, "paused")


@case
def a_child_forked_anywhere_in_the_library_does_not_hang():
    ends_well("fork_anywhere", 4)


@case
def a_child_made_without_fork_handlers_ends_at_once():
    """A child that waited for the threads of its parent would take TIMEOUT_SECONDS."""
    TIMEOUT_SECONDS = 30
    for arguments, more in (((), {}), (("preloaded",), {"LD_PRELOAD": LIBRARY})):
        with FakeServer() as server:
            lines = text(ends_well("raw_fork_exit", *arguments, OFFBEAT_DSN=server.dsn, OFFBEAT_SHUTDOWN_TIMEOUT_MS=1000 * TIMEOUT_SECONDS,
                                   **more).stdout).splitlines()
        seconds = [float(line.split("took ")[1].split()[0]) for line in lines]
        check(max(seconds) < TIMEOUT_SECONDS / 2, f"{arguments}: {lines}")


# --- Threads ---------------------------------------------------------------------------------------------------------

@case
def every_function_may_be_called_before_init():
    ends_well("calls_before_init", repeat=12)


@case
def every_function_may_be_called_from_any_thread_at_any_time():
    check_equal(text(ends_well("whole_api_many_threads", 5).stdout), "lived", "output")


@case
def the_librarys_thread_takes_nothing_from_the_programs_malloc():
    """glibc would reserve 64 MB for it, and a thread that exits in the middle of malloc may hold a lock that it needs."""
    if OWN_SANITIZER:
        leave_out("the library has a sanitizer, which follows its memory")
    watched = {"LD_PRELOAD": BUILD / "test/safety/safety_watches_malloc.so"}
    done = ends_well("whole_api_many_threads", 3, **watched)
    check_equal((text(done.stdout), text(done.stderr)), ("lived", ""), "output")
    with FakeServer() as server:
        ends_well("outlives_leader", OFFBEAT_DSN=server.dsn, LD_PRELOAD=f"{watched['LD_PRELOAD']}:{LIBRARY}", OFFBEAT_CHUNK_SECONDS=1,
                  OFFBEAT_SHUTDOWN_TIMEOUT_MS=60000)
        check(server.chunks, "the library sent nothing")


@case
def the_library_starts_while_another_thread_fails_to_exec():
    """The kernel denies each new thread as long as another thread of the process is in execve."""
    with Folder() as folder:
        file = folder / "not_a_program"
        file.write_bytes(bytes(16))
        file.chmod(0o755)
        for _ in range(4):  # few of the 50 threads meet an execve, and on a busy machine sometimes none does
            done = run(program("exec_fails"), file, 50, cwd=folder, env=variables(folder))
            check_equal((done.returncode, text(done.stderr)), (0, ""), "status and standard error")
            denied_execs, denied_threads = map(int, text(done.stdout).split())
            check(denied_execs > 1000, f"only {denied_execs} calls of execve failed")
            if denied_threads > 0:
                return
        check(False, "the kernel denied no thread: this case shows nothing")


@case
def no_two_threads_race_in_the_library():
    for name, *arguments in (("whole_api_many_threads", 10), ("calls_before_init",)):
        if not program(name + "_tsan").is_file():
            skip("the compiler has no TSan")
        # Status 66: TSan saw a race.
        done = ends_well(name + "_tsan", *arguments, TSAN_OPTIONS="exitcode=66 halt_on_error=0")
        check("WARNING: ThreadSanitizer" not in text(done.stderr), text(done.stderr)[:3000])


@case
def programs_with_sanitizers_end_and_print_as_without_a_server():
    """The library has none: MemorySanitizer knows nothing of what it writes, and the others see its threads and its memory."""
    if not shutil.which("clang-14"):
        skip("clang-14 is not installed")
    if OWN_SANITIZER:
        leave_out("a program has one sanitizer")
    with Folder() as folder:
        for sanitizer in ("memory", "thread", "address", "leak"):
            built = run("clang-14", "-O1", "-g", f"-fsanitize={sanitizer}", f"-I{ROOT}/include", HERE / "sanitized.c", "-pthread", LIBRARY,
                        f"-Wl,-rpath,{BUILD}", "-o", folder / sanitizer)
            check_equal(built.returncode, 0, text(built.stderr))
            with FakeServer() as server:
                bare = run(folder / sanitizer, cwd=folder, env={**variables(folder), "OFFBEAT_DSN": ""})
                done = run(folder / sanitizer, cwd=folder, env=variables(folder, server.dsn, OFFBEAT_SHUTDOWN_TIMEOUT_MS=60000))
            check_equal((done.returncode, done.stdout), (bare.returncode, bare.stdout), f"with {sanitizer}: {text(done.stderr)}")
            check_equal((bare.returncode, text(done.stderr)), (7, ""), f"status without a server, and what {sanitizer} says")
            check(server.bodies, f"nothing is sent with {sanitizer}")


# --- The end ---------------------------------------------------------------------------------------------------------

def limit_of_the_end():
    return PROMISED_SECONDS + SLACK_SECONDS * slowness()


def seconds_to_end(folder, name, number, **more):
    """Starts NAME, sends the signal NUMBER after a while, and returns how long the end took, and the status."""
    child = subprocess.Popen([program(name)], cwd=folder, env=variables(folder, **more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.4)
    began = time.monotonic()
    child.send_signal(number)
    try:
        status = child.wait(limit_of_the_end())
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        status = "killed: it hangs"
    return time.monotonic() - began, status


def handles_term(child):
    for line in pathlib.Path(f"/proc/{child.pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("SigCgt:"):
            return int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1 == 1
    return False


HANGS_AFTER_SECONDS = 90  # many times what the end may take, however busy the machine is


def statuses_of_exits(count, call, threads, dsn, user):
    """Ends COUNT programs, which run at the same time, in the middle of CALL. None is the status of one that hangs."""
    with Folder() as folder:
        folder.chmod(0o777)
        children = [subprocess.Popen([program("exit_in_handler"), call, str(threads)], cwd=folder, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, env=variables(folder, dsn, LD_PRELOAD=LIBRARY), **user) for _ in range(count)]
        for child in children:
            check(wait_until(lambda child=child: handles_term(child), 60), "a program does not begin")
        time.sleep(0.1 + random.random() * 0.3)
        for child in children:
            child.send_signal(signal.SIGTERM)
        statuses, until = [], time.monotonic() + HANGS_AFTER_SECONDS
        for child in children:
            try:
                statuses.append(child.wait(max(0.1, until - time.monotonic())))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                statuses.append(None)
        return statuses


@case
def exit_in_a_handler_ends_in_time_whatever_it_interrupted():
    """200 programs for each call, user and server with OFFBEAT_TEST_LONG. In dlopen a program without the library hangs, too (3 of 2800, and
    8 of 400 with threads): in exit's lock, which dlclose holds, and in the loader's, whose owner is not noted while it is unlocked. It ends
    with status 127 if the loader has changed its list of libraries and not yet their number."""
    is_long = "OFFBEAT_TEST_LONG" in os.environ
    rounds, at_once = (25, 8) if is_long else (1, 2)
    with FakeServer() as answers, FakeServer(default=answer(403, "no")) as refuses, FakeServer(default=HANG) as hangs:
        dsns = {"answers": answers.dsn, "refuses": refuses.dsn, "away": NOBODY_LISTENS, "slow": hangs.dsn}
        for server, dsn in dsns.items() if is_long else [("away", NOBODY_LISTENS)]:
            for user in (NOBODY, {}) if os.geteuid() == 0 else ({},):
                for call, threads in (("malloc", 0), ("malloc", 2), ("printf", 0), ("printf", 2), ("dlopen", 0)):
                    statuses = [status for _ in range(rounds) for status in statuses_of_exits(at_once, call, threads, dsn, user)]
                    what = f"statuses in {call}, {threads} threads, {server}, {user}"
                    of_loader = statuses.count(None) + statuses.count(127) if call == "dlopen" else 0
                    check(of_loader <= 1 + len(statuses) // 50, f"{what}: {statuses}")
                    check_equal(statuses.count(0), len(statuses) - of_loader, f"{what}: {statuses}")
        hangs.released.set()


@case
def exit_in_a_handler_that_interrupted_the_library_ends_in_time():
    for _ in range(8):
        with Folder() as folder:
            seconds, status = seconds_to_end(folder, "exit_in_span", signal.SIGTERM)
            check_equal(status, 0, f"status after {seconds:.1f} s")


@case
def exit_while_other_threads_trace_or_exit_ends_within_the_promised_time():
    for name in ("exit_while_spans", "exit_twice"):
        began = time.monotonic()
        ends_well(name)
        seconds = time.monotonic() - began
        check(seconds < limit_of_the_end(), f"{name} took {seconds:.1f} s")


@case
def a_program_whose_sampler_ended_before_it_does_not_wait_at_its_end():
    with Folder() as folder:
        done = run(program("raw_filter"), cwd=folder, env=variables(folder, LD_PRELOAD=LIBRARY, OFFBEAT_SHUTDOWN_TIMEOUT_MS=5000, OFFBEAT_DEBUG=1))
        check_equal(done.returncode, 0, text(done.stderr))
        check("was not stored" not in text(done.stderr), f"it waited until the timeout: {text(done.stderr)}")


@case
def what_was_sampled_is_sent_although_exit_interrupted_malloc():
    with Folder() as folder, FakeServer() as server:
        _, status = seconds_to_end(folder, "exit_in_handler", signal.SIGTERM, LD_PRELOAD=LIBRARY, OFFBEAT_DSN=server.dsn,
                                   OFFBEAT_SHUTDOWN_TIMEOUT_MS=6000)
        check_equal(status, 0, "status")
        check_equal(len(server.chunks), 1, "chunks")


# --- Programs that need a process of one thread, change their rights or confine themselves ----------------------------

def preloaded(folder, dsn=NOBODY_LISTENS, **more):
    return variables(folder, dsn, LD_PRELOAD=LIBRARY, OFFBEAT_CACHE_DIRECTORY=folder / "cache", **more)


def check_as_bare(*command, repeat=3, mode=0o777, **more):
    """Status, output and standard error are the same with and without the library. MODE is that of the folder for everything."""
    if not shutil.which(command[0]):
        skip(f"{command[0]} is not installed")
    for _ in range(repeat):
        with Folder() as folder:
            folder.chmod(mode)
            (folder / "cache").mkdir()
            (folder / "cache").chmod(mode & 0o722)  # as the library makes it, where the folder is root's
            bare = run(*command, cwd=folder, env=variables(folder))
            done = run(*command, cwd=folder, env=preloaded(folder, **more))
            check_equal((done.returncode, text(done.stdout), text(done.stderr)), (bare.returncode, text(bare.stdout), text(bare.stderr)), f"{command}")


@case
def unshare_makes_namespaces_with_the_library_preloaded():
    check_as_bare("unshare", "-Ur", "id", "-u")
    check_as_bare("unshare", "-Urpf", "sh", "-c", "echo $$")
    check_as_bare("bwrap", "--bind", "/", "/", "--unshare-user", "id", "-u")


@case
def a_program_that_valgrind_translates_is_left_alone():
    """Its stacks would be valgrind's, which also cannot do the clone that starts the helper."""
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    with Folder() as folder:
        (folder / "cache").mkdir()
        done = run("valgrind", "-q", "sleep", "0.3", cwd=folder, env=preloaded(folder))
        check_equal((done.returncode, text(done.stderr)), (0, ""), "status and standard error")
        # valgrind's launcher is not translated: the library may record it for a moment, before it calls exec.
        left = [path for path in (folder / "state").rglob("*") if path.suffix in (".recording", ".envelope")]
        seconds = [json.loads(run(BUILD / "offbeat", "info", "--json", path).stdout)["duration"] / 1e9 for path in left]
        check(all(duration < 0.25 for duration in seconds), f"what the library left in its folder: {left}, {seconds} s")


@case
def setpriv_changes_its_user_with_the_library_preloaded():
    if os.geteuid() != 0:
        skip("only root can change the user")
    check_as_bare("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "id")


@case
def a_program_that_can_no_longer_write_to_its_folder_is_as_without_us():
    """Its recordings are lost, which nobody who reads its output can change."""
    if os.geteuid() != 0:
        skip("only root can change the user")
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    check_as_bare(*nobody, "sleep", "0.4", mode=0o755)
    check_as_bare("/usr/bin/python3", "-c", "import os, time; os.setgroups([]); os.setuid(65534); time.sleep(1.6)", repeat=1, mode=0o755,
                  OFFBEAT_CHUNK_SECONDS=1)
    check_as_bare("/usr/bin/python3", "-c", "import os, time; os.chroot('/usr'); time.sleep(1.6)", repeat=1, OFFBEAT_CHUNK_SECONDS=1)


@case
def the_profile_continues_after_the_program_has_changed_its_user():
    """Its first recordings are in a folder that it cannot reach any more."""
    if os.geteuid() != 0:
        skip("only root can change the user")
    program_text = "import os, time\ndef work(s):\n  end = time.time() + s\n  while time.time() < end: pass\n" \
                   "work(0.3); os.setgroups([]); os.setuid(65534); work(2.5)"
    with Folder() as folder, FakeServer() as server:
        folder.chmod(0o755)
        (folder / "temporary").mkdir(mode=0o777)
        (folder / "temporary").chmod(0o777)
        done = run("/usr/bin/python3", "-c", program_text, cwd=folder, env=preloaded(
            folder, server.dsn, OFFBEAT_CHUNK_SECONDS=1, OFFBEAT_SHUTDOWN_TIMEOUT_MS=20000, TMPDIR=folder / "temporary"))
        check_equal((done.returncode, text(done.stderr)), (0, ""), "status and standard error")
        check(len(server.chunks) >= 1, "no chunk was sent afterwards")
        check_equal(list((folder / "temporary").iterdir()), [], "what is left")


@case
def a_program_that_confines_itself_ends_as_it_would_without_us():
    check_as_bare("file", "-b", LIBRARY)
    check_as_bare("file", "-bz", LIBRARY)


@case
def the_recording_continues_when_the_threads_come_back():
    """The program works, makes a user namespace, enters a mount namespace, and works on: its one profile has both."""
    with Folder() as folder, FakeServer() as server:
        done = run(program("steps_aside"), cwd=folder, env=preloaded(folder, server.dsn, OFFBEAT_SHUTDOWN_TIMEOUT_MS=20000, OFFBEAT_DEBUG=1))
        check_equal((done.returncode, text(done.stdout)), (0, "0 0"), f"status and results: {text(done.stderr)}")
        check_equal(len(server.chunks), 1, "chunks")
        body = b"".join(server.bodies)
        check(b'"before"' in body and b'"after"' in body, "functions before and after")


# --- Raised privileges -----------------------------------------------------------------------------------------------

def raised(folder, how, name="set_user_id"):
    """A copy of NAME in FOLDER with rights that the one who starts it does not have."""
    if os.geteuid() != 0:
        skip("only root can make a program with raised privileges")
    if not program(name).is_file():
        skip("the static library was not built")
    copy = folder / "raised"
    shutil.copy(program(name), copy)
    if how == "set-user-ID":
        copy.chmod(0o4755)
    elif not shutil.which("setcap"):
        skip("setcap is not installed (libcap2-bin)")
    elif run("setcap", "cap_net_raw+ep", copy).returncode != 0:
        skip("this file system takes no capabilities")
    return copy


def make_evil(folder):
    """A folder of the caller's with a helper that says who ran it."""
    evil = folder / "evil"
    evil.mkdir()
    evil.chmod(0o777)
    helper = evil / "offbeat-helper"
    helper.write_text(f'#!/bin/sh\nid >"{evil}/ran"\nexit 2\n', encoding="utf-8")
    helper.chmod(0o755)
    return evil


def check_untouched(evil, message):
    check_equal(sorted(path.name for path in evil.iterdir()), ["offbeat-helper"], message)


@case
def with_raised_privileges_no_environment_variable_counts():
    for how in ("set-user-ID", "capabilities"):
        with Folder() as folder:
            copy, evil = raised(folder, how), make_evil(folder)
            hostile = {name: str(evil) for name in ("TMPDIR", "HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "CACHE_DIRECTORY",
                                                    "STATE_DIRECTORY", "OFFBEAT_CACHE_DIRECTORY", "OFFBEAT_SPOOL_DIRECTORY", "OFFBEAT_RECORD_DIRECTORY")}
            hostile.update(OFFBEAT_HELPER=str(evil / "offbeat-helper"), OFFBEAT_DEBUG="1", OFFBEAT_CHUNK_SECONDS="1", PATH=str(evil))
            done = run(copy, cwd=evil, env=hostile, **NOBODY)
            check_equal(done.returncode, 0, text(done.stderr))
            check("AT_SECURE 1" in text(done.stderr), f"{how}: {text(done.stderr)}")
            check_untouched(evil, f"{how}: what is in the caller's folder")
            said = [line for line in text(done.stderr).splitlines() if line.startswith("offbeat: ")]
            check(all("offbeat-helper was not found" in line for line in said), f"OFFBEAT_DEBUG counts: {text(done.stderr)}")


@case
def with_raised_privileges_the_name_of_the_program_leads_to_no_helper():
    with Folder() as folder:
        copy, evil = raised(folder, "set-user-ID"), make_evil(folder)
        done = subprocess.run([str(evil / "raised")], executable=str(copy), env={}, capture_output=True, check=False, timeout=60, **NOBODY)
        check_equal(done.returncode, 0, text(done.stderr))
        check_untouched(evil, "what is in the folder that argv[0] names")


def transactions_sent_with(copy, server, evil, **more):
    env = {name: str(value) for name, value in more.items()}
    done = subprocess.run([str(copy), server.dsn, str(BUILD / "offbeat-helper")], env=env, capture_output=True, check=False, timeout=60, cwd=str(evil), **NOBODY)
    check_equal(done.returncode, 0, text(done.stderr))
    return [json.loads(payload)["transaction"] for body in server.bodies for header, payload in items_of(body) if header["type"] == "transaction"]


@case
def with_raised_privileges_no_proxy_of_the_caller_is_used():
    with Folder() as folder, FakeServer() as server:
        copy, evil = raised(folder, "set-user-ID", "raised"), make_evil(folder)
        nobody = "http://127.0.0.1:9"
        check_equal(transactions_sent_with(copy, server, evil, http_proxy=nobody, https_proxy=nobody, ALL_PROXY=nobody, all_proxy=nobody), ["a"],
                    "transactions; a proxy of the caller's was used")


# --- Programs that know nothing of the library ----------------------------------------------------------------------

CONDITIONS = ("", "trap '' CHLD", "ulimit -n 4", "ulimit -n 16", "ulimit -u 1", "ulimit -v 200000", "ulimit -v 60000", "ulimit -f 0", "ulimit -f 8",
              "ulimit -c unlimited; ulimit -f 1", "umask 777", "cd /", "exec <&-", "exec 2>&-", "exec <&- 2>&-", "trap '' PIPE XFSZ", "ulimit -s 256",
              "export TMPDIR=/nonexistent HOME=/nonexistent", "export TMPDIR=/proc HOME=/proc", "export HUGE=$(head -c 100000 /dev/zero | tr '\\0' x)")


def under(folder, condition, words, is_preloaded, **more):
    """Runs WORDS in a shell of an ordinary user after CONDITION. (status, standard output, names of files that are there then)."""
    with Folder() as home:
        home.chmod(0o777)
        preload = f"LD_PRELOAD={LIBRARY} " if is_preloaded else ""
        done = run("sh", "-c", f"{condition or ':'}; {preload}exec {words}", cwd=home, env=variables(folder, OFFBEAT_SHUTDOWN_TIMEOUT_MS=500, **more),
                   **(NOBODY if os.geteuid() == 0 else {}))
        return done.returncode, text(done.stdout), sorted(path.name for path in home.iterdir())


@case
def a_program_with_the_library_preloaded_does_the_same_under_every_limit():
    with Folder() as folder:
        folder.chmod(0o777)
        for condition in CONDITIONS:
            for words in ("sh -c 'echo out; (echo sub) | cat; exit 7'",):
                bare, with_us = (under(folder, condition, words, is_preloaded) for is_preloaded in (False, True))
                check_equal(with_us, bare, f"status, output, files of {words} after {condition!r}")


@case
def a_program_that_forks_workers_sleeps_or_works_ends_as_it_does_without():
    for name, first in (("children", ""), ("busy", "process cpu"), ("sleeper", "sleeper: process cpu")):
        with Folder() as folder:
            done = run(program(name), cwd=folder, env=variables(folder, LD_PRELOAD=LIBRARY))
            check_equal((done.returncode, text(done.stdout).startswith(first)), (0, True), f"{name}: {text(done.stdout + done.stderr)}")


@case
def a_closed_or_full_standard_error_does_not_end_the_program():
    with Folder() as folder:
        for condition in ("exec 2>full; ulimit -f 0", "exec 2>/dev/full"):
            status, said, _ = under(folder, condition, f"{program('busy')} 0.3", True, OFFBEAT_DEBUG=1,
                                    OFFBEAT_START_PROFILER_ON_APP_START=1)
            check_equal((status, said.startswith("process cpu")), (0, True), condition)
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([program("busy"), "0.3"], env=variables(folder, LD_PRELOAD=LIBRARY, OFFBEAT_DEBUG=1), stdout=subprocess.PIPE,
                              stderr=write, timeout=60, check=False, restore_signals=True)
        os.close(write)
        check_equal(done.returncode, 0, "status with a closed pipe")


# --- Descriptors -----------------------------------------------------------------------------------------------------

SYS_KCMP, KCMP_FILES = 312, 2


def threads_with_tables(process):
    """{name of a thread: whether it has another table of descriptors than the main thread}"""
    libc, found = ctypes.CDLL(None, use_errno=True), {}
    for task in (pathlib.Path("/proc") / str(process.pid) / "task").iterdir():
        order = libc.syscall(SYS_KCMP, process.pid, int(task.name), KCMP_FILES, 0, 0)
        check(order >= 0, f"kcmp: {os.strerror(ctypes.get_errno())}")
        found[(task / "comm").read_text().strip()] = order != 0
    return found


def redirected(folder, dsn, milliseconds, *before):
    """(what it printed, its status, its threads with their tables)"""
    with subprocess.Popen([*before, program("redirects"), str(milliseconds)], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=preloaded(folder, dsn, OFFBEAT_START_PROFILER_ON_APP_START=1)) as running:
        counted, ready = (running.stdout.readline() for _ in range(2))
        check_equal(ready, b"ready\n", counted)
        until = time.monotonic() + 20
        tables = {}
        while len(tables) < 3 and time.monotonic() < until:  # a new thread has its creator's name at first
            tables = threads_with_tables(running)
        running.communicate()
    return text(counted), running.returncode, tables


@case
def no_thread_of_the_library_takes_a_number_of_the_program():
    """A shell closes 0 and opens a file as 0. One of 15 runs of 0.1 s read a file that it did not open, when the library's
    threads opened theirs in the same table, and every one under a seccomp filter, as in a container. The tables of the threads
    say it for certain."""
    for before in ((), (program("under_filter"), "allow"), (program("under_filter"), "enosys")):
        with Folder() as folder, FakeServer() as server:
            for milliseconds in [100] * 5 + [1000]:
                counted, status, tables = redirected(folder, server.dsn, milliseconds, *before)
                check_equal(status, 0, f"{before}: {counted}")
                check(len(tables) >= 3, f"threads: {tables}")
                check_equal([name for name, differs in tables.items() if name.startswith("offbeat") and not differs], [],
                            f"{before}: threads in the program's table")
            check(server.chunks, "chunks")


@case
def a_filter_that_kills_for_unknown_calls_kills_nobody():
    with Folder() as folder, FakeServer() as server:
        done = run(program("under_filter"), "kill", program("busy"), "0.3", cwd=folder,
                   env=preloaded(folder, server.dsn, OFFBEAT_START_PROFILER_ON_APP_START=1))
        check_equal((done.returncode, text(done.stderr)), (0, ""), "status, standard error")
        check(text(done.stdout).startswith("process cpu"), text(done.stdout))
        check(server.chunks, "chunks")


@case
def a_line_of_a_thread_comes_out_on_the_programs_standard_error():
    """That thread has a table of descriptors for itself."""
    with Folder() as folder:
        done = run(program("busy"), "0.3", cwd=folder, env=preloaded(folder, OFFBEAT_DEBUG=1, OFFBEAT_START_PROFILER_ON_APP_START=1,
                                                                     OFFBEAT_HELPER="/nonexistent", OFFBEAT_SYMBOLS="local"))
        check("offbeat: offbeat-helper was not found" in text(done.stderr), f"standard error: {text(done.stderr)}")


# --- Several processes on one spool ----------------------------------------------------------------------------------

def in_namespace(folder, server, release, seconds, *prefix):
    """A program with the PID 1 for SECONDS, in a separate PID namespace, as in a container."""
    command = ["unshare", "--pid", "--fork", "--kill-child", *prefix, "env", f"LD_PRELOAD={LIBRARY}", program("busy"), str(seconds)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=variables(
        folder, server.dsn, OFFBEAT_RELEASE=release, OFFBEAT_SPOOL_DIRECTORY=folder / "spool", OFFBEAT_SYMBOLS="receiver",
        OFFBEAT_SHUTDOWN_TIMEOUT_MS=20000))


@case
def two_processes_with_equal_pids_share_one_spool_safely():
    if run("unshare", "--pid", "--fork", "true").returncode != 0:
        skip("no PID namespace can be made here (it needs root)")
    for prefix in (("--mount-proc",),): # without its own /proc nothing can be sampled
        with Folder() as folder, FakeServer() as server:
            first = in_namespace(folder, server, "first", 4, *prefix)
            check(wait_until(lambda: any(path.stat().st_size for path in folder.rglob("*.recording")), 20), "nothing is recorded")
            second = in_namespace(folder, server, "second", 1, *prefix)
            said = [text(child.communicate(timeout=300)[1]) for child in (first, second)]
            check_equal([child.returncode for child in (first, second)], [0, 0], said)
            arrived = [payload if isinstance(payload, dict) else json.loads(payload) for body in server.bodies
                       for header, payload in items_of(body) if header["type"] == "profile_chunk"]
            chunks = list({chunk["chunk_id"]: chunk for chunk in arrived}.values())  # one whose answer is late may come again
            check_equal(sorted(chunk["release"] for chunk in chunks), ["first", "second"], f"chunks, of each one: {said}")
            longest = max(chunks, key=lambda chunk: len(chunk["profile"]["samples"]))
            check_equal(longest["release"], "first", "the release of the longer one")


@case
def a_folder_that_another_process_has_just_made_stays():
    """Its owner has not written into it yet; of an old one nobody knows the owner, as of one in another container."""
    with Folder() as folder, FakeServer() as server:
        run(program("busy"), "0.1", env=preloaded(folder, server.dsn))
        servers_own = next((path for path in (folder / "state/offbeat").iterdir() if path.is_dir()), None)
        check(servers_own, "the library made no folder for the server")
        for digit, seconds_ago in (("1", 0), ("2", 600)):
            made = servers_own / f"7-1-1-{digit * 32}.session"
            made.mkdir()
            os.utime(made, (time.time() - seconds_ago,) * 2)
        run(program("busy"), "0.1", env=preloaded(folder, server.dsn))
        check(wait_until(lambda: not (servers_own / f"7-1-1-{'2' * 32}.session").is_dir(), 20), "the old one is there")
        check((servers_own / f"7-1-1-{'1' * 32}.session").is_dir(), "the new one is gone")


# --- What is sent ----------------------------------------------------------------------------------------------------

@case
def no_line_end_of_a_header_or_option_comes_out():
    with Folder() as folder, FakeServer() as server:
        done = run(program("header_injection"), cwd=folder, env=variables(folder, server.dsn, OFFBEAT_SHUTDOWN_TIMEOUT_MS=20000))
        check_equal(done.returncode, 0, text(done.stderr))
        headers = [line for line in done.stdout.decode("utf-8").split("\n") if line.startswith("[")]
        check_equal(len(headers), 3, f"lines of headers: {text(done.stdout)}")
        check(all(line.endswith("]") and "\r" not in line for line in headers), f"a header ends early: {headers}")
        check("b=2" in headers[2] and "X-Evil" not in headers[2], f"baggage: {headers[2]}")
        check("nan 0" in text(done.stdout) and "inf 0" in text(done.stdout), f"invalid numbers: {text(done.stdout)}")
        check(len(server.bodies) >= 2, f"{len(server.bodies)} envelopes")
        for body in server.bodies:
            check_equal(body.decode("utf-8").encode("utf-8"), body, "UTF-8")
            for header, payload in items_of(body):
                check(header["type"] in ("profile_chunk", "transaction", "client_report"), f"an item {header}")
                check("\x00" not in json.dumps(payload if isinstance(payload, dict) else json.loads(payload)), "NUL")
        check_equal([name for names in server.headers for name in names if name.lower().startswith("x-") and name.lower() != "x-sentry-auth"], [],
                    "headers of HTTP")


@case
def rejects_a_value_that_is_not_in_its_enum():
    for number in (-1, 300000, 25, 18, 2147483647):
        for arguments in ((number,), (1, number)):
            done = ends_well("enum_out_of_range", *arguments, OFFBEAT_DEBUG=1)
            check_equal(text(done.stdout), "finished", "output")
            check("is not a value of enum offbeat_" in text(done.stderr), f"{arguments}: {text(done.stderr)}")


@case
def wrong_arguments_are_rejected_by_every_function():
    check_equal(text(ends_well("wrong_arguments").stdout), "lived", "output")


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
