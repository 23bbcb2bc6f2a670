"""The sampler thread: what it calls, when it steps aside, which rights it has, when it ends. Arguments: the build folder, and
optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import glob
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import Folder, Offbeat, case, check, check_equal, main, opens, run, skip, text  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
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


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
