"""The command line, as it is typed: every folder of cases/ is one test.

A case has `script` (sh -u) and the expected results: `stdout` and `stderr` (no file: nothing) and `status`
(no file: 0). It runs in a temporary folder with `offbeat` on the PATH and test/cli/data as `data`. Other readers must be
able to read the pprof files that it leaves. The script must hide digits that differ from run to run.

    run.py OFFBEAT [--update] [NAME]...      all cases, or the named ones; --update writes the results as the expected ones

SPDX-License-Identifier: MIT"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from pprof_readers import check_pprof_files  # noqa: E402
from tap import Failed, case, main  # noqa: E402

OUTCOMES = {"stdout": "", "stderr": "", "status": "0\n"}  # with what no file means


def environment(offbeat, folder):
    """Nothing of the person's own, so that a case gives the same everywhere."""
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / "offbeat").symlink_to(offbeat)
    keep = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
    return {**keep, "PATH": f"{binaries}:/usr/bin:/bin", "TZ": "UTC", "LC_ALL": "C.UTF-8", "HOME": str(folder)}


def run_script(offbeat, script):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        work = folder / "work"
        work.mkdir()
        shutil.copytree(HERE / "data", work / "data")
        done = subprocess.run(["/bin/sh", "-u", script], cwd=work, env=environment(offbeat, folder), timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="backslashreplace")
        check_pprof_files(work)
        return {"stdout": done.stdout, "stderr": done.stderr, "status": f"{done.returncode}\n"}


def expected(folder, name):
    path = folder / name
    return path.read_text(encoding="utf-8") if path.exists() else OUTCOMES[name]


def update(folder, found):
    for name, text in found.items():
        if text != OUTCOMES[name]:
            (folder / name).write_text(text, encoding="utf-8")
        else:
            (folder / name).unlink(missing_ok=True)


def difference(folder, found):
    parts = []
    for name, text in found.items():
        if text != expected(folder, name):
            parts.append(f"{name}:\n{text}\nexpected {name}:\n{expected(folder, name)}")
    return "\n".join(parts)


def add_case(folder, offbeat, updates):
    def run():
        found = run_script(offbeat, folder / "script")
        if updates:
            update(folder, found)
        problem = difference(folder, found)
        if problem:
            raise Failed(problem)

    run.__name__ = folder.name
    case(run)


def start(arguments):
    updates = "--update" in arguments
    offbeat, *names = [argument for argument in arguments if argument != "--update"]
    for folder in sorted(path for path in (HERE / "cases").iterdir() if (path / "script").exists()):
        if not names or folder.name in names:
            add_case(folder, pathlib.Path(offbeat).resolve(), updates)
    main()


if __name__ == "__main__":
    start(sys.argv[1:])
