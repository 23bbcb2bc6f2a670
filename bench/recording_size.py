"""Bytes that a recording needs for each sample, where no two stacks are alike: the compiler proper at work.
SPDX-License-Identifier: MIT"""
import json
import pathlib
import subprocess
import tempfile

from common import compiler_proper, environment, large_source, table

FREQUENCY = 1009


def recording_size(build, functions=1500):
    print(f"Recording of cc1 at {FREQUENCY} Hz: what a million samples need")
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as folder:
        source = f"{folder}/large.c"
        large_source(source, functions)
        subprocess.run([compiler_proper(), "-quiet", "-O2", source, "-o", "/dev/null"], check=True,
                       env=environment(LD_PRELOAD=build / "liboffbeat.so", OFFBEAT_RECORD_DIRECTORY=folder, OFFBEAT_FREQUENCY=FREQUENCY))
        recording = max(pathlib.Path(folder).glob("*.recording"), key=lambda path: path.stat().st_size)
        size = recording.stat().st_size
        answer = subprocess.run([build / "offbeat", "info", "--json", recording], capture_output=True, text=True, check=True).stdout
    facts = json.loads(answer)["recorder"]
    taken = int(facts["samples_taken"])
    table([["samples", "bytes", "bytes a sample", "MB a million"],
           [str(taken), str(size), f"{size / taken:.1f}", f"{size / taken:.1f}"]])
