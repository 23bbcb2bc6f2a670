"""pprof files as other programs could write them, field by field.  SPDX-License-Identifier: MIT"""


def varint(number):
    number &= 0xFFFFFFFFFFFFFFFF
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Profile:
    """Functions without addresses, on lines 10, 20, …; a sample is (function names, leaf first; values; labels as a list of (key, value or
    (number, unit)))."""

    def __init__(self, types, time_ns=0, drop_frames=""):
        self.strings, self.functions, self.body = {b"": 0}, {}, b""
        if drop_frames:
            self.body += field(7, self.string(drop_frames))
        for kind, unit in types:
            self.body += field(1, field(1, self.string(kind)) + field(2, self.string(unit)))
        if time_ns:
            self.body += field(9, time_ns)

    def string(self, text):
        text = text.encode() if isinstance(text, str) else text
        return self.strings.setdefault(text, len(self.strings))

    def location(self, name):
        if name not in self.functions:
            number = self.functions[name] = len(self.functions) + 1
            self.body += field(5, field(1, number) + field(2, self.string(name)) + field(3, self.string(name))
                               + field(5, 10 * number))
            self.body += field(4, field(1, number) + field(4, field(1, number) + field(2, 10 * number + 1)))
        return self.functions[name]

    def add(self, stack, values, labels=()):
        sample = b"".join(field(1, self.location(name)) for name in stack) + b"".join(field(2, value) for value in values)
        for key, value in labels:
            text = field(2, self.string(value)) if isinstance(value, (str, bytes)) else (
                field(3, value[0]) + field(4, self.string(value[1])))
            sample += field(3, field(1, self.string(key)) + text)
        self.body += field(2, sample)
        return self

    def bytes(self):
        return self.body + b"".join(field(6, text) for text in self.strings)
