"""Names for random addresses of a large C++ library, with and without the kept index, beside llvm-symbolizer, and how
often both say the same.

The library is Debian's libceph-common.so.2 (6.6 MB of code, 95 MB of compressed debug information), installed or fetched
by apt-get into the build folder; without it, libc. SPDX-License-Identifier: MIT"""
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time

from common import environment, installed_library, table

PACKAGES = ["librados2", "librados2-dbg"]
ROUNDS = 5


def fetched_library(build):
    """(library, folder of debug files), or None if there is no network or no apt-get."""
    folder = build / "bench-symbolize"
    library = folder / "root/usr/lib/x86_64-linux-gnu/ceph/libceph-common.so.2"
    if not library.exists():
        folder.mkdir(exist_ok=True)
        done = subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=folder, capture_output=True, check=False)
        for package in folder.glob("*.deb") if done.returncode == 0 else []:
            subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
            package.unlink()
    return (library, folder / "root/usr/lib/debug") if library.exists() else None


def choose_library(build):
    installed = installed_library("ceph/libceph-common.so.2")
    debug = pathlib.Path("/usr/lib/debug")
    if installed and (debug / ".build-id").exists() and subprocess.run(
            ["dpkg", "-s", PACKAGES[1]], capture_output=True, check=False).returncode == 0:
        return pathlib.Path(installed), debug
    return fetched_library(build) or (pathlib.Path(installed_library("libc.so.6")), debug)


def random_addresses(library, count):
    sections = subprocess.run(["readelf", "-SW", library], capture_output=True, text=True, check=True).stdout
    start, size = (int(text, 16) for text in re.search(r" \.text +PROGBITS +(\w+) \w+ (\w+)", sections).groups())
    chance = random.Random(7)
    return "".join(f"0x{start + chance.randrange(size):x}\n" for _ in range(count))


def run(command, addresses, answers, **more):
    """(seconds, seconds of processors, MB). ADDRESSES and ANSWERS are paths. The system counts our own memory as the
    child's until it has become another program, so answers are not read before all is measured."""
    with open(answers, "w", encoding="utf-8") as output, open(addresses, encoding="ascii") as questions:
        started = time.monotonic()
        process = subprocess.Popen(command, stdin=questions, stdout=output, env=environment(**more))
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


# --- Comparing ---------------------------------------------------------------------------------------------------------

def base_name(name):
    """What a function is called without its class, parameters, template arguments and result: demanglers differ in how
    they write these, and lambdas, and where operator< ends ("operator<<char>"). None where a demangler gave up."""
    if name.startswith("_Z"):
        return None
    name = re.sub(r"operator *(\(\)|<<=?|>>=?|<=>|[<>]=?|->\*?)[^(]*", "operator@", name)
    depth, kept = 0, []
    for character in re.sub(r"\(anonymous namespace\)", "", name):
        depth -= character in ">)]}" and depth > 0
        if depth == 0 and character not in ">)]}<([{":
            kept.append(character)
        depth += character in "<([{"
    words = re.split(r"::| (?!const)", re.sub(r" (const|volatile|&)+$", "", "".join(kept).strip()))
    return words[-1].strip() if words else ""


def read_frames(answer):
    """[(name, place)], innermost first. llvm-symbolizer gives lines outside of functions (padding between them)
    as frames without a name; a profile has no use for these, and both sides are without them here. Paths are compared
    as paths ("./src/./a.h" is "src/a.h"), without columns."""
    lines = answer.split("\n")
    frames = []
    for name, place in zip(lines[0::2], lines[1::2]):
        path, line, _ = place.rsplit(":", 2)
        if name != "??":
            frames.append((name, f"{os.path.normpath(path)}:{line}"))
    return frames


def compare(ours, theirs):
    """(share of addresses with the same depth and places, share of frames of these with the same name)"""
    same, names, same_names = 0, 0, 0
    pairs = list(zip(ours.strip("\n").split("\n\n"), theirs.strip("\n").split("\n\n"), strict=True))
    for our_answer, their_answer in pairs:
        our_frames, their_frames = read_frames(our_answer), read_frames(their_answer)
        if [place for _, place in our_frames] != [place for _, place in their_frames]:
            continue
        same += 1
        for (our_name, _), (their_name, _) in zip(our_frames, their_frames):
            our_base, their_base = base_name(our_name), base_name(their_name)
            names += 1
            same_names += our_base == their_base or our_base is None or their_base is None
    return same / len(pairs), same_names / max(names, 1)


# --- The part ----------------------------------------------------------------------------------------------------------

def measure(build, library, debug, addresses, folder):
    """[(who, answers, (seconds, seconds of processors, MB))], and the size of the kept index in bytes."""
    ours = [build / "bench/symbolize", library, debug]
    answers = [folder / name for name in ("first", "kept", "theirs")]
    first = min(run(ours, addresses, answers[0], OFFBEAT_CACHE_DIRECTORY=folder / f"cache{number}")
                for number in range(ROUNDS))
    kept = min(run(ours, addresses, answers[1], OFFBEAT_CACHE_DIRECTORY=folder / "cache0") for _ in range(4 * ROUNDS))
    measured = [("offbeat, first time", answers[0], first), ("offbeat, from the kept index", answers[1], kept)]
    if llvm := shutil.which("llvm-symbolizer-14") or shutil.which("llvm-symbolizer"):
        command = [llvm, f"--obj={library}", f"--debug-file-directory={debug}", "--inlines"]
        measured.append((pathlib.Path(llvm).name, answers[2], min(run(command, addresses, answers[2]) for _ in range(2))))
    return measured, sum(path.stat().st_size for path in (folder / "cache0").glob("*"))


def symbolize(build, count=10000):
    library, debug = choose_library(build)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        addresses = folder / "addresses"
        addresses.write_text(random_addresses(library, count), encoding="ascii")
        measured, size = measure(build, library, debug, addresses, folder)
        texts = [answers.read_text(encoding="utf-8") for _, answers, _ in measured]
    print(f"{count} addresses of {library.name} with inlined functions; the index takes {size / 1e6:.0f} MB on disk")
    table([["", "wall", "processors", "memory"]] +
          [[name, f"{wall:.3f} s", f"{processors:.3f} s", f"{memory:.0f} MB"]
           for name, _, (wall, processors, memory) in measured])
    assert texts[0] == texts[1], "the kept index answers differently"
    if len(texts) == 3:
        places, names = compare(texts[0], texts[2])
        print(f"as {measured[2][0]}: depth, files and lines of {places:.2%} of the addresses; "
              f"names of {names:.2%} of their frames")
