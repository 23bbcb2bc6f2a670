"""Programs that measure themselves (bench/truth): where their time goes, in both modes, as root and as an ordinary user.
The bound is a third of the truth, because other work on the machine changes shares; `./dev bench truth` has narrow ones. Arguments: the
build folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import atexit
import concurrent.futures
import ctypes
import functools
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import ROOT, Failed, case, case_by_the_clock, check, long, main, run, skip  # noqa: E402
from times_of_threads import COLUMNS, check_folder, check_times  # noqa: E402
sys.path.insert(0, str(ROOT / "bench"))
import truth  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
SECONDS, RATE = 1.2, 499


@functools.lru_cache(maxsize=None)
def programs():
    """A folder with the programs and offbeat, gone when this ends."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="offbeat-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    truth.compile_programs(folder)
    return truth.copy_offbeat(BUILD, folder), folder


def rows(command, modes=("wall", "cpu"), rate=RATE, users=None):
    """[(mode and user, row)] of the program COMMAND."""
    jobs = [(command, rate, mode, user) for mode in modes for user in users or truth.users()]
    offbeat, folder = programs()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(zip(jobs, pool.map(lambda job: truth.record(offbeat, folder, job, SECONDS), jobs)))
    for job, result in found:
        check(not isinstance(result, str), f"{job}: {result}")
    try:
        check_folder(folder)
    finally:
        for path in folder.glob("*/x.pb.gz"):  # the next try has its own
            path.unlink()
    return [(f"{job[2]}, {job[3]}", row) for job, result in found for row in result]


def is_wrong(row):
    if row.unit != "%":
        return not row.is_right
    return row.name != "(all)" and row.profile < row.truth / 3 - 1


def check_shares(command, **options):
    wrong = [f"{where}: {' '.join(row.cells())}" for where, row in rows(command, **options) if is_wrong(row)]
    check(not wrong, "; ".join(wrong))


@case_by_the_clock
def functions_below_a_deep_recursion_get_their_share():
    check_shares("deep_stacks")


def recorder_of(command, mode, before=(), user="user", rate=RATE):
    """What `info` says of a recording."""
    offbeat, folder = programs()
    path, done = truth.run(offbeat, folder, (command, rate, mode, user), 2, before)
    check(done.returncode == 0, f"status {done.returncode}: {done.stderr}")
    return json.loads(run(offbeat, "info", "--json", path, cwd=folder).stdout)["recorder"]


def has_timers(recorder):
    return recorder["running_threads"].startswith("perf timers")


def need_timers(recorder):
    if not has_timers(recorder):
        skip(f"the kernel grants no timers: {recorder['running_threads']}")


@case_by_the_clock
def an_ordinary_users_stacks_of_nine_kilobytes_are_all_kept():
    """The kernel's memory for them held one, and three of four were written over: the program is steady, and ticks are spared."""
    recorder = recorder_of("deep_stacks 8", "cpu")
    need_timers(recorder)
    kept, samples = recorder["timer_stacks"], recorder["process_cpu_ns"] / 1e9 * RATE
    check(kept > samples * 2 / 3, f"{kept} of {samples:.0f} stacks are there")


@case_by_the_clock
def ticks_are_spared_without_perf_events_and_no_stacks_are():
    """The kernel's clock has 100 ticks a second or more. In wall mode it takes longer until ticks are spared, if others want the processors."""
    rate = 97
    recorder = recorder_of("two_functions", "cpu", user="denied", rate=rate)
    ticks, spared, stacks = (recorder[name] for name in ("ticks", "ticks_spared", "samples_taken"))
    periods = recorder["process_cpu_ns"] / 1e9 * rate
    check(spared > ticks / 10, f"{spared} ticks are spared, {ticks} are not")
    check(stacks > periods * 2 / 3, f"{stacks} stacks in {periods:.0f} periods")


@case_by_the_clock
def where_little_memory_may_be_locked_some_threads_have_timers():
    """The first denial was taken for all: no other thread had a timer, not even after those with one had ended."""
    need_timers(recorder_of("two_functions", "cpu"))
    recorder = recorder_of("many_threads 40", "wall", ("prlimit", "--memlock=65536"))
    check(has_timers(recorder), recorder["running_threads"])


@long
@case_by_the_clock
def functions_with_large_frames_get_their_share():
    check_shares("large_frames")


@long
@case_by_the_clock
def calls_of_many_milliseconds_get_their_share():
    """Their thread was thought to block the signal, which comes at a call's end: most of their time was lost."""
    check_shares("long_calls")


def sampler_of(program):
    """The number of the sampler thread of PROGRAM, a path, once there is one."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for task in pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*"):
            try:
                if (task / "comm").read_text().startswith("offbeat") and (task / "exe").resolve() == program:
                    return int(task.name)
            except OSError:
                pass  # it has ended
        time.sleep(0.02)
    raise Failed(f"{program} has no sampler thread")


def stop(thread, seconds):
    """Stops THREAD alone, as a machine does that gives it no processor."""
    ptrace, wait_for_any = ctypes.CDLL(None, use_errno=True).ptrace, 0x40000000
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    seize, interrupt, detach = 0x4206, 0x4207, 17
    if ptrace(seize, thread, None, None) != 0:
        skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
    check(ptrace(interrupt, thread, None, None) == 0, os.strerror(ctypes.get_errno()))
    os.waitpid(thread, wait_for_any)
    time.sleep(seconds)
    ptrace(detach, thread, None, None)


def skip_if_others_want_the_processors(why):
    """WHY: what the case is about does not hold then."""
    running = []
    for _ in range(10):
        running += [int(line.split()[1]) - 1 for line in open("/proc/stat", encoding="ascii") if line.startswith("procs_running")]
        time.sleep(0.05)
    if sorted(running)[len(running) // 2] >= os.cpu_count():
        skip(f"{sorted(running)[len(running) // 2]} other threads want the {os.cpu_count()} processors: {why}")


@case_by_the_clock
def a_stopped_sampler_thread_takes_no_time_from_long_calls():
    """Each was a single one of the timer's hits, worth as much as one in user code: 64 to 75 of 90 % were shown."""
    offbeat, folder = programs()
    skip_if_others_want_the_processors("the thread waits for one unseen while the sampler is stopped")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        recording = pool.submit(truth.record, offbeat, folder, ("long_calls", 101, "wall", "denied"), 3)
        sampler = sampler_of((folder / "long_calls").resolve())
        time.sleep(0.8)
        stop(sampler, 1.2)
        found = recording.result()
    check(not isinstance(found, str), found)
    for row in found:
        check(abs(row.profile - row.truth) < 8, " ".join(row.cells()))


@long
@case_by_the_clock
def handlers_on_an_alternate_stack_get_their_share():
    check_shares("alternate_stack")


@case_by_the_clock
def stacks_below_a_handler_on_an_alternate_stack_are_whole():
    """A perf timer copies one stack: 20 to 30 % of this program's were cut where the handler was called."""
    recorder = recorder_of("alternate_stack", "cpu")
    check(recorder["stacks_root"] > 20 * recorder["stacks_bad_memory"], f"whole and unreadable stacks: {recorder}")


@case_by_the_clock
def code_on_a_stack_that_was_switched_to_gets_its_share():
    check_shares("stack_switch")


@long
@case_by_the_clock
def no_program_is_in_step_with_the_timers():
    """An ordinary user's went off at the same place of each round: 99.8 % of the time was in one of the two parts."""
    check_shares("in_step 101", rate=101)


@case_by_the_clock
def sleeps_in_coroutines_are_not_interrupted():
    check_shares("coroutine_sleeps", modes=("wall",), rate=101)


@case_by_the_clock
def a_library_at_the_addresses_of_an_unloaded_one_has_its_own_names():
    check_shares("dlopen_same_layout")


@case_by_the_clock
def waits_for_a_processor_are_where_the_thread_was_stopped():
    """In the calls between its work, 20 to 30 % of the time; the profile had 1 to 13 % there, and the rest in the work."""
    wrong = [f"{where}: {' '.join(row.cells())}" for where, row in rows("waits_in_calls", modes=("wall",)) if abs(row.error) > 8]
    check(not wrong, "; ".join(wrong))


@case_by_the_clock
def code_that_was_moved_to_anonymous_memory_has_its_names():
    check_shares("text_remapped 0")
    check_shares("text_remapped 1", modes=("wall",))


@case_by_the_clock
def the_caller_of_vfork_is_found():
    check_shares("vfork_clone", modes=("wall",))


@case_by_the_clock
def samples_carry_the_name_that_their_thread_had():
    check_shares("thread_names")


@case_by_the_clock
def records_constructors_and_destructors_of_needed_libraries():
    check_shares("constructors")


@long
@case_by_the_clock
def nothing_is_written_below_the_smallest_alternate_stack():
    """Without perf events there is no stack of such a thread: it can be sent no signal."""
    check_shares("smallest_alternate_stack", rate=101, users=[user for user in truth.users() if user != "denied"])
    wrong = [row.cells() for _, row in rows("smallest_alternate_stack", users=["denied"]) if row.unit != "%" and not row.is_right]
    check(not wrong, wrong)


@case_by_the_clock
def threads_that_live_between_two_ticks_are_in_the_profile():
    """Nine of ten are never met by a tick. Half of their time was missing."""
    found = rows("short_threads 1000", rate=101)
    wrong = [f"{where}: {' '.join(row.cells())}" for where, row in found if row.name == "(all)" and abs(row.error) > 6]
    wrong += [f"{where}: {' '.join(row.cells())}" for where, row in found if where.endswith("root") and is_wrong(row)]
    check(not wrong, "; ".join(wrong))


@case_by_the_clock
def the_times_of_many_threads_are_whole_however_late_ticks_come():
    """An ordinary user's sampler gets a few ticks beside 220 threads: 38 % of their time was in the profile."""
    found = [(where, row) for where, row in rows("many_threads 220", rate=101) if row.name == "(all)"]
    wrong = [f"{where}: {' '.join(row.cells())}" for where, row in found if abs(row.error) > 5]
    check(found and not wrong, "; ".join(wrong))


@case_by_the_clock
def children_of_a_few_milliseconds_are_in_the_profile():
    """A quarter of their CPU time was missing, and nearly all of their stacks."""
    found = rows("short_processes fork 5000", modes=("cpu",), rate=101)
    wrong = [f"{where}: {' '.join(row.cells())}" for where, row in found if row.name == "(all)" and abs(row.error) > 6]
    wrong += [f"{where}: {' '.join(row.cells())}" for where, row in found if where.endswith("root") and is_wrong(row)]
    check(not wrong, "; ".join(wrong))


@long
@case_by_the_clock
def children_end_when_they_say_so():
    """The sampler took a processor later to write what it had, and the profile had 3 to 4 % too much."""
    found = [*rows("short_processes spawn 5000", modes=("wall",), rate=101), *rows("short_processes fork 5000", modes=("wall",), rate=101)]
    wrong = [f"{where}: {' '.join(row.cells())}" for where, row in found if row.name == "(all)" and abs(row.error) > 1.5]
    check(not wrong, "; ".join(wrong))


def number_field(number, value):
    return bytes([number << 3]) + varint_bytes(value)


def bytes_field(number, value):
    return bytes([number << 3 | 2]) + varint_bytes(len(value)) + value


def varint_bytes(value):
    return bytes([value & 0x7F | 0x80]) + varint_bytes(value >> 7) if value > 0x7F else bytes([value])


def recording_with(*values):
    """A pprof file with one sample of VALUES, of a second in ticks of 10 ms."""
    strings = ["", *COLUMNS]
    types = b"".join(bytes_field(1, number_field(1, strings.index(name))) for name in COLUMNS)
    sample = bytes_field(2, bytes_field(2, b"".join(varint_bytes(value) for value in values)))
    texts = b"".join(bytes_field(6, text.encode()) for text in strings)
    return types + sample + texts + number_field(10, 1000000000) + number_field(12, 10000000)


@case
def the_check_of_times_finds_what_does_not_fit():
    check_times(recording_with(1, 1000, 300, 200, 500), "right")
    check_times(recording_with(100, 1000000000, 0, 0, 1000000000), "whole")
    for wrong in ((1, 1001, 300, 200, 500), (1, 1000, 300, 200, 501), (200, 2000000000, 0, 0, 2000000000)):
        try:
            check_times(recording_with(*wrong), "wrong")
        except Failed:
            continue
        check(False, f"{wrong} was accepted")


@case_by_the_clock
def short_user_code_is_seen_by_cpu_clocks_and_by_perf():
    check_shares("short_user_code 5 32768")


@case_by_the_clock
def a_cpu_clock_ends_no_wait():
    interrupted = [row for where, row in rows("poll_timeouts") if row.unit != "%" and where.endswith("denied")]
    check(interrupted and all(row.is_right for row in interrupted), [row.cells() for row in interrupted])


@case_by_the_clock
def waits_of_threads_that_wake_each_other_do_not_end_early():
    """One or two of 100 000 do; some dozens, if a thread is asked where its timer's record says that it was stopped."""
    found = [row for _, row in rows("wakes_in_calls", rate=997, users=[user for user in truth.users() if user != "root"]) if row.unit != "%"]
    check(found and all(row.profile <= 1 for row in found), [row.cells() for row in found])


@case_by_the_clock
def short_user_code_that_signals_do_not_see_is_reported_in_one_line():
    """Without perf events and timers the kernel shows user code of 5 µs as the call after it, unless others want the processor."""
    offbeat, folder = programs()
    without_perf = BUILD / "test/safety/safety_without_perf"
    for before, microseconds, seconds, is_told in (([without_perf, "--timers"], 5, 4, True), ([without_perf, "--timers"], 1000, 2, False),
                                                   ([without_perf], 5, 2, False), ([], 5, 2, False)):
        found = truth.record(offbeat, folder, (f"short_user_code {microseconds} 32768", 101, "cpu", "root"), seconds, before)
        check(not isinstance(found, str), found)
        told = any(row.is_announced for row in found)
        right = all(abs(row.error) < 12 for row in found if row.name != "(all)")
        check(told or right if is_told else not told, f"{before}, {microseconds} µs: {[row.cells() for row in found]}")


@case
def what_a_child_sampled_before_it_calls__exit_is_written():
    offbeat, folder = programs()
    command = [offbeat, "record", "-o", "exits.pb.gz", "--", "./short_processes", "fork", "20000"]
    run(*command, cwd=folder, env={**os.environ, "TRUTH_SECONDS": "1"})
    answer = json.loads(run(offbeat, "info", "--json", "exits.pb.gz", cwd=folder).stdout)["recorder"]
    check(answer["processes"] > 2, f"only {answer['processes']} processes")
    check(answer["processes_cut_off"] == 0, f"{answer['processes_cut_off']} of {answer['processes']} processes were cut off")


main(sys.argv[2] if len(sys.argv) > 2 else "")
