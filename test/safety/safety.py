"""No program is changed or endangered: the programs of this folder behave with us as they do without. Arguments: the build
folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import Folder, Offbeat, case, check, check_equal, main, opens, text  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])


def program(name):
    """The program NAME of this folder, as built."""
    return OFFBEAT.build / "test/safety" / f"safety_{name}"


# --- record ----------------------------------------------------------------------------------------------------------

@case
def a_busy_program_ends_as_without_us_and_its_profile_opens():
    with Folder() as folder:
        done = OFFBEAT.record(folder, program("busy"), "0.5")
        check_equal(done.returncode, 0, "exit status")
        check(done.stdout.startswith(b"process cpu 0.5"), f"output: {text(done.stdout)}")
        check("main" in opens(OFFBEAT, folder / "x.pb.gz"), text(done.stderr))


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
