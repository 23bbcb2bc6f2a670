"""Writes a small heap profile in pprof's format to standard output: profile.proto by hand, so that what offbeat reads was
not written by offbeat.

    main -> parse -> grow (inlined into parse)   3 objects, 3072 bytes
    main -> parse                                1 object,  1024 bytes
    main -> (no name, libx.so.1 at 0x1234)       1 object,   512 bytes

With the name of one of the two sample types as its argument, the values of that one alone.

SPDX-License-Identifier: MIT"""
import sys

STRINGS = ["", "objects", "count", "space", "bytes", "main", "parse", "grow", "/src/a.c", "/bin/program",
           "/usr/lib/libx.so.1"]


def varint(number):
    out = b""
    while number > 0x7f:
        out += bytes([number & 0x7f | 0x80])
        number >>= 7
    return out + bytes([number])


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def value_type(field, kind, unit):
    return block(field, number(1, STRINGS.index(kind)) + number(2, STRINGS.index(unit)))


TYPES = {"objects": "count", "space": "bytes"}
CHOSEN = sys.argv[1:] or list(TYPES)


def sample(locations, *all_values):
    values = [value for kind, value in zip(TYPES, all_values) if kind in CHOSEN]
    return block(2, block(1, b"".join(map(varint, locations))) + block(2, b"".join(map(varint, values))))


def mapping(identity, start, limit, name):
    return block(3, number(1, identity) + number(2, start) + number(3, limit) + number(5, STRINGS.index(name)))


def location(identity, where, address, *functions):
    lines = b"".join(block(4, number(1, function) + number(2, line)) for function, line in functions)
    return block(4, number(1, identity) + number(2, where) + number(3, address) + lines)


def function(identity, name):
    return block(5, number(1, identity) + number(2, STRINGS.index(name)) + number(4, STRINGS.index("/src/a.c")))


sys.stdout.buffer.write(
    b"".join(value_type(1, kind, TYPES[kind]) for kind in CHOSEN) +
    sample([2, 1], 3, 3072) + sample([3, 1], 1, 1024) + sample([4, 1], 1, 512) +
    mapping(1, 0x400000, 0x500000, "/bin/program") + mapping(2, 0x7f0000000000, 0x7f0000010000, "/usr/lib/libx.so.1") +
    location(1, 1, 0x400100, (1, 10)) + location(2, 1, 0x400200, (3, 33), (2, 22)) +
    location(3, 1, 0x400300, (2, 23)) + location(4, 2, 0x7f0000001234) +
    function(1, "main") + function(2, "parse") + function(3, "grow") +
    b"".join(block(6, string.encode()) for string in STRINGS) + number(9, 1700000000 * 10**9) + number(10, 2 * 10**9))
