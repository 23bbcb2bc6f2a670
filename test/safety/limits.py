"""`offbeat record` where little is allowed: the program gets what it gets alone, and the profile is whole or a line says why not.
Arguments: the build folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import Folder, Offbeat, case, check, check_equal, main, opens, run, skip, text  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1]).reachable()
BUSY, LIMITED = (OFFBEAT.build / "test/safety" / f"safety_{name}" for name in ("busy", "limited"))
RECORD = " ".join(map(str, OFFBEAT.command("record", "-o", "x.pb.gz", "--")))


def need(*command):
    if os.geteuid() != 0 or run(*command).returncode != 0:
        skip(f"needs root, and {' '.join(command)}")


def check_whole(folder, done, seconds):
    """The profile has SECONDS of main, and nothing is reported lost."""
    check_equal(done.returncode, 0, f"exit status; {text(done.stderr)}")
    check("lost" not in text(done.stderr) and "not in the profile" not in text(done.stderr), text(done.stderr))
    found = opens(OFFBEAT, folder / "x.pb.gz").get("main", 0) / 1e9
    check(found > 0.8 * seconds, f"{found} s of main, of {seconds}; {text(done.stderr)}")


@case
def five_descriptors_are_enough():
    for limit in (5, 6, 16, 64):
        with Folder() as folder:
            check_whole(folder, run("sh", "-c", f"ulimit -n {limit}; exec {RECORD} {BUSY} 0.5", cwd=folder), 0.5)


@case
def a_program_may_lower_its_limit_of_descriptors():
    with Folder() as folder:
        check_whole(folder, run("sh", "-c", f"exec {RECORD} sh -c 'ulimit -n 4; exec {BUSY} 0.5'", cwd=folder), 0.5)


@case
def the_program_gets_the_address_space_that_its_limit_allows():
    with Folder() as folder:
        check_whole(folder, OFFBEAT.record(folder, LIMITED, "memory"), 0.3)


def sizes(done):
    """VmSize, VmLck and VmRSS in kB."""
    check_equal(done.returncode, 0, f"exit status; {text(done.stderr)}")
    return [int(word) for word in done.stdout.split()]


def check_little(what, bare, more):
    size, locked, resident = (b - a for a, b in zip(bare, more))
    print(f"# {what}: VmSize + {size} kB, VmLck + {locked} kB, VmRSS + {resident} kB")
    check(size <= 16 << 10 and locked <= 1 << 10 and resident <= 6 << 10, f"{what}: + {size}, {locked}, {resident} kB")


@case
def takes_little_memory_and_locks_none():
    """A small program: 16 MB more address space, 6 MB more in memory, 1 MB more locked. Recorded, and profiling itself."""
    for what in ("size", "lock"):
        bare = run(LIMITED, what)
        if bare.returncode != 0:
            skip("memory cannot be locked")
        with Folder() as folder:
            recorded = OFFBEAT.record(folder, LIMITED, what)
            check_whole(folder, recorded, 0.3)
            check_little(f"{what}, recorded", sizes(bare), sizes(recorded))
            library = {"LD_PRELOAD": OFFBEAT.build / "liboffbeat.so", "OFFBEAT_DSN": "http://0123456789abcdef0123456789abcdef@127.0.0.1:9/1",
                       "OFFBEAT_PROFILE_SESSION_SAMPLE_RATE": 1, "OFFBEAT_SPOOL_DIRECTORY": folder, "OFFBEAT_SHUTDOWN_TIMEOUT_MS": 1,
                       "OFFBEAT_START_PROFILER_ON_APP_START": 1}
            profiled = run(LIMITED, what, env={**os.environ, **{name: str(value) for name, value in library.items()}})
            check_little(f"{what}, profiling itself", sizes(bare), sizes(profiled))
            check(list(folder.rglob("*.session")), f"the library did not run: {text(profiled.stderr)}")


@case
def the_program_gets_the_last_thread_that_its_user_may_have():
    need("setpriv", "--version")
    with Folder() as folder:
        folder.chmod(0o777)
        user = ["setpriv", "--reuid=60123", "--regid=60123", "--clear-groups"]
        limited = [*user, "prlimit", "--nproc=3", *OFFBEAT.command("record", "-o", "x.pb.gz", "--", LIMITED, "thread")]
        done = run(*limited, cwd=folder)
        check_equal(done.returncode, 0, f"exit status; {text(done.stderr)}")
        check("the limit of threads leaves none for it" in text(done.stderr), text(done.stderr))


@case
def records_with_a_read_only_root():
    need("unshare", "-m", "true")
    with Folder() as folder:
        setup = "for d in / /tmp /var/tmp; do mount --bind $d $d && mount -o remount,bind,ro $d; done 2>/dev/null; cd /; unset TMPDIR; "
        command = " ".join(map(str, OFFBEAT.command("record", "-o", "-", "--", BUSY, "0.5")))
        done = run("unshare", "-m", "sh", "-c", f"{setup} ! touch /tmp/x 2>/dev/null || exit 9; exec {command}")
        if done.returncode == 9:
            skip("the root cannot be made read-only")
        (folder / "x.pb.gz").write_bytes(done.stdout)
        check_whole(folder, done, 0.5)


@case
def records_with_a_small_stack():
    with Folder() as folder:
        check_whole(folder, run("sh", "-c", f"ulimit -s 128; exec {RECORD} {BUSY} 0.5", cwd=folder), 0.5)


@case
def records_in_a_time_namespace():
    need("unshare", "-T", "--monotonic", "100000", "true")
    inside = ["unshare", "-T", "--monotonic", "100000", "--boottime", "100000"]
    with Folder() as folder:
        check_whole(folder, run(*inside, *OFFBEAT.command("record", "-o", "x.pb.gz", "--", BUSY, "0.5"), cwd=folder), 0.5)
        check_whole(folder, OFFBEAT.record(folder, *inside, BUSY, "0.5"), 0.5)


@case
def records_real_time_threads_on_one_processor():
    need("chrt", "-f", "50", "true")
    with Folder() as folder:
        check_whole(folder, OFFBEAT.record(folder, "taskset", "-c", "0", "chrt", "-f", "50", BUSY, "1"), 0.8)


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
