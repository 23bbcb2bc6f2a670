"""Reduces a raw profile of Firefox to what the test needs: the first three markers of each thread, no pages and logs.

    MOZ_PROFILER_STARTUP=1 MOZ_PROFILER_STARTUP_INTERVAL=20 MOZ_PROFILER_STARTUP_FEATURES=js,stackwalk,cpu \\
    MOZ_PROFILER_STARTUP_FILTERS=GeckoMain MOZ_PROFILER_SHUTDOWN=raw.json \\
        firefox-esr --headless --screenshot page.png file://$PWD/page.html
    reduce.py raw.json raw.json.gz

SPDX-License-Identifier: MIT"""
import gzip
import json
import sys


def reduce(process):
    for thread in process["threads"]:
        thread["markers"]["data"] = thread["markers"]["data"][:3]
    for key in ("profilingLog", "pages", "pausedRanges"):
        process[key] = []
    process["meta"].pop("markerSchema", None)
    for other in process["processes"]:
        reduce(other)


with open(sys.argv[1], encoding="utf-8") as file:
    profile = json.load(file)
reduce(profile)
with open(sys.argv[2], "wb") as file:
    file.write(gzip.compress(json.dumps(profile, separators=(",", ":")).encode(), 9, mtime=0))
