"""A thousand random combinations of filters on random profiles, each compared with the plain second implementation in
slow_filters.py; and what holds for every profile. FIRST_SEED can be set to try others. Argument: the program.
SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
import slow_filters as slow  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
FIRST_SEED = int(os.environ.get("FIRST_SEED", "1"))
COMBINATIONS = 1000
NAMES = ["main", "^main$", "parse", "^parse$", "work|crc32", "inflate", "zlib/", "libz", "prog$", r"operator\(\)", "nothing", "(?i)MAIN",
         "^f$|namespace", r"\.c$", "token", "/api", "worker"]
TAGS = ["endpoint=api", "endpoint=^/api$,login", "/api", "thread:worker-1,endpoint", "state=run", "bytes=1kb:4kb", "512b", ":1kb", "bytes=2kb:",
        "thread=worker", "1mb", "bytes=0b:100b"]
CHOICES = {"focus": NAMES, "ignore": NAMES, "hide": NAMES, "show": NAMES, "show-from": NAMES, "prune-from": NAMES, "tag-focus": TAGS, "tag-ignore": TAGS,
           "tag-show": ["endpoint", "^s"], "tag-hide": ["thread", "e$"], "tag-root": ["thread", "endpoint,state", "state"], "tag-leaf": ["endpoint", "state,thread"],
           "thread": ["worker", "1$", "10", "102", "10[12]"], "sample-index": ["samples", "cpu", "0"],
           "granularity": ["functions", "filefunctions", "files", "lines"], "no-inlines": [None], "mean": [None], "relative-percentages": [None],
           "divide-by": ["2"]}

NOT_OF_DIFF = ("mean", "divide-by", "relative-percentages", "sample-index")


def run(*words):
    done = subprocess.run([OFFBEAT, *words], capture_output=True, check=False)
    check(done.returncode == 0, f"offbeat {' '.join(map(str, words))}: status {done.returncode}, {done.stderr.decode()}")
    return json.loads(done.stdout)


def write(folder, name, samples):
    path = pathlib.Path(folder) / name
    path.write_bytes(slow.encode(samples))
    return path


def words_of(options):
    return [word for name, value in options.items() for word in ([f"--{name}"] if value is None else [f"--{name}", value])]


def random_options(chance):
    names = chance.sample(sorted(CHOICES), chance.randint(1, 5))
    options = {name: chance.choice(CHOICES[name]) for name in names}
    if "mean" in options:
        options.pop("divide-by", None)
    return options


def rows_of(report):
    rows = [(row["name"], (row["self"], row["total"])) for row in report["functions"]]
    check_equal(len(dict(rows)), len(rows), "rows of different names")
    return {name: numbers for name, numbers in rows if numbers != (0, 0)}


def calls_of(report):
    calls = {}
    for row in report["functions"]:
        for callee in row["callees"]:
            check(not callee["indirect"], "a call goes through functions that were left out")
            calls[(row["name"], callee["name"])] = callee["weight"]
        for caller in row["callers"]:
            calls.setdefault((caller["name"], row["name"]), caller["weight"])
            check_equal(calls[(caller["name"], row["name"])], caller["weight"], "the two sides of a call")
    return {pair: weight for pair, weight in calls.items() if weight}


def scaled(value, options):
    half = float(options.get("divide-by", 1)) / 2
    return int((abs(value) + half) // (2 * half)) * (1 if value >= 0 else -1)


def compare(report, samples, total_samples, options):
    left = slow.filtered(samples, options)
    rows, calls = slow.compute(left, options)
    expected = {name: tuple(scaled(number, options) for number in numbers) for name, numbers in rows.items()}
    check_equal(rows_of(report), {name: numbers for name, numbers in expected.items() if numbers != (0, 0)}, "rows")
    total = slow.total_of(left if "relative-percentages" in options else total_samples, options)
    check_equal(report["total"], scaled(total, options), "total")
    return left, calls


def try_one(folder, seed):
    chance = slow.seeded(seed)
    samples, locations = slow.random_profile(chance)
    options = random_options(chance)
    path, sources = write(folder, "x.pb", samples), []
    if chance.random() < 0.25:
        base, _ = slow.random_profile(chance, locations)
        base += [sample for sample in samples if chance.random() < 0.3]
        options.pop("mean", None)
        kind = chance.choice(["base", "diff-base"])
        sources = [f"--{kind}", write(folder, "base.pb", base)]
        samples = slow.subtracted(samples, base, kind == "diff-base")
    words = words_of(options)
    left, calls = compare(run("top", "--json", "-n0", path, *words, *sources), samples, samples, options)
    if seed % 2 == 0:
        options.pop("divide-by", None)  # the call graph in JSON is not divided
        words = words_of(options)
        report = run("tree", "--json", "--no-trim", path, *words, *sources)
        compare(report, samples, samples, options)
        check_equal(calls_of(report), {pair: weight for pair, weight in calls.items() if weight}, "calls")
    if seed % 2 == 1 and not sources:
        report = run("tags", "--json", path, *(words_of({name: value for name, value in options.items() if is_option_of_tags(name)})))
        found = {key: {one["value"]: one["sum"] for one in values if one["sum"]} for key, values in report["tags"].items()
                 if key not in ("bytes", "thread_id")}
        check_equal(found, slow.tag_sums(left, options), "labels")


def sides_of(report):
    return {row["name"]: tuple((row[side]["self"], row[side]["total"], row[side]["total_samples"]) for side in ("base", "new"))
            for row in report["functions"]}


@case
def diff_of_random_profiles_agrees_with_the_second_implementation():
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FIRST_SEED, FIRST_SEED + 200):
            chance = slow.seeded(seed)
            base, locations = slow.random_profile(chance)
            new = slow.random_profile(chance, locations)[0] + [one for one in base if chance.random() < 0.5]
            options = {name: value for name, value in random_options(chance).items() if name not in NOT_OF_DIFF}
            paths = write(folder, "base.pb", base), write(folder, "new.pb", new)
            report = run("diff", "--json", *paths, *words_of(options))
            sides = [slow.filtered(samples, options) for samples in (base, new)]
            times, counts = ([slow.compute(side, {**options, "sample-index": index})[0] for side in sides] for index in ("cpu", "samples"))
            expected = {}
            for name in {name for rows in times for name in rows}:
                rows = tuple((*times[side].get(name, (0, 0)), counts[side].get(name, (0, 0))[1]) for side in (0, 1))
                if rows[0][0] != rows[1][0]:
                    expected[name] = rows
            found = sides_of(report)
            found.pop("(no stack)", None)
            check_equal(found, expected, f"seed {seed}, {' '.join(words_of(options))}: functions")
            check_equal(sum(row["difference"] for row in report["functions"]), report["difference"], f"seed {seed}: sum of differences")
            check_equal((report["base"]["total"], report["new"]["total"]),
                        tuple(sum(sample.values[1] for sample in side) for side in sides), f"seed {seed}: totals")


def is_option_of_tags(name):
    return name not in ("granularity", "no-inlines", "mean", "divide-by")


@case
def random_filters_agree_with_a_second_implementation():
    print(f"# seeds {FIRST_SEED} to {FIRST_SEED + COMBINATIONS - 1}")
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FIRST_SEED, FIRST_SEED + COMBINATIONS):
            try:
                try_one(folder, seed)
            except Exception as error:
                chance = slow.seeded(seed)
                slow.random_profile(chance)
                raise type(error)(f"seed {seed}, {' '.join(map(str, words_of(random_options(chance))))}: {error}") from error


@case
def what_functions_have_for_themselves_sums_up_to_the_total():
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(50):
            samples, _ = slow.random_profile(slow.seeded(seed))
            samples = [sample for sample in samples if sample.stack]
            report = run("top", "--json", write(folder, "x.pb", samples))
            check_equal(sum(row["self"] for row in report["functions"]), report["total"], f"seed {seed}: sum of self")
            check_equal(report["total"], sum(sample.values[1] for sample in samples), f"seed {seed}: total")


@case
def the_totals_of_the_roots_sum_up_to_the_total():
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(50):
            samples, _ = slow.random_profile(slow.seeded(seed))
            report = run("top", "--json", "--tag-root", "state", write(folder, "x.pb", samples))
            roots = {"run", "wait", "<unknown>"}
            check_equal(sum(row["total"] for row in report["functions"] if row["name"] in roots), report["total"], f"seed {seed}")


@case
def a_profile_has_no_difference_with_itself():
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(50):
            path = write(folder, "x.pb", slow.random_profile(slow.seeded(seed))[0])
            report = run("top", "--json", path, "--base", path)
            check_equal((report["total"], report["functions"]), (0, []), f"seed {seed}: --base")
            report = run("diff", "--json", path, path)
            check_equal((report["difference"], report["functions"], report["exceeding_noise"]), (0, [], 0), f"seed {seed}: diff")
            report = run("top", "--json", path, "--diff-base", path)
            check_equal(rows_of(report), {}, f"seed {seed}: --diff-base")


@case
def the_top_of_a_merged_profile_is_the_sum_of_the_tops():
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(50):
            chance, tops, paths = slow.seeded(seed), [], []
            for number in range(3):
                paths.append(write(folder, f"{number}.pb", slow.random_profile(chance)[0]))
                tops.append(rows_of(run("top", "--json", paths[-1])))
            merged = pathlib.Path(folder) / "merged.pb"
            subprocess.run([OFFBEAT, "merge", *paths, "-o", merged], check=True, capture_output=True)
            sums = {name: tuple(sum(top.get(name, (0, 0))[place] for top in tops) for place in (0, 1)) for top in tops for name in top}
            check_equal(rows_of(run("top", "--json", merged)), sums, f"seed {seed}: merge, then top")
            check_equal(rows_of(run("top", "--json", *paths)), sums, f"seed {seed}: top of three files")


main()
