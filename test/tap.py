"""Tests in Python: a function decorated with @case is one case, named by its own name; main() runs them and prints TAP.
check() and friends end a case that fails, skip("why") ends it as skipped. SPDX-License-Identifier: MIT"""
import concurrent.futures
import functools
import sys
import traceback

_cases = []


class Failed(Exception):
    """The case does not hold; the message says what was found."""


class Skipped(Exception):
    """The case cannot be tried here; the message says why."""


def case(function):
    _cases.append((function.__name__.replace("_", " "), function))
    return function


def case_by_the_clock(function=None, *, forget=lambda: None):
    """A case that compares times: other work on the machine can spoil it, so it may be tried three times, which is told.
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


def skip(reason):
    raise Skipped(reason)


def _indent(text):
    return "\n".join("# " + line for line in str(text).splitlines())


def _run(function):
    """(passed, what to say of it, text behind the case's name)"""
    try:
        function()
    except Skipped as skipped:
        return True, "", f" # SKIP {skipped}"
    except Failed as failed:
        return False, _indent(failed), ""
    except Exception:
        return False, _indent(traceback.format_exc()), ""
    return True, "", ""


def main(only="", at_once=1):
    """Runs the cases whose name contains ONLY, as many at a time as AT_ONCE says; never returns."""
    sys.stdout.reconfigure(line_buffering=True)
    chosen = [(name, function) for name, function in _cases if only.replace("_", " ") in name]
    all_passed = True
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        outcomes = pool.map(_run, [function for _, function in chosen])
        for number, ((name, _), (passed, why, behind)) in enumerate(zip(chosen, outcomes), 1):
            all_passed = all_passed and passed
            print(*([why] if why else []), f"{'ok' if passed else 'not ok'} {number} - {name}{behind}", sep="\n")
    print(f"1..{len(chosen)}")
    sys.exit(0 if all_passed else 1)
