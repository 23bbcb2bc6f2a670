"""Long output on a terminal, and colours. Argument: the program.
SPDX-License-Identifier: MIT"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tap import case, check, check_equal, main, skip  # noqa: E402
from terminal import open_terminal, read_terminal  # noqa: E402

OFFBEAT = sys.argv[1]
SHORT = pathlib.Path(__file__).resolve().parent / "data/work.collapsed"
FUNCTIONS = 200
UPPER = "tr a-z A-Z"


def on_a_terminal(*words, keys=b"", rows=24, **variables):
    """(status, output) of a program whose input and output are a terminal. It is not the terminal's session leader: when that ends, the
    kernel drops what nobody has read yet."""
    environment = {name: value for name, value in os.environ.items() if name not in ("OFFBEAT_PAGER", "PAGER", "LESS", "NO_COLOR")}
    environment.update({"TERM": "xterm", **variables})
    leader, follower = open_terminal(rows)
    process = subprocess.Popen([OFFBEAT, *map(str, words)], stdin=follower, stdout=follower, stderr=follower, env=environment,
                               start_new_session=True)
    os.close(follower)
    waiting = [keys] if keys else []

    def press_at_the_prompt(output):
        if waiting and (b":" in output[-20:] or b"END" in output[-20:]):
            time.sleep(0.2)
            os.write(leader, waiting.pop())

    output = read_terminal(leader, press_at_the_prompt)
    return process.wait(), output


def with_long_profile(run):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "long.collapsed")
        path.write_text("".join(f"main;function_{i:03} {FUNCTIONS + i}\n" for i in range(FUNCTIONS)), encoding="utf-8")
        return run(path)


@case
def long_output_goes_through_the_pager():
    def run(path):
        for variables in ({"OFFBEAT_PAGER": UPPER, "PAGER": "false"}, {"PAGER": UPPER}):
            for command in ("tree", "traces", "raw", "top", "flame"):
                status, output = on_a_terminal(command, path, **variables)
                check_equal(status, 0, "status")
                check("FUNCTION_199" in output and "function_199" not in output, f"{command} {variables}: {output[-300:]!r}")
    with_long_profile(run)


@case
def no_pager_runs_if_it_is_not_wanted():
    def run(path):
        for words, variables in ((("--no-pager",), {"PAGER": UPPER}), ((), {"PAGER": ""}), ((), {"PAGER": "cat"}), ((), {"PAGER": UPPER, "TERM": "dumb"}),
                                 ((), {"OFFBEAT_PAGER": "", "PAGER": UPPER})):
            status, output = on_a_terminal("tree", path, *words, **variables)
            check_equal(status, 0, "status")
            check("function_199" in output and "FUNCTION_199" not in output, f"{words} {variables}: {output[-300:]!r}")
    with_long_profile(run)


@case
def short_output_is_written_directly():
    status, output = on_a_terminal("top", SHORT, PAGER=UPPER)
    check_equal(status, 0, "status")
    check("hash" in output and "HASH" not in output, output)
    status, output = on_a_terminal("top", SHORT, PAGER=UPPER, rows=5)
    check("HASH" in output, output)


@case
def pipes_and_files_get_no_pager():
    def run(path):
        done = subprocess.run([OFFBEAT, "tree", path], capture_output=True, text=True, check=True, env={**os.environ, "PAGER": "false"})
        check("function_199" in done.stdout, done.stdout[-300:])
    with_long_profile(run)


@case
def pprof_has_no_pager():
    def run(path):
        _, output = on_a_terminal("pprof", "-tree", "-nodecount=0", path, PAGER=UPPER)
        check("function_199" in output, output[-300:])
    with_long_profile(run)


@case
def a_pager_that_cannot_be_run_is_not_needed():
    def run(path):
        status, output = on_a_terminal("tree", path, PAGER="/nowhere/pager")
        check_equal(status, 0, "status")
        check("function_199" in output, output[-300:])
    with_long_profile(run)


@case
def leaving_the_pager_early_is_no_failure():
    def run(path):
        for pager in ("true", "head -1"):
            status, output = on_a_terminal("traces", path, PAGER=pager)
            check_equal(status, 0, f"{pager}: status")
            check("function_199" not in output, output[-300:])
    with_long_profile(run)


@case
def the_status_of_the_report_stays():
    def run(path):
        with tempfile.TemporaryDirectory() as folder:
            less = pathlib.Path(folder, "less.collapsed")
            less.write_text("main;function_000 100\n", encoding="utf-8")
            status, output = on_a_terminal("diff", "--fail-over", "1%", less, path, PAGER=UPPER)
            check_equal(status, 1, "status")
            check("FUNCTION_199" in output, output[-300:])
    with_long_profile(run)


@case
def less_shows_pages_and_passes_colours():
    if not shutil.which("less"):
        skip("less is not installed")

    def run(path):
        status, output = on_a_terminal("top", "--color", "always", "--nodecount", "0", path, keys=b"q")
        check_equal(status, 0, "status")
        check("function_199" in output and "function_000" not in output, f"the first page only: {output[-300:]!r}")
        check("ESC[" not in output, f"less shows escapes: {output!r}")
    with_long_profile(run)


@case
def color_says_whether_there_are_colours():
    def run_piped(*words, **variables):
        return subprocess.run([OFFBEAT, "top", SHORT, *words], capture_output=True, text=True, check=True, env={**os.environ, **variables}).stdout

    check("\033[" not in run_piped(), "colours in a pipe")
    check("\033[" in run_piped("--color", "always"), "no colours in a pipe")
    check("\033[" in run_piped("--color", "always", NO_COLOR="1"), "no colours with NO_COLOR, which --color overrules")
    check("\033[" in on_a_terminal("top", SHORT)[1], "no colours on a terminal")
    check("\033[" not in on_a_terminal("top", SHORT, NO_COLOR="1")[1], "colours with NO_COLOR")
    check("\033[" not in on_a_terminal("top", "--color", "never", SHORT)[1], "colours that were not wanted")
    done = subprocess.run([OFFBEAT, "top", "--color", "blue", SHORT], capture_output=True, text=True, check=False)
    check_equal((done.returncode, done.stderr), (2, 'offbeat: --color must be one of auto|always|never, not "blue"\n'), "a wrong word")


main()
