"""Real programs under callgrind, Xdebug and cProfile: self and inclusive cost of every function over 0.1 % is what the files' own
tools say, callgrind_annotate and pstats. A function that calls itself is the exception: callgrind_annotate adds these calls, which
are read from the file here and taken away.

    stated_files.py OFFBEAT

SPDX-License-Identifier: MIT"""
import collections
import json
import pathlib
import pstats
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
LIMIT = 0.001  # of the total

C_SOURCE = """
#include <stdlib.h>
struct node { struct node *left, *right; int key; };
static struct node *add(struct node *at, int key)
{
    if (!at) { at = calloc(1, sizeof(*at)); at->key = key; }
    else if (key < at->key) at->left = add(at->left, key);
    else at->right = add(at->right, key);
    return at;
}
int main(void) { struct node *root = 0; for (int i = 0; i < 300; i++) root = add(root, rand()); return !root; }
"""

PHP_SOURCE = """<?php
function value(array &$tokens) { return array_shift($tokens) === '(' ? group($tokens) : 1; }
function group(array &$tokens) { $sum = 0; while ($tokens && $tokens[0] !== ')') $sum += value($tokens); array_shift($tokens); return $sum; }
function fib(int $n): int { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
for ($i = 0; $i < 20; $i++) { $tokens = str_split('(x(xx(x)))(x(x(x)))'); while ($tokens) value($tokens); }
$list = range(1, 60);
usort($list, fn($a, $b) => fib(4) + $b - $a);
echo fib(11), preg_replace_callback('/a/', fn($m) => strtoupper($m[0]), str_repeat('ab', 40));
"""

PYTHON_SOURCES = {
    "json": "import json\njson.dumps({str(i): [i, {'a': [1.5] * 20}] for i in range(300)}, indent=1)",
    "re": "import re\nfor i in range(30): re.compile(f'(a|b){i}(c*[d-f]+)?').match('ab' * 50)",
    "ast": "import ast, inspect, argparse\nast.unparse(ast.parse(inspect.getsource(argparse)))",
    "circle": "def a(n): return n and b(n - 1) + c(n - 1)\ndef b(n): return n and a(n - 1)\ndef c(n): return n and b(n - 1)\na(16)",
    "deepcopy": "import copy\ncopy.deepcopy([{'a': [i, (i, [i])]} for i in range(500)])",
    "pathlib": "import pathlib\n[p.stat() for p in list(pathlib.Path('/usr/lib').glob('*'))[:200]]",
}

PROGRAMS = {
    "perl closures": ["perl", "-e", 'sub f{my $n=shift; $n<2?$n:f($n-1)+f($n-2)} f(11); my %h; $h{$_%17}.=$_ for 1..900; sort map {length} values %h'],
    "perl regexp": ["perl", "-e", '$_="abcab" x 90; s/(a)(b)/$2$1/g; my @w=split /c/; eval "1+$_" for 1..30; print join ",", @w'],
    "perl modules": ["perl", "-MData::Dumper", "-e", "print Dumper({map {$_=>[1..$_]} 1..12})"],
    "python3": ["/usr/bin/python3", "-S", "-c", "f=lambda n: n if n<2 else f(n-1)+f(n-2)\nf(11)"],
    "python3 json": ["/usr/bin/python3", "-S", "-c", "import json; json.loads(json.dumps(list(range(300))))"],
    "cc1": None,
    "as": None,
    "php": ["php", "-n", "x.php"],
    "sqlite3 query": ["sqlite3", ":memory:", "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<200) "
                      "insert into t select x,x*x from c; select sum(b) from t where a in (select a from t where b%3=0) group by a%7;"],
    "sqlite3 json": ["sqlite3", ":memory:", "select json_group_array(value+1) from json_each('[1,2,3,[4,5],{\"a\":6}]');"],
    "a recursive program": ["./tree"],
    "awk": ["awk", "BEGIN{for(i=0;i<500;i++) x[i%13]=x[i%13] i; for(k in x) print length(x[k])}"],
    "sort": ["sort", "-n", "x.php"],
}


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"NOT COMPARED: {program} is not installed")


def run(*command, folder=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, cwd=folder, timeout=300)
    text = done.stdout.decode(errors="replace")
    check_equal(done.returncode, 0, f"{command}: {text[-500:]}{done.stderr.decode(errors='replace')[-500:]}")
    return text


def top(path):
    report = json.loads(run(OFFBEAT, "top", "--json", "-n", "0", "--granularity", "filefunctions", path))
    rows = collections.defaultdict(list)
    for row in report["functions"]:
        name = row["name"].removesuffix(" " + row["file"]) if row["file"] else row["name"]
        rows[re.sub(r" \[[^]]*\]$", "", name).removeprefix("php::")].append((row["self"], row["total"]))
    return report["total"], rows


def calls_of_itself(path):
    """{function: cost} by the call lines of a file of callgrind."""
    names, costs, caller, callee, is_call = {}, collections.Counter(), None, None, False
    for line in path.read_text(errors="replace").splitlines():
        found = re.match(r"(c?fn)=(?:\((\d+)\))?(?: ?(.+))?$", line)
        if found:
            name = names.setdefault(found[2], found[3]) if found[2] else found[3]
            caller, callee = (name, callee) if found[1] == "fn" else (caller, name)
        elif line.startswith("calls="):
            is_call = True
        elif is_call:
            if caller == callee:
                costs[caller] += int(line.split()[1])
            is_call = False
    return costs


def annotated(path, *options):
    """{function: [first cost]} as callgrind_annotate says, one for each file that has code of the function."""
    rows = collections.defaultdict(list)
    for line in run("callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", *options, path).splitlines():
        found = re.match(r" *(-?[\d,]+|\.) +(?:[\d,.]+ +)?(\S.*?):((?!:).*?)(?: \[[^]]*\])?$", line)
        if found and ":" not in found[1]:
            rows[found[3].removeprefix(":").removeprefix("php::")].append(int(found[1].replace(",", "").replace(".", "0")))
    return rows


def compare(path, factor=1):
    total, found = top(path)
    own, inclusive, again = annotated(path), annotated(path, "--inclusive=yes"), calls_of_itself(path)
    check(total > 0 and len(own) > 3, f"{path}: nothing to compare")
    compared = 0
    for name, rows in inclusive.items():
        wanted = [value * factor for value in own.get(name, [0])], [(rows[0] - again[name]) * factor]
        is_one = len(rows) == 1 and len(wanted[0]) == 1 and len(found[name]) == 1  # others are several functions of one name
        if not is_one or max(wanted[0][0], wanted[1][0], found[name][0][1]) < LIMIT * total:
            continue
        check_equal(found[name][0], (wanted[0][0], wanted[1][0]), f"{path.name}: {name}, self and inclusive")
        compared += 1
    check(compared >= 2, f"{path.name}: only {compared} functions are compared")
    print(f"# {path.name}: {compared} functions")


def prepare(folder):
    (folder / "x.php").write_text(PHP_SOURCE)
    (folder / "x.c").write_text(C_SOURCE)
    if shutil.which("gcc"):
        run("gcc", "-g", "-O0", "x.c", "-o", "tree", folder=folder)
        run("gcc", "-S", "x.c", folder=folder)
        run("gcc", "-E", "x.c", "-o", "x.i", folder=folder)


def command_of(name):
    if name == "cc1":
        need("gcc")
        return [run("gcc", "-print-prog-name=cc1").strip(), "-quiet", "-fpreprocessed", "-O0", "x.i", "-o", "y.s"]
    if name == "as":
        need("as", "gcc")
        return ["as", "x.s", "-o", "x.o"]
    need("gcc" if PROGRAMS[name][0] == "./tree" else PROGRAMS[name][0])
    return PROGRAMS[name]


for one in PROGRAMS:
    def under_callgrind(name=one):
        need("valgrind", "callgrind_annotate")
        command = command_of(name)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            prepare(folder)
            path = folder / f"{name}.callgrind"
            run("valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={path}", *command, folder=folder)
            compare(path)
    under_callgrind.__name__ = f"callgrind_of_{one}"
    case(under_callgrind)


@case
def xdebug_of_php():
    need("php", "callgrind_annotate")
    if "xdebug" not in run("php", "-m").lower():
        skip("NOT COMPARED: php-xdebug is not installed")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        prepare(folder)
        sources = {"circle": PHP_SOURCE, "arrays": "<?php array_map(fn($x) => array_sum(range(0, $x)), range(1, 200));",
                   "generators": "<?php function g($n) { for ($i = 0; $i < $n; $i++) yield str_pad($i, 5); } foreach (g(99) as $x) md5($x);"}
        for name, source in sources.items():
            (folder / "run.php").write_text(source)
            path = folder / f"{name}.cg"
            run("php", "-d", "xdebug.mode=profile", "-d", "xdebug.start_with_request=yes", "-d", f"xdebug.output_dir={folder}",
                "-d", f"xdebug.profiler_output_name={path.name}", "-d", "xdebug.use_compression=0", "run.php", folder=folder)
            compare(path, 10)


@case
def cprofile_of_python():
    with tempfile.TemporaryDirectory() as folder:
        for name, source in PYTHON_SOURCES.items():
            (pathlib.Path(folder) / "run.py").write_text(source)
            path = pathlib.Path(folder) / f"{name}.pstats"
            run(sys.executable, "-m", "cProfile", "-o", path, "run.py", folder=folder)
            total, found = top(path)
            wanted = collections.defaultdict(list)
            for (_, _, function), (_, _, own, cumulative, _) in pstats.Stats(str(path)).stats.items():
                wanted[re.sub(r"^\{(.*)\}$", r"<\1>", function)].append((round(own * 1e9), round(cumulative * 1e9)))
            large = {key: rows[0] for key, rows in wanted.items() if len(rows) == 1 and rows[0][1] >= LIMIT * total}
            check(len(large) > 3, f"{name}: only {large} are compared")
            for function, values in large.items():
                check_equal(len(found[function]), 1, f"{name}: rows of {function}")
                difference = max(abs(a - b) for a, b in zip(found[function][0], values))
                check(difference <= 1, f"{name}: {function}: {found[function][0]}, expected {values}")


main()
