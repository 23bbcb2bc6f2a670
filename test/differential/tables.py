"""Frame tables of ELF files of this machine beside readelf's decoding of the same sections (tables.c).

tables.py PROGRAM [--all] [--other PROCESSOR] [--seed N] [--jobs N] [--slowest N] [FILE OR FOLDER...]

--other: PROGRAM reads files of that processor; without files, those that its cross compiler installs. Without --all: a
dozen files of up to 8 MB, drawn at random. Left out by rule, and counted: files for other architectures, relocatable
objects and kernel modules, cores, separate debug information, files without code. A file with several names is read once.

SPDX-License-Identifier: MIT
"""
import argparse
import collections
import os
import random
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

FOLDERS = ["/bin", "/sbin", "/lib", "/lib64", "/usr", "/opt", "/home", "/root", "/srv", "/var/lib"]
DOZEN, DOZEN_BYTES = 12, 8 << 20
MACHINES = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64


def elf_files(roots):
    """Every regular file that begins with the magic of ELF, each inode once."""
    seen = set()
    for root in roots:
        if os.path.isfile(root):
            yield os.path.realpath(root)
            continue
        if os.path.islink(root):
            continue
        device = os.stat(root).st_dev if os.path.isdir(root) else None
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if os.lstat(os.path.join(folder, name)).st_dev == device]
            for name in names:
                path = os.path.join(folder, name)
                try:
                    status = os.lstat(path)
                    if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) in seen:
                        continue
                    seen.add((status.st_dev, status.st_ino))
                    with open(path, "rb") as file:
                        if file.read(4) == b"\x7fELF":
                            yield path
                except OSError:
                    continue


def is_program(path, machine):
    """A program or library of a machine, by its ELF header; a file of debug information is not one."""
    with open(path, "rb") as file:
        header = file.read(20)
    return len(header) == 20 and header[4] == 2 and header[16] in (2, 3) and header[18] == machine and not path.endswith(".debug")


def check_batch(program, seed, paths):
    """What the program says of each path: (path, kind, detail), and the rows that differ."""
    run = subprocess.run([program, "--seed", str(seed), *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         errors="replace", check=False)
    results, notes = [], []
    for line in run.stdout.splitlines():
        if line.startswith("#"):
            notes.append(line)
        else:
            results.append(tuple(line.split("\t", 2)))
    if run.returncode != 0:
        culprit = paths[len(results)] if len(results) < len(paths) else "the end"
        notes.append(f"# {program} ended with {run.returncode} at {culprit}: {run.stderr.strip()[-200:]}")
        if len(results) < len(paths):
            results.append((culprit, "failed", str(run.returncode)))
            rest, more = check_batch(program, seed, paths[len(results):]) if len(results) < len(paths) else ([], [])
            results, notes = results + rest, notes + more
    return results, notes


def batches_of(paths):
    """Large files alone, small ones together."""
    batch, size = [], 0
    for path in paths:
        batch.append(path)
        size += os.path.getsize(path)
        if size > 20 << 20 or len(batch) == 200:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def numbers_of(detail):
    return {name: int(value) for name, value in (word.split("=") for word in detail.split())}


def report(results, notes, slowest):
    """The counts, as lines of TAP's comments. Returns what the checks need."""
    kinds = collections.Counter(kind for _, kind, _ in results)
    excluded = collections.Counter(detail for _, kind, detail in results if kind == "excluded")
    totals = collections.Counter()
    tables = [(path, numbers_of(detail)) for path, kind, detail in results if kind in ("table", "without", "nothing")]
    for _, numbers in tables:
        totals.update(numbers)
    for note in notes[:200]:
        print(note)
    print(f"# files: {len(results)}; " + ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items())))
    for reason, count in excluded.most_common():
        print(f"# excluded, {reason}: {count}")
    for name in ("functions", "rows", "probes", "equal", "different", "without_rule", "overlapped", "expressions", "compressed", "restored", "broken",
                 "rejected", "wide"):
        print(f"# {name}: {totals[name]}")
    for name in ("fdes", "table_rows", "rules", "wide", "expression_bytes", "code", "table_bytes"):
        if tables:
            path, numbers = max(tables, key=lambda item: item[1][name])
            print(f"# the most {name}: {numbers[name]} ({path})")
    for path, numbers in sorted(tables, key=lambda item: -item[1]["build_us"])[:slowest]:
        print(f"# built in {numbers['build_us'] / 1000:.0f} ms: {path} ({numbers['fdes']} functions, "
              f"{numbers['table_rows']} rows, {numbers['table_bytes'] >> 10} KB)")
    return kinds, totals


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--other")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--slowest", type=int, default=0)
    options = parser.parse_args()
    if not shutil.which("readelf"):
        print("1..0 # SKIP readelf (binutils) is not installed")
        return
    processor = options.other or os.uname().machine
    cross = f"/usr/{processor}-linux-gnu"
    if options.other and not options.paths and not os.path.isdir(cross):
        print(f"1..0 # SKIP no cross compiler for {processor} (Debian: gcc-{processor.replace('_', '-')}-linux-gnu) is installed")
        return
    paths = sorted(elf_files(options.paths or ([cross] if options.other else FOLDERS)))
    if not options.all:
        random.seed(options.seed)
        programs = [path for path in paths if is_program(path, MACHINES[processor]) and os.path.getsize(path) <= DOZEN_BYTES]
        paths = random.sample(programs, min(DOZEN, len(programs)))
    print(f"# seed {options.seed}, {len(paths)} files", flush=True)
    results, notes = [], []
    with ThreadPoolExecutor(options.jobs) as pool:
        for done, said in pool.map(lambda batch: check_batch(options.program, options.seed, batch), list(batches_of(paths))):
            results += done
            notes += said
            if options.all:
                print(f"# {len(results)} of {len(paths)}", file=sys.stderr, flush=True)
    kinds, totals = report(results, notes, options.slowest)
    if not options.all:
        for path, kind, detail in results:
            print(f"# {kind}: {path}" + (f" ({detail})" if kind == "excluded" else ""))
    checks = [
        ("every file was read", len(results) == len(paths) and kinds["failed"] + kinds["unread"] == 0),
        ("every file with functions has a table", kinds["without"] == 0),
        ("every row equals readelf's", totals["different"] == 0 and (totals["equal"] > 0 or kinds["table"] == 0)),
        ("every row has a rule", totals["without_rule"] == 0),
    ]
    for number, (name, holds) in enumerate(checks, 1):
        print(f"{'ok' if holds else 'not ok'} {number} - {name}")
    print(f"1..{len(checks)}")
    sys.exit(not all(holds for _, holds in checks))


main()
