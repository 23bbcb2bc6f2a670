"""Reads meson's testlog.json files and says what a person wants to know: each failed case with its diagnostics, each
skipped one with its reason, the slowest tests, and, as the last line, "N passed, N failed, N skipped", summed over single TAP cases.
Exit status 1 if anything failed. SPDX-License-Identifier: MIT"""
import json
import os
import re
import sys

CASE = re.compile(r"(ok|not ok)\s+\d+\s*-?\s*(.*?)(?:\s*#\s*SKIP\b\s*(.*))?$", re.IGNORECASE)
STDERR_LINES_MAX = 40
SECOND_TRIES_MAX = 3  # more cases that fail and then pass fail the run
SLOWEST = 10


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = self.second_tries = 0
        self.seconds = {}  # by test

    def add_failure(self, place, name, details, second_try=False):
        self.failed += not second_try
        self.second_tries += second_try
        print(f"{'PASSED THE SECOND TIME' if second_try else 'FAILED'} {place}: {name}")
        for line in details:
            print("    " + line)

    def add_skip(self, place, name, reason):
        self.skipped += 1
        print(f"SKIPPED {place}: {name}: {reason or 'no reason given'}")


def read_case(counts, place, match, diagnostics):
    outcome, name, reason = match.groups()
    if outcome.lower() == "not ok":
        counts.add_failure(place, name, diagnostics)
    elif reason is not None:
        counts.add_skip(place, name, reason)
    elif "# FAILED AT FIRST" in diagnostics:
        counts.add_failure(place, name, diagnostics, second_try=True)
    else:
        counts.passed += 1


def is_one_case(result):
    """True if the program prints no TAP and its exit status is the answer."""
    return result["result"] == "OK" and not re.search(r"^(ok|not ok)\b", result.get("stdout", ""), re.MULTILINE)


def end_of_program(result):
    """Why the program as a whole failed, or None. Its failed cases are printed one by one elsewhere."""
    if result["result"] == "TIMEOUT":
        return "timed out"
    if result["returncode"] < 0:
        return f"killed by signal {-result['returncode']}"
    if result["returncode"] != 0 and "not ok" not in result.get("stdout", ""):
        return f"exit status {result['returncode']}"
    if is_one_case(result):
        return None
    plan = re.search(r"^1\.\.(\d+)", result.get("stdout", ""), re.MULTILINE)
    if not plan:
        return "ended without saying how many cases it has"
    return None


def read_program(counts, place, result):
    diagnostics = []
    for line in result.get("stdout", "").splitlines():
        match = CASE.match(line)
        if match:
            read_case(counts, place, match, diagnostics)
            diagnostics = []
        else:
            diagnostics.append(line)
    counts.passed += is_one_case(result)
    reason = end_of_program(result)
    if reason:
        counts.add_failure(place, reason, diagnostics + result.get("stderr", "").splitlines()[-STDERR_LINES_MAX:])


def read_log(counts, path):
    folder = os.path.basename(os.path.dirname(os.path.dirname(os.path.abspath(path))))
    try:
        with open(path, encoding="utf-8") as log:
            results = [json.loads(line) for line in log]
    except FileNotFoundError:
        counts.add_failure(folder, f"no tests ran: {path} is not there", [])
        return
    for result in sorted(results, key=lambda one: one["name"]):
        place = f"{folder}/{result['name'].split(' / ')[-1]}"
        counts.seconds[place] = result["duration"]
        read_program(counts, place, result)


def main():
    counts = Counts()
    for path in sys.argv[1:]:
        read_log(counts, path)
    if counts.passed == 0 and counts.failed == 0:
        counts.add_failure("test", "nothing was tested", [])
    slowest = sorted(counts.seconds.items(), key=lambda one: -one[1])[:SLOWEST]
    if counts.second_tries > SECOND_TRIES_MAX:
        counts.add_failure("test", f"{counts.second_tries} cases passed only the second time", [])
    print("slowest: " + ", ".join(f"{place} {seconds:.0f} s" for place, seconds in slowest))
    if counts.second_tries:
        print(f"{counts.second_tries} passed the second time: see above")
    print(f"{counts.passed + counts.second_tries} passed, {counts.failed} failed, {counts.skipped} skipped")
    sys.exit(1 if counts.failed else 0)


main()
