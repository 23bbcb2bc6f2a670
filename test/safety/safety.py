"""No program is changed or endangered: the programs of this folder behave with us as they do without. Arguments: the build
folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import (Folder, Offbeat, case, case_by_the_clock, check, check_equal, main, opens, run, short, some_of, text,  # noqa: E402
                       user_without_rights)  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1]).reachable()  # most cases run programs as an ordinary user


def program(name):
    """The program NAME of this folder, as built."""
    return OFFBEAT.build / "test/safety" / f"safety_{name}"


# --- record ----------------------------------------------------------------------------------------------------------

@short
@case
def a_busy_program_ends_as_without_us_and_its_profile_opens():
    with Folder() as folder:
        done = OFFBEAT.record(folder, program("busy"), "0.5")
        check_equal(done.returncode, 0, "exit status")
        check(done.stdout.startswith(b"process cpu 0.5"), f"output: {text(done.stdout)}")
        check("main" in opens(OFFBEAT, folder / "x.pb.gz"), text(done.stderr))


# --- signals: as an ordinary user, whom the kernel gives no timer that sees system calls ------------------------------

ORDINARY, CONTAINER = [], [program("without_perf")]  # prefixes: with perf events for user code, and with none at all


def record_as_user(folder, *command, prefix=(), options=()):
    """Records COMMAND as an ordinary user without a terminal."""
    folder.chmod(0o777)
    return OFFBEAT.record(folder, *command, options=options, prefix=prefix, start_new_session=True, **user_without_rights())


@functools.lru_cache(maxsize=None)
def run_alone(*command):
    done = run(*command)
    return done.returncode, text(done.stdout)


def check_as_alone(command, prefix=(), options=()):
    """COMMAND ends and prints as without us, and its profile opens, which is the result."""
    with Folder() as folder:
        done = record_as_user(folder, *command, prefix=prefix, options=options)
        check_equal((done.returncode, text(done.stdout)), run_alone(*command), f"exit status and output; {text(done.stderr)}")
        return opens(OFFBEAT, folder / "x.pb.gz"), OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]


@case
def a_program_gets_each_sigurg_that_it_sends():
    for prefix in (ORDINARY, CONTAINER):
        for way in ([], ["working"]):
            check_as_alone([program("sigqueue_self"), *way], prefix=prefix)


@case
def every_way_to_use_sigurg_works_as_without_us():
    for prefix in (ORDINARY, CONTAINER):
        for way in some_of(("plain", "nodefer", "information", "ignore", "reset", "sigwait", "signalfd"), 2):
            check_as_alone([program("handles_sigurg"), way], prefix=prefix, options=["-F", "1009"])


@case
def a_thread_that_blocks_all_signals_may_call_exec():
    for prefix in (ORDINARY, CONTAINER):
        for _ in some_of(range(5), 3):
            with Folder() as folder:
                done = record_as_user(folder, program("exec_from_blocked_thread"), "50", prefix=prefix)
                check_equal((done.returncode, text(done.stdout)), (0, "end of the chain"), f"end; {text(done.stderr)}")


@case
def memory_that_another_thread_unmaps_is_not_read():
    for prefix in (ORDINARY, CONTAINER):
        check_as_alone([program("jit_rbp_unmapped"), "3"], prefix=prefix, options=["-F", "1009"])


@case
def our_memory_is_away_from_what_the_program_unmaps_and_maps_again():
    """Each of 20 such runs ended by SIGSEGV when the kernel chose our addresses."""
    command = [program("unmaps_in_its_area"), "1"]
    for prefix in (ORDINARY, CONTAINER):
        check_as_alone(command, prefix=prefix, options=["-F", "1009"])
    with Folder() as folder:
        done = OFFBEAT.record(folder, *command, options=["-F", "1009"])
        check_equal(done.returncode, 0, f"exit status as root; {text(done.stderr)}")


@case
def a_thread_that_confines_itself_lives():
    for prefix in (ORDINARY, CONTAINER):
        for _ in range(3):
            check_as_alone([program("seccomp_narrow"), "alone", "1000", "0", "deep"], prefix=prefix, options=["-F", "1009"])


@case
def calls_with_the_arguments_of_seccomp_have_whole_stacks():
    for prefix in (ORDINARY, CONTAINER):
        functions, facts = check_as_alone([program("calls_like_seccomp")], prefix=prefix)
        check(int(facts["stacks_root"]) > 40 and int(facts["stacks_bad_memory"]) < 3, f"whole stacks: {facts}")
        for name in ("change_descriptor", "change_interest"):
            check(functions.get(name, 0) > 0.1e9, f"{name} is not there with its part of a second: {functions}")


def share_of(done):
    """The CPU time of ten_thousand_threads as a share of its life, as it prints them."""
    check_equal(done.returncode, 0, f"exit status; {text(done.stderr)}")
    words = text(done.stdout).split()
    check_equal(words[:2], ["10000", "threads,"], "threads")
    return float(words[3]) / float(words[6])


@case
def ten_thousand_threads_cost_a_bounded_share_of_a_processor():
    """They all wait. Most of the cost is the check of each of them at each tick (bench/results/sampler.md has the figures)."""
    PROCESSOR_MAX = 0.5
    command = [program("ten_thousand_threads"), "10000"]
    bare = share_of(run(*command))
    for mode in some_of(("wall", "cpu"), 2):
        with Folder() as folder:
            share = share_of(record_as_user(folder, *command, options=["--mode", mode])) - bare
            check(mode == "cpu" or "__libc_pause" in opens(OFFBEAT, folder / "x.pb.gz"), "where they wait was not seen")
            check(share < PROCESSOR_MAX, f"{mode}: {share:.2f} of a processor")


def check_known_share(blocks, mode, prefix=()):
    """The time inside the kernel is in the profile, within POINTS of what the program measures. On a machine that is not
    idle the sampler finds only half of it (doc/decisions/sampler.md), which this bound still accepts."""
    POINTS = 16.0
    with Folder() as folder:
        done = record_as_user(folder, program("known_shares"), blocks, prefix=prefix, options=["-F", "499", "--mode", mode])
        check_equal(done.returncode, 0, f"exit status; {text(done.stderr)}")
        answer = OFFBEAT.answer("top", folder / "x.pb.gz")
        totals = {function["name"]: 100 * function["total"] / answer["total"] for function in answer["functions"]}
        seen, measured = totals.get("works_inside_the_kernel", 0), float(done.stdout)
        check(abs(seen - measured) < POINTS and seen > measured / 3, f"{seen:.1f} % inside the kernel, measured {text(done.stdout)} %: {totals}")


@case_by_the_clock
def time_inside_the_kernel_has_its_share():
    for mode in ("cpu", "wall"):
        check_known_share("none", mode)


@case_by_the_clock
def a_main_thread_that_blocks_sigurg_is_sampled():
    for prefix in (ORDINARY, CONTAINER):
        check_known_share("usual", "cpu", prefix)
    check_known_share("usual", "wall")


@case
def a_thread_that_blocks_all_signals_is_sampled_or_counted():
    with Folder() as folder:
        done = record_as_user(folder, program("known_shares"), "all", options=["--mode", "cpu"])
        check_equal(done.returncode, 0, f"exit status; {text(done.stderr)}")
        facts = OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]
        if facts["running_threads"].startswith("perf timers"):
            check("works_in_user_code" in opens(OFFBEAT, folder / "x.pb.gz"), "user code was not seen")
        lost_ms = sum(facts[name] for name in ("lost_unanswered", "lost_in_kernel")) * 1000 / 101
        seen_ms = OFFBEAT.answer("top", folder / "x.pb.gz")["total"] / 1e6 if (folder / "x.pb.gz").is_file() else 0
        used_ms = facts["process_cpu_ns"] / 1e6
        check(0.7 * used_ms < seen_ms + lost_ms < 1.75 * used_ms, f"{seen_ms:.0f} ms seen and {lost_ms:.0f} ms lost of {used_ms:.0f} ms: {facts}")


@case
def threads_on_stacks_without_room_for_a_signal_live():
    """Such as alternate stacks of 2 KB and coroutines' stacks of 4 KB: with AVX-512, a signal's frame is larger."""
    for record in (OFFBEAT.record, record_as_user, lambda *words: record_as_user(*words, prefix=CONTAINER)):
        with Folder() as folder:
            done = record(folder, program("small_alternate_stack"), "2048")
            check_equal(done.returncode, 0, f"exit status; {text(done.stderr)}")
            check(text(done.stdout).rstrip().endswith("written below it: 0"), text(done.stdout))
            done = record(folder, program("small_coroutine_stack"), "4096")
            check_equal((done.returncode, done.stdout), (0, b"lived\n"), "status and output of coroutines")


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
