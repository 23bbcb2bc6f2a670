"""Messages of `offbeat record`: each is printed for its cause, and not for the nearest other cause. README.md lists all messages.
Arguments: the build folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import Folder, Offbeat, case, check, check_equal, long, main, opens, run, skip, text, wait_until  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
SECONDS = 60
BUSY, STATIC, STOPS, CONFINED, FILTERED, DELETES, LIBRARY = (
    OFFBEAT.build / "test/safety" / f"safety_{name}"
    for name in ("busy", "busy_static", "stops", "seccomp_narrow", "under_filter", "deletes_library", "library_that_works.so"))
WITHOUT_PERF = BUSY.with_name("safety_without_perf")


def lines_of(folder, *words, env=None):
    return text(run(*OFFBEAT.command("record", *words), cwd=folder, env={**os.environ, **(env or {})}).stderr)


def check_pair(message, cause, other, prepare=lambda folder: None, env=None):
    """The words CAUSE of `record` print MESSAGE, and the words OTHER do not."""
    with Folder() as folder:
        prepare(folder)
        said = lines_of(folder, *cause, env=env)
        check(message in said, f"{cause}: {said}")
        said = lines_of(folder, *other)
        check(message not in said, f"{other}: {said}")


@case
def a_command_that_is_not_in_path():
    check_pair("cannot find a program called", ["no-such-program"], ["./no-such-program"])


@case
def a_path_without_a_file():
    check_pair("there is no such file", ["./no-such-program"], ["./plain"], lambda folder: (folder / "plain").write_text("text", encoding="ascii"))


@case
def a_file_that_may_not_be_executed():
    check_pair("it is not an executable file", ["./plain"], ["/bin/true"],
               lambda folder: (folder / "plain").write_text("text", encoding="ascii"))


@case
def a_static_program():
    check_pair("is statically linked", [STATIC, "0.1"], [BUSY, "0.1"])


@case
def a_program_that_gains_privileges():
    if os.geteuid() != 0:
        skip("needs root")

    def prepare(folder):
        for name, mode in (("gains", 0o4755), ("usual", 0o755)):
            shutil.copy(BUSY, folder / name)
            os.chown(folder / name, 65534, 65534)
            (folder / name).chmod(mode)

    check_pair("gains privileges when it starts", ["./gains", "0.1"], ["./usual", "0.1"], prepare)


@case
def a_program_of_32_bits():
    def prepare(folder):
        (folder / "old").write_bytes(b"\x7fELF\x01\x01\x01" + BUSY.read_bytes()[7:])
        (folder / "old").chmod(0o755)

    check_pair("is for another processor or word size", ["./old"], [BUSY, "0.1"], prepare)


@case
def a_program_of_another_libc():
    def prepare(folder):
        for name, loader in (("other", b"/lib/ld-musl-x86_64.so.1"), ("usual", b"/lib64/ld-linux-x86-64.so.2")):
            (folder / name).write_bytes(BUSY.read_bytes().replace(b"/lib64/ld-linux-x86-64.so.2", loader.ljust(27, b"\0")))
            (folder / name).chmod(0o755)

    check_pair("uses another libc than the sampler (its loader is /lib/ld-musl-x86_64.so.1)", ["./other"], ["./usual", "0.1"], prepare)


@case
def a_program_without_its_library():
    with Folder() as folder:
        for name, message, library in (("alone", "cannot find liboffbeat.so.0", False), ("beside", "samples of", True)):
            (folder / name).mkdir()
            shutil.copy(OFFBEAT.program, folder / name)
            if library:
                shutil.copy(OFFBEAT.build / "liboffbeat.so", folder / name)
            said = text(run(folder / name / "offbeat", "record", "--", BUSY, "0.3", cwd=folder).stderr)
            check(message in said and ("cannot find" in said) != library, said)


@case
def an_output_that_cannot_be_written():
    check_pair("cannot write missing/x.pb.gz: No such file", ["-o", "missing/x.pb.gz", "--", "true"],
               ["-o", "folder.pb.gz", "--", "true"], lambda folder: (folder / "folder.pb.gz").mkdir())
    check_pair("Is a directory", ["-o", "folder.pb.gz", "--", "true"], ["-o", "x.pb.gz", "--", "true"],
               lambda folder: (folder / "folder.pb.gz").mkdir())


@case
def two_outputs_for_one_stream():
    check_pair("--output - was given twice", ["-o", "-", "-o", "-", "--", "true"], ["-o", "-", "-o", "x.pb.gz", "--", "true"])
    check_pair("--split-processes writes a file for each process", ["--split-processes", "-o", "-", "--", "true"],
               ["--split-processes", "-o", "x.pb.gz", "--", "true"])


@case
def a_folder_of_recordings_that_cannot_be_made():
    check_pair("cannot make a folder for recordings in /no-such-folder (TMPDIR)", ["--", "true"], ["--", "true"],
               env={"TMPDIR": "/no-such-folder"})


@case
def files_among_the_recordings_that_are_none():
    """The program can read and write the folder."""
    write = 'cd "$OFFBEAT_RECORD_DIRECTORY"; echo text >1-1.recording; '
    messages = ["is not a recording", "is not a regular file with one name", "was written by a liboffbeat of another version"]
    shells = [":", "ln 1-1.recording other", 'cp "$OLDPWD/old" 1-1.recording']
    with Folder() as folder:
        (folder / "old").write_bytes(b"OFFBEAT\1")
        for message, shell in zip(messages, shells):
            said = lines_of(folder, "--", "sh", "-c", write + shell)
            check([each for each in messages if each in said] == [message], f"{message}: {said}")


def names_full_folder(done):
    """By the moment at which the folder fills, samples are lost, or the recording ends."""
    return any(message in text(done.stderr) for message in ("has no room left; set TMPDIR to a larger file system",
                                                            "bytes of samples could not be written to"))


@case
def a_folder_of_recordings_that_is_full():
    script = 'mount -t tmpfs -o size=$1 none /mnt || exit 9; TMPDIR=/mnt; export TMPDIR; shift; exec "$@"'
    with Folder() as folder:
        for size, is_full in (("8k", True), ("12m", False)):
            done = run("unshare", "--mount", "sh", "-c", script, "sh", size,
                       *OFFBEAT.command("record", "-F", "2000", "-o", folder / "x.pb.gz", "--", BUSY, "0.7"), cwd=folder)
            if done.returncode == 9 or b"unshare" in done.stderr:
                skip("needs a mount namespace")
            check(names_full_folder(done) == is_full, f"{size}: {text(done.stderr)}")


@case
def a_folder_of_recordings_that_is_full_for_a_while():
    script = 'mount -t tmpfs -o size=300k none /mnt || exit 9; cp /dev/zero /mnt/filler 2>/dev/null; truncate -s -8192 /mnt/filler; $1; shift; TMPDIR=/mnt exec "$@"'
    with Folder() as folder:
        for before, is_full in ((":", True), ("mount -o remount,size=12m /mnt", False)):
            done = run("unshare", "--mount", "sh", "-c", script, "sh", before, *OFFBEAT.command("record", "-F", "2000", "-o", folder / "x.pb.gz", "--",
                       "sh", "-c", f"{BUSY} 0.8; rm /mnt/filler; {BUSY} 0.3"), cwd=folder)
            if done.returncode == 9 or b"unshare" in done.stderr:
                skip("needs a mount namespace")
            check(names_full_folder(done) == is_full, f"{before}: {text(done.stderr)}")


@case
def more_processes_than_can_be_named():
    with Folder() as folder:
        for count, has_message in ((4097, True), (4096, False)):
            numbers = ",".join(str(10 ** 8 + number) for number in range(count))
            said = text(run(*OFFBEAT.command("record", "-p", numbers, "-d", "0.1"), cwd=folder).stderr)
            check(("--pid names over 4096 processes" in said) == has_message, f"{count}: {said}")


@case
def the_end_by_a_signal():
    check_pair("was ended by signal 9", ["--", "sh", "-c", "kill -9 $$"], ["--", "sh", "-c", "exit 9"])


@case
def a_process_that_cannot_be_sampled():
    check_pair("could not be sampled", ["--", "sh", "-c", f"{STATIC} 0.3; :"], ["--", "sh", "-c", f"{BUSY} 0.3; :"])


@case
def too_little_cpu_time():
    check_pair("used too little CPU time for a sample", ["--mode", "cpu", "--", "sleep", "0.3"], ["--", "sleep", "0.3"])


@case
def a_program_in_a_language_that_has_no_stacks():
    if not shutil.which("perl"):
        skip("perl is not installed")
    check_pair("the functions of the Perl program are not in the stacks", ["--", "perl", "-e", "for (1 .. 3e6) { $x += $_ }"], ["--", BUSY, "0.3"])


def alone(*limits):
    """Words that run a command as a user who has no other process, with LIMITS of prlimit."""
    if os.geteuid() != 0:
        skip("needs root")
    return ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "prlimit", *limits]


@case
def a_limit_of_processes_that_leaves_none_for_the_writer():
    """SIGUSR1 writes the profile meanwhile. The recorder, the program and the sampler are three."""
    program = OFFBEAT.reachable().command("record", "-o", "x.pb.gz", "--", "sleep", "1")
    with Folder() as folder:
        folder.chmod(0o777)
        for limit, has_message in ((3, True), (10, False)):
            job = subprocess.Popen([*alone(f"--nproc={limit}"), *program], cwd=folder, stderr=subprocess.PIPE)
            children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")
            wait_until(children.read_text, "the program does not begin")
            job.send_signal(signal.SIGUSR1)
            said = text(job.communicate(timeout=SECONDS)[1])
            check(("cannot start a process that writes the profile" in said) == has_message, f"{limit}: {said}")


@case
def a_limit_of_open_files_that_leaves_none_for_a_pipe():
    with Folder() as folder:
        for limit, has_message in ((4, True), (6, False)):
            said = text(run("prlimit", f"--nofile={limit}", *OFFBEAT.command("record", "--", "true"), cwd=folder).stderr)
            check(("cannot make a pipe" in said) == has_message, f"{limit}: {said}")


@long
@case
def more_recordings_than_can_be_read():
    """The program writes them. It takes a second or two for each 10000."""
    write = "import os, sys\nfor i in range(int(sys.argv[1])): os.symlink('x', os.environ['OFFBEAT_RECORD_DIRECTORY'] + f'/1-{i}.recording')"
    with Folder() as folder:
        for count, has_message in ((100001, True), (1000, False)):
            said = lines_of(folder, "--", sys.executable, "-c", write, count)
            check(("over 100000 processes" in said) == has_message, f"{count}: {said[-1000:]}")


# --- Processes that run already ------------------------------------------------------------------------------------------

def check_engine(engine, message, cause=(), other=()):
    """The words CAUSE before `record -p` make it say MESSAGE, and the words OTHER do not."""
    with Folder() as folder, subprocess.Popen(["sleep", "100"]) as sleeper:
        try:
            for before, has_message in ((cause, True), (other, False)):
                said = text(run(*before, *OFFBEAT.command("record", "--engine", engine, "-p", sleeper.pid, "-d", "0.1"), cwd=folder).stderr)
                check((message in said) == has_message, f"{before}: {said}")
        finally:
            sleeper.kill()


@case
def a_filter_that_forbids_perf_events():
    check_engine("perf", "a container or a seccomp filter forbids perf_event_open", [WITHOUT_PERF], ["prlimit", "--nofile=8"])


@case
def too_few_descriptors_for_perf_events():
    check_engine("perf", "the limit of open files is too low", ["prlimit", "--nofile=8"], [WITHOUT_PERF])


def with_setting(name, value):
    """Words that run a command where the kernel's setting NAME has VALUE, and other settings are hidden."""
    if os.geteuid() != 0:
        skip("needs root")
    path = f"/proc/sys/kernel/{name}"
    return ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none /proc/sys/kernel && mkdir -p {os.path.dirname(path)} && echo {value} >{path} && exec "$@"', "sh"]


@case
def a_kernel_that_lets_only_root_use_perf_events():
    """Not a filter; and a filter is what forbids them to a root user, whom the setting does not concern."""
    unprivileged = ["setpriv", "--bounding-set=-perfmon,-sys_admin"]
    message = "kernel.perf_event_paranoid is 3; the remedy: sudo sysctl kernel.perf_event_paranoid=2"
    check_engine("perf", message, [*with_setting("perf_event_paranoid", 3), *unprivileged, WITHOUT_PERF],
                 [*with_setting("perf_event_paranoid", 2), *unprivileged, WITHOUT_PERF])
    check_engine("perf", "a seccomp filter forbids", [*with_setting("perf_event_paranoid", 3), WITHOUT_PERF])


@case
def own_blocked_threads_that_yama_or_another_module_hides():
    """A file that nobody may read stands in for what the kernel denies."""
    user = alone()
    with Folder() as folder:
        folder.chmod(0o777)
        (folder / "closed").touch(0o000)
        sleeper = subprocess.Popen([*user, "sleep", "100"])
        try:
            hide = ["unshare", "--mount", "sh", "-c", f'mount --bind {folder}/closed /proc/{sleeper.pid}/syscall && exec "$@"', "sh"]
            for before, message in (([*hide, *with_setting("yama/ptrace_scope", 1)], "because kernel.yama.ptrace_scope is 1"),
                                    ([*hide, *with_setting("yama/ptrace_scope", 0)], "because a security module denies it"), ([], None)):
                said = text(run(*before, *user, *OFFBEAT.reachable().command("record", "--engine", "proc", "-p", sleeper.pid, "-d", "0.1"), cwd=folder).stderr)
                check(message in said if message else "cannot be read" not in said, f"{before}: {said}")
        finally:
            sleeper.kill()


def wait_for_buffers(recorder):
    maps = pathlib.Path(f"/proc/{recorder}/maps")
    wait_until(lambda: maps.read_text(encoding="utf-8").count("perf_event") >= len(os.sched_getaffinity(0)), "the recorder has no buffers")


@case
def other_recorders_have_the_memory_for_buffers_of_perf():
    """One recorder of a user takes nearly all that the kernel grants, and leaves no second one its part."""
    user = alone("--memlock=0")
    with Folder() as folder:
        folder.chmod(0o777)
        sleeper = subprocess.Popen([*user, "sleep", "100"])
        command = OFFBEAT.reachable().command("record", "--engine", "perf", "-p", sleeper.pid, "-d")
        first = subprocess.Popen([*user, *command, "60", "-o", "first.pb.gz"], cwd=folder, stderr=subprocess.PIPE)
        try:
            wait_for_buffers(first.pid)
            said = text(run(*user, *command, "0.1", "-o", "second.pb.gz", cwd=folder).stderr)
            check("other programs of this user use up kernel.perf_event_mlock_kb" in said, said)
            first.send_signal(signal.SIGINT)
            said = text(first.communicate(timeout=SECONDS)[1])
            check("mlock_kb" not in said, f"alone: {said}")
        finally:
            first.kill()
            sleeper.kill()


def wait_while_it_works(process, seconds):
    """Until PROCESS, on however busy a machine, has used SECONDS of CPU time more."""
    time_of = lambda: sum(map(int, pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").split()[13:15]))
    until = time_of() + seconds * os.sysconf("SC_CLK_TCK")
    wait_until(lambda: time_of() >= until, "the program does not work")


@case
def a_recorder_that_does_not_run():
    with Folder() as folder, subprocess.Popen([BUSY, "60"], stdout=subprocess.DEVNULL) as busy:
        try:
            for frequency, stops in ((2000, True), (50, False)):
                job = subprocess.Popen(OFFBEAT.command("record", "--engine", "perf", "-F", frequency, "-p", busy.pid, "-o", "x.pb.gz"), cwd=folder, stderr=subprocess.PIPE)
                wait_for_buffers(job.pid)
                wait_while_it_works(busy, 0.5)
                if stops:
                    job.send_signal(signal.SIGSTOP)
                    wait_while_it_works(busy, 0.5)
                    job.send_signal(signal.SIGCONT)
                    wait_while_it_works(busy, 0.2) # the kernel reports losses with the next stack
                job.send_signal(signal.SIGINT)
                said = text(job.communicate(timeout=SECONDS)[1])
                check(("stacks of running threads were lost, because the recorder did not run" in said) == stops, f"stopped: {stops}: {said}")
        finally:
            busy.kill()


@case
def a_root_user_without_the_right_to_load_programs():
    if os.geteuid() != 0:
        skip("needs root")
    check_engine("bpf", "CAP_BPF and CAP_PERFMON are missing in this container", ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"])


@case
def a_kernel_without_type_information():
    if os.geteuid() != 0:
        skip("needs root")
    check_engine("bpf", "the kernel has no type information", ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"],
                 ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"])


@case
def a_recording_without_proc():
    if os.geteuid() != 0:
        skip("needs root")
    hidden = ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
    check_engine("proc", "/proc does not show processes; the remedy: mount -t proc proc /proc", hidden)
    check_engine("proc", "there is no process 999999999", ["sh", "-c", 'exec "$1" record -p 999999999', "sh", OFFBEAT.program])


@case
def a_process_that_has_ended_and_that_its_parent_has_not_awaited():
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    said = text(run(*OFFBEAT.command("record", "--engine", "proc", "-p", str(ended.pid), "-d", "0.1", "-o", "/dev/null", "--to", "pprof")).stderr)
    check_equal(said, f"offbeat: process {ended.pid} has ended, and its parent has not read its exit status", "standard error")
    ended.wait()


@case
def a_protected_process_and_a_root_user_who_has_all_rights():
    """Process 1 of some machines."""
    said = text(run(*OFFBEAT.command("record", "-p", "1", "-d", "0.1", "-o", "/dev/null")).stderr)
    if os.geteuid() != 0 or "is protected" not in said or run("setpriv", "--dump").stdout.count(b"sys_ptrace") == 0:
        skip("process 1 is not protected")
    check("CAP_SYS_PTRACE is not enough" in said and "give this" not in said, said)


@case
def a_filter_that_ends_the_sampler():
    """Not the rights of the program, nor its descriptors."""
    with Folder() as folder:
        said = lines_of(folder, "--", "sh", "-c", f"{CONFINED}; {BUSY} 0.2")
        ends = [line for line in said.splitlines() if "the sampler ended before" in line]
        check(ends and all("seccomp filter" in line for line in ends), said)


@case
def a_deleted_library():
    """Without the right to read it while it is mapped; with that right it has names. The program itself always has."""
    def record(folder, *command, before=()):
        return text(run(*before, *OFFBEAT.command("record", "-o", "x.pb.gz", "--", *command), cwd=folder).stderr)

    message = "copied.so was deleted while it was mapped"
    without = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []
    with Folder() as folder:
        said = record(folder, DELETES, LIBRARY, before=without)
        check(message in said, said)
        said = record(folder, DELETES, LIBRARY, "keep", before=without)
        check(message not in said, said)
        for before in {tuple(without), ()}:
            copied = shutil.copy(DELETES, folder / "copied")
            said = record(folder, copied, LIBRARY, "late", before=before)
            times = opens(OFFBEAT, folder / "x.pb.gz")
            check(times.get("own_work", 0) > 2e8, f"the deleted program has no names: {said}")
            check_equal((message in said, times.get("work_in_library", 0) > 2e8), (bool(before), not before), said)
        if os.geteuid() != 0:
            skip("needs root")
        for filtered in ((), (FILTERED, "kill")):
            said = record(folder, *filtered, DELETES, LIBRARY)
            check(message not in said, said)
            check(opens(OFFBEAT, folder / "x.pb.gz").get("work_in_library", 0) > 2e8, f"work_in_library has no name: {said}")


@case
def a_stopped_program_is_not_an_overloaded_machine():
    with Folder() as folder:
        job = subprocess.Popen(OFFBEAT.command("record", "-o", "x.pb.gz", "--", STOPS), cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")

        def is_stopped():
            found = children.read_text(encoding="ascii").split()
            return bool(found) and pathlib.Path(f"/proc/{found[0]}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "T"

        deadline = time.monotonic() + SECONDS
        while not is_stopped():
            check(time.monotonic() < deadline, "it did not stop")
            time.sleep(0.01)
        time.sleep(2)
        os.kill(job.pid, signal.SIGCONT)
        said = text(job.communicate(timeout=SECONDS)[1])
        check_equal(job.returncode, 0, f"exit status; {said}")
        stopped = OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]["stopped_ns"] / 1e9
        shown = opens(OFFBEAT, folder / "x.pb.gz")
        check(stopped > 1.7 and shown.get("[stopped]", 0) / 1e9 > 1.7, f"{stopped} s stopped, of which {shown} show")


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
