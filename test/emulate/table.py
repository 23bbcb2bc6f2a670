"""One table of the cases that ran in several emulated machines: `table.py NAME=LOG…`, where each LOG is the output of recordings.py.
Ends with status 1 if a case failed or is missing in a machine, or if a machine ended before its last case. SPDX-License-Identifier: MIT"""
import pathlib
import re
import sys


def cases_of(log):
    """{case: (outcome, figures)}. The last line of a whole log says how many cases there are."""
    cases, figures = {}, []
    for line in log.splitlines():
        found = re.match(r"(ok|not ok) \d+ - (.*?)(?: # (SKIP.*))?$", line)
        if found:
            cases[found[2]] = ("skipped" if found[3] else found[1], figures)
            figures = []
        elif line.startswith("# "):
            figures.append(line[2:])
    if not re.search(rf"^1\.\.{len(cases)}$", log, re.MULTILINE):
        cases["the end of all cases"] = ("not ok", [f"after {len(cases)} cases", *figures])
    return cases


machines = {name: cases_of(pathlib.Path(path).read_text(encoding="utf-8", errors="replace")) for name, path in (word.split("=", 1) for word in sys.argv[1:])}
every = list(dict.fromkeys(case for cases in machines.values() for case in cases))
print(f"{'':64}" + "".join(f"{name:>10}" for name in machines))
for case in every:
    print(f"{case[:63]:64}" + "".join(f"{cases.get(case, ('missing',))[0]:>10}" for cases in machines.values()))
for name, cases in machines.items():
    for case, (outcome, figures) in cases.items():
        if figures:
            print(f"\n{name}: {case}: {outcome}", *(f"    {figure}" for figure in figures), sep="\n")
sys.exit(not every or any(cases.get(case, ("missing",))[0] not in ("ok", "skipped") for cases in machines.values() for case in every))
