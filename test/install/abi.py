"""The binary interface of liboffbeat.so: a program that was built with an earlier header must work with this library.

liboffbeat.abi lists the exported symbols, the functions and types of <offbeat.h>, and the place of each enumerator and
member. A line that is changed or missing breaks programs: then the number in the library's name (soversion) must change.
A new line is added by `abi.py BUILD --update`. Arguments: the build folder.  SPDX-License-Identifier: MIT"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import case, check, check_equal, main, skip  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
LISTED = ROOT / "test/install/liboffbeat.abi"
HEADER = (ROOT / "include/offbeat.h").read_text(encoding="utf-8")


def clang(source, *options):
    compiler = shutil.which("clang-14") or skip("clang-14 is not installed")
    command = [compiler, "-x", "c", "-fsyntax-only", *options, "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def places_of_members(header):
    structs = re.findall(r"^struct (\w+) \{", header, re.MULTILINE)
    uses = "".join(f"int size_of_{name}[sizeof(struct {name})];\n" for name in structs)
    for layout in clang(header + uses, "-Xclang", "-fdump-record-layouts").split("*** Dumping AST Record Layout"):
        name = re.search(r"0 \| struct (offbeat_\w+)\n", layout)
        for place, member in re.findall(r"^ *(\d+) \|   (\S.*)$", layout, re.MULTILINE) if name else []:
            yield f"struct {name[1]} {place} {member}"


def declarations(header):
    enum, number = None, 0
    for line in clang(header, "-Xclang", "-ast-print").splitlines():
        line = re.sub(r" __attribute__\(\(.*?\)\)+", "", line.strip()).rstrip(";,")
        if line.startswith("enum ") and line.endswith("{"):
            enum, number = line[:-2], 0
        elif line.startswith("}"):
            enum = None
        elif enum:
            yield f"{enum} {number} {line}"
            number += 1
        elif re.match(r"typedef .*\boffbeat_\w+", line):
            yield line
        elif re.search(r"\boffbeat_\w+\(.*\)$", line):
            yield f"function {line}"


def exported_symbols():
    nm = shutil.which("nm") or skip("nm is not installed")
    names = subprocess.run([nm, "-D", "--defined-only", BUILD / "liboffbeat.so"], capture_output=True, text=True, check=True)
    return [f"symbol {line.split()[-1]}" for line in names.stdout.splitlines()]


def interface(header):
    return sorted({*exported_symbols(), *declarations(header), *places_of_members(header)})


def listed():
    return LISTED.read_text(encoding="utf-8").splitlines()


@case
def programs_of_earlier_headers_work():
    now = set(interface(HEADER))
    check(len(listed()) > 100, "the list is too short to be true")
    check_equal([line for line in listed() if line not in now], [], "lines that are no longer true")


@case
def everything_new_is_listed():
    known = set(listed())
    check_equal([line for line in interface(HEADER) if line not in known], [], "lines to add: abi.py BUILD --update")


@case
def a_member_in_the_middle_is_found():
    changed = HEADER.replace("    const char *dsn;", "    int added;\n    const char *before_dsn, *dsn;", 1)
    check(changed != HEADER, "the header has no member dsn")
    lines = set(interface(changed))
    check(any(line.startswith("struct offbeat_options") and line not in lines for line in listed()), "it is not")


if "--update" in sys.argv:
    LISTED.write_text("".join(f"{line}\n" for line in interface(HEADER)), encoding="utf-8")
else:
    main()
