"""Pseudo terminals for tests. SPDX-License-Identifier: MIT"""
import fcntl
import os
import pathlib
import pty
import struct
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tap import skip  # noqa: E402


def open_terminal(rows=24, columns=80):
    """(the side of the test, the side of the program)"""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        skip(f"there is no pseudo terminal, which needs /dev/pts: {error}")
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return ours, theirs


def read_terminal(ours, heard=lambda output: None):
    """What programs write until the last of them closes the other side, which the caller must have closed. HEARD receives all
    output so far after each piece."""
    output = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        output += piece
        heard(output)
    os.close(ours)
    return output.decode(errors="replace").replace("\r\n", "\n")
