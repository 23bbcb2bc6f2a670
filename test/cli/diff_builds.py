"""Fifty pairs of builds, base and change: `offbeat diff` says of each function what `go tool pprof -diff_base` says, and --fail-over has
no false alarm when nothing has changed. gcc makes a few programs with a library, in two folders each; their recordings are drawn by
chance and written as offbeat record writes them, and a few are recorded. What stripped builds have instead of names is added up for
each module, because the same function has another address in each build. Argument: the program. SPDX-License-Identifier: MIT"""
import collections
import functools
import gzip
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from pprof_written import varint  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
PAIRS, RECORDED, FUNCTIONS, SAMPLES = 50, 3, 12, 3000
PERIOD_NS = 10_000_000

# Where base and change are, and their library.
PLACES = [
    ("base/bin/app", "pr/bin/app", "base/lib/libwork.so", "pr/lib/libwork.so"),
    ("srv/app-1.1/app", "srv/app-1.2/app", "srv/app-1.1/libwork.so.1.2.3", "srv/app-1.2/libwork.so.1.2.4"),
    ("nix/store/0c0wxsk8hnbyi4c8ljzk9wbk8jv1xa5x-app-1.1/bin/app", "nix/store/9pbq5zqnmrr6cfmsnrqzbn6h4v5l0a7b-app-1.2/bin/app",
     "nix/store/1d1wxsk8hnbyi4c8ljzk9wbk8jv1xa5x-work-3.0/lib/libwork.so.3.0", "nix/store/2e2qzqnmrr6cfmsnrqzbn6h4v5l0a7bv-work-3.1/lib/libwork.so.3.1"),
    ("old/app-base", "old/app-pr", "old/libwork-1.9.so", "old/libwork-2.0.so"),
]

LIBRARY = """
static volatile double sum;
__attribute__((noinline)) static void init(long n) {{ for (long i = 1; i < n; i++) sum += 1.0 / i; }}
{extra}
{functions}
"""
PROGRAM = """
static volatile double sum;
__attribute__((noinline)) static void init(long n) {{ for (long i = 1; i < n; i++) sum += 3.0 / i; }}
{extra}
{functions}
{declarations}
int main(void) {{ for (int k = 0; k < {rounds}; k++) {{ init(1000); {calls} }} return 0; }}
"""


def functions(prefix, weights):
    return "\n".join(f"__attribute__((noinline)) void {prefix}{i}(long n) {{ init(n); for (long i = 1; i < n * {weight}; i++) sum += 2.0 / i; }}"
                     for i, weight in enumerate(weights))


class Build:
    """A program and its library, and the addresses of their functions."""

    def __init__(self, folder, program, library, weights, has_more, is_stripped):
        self.program, self.library = folder / program, folder / library
        # What is added moves all that follows.
        extra = "__attribute__((used)) static void added(long n) { sum += n; sum *= n + 1; }" if has_more else ""
        half = len(weights) // 2
        self.library.parent.mkdir(parents=True, exist_ok=True)
        self.program.parent.mkdir(parents=True, exist_ok=True)
        self.compile(LIBRARY.format(extra=extra, functions=functions("work", weights[:half])), "-shared", "-fPIC", "-o", self.library)
        calls = [f"{name}{i}" for name in ("work", "step") for i in range(half)]
        source = PROGRAM.format(extra=extra, functions=functions("step", weights[half:]), rounds=20,
                                declarations="".join(f"void work{i}(long);" for i in range(half)), calls="".join(f"{name}(20000);" for name in calls))
        self.compile(source, "-o", self.program, self.library, f"-Wl,-rpath,{self.library.parent}")
        self.modules = [self.module(self.program), self.module(self.library)]
        if is_stripped:
            subprocess.run(["strip", self.program, self.library], check=True)

    @staticmethod
    def compile(source, *flags):
        subprocess.run(["gcc", "-O1", "-Wl,--build-id", "-x", "c", "-", "-x", "none", *map(str, flags)], input=source, text=True, check=True)

    @staticmethod
    def module(path):
        symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
        found = re.findall(r"^([0-9a-f]+) [tT] (work\d+|step\d+|init|main)$", symbols, re.M)
        return {"path": str(path), "build_id": re.search(r"Build ID: ([0-9a-f]+)", notes)[1], "functions": {name: int(at, 16) for at, name in found}}


@functools.lru_cache(maxsize=None)
def folder():
    return pathlib.Path(tempfile.mkdtemp(prefix="offbeat-test-builds-"))


@functools.lru_cache(maxsize=None)
def builds(place, kind):
    """(base, change, the same as base in the folder of change), "full" with symbols, "stripped" without."""
    root, is_stripped = folder() / f"{place}-{kind}", kind == "stripped"
    base_program, new_program, base_library, new_library = PLACES[place]
    weights = [1 + i % 3 for i in range(FUNCTIONS)]
    base = Build(root, base_program, base_library, weights, False, is_stripped)
    equal = Build(root / "equal", new_program, new_library, weights, False, is_stripped)
    weights[3], weights[8] = 5, 1
    return base, Build(root, new_program, new_library, weights, True, is_stripped), equal


# --- Profiles as the recorder writes them ----------------------------------------------------------------------------


def number(field, value):
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def block(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


class Writer:
    def __init__(self):
        self.strings, self.body, self.known = [""], b"", {}

    def text(self, string):
        if string not in self.strings:
            self.strings.append(string)
        return self.strings.index(string)

    def entity(self, field, key, content):
        """The id of an entry, which is written once."""
        ids = self.known.setdefault(field, {})
        if key not in ids:
            ids[key] = len(ids) + 1
            self.body += block(field, number(1, ids[key]) + content)
        return ids[key]

    def location(self, module, slide, name, shown):
        start = slide + 0x1000
        mapping = self.entity(3, module["path"], number(2, start) + number(3, start + 0x2000) + number(4, 0x1000) +
                              number(5, self.text(module["path"])) + number(6, self.text(module["build_id"])))
        address = slide + module["functions"][name]
        line = b""
        if shown:
            function = self.entity(5, shown, number(2, self.text(shown)) + number(3, self.text(shown)))
            line = block(4, number(1, function))
        return self.entity(4, address, number(2, mapping) + number(3, address) + line)

    def sample(self, locations, count, pid):
        labels = block(3, number(1, self.text("pid")) + number(3, pid))
        self.body += block(2, block(1, b"".join(map(varint, locations))) + block(2, varint(count) + varint(count * PERIOD_NS)) + labels)

    def bytes(self):
        types = [("samples", "count"), ("cpu", "nanoseconds")]
        head = b"".join(block(1, number(1, self.text(kind)) + number(2, self.text(unit))) for kind, unit in types)
        return gzip.compress(head + self.body + b"".join(block(6, string.encode()) for string in self.strings), mtime=0)


def write_recording(path, build, chance, weights, kind):
    """KIND of names: "full"; "stripped": the address of each function is known; "raw": nothing is."""
    writer, pid = Writer(), chance.randrange(1, 1 << 15)
    slides = [chance.randrange(0x550000000, 0x560000000) << 12, chance.randrange(0x7f0000000, 0x7f8000000) << 12]
    places = [(side, name) for side, module in enumerate(build.modules) for name in sorted(module["functions"]) if name != "main"]
    drawn = collections.Counter(chance.choices(places, [weights[name, side] for side, name in places], k=SAMPLES))
    for (side, name), count in sorted(drawn.items()):
        locations = []
        for at, function in ((side, name), (0, "main")):
            module = build.modules[at]
            shown = {"full": function, "raw": "", "stripped": f"{pathlib.Path(module['path']).name}+{module['functions'][function]:#x}"}[kind]
            locations.append(writer.location(module, slides[at], function, shown))
        writer.sample(locations, count, pid)
    path.write_bytes(writer.bytes())


# --- What is said of them --------------------------------------------------------------------------------------------


def module_of(text):
    """The name that both builds' modules have: libwork.so, app."""
    name = re.sub(r"^\[|\]$|\+0x[0-9a-f]+$", "", text)
    return re.sub(r"(-(base|pr)|[-.][\d.]+)?((?<=\.so)[\d.]*|\.so|)$", r"\3", name).replace(".so.", ".so") if name.startswith(("lib", "app")) else text


def comparable(name):
    return module_of(name) if re.match(r"\[|.*\+0x[0-9a-f]+$", name) else name


def of_pprof(base, new):
    done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-top", "-unit=nanoseconds", "-nodefraction=0", "-nodecount=10000", "-sample_index=cpu",
                           f"-diff_base={base}", new], capture_output=True, text=True)
    check_equal(done.returncode, 0, f"pprof: {done.stderr}; status")
    rows = collections.Counter()
    for value, name in re.findall(r"^ *(-?\d+)(?:ns)? +\S+% +\S+% +-?\d+(?:ns)? +\S+% +(.*)$", done.stdout, re.M):
        rows[comparable(name)] += int(value)
    check(rows, f"no rows in {done.stdout}")
    return {name: value for name, value in rows.items() if value}


def of_offbeat(base, new):
    done = subprocess.run([OFFBEAT, "diff", "--json", "--sample-index=cpu", base, new], capture_output=True, text=True)
    check_equal((done.returncode, done.stderr), (0, ""), "offbeat diff; status and errors")
    rows = collections.Counter()
    for row in json.loads(done.stdout)["functions"]:
        is_named = re.fullmatch(r"(\S+) \[\S+\]", row["name"])  # one name in two modules is two rows here
        rows[comparable(is_named[1] if is_named else row["name"])] += row["difference"]
        check(is_named is None or is_named[1] == "init", f"{row['name']} names its module")
    return {name: value for name, value in rows.items() if value}


def fails_over(percent, base, new):
    done = subprocess.run([OFFBEAT, "diff", "--sample-index=cpu", f"--fail-over={percent}", base, new], capture_output=True, text=True)
    check(done.returncode in (0, 1), f"status {done.returncode}: {done.stderr}")
    return done.returncode == 1, done.stdout + done.stderr


def needs_tools():
    for tool in ("go", "gcc", "nm", "readelf", "strip"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed: builds are not compared with pprof (Debian: golang-go, gcc, binutils)")


def pairs():
    """(number, base, change, equal to base) with the random numbers of the pair."""
    kinds = ["full", "stripped", "full", "raw"]
    for pair in range(PAIRS):
        place, kind = pair % len(PLACES), kinds[pair // len(PLACES) % len(kinds)]
        yield pair, kind, builds(place, "full" if kind == "full" else "stripped"), random.Random(pair)


def weights_of(chance):
    names = [(f"work{i}", 1) for i in range(FUNCTIONS // 2)] + [(f"step{i}", 0) for i in range(FUNCTIONS // 2)] + [("init", 0), ("init", 1)]
    return {name: chance.uniform(1, 10) for name in names}


@case
def differences_of_builds_are_those_of_pprof():
    needs_tools()
    for pair, kind, (base, change, _), chance in pairs():
        weights = weights_of(chance)
        paths = [folder() / "base.pb.gz", folder() / "new.pb.gz"]
        write_recording(paths[0], base, chance, weights, kind)
        for name in chance.sample(sorted(weights), 3):
            weights[name] *= chance.choice([0, 0.5, 2])
        write_recording(paths[1], change, chance, weights, kind)
        check_equal(of_offbeat(*paths), of_pprof(*paths), f"pair {pair}, {kind} names, {base.program} and {change.program}")


@case
def equal_builds_have_no_false_alarm():
    needs_tools()
    for pair, kind, (base, _, equal), chance in pairs():
        weights = weights_of(chance)
        paths = [folder() / "base.pb.gz", folder() / "new.pb.gz"]
        write_recording(paths[0], base, chance, weights, kind)
        write_recording(paths[1], equal, chance, weights, kind)
        has_failed, output = fails_over("2%", *paths)
        check(not has_failed, f"pair {pair}, {kind} names, {base.program} and {equal.program}: {output}")


@case
def a_slower_function_is_an_alarm():
    needs_tools()
    for pair, kind, (base, change, _), chance in pairs():
        if kind != "full":
            continue
        weights = weights_of(chance)
        paths = [folder() / "base.pb.gz", folder() / "new.pb.gz"]
        write_recording(paths[0], base, chance, weights, kind)
        weights["work3", 1] *= 6
        write_recording(paths[1], change, chance, weights, kind)
        has_failed, output = fails_over("5%", *paths)
        check(has_failed and "work3 grew" in output, f"pair {pair}, {base.program} and {change.program}: {output}")


@case
def recorded_builds_have_the_rows_of_pprof():
    needs_tools()
    for place in range(RECORDED):
        base, change, _ = builds(place, "full")
        paths = [folder() / f"recorded-{side}.pb.gz" for side in ("base", "new")]
        for build, path in zip((base, change), paths):
            done = subprocess.run([OFFBEAT, "record", "-o", path, build.program], capture_output=True, text=True)
            check_equal(done.returncode, 0, f"offbeat record: {done.stderr}; status")
        ours, theirs = of_offbeat(*paths), of_pprof(*paths)
        check_equal(ours, theirs, f"{base.program} and {change.program}")


try:
    main()
finally:
    if folder.cache_info().currsize:
        shutil.rmtree(folder(), ignore_errors=True)
