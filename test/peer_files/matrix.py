"""All pairs of formats: up to five files of each format that offbeat reads, converted to each that it writes. The converted file has the
sum of its source, as the target's own tool has it, or where there is none, a reader in Python; or it is refused in one line. Files are
kept ones, and ones that node, clang and perf write here; of formats that only offbeat writes here, it writes them.

    matrix.py OFFBEAT DATA [TARGET]…

What viewers open is judged by speedscope's importer in node, and by the Firefox Profiler's command line.

SPDX-License-Identifier: MIT"""
import collections
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "cli")]
from fixtures import REAL  # noqa: E402
from function_times import of_sentry  # noqa: E402
from judges import functions_of_firefox  # noqa: E402
from speedscope_page import npm_file, speedscope_folder  # noqa: E402
from tap import Failed, case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
DATA = pathlib.Path(sys.argv[2]).resolve()
CHOSEN = sys.argv[3:]
CORPUS = HERE.parent / "fuzz/corpus"
TRIALS = HERE.parent / "cli/data/trials"
FILES_MAX = 5
TARGETS = {"pprof": ".pb.gz", "collapsed": ".txt", "speedscope": ".json", "firefox": ".json", "chrome-trace": ".trace.json", "callgrind": ".out",
           "otlp": ".otlp", "otlp-json": ".otlp.json", "sentry-v2": ".json", "envelope": ".envelope", "sentry-v1": ".json", "envelope-v1": ".envelope"}
NANOSECONDS = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}

KEPT = {
    "perf-data": [*DATA.glob("perf/*.data"), *REAL.glob("perf/*.perf.data")],
    "perf-script": [*REAL.glob("perf/*.script.txt")],
    "jfr": [*DATA.glob("jfr/*.jfr.gz"), *TRIALS.glob("*.jfr.gz"), *REAL.glob("jfr/*.jfr")],
    "callgrind": [*DATA.glob("callgrind/[cit]*.out.gz")],
    "xdebug": [*DATA.glob("callgrind/xdebug*.out.gz")],
    "dhat": [*DATA.glob("dhat/*"), *CORPUS.glob("dhat/*")],
    "massif": [*DATA.glob("massif/*"), *CORPUS.glob("massif/*")],
    "pstats": [*DATA.glob("pstats/*")],
    "stackprof": [*DATA.glob("stackprof/*"), TRIALS / "st_gc.json", *CORPUS.glob("stackprof/*")],
    "collapsed": [*REAL.glob("jfr/*.collapsed"), *TRIALS.glob("co_*.txt"), HERE.parent / "cli/data/work.collapsed"],
    "v8-heap": [*DATA.glob("v8-heap/*"), *REAL.glob("cpuprofile/*.heapprofile")],
    "v8-log": [*DATA.glob("v8-log/*")],
    "chrome": [*REAL.glob("cpuprofile/*.cpuprofile")],
    "chrome-trace": [*DATA.glob("chrome-trace/*")],
    "bpftrace": [*DATA.glob("bpftrace/*"), *TRIALS.glob("bt_*.txt"), *CORPUS.glob("bpftrace/*")],
    "android-trace": [*CORPUS.glob("android-trace/*")],
    "dtrace": [*CORPUS.glob("dtrace/*")],
    "macos-sample": [*CORPUS.glob("macos-sample/*")],
    "pprof-legacy": [*REAL.glob("pprof/go/*.txt"), *REAL.glob("gperftools/*.cpu"), DATA / "heap-profile.txt"],
    "pprof": [*REAL.glob("pprof/*/*.pb.gz")],
    "firefox": [*DATA.glob("firefox/*.json.gz")],
    "sentry-v1": [DATA / "sentry-v1.json"],
    "sentry-v2": [DATA / "sentry-v2-chunk.json"],
    "envelope": [*REAL.glob("envelopes/*/0002.raw"), *REAL.glob("envelopes/*/0003.raw")],
    "otlp": [*DATA.glob("otlp/*.otlp")],
    "otlp-json": [*DATA.glob("otlp/*.json")],
}
OWN = {"speedscope": ".speedscope.json", "firefox": ".firefox.json", "otlp": ".otlp", "otlp-json": ".otlp.json", "sentry-v1": ".json", "sentry-v2": ".json"}
OWN_SOURCES = ["perf/chains.data", "stackprof/wall.json", "jfr/serial.jfr.gz", "pstats/python3.11.pstats", "callgrind/calls.out.gz"]


def run(*command, folder=None):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=folder, timeout=300, errors="replace")


def own_values(*paths_and_type):
    """The unit of the values that a report shows, their total, and the sum of what functions have for themselves, which is less if a thread
    was idle; None: the file is not read."""
    chosen = [f"--sample-index={word}" if word == "wall" else word for word in paths_and_type]
    done = run(OFFBEAT, "top", "--json", "-n", "0", *chosen)
    if done.returncode:
        return None
    report = json.loads(done.stdout)
    return report["sample_type"]["unit"], report["total"], sum(row["self"] for row in report["functions"])


def made(folder):
    """{format: paths} of files that tools write here."""
    files = collections.defaultdict(list)
    for number in range(FILES_MAX):
        if shutil.which("node"):
            names = folder / f"{number}.cpuprofile", folder / f"{number}.heapprofile"
            run("node", "--cpu-prof", "--cpu-prof-interval", 300 + 400 * number, "--cpu-prof-dir", folder, "--cpu-prof-name", names[0].name,
                "--heap-prof", "--heap-prof-dir", folder, "--heap-prof-name", names[1].name, HERE / "program.js", 60)
            files["chrome"].append(names[0])
            files["v8-heap"].append(names[1])
        if shutil.which("clang-14"):
            run("clang-14", f"-O{number % 4}", "-g", "-ftime-trace", "-ftime-trace-granularity=50", "-c", DATA / "callgrind/program.c", "-o",
                folder / f"{number}.o")
            files["chrome-trace"].append(folder / f"{number}.json")
    for number in range(3):
        if shutil.which("valgrind") and shutil.which("perl"):
            for tool in ("massif", "dhat"):
                path = folder / f"{number}.{tool}"
                run("valgrind", "-q", f"--tool={tool}", f"--{tool}-out-file={path}", "perl", "-e", f"my @a = map {{ \"x$_\" }} 1..{500 << number}")
                files[tool].append(path)
        if shutil.which("php"):
            run("php", "-d", "xdebug.mode=profile", "-d", "xdebug.start_with_request=yes", "-d", "xdebug.use_compression=0", "-d", f"xdebug.output_dir={folder}", "-d",
                f"xdebug.profiler_output_name={number}.xdebug", "-r",
                f"function f($n) {{ return $n < 2 ? 1 : f($n - 1) + f($n - 2); }} f({9 + number}); $a = range(1, 50); usort($a, 'strcmp');")
            files["xdebug"].append(folder / f"{number}.xdebug")
    if shutil.which("bpftrace"):
        path = folder / "json.bpftrace"
        path.write_text(run("bpftrace", "-f", "json", "-e", "profile:hz:99 { @[kstack, comm] = count(); } interval:s:1 { exit(); }").stdout)
        files["bpftrace"].append(path)
    recordings = sorted(DATA.glob("perf/*.data"))[:FILES_MAX]
    for recording in recordings if shutil.which("perf") else []:
        path = folder / f"{recording.stem}.script"
        path.write_text(run("perf", "script", "-i", recording).stdout)
        files["perf-script"].append(path)
    for name, suffix in OWN.items():
        for number, source in enumerate(OWN_SOURCES):
            path = folder / f"own-{number}{suffix}"
            if run(OFFBEAT, "convert", DATA / source, "--to", name, "-o", path).returncode == 0:
                files[name].append(path)
    return files


def sources(folder):
    """(format, path, unit, sum): up to FILES_MAX readable ones of each format, kept ones first."""
    new = made(folder)
    for name, kept in KEPT.items():
        count = 0
        for path in [*sorted(kept), *new[name]]:
            values = own_values(path) if count < FILES_MAX and path.exists() else None
            if values:
                count += 1
                yield name, path, *values
        print(f"# {name}: {count} files")
        check(count > 0, f"there is no file of {name}")


# --- What is in a converted file: the sum, in the unit of its source, or in nanoseconds. None: it cannot be known here. ---------------


def sum_of_pprof(path, unit):
    if not shutil.which("go"):
        return None
    chosen = "-unit=nanoseconds" if unit in NANOSECONDS else "-unit=B" if unit == "bytes" else "-unit=minimum"
    done = run("go", "tool", "pprof", "-symbolize=none", "-top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0", chosen, path)
    check_equal(done.returncode, 0, done.stderr)
    return float(re.search(r" of (-?[\d.]+)\S* total$", done.stdout, re.M)[1])


def sums_of_callgrind(path):
    if not shutil.which("callgrind_annotate"):
        return None
    done = run("callgrind_annotate", "--threshold=100", "--show-percs=no", path)
    found = re.search(r"^ *(-?[\d,. ()%]+) +PROGRAM TOTALS", done.stdout, re.M)
    check(found, f"callgrind_annotate: {done.stdout[:300]}{done.stderr[:300]}")
    return [int(column.replace(",", "")) for column in found[1].split() if re.fullmatch(r"-?[\d,]+", column)]


def fields_of(message):
    """(number, value) of a protobuf message: an integer, or bytes."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
        yield key >> 3, message[at:at + size]
        at += size


def sums_of_otlp(path):
    """The sum of each profile of a file, by the names of its fields in profiles.proto."""
    sums = []
    for number, resource in fields_of(path.read_bytes()):
        for scope in (value for field, value in fields_of(resource) if number == 1 and field == 2):
            for profile in (value for field, value in fields_of(scope) if field == 2):
                total = 0
                for sample in (value for field, value in fields_of(profile) if field == 2):
                    packed = b"".join(value for field, value in fields_of(sample) if field == 4 and isinstance(value, bytes))
                    total += sum(number - (1 << 64) if number >> 63 else number for number in unpacked(packed))
                sums.append(total)
    return sums


def unpacked(packed):
    number = shift = 0
    for byte in packed:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number
            number = shift = 0


def sums_of_otlp_json(path):
    profiles = [profile for resource in json.loads(path.read_text())["resourceProfiles"] for scope in resource.get("scopeProfiles", [])
                for profile in scope.get("profiles", [])]
    return [sum(int(value) for sample in profile.get("samples", []) for value in sample.get("values", [])) for profile in profiles]


def is_near(found, expected, tolerance):
    return abs(found - expected) <= max(tolerance * abs(expected), 2)


def check_pair(name, path, unit, total, of_functions, target, output):
    """True if a judge was asked, None if the format cannot hold the values, which one line says."""
    done = run(OFFBEAT, "convert", path, "--to", target, "-o", output)
    if done.returncode:
        check_equal(done.returncode, 3, f"status: {done.stderr}")
        last = done.stderr.splitlines()[-1]
        check(target in last or "profiling_not_enough_samples" in last, f"refused: {done.stderr}")
        return None
    wanted = total * NANOSECONDS.get(unit, 1)
    if wanted == 0 and target in VIEWERS:  # which refuse files of nothing
        return None
    if target.startswith(("sentry", "envelope")):
        outputs = sorted(output.parent.glob(output.name.split(".")[0] + "*"))
        if "only the first" in done.stderr or unit not in NANOSECONDS:
            return None
        found, wanted = sum(of_sentry(outputs).values()) * 10**9, of_functions * NANOSECONDS[unit]
        wall = own_values(path, "wall")  # what these formats hold, if there is CPU time, too
        again = own_values(*outputs)  # V1 has idle samples under the callers that two runs have in common
        check(again, "offbeat does not read what it wrote")
        sums = [wanted, *([wall[2]] if wall else [])]
        if name == "sentry-v1":  # offbeat shows idle samples of such files under what two runs have in common, which V2 does not
            sums.append(2 / 3 * wanted)
        tolerance = wanted / 16 + 4000 * len(outputs) + 2_000_000
        check(any(abs(value - right) <= tolerance for right in sums for value in (found, again[2])), f"{found} ns, expected {sums}")
        return True
    if target.startswith("otlp"):
        sums = sums_of_otlp(output) if target == "otlp" else sums_of_otlp_json(output)
        check(any(is_near(found, wanted, 1e-9) for found in [*sums, sum(sums)]), f"{sums}, expected {wanted}")
        return True
    if target == "callgrind":
        found = sums_of_callgrind(output) if wanted else None  # of nothing, callgrind_annotate prints nothing
        if found is None:
            return False
        check(any(is_near(number, wanted, 1e-9) for number in found), f"callgrind_annotate: {found}, expected {wanted}")
        return True
    if target in VIEWERS:
        return check_viewer(name, path, unit, total, of_functions, target, output, done.stderr)
    if target == "pprof":
        found = sum_of_pprof(output, unit)
        if found is None:
            return False
        check(is_near(found, wanted, 1e-3), f"go tool pprof: {found}, expected {wanted}")
        return True
    return False


# --- Viewers -----------------------------------------------------------------------------------------------------------------------


def times_of(path, of_functions, unit):
    """What a format with an axis of time may show of the functions, in nanoseconds: the value of the source that is shown first, or another one
    of time, or, of counts, a period each."""
    facts = json.loads(run(OFFBEAT, "info", "--json", path).stdout)
    if unit in NANOSECONDS:
        return [of_functions * NANOSECONDS[unit]]
    times = [own_values(path, f"--sample-index={kind['type']}") for kind in facts["sample_types"] if kind["unit"] in NANOSECONDS]
    period = facts["period"] * NANOSECONDS.get(facts["period_type"]["unit"], 0) or 10_000_000
    return [one[2] * NANOSECONDS[one[0]] for one in times] + [of_functions * period]


def sum_of_speedscope(output):
    """In nanoseconds, bytes, or as the file has it, as speedscope's importer reads it; None: it is not installed."""
    if not shutil.which("node") or not speedscope_folder():
        return None
    done = run("node", HERE / "speedscope_importer.js", speedscope_folder(), output)
    answer = json.loads(done.stdout)
    check("error" not in answer, f"speedscope: {answer}")
    return sum(profile["total"] * NANOSECONDS.get(profile["unit"], 1) for profile in answer["profiles"])


def wanted_of(name, unit, total, of_functions):
    """With or without samples that have no stack, which are idle. Offbeat shows idle samples of V1 under what two runs have in common."""
    parts = [total, of_functions, *([2 / 3 * of_functions] if name == "sentry-v1" else [])]
    return [value * NANOSECONDS.get(unit, 1) for value in parts]


def check_viewer(name, path, unit, total, of_functions, target, output, said):
    """True if a judge was asked."""
    if target == "firefox":
        if not npm_file("@firefox-devtools/profiler-cli"):
            return False
        _, sums = functions_of_firefox(output, output.parent)
        wanted = wanted_of(name, unit, total, of_functions)
        check(any(is_near(sum(sums.values()), value, 1e-6) for value in wanted), f"the Firefox Profiler: {sum(sums.values())}, expected {wanted}")
        return True
    found = sum_of_speedscope(output)
    if found is None:
        return False
    if target == "chrome-trace":  # whose gaps of up to a 16th of a period are bridged; what overlaps is cut, and named
        cut = re.search(r"samples of one thread at one time \(([\d.e+-]+) s of", said)
        lost = float(cut[1]) * 1e9 if cut else 0
        wanted = [value - lost for value in times_of(path, of_functions, unit)]
        near = any(-0.001 * value - 1000 <= found - value <= value / 16 + 1000 for value in wanted)
        if name == "sentry-v1":
            near |= any(is_near(found, 2 / 3 * value, 1e-3) for value in wanted)
    else:
        wanted = wanted_of(name, unit, total, of_functions)
        near = any(is_near(found, value, 1e-6) for value in wanted)
    check(near, f"speedscope: {found}, expected {wanted}")
    return True


VIEWERS = {"speedscope", "chrome-trace", "collapsed", "firefox"}
JUDGES = {"pprof": "go", "callgrind": "callgrind_annotate", "firefox": "@firefox-devtools/profiler-cli",
          **dict.fromkeys(VIEWERS - {"firefox"}, "speedscope")}


@case
def every_pair_has_the_sum_of_its_source():
    failed, asked, refused = [], collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="offbeat-matrix-") as folder:
        folder = pathlib.Path(folder)
        (folder / "made").mkdir()
        files = list(sources(folder / "made"))

        def tried(job):
            number, (name, path, *values), target = job
            place = folder / f"{number}-{target}"
            place.mkdir()
            try:
                return target, check_pair(name, path, *values, target, place / f"x{TARGETS[target]}"), None
            except (Failed, ValueError, KeyError, OSError) as why:
                return target, True, f"{name}: {path.name} to {target}: {why}"
            finally:
                shutil.rmtree(place, ignore_errors=True)
        jobs = [(number, file, target) for number, file in enumerate(files) for target in CHOSEN or TARGETS]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for target, was_asked, why in pool.map(tried, jobs):
                asked[target] += was_asked is True
                refused[target] += was_asked is None
                failed += [why] if why else []
    print(f"# {len(files)} files; asked: {dict(asked)}; refused, or only a part: {dict(refused)}")
    check(not failed, f"{len(failed)} pairs differ:\n" + "\n".join(failed))
    missing = {target for target, program in JUDGES.items() if not shutil.which(program) and not npm_file(program)}
    for target in set(CHOSEN or TARGETS) - missing:
        check(asked[target] > 10, f"{target}: {asked[target]} files were compared")
    if missing:
        skip(f"NOT COMPARED: {', '.join(sorted(missing))}, as {' and '.join(JUDGES[target] for target in sorted(missing))} is not installed")


main()
