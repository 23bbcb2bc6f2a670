"""Prints the targets that tests need, for ninja: a suite is built without the rest. Arguments: the build folder, and --suite NAME
or --no-suite NAME as for meson test; without --suite, every test is meant. SPDX-License-Identifier: MIT"""
import argparse
import json
import os
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--suite", action="append", default=[])
parser.add_argument("--no-suite", action="append", default=[])
arguments = parser.parse_args()


def introspect(what):
    return json.loads(subprocess.run(("meson", "introspect", what, arguments.build), check=True, capture_output=True, text=True).stdout)


def suites(test):
    return {suite.split(":")[-1] for suite in test["suite"]}


tests = introspect("--tests")
known = set().union(*map(suites, tests))
unknown = set(arguments.suite + arguments.no_suite) - known
if unknown:
    sys.exit(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
chosen = [test for test in tests
          if (not arguments.suite or suites(test) & set(arguments.suite)) and not suites(test) & set(arguments.no_suite)]
files = {target["id"]: target["filename"] for target in introspect("--targets")}
needed = {os.path.relpath(file, arguments.build) for test in chosen for target in test["depends"] for file in files[target]}
print("\n".join(sorted(needed)))
