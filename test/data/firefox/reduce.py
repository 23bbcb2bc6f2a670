"""Reduces a raw profile of Firefox to what the test needs: two markers of each type in each thread, no pages and logs.

    MOZ_PROFILER_STARTUP=1 MOZ_PROFILER_STARTUP_INTERVAL=20 MOZ_PROFILER_STARTUP_FEATURES=js,stackwalk,cpu \\
    MOZ_PROFILER_STARTUP_FILTERS=GeckoMain MOZ_PROFILER_SHUTDOWN=raw.json \\
        firefox-esr --headless --screenshot page.png file://$PWD/page.html
    reduce.py raw.json raw.json.gz

SPDX-License-Identifier: MIT"""
import collections
import gzip
import json
import sys


def reduce(process):
    for thread in process["threads"]:
        seen = collections.Counter()
        kept = []
        for marker in thread["markers"]["data"]:
            kind = marker[5].get("type") if len(marker) > 5 and marker[5] else None
            seen[kind] += 1
            kept += [marker] if seen[kind] <= 2 else []
        thread["markers"]["data"] = kept
    for key in ("profilingLog", "pages", "pausedRanges"):
        process[key] = []
    for other in process["processes"]:
        reduce(other)


with open(sys.argv[1], encoding="utf-8") as file:
    profile = json.load(file)
reduce(profile)
with open(sys.argv[2], "wb") as file:
    file.write(gzip.compress(json.dumps(profile, separators=(",", ":")).encode(), 9, mtime=0))
