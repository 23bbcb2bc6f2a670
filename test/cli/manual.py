"""The manual pages list the options that --help lists, no more and no less. Argument: the program.
SPDX-License-Identifier: MIT"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import case, check_equal, main  # noqa: E402

OFFBEAT = sys.argv[1]


def help_of(*command):
    return subprocess.run([OFFBEAT, *command, "--help"], check=True, capture_output=True, text=True).stdout


def manual_of(name):
    return (ROOT / f"doc/man/{name}.1").read_text(encoding="utf-8").replace("\\-", "-")


def commands():
    return re.findall(r"^  ([a-z-]+) ", help_of().split("Commands:")[1].split("Options:")[0], re.MULTILINE)


def options_in(text):
    return sorted(set(re.findall(r"--[a-z][a-z-]+", text)))


def section(manual, title):
    return manual.split(f".SH {title}\n")[1].split("\n.SH ")[0]


@case
def every_command_has_a_manual_page_and_is_named_in_the_first_one():
    named = re.findall(r"^\.TP\n\.BR offbeat-([a-z-]+) \(1\)$", section(manual_of("offbeat"), "DESCRIPTION"), re.MULTILINE)
    check_equal(named, commands(), "commands in offbeat.1")
    pages = sorted(path.stem for path in (ROOT / "doc/man").glob("offbeat-*.1"))
    check_equal(pages, sorted(f"offbeat-{name}" for name in commands()), "manual pages")


@case
def manual_pages_and_help_list_the_same_options():
    for command in commands():
        said = options_in(help_of(command).split("Options:")[1])
        entries = re.findall(r"^\.TP\n(.*)$", section(manual_of(f"offbeat-{command}"), "OPTIONS"), re.MULTILINE)
        check_equal(options_in("\n".join(entries)), said, f"options of offbeat-{command}.1")


@case
def commands_have_json_and_quiet_as_the_manual_says():
    """offbeat.1, JSON OUTPUT: what answers on standard output has --json. Those without it write files, or say so there."""
    without = {command for command in commands() if "--json" not in options_in(help_of(command))}
    check_equal(without, {"record", "agent", "view", "convert", "merge", "symbolize", "pprof", "serve", "store"}, "commands without --json")
    quiet = {command for command in commands() if "--quiet" in options_in(help_of(command))}
    check_equal(quiet, {"record", "symbolize", "send", "upload-debug", "validate"}, "commands with --quiet")


main()
