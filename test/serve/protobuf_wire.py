"""Protocol buffers, written field by field. SPDX-License-Identifier: MIT"""


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(number, values):
    return b"".join(field(number, value) for value in values)


def pprof(stacks):
    """profile.proto: {("root", "leaf"): nanoseconds}, each function at its own location."""
    names = sorted({name for stack in stacks for name in stack})
    strings = ["", "cpu", "nanoseconds", *names]
    number = {name: i + 1 for i, name in enumerate(names)}
    return (field(1, field(1, 1) + field(2, 2)) +
            b"".join(field(2, field(1, b"".join(varint(number[name]) for name in reversed(stack))) + field(2, varint(value)))
                     for stack, value in stacks.items()) +
            b"".join(field(4, field(1, i) + field(4, field(1, i))) + field(5, field(1, i) + field(2, strings.index(name)))
                     for name, i in number.items()) +
            fields(6, strings))


def push_series(labels, profiles):
    """RawProfileSeries of push.proto: PROFILES are (pprof, id)."""
    return (fields(1, [field(1, name) + field(2, value) for name, value in labels.items()]) +
            fields(2, [field(1, profile) + field(2, one_id) for profile, one_id in profiles]))
