"""Frame tables of a whole Debian for 64-bit Arm beside readelf's decoding: `trees.py PROGRAM FOLDER RELEASE…`. PROGRAM is other_tables.
For each release (bookworm, trixie), about 300 packages are unpacked in FOLDER, every ELF file of them is compared (tables.py), and
the packages are deleted. No file of them runs. SPDX-License-Identifier: MIT"""
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tap import case, check, main  # noqa: E402

# Compilers, interpreters, servers, media, and what they depend on: code of GCC, clang, Go, Rust and OCaml, and assembly.
PACKAGES = """bash coreutils util-linux procps grep sed gawk mawk perl python3 python3-numpy ruby php-cli lua5.4 luajit tcl guile-3.0 nodejs
gcc g++ clang gdb binutils make git vim-nox nginx-light postgresql redis-server memcached sqlite3 openssl openssh-server curl wget rsync
imagemagick ripgrep fd-find hyperfine restic valgrind strace linux-perf bpftrace""".split()
PACKAGES_MIN = 300
NOTES_MAX = 200  # tables.py prints no more

# Where SVE registers are saved, GCC gives an offset to a CFA that is an expression. It means that the CFA is SP plus the offset again,
# as it is; readelf keeps the expression.
STALE = re.compile(r"/libmvec\.so\.1: 0x[0-9a-f]+: the CFA is an expression \(.* ours: kind 1, register 1,")


def unpack(tree, release):
    log = tree.with_suffix(".log")
    with open(log, "w", encoding="utf-8") as out:
        done = subprocess.run(["mmdebstrap", "--variant=extract", "--arch=arm64", "--skip=check/qemu", "--include=" + ",".join(PACKAGES),
                               release, tree], stdout=out, stderr=out, check=False)
    check(done.returncode == 0, f"mmdebstrap could not unpack the packages: {log.read_text(encoding='utf-8')[-2000:]}")
    # Without a package manager in the tree, what has a folder of its documentation is a package.
    count = sum(1 for _ in (tree / "usr/share/doc").iterdir())
    check(count >= PACKAGES_MIN, f"{count} packages are no {PACKAGES_MIN}")
    return count


def check_tables(lines):
    print("".join(f"# {line}\n" for line in lines), flush=True)
    check(lines and re.fullmatch(r"1\.\.[1-9][0-9]*", lines[-1]), "tables.py did not compare all files")
    failed = [line for line in lines if line.startswith("not ok")]
    different = [line for line in lines if re.match("# .*: 0x", line)]
    unexpected = [line for line in different if not STALE.search(line)]
    is_stale = len(different) < NOTES_MAX and not unexpected and all("every row equals" in line for line in failed)
    check(not failed or (different and is_stale), "\n".join(failed + unexpected))


def add_case(program, folder, release):
    def every_table_equals_readelfs():
        tree = folder / f"offbeat-{release}-arm64"
        try:
            print(f"# {unpack(tree, release)} packages of {release}", flush=True)
            tables = pathlib.Path(__file__).with_name("tables.py")
            done = subprocess.run([sys.executable, tables, program, tree, "--all", "--other", "aarch64"], stdout=subprocess.PIPE, text=True, check=False)
            check_tables(done.stdout.splitlines())
        finally:
            shutil.rmtree(tree, ignore_errors=True)

    every_table_equals_readelfs.__name__ = f"{release}: every table equals readelf's"
    case(every_table_equals_readelfs)


for name in sys.argv[3:]:
    add_case(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), name)
main()
