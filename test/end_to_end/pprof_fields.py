"""pprof files, read with as little as it takes.  SPDX-License-Identifier: MIT"""
from tap import Failed


def varint(data, place):
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place


def varints(packed):
    """The numbers of a packed field, or of one that holds a single number."""
    if isinstance(packed, int):
        yield packed
        return
    place = 0
    while place < len(packed):
        value, place = varint(packed, place)
        yield value


def pprof_fields(data):
    place = 0
    while place < len(data):
        key, place = varint(data, place)
        if key & 7 == 0:
            value, place = varint(data, place)
        elif key & 7 == 2:
            size, place = varint(data, place)
            value, place = data[place:place + size], place + size
        else:
            raise Failed(f"pprof: wire type {key & 7}")
        yield key >> 3, value
