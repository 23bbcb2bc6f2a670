"""Builds a small program out of assembly, so that its code is the same everywhere, and a profile of it without names.

    make_code.py PROGRAM PROFILE [BUILD_ID_IN_THE_PROFILE]

    _start -> work, at its second instruction   30 ms
    _start -> work, at its third instruction    10 ms
    _start, in its first instruction             5 ms

SPDX-License-Identifier: MIT"""
import pathlib
import subprocess
import sys

BUILD_ID = "00112233445566778899aabbccddeeff00112233"
SOURCE = """
    .text
    .globl _start, work
    .type _start, @function
_start: call work
    movl $60, %eax
    syscall
    .byte 6
    .size _start, . - _start
    .type work, @function
work: pushq %rbp
    addq $1, %rax
    imulq $31, %rax, %rcx
    vaddpd %ymm1, %ymm2, %ymm3
    movq %fs:0x28(%rax, %rcx, 8), %rdx
    popq %rbp
    ret
    .size work, . - work
"""
STRINGS = ["", "cpu", "nanoseconds"]
# Not where the file has it: at random addresses, as systems load programs.
START, TEXT, OFFSET = 0x550000001000, 0x401000, 0x1000
WORK = 0xd  # of `work`, from the start of the text on


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


def string(text):
    STRINGS.append(text)
    return len(STRINGS) - 1


def build(program):
    assembly, thing = program.with_suffix(".s"), program.with_suffix(".o")
    assembly.write_text(SOURCE, encoding="ascii")
    subprocess.run(["as", "-o", thing, assembly], check=True)
    subprocess.run(["ld", f"--build-id=0x{BUILD_ID}", f"-Ttext={TEXT:#x}", "-o", program, thing], check=True)
    thing.unlink()


def sample(milliseconds, *locations):
    return block(2, block(1, b"".join(map(varint, locations))) + block(2, varint(milliseconds * 10**6)))


def location(identity, offset):
    return block(4, number(1, identity) + number(2, 1) + number(3, START + offset))


def profile(program, build_id):
    mapping = (number(1, 1) + number(2, START) + number(3, START + 0x1000) + number(4, OFFSET) +
               number(5, string(str(program))) + number(6, string(build_id)))
    return (block(1, number(1, 1) + number(2, 2)) + sample(30, 1, 3) + sample(10, 2, 3) + sample(5, 3) + block(3, mapping) +
            location(1, WORK + 1) + location(2, WORK + 5) + location(3, 4) +
            b"".join(block(6, text.encode()) for text in STRINGS))


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1]).resolve()
    build(path)
    pathlib.Path(sys.argv[2]).write_bytes(profile(path, sys.argv[3] if len(sys.argv) > 3 else BUILD_ID))
