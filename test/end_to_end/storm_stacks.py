"""Judges the stacks of python_storm.py by its call graph: every name, file, line and caller must be of one unit.
SPDX-License-Identifier: MIT"""
import ast
import gzip
import re

from pprof_fields import pprof_fields, varints
from python_storm import UNIT

LINES = UNIT.format(n=0).splitlines()
ROOTS = ("<module>", "Thread._bootstrap", "_bootstrap", "_MainThread", "_shutdown")
SCRIPT = "python_storm.py"
# Functions of the script that call functions of units.
CALLERS = {"sleeps": ("Storm.calls", "calls"), "outer": ("Storm.thread", "Storm.calls", "Storm.templates", "thread", "calls", "templates"),
           "<module>": ("Finder.exec_module", "Storm.executed", "exec_module", "executed")}


def spans():
    """{function: (first, last line)} of unit 0, with and without the class before the name."""
    found = {}
    for node in ast.walk(ast.parse(UNIT.format(n=0))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name.replace("_0", "")] = (node.lineno, node.end_lineno)
    found["<module>"] = (1, len(LINES))
    found["<listcomp>"] = found["same"]
    return found


SPANS = spans()
OWN = set(SPANS) - {"<module>", "<listcomp>", "__init__"}  # names that no other code has
CALLEE = {"<module>": None, "same": "same(", "same_again": "same_again(", "<listcomp>": "[same_again", "__init__": "Holder_0()", "Holder": "class Holder_0"}


def judge_frame(name, file, line):
    """(unit, function, line of unit 0) of a frame of a unit; a text if it contradicts itself; None if it is of no unit."""
    number = re.fullmatch(r"unit_(\d+)\.py", file.rpartition("/")[2])
    last = name.rpartition(".")[2]
    if not number:
        return f"{name} is in {file}" if re.sub(r"_\d+$", "", last) in OWN else None
    n = int(number[1])
    if any(int(other) != n for other in re.findall(r"_(\d+)", name)):
        return f"{name} is in {file}"
    function = re.sub(r"_\d+$", "", last)
    if function not in SPANS:
        return f"{name} is no function of {file}"
    if line == 0 and function != "<module>":
        return n, function, None  # an instruction without a line
    first, end = SPANS[function]
    own = line - n % 97
    is_inside = function == "<module>" or first <= own <= end  # a module begins in line 0 or 1
    return (n, function, own) if is_inside else f"{name} of {file} is in line {line}"


def judge_stack(frames):
    """What is wrong with FRAMES, (name, file, line) from the root; None: nothing."""
    names = [name for name, _, _ in frames]
    outer = None  # nearest frame of a unit or the script
    for name, file, line in frames:
        if name == "[gone]":
            outer = name
            continue
        if file.endswith(SCRIPT):
            outer = (None, name, line)
            continue
        frame = judge_frame(name, file, line)
        if isinstance(frame, str):
            return frame
        if frame is None:
            continue
        n, function, _ = frame
        if outer is None:
            return f"nobody calls {name}: {names}"
        if outer != "[gone]":
            caller_unit, caller, caller_line = outer
            if caller_unit is None and caller not in CALLERS.get(function, ()):
                return f"{caller} does not call {name}"
            if caller_unit is not None:
                if caller_line is None:
                    outer = frame
                    continue
                text = LINES[caller_line - 1] if 0 < caller_line <= len(LINES) else ""
                if caller_unit != n or (CALLEE.get(function, f"{function}_0") or "nothing") not in text:
                    return f"{caller} of unit {caller_unit} does not call {name} in line {caller_line}: {text}"
        outer = frame
    root = next((frame for frame in frames if ".py" in frame[1] or frame[0] == "[gone]"), ("<module>", "", 0))
    if root[0] not in (*ROOTS, "[gone]") and "encodings" not in root[1] and not any("[incomplete" in name for name in names):
        return f"the stack has no root: {names}"
    return None


def stacks_of(path):
    """The different stacks of the pprof file at PATH: tuples of (name, file, line) from the root."""
    fields = list(pprof_fields(gzip.decompress(path.read_bytes())))
    strings = [value.decode() for number, value in fields if number == 6]
    functions = {parts[1]: (strings[parts[2]], strings[parts.get(4, 0)])
                 for parts in (dict(pprof_fields(value)) for number, value in fields if number == 5)}
    places = {}
    for number, value in fields:
        if number == 4:
            lines = [dict(pprof_fields(line)) for field, line in pprof_fields(value) if field == 4]
            places[dict(pprof_fields(value))[1]] = [(*functions[line[1]], line.get(2, 0)) for line in lines] or [("?", "", 0)]
    samples = {value[1] for value in (dict(pprof_fields(value)) for number, value in fields if number == 2)}
    return [[frame for place in varints(sample) for frame in places[place]][::-1] for sample in samples]


def judge(path):
    """({fault: stacks}, stacks with units, stacks with code that is gone) of the pprof file at PATH."""
    faults, units, gone = {}, 0, 0
    for stack in stacks_of(path):
        units += any("unit_" in file for _, file, _ in stack)
        gone += any(name == "[gone]" for name, _, _ in stack)
        fault = judge_stack(stack)
        if fault:
            faults[fault] = faults.get(fault, 0) + 1
    return faults, units, gone
