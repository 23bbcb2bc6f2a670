"""Processes that run already, recorded from outside. Arguments: the build folder, and optionally a part of the names of the cases
to run. SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import ROOT, Folder, Offbeat, case, case_by_the_clock, check, check_equal, main, run, short, skip, text, user_without_rights, wait_until  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
PROGRAM = OFFBEAT.build / "test/end_to_end/attached"


class Running:
    """The program, or COMMAND, until the end of the block."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen(command or [PROGRAM], stdout=subprocess.PIPE, cwd="/", **options)
        self.process.stdout.readline()

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def offbeat(folder, *arguments, **options):
    return run(OFFBEAT.build / "offbeat", *arguments, cwd=folder, **options)


def needs(engine):
    with Folder() as folder, Running() as program:
        tried = offbeat(folder, "record", "--engine", engine, "-p", str(program.pid), "-d", "0.05", "-o", "x.pb.gz")
    if "no engine can record" in text(tried.stderr):
        skip(text(tried.stderr).strip())


def recorded(folder, *arguments, program=None, **options):
    """What `record` says of the program, after it has written x.pb.gz."""
    done = offbeat(folder, "record", "-p", str(program.pid), "-o", "x.pb.gz", *arguments, **options)
    check_equal(done.returncode, 0, text(done.stderr))
    return text(done.stderr)


def top(folder, *arguments):
    done = offbeat(folder, "top", "--json", "-n", "100", *arguments, "x.pb.gz")
    check_equal(done.returncode, 0, text(done.stderr))
    return {row["name"]: row for row in json.loads(done.stdout)["functions"]}


def check_shares(engine):
    """A busy machine leaves the program a share of a processor, and fewer samples: root's program takes more."""
    needs(engine)
    first = ("nice", "-n", "-15") if os.geteuid() == 0 else ()
    with Folder() as folder, Running(*first, PROGRAM) as program:
        recorded(folder, "--engine", engine, "-F", "997", "-d", "4", program=program)
        rows = top(folder, "--sample-index", "cpu")
        seventy, thirty = rows["spends_seventy"]["total"], rows["spends_thirty"]["total"]
        share = 100 * seventy / (seventy + thirty)
        check(abs(share - 70) <= 3, f"{share:.1f} % of the CPU time, not 70")
        whole = rows["burns"]["total"] / sum(row["self"] for row in rows.values())
        check(whole > 0.9, f"{100 * whole:.1f} % of the CPU time is below the thread's function")


@case_by_the_clock
def shares_of_cpu_time_are_right_by_bpf():
    check_shares("bpf")


@case_by_the_clock
def shares_of_cpu_time_are_right_by_perf():
    check_shares("perf")


def for_ordinary_user(*command):
    """A program that an ordinary user started, and the options to run offbeat as that user."""
    reachable, user = OFFBEAT.reachable(), user_without_rights()
    return reachable, user, Running(*(command or [reachable.build / "test/end_to_end/attached"]), **user)


@case
def an_ordinary_user_records_own_processes_by_perf():
    reachable, user, program = for_ordinary_user()
    with Folder() as folder, program as process:
        folder.chmod(0o777)
        done = run(reachable.build / "offbeat", "record", "-p", str(process.pid), "-d", "2", "-F", "499", "-o", "x.pb.gz", cwd=folder,
                   env={**os.environ, "HOME": str(folder)}, **user)
        said = text(done.stderr)
        check_equal(done.returncode, 0, said)
        if "by proc" in said:
            skip(said)
        check("recording by perf, because" in said and "CAP_BPF" in said, said)
        rows = top(folder, "--sample-index", "cpu")
        check(rows["spends_seventy"]["total"] > rows["spends_thirty"]["total"] > 0, str(rows))
        check(top(folder, "--sample-index", "blocked")["waits_forever"]["total"] > 0.9e9, "the blocked thread")


@case
def a_process_of_another_user_is_denied_with_the_reason():
    """Process 1 is root's."""
    reachable, user = OFFBEAT.reachable(), user_without_rights()
    if not user:
        skip("needs root, to be another user")
    with Folder() as folder:
        folder.chmod(0o777)
        done = run(reachable.build / "offbeat", "record", "-p", "1", "-d", "1", cwd=folder, **user)
    check_equal(done.returncode, 3, text(done.stderr))
    check("process 1 belongs to another user" in text(done.stderr), text(done.stderr))


@case
def a_root_user_without_rights_is_not_told_to_become_root():
    user = user_without_rights()
    if not user:
        skip("needs root, to be another user")
    with Folder() as folder, subprocess.Popen(["sleep", "60"], **user) as other:
        try:
            done = run("setpriv", "--bounding-set=-sys_ptrace", OFFBEAT.program, "record", "-p", str(other.pid), "-d", "0.1", cwd=folder)
        finally:
            other.kill()
    said = text(done.stderr)
    check(f"process {other.pid} belongs to another user" in said and "CAP_SYS_PTRACE" in said, said)
    check("sudo" not in said and "yama" not in said, said)


@case
def each_engine_degrades_to_the_next_one():
    needs("perf")
    with Folder() as folder, Running() as program:
        for denied, by in (("bpf", "perf"), ("bpf,perf", "proc")):
            said = recorded(folder, "-d", "0.2", program=program, env={**os.environ, "OFFBEAT_DENIED_ENGINES": denied})
            check(f"recording by {by}, because denied by OFFBEAT_DENIED_ENGINES; the remedy: unset" in said, said)
            engine = text(offbeat(folder, "info", "x.pb.gz").stdout)
            check({"perf": "by perf events", "proc": "files of /proc"}[by] in engine, engine)
        done = offbeat(folder, "record", "-p", str(program.pid), env={**os.environ, "OFFBEAT_DENIED_ENGINES": "bpf,perf,proc"})
        check_equal(done.returncode, 3, text(done.stderr))
        check("no engine can record: denied" in text(done.stderr), text(done.stderr))


@case
def the_doctor_names_what_is_missing():
    with Folder() as folder:
        done = offbeat(folder, "doctor", env={**os.environ, "OFFBEAT_DENIED_ENGINES": "bpf,perf"})
    check_equal(done.returncode, 1, text(done.stdout))
    for line in ("bpf     does not work: denied", "the remedy: unset", "proc    works", "CAP_PERFMON", "kernel.perf_event_paranoid"):
        check(line in text(done.stdout), f"{line}: {text(done.stdout)}")


@short
@case
def blocked_threads_are_exact_by_any_engine():
    """The whole stack of a thread that sleeps, and that of a deep recursion."""
    for engine in ("proc", "perf", "bpf"):
        with Folder() as folder, Running() as program:
            said = offbeat(folder, "record", "--engine", engine, "-p", str(program.pid), "-d", "1", "-o", "x.pb.gz")
            if "no engine can record" in text(said.stderr):
                continue
            rows = top(folder, "--sample-index", "wall")
            asleep = rows["sleeps_briefly"]["total"]
            deep = rows["waits_forever"]["total"]
            check(rows["main"]["total"] >= asleep > 0.3e9, f"{engine}: asleep {asleep}, main {rows['main']['total']}")
            check(rows["is_deep"]["total"] == deep > 0.9e9, f"{engine}: {deep} ns in the recursion")


@case
def a_static_command_is_recorded_from_outside_and_its_status_kept():
    static = OFFBEAT.build / "test/end_to_end/behaves_static"
    with Folder() as folder:
        refused = offbeat(folder, "record", "--", static)
        check("--engine bpf records it from outside" in text(refused.stderr), text(refused.stderr))
        for engine in ("bpf", "perf"):
            needs(engine)
            done = offbeat(folder, "record", "--engine", engine, "-o", "x.pb.gz", "--", PROGRAM.with_name("attached_static"), "1")
            check_equal(done.returncode, 7, text(done.stderr))
            check(top(folder)["waits_forever"]["total"] > 0.5e9, text(done.stderr))


# --- waits ---------------------------------------------------------------------------------------------------------------

def waits_of(folder, thread, *arguments):
    rows = top(folder, "--thread", f"^{thread}$", *arguments)
    return rows, sum(row["self"] for row in rows.values())


def record_waits(folder, *arguments):
    """The time for which each thread had no processor, nanoseconds, as it says itself."""
    needs("bpf")
    done = offbeat(folder, "record", "--mode", "off-cpu", "-o", "x.pb.gz", *arguments, "--", PROGRAM.with_name("waits"))
    check_equal(done.returncode, 0, text(done.stderr))
    return {name: int(us) * 1000 for name, us in (line.split() for line in text(done.stdout).splitlines())}


@case_by_the_clock
def waits_are_all_the_time_that_a_thread_has_no_processor():
    """The threads begin and end a little outside of the time that they measure. Where a hypervisor stops a processor, the kernel
    may report no switch: that is up to one wait of 25."""
    with Folder() as folder:
        for thread, measured in record_waits(folder, "--wakers").items():
            rows, found = waits_of(folder, thread)
            switches_ns = 0.1 * measured if thread == "sleeps_short" else 0  # some µs of each wait are the recorder's own in the kernel
            check(0.95 * measured < found < 1.03 * measured + switches_ns + 5e6 + rows.get("[starting]", {"self": 0})["self"],
                  f"{thread}: {found} ns, by its clocks {measured}")
        for thread, reason, frame in (("sleeps_long", "sleep", "pauses"), ("awaits_turn", "lock", "awaits_turn"), ("reads_pipe", "pipe", "reads_pipe")):
            rows, found = waits_of(folder, thread, "--tag-focus", f"wait=^{reason}$")
            check(frame in rows and rows[frame]["total"] > 0.9 * found > 0.4e9, f"{thread}: {found} ns of {reason}, {rows}")
        for thread, waker in (("awaits_turn", "gives_turn"), ("reads_pipe", "fills_pipe"), ("sleeps_long", r"\[interrupt")):
            _, found = waits_of(folder, thread, "--tag-focus", f"waker=^{waker}")
            check(found > 0.8 * waits_of(folder, thread)[1], f"{thread}: woken by {waker} after {found} ns")


@case_by_the_clock
def waits_below_the_threshold_are_one_sum():
    with Folder() as folder:
        measured = record_waits(folder, "--min-wait", "0.01")["sleeps_short"]
        rows, found = waits_of(folder, "sleeps_short")
        check(rows["[short waits]"]["self"] > 0.5 * found, rows)
        check(found > 0.97 * measured, f"{found} ns, by its clocks {measured}")


@case
def functions_of_the_kernel_are_between_the_threads_and_the_processor():
    needs("bpf")
    with Folder() as folder:
        record_waits(folder, "--kernel")
        rows, found = waits_of(folder, "sleeps_short")
        if not any(name.startswith("__x64_sys_") for name in rows):
            skip("the kernel hides its names (kptr_restrict)")
        check(rows["pauses"]["total"] >= rows["__x64_sys_clock_nanosleep"]["total"] > 0.5 * found, rows)
        check(not any(name.startswith("bpf_") for name in rows), rows)


@case_by_the_clock
def a_wait_that_began_before_the_recording_has_its_stack():
    needs("bpf")
    with Folder() as folder, Running() as program:
        recorded(folder, "--mode", "off-cpu", "-d", "1", program=program)
        deep = top(folder)["waits_forever"]["total"]
        check(0.9e9 < deep < 1.3e9, f"{deep} ns in the recursion")


CHILDREN = """
import os, time
end = time.monotonic() + 1
while time.monotonic() < end:
    if os.fork() == 0:
        time.sleep(0.005)
        os._exit(0)
    os.wait()
"""


@case
def waits_of_children_that_ended_before_they_were_seen_are_there():
    """Their parent has them, because it has all that is seen of such a child."""
    needs("bpf")
    with Folder() as folder:
        done = offbeat(folder, "record", "--mode", "off-cpu", "--engine", "bpf", "-F", "5", "-o", "x.pb.gz", "--", sys.executable, "-c", CHILDREN)
        check_equal(done.returncode, 0, text(done.stderr))
        slept, awaited = (sum(row["self"] for row in top(folder, "--tag-focus", f"wait=^{reason}$").values()) for reason in ("sleep", "child"))
        check(slept > 0.4 * awaited > 0.04e9, f"children slept for {slept} ns, for which their parent waited {awaited} ns")


# --- code that its path does not lead to ---------------------------------------------------------------------------------

@case_by_the_clock
def a_short_command_is_recorded_from_its_first_instruction():
    """A shell counts for a while, and says what CPU time that took; each program that it executes is a process."""
    needs("bpf")
    script = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; times; exec sleep 0.1"
    with Folder() as folder:
        done = offbeat(folder, "record", "--engine", "bpf", "-F", "1000", "-o", "x.pb.gz", "--", "sh", "-c", script)
        check_equal(done.returncode, 0, text(done.stderr))
        measured = sum(float(part.split("m")[1].rstrip("s")) for part in text(done.stdout).split()[:2])
        found = sum(row["self"] for name, row in top(folder, "--sample-index", "cpu").items() if not name.startswith("[")) / 1e9
        check(0.8 * measured - 0.01 < found < 1.2 * measured + 0.03, f"{found} s, by the shell {measured}: {text(done.stderr)}")
        check("2 processes" in text(done.stderr), text(done.stderr))


def check_names(program_pid, folder):
    done = offbeat(folder, "record", "-p", program_pid, "-d", "1", "-o", "x.pb.gz")
    check_equal(done.returncode, 0, text(done.stderr))
    rows = top(folder)
    check({"waits_forever", "is_deep", "sleeps_briefly"} <= set(rows), f"{text(done.stderr)} {sorted(rows)}")


def needs_root():
    if os.geteuid() != 0:
        skip("needs root")


@case
def deleted_and_replaced_files_have_names():
    needs_root()
    with Folder() as folder:
        copy = folder / "copy"
        shutil.copy2(PROGRAM, copy)
        with Running(copy) as program:
            copy.unlink()
            check_names(program.pid, folder)
            shutil.copy2("/bin/true", copy)
            check_names(program.pid, folder)


@case
def a_process_in_other_namespaces_has_names():
    """Its file is in a file system that only its mount namespace has, and its own number is 1."""
    needs_root()
    inside = f"mount -t tmpfs none /mnt && cp {PROGRAM} /mnt/hidden && exec /mnt/hidden"
    unshare = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    if run(*unshare, "mount", "-t", "tmpfs", "none", "/mnt").returncode != 0:
        skip("no namespaces here")
    with Folder() as folder, Running(*unshare, "sh", "-c", inside) as outer:
        children = pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text(encoding="ascii").split()
        check_names(children[0], folder)


# --- which processes -----------------------------------------------------------------------------------------------------

@case
def processes_are_chosen_by_name_and_user_and_with_their_children():
    with Folder() as folder:
        copy = folder / "chosen-by-its-name"
        shutil.copy2(PROGRAM, copy)
        with Running(copy) as first, Running("sh", "-c", f"{copy} & wait") as second:
            done = offbeat(folder, "record", "--name", "^chosen-by-its-name$", "--user", str(os.geteuid()), "-d", "1", "-o", "x.pb.gz")
            check("in 2 processes" in text(done.stderr), text(done.stderr))
            done = offbeat(folder, "record", "-p", f"{first.pid},{second.pid}", "-d", "1", "-o", "x.pb.gz")
            check("in 3 processes" in text(done.stderr), text(done.stderr))
            run("pkill", "-P", str(second.pid))


class Recorder:
    """A recording of PROGRAM that goes on."""

    def __init__(self, folder, program, *arguments):
        self.process = subprocess.Popen([OFFBEAT.build / "offbeat", "record", "-p", str(program.pid), "-o", "x.pb.gz", *arguments],
                                        cwd=folder, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)})
        wait_until(lambda: any(path.stat().st_size for path in folder.rglob("*.recording")), "nothing is recorded")

    def end(self):
        """What it says when it has ended."""
        said = text(self.process.communicate(timeout=100)[1])
        check_equal(self.process.returncode, 0, said)
        return said


@case
def signals_write_the_profile_so_far_and_end_it():
    with Folder() as folder, Running() as program:
        recorder = Recorder(folder, program)
        recorder.process.send_signal(signal.SIGUSR1)
        wait_until((folder / "x.pb.gz").exists, "no profile")
        first = top(folder, "--sample-index", "blocked")["is_deep"]["total"]
        time.sleep(0.5)
        recorder.process.send_signal(signal.SIGINT)
        recorder.end()
        check(top(folder, "--sample-index", "blocked")["is_deep"]["total"] > first > 0, "the profile at the end is not longer")
        check(program.poll() is None, "the program has ended")


@case
def signals_to_the_whole_group_do_not_stop_the_writing():
    """timeout(1) signals its child, and then its group. nohup(1) has its program ignore SIGHUP."""
    with Folder() as folder, Running() as program:
        record = (OFFBEAT.build / "offbeat", "record", "--engine", "proc", "-p", str(program.pid))
        ended = run("timeout", "1", *record, "-o", "x.pb.gz", cwd=folder)
        check("samples of" in text(ended.stderr) and (folder / "x.pb.gz").exists(), text(ended.stderr))
        script = 'trap "" HUP; "$@" & sleep 0.5; kill -HUP $!; wait $!'
        ended = run("sh", "-c", script, "sh", *record, "-d", "1.5", "-o", "y.pb.gz", cwd=folder)
        check_equal(ended.returncode, 0, text(ended.stderr))
        done = offbeat(folder, "top", "--json", "--sample-index", "blocked", "y.pb.gz")
        waited = {row["name"]: row["total"] for row in json.loads(done.stdout)["functions"]}["waits_forever"]
        check(waited > 1.2e9, f"SIGHUP has ended the recording after {waited} ns")


@case
def the_end_of_the_process_ends_the_recording():
    with Folder() as folder, Running() as program:
        recorder = Recorder(folder, program)
        program.kill()
        program.wait()
        said = recorder.end()
        check("samples of" in said, said)

CHANGES = OFFBEAT.build / "test/end_to_end/changes"


def stacks_of_changes(folder, *arguments):
    """[(frames, CPU time in ns)] of the program that changes, which was recorded from its start to its end."""
    with Running(CHANGES, *arguments, stdin=subprocess.PIPE) as program:
        recorder = Recorder(folder, program, "--engine", "bpf", "--mode", "cpu", "-F", "997")
        program.communicate(b"\n", timeout=100)
        recorder.end()
    return stacks(folder)


def stacks(folder):
    done = offbeat(folder, "convert", "--to", "collapsed", "-o", "x.collapsed", "x.pb.gz")
    check_equal(done.returncode, 0, text(done.stderr))
    rows = [row.rpartition(" ") for row in (folder / "x.collapsed").read_text(encoding="utf-8").splitlines()]
    return [(row[0].split(";"), int(row[2])) for row in rows]


def check_halves(found, first, second, caller):
    """FIRST and SECOND, functions of code that changed places, have half of the time each, below CALLER in nearly all stacks."""
    sums = {name: sum(time for frames, time in found if name in frames) for name in (first, second)}
    share = sums[first] / max(sum(sums.values()), 1)
    check(0.35 < share < 0.65, f"{first}: {100 * share:.0f} % of the time of both")
    wrong = sum(time for frames, time in found if {first, second} & set(frames) and caller not in " ".join(frames))
    check(wrong <= 0.1 * sum(sums.values()), f"{wrong} of {sum(sums.values())} ns are not below {caller}")
    mixed = [frames for frames, _ in found if {first, second} <= set(frames)]
    check_equal(mixed, [], "stacks with both")


@case_by_the_clock
def programs_that_a_process_executes_keep_their_own_stacks():
    needs("bpf")
    with Folder() as folder:
        check_halves(stacks_of_changes(folder, "executes", "60"), "burns_as_odd", "burns_as_even", "executes")


@case_by_the_clock
def code_in_the_place_of_unloaded_code_keeps_its_own_stacks():
    needs("bpf")
    with Folder() as folder:
        libraries = [CHANGES.with_name(f"changes_{name}.so") for name in ("alpha", "beta")]
        check_halves(stacks_of_changes(folder, "loads", "60", *libraries), "calls_alpha", "calls_beta", "loads")


@short
@case
def children_are_recorded_from_their_start():
    needs("bpf")
    with Folder() as folder:
        found = stacks_of_changes(folder, "forks", "30")
        burnt = sum(time for frames, time in found if "burns_as_odd" in frames)
        check(burnt > 200e6, f"{burnt} ns of 30 children that burn 10 ms each")


@case
def a_process_number_that_is_used_again_is_not_recorded():
    needs("bpf")
    with Folder() as folder:
        parent = subprocess.Popen([CHANGES, "reuses"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        first = int(parent.stdout.readline())
        child = subprocess.Popen([OFFBEAT.build / "offbeat", "record", "--engine", "bpf", "-p", str(first), "-o", "x.pb.gz"], cwd=folder,
                                 stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)})
        wait_until(lambda: any(path.stat().st_size for path in folder.rglob("*.recording")), "nothing is recorded")
        parent.communicate(b"\n", timeout=100)
        child.communicate(timeout=100)
        if parent.returncode == 2:
            skip("a process cannot choose the number of its child here")
        names = {name for frames, _ in stacks(folder) for name in frames}
        check("burns_as_odd" in names and "burns_as_even" not in names, f"{sorted(names)}")


GO_PROGRAM = """package main

import "sort"

func work(done chan int) {
	for {
		numbers := []int{}
		for i := 0; i < 5000; i++ {
			numbers = append(numbers, i*7919%5000)
		}
		sort.Ints(numbers)
		done <- numbers[0]
	}
}

func main() {
	println("ready")
	done := make(chan int)
	go work(done)
	go work(done)
	for {
		<-done
	}
}
"""


@case
def a_stripped_static_go_program_has_complete_stacks():
    needs("bpf")
    if not shutil.which("go"):
        skip("go is not installed")
    with Folder() as folder:
        (folder / "work.go").write_text(GO_PROGRAM, encoding="utf-8")
        environment = {**os.environ, "CGO_ENABLED": "0", "GOCACHE": str(folder / "cache")}
        subprocess.run(["go", "build", "-ldflags", "-s -w", "-o", "work", "work.go"], cwd=folder, env=environment, check=True)
        with Running(folder / "work", stderr=subprocess.STDOUT) as program:
            recorded(folder, "--engine", "bpf", "--mode", "cpu", "-F", "499", "-d", "2", program=program)
        found = stacks(folder)
        incomplete = sum(time for frames, time in found if frames[0].startswith("[incomplete"))
        whole = sum(time for _, time in found)
        check(whole > 0 and incomplete < 0.05 * whole, f"{incomplete} of {whole} ns have incomplete stacks")


JAVA_PROGRAM = """
import java.util.*;

class Work {
    static long orders(int round) {
        Map<String, Integer> found = new TreeMap<>();
        for (int i = 0; i < 500; i++) found.merge("key " + (i * 7919 + round) % 100, i, Integer::sum);
        return found.values().stream().mapToLong(Integer::longValue).sum();
    }
    public static void main(String[] arguments) {
        for (int round = 0; ; round++) {
            if (orders(round) == 42) System.out.println(round);
            if (round == 4000) System.out.println("ready"); // the hot methods are compiled
        }
    }
}
"""


@case
def java_without_frame_pointers_has_complete_stacks():
    """The Java virtual machine is asked for the frames of the code that it has generated."""
    needs("bpf")
    if not shutil.which("java") or os.uname().machine != "x86_64":
        skip("java is not installed, or its frames are not known on this machine")
    with Folder() as folder:
        (folder / "Work.java").write_text(JAVA_PROGRAM, encoding="utf-8")
        with Running("java", "-Xshare:auto", "-XX:+UseSerialGC", folder / "Work.java") as program:
            recorded(folder, "--engine", "bpf", "--mode", "cpu", "-F", "499", "-d", "2", program=program)
        found = [(frames, time) for frames, time in stacks(folder) if any("JavaCalls" in name or name == "[anon]" for name in frames)]
        incomplete = sum(time for frames, time in found if frames[0].startswith("[incomplete"))
        whole = sum(time for _, time in found)
        check(whole > 0 and incomplete < 0.05 * whole, f"{incomplete} of {whole} ns have incomplete stacks")


def check_assembly(engine):
    """Code without tables is crossed to its caller, and none is left out."""
    needs(engine)
    if os.uname().machine != "x86_64":
        skip("the assembly is for x86-64")
    with Folder() as folder, Running(OFFBEAT.build / "test/end_to_end/assembly") as program:
        recorded(folder, "--engine", engine, "--mode", "cpu", "-F", "499", "-d", "1.5", program=program)
        found = [(frames[frames.index("main"):] if "main" in frames else frames, time) for frames, time in stacks(folder)]
        whole = sum(time for _, time in found)
        for caller in ("calls_directly", "calls_by_pointer"):
            chain = ["main", "alternates", caller, "spins_in_assembly", "turns"]
            share = sum(time for frames, time in found if frames == chain) / whole
            check(share > 0.3, f"{100 * share:.0f} % are {chain}: {found}")


@case
def assembly_without_tables_is_crossed_by_bpf():
    check_assembly("bpf")


@case
def assembly_without_tables_is_crossed_by_perf():
    check_assembly("perf")


@case
def a_recorder_with_process_numbers_of_its_own_finds_processes():
    """The kernel's programs see the numbers of the initial namespace."""
    needs("bpf")
    script = '"$1" & "$2" record --engine bpf -p $! -d 1 -o x.pb.gz && kill $!'
    with Folder() as folder:
        done = run("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh", PROGRAM, OFFBEAT.build / "offbeat", cwd=folder)
        if "unshare" in text(done.stderr):
            skip(text(done.stderr).strip())
        check_equal(done.returncode, 0, text(done.stderr))
        rows = top(folder, "--sample-index", "cpu")
        check(rows["spends_seventy"]["total"] > 0, f"{sorted(rows)}")


@case
def samples_have_the_container_of_their_process():
    identity = "3f2a9c1b7d10" + "5e" * 26
    roots = [root for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.access(f"{root}/cgroup.procs", os.W_OK)]
    if not roots:
        skip("no unified hierarchy of control groups can be written")
    group = pathlib.Path(roots[0]) / f"docker-{identity}.scope"
    try:
        group.mkdir()
    except OSError as error:
        skip(f"{group}: {error}")
    try:
        with Folder() as folder, Running() as program:
            (group / "cgroup.procs").write_text(str(program.pid))
            recorded(folder, "-d", "0.5", program=program)
            check("3f2a9c1b7d10\n" in text(offbeat(folder, "tags", "x.pb.gz").stdout), "the label container")
            check("container 3f2a9c1b7d10\n" in text(offbeat(folder, "info", "x.pb.gz").stdout), "the container")
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), "the program is still there")
        group.rmdir()


@case
def a_process_that_executes_another_program_is_called_after_it():
    needs("bpf")
    with Folder() as folder:
        done = offbeat(folder, "record", "--engine", "bpf", "-o", "x.pb.gz", "--", "sh", "-c", f"{PROGRAM} 1; true")
        check_equal(done.returncode, 0, text(done.stderr))
        rows = json.loads(offbeat(folder, "top", "--json", "--by-process", "-n", "100", "x.pb.gz").stdout)
        found = {process["name"]: {row["name"] for row in process["functions"]} for process in rows["processes"]}
        check("spends_seventy" in found.get("attached", ()), f"{found}")
        check(not any("spends_seventy" in names for name, names in found.items() if name != "attached"), f"{found}")


@case
def cpu_time_of_short_processes_is_complete():
    """In CPU mode, most ticks observe only threads that have stacks."""
    needs("bpf")
    with Folder() as folder:
        burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
        script = f"for n in 1 2 3 4 5 6 7 8; do sh -c '{burn}'; done"
        done = offbeat(folder, "record", "--engine", "bpf", "--mode", "cpu", "-F", "49", "-o", "x.pb.gz", "--", "sh", "-c", f"{script}; times")
        check_equal(done.returncode, 0, text(done.stderr))
        minutes, seconds = text(done.stdout).splitlines()[-1].split()[0].rstrip("s").split("m")
        spent = 60 * int(minutes) + float(seconds)
        found = sum(row["self"] for row in json.loads(offbeat(folder, "top", "--json", "-n", "0", "x.pb.gz").stdout)["functions"]) / 1e9
        check(found > 0.8 * spent, f"{found} of {spent} s: {text(done.stderr)}")


def kernel_programs():
    listed = subprocess.run(["/usr/sbin/bpftool", "prog", "list", "-j"], check=True, capture_output=True)
    return {program["id"] for program in json.loads(listed.stdout) if program.get("name") == "timer_tick"}


@case
def a_killed_recorder_leaves_nothing_in_the_kernel():
    needs("bpf")
    if not pathlib.Path("/usr/sbin/bpftool").exists():
        skip("bpftool is not installed")
    with Folder() as folder, Running() as program:
        before = kernel_programs()
        recorder = Recorder(folder, program, "--engine", "bpf")
        loaded = kernel_programs() - before
        check(loaded, "no program is in the kernel")
        recorder.process.kill()
        recorder.process.communicate()
        wait_until(lambda: not loaded & kernel_programs(), f"programs are still in the kernel: {loaded}")
        check(program.poll() is None, "the program has ended")


# --- what a program notices --------------------------------------------------------------------------------------------------

FACTS = r"""
import os, re
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
for key in ("VmSize", "VmLck", "VmPin", "Threads", "TracerPid", "SigQ", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapEff", "CapBnd", "NoNewPrivs",
            "Seccomp", "Cpus_allowed"):
    print(key, status[key].split()[0] if key == "SigQ" else status[key].strip())
print(open("/proc/self/limits").read())
print(sorted({line.split()[5] for line in open("/proc/self/maps") if len(line.split()) > 5}))
print(sorted(os.listdir("/proc/self/fd")), os.nice(0), open("/proc/self/oom_score_adj").read(), os.sched_getscheduler(0))
print(sorted((name, value) for name, value in os.environ.items() if name != "_"))
print(open("/proc/self/timerslack_ns").read(), os.getcwd(), os.umask(0), os.getpgid(0) == os.getpid())
"""


def facts_of_a_process(folder, *before):
    """What a process sees of itself, without random placement of its memory."""
    script = folder / "facts.py"
    script.write_text(FACTS)
    done = run(*before, "setarch", "--addr-no-randomize", "/usr/bin/python3", "-S", "-E", script, cwd=folder,
               env={name: value for name, value in os.environ.items() if not name.startswith("OFFBEAT_")})
    check_equal(done.returncode, 0, text(done.stderr))
    return text(done.stdout).splitlines()


@case
def a_program_that_is_recorded_from_outside_sees_nothing_of_it():
    """Its memory, locked memory, threads, signals, limits, libraries, descriptors and environment are those of a bare one."""
    for engine in ("bpf", "perf", "proc"):
        needs(engine)
        with Folder() as folder:
            bare = facts_of_a_process(folder)
            seen = facts_of_a_process(folder, OFFBEAT.program, "record", "--engine", engine, "-o", "x.pb.gz", "--")
            check_equal([line for line in seen if line not in bare], [line for line in bare if line not in seen], engine)
            check(len(bare) > 20, bare)


@case
def programs_with_sanitizers_are_recorded_from_outside():
    """Address space limits, shadow memory and interceptors do not matter."""
    needs("bpf")
    if not shutil.which("cc"):
        skip("no compiler")
    with Folder() as folder:
        for sanitizer in ("address", "thread"):
            built = run("cc", "-g", "-O1", f"-fsanitize={sanitizer}", ROOT / "test/end_to_end/spins.c", "-o", f"spins-{sanitizer}", cwd=folder)
            check_equal(built.returncode, 0, text(built.stderr))
            bare = run("setarch", "--addr-no-randomize", folder / f"spins-{sanitizer}", "400", "1", cwd=folder)
            check_equal((bare.returncode, text(bare.stderr)), (0, ""), f"{sanitizer} without a recorder")
            done = offbeat(folder, "record", "--engine", "bpf", "-F", "499", "-o", "x.pb.gz", "--", "setarch", "--addr-no-randomize",
                           folder / f"spins-{sanitizer}", "400", "1")
            check_equal((done.returncode, text(done.stdout)), (0, ""), f"{sanitizer}: {text(done.stderr)}")
            check("anitizer" not in text(done.stderr), text(done.stderr))
            check(top(folder)["spin"]["total"] > 0.2e9, f"{sanitizer}: {sorted(top(folder))}")


@case
def files_of_processes_that_ended_too_soon_are_no_generated_code():
    """The line about incomplete stacks names their true cause."""
    needs("bpf")
    with Folder() as folder:
        done = offbeat(folder, "record", "--engine", "bpf", "-F", "19", "--mode", "off-cpu", "-o", "x.pb.gz", "--", "sh", "-c",
                       "i=0; while [ $i -lt 60 ]; do /bin/sleep 0.002; i=$((i+1)); done")
        check_equal(done.returncode, 0, text(done.stderr))
        said = text(done.stderr) + text(offbeat(folder, "top", "x.pb.gz").stdout)
        facts = text(offbeat(folder, "info", "x.pb.gz").stdout)
        check("generated at run time" not in said, said)
        without, unseen = (int((re.findall(rf"{key} (\d+)", facts) or ["0"])[0]) for key in ("stacks_no_table", "code_unseen"))
        check(2 * unseen > without or without == 0, f"{unseen} of {without} stacks")
        explained = said.replace("[incomplete", "")  # the name of a row
        check("incomplete" not in explained or "processes had ended before" in said + facts, said + facts)


main(sys.argv[2] if len(sys.argv) > 2 else "")
