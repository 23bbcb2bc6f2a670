"""Source lines and instructions of real programs: as objdump and addr2line have them, and with the samples of `perf annotate`.

perf and offbeat count the same samples of `perf record`, which offbeat reads as the text of perf script. What differs: perf
names only the innermost function that is not inlined, so its samples by line are summed up here, with addr2line; rows of bytes
that no instruction is known for can be divided otherwise, so sums are compared by the addresses that have samples.

    code.py OFFBEAT

SPDX-License-Identifier: MIT"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main, skip  # noqa: E402
from terminal import open_terminal, read_terminal  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
SECONDS_MAX = 60
MAKE_PPROF = pathlib.Path(__file__).resolve().parent / "data/make_pprof.py"

C_PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
static inline unsigned mix(unsigned h, unsigned c)
{
    h ^= c;
    h += h / (c | 1u); /* slow, so that samples are here */
    return h * 16777619u;
}
__attribute__((noinline)) static unsigned hash(const char *text)
{
    unsigned h = 2166136261u;
    for (; *text; text++)
        h = mix(h, (unsigned char)*text);
    return h;
}
int main(int argc, char **argv)
{
    unsigned sum = 0;
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 4000000;
    char text[] = "a text of some length";
    for (unsigned i = 0; i < rounds; i++) {
        text[0] = (char)('a' + i % 26);
        sum += hash(text);
    }
    printf("%u\n", sum);
}
"""

CXX_PROGRAM = r"""
#include <map>
#include <sstream>
#include <string>
int main()
{
    std::map<std::string, unsigned> counts;
    std::ostringstream out;
    for (unsigned i = 0; i < 800000; i++)
        counts[std::to_string(i * 7919u % 10007u)]++;
    for (unsigned i = 0; i < 6000000; i++) /* in libstdc++, so long that it has hundreds of samples */
        out << i << ' ';
    return counts.size() + out.str().size() == 0;
}
"""

RUST_PROGRAM = r"""
use std::collections::HashMap;
#[inline(never)]
fn collatz(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}
fn main() {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    for i in 1..1500000u64 {
        *counts.entry(collatz(i)).or_insert(0) += 1;
    }
    println!("{}", counts.len());
}
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=SECONDS_MAX,
                          errors="replace", **options)
    check_equal(done.returncode, 0, f"{command}: {done.stderr[-400:]}; status")
    return done.stdout


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed")


def compiler_of_rust():
    """rustc without the wrapper that asks for a home folder."""
    found = shutil.which("rustc")
    if not found:
        skip("rustc is not installed")
    return found


# --- Instructions and lines ------------------------------------------------------------------------------------------


def functions_of(report, profile, *options):
    return json.loads(run(OFFBEAT, report, "--json", ".", profile, *options))["functions"]


def lines_by_addr2line(program, addresses):
    """{address: (function, file, line) of the innermost inlined function}"""
    text = run("addr2line", "-e", program, "-f", "-a", "-i", "-C", *[hex(address) for address in addresses])
    found = {}
    for part in re.split(r"^(?=0x)", text, flags=re.MULTILINE):
        words = part.splitlines()
        if len(words) >= 3:
            file, _, line = re.sub(r" \(discriminator \d+\)", "", words[2]).rpartition(":")
            found[int(words[0], 16)] = (words[1], os.path.normpath(file), int(line) if line.isdigit() else 0)
    return found


def addresses_by_objdump(program, first, last):
    text = run("objdump", "-d", f"--start-address={first:#x}", f"--stop-address={last + 1:#x}", program)
    return [int(address, 16) for address in re.findall(r"^\s+([0-9a-f]+):\t.*\t", text, re.MULTILINE)]


def record(folder, program, *arguments):
    profile = folder / "x.pb.gz"
    run(OFFBEAT, "record", "-q", "-F", "999", "--mode", "cpu", "-o", profile, "--", program, *arguments)
    return profile


@case
def instructions_and_lines_agree_with_objdump_and_addr2line():
    needs("gcc", "objdump", "addr2line")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "x.c").write_text(C_PROGRAM, encoding="utf-8")
        program = folder / "x"
        run("gcc", "-g", "-O2", folder / "x.c", "-o", program)
        profile = record(folder, program)
        shown = [one for one in functions_of("disasm", profile) if one["package"] == str(program) and one["name"] in ("hash", "main")]
        check(any(one["name"] == "hash" for one in shown), "hash is not shown")
        for function in shown:
            rows = function["instructions"]
            addresses = [int(row["address"], 16) for row in rows]
            check_equal(addresses, addresses_by_objdump(program, addresses[0], addresses[-1]), f"addresses of {function['name']}")
            expected = lines_by_addr2line(program, addresses)
            for row in rows:
                place = (row["function"], os.path.normpath(row["file"]), row["line"])
                check_equal(place, expected[int(row["address"], 16)], f"place of {row['address']}")
            check_equal(sum(row["self"] for row in rows), function["self"], "the sum of all instructions")
        text = run(OFFBEAT, "disasm", "^hash$", profile)
        check("mix" in text and "return h * 16777619u;" in text, "no source line of an inlined function")
        done = subprocess.run([OFFBEAT, "disasm", "^mix$", profile], capture_output=True, text=True, check=False)
        check_equal((done.returncode, "offbeat disasm 'hash'" in done.stderr), (1, True), "an inlined function: " + done.stderr)


@case
def a_source_elsewhere_is_shown_only_if_the_recorded_program_names_it():
    needs("gcc")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "x.c").write_text(C_PROGRAM, encoding="utf-8")
        run("gcc", "-g", "-O2", "-Wl,--build-id", folder / "x.c", "-o", folder / "x")
        profile = record(folder, folder / "x")
        text = "return h * 16777619u;"
        check(text in run(OFFBEAT, "list", ".", profile), "debug information of the program does not prove the source")
        run("gcc", "-g", "-O1", "-Wl,--build-id", folder / "x.c", "-o", folder / "x")
        check(text not in run(OFFBEAT, "list", ".", profile), "a program of another build proves the source")
        check(text in run(OFFBEAT, "list", ".", profile, cwd=folder), "the source in the current folder is not shown")


@case
def lists_and_instructions_have_the_same_sums():
    needs("gcc")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "x.c").write_text(C_PROGRAM, encoding="utf-8")
        run("gcc", "-g", "-O2", folder / "x.c", "-o", folder / "x")
        profile = record(folder, folder / "x")
        check_equal(lines_of_list(profile, str(folder / "x.c")), lines_of_disasm(profile, str(folder / "x.c")), "self by line")
        top = json.loads(run(OFFBEAT, "top", "--json", profile))
        selves = {one["name"]: (one["self"], one["total"]) for one in top["functions"] if one["file"] == str(folder / "x.c")}
        listed = {one["name"]: (one["self"], one["total"]) for one in functions_of("list", profile) if one["file"] == str(folder / "x.c")}
        check_equal(listed, selves, "functions as in top")
        check(sum(one[0] for one in selves.values()) > 0, "no samples in x.c")


def lines_of_list(profile, file, *options):
    found = collections.Counter()
    for function in functions_of("list", profile, *options):
        for line in function["lines"]:
            if line["self"] and function["file"] == file:
                found[function["name"], line["line"]] += line["self"]
    return found


def lines_of_disasm(profile, file, *options):
    found = collections.Counter()
    for function in functions_of("disasm", profile, *options):
        for row in function["instructions"]:
            if row["self"] and row["file"] == file:
                found[row["function"], row["line"]] += row["self"]
    return found


# --- A terminal ------------------------------------------------------------------------------------------------------


def on_terminal(folder, words, **variables):
    """What OFFBEAT prints on a terminal."""
    parent, child = open_terminal()
    environment = {**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, "TERM": "xterm", **variables}
    with os.fdopen(child, "wb") as terminal:
        running = subprocess.Popen([OFFBEAT, *words], cwd=folder, stdout=terminal, stderr=subprocess.DEVNULL, env=environment)
    text = read_terminal(parent)
    check_equal(running.wait(SECONDS_MAX), 0, f"{words}; status")
    return text


@case
def hot_lines_are_bold_on_a_terminal_and_sources_do_not_command_it():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = subprocess.run([sys.executable, MAKE_PPROF], check=True, capture_output=True).stdout
        (folder / "heap.pb").write_bytes(made)
        (folder / "a.c").write_bytes(b"".join(b"\tline %d \x1b[31m;\n" % i for i in range(1, 41)))
        words = ["list", "parse", "heap.pb", "--source-path", "."]
        text = on_terminal(folder, words)
        check_equal(re.findall(r"\x1b\[1m(.*)\x1b\[0m", text), ["       1kB        1kB     23:\tline 23 \\x1b[31m;"], "bold lines")
        check("     22:\tline 22 \\x1b[31m;\n" in text, f"another line: {text}")
        check("\x1b" not in on_terminal(folder, words, NO_COLOR="1"), "colours with NO_COLOR")
        check(b"\x1b" not in subprocess.run([OFFBEAT, *words], cwd=folder, capture_output=True, check=True).stdout, "a pipe is commanded")


# --- perf annotate ---------------------------------------------------------------------------------------------------

ROW = re.compile(r"^\s*(\d+)\s+:\s+([0-9a-f]+):\s")
HOT_SYMBOLS = 4


def record_by_perf(folder, *command):
    """The recording, and a profile of it with the names of offbeat."""
    data, text, profile = folder / "perf.data", folder / "perf.txt", folder / "perf.pb.gz"
    done = subprocess.run(["perf", "record", "--buildid-mmap", "-q", "-F", "4000", "-e", "cpu-clock:u", "-o", data, "--",
                           *[str(word) for word in command]], capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    if done.returncode != 0:
        skip(f"perf cannot record here: {done.stderr.strip()[-200:]}")
    text.write_text(run("perf", "script", "-i", data, "-F", "comm,pid,tid,time,event,ip,dso", "--show-mmap-events"), encoding="utf-8")
    run(OFFBEAT, "symbolize", text, "-o", profile)
    return data, profile


def hot_symbols(data, package):
    text = run("perf", "report", "-i", data, "--stdio", "--no-inline", "-q", "-F", "sample,sym", "-d", package)
    found = re.findall(r"^\s+(\d+)\s+\[\.\] (.*?)\s*$", text, re.MULTILINE)
    return [symbol for count, symbol in found if not symbol.startswith("0x")][:HOT_SYMBOLS]


def samples_by_perf(data, package, symbol):
    """{address: samples}, of the addresses that have some."""
    text = run("perf", "annotate", "-i", data, "--stdio", "-n", "-q", "-d", package, "-s", symbol)
    found = {int(match[2], 16): int(match[1]) for match in map(ROW.match, text.splitlines()) if match}
    return {address: count for address, count in found.items() if count}


def samples_by_offbeat(functions, address):
    for function in functions:
        rows = {int(row["address"], 16): row["self"] for row in function["instructions"]}
        if address in rows:
            return {place: count for place, count in rows.items() if count}
    return None


def compare_with_perf(folder, package, *command):
    """By address, for the hottest symbols of PACKAGE. Returns the profile, and perf's samples of all of these addresses."""
    needs("perf", "objdump")
    data, profile = record_by_perf(folder, *command)
    name = pathlib.Path(package).name
    shown = [one for one in functions_of("disasm", profile, "--sample-index", "samples")
             if pathlib.Path(one["package"]).name.startswith(name)]
    package = pathlib.Path(shown[0]["package"]).name if shown else name
    symbols = hot_symbols(data, package)
    check(len(symbols) >= 1, f"perf has no samples in {package}")
    every = {}
    for symbol in symbols:
        theirs = samples_by_perf(data, package, symbol)
        if not theirs:
            continue
        check_equal(samples_by_offbeat(shown, min(theirs)), theirs, f"samples of {symbol} by address")
        every.update(theirs)
    check(sum(every.values()) >= 20, f"only {sum(every.values())} samples in {symbols}")
    print(f"# {sum(every.values())} samples at {len(every)} addresses of {', '.join(symbols)}")
    return profile, every


@case
def instructions_of_cc1_have_the_samples_of_perf_annotate():
    needs("gcc", "perf")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "big.c"
        source.write_text("".join(f"int g{i}(int a, int *b) {{ int s = 0; for (int i = 0; i < a; i++) {{ s += b[i] * {i}; "
                                  "if (s & 7) s ^= b[i + 1]; } return s; }\n" for i in range(300)), encoding="utf-8")
        cc1 = run("gcc", "-print-prog-name=cc1").strip()
        compare_with_perf(folder, cc1, cc1, "-quiet", "-O2", source, "-o", "/dev/null")


@case
def instructions_of_libstdcxx_have_the_samples_of_perf_annotate():
    needs("g++", "perf")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "x.cc").write_text(CXX_PROGRAM, encoding="utf-8")
        run("g++", "-g", "-O2", folder / "x.cc", "-o", folder / "x")
        compare_with_perf(folder, "libstdc++.so", folder / "x")


@case
def agrees_with_perf_annotate_on_a_rust_program():
    needs("perf", "addr2line")
    rustc = compiler_of_rust()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, program = folder / "x.rs", folder / "x"
        source.write_text(RUST_PROGRAM, encoding="utf-8")
        run(rustc, "-g", "-O", "-C", "link-arg=-Wl,--build-id", source, "-o", program)
        profile, samples = compare_with_perf(folder, program, program)
        places = lines_by_addr2line(program, samples)
        theirs = collections.Counter()
        for address, count in samples.items():
            theirs[places[address][1:]] += count
        ours = collections.Counter()
        for function in functions_of("list", profile, "--sample-index", "samples", "--focus", "collatz|main"):
            for line in function["lines"]:
                if line["self"]:
                    ours[os.path.normpath(function["file"]), line["line"]] += line["self"]
        mine = {place: count for place, count in theirs.items() if place[0] == str(source)}
        check(mine, "no samples in x.rs")
        check_equal({place: ours[place] for place in mine}, mine, "samples by line")


main()
