"""The prompt of offbeat pprof on a terminal: completion, history, Ctrl-C, the end. Argument: the program.
SPDX-License-Identifier: MIT"""
import ctypes
import os
import pathlib
import pty
import select
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import case, case_by_the_clock, check, check_equal, main, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
PROFILE = ROOT / "test/cli/data/work.collapsed"
PATIENCE_S = 15


class Terminal:
    """The program on its own terminal."""

    def __init__(self, *words, name="offbeat"):
        self.text = ""
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", HOME="/nonexistent", LC_ALL="C.UTF-8")
            os.execv(OFFBEAT, [name, *map(str, words)])

    def read_until(self, wanted, count=1):
        end = time.monotonic() + PATIENCE_S
        while self.text.count(wanted) < count:
            ready = select.select([self.descriptor], [], [], max(0, end - time.monotonic()))[0]
            check(ready, f"no {wanted!r} in {self.text!r}")
            try:
                self.text += os.read(self.descriptor, 65536).decode(errors="replace").replace("\r", "")
            except OSError:
                check(False, f"the program ended without {wanted!r}: {self.text!r}")

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def wait(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.descriptor)
                return os.waitstatus_to_exitcode(status)
            if select.select([self.descriptor], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.descriptor, 65536).decode(errors="replace")
                except OSError:
                    pass
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        check(False, f"the program does not end: {self.text!r}")
        return None


def needs_libedit():
    try:
        ctypes.CDLL("libedit.so.2")
    except OSError:
        skip("libedit2 is not installed")


@case
def reports_run_one_after_the_other():
    terminal = Terminal("pprof", PROFILE)
    terminal.read_until("(offbeat) ")
    terminal.type("top1\n")
    terminal.read_until("hash")
    terminal.type("focus=idle\ntop1\n")
    terminal.read_until("   focus=idle")
    terminal.read_until("(offbeat) ", 4)
    terminal.type("quit\n")
    check_equal(terminal.wait(), 0, "status")


@case
def tab_completes_reports_and_functions():
    needs_libedit()
    terminal = Terminal("pprof", PROFILE)
    terminal.read_until("(offbeat) ")
    terminal.type("pee\tid\t\n")
    terminal.read_until("calls% + context")
    terminal.read_until("| idle")
    terminal.read_until("(offbeat) ", 2)
    terminal.type("quit\n")
    check_equal(terminal.wait(), 0, "status")


@case_by_the_clock
def ctrl_d_ends_it():
    terminal = Terminal("pprof", PROFILE)
    terminal.read_until("(offbeat) ")
    time.sleep(1)  # what is typed while the terminal changes its mode may be lost
    terminal.type("\x04")
    check_equal(terminal.wait(), 0, "status")


@case_by_the_clock
def ctrl_c_empties_the_line():
    needs_libedit()
    terminal = Terminal("pprof", PROFILE)
    terminal.read_until("(offbeat) ")
    time.sleep(1)  # until the terminal has its mode
    terminal.type("no command\x03top1\n")
    terminal.read_until("out of 4")
    terminal.type("\x03quit\n")
    check_equal(terminal.wait(), 0, "status")
    check("there is no command" not in terminal.text, f"the line was run: {terminal.text!r}")


@case
def mistakes_of_settings_are_reported_when_they_are_made():
    terminal = Terminal("pprof", PROFILE)
    terminal.read_until("(offbeat) ")
    terminal.type("focus=(\nsample_index=nothing\no\n")
    terminal.read_until("focus: a regular expression with a ( that is not closed")
    terminal.read_until('no value type "nothing"')
    terminal.read_until("sample_index           = samples (samples)")
    terminal.type("quit\n")
    check_equal(terminal.wait(), 0, "status")


@case
def the_line_before_comes_back():
    needs_libedit()
    terminal = Terminal("pprof", PROFILE)
    terminal.read_until("(offbeat) ")
    terminal.type("top1\n")
    terminal.read_until("out of 4")
    terminal.type("\x1b[A\n")
    terminal.read_until("out of 4", 2)
    terminal.type("quit\n")
    check_equal(terminal.wait(), 0, "status")


@case
def a_program_called_pprof_takes_its_command_line():
    with tempfile.TemporaryDirectory() as folder:
        link = pathlib.Path(folder) / "pprof"
        link.symlink_to(OFFBEAT)
        terminal = Terminal("-top", PROFILE, name=str(link))
        terminal.read_until("hash")
        check_equal(terminal.wait(), 0, "status")


main()
