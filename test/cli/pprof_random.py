"""pprof and `offbeat pprof` print the same for random flags on real profiles and on pprof's own test profiles. What differs on purpose is named
below, and in offbeat-pprof(1) under Differences. FIRST_SEED can be set to try other flags.

    pprof_random.py OFFBEAT COUNT

SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from fixtures import CONFORMANCE, REAL  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT, COUNT = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2])
RUNS_MAX = 8
FIRST_SEED = int(os.environ.get("FIRST_SEED", "1"))

REPORTS = ["top"] * 5 + ["tree"] * 4 + ["dot"] * 4 + ["peek"] * 2 + ["callgrind"] * 2 + ["traces", "raw", "list", "comments"]
EXPRESSIONS = ["main", "runtime", "nothing_here", "(?i)GC", r"\.go$", "js$", "java", ".*"]
TAGS = ["bytes=1kb:", "bytes", "1:", "thread", "a=b", "key1", "key1=tag1", "512b", "1mb:", "500b:4kb", "tag1,tag2"]
KEYS = ["bytes", "thread", "key1", "key2,bytes", "x"]
UNITS = ["ms", "s", "kb", "MB", "auto", "minimum", "us", "count", "hrs", "GB", "B", "ns", "m", "xyz", "gcu"]
# Each with its chance.
SWITCHES = {"cum": .2, "mean": .1, "call_tree": .1, "drop_negative": .08, "relative_percentages": .15, "compact_labels": .1, "noinlines": .15}
VALUES = {"unit": (UNITS, .15), "divide_by": (["2", "3.5", "0.1", "1000", "-1"], .12), "nodecount": ([0, 1, 3, 5, 10, 30, 100, -1], .25),
          "nodefraction": ([0, 0.001, 0.01, 0.1, 0.3], .2), "edgefraction": ([0, 0.01, 0.1, 0.3], .2), "trim": (["true", "false"], .12),
          "tagfocus": (TAGS, .12), "tagignore": (TAGS, .08), "tagshow": (KEYS, .06), "taghide": (KEYS, .06), "tagroot": (KEYS, .08), "tagleaf": (KEYS, .08)}
FILTERS = {"focus": .2, "ignore": .15, "hide": .15, "show": .1, "show_from": .1, "prune_from": .1}
GRANULARITIES = ["functions", "filefunctions", "files", "lines", "addresses"]


class Profile:
    def __init__(self, path):
        report = json.loads(subprocess.run([OFFBEAT, "top", "--json", "-n0", path], capture_output=True, check=True).stdout)
        info = json.loads(subprocess.run([OFFBEAT, "info", "--json", path], capture_output=True, check=True).stdout)
        words = [re.split(r"\W+", row["name"]) for row in report["functions"][:60]]
        self.path, self.words = str(path), [word for some in words for word in some if word]
        self.types = [one["type"] for one in info["sample_types"]]


# --- Random flags ----------------------------------------------------------------------------------------------------


def expression(chance, profile):
    if not profile.words or chance.random() < .15:
        return chance.choice(EXPRESSIONS)
    words = chance.choices(profile.words, k=2)
    return chance.choice([words[0], words[0], "^" + words[0], "|".join(words)])


def random_flags(chance, profile, profiles):
    report = chance.choice(REPORTS)
    flags = [f"-{report}={expression(chance, profile)}" if report in ("peek", "list") else f"-{report}"]
    if chance.random() < .5:
        flags.append("-" + chance.choice(GRANULARITIES))
    flags += [f"-{name}" for name, part in SWITCHES.items() if chance.random() < part]
    flags += [f"-{name}={chance.choice(values)}" for name, (values, part) in VALUES.items() if chance.random() < part]
    flags += [f"-{name}={expression(chance, profile)}" for name, part in FILTERS.items() if chance.random() < part]
    if chance.random() < .35:
        flags.append(f"-sample_index={chance.choice(profile.types + list(map(str, range(len(profile.types)))))}")
    if chance.random() < .2:
        base = chance.choice([other for other in profiles if set(other.types) & set(profile.types)])
        flags.append(f"-{chance.choice(['base', 'diff_base'])}={base.path}")
        flags += ["-normalize"] if chance.random() < .3 else []
    if "-call_tree" in flags:
        flags.append("-nodecount=0")  # which of equal nodes pprof leaves out differs from run to run
    return flags + [profile.path] + ([chance.choice(profiles).path] if chance.random() < .1 else [])


# --- Differences -----------------------------------------------------------------------------------------------------


def has(flags, *names):
    return any(flag.split("=")[0].lstrip("-") in names for flag in flags)


def is_not_compared(flags):
    """Go 1.19's pprof ignores -noinlines in -callgrind, the newest does not; of call trees, the order, which the text depends on, differs from run to
    run. -list -mean: pprof prints sums. A tag filter that removes the label pprof::base changes pprof's percentages."""
    return (has(flags, "callgrind") and has(flags, "noinlines", "call_tree") or has(flags, "list") and has(flags, "mean")
            or has(flags, "diff_base") and has(flags, "tagshow", "taghide"))


def samples_with_places(text):
    """-raw: by the texts of locations, as offbeat keeps the numbers that they have in the file, and adds no mapping to a file without one.
    Go 1.19's pprof knows no columns."""
    head, _, rest = text.partition("Samples:\n")
    samples, _, rest = rest.partition("Locations\n")
    places, number = {}, ""
    for line in rest.partition("Mappings\n")[0].splitlines():
        match = re.match(r" *(\d+): (.*)", line)
        number = match[1] if match else number
        place = (match[2] if match else line).strip().replace(" M=1", "")
        places.setdefault(number, []).append(re.sub(r"(:-?\d+):0( s=)", r"\1\2", place))
    return head + re.sub(r"^((?: +-?\d+)+: )([\d ]*)$", lambda match: match[1] + " / ".join("|".join(places[one]) for one in match[2].split()), samples,
                         flags=re.MULTILINE)


def comparable(flags, text):
    """Go 1.19's pprof writes times in another way than the newest."""
    text = re.sub(r"Time: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|\w+ \d+, \d+ at [\d:apm]+ \(UTC\))", "Time: T", text)
    if has(flags, "raw"):
        text = samples_with_places(text)
    if has(flags, "dot"):  # without calls of a function of sum 0, which is not listed
        text = re.sub(r"^N\d+ -> N0 .*\n|^N0 -> .*\n", "", text, flags=re.MULTILINE)
    # pprof's order of nodes of one name, and of calls of weights 1 and -1, differs from run to run. Calls of functions of sum 0 change the order.
    if has(flags, "base", "diff_base") or has(flags, "dot") and has(flags, "call_tree", "mean"):
        text = "\n".join(sorted(re.sub(r"\bN\d+|\bnode\d+", "N", text).splitlines()))
    return text


def is_output_of_ours_alone(theirs, ours):
    """Profiles of other period types are compared; functions whose sum is 0 are listed, and have a name as the callee of others. If the total
    is 0, pprof divides by it to choose colours."""
    if theirs.returncode == 0:
        return "\ncfn=\n" in theirs.stdout or theirs.stdout.startswith("digraph") and " of 0 total" in theirs.stdout
    return ours.returncode == 0 and ("incompatible" in theirs.stderr or
                                     "no matches found" in theirs.stderr and " 0          0 (flat, cum)" in ours.stdout)


# --- The comparison --------------------------------------------------------------------------------------------------


def run(program, flags, folder):
    return subprocess.run([*program, "-symbolize=none", *flags], capture_output=True, text=True, errors="replace", check=False, cwd=folder,
                          env={**os.environ, "TZ": "UTC", "HOME": folder, "PPROF_TMPDIR": folder})


def compare(pprof, flags, folder, seed):
    """Whether there was something to compare."""
    theirs, ours = run([pprof], flags, folder), run([OFFBEAT, "pprof"], flags, folder)
    if theirs.returncode != 0 and ours.returncode != 0 or is_output_of_ours_alone(theirs, ours):
        return False
    where = f"seed {seed}: {' '.join(flags)}"
    check_equal(ours.returncode, theirs.returncode, f"{where}: {theirs.stderr}{ours.stderr}; status")
    for _ in range(RUNS_MAX):  # of call trees, which of equal calls pprof leaves out differs from run to run
        if comparable(flags, ours.stdout) == comparable(flags, theirs.stdout):
            return True
        theirs = run([pprof], flags, folder)
    check_equal(comparable(flags, ours.stdout), comparable(flags, theirs.stdout), where)
    return True


@case
def prints_what_pprof_prints_for_random_flags():
    if not shutil.which("go"):
        skip("go is not installed (Debian: golang-go)")
    if not CONFORMANCE.exists():
        skip(f"{CONFORMANCE} is not there")
    pprof = subprocess.run(["go", "tool", "-n", "pprof"], capture_output=True, text=True, check=True).stdout.strip()
    groups = [[Profile(path) for path in paths] for paths in (sorted(REAL.glob("pprof/*/*.pb.gz")), sorted(CONFORMANCE.glob("profiles/*.pb.gz")))]
    check(min(map(len, groups)) >= 8, "too few profiles")
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
            chance = random.Random(seed)
            profiles = groups[seed % len(groups)]
            flags = random_flags(chance, chance.choice(profiles), profiles)
            compared += not is_not_compared(flags) and compare(pprof, flags, folder, seed)
    print(f"# {compared} of {COUNT} combinations were compared, from seed {FIRST_SEED}")
    check(compared >= COUNT / 2, f"only {compared} of {COUNT} combinations could be compared")


main()
