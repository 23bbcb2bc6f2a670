"""Programs that become many, are denied something, or keep step with a timer. Arguments: the build folder, and
optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import json
import os
import sys

from recording import (Folder, Offbeat, case, case_by_the_clock, check, check_equal, chunk_functions, envelope_chunks, main, opens,
                       pprof_labels, run, short, skip, text, user_without_rights)

OFFBEAT = Offbeat(sys.argv[1])
LOCKSTEP = OFFBEAT.programs / "lockstep"
POINTS = 0.03      # how far a share may be from the truth
NEARLY = 0.12      # how far the time of a function may be from the truth, of half a second at 101 Hz


def pairs(output):
    """{name: number} of "NAME NUMBER" lines; numbers of one name are summed."""
    found = {}
    for line in text(output).splitlines():
        name, number = line.split()
        found[name] = found.get(name, 0) + float(number)
    return found


def record(folder, way, offbeat=OFFBEAT, **options):
    """The true {function: ms} of the program that went this WAY."""
    done = offbeat.record(folder, offbeat.programs / "processes", way, **options)
    check(done.returncode == 0, f"status {done.returncode}: {text(done.stderr)}")
    return pairs(done.stdout)


def check_times(folder, truth, nearly=NEARLY):
    """What a busy machine makes the sampler lose is no fault, as long as it says so."""
    seen, printed = opens(OFFBEAT, folder / "x.pb.gz"), facts(folder)
    lost_ms = sum(printed[name] for name in ("lost_late", "lost_unanswered", "lost_in_kernel", "lost_no_table")) * 1000 / 101
    check(lost_ms <= 0.3 * sum(truth.values()), f"{lost_ms:.0f} ms were lost: {printed}")
    for function, true_ms in truth.items():
        seen_ms = seen.get(function, 0) / 1e6
        check(-nearly * true_ms - lost_ms <= seen_ms - true_ms <= nearly * true_ms,
              f"{function}: {seen_ms:.0f} ms, in truth {true_ms:.0f} ms; counted as lost: {lost_ms:.0f} ms")


def functions_by_process(folder):
    """{profiler id: functions that work} over all envelopes."""
    found = {}
    for path in sorted(folder.glob("x*.envelope")):
        for chunk in envelope_chunks(path):
            works = {name for name in chunk_functions(chunk) if name and name.startswith("works_")}
            found.setdefault(chunk["profiler_id"], set()).update(works)
    return found


def facts(folder):
    return OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]


# --- processes that become many --------------------------------------------------------------------------------------

@short
@case_by_the_clock
def a_fork_has_its_own_profiler_id_and_the_parent_keeps_its_samples():
    with Folder() as folder:
        check_times(folder, record(folder, "fork"))
        found = functions_by_process(folder)
        check_equal(sorted(map(sorted, found.values())),
                    [["works_in_the_child"], ["works_in_the_grandchild"], ["works_in_the_parent"]], "functions by profiler id")
        check_equal(len(pprof_labels(folder / "x.pb.gz")["pid"]), 3, "pids")


@case_by_the_clock
def the_parent_is_profiled_through_a_vfork_and_its_child_after_exec():
    with Folder() as folder:
        check_times(folder, record(folder, "vfork"))
        check_equal(sorted(map(sorted, functions_by_process(folder).values())), [["works_at_the_end"], ["works_in_the_parent"]],
                    "functions by profiler id")


@case_by_the_clock
def a_chain_of_exec_is_profiled_to_its_end():
    with Folder() as folder:
        check_times(folder, record(folder, "exec"))
        check_equal(sorted(map(sorted, functions_by_process(folder).values())),
                    [["works_after_exec"], ["works_at_the_end"], ["works_before_exec"]], "functions by profiler id")
        check_equal(len(pprof_labels(folder / "x.pb.gz")["pid"]), 1, "pids")


@case_by_the_clock
def a_thread_made_by_raw_clone_is_seen():
    with Folder() as folder:
        check_times(folder, record(folder, "raw-thread"))


@case_by_the_clock
def threads_that_end_at_any_moment_have_their_share():
    with Folder() as folder:
        check_times(folder, record(folder, "moments"), nearly=0.25)


@case
def counts_cpu_time_from_before_the_library_was_loaded():
    script = "i=0; while [ $i -lt 60 ]; do perl -e 1; i=$((i+1)); done; times"
    with Folder() as folder:
        done = run(OFFBEAT.program, "record", "--mode", "cpu", "-o", "x.pb.gz", "--", "sh", "-c", script, cwd=folder)
        check_equal(done.returncode, 0, f"status: {text(done.stderr)}")
        times = [float(word[:-1].split("m")[1]) for word in text(done.stdout).split()]  # "0m0.010000s", all under a minute
        program_s = sum(times) - facts(folder)["sampler_cpu_ns"] / 1e9
        top = OFFBEAT.answer("top", folder / "x.pb.gz")
        starting_s = sum(row["self"] for row in top["functions"] if row["name"] == "[starting]") / 1e9
        # The kernel's times are in steps of 10 ms.
        check(abs(top["total"] / 1e9 / program_s - 1) <= 0.25, f"{top['total'] / 1e9:.3f} s of {program_s:.3f} s, {starting_s:.3f} s of it starting")
        check(starting_s >= 0.1 * program_s, f"{starting_s:.3f} s of {program_s:.3f} s are the start of 61 processes")


# --- denied ----------------------------------------------------------------------------------------------------------

@case
def a_process_that_is_not_dumpable_still_gives_samples():
    user = user_without_rights()
    with Folder() as folder:
        folder.chmod(0o777)
        check_times(folder, record(folder, "not-dumpable", OFFBEAT.reachable(), **user))


@case
def under_seccomp_no_perf_event_is_asked_for_and_info_says_why():
    with Folder() as folder:
        check_times(folder, record(folder, "seccomp"))
        check(facts(folder)["perf_pages"] == 0, f"perf pages: {facts(folder)['perf_pages']}")
        # The program that installs the filter has its own recording, which ends there.
        printed = [chunk["offbeat"]["facts"]["idle_detection"] for path in folder.glob("x*.envelope") for chunk in envelope_chunks(path)]
        check(any("not permitted" in words.lower() for words in printed), f"idle_detection: {printed}")


@case
def timestamps_keep_their_order_while_the_wall_clock_is_set_back():
    with Folder() as folder:
        environment = {**os.environ, "TMPDIR": str(folder), "LD_PRELOAD": str(OFFBEAT.programs / "clock_set_back.so")}
        truth = record(folder, "end", env=environment)
        chunks = [chunk for path in sorted(folder.glob("x*.envelope")) for chunk in envelope_chunks(path)]
        check(chunks, "there is no chunk")
        for chunk in chunks:
            times = [sample["timestamp"] for sample in chunk["profile"]["samples"]]
            check(times == sorted(times), f"timestamps go back: {times}")
            lasted_ms = (times[-1] - times[0]) * 1000
            check(abs(lasted_ms - truth["works_at_the_end"]) <= 100, f"{lasted_ms:.0f} ms from first to last, "
                  f"in truth {truth['works_at_the_end']:.0f} ms")


# --- in step ---------------------------------------------------------------------------------------------------------

def lockstep_errors(frequency, seconds):
    """How far the share of each function is from the truth, in points."""
    with Folder() as folder:
        done = OFFBEAT.record(folder, LOCKSTEP, seconds, options=["-F", frequency])
        check(done.returncode == 0, f"status {done.returncode}: {text(done.stderr)}")
        seen, total = opens(OFFBEAT, folder / "x.pb.gz"), OFFBEAT.answer("top", folder / "x.pb.gz")["total"]
        return {function: 100 * (seen.get(function, 0) / total - share) for function, share in pairs(done.stdout).items()}


@case
def work_in_step_with_a_100_hz_timer_has_its_true_shares_at_101_hz():
    """A beat between both takes a second, so that ten seconds hold every phase ten times. A virtual machine that its host
    stops now and then can spoil one recording, but not three."""
    same = lockstep_errors(100, 4)
    print("# at 100 Hz, in the same step: " + ", ".join(f"{name} {error:+.1f} points" for name, error in same.items()))
    for _ in range(3):
        errors = lockstep_errors(101, 10)
        print("# at 101 Hz: " + ", ".join(f"{name} {error:+.1f} points" for name, error in errors.items()))
        if max(map(abs, errors.values())) <= 100 * POINTS:
            return
    check(False, json.dumps(errors))


@case
def the_samplers_threads_do_not_race():
    program = OFFBEAT.build / "test/soak/races"
    if not program.exists():
        skip("this compiler has no TSan")
    with Folder() as folder:
        done = run(program, 3, folder)
    if b"unexpected memory mapping" in done.stderr:
        skip("TSan does not support the way this kernel lays out memory: sysctl vm.mmap_rnd_bits=28")
    check_equal(done.returncode, 0, f"status: {text(done.stderr)}")


@case
def a_threads_time_is_counted_once_while_others_end():
    """The kernel left some out of its list, which were taken for ended and met again: 2.9 s of 1.6 were counted."""
    with Folder() as folder:  # which checks the times at its end
        for number in range(3):
            done = run(*OFFBEAT.command("record", "-F", 499, "-o", f"{number}.pb.gz", "--", OFFBEAT.programs / "threads_end"), cwd=folder)
            check_equal(done.returncode, 0, f"status: {text(done.stderr)}")


main(sys.argv[2] if len(sys.argv) > 2 else "")
