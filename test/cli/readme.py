"""The commands of README.md work when they are pasted in order. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import case, check, main  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
# Commands that do not end, need a server or another tool, or have a test of their own.
SKIPPED = re.compile(r'offbeat (view|serve|send|upload-debug)\b|perf\.data|"\$url')


def commands_of(document):
    """Each indented line that runs offbeat, with the program in the background that it is about. Prints what it leaves out."""
    lines = re.findall(r"^    ((?:log_indexer .*&\n    )?offbeat .*)$", document, re.MULTILINE)
    print(*(f"# left out: {line}" for line in lines if SKIPPED.search(line)), sep="\n")
    return [line for line in lines if not SKIPPED.search(line)]


@case
def each_command_of_the_readme_works():
    commands = commands_of((ROOT / "README.md").read_text(encoding="utf-8"))
    check(len(commands) > 12, "the commands were not found")
    search = f"{BUILD}:{BUILD}/example:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            ends = "\nstatus=$?; kill $!; exit $status" if "&\n" in command else ""
            done = subprocess.run(["sh", "-c", command + ends], cwd=folder, env={**os.environ, "PATH": search}, capture_output=True, text=True, check=False)
            check(done.returncode == 0, f"{command}: status {done.returncode}\n{done.stderr}")


main()
