"""Completions: what bash offers at some places of a command line, and that each shell knows every option. Argument: the
build folder. SPDX-License-Identifier: MIT"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import case, check, check_equal, main, skip  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
FILES = {"bash": BUILD / "package/offbeat", "zsh": BUILD / "package/_offbeat", "fish": BUILD / "package/offbeat.fish"}

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_offbeat
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offers(*words):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("profile.pb.gz", "private data"):
            (pathlib.Path(folder) / name).touch()
        (pathlib.Path(folder) / "programs").mkdir()
        done = subprocess.run(["bash", "--norc", "-c", ASK, "bash", FILES["bash"], "offbeat", *words], cwd=folder, check=True,
                              capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if line]


@case
def bash_completes_commands_options_values_and_files():
    check_equal(offers("re"), ["record"], "commands")
    check_equal(offers("record", "--mo"), ["--mode"], "options")
    check_equal(offers("record", "--mode", ""), ["wall", "cpu", "off-cpu"], "values of an option")
    check_equal(offers("record", "--mode", "=", "c"), ["cpu"], "values after an equals sign")
    check_equal(offers("top", "--by-"), ["--by-thread", "--by-process"], "options of another command")
    check_equal(sorted(offers("top", "pr")), ["private data", "profile.pb.gz", "programs"], "files")
    check_equal(offers("symbolize", "--debug-dir", "p"), ["programs"], "folders")
    check_equal(offers("convert", "x", "--to", "sp"), ["speedscope"], "formats")
    check_equal(offers("help", "mer"), ["merge"], "commands to be explained")
    check_equal(offers("store", ""), ["check", "backup", "create", "copy", "delete"], "actions")
    check_equal(offers("store", "check", "--re"), ["--repair"], "options after an action")
    check_equal(offers("record", "--mode=c"), ["--mode=cpu"], "values where = separates no words")
    check_equal(offers("symbolize", "--debug-dir=p"), ["--debug-dir=programs"], "folders where = separates no words")


@case
def bash_completes_the_program_that_record_runs():
    check("bash" in offers("record", "-F", "100", "bas"), "no program")
    check("bash" in offers("record", "--", "bas"), "no program after --")
    check_equal(offers("record", "--mode", "cpu", "cat", "prof"), ["profile.pb.gz"], "what the program is given")
    check_equal(offers("record", "--", "cat", "--mo"), [], "options after the program are its own")


@case
def fish_completes_help_and_actions():
    text = FILES["fish"].read_text(encoding="utf-8")
    check(re.search("__fish_seen_subcommand_from help' -x -a '.*merge", text), "help has no commands")
    check("-f -a 'check backup create copy delete'" in text, "store has no actions")
    if not shutil.which("fish"):
        skip("fish is not installed")
    done = subprocess.run(["fish", "--no-config", "-c", f"source {FILES['fish']}; complete -C 'offbeat help mer'"],
                          capture_output=True, text=True, check=True)
    check_equal(done.stdout.split()[:1], ["merge"], "commands to be explained")


@case
def every_shell_knows_every_option_and_its_syntax_is_right():
    listed = subprocess.run([BUILD / "offbeat", "--help"], check=True, capture_output=True, text=True).stdout
    commands = re.findall(r"^  ([a-z-]+) ", listed.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    for shell, path in FILES.items():
        text = path.read_text(encoding="utf-8")
        for command in commands:
            said = subprocess.run([BUILD / "offbeat", command, "--help"], check=True, capture_output=True, text=True).stdout
            for option in re.findall(r"^  (?:-\w, |    )--([a-z-]+)", said.split("Options:")[1], re.MULTILINE):
                check(re.search(rf"(--|-l ){option}\b", text), f"{shell} does not know --{option} of {command}")
    checked = []
    for shell, path in FILES.items():
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", path], capture_output=True, text=True)
            check_equal((done.returncode, done.stderr), (0, ""), f"what {shell} says of {path.name}")
            checked.append(shell)
    if len(checked) < len(FILES):
        skip(f"the syntax was checked for {', '.join(checked)} only; the other shells are not installed")


main()
