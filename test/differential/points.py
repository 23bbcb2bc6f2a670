"""Stacks at random points of real programs, ours beside libunwind's:

    points.py POINTS-PROGRAM [--long [PROGRAM...]]

The short form looks at three programs for some seconds, the long one at every program below that is installed.
SPDX-License-Identifier: MIT
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from blocked import mariadb, redis  # noqa: E402
from common import compiler_proper, large_source  # noqa: E402

PYTHON = """
import bz2, ctypes, decimal, hashlib, json, lzma, re, sqlite3, time, zlib
end = time.time() + 60
while time.time() < end:
    json.loads(json.dumps([{"key": list(range(300))}] * 20))
    hashlib.sha256(b"x" * 100000).digest(); zlib.compress(b"abc" * 10000); lzma.compress(b"abc" * 1000)
    base = sqlite3.connect(":memory:"); base.execute("create table a(b)")
    base.executemany("insert into a values(?)", [(i,) for i in range(500)])
    sorted((str(i) for i in range(3000)), key=lambda text: text[::-1]); re.sub("a+", "b", "aaab" * 1000)
"""
PERL = r"my %h; for my $i (1..30000000) { $h{$i%1000} .= qq(x$i); $h{$i%1000} =~ s/x1+/y/g if $i%50==0; $h{$i%1000} = q() if length($h{$i%1000}) > 200 }"
SQL = """create table a(x, y); with recursive c(i) as (select 1 union all select i+1 from c where i < 2000000)
insert into a select i, random() from c; create index b on a(y); select count(*) from a p join a q on p.y = q.y;
select sum(length(hex(y))) from a order by y; select x, sum(y) over (order by y) from a limit 10;"""
NODE = """const m = new Map(); const end = Date.now() + 60000; while (Date.now() < end) {
for (let i = 0; i < 20000; i++) m.set('k' + i % 500, (m.get('k' + i % 500) || 0) + i); JSON.parse(JSON.stringify([...m]));
[...Array(5000).keys()].map(x => x * 7 % 1000).sort(); }"""


def rust_source(path):
    functions = [f"pub fn f{i}<T: Clone + std::fmt::Debug>(v: &[T], m: &mut BTreeMap<String, Vec<T>>) -> usize {{"
                 f" m.insert(format!(\"{{:?}}{i}\", v), v.to_vec()); m.len() + {i} }}\n"
                 f"pub fn g{i}() -> usize {{ f{i}(&[{i}, 2], &mut BTreeMap::new()) + f{i}(&[\"a\"], &mut BTreeMap::new()) }}"
                 for i in range(400)]
    path.write_text("use std::collections::*;\n" + "\n".join(functions) + "\nfn main() { println!(\"{}\", g1()); }\n")


def rust_compiler():
    if not shutil.which("rustc"):
        return None
    found = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=False).stdout.strip()
    return f"{found}/bin/rustc" if found else None


def commands(folder):
    """(name, command, client that keeps it busy); no command if it is not installed."""
    large_source(folder / "large.c", 3000)
    rust_source(folder / "large.rs")
    (folder / "query.sql").write_text(SQL)
    (folder / "random").write_bytes(os.urandom(1 << 20) * 64)
    yield "cc1", lambda: ([compiler_proper(), "-quiet", "-O2", folder / "large.c", "-o", "/dev/null"], None)
    yield "python3", lambda: ([shutil.which("python3", path="/usr/bin"), "-c", PYTHON], None)
    yield "redis", lambda: server(redis(folder))
    yield "mariadb", lambda: server(mariadb(folder))
    yield "xz", lambda: ([shutil.which("xz"), "-k", "-c", folder / "random"], None)
    yield "perl", lambda: ([shutil.which("perl"), "-e", PERL], None)
    yield "sqlite3", lambda: ([shutil.which("sqlite3"), ":memory:", f".read {folder / 'query.sql'}"], None)
    yield "node", lambda: ([shutil.which("node"), "-e", NODE], None)
    yield "rustc", lambda: ([rust_compiler(), "-O", folder / "large.rs", "-o", folder / "large"], None)


def server(found):
    return (found.command, found.client) if found else ([None], None)


@contextlib.contextmanager
def kept_busy(client, folder):
    """CLIENT runs again and again meanwhile; it fails as long as its server has not come up."""
    is_over = threading.Event()
    def work():
        while not is_over.is_set():
            with subprocess.Popen(client, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
                while running.poll() is None and not is_over.is_set():
                    is_over.wait(0.1)
                running.kill()  # without its server, it may try forever
    thread = threading.Thread(target=work if client else lambda: None)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def measure(points, count, command):
    """The figures as a dictionary; None if ptrace is denied."""
    done = subprocess.run([points, "--points", str(count), "--every", "1500", "--verbose", "--", *command], capture_output=True,
                          text=True, check=False)
    if done.returncode == 77:
        return None
    *stacks, last_line = done.stdout.splitlines()
    print(*stacks, sep="\n", end="\n" if stacks else "")
    return {name: float(value) for name, value in re.findall(r"([a-z-]+) ([0-9.]+)", last_line)}


def is_good(figures, is_long):
    """At some points nobody can unwind. In a short run, libunwind says which: a few of them may be missing, but no other."""
    points, missing = figures["points"], figures["points"] - figures["root"]
    is_whole = missing <= points / 1000 + 1 if is_long else figures["worse"] == 0 and missing <= points / 200
    return figures["different"] == 0 and figures["wrong"] == 0 and is_whole


def main():
    points, is_long, chosen = sys.argv[1], "--long" in sys.argv, [name for name in sys.argv[2:] if name != "--long"]
    wanted = chosen or (None if is_long else ["cc1", "python3", "redis"])
    number = failed = 0
    with tempfile.TemporaryDirectory(prefix="offbeat-points-") as name:
        folder = pathlib.Path(name)
        for program, find in commands(folder):
            if wanted and program not in wanted:
                continue
            number += 1
            command, client = find()
            with kept_busy(client, folder):
                figures = measure(points, 4000 if is_long else 800, command) if command[0] else None
            if not figures:
                print(f"ok {number} - {program} # SKIP {'ptrace is denied' if command[0] else 'is not installed'}")
                continue
            print("#", program, *(f"{key} {value:g}" for key, value in figures.items()))
            good = is_good(figures, is_long)
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - stacks at random points of {program}", flush=True)
    print(f"1..{number}")
    return failed > 0


sys.exit(main())
