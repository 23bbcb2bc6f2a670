"""`offbeat record` while its program runs: stops, signals, profiles so far. Arguments: the build folder, and optionally a part of the
names of the cases to run. SPDX-License-Identifier: MIT"""
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import Folder, Offbeat, case, check, check_equal, main, opens, run, skip, text  # noqa: E402
from terminal import open_terminal  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
SECONDS = 60
BUSY = OFFBEAT.build / "test/safety/safety_busy"


def start(folder, *command, options=(), **more):
    return subprocess.Popen(OFFBEAT.command("record", "-o", "x.pb.gz", *options, "--", *command), cwd=folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def wait_until(condition, what):
    deadline = time.monotonic() + SECONDS
    while not condition():
        check(time.monotonic() < deadline, f"{what} did not happen in {SECONDS} s")
        time.sleep(0.01)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


def child_of(process):
    """The program, once `record` has started it and exec has replaced the copy of `record`."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: children.read_text(encoding="ascii").split(), "the start of the program")
    child = int(children.read_text(encoding="ascii").split()[0])
    wait_until(lambda: os.readlink(f"/proc/{child}/exe") != os.readlink(f"/proc/{process.pid}/exe"), "exec")
    return child


def end(process, status):
    out, err = process.communicate(timeout=SECONDS)
    check_equal(process.returncode, status, f"exit status; {text(err)}")
    return text(out), text(err)


# --- stops -----------------------------------------------------------------------------------------------------------

@case
def survives_a_stop_of_its_program_that_another_process_ends():
    with Folder() as folder:
        job = start(folder, "sh", "-c", "sleep 0.1; kill -STOP $$; exit 9", process_group=0)
        child = child_of(job)
        wait_until(lambda: state_of(child) == "T", "the stop")
        time.sleep(0.2)
        check(state_of(job.pid) != "T", "record stopped, too")
        os.kill(child, signal.SIGCONT)
        end(job, 9)


@case
def passes_on_that_it_is_continued():
    with Folder() as folder:
        job = start(folder, "sh", "-c", "sleep 0.1; kill -STOP $$; exit 9", process_group=0)
        child = child_of(job)
        wait_until(lambda: state_of(child) == "T", "the stop")
        os.kill(job.pid, signal.SIGCONT)
        end(job, 9)


@case
def a_job_stopped_from_the_terminal_continues():
    with Folder() as folder:
        job = start(folder, "sh", "-c", "sleep 0.5; exit 9", process_group=0)
        child_of(job)
        for _ in range(3):
            time.sleep(0.1)
            os.killpg(job.pid, signal.SIGTSTP)
            wait_until(lambda: state_of(job.pid) == "T", "the stop")
            os.killpg(job.pid, signal.SIGCONT)
        end(job, 9)


# --- a profile while the program runs --------------------------------------------------------------------------------

@case
def writes_the_profile_when_sampling_ends():
    with Folder() as folder:
        job = start(folder, "sh", "-c", f"{BUSY} 0.2; exec {BUSY} 60", options=("-d", "0.5"))
        wait_until((folder / "x.pb.gz").exists, "the profile")
        check(job.poll() is None, "the program has ended")
        wait_until(lambda: b"x.pb.gz" in os.read(job.stderr.fileno(), 4096), "the line")
        duration = OFFBEAT.answer("info", folder / "x.pb.gz")["duration"] / 1e9
        check(0.4 < duration < 1, f"the profile has {duration} s")
        check_equal(opens(OFFBEAT, folder / "x.pb.gz").get("main", 0) > 1e8, True, "main is in it")
        os.kill(child_of(job), signal.SIGKILL)
        before = (folder / "x.pb.gz").read_bytes()
        end(job, -signal.SIGKILL)
        check_equal((folder / "x.pb.gz").read_bytes(), before, "the profile at the end")


@case
def processes_that_start_after_sampling_record_nothing():
    with Folder() as folder:
        script = f"sleep 0.5; {BUSY} 0.2; ls $OFFBEAT_RECORD_DIRECTORY | wc -l"
        out, _ = end(start(folder, "sh", "-c", script, options=("-d", "0.1")), 0)
        check_equal(out.split()[-1], "0", "recordings")


@case
def names_the_program_as_typed_when_sampling_ends():
    with Folder() as folder:
        for _ in range(5):  # the first tick may meet it while it starts
            _, said = end(start(folder, "sleep", "0.5", options=("--mode", "cpu", "-F", "1", "-d", "0.1")), 0)
            if "samples of 1 thread" not in said:
                break
        check("offbeat: no sample of sleep was taken; one is taken every 1000.0 ms" in said, said)


@case
def sigusr1_writes_what_was_sampled_so_far():
    with Folder() as folder:
        job = start(folder, BUSY, "1.5")
        child_of(job)
        time.sleep(0.5)
        os.kill(job.pid, signal.SIGUSR1)
        wait_until((folder / "x.pb.gz").exists, "the profile")
        check(job.poll() is None, "the program has ended")
        so_far = opens(OFFBEAT, folder / "x.pb.gz")["main"]
        end(job, 0)
        whole = opens(OFFBEAT, folder / "x.pb.gz")["main"]
        check(1e8 < so_far < 0.9 * whole, f"{so_far / 1e9} s of {whole / 1e9} s")


@case
def ctrl_backslash_writes_what_was_sampled_so_far():
    ours, theirs = open_terminal()
    with Folder() as folder:
        command = " ".join(map(str, OFFBEAT.command("record", "-o", "x.pb.gz", "--", BUSY, "1.5")))
        job = subprocess.Popen(["setsid", "--ctty", "--wait", "sh", "-c", f"exec {command}"], cwd=folder, stdin=theirs, stdout=theirs,
                               stderr=theirs)
        os.close(theirs)
        time.sleep(0.7)
        os.write(ours, b"\x1c")
        wait_until((folder / "x.pb.gz").exists, "the profile")
        check(job.poll() is None, "the program has ended")
        check_equal(job.wait(timeout=SECONDS), 0, "exit status")
        os.close(ours)


# --- the first process of a container --------------------------------------------------------------------------------

@case
def reaps_orphans_as_the_first_process_of_a_container():
    if run("unshare", "-pf", "--mount-proc", "true").returncode != 0:
        skip("no new process namespace can be created")
    with Folder() as folder:
        script = "for i in 1 2 3; do sh -c 'sleep 0.1 & exit 0'; done; sleep 0.6; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l"
        done = run("unshare", "-pf", "--mount-proc", *OFFBEAT.command("record", "-o", "x.pb.gz", "--", "sh", "-c", script), cwd=folder)
        check_equal(text(done.stdout).strip(), "0", f"zombies; {text(done.stderr)}")


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
