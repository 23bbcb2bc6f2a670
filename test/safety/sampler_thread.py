"""The sampler thread: what it calls, when it steps aside, which rights it has, when it ends. Arguments: the build folder, and
optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import concurrent.futures
import glob
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import Folder, Offbeat, case, check, check_equal, main, opens, run, skip, text, without_own_line  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1]).reachable()  # for the users that programs become
PROGRAMS = OFFBEAT.build / "test/safety"


def program(name):
    """The program NAME of this folder, as built."""
    return PROGRAMS / f"safety_{name}"


# --- It calls nothing that another library can interpose ---------------------------------------------------------------

def check_with_library(library):
    """`record` of a program that also preloads LIBRARY."""
    with Folder() as folder:
        done = OFFBEAT.record(folder, program("busy"), "0.3", env={**os.environ, "TMPDIR": str(folder), "LD_PRELOAD": library})
        check_equal(done.returncode, 0, f"exit status ({text(done.stderr)})")
        check("main" in opens(OFFBEAT, folder / "x.pb.gz"), text(done.stderr))


@case
def a_library_that_interposes_libc_is_not_called_on_the_sampler_thread():
    check_with_library(str(PROGRAMS / "safety_interposer.so"))


@case
def a_program_under_libfaketime_is_sampled():
    found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not found:
        skip("libfaketime is not installed")
    check_with_library(found[0])


# --- It steps aside for calls that need a process of one thread -------------------------------------------------------

def facts(folder):
    return OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]


def recorded(folder, *command, **more):
    return OFFBEAT.record(folder, *command, env={**os.environ, "TMPDIR": str(folder)}, **more)


# What `record` says on its own behalf, beside its last line.
OWN_LINES = (b"offbeat: ", b"x.envelope: ", b"x.pb.gz: ")


def check_same(*command, needs=None):
    """COMMAND does the same bare and recorded. NEEDS: the program that must be there."""
    if needs and not shutil.which(needs):
        skip(f"{needs} is not installed")
    with Folder() as folder:
        bare = run(*command, cwd=folder)
        done = recorded(folder, *command)
        check_equal((done.returncode, done.stdout), (bare.returncode, bare.stdout), f"status and output of {command}")
        others = [line for line in without_own_line(done.stderr).splitlines(keepends=True) if not line.startswith(OWN_LINES)]
        check_equal(b"".join(others), bare.stderr, f"standard error of {command}")


@case
def programs_that_make_namespaces_work():
    """What the machine rejects without us, it rejects with us in the same words."""
    check_same("unshare", "-Ur", "id", "-u")
    check_same("unshare", "-Urm", "sh", "-c", "mount -t tmpfs none /tmp && ls -A /tmp && id -u")
    check_same("unshare", "-Urpf", "--mount-proc", "sh", "-c", "echo $$")
    check_same("unshare", "-pf", "--mount-proc", "sh", "-c", "echo $$")
    check_same("unshare", "-m", "true")
    check_same("unshare", "-n", "-u", "-i", "-C", "id", "-u")
    check_same("nsenter", "--mount=/proc/self/ns/mnt", "id", "-u")
    check_same("nsenter", "--pid=/proc/self/ns/pid", "--net=/proc/self/ns/net", "id", "-u")
    check_same("sh", "-c", "unshare -Ur sleep 1 & sleep 0.5; nsenter -U -t $! --preserve-credentials id -u; wait")


@case
def programs_that_change_their_user_work():
    check_same("su", "nobody", "-s", "/bin/sh", "-c", "id")
    check_same("runuser", "-u", "nobody", "--", "id")
    check_same("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "id")
    check_same("setpriv", "--bounding-set=-all", "--inh-caps=-all", "id")
    check_same("chroot", "--userspec=nobody:nogroup", "/", "id")
    check_same("start-stop-daemon", "--start", "--chuid", "nobody", "--exec", "/usr/bin/id")


@case
def bubblewrap_works():
    check_same("bwrap", "--ro-bind", "/", "/", "--unshare-all", "id", "-u", needs="bwrap")
    check_same("bwrap", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc", "--unshare-user",
               "--unshare-pid", "ls", "/proc/self/fd", needs="bwrap")


@case
def calls_that_are_interposed_give_what_libc_gives():
    if os.geteuid() != 0:
        skip("not root")
    with Folder() as folder:
        bare = run(program("interposed_calls"), cwd=folder)
        for _ in range(3):
            done = recorded(folder, program("interposed_calls"))
            check_equal((done.returncode, text(done.stdout)), (bare.returncode, text(bare.stdout)), "status and output")


@case
def every_function_that_calls_exec_gets_its_arguments():
    check_same(program("every_exec"))


@case
def threads_begin_and_end_as_without_us():
    check_same(program("thread_lives"))


@case
def the_recording_continues_after_the_sampler_stepped_aside():
    with Folder() as folder:
        done = recorded(folder, program("steps_aside"))
        check_equal((done.returncode, text(done.stdout)), (0, "0 0"), "status and output")
        seen, printed = opens(OFFBEAT, folder / "x.pb.gz"), facts(folder)
        check(seen.get("before", 0) > 150e6 and seen.get("after", 0) > 150e6, f"functions: {seen}")
        check_equal(printed["times_aside"], 2, "how often it stepped aside")
        check(0 < printed["aside_ns"] < seen["before"] + seen["after"], f"it was away for {printed['aside_ns']} ns")
        check("sampler_ended" not in printed, f"it ended: {printed}")


# --- It is no more powerful than the program --------------------------------------------------------------------------

WAYS = ("setuid", "setgid", "seteuid", "setreuid", "setresuid", "setresgid", "setgroups", "initgroups", "setfsuid", "capset",
        "no_new_privs", "keepcaps", "chroot")


def check_rights(way, how):
    with Folder() as folder:
        done = recorded(folder, program("rights"), way, how)
        check_equal((done.returncode, text(done.stdout)), (0, "sampler"), f"{way} by {how}: status and output ({text(done.stderr)})")


def each_way(how):
    if os.geteuid() != 0:
        skip("not root")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda way: check_rights(way, how), WAYS))


@case
def rights_are_given_up_before_libc_returns():
    each_way("libc")


@case
def rights_are_given_up_before_syscall_returns():
    each_way("syscall")


@case
def rights_are_given_up_within_a_tenth_of_a_second_of_a_raw_system_call():
    each_way("raw")


@case
def a_program_in_a_jail_is_sampled_to_its_end():
    if os.geteuid() != 0:
        skip("not root")
    with Folder() as folder:
        done = recorded(folder, program("chroot_setuid"))
        check_equal((done.returncode, text(done.stdout)), (0, "done"), "status and output")
        seen = opens(OFFBEAT, folder / "x.pb.gz")
        check(seen.get("before", 0) > 1e9 and seen.get("after", 0) > 3e9, f"functions: {seen}")


@case
def a_program_lives_that_confines_itself():
    for depth in ("flat", "deep"):
        for how in ("none", "tsync"):
            for extra in ("0", "1"):
                with Folder() as folder:
                    done = recorded(folder, program("seccomp_narrow"), how, "300", extra, depth)
                    check_equal((done.returncode, text(done.stdout)), (0, "lived"), f"{depth} {how} {extra}")
                    check("seccomp" in facts(folder).get("sampler_ended", ""), f"info: {facts(folder)}")


@case
def a_filter_by_a_raw_system_call_ends_the_sampler():
    with Folder() as folder:
        done = recorded(folder, program("raw_filter"))
        check_equal((done.returncode, text(done.stdout)), (0, "no other thread"), "status and output")
        check("seccomp" in facts(folder).get("sampler_ended", ""), f"info: {facts(folder)}")


# --- It ends when it is the last thread ------------------------------------------------------------------------------

@case
def a_process_ends_with_its_own_last_thread():
    with Folder() as folder:
        done = recorded(folder, program("raw_exit"))
        check_equal((done.returncode, text(done.stdout)), (0, "main thread leaves"), "status and output")
        check("main" in opens(OFFBEAT, folder / "x.pb.gz"), text(done.stderr))


@case
def threads_are_sampled_after_the_first_one_has_left():
    with Folder() as folder:
        done = recorded(folder, program("outlives_leader"))
        check_equal((done.returncode, text(done.stdout)), (0, "worker ends"), "status and output")
        check(opens(OFFBEAT, folder / "x.pb.gz").get("works_on", 0) > 300e6, text(done.stderr))


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
