"""What the parts of the benchmark share. SPDX-License-Identifier: MIT"""
import glob
import os
import pathlib
import shutil
import subprocess


def installed_library(pattern):
    """The path of an installed shared library, or None."""
    found = sorted(glob.glob(f"/usr/lib/*/{pattern}") + glob.glob(f"/usr/lib/{pattern}"))
    return found[0] if found else None


def perf_works(folder):
    """True if perf is there and may sample."""
    if not shutil.which("perf"):
        return False
    return subprocess.run(["perf", "record", "-e", "cpu-clock:u", "-o", f"{folder}/try.data", "true"],
                          capture_output=True, check=False).returncode == 0


def table(rows, texts=1):
    """Prints ROWS, lists of text; the first TEXTS columns to the left, the rest to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) if i < texts else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def large_source(path, functions):
    """Writes a C file with FUNCTIONS functions of some branches and loops; the same bytes each time."""
    lines = ["struct node { struct node *next; long keys[8]; double weight; };"]
    for i in range(functions):
        callee = f"f{i - 1}(n->next ? n->next : n, a ^ {i})" if i else "a"
        lines.append(
            f"long f{i}(struct node *n, long a) {{ long s = {i}; double w = n->weight;\n"
            f"  for (int i = 0; i < {i % 13 + 3}; i++) {{ s += n->keys[i & 7] * (a + i); w = w * 1.{i % 9 + 1} + (double)s;\n"
            f"    if (s & {1 << i % 11}) {{ n->keys[(i + {i}) & 7] ^= s; a = a * {i % 7 + 2} - i; }}\n"
            f"    else switch (s % 5) {{ case 0: a += 3; break; case 1: s ^= a; break; case 2: w -= 1; break; default: s -= 7; }} }}\n"
            f"  n->weight = w; return a > {i * 3} ? s + {callee} : s - (long)w; }}")
    pathlib.Path(path).write_text("\n".join(lines) + "\n", encoding="ascii")


def compiler_proper():
    """The path of cc1, the large program that is measured."""
    return subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()


def environment(**more):
    return {**os.environ, **{name: str(value) for name, value in more.items()}}
