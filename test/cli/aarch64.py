"""Files of 64-bit Arm, read on any machine: perf.data with copied stacks, names of stubs, instructions.

A program is cross-compiled and run under qemu-user. It is stopped in a function that stores nothing, and prints its registers,
its stack and its mappings. The recording is made from them.

    aarch64.py OFFBEAT

SPDX-License-Identifier: MIT"""
import collections
import gzip
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main, short, skip  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/perf"
OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="offbeat-test-aarch64-"))
COMPILER, EMULATOR, LIBRARIES = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
LR, SP, PC = 30, 31, 32

PROGRAM = r"""
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
static void stop(int number, siginfo_t *info, void *context)
{
    const mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
    char line[512];
    for (int i = 0; i < 31; i++) printf("register %llx\n", (unsigned long long)machine->regs[i]);
    printf("register %llx\nregister %llx\n", (unsigned long long)machine->sp, (unsigned long long)machine->pc);
    for (int i = 0; i < 128; i++) printf("word %llx\n", ((unsigned long long *)machine->sp)[i]);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), maps)) printf("map %s", line);
    fflush(stdout);
    _Exit(0);
}
__attribute__((noipa)) static int leaf(int n) { __asm__ volatile("brk #0"); return n + 1; }
__attribute__((noipa)) static int middle(int n) { volatile char room[40 * 8]; room[n] = 1; return leaf(n) + room[n]; }
__attribute__((noipa)) static int with_alloca(int n) { volatile char *room = __builtin_alloca(n * 16 + 32); room[0] = 1; return middle(n) + room[0]; }
int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    return with_alloca(argc) + 1;
}
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    check_equal(done.returncode, 0, f"status of {command}: {done.stderr}")
    return done.stdout


def build(name, *options):
    """The program, with return addresses that are signed."""
    for needed in (COMPILER, EMULATOR):
        if not shutil.which(needed):
            skip(f"{needed} is not installed (Debian: gcc-aarch64-linux-gnu, qemu-user)")
    source, program = FOLDER / "program.c", FOLDER / name
    source.write_text(PROGRAM, encoding="ascii")
    run(COMPILER, "-g", "-O2", "-mbranch-protection=standard", "-Wl,--build-id", *options, source, "-o", program)
    return program


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "--notes", path)).group(1)


def stub_of(program, name):
    """The address of the stub for NAME, as objdump finds it by the slot."""
    listing = run("aarch64-linux-gnu-objdump", "-d", "-j", ".plt", program)
    return int(re.search(rf"^([0-9a-f]+) <{name}@plt>:", listing, re.M).group(1), 16)


# --- A recording ------------------------------------------------------------------------------------------------------

def record_of(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def feature(number, text):
    padded = text.encode() + b"\0" * (8 - len(text) % 8)
    return record_of(80, 0, struct.pack("<QI", number, len(padded)) + padded)


def attribute():
    ip_tid_time_registers_stack = 1 | 2 | 4 | 1 << 12 | 1 << 13
    fields = struct.pack("<IIQQQQQIIQQQQIiQIHH", 1, 112, 0, 1000000, ip_tid_time_registers_stack, 0, 1 << 18, 0, 0, 0, 0, 0,
                         (1 << 33) - 1, 8 * 128, 0, 0, 0, 0, 0)
    return record_of(64, 0, fields + struct.pack("<Q", 1))


SAMPLE_ID = struct.pack("<IIQ", 7, 7, 1)


def mapping(start, end, offset, path):
    name = path.encode() + b"\0"
    name += b"\0" * (-len(name) % 8)
    identity = struct.pack("<BBH20s", 20, 0, 0, bytes.fromhex(build_id(path)))
    return record_of(10, 2 | 1 << 14, struct.pack("<IIQQQ", 7, 7, start, end - start, offset) + identity +
                     struct.pack("<II", 5, 2) + name + SAMPLE_ID)


def sample(time, registers, words):
    body = struct.pack("<QIIQQ", registers[PC], 7, 7, time, 2) + struct.pack("<33Q", *registers)
    body += struct.pack("<Q", 8 * len(words)) + struct.pack(f"<{len(words)}Q", *words) + struct.pack("<Q", 8 * len(words))
    return record_of(9, 2, body)


def stopped(program, processor="max"):
    """The registers, words of the stack and mappings of code of PROGRAM, stopped in leaf."""
    printed = run(EMULATOR, "-cpu", processor, "-L", LIBRARIES, program)
    registers = [int(value, 16) for value in re.findall(r"^register (\w+)$", printed, re.M)]
    words = [int(value, 16) for value in re.findall(r"^word (\w+)$", printed, re.M)]
    maps = re.findall(r"^map ([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \d+ +(/.*)$", printed, re.M)
    return registers, words, [(int(start, 16), int(end, 16), int(offset, 16), path) for start, end, offset, path in maps]


def recording(name, samples, maps):
    path = FOLDER / name
    body = feature(6, "aarch64") + attribute() + b"".join(mapping(*fields) for fields in maps)
    body += b"".join(sample(100 + i, registers, words) for i, (registers, words) in enumerate(samples))
    path.write_bytes(b"PERFILE2" + struct.pack("<Q", 16) + body)
    return path


def stacks(path):
    """The stacks of a recording, innermost first, without the names of libc, which is stripped."""
    out = FOLDER / "collapsed"
    run(OFFBEAT, "convert", path, "-o", out, "--to", "collapsed")
    return {tuple(reversed(line.rsplit(" ", 1)[0].split(";"))) for line in out.read_text(encoding="utf-8").splitlines()}


# --- Cases ------------------------------------------------------------------------------------------------------------

@case
@short
def signed_return_addresses_and_a_leaf_are_unwound_to_the_root():
    program = build("program")
    registers, words, maps = stopped(program)
    check(any(word >> 48 for word in words if word & 0xffffffff00000000), "no address in the stack is signed")
    found, = stacks(recording("signed.data", [(registers, words)], maps))
    check_equal(found[:4], ("leaf", "middle", "with_alloca", "main"), "the innermost frames")
    check_equal(found[-1], "_start", f"the root of {found}")


@case
def stubs_of_16_and_24_bytes_have_names_and_callers():
    for name, options in (("stubs16", ["-no-pie"]), ("stubs24", ["-no-pie", "-Wl,-z,force-bti"])):
        program = build(name, *options)
        registers, words, maps = stopped(program, "cortex-a72")  # ignores that Debian's start files have no landing pads
        samples = []
        for i, function in enumerate(("printf", "fopen", "_Exit")):
            changed = list(registers)
            changed[PC] = stub_of(program, function) + 4 * i
            samples.append((changed, words))
        found = stacks(recording(f"{name}.data", samples, maps))
        check_equal({stack[:3] for stack in found}, {(f"{function}@plt", "middle", "with_alloca") for function in ("printf", "fopen", "_Exit")},
                    f"innermost frames of {name}")


@case
def functions_have_instructions_and_lines():
    program = build("program")
    registers, words, maps = stopped(program)
    path = recording("shown.data", [(registers, words)], maps)
    check("brk #0" in re.sub(r"\s+", " ", run(OFFBEAT, "disasm", "leaf", path)), "no instruction of AArch64")
    check("brk #0" in run(OFFBEAT, "list", "leaf", path), "no line")
    shown = json.loads(run(OFFBEAT, "info", "--json", path))
    check("aarch64" in json.dumps(shown), "the processor is not stated")


@case
@short
def a_recording_of_perf_has_the_stacks_that_perf_shows_there():
    """Recorded, and shown by perf script, in an emulated machine (test/data/perf/make_aarch64.sh)."""
    recorded = (DATA / "aarch64.data").read_bytes()
    path = re.search(rb"/tmp/recorded-in[^\0]*", recorded).group()
    copy = bytes(FOLDER) + b"/aarch64.elf"
    if len(copy) > len(path):
        skip(f"{FOLDER} is longer than the path in the recording")
    shutil.copy(DATA / "aarch64.elf", FOLDER)
    changed = FOLDER / "perf.data"
    changed.write_bytes(recorded.replace(path, bytes(FOLDER) + b"/" * (len(path) - len(copy)) + b"/aarch64.elf"))
    expected, ours = collections.Counter(), collections.Counter()
    for text in gzip.decompress((DATA / "aarch64.script.gz").read_bytes()).decode().split("\n\n"):
        head, *frames = text.splitlines() or [""]
        if frames:
            expected[tuple(line.split()[1] for line in frames)] += int(re.search(r"(\d+) cpu-clock", head).group(1))
    run(OFFBEAT, "convert", changed, "-o", FOLDER / "collapsed", "--to", "collapsed")
    for line in (FOLDER / "collapsed").read_text(encoding="utf-8").splitlines():
        stack, weight = line.rsplit(" ", 1)
        ours[tuple(reversed(stack.split(";")))] += int(weight)
    check(len(expected) >= 2, f"perf shows {expected}")
    check_equal(ours, expected, "time of each stack")
    three = sum(weight for stack, weight in ours.items() if stack[0] == "spends_three")
    check(0.65 < three / sum(ours.values()) < 0.85, f"spends_three has {three} of {sum(ours.values())}")


try:
    main()
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
