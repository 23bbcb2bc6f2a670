"""Programs that measure themselves (bench/truth): where their time goes, in both modes, as root and as an ordinary user.
The bounds are wide, because other work on the machine changes shares; `./dev bench truth` has narrow ones. Arguments: the
build folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import concurrent.futures
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import ROOT, Folder, case, check, main  # noqa: E402
sys.path.insert(0, str(ROOT / "bench"))
import truth  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
SECONDS, RATE, POINTS = 1.5, 499, 15


def rows(command, modes=("wall", "cpu"), rate=RATE):
    """[(mode and user, row)] of the program COMMAND."""
    users = ["root", "user"] if os.geteuid() == 0 else ["user"]
    jobs = [(command, rate, mode, user) for mode in modes for user in users]
    with Folder() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        offbeat = truth.copy_offbeat(BUILD, folder)
        truth.compile_programs(folder)
        found = list(zip(jobs, pool.map(lambda job: truth.record(offbeat, folder, job, SECONDS), jobs)))
    for job, result in found:
        check(not isinstance(result, str), f"{job}: {result}")
    return [(f"{job[2]}, {job[3]}", row) for job, result in found for row in result]


def check_shares(command, points=POINTS, **options):
    wrong = [f"{where}: {' '.join(row.cells())}" for where, row in rows(command, **options)
             if (abs(row.error) > points if row.unit == "%" else not row.is_right)]
    check(not wrong, "; ".join(wrong))


@case
def functions_with_large_frames_get_their_share():
    check_shares("large_frames")


@case
def handlers_on_an_alternate_stack_get_their_share():
    check_shares("alternate_stack")


@case
def code_on_a_stack_that_was_switched_to_gets_its_share():
    check_shares("stack_switch")


@case
def sleeps_in_coroutines_are_not_interrupted():
    check_shares("coroutine_sleeps", modes=("wall",), rate=101)


@case
def a_library_at_the_addresses_of_an_unloaded_one_has_its_own_names():
    check_shares("dlopen_same_layout")


@case
def code_that_was_moved_to_anonymous_memory_has_its_names():
    check_shares("text_remapped 0")
    check_shares("text_remapped 1")


@case
def the_caller_of_vfork_is_found():
    check_shares("vfork_clone", modes=("wall",))


@case
def samples_carry_the_name_that_their_thread_had():
    check_shares("thread_names")


@case
def constructors_and_destructors_of_needed_libraries_are_inside_the_recording():
    check_shares("constructors", points=8)


@case
def nothing_is_written_below_the_smallest_alternate_stack():
    check_shares("smallest_alternate_stack", points=30, rate=101)


main(sys.argv[2] if len(sys.argv) > 2 else "")
