"""Tests in Python: a function decorated with @case is one case, named by its own name; main() runs them and prints TAP.
check() and friends end a case that fails, skip("why") ends it as skipped, leave_out("why") as none. SPDX-License-Identifier: MIT"""
import concurrent.futures
import functools
import os
import sys
import threading
import time
import traceback

_cases = []
_short, _long = set(), set()
IS_SHORT = "--short" in sys.argv  # ./dev test runs the cases marked @short, one or two for each part of the program
IS_LONG = bool(os.environ.get("OFFBEAT_TEST_LONG"))  # ./dev nightly
if IS_SHORT:
    sys.argv.remove("--short")


class Failed(Exception):
    """The case does not hold; the message says what was found."""


class Skipped(Exception):
    """The case cannot be tried here; the message says why."""


class LeftOut(Exception):
    """Another build runs the case in any case; the message says why this one does not."""


def case(function):
    _cases.append((function.__name__.replace("_", " "), function))
    return function


def short(function):
    """Marks a case for ./dev test, which has five minutes for everything. Above @case."""
    _short.add(function.__name__.replace("_", " "))
    return function


def long(function):
    """Marks a case that takes long, of which others cover most: only ./dev nightly runs it. Above @case."""
    _long.add(function.__name__.replace("_", " "))
    return function


def some_of(items, step):
    """Each STEP-th of ITEMS; all of them in ./dev nightly."""
    return items if IS_LONG else items[::step]


def case_by_the_clock(function=None, *, forget=lambda: None):
    """A case that compares times: other work on the machine can spoil it, so it may be tried three times, with a message.
    FORGET is called in between."""
    if function is None:
        return lambda function: case_by_the_clock(function, forget=forget)

    @functools.wraps(function)
    def tried():
        for left in (2, 1, 0):
            try:
                return function()
            except Failed as failed:
                if left == 0:
                    raise
                print(_indent(f"{failed}\ntrying again"))
                forget()

    return case(tried)


def check(condition, message):
    if not condition:
        raise Failed(message)


def check_equal(actual, expected, what):
    if actual != expected:
        raise Failed(f"{what}: {actual!r}, expected {expected!r}")


def wait_until(condition, message, seconds=60):
    """Fails with MESSAGE, a text or a function that returns one, if CONDITION does not become true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failed(message() if callable(message) else message)
        time.sleep(0.05)


def skip(reason):
    raise Skipped(reason)


def leave_out(reason):
    raise LeftOut(reason)


def _indent(text):
    return "\n".join("# " + line for line in str(text).splitlines())


def _run(function):
    """(passed, what to say of it, text after the case's name, or None for a case that does not count)"""
    try:
        function()
    except LeftOut as left_out:
        return True, f"# {left_out}", None
    except Skipped as skipped:
        return True, "", f" # SKIP {skipped}"
    except Failed as failed:
        return False, _indent(failed), ""
    except Exception:
        return False, _indent(traceback.format_exc()), ""
    return True, "", ""


class _WholeLines:
    """Standard output for cases that run at the same time: print writes a line in pieces."""

    def __init__(self, out):
        self._out, self._open = out, threading.local()

    def write(self, text):
        begun = getattr(self._open, "text", "") + text
        end = begun.rfind("\n") + 1
        self._open.text = begun[end:]
        if end:
            self._out.write(begun[:end])
        return len(text)

    def __getattr__(self, name):
        return getattr(self._out, name)


def _print_case(number, name, passed, why, after):
    print(*([why] if why else []), f"{'ok' if passed else 'not ok'} {number} - {name}{after}", sep="\n")


def _try_again(number, name, function, why):
    """True if the case passes now. Other programs share the machine, and one case in thousands fails for that alone: the
    summary names those that passed the second time, and allows few of them."""
    passed, why_again, after = _run(function)
    _print_case(number, name, passed and after == "", f"{why}\n# FAILED AT FIRST\n{why_again}".rstrip(), "")
    return passed and after == ""


def main(only="", at_once=1):
    """Runs the cases whose name contains ONLY, as many at a time as AT_ONCE says; never returns."""
    sys.stdout.reconfigure(line_buffering=True)
    sys.stdout = _WholeLines(sys.stdout)
    left_out = set() if IS_LONG else _long
    chosen = [(name, function) for name, function in _cases
              if only.replace("_", " ") in name and name not in left_out and (not IS_SHORT or name in _short)]
    failed, number = [], 0
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        outcomes = pool.map(_run, [function for _, function in chosen])
        for (name, function), (passed, why, after) in zip(chosen, outcomes):
            if after is None:
                print(f"# not in this build: {name}", why, sep="\n")
            elif passed:
                number += 1
                _print_case(number, name, True, why, after)
            else:
                failed.append((name, function, why))
        # The threads of the cases live until here: programs that end with the thread which started them still run.
        all_passed = all([_try_again(number + 1 + i, *case_that_failed) for i, case_that_failed in enumerate(failed)])
    print(f"1..{number + len(failed)}")
    sys.exit(0 if all_passed else 1)
