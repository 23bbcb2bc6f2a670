"""Programs in Python, recorded: their own functions, lines and files, at the right places between native frames. Arguments:
the build folder, and optionally a part of the names of the cases. SPDX-License-Identifier: MIT"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import ROOT, Folder, Offbeat, case_by_the_clock, check, main, short, text  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
SHARES = ROOT / "test/end_to_end/python_shares.py"
PYTHON = "/usr/bin/python3"
POINTS = 3


def shares_of(folder, names):
    """Percent of the CPU time below each of NAMES, functions of the program, of the time in all of them."""
    answer = OFFBEAT.answer("top", "--running", "x.pb.gz", cwd=folder)
    totals = {function["name"]: function["total"] for function in answer["functions"]}
    every = sum(totals.get(name, 0) for name in names)
    check(every > 0, f"none of {', '.join(names)} is in the profile, only {sorted(totals)[:20]}")
    return {name: 100 * totals.get(name, 0) / every for name in names}


def record_shares(folder, python, seconds, options=()):
    done = OFFBEAT.record(folder, python, SHARES, str(seconds), options=options)
    check(done.returncode == 0, f"{python}: status {done.returncode}: {text(done.stderr)}")
    spent = json.loads(text(done.stdout))
    every = sum(spent.values())
    return {name: 100 * value / every for name, value in spent.items()}


@short
@case_by_the_clock
def python_functions_have_their_shares():
    with Folder() as folder:
        spent = record_shares(folder, PYTHON, 4)
        shown = shares_of(folder, spent)
        wrong = {name: (round(spent[name], 1), round(shown[name], 1)) for name in spent if abs(spent[name] - shown[name]) > POINTS}
        check(not wrong, f"percent spent and shown: {wrong}")


main()
