"""Profiles that other tools write here and now, and what those tools, or a third one, say of them: totals, functions, threads.

Each case is a format. It lets the format's tools write at least three files, and compares what offbeat reads in each with a peer
that offbeat has no part in. A tool that is not installed is a skip that names it. doc/formats/README.md has the table.

    peer_files.py OFFBEAT DATA [NAME]…

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

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from judges import functions_of_firefox, need, run, speedscope, sums_of_speedscope  # noqa: E402
from speedscope_page import npm_file  # noqa: E402
from tap import case, check, check_equal, main, skip, some_of  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
DATA = pathlib.Path(sys.argv[2]).resolve()
CLI = HERE.parent / "cli"
FILES_MIN = 3


def report(path, value=None):
    """The total, and {function: [self, total]}, of a file as offbeat reads it."""
    chosen = ["--sample-index", value] if value else []
    members = json.loads(run(OFFBEAT, "top", "--json", "-n", "0", *chosen, path, errors=subprocess.DEVNULL))
    rows = collections.defaultdict(lambda: [0, 0])
    for row in members["functions"]:
        rows[row["name"]] = [a + b for a, b in zip(rows[row["name"]], (row["self"], row["total"]))]
    return members["total"], rows


def time_below(path, pattern):
    """The wall time of the stacks that have a function which PATTERN matches."""
    members = json.loads(run(OFFBEAT, "top", "--json", "-n", "0", "--sample-index", "wall", "--focus", pattern, path, errors=subprocess.DEVNULL))
    return sum(row["self"] for row in members["functions"])


def info(path):
    return json.loads(run(OFFBEAT, "info", "--json", path, errors=subprocess.DEVNULL))


def check_format(path, name):
    check_equal(info(path)["format"], name, f"{path.name}: format")


def check_functions(what, ours, theirs, least=3):
    """Equal numbers for all functions that either has."""
    theirs = {name: value for name, value in theirs.items() if value}
    ours = {name: value for name, value in ours.items() if value}
    check(len(theirs) >= least, f"{what}: the peer has only {theirs}")
    for name in sorted(ours.keys() | theirs.keys(), key=str):
        check_equal(ours.get(name, 0), theirs.get(name, 0), f"{what}: {name}")


def compared(function):
    """A case of files, each compared by FUNCTION, which yields a line for each of them."""
    def one():
        with tempfile.TemporaryDirectory(prefix="offbeat-peers-") as folder:
            lines = list(function(pathlib.Path(folder)))
        for line in lines:
            print(f"# {line}")
        check(len(lines) >= FILES_MIN, f"only {len(lines)} files were compared")
    one.__name__ = function.__name__
    if len(sys.argv) < 4 or any(word in function.__name__ for word in sys.argv[3:]):
        case(one)
    return one


def built(folder, source, *options):
    need("gcc")
    run("gcc", "-O1", "-g", source, "-o", folder / "program", *options)
    return folder / "program"


# --- Files that are kept too: made again, and compared by the test of the kept ones ---------------------------------------------

def made_again(folder, name, test, *programs):
    """DATA with its folder NAME made again by make.sh, and the lines that TEST printed of it."""
    need(*programs)
    data = folder / "data"
    shutil.copytree(DATA, data)
    for old in (data / name).glob("*.gz"):
        old.unlink()
    run("sh", data / name / "make.sh")
    text = run(sys.executable, CLI / test, OFFBEAT, data)
    check("# SKIP" not in text, text)
    return [f"{line[5:]}: {test}" for line in text.splitlines() if line.startswith("ok ")]


@compared
def jfr_of_java(folder):
    yield from made_again(folder, "jfr", "jfr.py", "java", "javac", "jfr")


@compared
def callgrind_and_cachegrind_of_valgrind_and_xdebug(folder):
    yield from made_again(folder, "callgrind", "callgrind.py", "valgrind", "callgrind_annotate", "php", "gcc")


@compared
def raw_profiles_of_firefox(folder):
    """Another interval, other features, a page that does more."""
    need("firefox-esr")
    page = (DATA / "firefox/page.html").read_text(encoding="utf-8")
    for name, interval, features, text in (("plain", 20, "js,stackwalk,cpu", page), ("fine", 5, "js,stackwalk,cpu", page),
                                           ("leaf", 10, "js,cpu,leaf", page)):
        data = folder / name / "firefox"
        data.mkdir(parents=True)
        (data / "page.html").write_text(text, encoding="utf-8")
        run("firefox-esr", "--headless", "--profile", data, "--screenshot", data / "page.png", f"file://{data}/page.html", folder=data,
            HOME=str(data), MOZ_PROFILER_STARTUP="1", MOZ_PROFILER_STARTUP_INTERVAL=str(interval), MOZ_PROFILER_STARTUP_FEATURES=features,
            MOZ_PROFILER_STARTUP_FILTERS="GeckoMain", MOZ_PROFILER_SHUTDOWN=str(data / "raw.json"))
        run(sys.executable, DATA / "firefox/reduce.py", data / "raw.json", data / "raw.json.gz")
        text = run(sys.executable, CLI / "firefox_raw.py", OFFBEAT, data.parent)
        check(text.count("\nok ") + text.startswith("ok ") == 3, text)
        yield f"{name}: {info(data / 'raw.json.gz')['samples']} samples and {info(data / 'raw.json.gz')['markers']} markers as the second reader has them"


# --- Valgrind --------------------------------------------------------------------------------------------------------------------

@compared
def dhat_of_valgrind(folder):
    """Valgrind's own sums at the end."""
    need("valgrind")
    program = built(folder, HERE / "heap.c")
    for number, command in enumerate(([program, "100"], [program, "2000"], ["perl", "-e", "my @a = map { \"x$_\" } 1..5000;"])):
        path = folder / f"{number}.dhat"
        text = run("valgrind", "--tool=dhat", f"--dhat-out-file={path}", *command)
        check_format(path, "dhat")
        sums = {}
        for words, column in (("Total:", "alloc"), ("At t-gmax:", "peak"), ("At t-end:", "end")):
            space, objects = re.search(rf"{words} +([\d,]+) bytes in ([\d,]+) blocks", text).groups()
            sums |= {f"{column}_space": space, f"{column}_objects": objects}
        sums |= {name: re.search(rf"{word}: +([\d,]+) bytes", text)[1] for word, name in (("Reads", "read"), ("Writes", "written"))}
        for name, wanted in sums.items():
            check_equal(report(path, name)[0], int(wanted.replace(",", "")), f"{path.name}: {name}")
        yield f"{pathlib.Path(command[0]).name}: {len(sums)} sums, {sums['alloc_space']} bytes"


def peak_of_ms_print(path):
    """The bytes of the peak, and of each function that allocated there."""
    text = run("ms_print", "--threshold=0", path)
    number = re.search(r"(\d+) \(peak\)", text)[1]
    row = re.search(rf"^ *{number} +[\d,]+ +[\d,]+ +([\d,]+) .*\n((?:.+\n)*)", text, re.M)
    functions = collections.Counter()
    for size, name in re.findall(r"^->[\d.]+% \(([\d,]+)B\) 0x[0-9A-F]+: (.*?)(?: \((?:in )?[^()]*\))?$", row[2], re.M):
        functions[name] += int(size.replace(",", ""))
    return int(row[1].replace(",", "")), functions


@compared
def massif_of_valgrind(folder):
    need("valgrind", "ms_print")
    program = built(folder, HERE / "heap.c")
    for number, command in enumerate(([program, "100"], [program, "2000"], ["--peak-inaccuracy=0.0", program, "500"])):
        path = folder / f"{number}.massif"
        run("valgrind", "-q", "--tool=massif", f"--massif-out-file={path}", *command)
        check_format(path, "massif")
        total, functions = peak_of_ms_print(path)
        ours, rows = report(path)
        check_equal(ours, total, f"{path.name}: the peak")
        check_functions(path.name, {name: rows[name][0] for name in ("leaf", "other")}, {name: functions[name] for name in ("leaf", "other")}, 2)
        yield f"{total} bytes at the peak, leaf {functions['leaf']}, other {functions['other']}"


# --- Ruby, PHP, Python -------------------------------------------------------------------------------------------------------------

def stackprof_text(path):
    """{function: [self, total]} in samples, as stackprof prints them. Of two functions of one name, such as <main>, one may call the other."""
    rows = {}
    for line in run("stackprof", "--text", "--limit", "100000", path).splitlines():
        found = re.match(r" *(\d+) +\([\d.]+%\) +(\d+) +\([\d.]+%\) +(.*)$", line)
        if found:
            own, total = rows.get(found[3], (0, 0))
            rows[found[3]] = [own + int(found[2]), max(total, int(found[1]))]
    return rows


def stackprof_files(folder, with_flat=False):
    need("ruby", "stackprof")
    for mode, interval in (("cpu", 1000), ("wall", 500), ("object", 10)):
        for stacks in (["no-stacks"], []) if with_flat else ([],):
            name = "-".join([mode, *stacks])
            run("ruby", HERE / "program.rb", mode, interval, folder / name, *stacks)
            yield mode, folder / f"{name}.json", folder / f"{name}.dump"


@compared
def stackprof_of_ruby(folder):
    """With stacks, and without, where the file states what each function costs with all that it calls."""
    for mode, path, dump in stackprof_files(folder, with_flat=True):
        check_format(path, "stackprof")
        wanted = stackprof_text(dump)
        total, rows = report(path, "objects" if mode == "object" else "samples")
        document = json.loads(path.read_text())  # some samples of the garbage collector are in no frame
        in_frames = sum(frame["samples"] for frame in document["frames"].values())
        check_equal(total, in_frames, f"{path.stem}: samples")
        for which, word in enumerate(("self", "total")):
            # Of the frames of the collector, such as (marking), its totals leave some samples out.
            ours, theirs = ({name: row[which] for name, row in side.items() if which == 0 or name[0] != "("} for side in (rows, wanted))
            check_functions(f"{path.stem}: {word}", ours, theirs)
        yield f"{path.stem}: {total} samples, {len(wanted)} functions"


@compared
def pstats_of_python(folder):
    """cProfile, profile, and two files of cProfile that pstats added up."""
    paths = []
    for name, module in (("first", "cProfile"), ("second", "cProfile"), ("slow", "profile")):
        paths.append(folder / f"{name}.pstats")
        run(sys.executable, "-m", module, "-o", paths[-1], HERE / "program.py", "0.3")
    sums = pstats.Stats(str(paths[0]))
    sums.add(str(paths[1]))
    paths.append(folder / "sum.pstats")
    sums.dump_stats(paths[-1])
    for path in paths:
        check_format(path, "pstats")
        wanted, calls = collections.defaultdict(float), collections.Counter()
        for (_, _, name), (_, count, own, _, _) in pstats.Stats(str(path)).stats.items():
            name = getattr(name, "co_name", name)  # profile calls what it ran by its code
            wanted[name] += own
            calls[name] += count
        _, rows = report(path, "time")
        check_functions(path.name, {name: row[0] for name, row in report(path, "calls")[1].items()}, calls)
        for name, own in wanted.items():
            check(abs(rows[name][0] - own * 1e9) <= 1000, f"{path.name}: {name}: {rows[name][0]} ns and {own} s")
        yield f"{path.name}: {len(wanted)} functions, {sum(calls.values())} calls"


@compared
def collapsed_of_stackprof_and_excimer(folder):
    """What both tools say of the functions, too."""
    for mode, _, dump in stackprof_files(folder):
        path = folder / f"{mode}.collapsed"
        path.write_text(run("stackprof", "--stackcollapse", dump))
        check_format(path, "collapsed")
        wanted = stackprof_text(dump)
        total, rows = report(path)
        # Of samples in the garbage collector, stackprof's own two reports count the frames below differently.
        clean = {name: row for name, row in wanted.items() if not name.startswith("(")}
        check_functions(f"stackprof {mode}", {name: row[0] for name, row in rows.items() if name in clean},
                        {name: row[0] for name, row in clean.items()})
        yield f"stackprof {mode}: {total} samples"
    need("php")
    for period in ("0.001", "0.0005", "0.002"):
        name = folder / f"excimer-{period}"
        # Excimer 1.0.4 may crash when PHP ends, after its files are written.
        run("php", HERE / "excimer.php", period, name, status=None)
        if not name.with_name(name.name + ".json").exists():
            skip("NOT COMPARED: php-excimer is not installed")
        count, functions = json.loads(name.with_name(name.name + ".json").read_text())
        path = name.with_name(name.name + ".collapsed")
        check_format(path, "collapsed")
        total, rows = report(path)
        check_equal(total, count, f"{path.name}: events")
        check_functions(path.name, {name: row[0] for name, row in rows.items()}, {name: row[0] for name, row in functions.items()}, 1)
        check_functions(path.name, {name: rows[name][1] for name in functions}, {name: row[1] for name, row in functions.items()}, 3)
        yield f"excimer {period} s: {total} events"


# --- Traces ------------------------------------------------------------------------------------------------------------------------

def uftrace_report(data):
    """{function: [self, total]} in nanoseconds."""
    factors = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}
    rows = {}
    for line in run("uftrace", "report", "-d", data).splitlines():
        found = re.match(r" *([\d.]+) +(\w+) +([\d.]+) +(\w+) +\d+ +(\S+)$", line)
        if found:
            rows[found[5]] = [round(float(found[3]) * factors[found[4]]), round(float(found[1]) * factors[found[2]])]
    return rows


@compared
def trace_events_of_uftrace_and_clang(folder):
    """uftrace report; clang's own sums, which its file has as separate events."""
    need("uftrace", "gcc", "clang-14")
    program = folder / "traced"
    run("gcc", "-pg", "-O1", "-g", DATA / "callgrind/program.c", "-o", program)
    for name, options in (("all", []), ("shallow", ["-D", "3"])):
        run("uftrace", "record", *options, "-d", folder / name, program)
        path = folder / f"{name}.json"
        path.write_text(run("uftrace", "dump", "--chrome", "-d", folder / name))
        check_format(path, "chrome-trace")
        wanted, (total, rows) = uftrace_report(folder / name), report(path, "wall")
        for which, word in enumerate(("self", "total")):
            for function, row in wanted.items():
                # The report prints microseconds with three decimals, of a millisecond and more as many less.
                tolerance = max(10, row[1] // 10**5)
                check(abs(rows[function][which] - row[which]) <= tolerance, f"{name}: {word} of {function}: {rows[function]}, uftrace {row}")
        check(len(wanted) >= 4, f"{name}: {wanted}")
        yield f"uftrace {name}: {total} ns, {len(wanted)} functions"
    for number, source in enumerate((HERE / "heap.c", DATA / "callgrind/program.c")):
        path = folder / f"clang{number}.json"
        run("clang-14", "-O2", "-ftime-trace", "-ftime-trace-granularity=0", "-c", source, "-o", path.with_suffix(".o"))
        check_format(path, "chrome-trace")
        events = json.loads(path.read_text())["traceEvents"]
        sums = {event["name"].removeprefix("Total "): event["dur"] * 1000 for event in events if event["name"].startswith("Total ")}
        # A complete event begins at a whole microsecond and is cut to one.
        counts = collections.Counter(event["name"] for event in events)
        for name, wanted in sums.items():
            found = time_below(path, rf"^{re.escape(name)}(: |$)")  # with and without what the event is about
            check(abs(found - wanted) <= 2000 * counts[name] + 2000, f"{path.name}: {name}: {found}, clang {wanted}")
        check(len(sums) > 10, f"{path.name}: {sums}")
        yield f"clang {source.name}: {len(sums)} sums"


# --- Kernel, gperftools ------------------------------------------------------------------------------------------------------------

BPFTRACE = {
    "user": "profile:hz:199 /pid == cpid/ { @[ustack, comm] = count(); @all = count(); @of[comm] = count(); }",
    "both": "profile:hz:199 /pid == cpid/ { @[kstack, ustack, comm] = count(); @all = count(); @of[comm] = count(); }",
    "bytes": "software:page-faults:1 /pid == cpid/ { @[ustack, comm] = sum(4096); @all = sum(4096); @of[comm] = sum(4096); }",
}


@compared
def bpftrace_maps(folder):
    """Maps without stacks that the same program counts beside the one with stacks."""
    need("bpftrace")
    for name, program in BPFTRACE.items():
        path = folder / f"{name}.bpftrace"
        text = run("bpftrace", "-c", f"{sys.executable} {HERE / 'program.py'} 1", "-e", program, status=None, errors=subprocess.DEVNULL)
        if "@all:" not in text:
            skip(f"NOT COMPARED: bpftrace cannot count here: {run('bpftrace', '-e', program, status=None)[:200]!r}")
        path.write_text(text)
        check_format(path, "bpftrace")
        everything = int(re.search(r"^@all: (\d+)$", text, re.M)[1])
        wanted = dict(re.findall(r"^@of\[(.*)\]: (\d+)$", text, re.M))
        check_equal(report(path)[0], everything, f"{name}: @all")
        found = {key: int(count) for count, key in re.findall(r"^ *(\d+) \(.*?\): (.*)$", run(OFFBEAT, "tags", path), re.M)}
        check_equal(found, {key: int(count) for key, count in wanted.items()}, f"{name}: threads")
        yield f"{name}: {everything} in all, {len(wanted)} names of threads"


@compared
def legacy_profiles_of_gperftools(folder):
    """google-pprof, which is in Perl and has no part of the newer pprof."""
    need("google-pprof")
    program = built(folder, HERE / "heap.c", "-Wl,--no-as-needed", "-lprofiler", "-ltcmalloc")
    run(program, "4000", CPUPROFILE=str(folder / "cpu.prof"), CPUPROFILE_FREQUENCY="1000")
    for name in ("small", "large"):
        run(program, "200" if name == "small" else "3000", HEAPPROFILE=str(folder / name))
    for path, value in ((folder / "cpu.prof", "samples"), (folder / "small.0001.heap", "inuse_space"), (folder / "large.0001.heap", "inuse_space")):
        check_format(path, "pprof-legacy")
        named = path.with_suffix(".pb.gz")
        run(OFFBEAT, "symbolize", "--trust-paths", path, "-o", named)
        total, rows = report(named, value)
        text = run("google-pprof", "--text", "--show_bytes", program, path)
        wanted = {}
        for line in text.splitlines():
            found = re.match(r" *([\d.]+) +[\d.]+% +[\d.]+% +([\d.]+) +[\d.]+% (.*)$", line)
            if found:
                wanted[found[3]] = [int(float(found[1])), int(float(found[2]))]
        check_equal(total, int(float(re.search(r"^Total: ([\d.]+)", text, re.M)[1])), f"{path.name}: total")
        rows = collections.defaultdict(lambda: [0, 0]) | {name.split("(")[0]: row for name, row in rows.items()}
        check_functions(path.name, {name: rows[name][0] for name in rows}, {name: row[0] for name, row in wanted.items()}, 1)
        # google-pprof takes main and what is before it out of stacks that all have them.
        check_equal(rows["middle"][1], wanted.get("middle", [0, 0])[1], f"{path.name}: middle with its callees")
        yield f"{path.name}: {total}, {len(wanted)} functions"


@compared
def perf_script_text(folder):
    """perf report on the recording that the text was printed from."""
    need("perf", "gcc")
    program = built(folder, DATA / "callgrind/program.c")
    commands = {"fp": ["--call-graph", "fp", sys.executable, HERE / "program.py", "0.5"],
                "plain": ["-F", "2999", program], "dwarf": ["--call-graph", "dwarf,4096", sys.executable, HERE / "program.py", "0.3"]}
    for name, command in commands.items():
        data, path = folder / f"{name}.data", folder / f"{name}.perf"
        done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", data, *map(str, command)], capture_output=True, text=True)
        if done.returncode:
            skip(f"NOT COMPARED: perf cannot record here: {done.stderr[:200]!r}")
        path.write_text(run("perf", "script", "-i", data, "--no-inline"))
        check_format(path, "perf-script")
        text = run("perf", "report", "--stdio", "-i", data, "--no-children", "-g", "none", "--no-inline", "--sort", "sym", "-F", "period,sym",
                   "--percent-limit", "0")
        wanted = collections.Counter()
        for period, function in re.findall(r"^ *(\d+) +\[[.k]\] (.*?)(?: +-)*(?: +- +-)? *$", text, re.M):
            wanted["?" if re.fullmatch("0x[0-9a-f]+|0+", function) else function] += int(period)
        total, rows = report(path)
        check_equal(total, int(re.search(r"Event count \(approx\.\): (\d+)", text)[1]), f"{name}: all periods")
        ours = {function: row[0] for function, row in rows.items() if function in wanted}
        check_functions(name, ours, {function: period for function, period in wanted.items() if function != "?"}, 1)
        yield f"{name}: {total} ns, {len(wanted)} functions"


# --- speedscope, in a browser --------------------------------------------------------------------------------------------------------

def nanoseconds(sums):
    return {name: round(value * 1000) for name, value in sums.items()}


def v8_name(name):
    """speedscope adds the file and line to functions without a name."""
    return "(anonymous)" if name.startswith("(anonymous") else name


def by_name(rows):
    sums = collections.Counter()
    for name, value in rows.items():
        sums[v8_name(name)] += value
    return sums


@compared
def cpu_profiles_of_v8(folder):
    """speedscope, which gives the last sample no time; its own file, which offbeat reads too."""
    need("node")
    with speedscope(folder) as read_and_write:
        for interval in (1000, 200, 5000):
            path = folder / f"{interval}.cpuprofile"
            run("node", "--cpu-prof", "--cpu-prof-interval", interval, "--cpu-prof-dir", folder, "--cpu-prof-name", path.name, HERE / "program.js", 300)
            check_format(path, "chrome")
            written = read_and_write(path)
            check_format(written, "speedscope")
            document = json.loads(path.read_text())
            last = document["endTime"] - document["startTime"] - sum(document["timeDeltas"])
            names = {node["id"]: node["callFrame"]["functionName"] or "(anonymous)" for node in document["nodes"]}
            ours = by_name({name: row[0] for name, row in report(path, "wall")[1].items()})
            if names[document["samples"][-1]] != "(idle)":  # neither of the two counts idle time
                ours[names[document["samples"][-1]]] -= last * 1000
            wanted = by_name(nanoseconds(sums_of_speedscope(written)))
            check_functions(path.name, ours, wanted)
            again = by_name({name: row[0] for name, row in report(written)[1].items()})
            check_functions(written.name, again, wanted)
            yield f"{interval} us: {sum(wanted.values()) // 1000} us, {len(wanted)} functions, and the same from speedscope's file"


@compared
def heap_profiles_of_v8(folder):
    need("node")
    with speedscope(folder) as read_and_write:
        for interval in (1024, 4096, 65536):
            path = folder / f"{interval}.heapprofile"
            run("node", "--heap-prof", "--heap-prof-interval", interval, "--heap-prof-dir", folder, "--heap-prof-name", path.name, HERE / "program.js", 300)
            check_format(path, "v8-heap")
            wanted = by_name(sums_of_speedscope(read_and_write(path)))
            check_functions(path.name, by_name({name: row[0] for name, row in report(path, "space")[1].items()}), wanted, 1)
            yield f"{interval} bytes: {sum(wanted.values())} bytes, {len(wanted)} functions"


CONVERTED = ("stackprof/wall.json", "perf/chains.data", "callgrind/calls.out.gz", "jfr/serial.jfr.gz", "pstats/python3.11.pstats")
TIMES = ("stackprof/wall.json", "perf/chains.data", "pstats/python3.11.pstats")


@compared
def what_convert_writes_for_other_tools_in_speedscope(folder):
    """It opens files of other tools, too: the sum of each is that of the source. It reads no addresses of callgrind."""
    names = {"chrome-trace": "x.trace.json", "collapsed": "x.txt", "pprof": "x.pb"}
    with speedscope(folder) as read_and_write:
        for number, source in enumerate(CONVERTED):
            total, rows = report(DATA / source)
            for target, name in sorted(names.items()) if number == 0 else some_of(sorted(names.items()), 3):
                if target == "chrome-trace" and source not in TIMES:
                    continue
                path = folder / name
                run(OFFBEAT, "convert", DATA / source, "--to", target, "-o", path)
                written = read_and_write(path)
                sums = sums_of_speedscope(written)
                factor = {"microseconds": 1000, "milliseconds": 10**6, "seconds": 10**9}.get(json.loads(written.read_text())["profiles"][0]["unit"], 1)
                whole = sum(sums.values()) * factor
                check(abs(whole - total) <= total * 1e-4 + 1, f"{source} to {target}: speedscope has {whole} of {total}")
                check(len(sums) > 3, f"{source} to {target}: {sums}")
            yield f"{source}: {total}, {len(rows)} functions"


@compared
def what_convert_writes_for_speedscope(folder):
    """speedscope's own sums of files that convert wrote."""
    with speedscope(folder) as read_and_write:
        for source in CONVERTED:
            path = folder / f"x{source.split('/')[0]}.json"  # it takes callgrind.x for a file of callgrind
            run(OFFBEAT, "convert", DATA / source, "--to", "speedscope", "-o", path)
            written = read_and_write(path)
            total, _ = report(DATA / source)
            _, rows = report(written)
            sums = sums_of_speedscope(written)
            factor = {"microseconds": 1000, "milliseconds": 10**6, "seconds": 10**9}.get(json.loads(written.read_text())["profiles"][0]["unit"], 1)
            check(abs(sum(sums.values()) * factor - total) <= total * 1e-6, f"{source}: speedscope has {sum(sums.values()) * factor} of {total}")
            for name, value in sums.items():
                check(abs(rows[name][0] - value * factor) <= total * 1e-6 + 1, f"{source}: {name}: {rows[name]}, speedscope {value * factor}")
            check(len(sums) > 3, f"{source}: {sums}")
            yield f"{source}: {total}, {len(rows)} functions"


# --- The Firefox Profiler, on the command line -----------------------------------------------------------------------------------------

@compared
def what_convert_writes_for_firefox(folder):
    """The viewer's own sums of files that convert wrote."""
    need("node")
    if not npm_file("@firefox-devtools/profiler-cli"):
        skip("NOT COMPARED: @firefox-devtools/profiler-cli is not installed (./dev setup all)")
    for source in CONVERTED:
        path = folder / f"{source.split('/')[0]}.json"
        run(OFFBEAT, "convert", DATA / source, "--to", "firefox", "-o", path)
        total, rows = report(DATA / source)
        facts, sums = functions_of_firefox(path, folder)
        check(abs(sum(sums.values()) - total) <= max(total * 1e-6, 1), f"{source}: Firefox has {sum(sums.values())} of {total}: {facts}")
        for name in sums.keys() & rows.keys():
            check(abs(rows[name][0] - sums[name]) <= max(total * 1e-6, 1), f"{source}: {name}: {rows[name]}, Firefox {sums[name]}")
        check(len(sums.keys() & rows.keys()) > 3, f"{source}: {sums}")
        yield f"{source}: {total}, {len(sums)} functions"


main()
