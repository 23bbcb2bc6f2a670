#!/usr/bin/env python3
"""Writes a text file as a string constant of C.

    embed_text.py INPUT OUTPUT NAME

SPDX-License-Identifier: MIT"""
import pathlib
import sys


def literal(line):
    escaped = "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
                      for byte in line.encode("utf-8"))
    return f'    "{escaped}"'


source, output, name = sys.argv[1:]
lines = pathlib.Path(source).read_text(encoding="utf-8").splitlines(keepends=True)
text = "\n".join(literal(line) for line in lines)
pathlib.Path(output).write_text(f"extern const char {name}[];\nconst char {name}[] =\n{text};\n", encoding="utf-8")
