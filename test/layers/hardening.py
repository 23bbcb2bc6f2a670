"""Whether all that is installed is built to withstand faults in what it reads, and whether the code that runs on the
sampler's thread or in a signal handler has no such checks, as it must. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import pathlib
import platform
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, main  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
BINARIES = [BUILD / "offbeat", BUILD / "offbeat-helper", BUILD / "liboffbeat.so"]
BARE = [BUILD / "libsampler.a", BUILD / "src/unwind/libunwind.a", BUILD / "src/interpreters/libinterpreters.a", BUILD / "src/base/libbase_bare.a"]


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@case
def symbols_are_bound_at_the_start_and_then_read_only():
    for path in BINARIES:
        check(re.search(r"\bBIND_NOW\b", output_of("readelf", "-dW", path)), f"{path}: symbols are bound late")
        segments = output_of("readelf", "-lW", path)
        check("GNU_RELRO" in segments, f"{path}: no part is made read-only")
        stack = re.search(r"GNU_STACK.* (R[W ]E?) ", segments)
        check(stack and "E" not in stack[1], f"{path}: the stack is executable")


@case
def programs_are_anywhere_in_memory():
    for path in BINARIES:
        check("DYN (" in output_of("readelf", "-hW", path), f"{path} is not position-independent")


@case
def stacks_have_a_guard_and_copies_are_checked():
    for path in BINARIES:
        symbols = output_of("nm", "-D", "--undefined-only", path)
        check("__stack_chk_fail" in symbols, f"{path}: no stack protector")
        code = output_of("objdump", "-d", "--no-show-raw-insn", path)
        check(re.search(r"call .*<__\w+_chk(@|>)", code), f"{path}: no _FORTIFY_SOURCE")


@case
def functions_are_marked_as_targets_of_branches():
    if platform.machine() != "x86_64":
        return
    for path in BINARIES:
        code = output_of("objdump", "-d", "--no-show-raw-insn", path)
        first = re.findall(r"^[0-9a-f]+ <(?!.*@plt)[^>]*>:\n[^\t\n]*\t(\S+)", code, re.MULTILINE)
        share = sum(word == "endbr64" for word in first) / max(len(first), 1)
        # Internal functions whose address nobody takes need no mark.
        check(share > 0.3, f"{path}: {share:.0%} of the functions begin with endbr64: no -fcf-protection")


@case
def the_samplers_code_has_no_such_checks():
    for path in BARE:
        symbols = output_of("nm", path)
        check(" T " in symbols or " t " in symbols, f"{path} holds nothing")
        for name in re.findall(r" U (__\w+_chk\w*)", symbols):
            check(False, f"{path} calls {name}")


main()
