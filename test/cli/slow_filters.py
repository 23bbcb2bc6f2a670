"""A plain, slow second implementation of what the reports compute, to compare the program with: small random profiles as
Python objects, their encoding as profile.proto, and the filters, rows and calls of a report, sample by sample and frame by
frame. It follows the description of pprof's filters and shares nothing with the program. SPDX-License-Identifier: MIT"""
import collections
import dataclasses
import random
import re

from pprof_written import varint

MAPPINGS = [(0x400000, 0x500000, "/usr/bin/prog"), (0x7000000, 0x7100000, "/usr/lib/libz.so.1")]
# name, file, mapping
FUNCTIONS = [("main", "main.c", 0), ("parse(int)", "parse.c", 0), ("parse::token", "parse.c", 0), (".start", "main.c", 0),
             ("operator()(char)", "call.cc", 0), ("work", "work.c", 0), ("inflate", "zlib/inflate.c", 1),
             ("crc32", "zlib/crc32.c", 1), ("main.loop", "loop.go", 0), ("(anonymous namespace)::f(int)", "call.cc", 0)]
UNITS = {"b": 1, "bytes": 1, "kb": 1024, "mb": 1024 * 1024}


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    file: str
    number: int


@dataclasses.dataclass(frozen=True)
class Location:
    mapping: int  # -1: none
    address: int
    lines: tuple  # innermost first

    def file(self):
        return MAPPINGS[self.mapping][2] if self.mapping >= 0 else ""


@dataclasses.dataclass
class Sample:
    stack: tuple  # leaf first
    values: list
    texts: tuple = ()    # (key, text)
    numbers: tuple = ()  # (key, number, unit)
    is_base: bool = False


# --- Random profiles -------------------------------------------------------------------------------------------------


def random_location(chance):
    mapping = chance.choice([0, 0, 0, 1])
    functions = [function for function in FUNCTIONS if function[2] == mapping]
    count = chance.choice([0, 1, 1, 1, 1, 2, 3])
    lines = tuple(Line(name, file, chance.randint(1, 3)) for name, file, _ in chance.choices(functions, k=count))
    return Location(mapping, MAPPINGS[mapping][0] + 16 * chance.randint(1, 400), lines)


def random_sample(chance, locations):
    stack = tuple(chance.choices(locations, k=chance.choice([0, 1, 2, 3, 4, 5, 6, 7])))
    texts, numbers = (), ()
    if chance.random() < 0.6:
        texts += (("endpoint", chance.choice(["/api", "/login", "/api/list"])),)
    if chance.random() < 0.3:
        texts += (("state", chance.choice(["run", "wait"])),)
    if chance.random() < 0.5:
        numbers += (("bytes", chance.choice([0, 100, 512, 1024, 2048, 4096, 1 << 20]), "bytes"),)
    if chance.random() < 0.5:
        thread = chance.randint(1, 3)
        texts += (("thread", f"worker-{thread}"),)
        numbers += (("thread_id", 100 + thread, ""),)
    return Sample(stack, [chance.randint(1, 5), 1000 * chance.randint(1, 90)], texts, numbers)


def random_profile(chance, locations=None):
    locations = locations or [random_location(chance) for _ in range(14)]
    return [random_sample(chance, locations) for _ in range(chance.randint(1, 25))], locations


# --- profile.proto ---------------------------------------------------------------------------------------------------


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b""
    return varint(number << 3 | 2) + varint(len(value)) + value


def encode(samples):
    strings, functions, locations = {"": 0}, {}, {}

    def string(text):
        return strings.setdefault(text, len(strings))

    def number_of(table, key):
        return table.setdefault(key, len(table) + 1)

    out = b"".join(field(1, field(1, string(kind)) + field(2, string(unit)))
                   for kind, unit in (("samples", "count"), ("cpu", "nanoseconds")))
    for sample in samples:
        message = b"".join(field(1, number_of(locations, location)) for location in sample.stack)
        message += b"".join(varint(2 << 3) + varint(value) for value in sample.values)
        message += b"".join(field(3, field(1, string(key)) + field(2, string(text))) for key, text in sample.texts)
        message += b"".join(field(3, field(1, string(key)) + field(3, number) + field(4, string(unit)))
                            for key, number, unit in sample.numbers)
        out += field(2, message)
    for index, (start, limit, name) in enumerate(MAPPINGS):
        out += field(3, field(1, index + 1) + field(2, start) + field(3, limit) + field(5, string(name)))
    for location, number in locations.items():
        lines = b"".join(field(4, field(1, number_of(functions, (line.name, line.file))) + field(2, line.number))
                         for line in location.lines)
        out += field(4, field(1, number) + field(2, location.mapping + 1) + field(3, location.address) + lines)
    for (name, file), number in functions.items():
        out += field(5, field(1, number) + field(2, string(name)) + field(4, string(file)))
    return out + b"".join(varint(6 << 3 | 2) + varint(len(text.encode())) + text.encode() for text in strings)


# --- Filters ---------------------------------------------------------------------------------------------------------


def labels_of(sample, key):
    return [text for name, text in sample.texts if name == key]


def tag_values(sample, key):
    """Numbers as the program prints them; the test does not tag by other numbers than plain ones."""
    return labels_of(sample, key) + [str(number) for name, number, _ in sample.numbers if name == key]


def add_tag_frames(samples, root, leaf):
    def frames(sample, keys):
        return tuple(Location(-1, 0, (Line(",".join(tag_values(sample, key)), key, 0),)) for key in reversed(keys))

    for sample in samples:
        sample.stack = frames(sample, leaf) + sample.stack + frames(sample, root)


def line_matches(line, expression):
    return bool(expression.search(line.name) or expression.search(line.file))


def location_matches(location, expression):
    return bool(expression.search(location.file())) or any(line_matches(line, expression) for line in location.lines)


def hide(location, expression):
    if not location_matches(location, expression):
        return location
    if expression.search(location.file()):
        return None
    lines = tuple(line for line in location.lines if not line_matches(line, expression))
    return dataclasses.replace(location, lines=lines) if lines else None


def show(location, expression):
    lines = location.lines
    if not expression.search(location.file()):
        lines = tuple(line for line in lines if line_matches(line, expression))
    return dataclasses.replace(location, lines=lines) if lines else None


def outermost_match(location, expression):
    """LOCATION without the lines outside of the match; None without a match."""
    if expression.search(location.file()):
        return location
    places = [place for place, line in enumerate(location.lines) if line_matches(line, expression)]
    return dataclasses.replace(location, lines=location.lines[:places[-1] + 1]) if places else None


def simplify(name):
    name = name.removeprefix(".")
    place = 0
    while place < len(name):
        for whole in ("(anonymous namespace)", "operator()"):
            if name.startswith(whole, place):
                place += len(whole)
                break
        else:
            if name[place] == "(":
                return name[:place]
            place += 1
    return name


def prune(location, expression):
    for place, line in enumerate(location.lines):
        if line.name and expression.search(simplify(line.name)):
            return dataclasses.replace(location, lines=location.lines[place:])
    return None


def by_names(samples, options):
    focus, ignore, hidden, shown = (options.get(name) and re.compile(options[name]) for name in ("focus", "ignore", "hide", "show"))
    if not (focus or ignore or hidden or shown):
        return samples
    kept = []
    for sample in samples:
        ignored = [location for location in sample.stack if ignore and location_matches(location, ignore)]
        focused = [location for location in sample.stack if not focus or location_matches(location, focus)]
        if ignored or not focused:
            continue
        stack = sample.stack
        if hidden:
            stack = tuple(filter(None, (hide(location, hidden) for location in stack)))
        if shown:
            stack = tuple(filter(None, (show(location, shown) for location in stack)))
        if stack:
            kept.append(dataclasses.replace(sample, stack=stack))
    return kept


def by_show_from(samples, pattern):
    expression, kept = re.compile(pattern), []
    for sample in samples:
        matches = [outermost_match(location, expression) for location in sample.stack]
        places = [place for place, match in enumerate(matches) if match]
        if places:
            stack = tuple(match or location for match, location in zip(matches, sample.stack))[:places[-1] + 1]
            kept.append(dataclasses.replace(sample, stack=stack))
    return kept


def by_prune_from(samples, pattern):
    expression, kept = re.compile(pattern), []
    for sample in samples:
        pruned = [prune(location, expression) for location in sample.stack]
        places = [place for place, location in enumerate(pruned) if location]
        stack = tuple(cut or location for cut, location in zip(pruned, sample.stack))
        kept.append(dataclasses.replace(sample, stack=stack[places[0]:] if places else sample.stack))
    return kept


def limit_of(text):
    number, unit = re.fullmatch(r"(\d+)([a-z]+)", text).groups()
    return int(number) * UNITS[unit]


def has_tag(sample, text):
    key, _, value = text.rpartition("=")
    ends = re.fullmatch(r"(\d+[a-z]+)?(:?)(\d+[a-z]+)?", value)
    if ends and value not in ("", ":"):
        low, colon, high = ends.groups()
        numbers = [number * UNITS[unit] for name, number, unit in sample.numbers if unit in UNITS and key in ("", name)]
        if not colon:
            return any(number == limit_of(low) for number in numbers)
        return any((not low or number >= limit_of(low)) and (not high or number <= limit_of(high)) for number in numbers)
    expressions = [re.compile(one) for one in value.split(",")]
    if key:
        return any(one.search(text) for one in expressions for text in labels_of(sample, key))
    return all(any(one.search(f"{name}:{text}") for name, text in sample.texts) for one in expressions)


def in_thread(sample, pattern):
    names, ids = labels_of(sample, "thread"), [str(number) for key, number, _ in sample.numbers if key == "thread_id"]
    return any(re.search(pattern, name) for name in names) or any(re.fullmatch(pattern, number) for number in ids)


def filtered(samples, options):
    samples = [dataclasses.replace(sample) for sample in samples]
    if "thread" in options:
        samples = [sample for sample in samples if in_thread(sample, options["thread"])]
    add_tag_frames(samples, *(options[name].split(",") if name in options else [] for name in ("tag-root", "tag-leaf")))
    samples = by_names(samples, options)
    if "show-from" in options:
        samples = by_show_from(samples, options["show-from"])
    if "tag-focus" in options:
        samples = [sample for sample in samples if has_tag(sample, options["tag-focus"])]
    if "tag-ignore" in options:
        samples = [sample for sample in samples if not has_tag(sample, options["tag-ignore"])]
    if "prune-from" in options:
        samples = by_prune_from(samples, options["prune-from"])
    return samples


def subtracted(samples, base, is_diff):
    """SAMPLES less BASE: equal samples are one, unless the base stays apart."""
    sums = collections.defaultdict(lambda: [0, 0])
    for sign, is_base, part in ((1, False, samples), (-1, is_diff, base)):
        for sample in part:
            total = sums[(sample.stack, tuple(sorted(sample.texts)), tuple(sorted(sample.numbers)), is_base)]
            total[:] = [old + sign * value for old, value in zip(total, sample.values)]
    return [Sample(stack, values, texts, numbers, is_base) for (stack, texts, numbers, is_base), values in sums.items() if any(values)]


# --- Reports ---------------------------------------------------------------------------------------------------------


def frame_name(location, line, granularity):
    if line is None or not (line.name or (line.file and granularity != "functions")):
        if location.mapping < 0:
            return "<unknown>"
        start, _, file = MAPPINGS[location.mapping]
        return f"{file.rsplit('/', 1)[1]}+0x{location.address - start:x}"
    place = {"functions": "", "filefunctions": line.file, "files": line.file,
             "lines": f"{line.file}:{line.number}" if line.number else line.file}[granularity]
    name = "" if granularity == "files" else line.name
    return " ".join(part for part in (name, place) if part)


def frames_of(sample, options):
    """Names, leaf first."""
    names = []
    for location in sample.stack:
        lines = location.lines[-1:] if "no-inlines" in options else location.lines
        names += [frame_name(location, line, options.get("granularity", "functions")) for line in lines or [None]]
    return names


def divided(total, divisor):
    if divisor == 0:
        return total
    quotient = abs(total) // abs(divisor)
    return quotient if (total < 0) == (divisor < 0) else -quotient


def column_of(options):
    return {"samples": 0, "0": 0}.get(options.get("sample-index", "cpu"), 1)


def mean_or_sum(sums, options):
    return divided(sums[1], sums[0]) if "mean" in options else sums[1]


def total_of(samples, options):
    base = [sample for sample in samples if sample.is_base]
    column = column_of(options)

    def sums(part):
        return sum(sample.values[0] for sample in part), sum(abs(sample.values[column]) for sample in part)

    return mean_or_sum(sums(base if sums(base)[1] > 0 else samples), options)


def compute(samples, options):
    """(rows: name → (self, total), calls: (caller, callee) → weight), of filtered samples."""
    own, total, calls = (collections.defaultdict(lambda: [0, 0]) for _ in range(3))
    column = column_of(options)
    for sample in samples:
        names = frames_of(sample, options)
        added = (sample.values[0], sample.values[column])
        pairs = {(caller, callee) for callee, caller in zip(names, names[1:]) if caller != callee}
        for table, keys in ((own, names[:1]), (total, set(names)), (calls, pairs)):
            for key in keys:
                table[key][0] += added[0]
                table[key][1] += added[1]
    rows = {name: (mean_or_sum(own[name], options), mean_or_sum(total[name], options)) for name in total}
    return rows, {pair: mean_or_sum(sums, options) for pair, sums in calls.items()}


def tag_sums(samples, options):
    """key → value → sum, of text labels."""
    sums = collections.defaultdict(lambda: collections.defaultdict(int))
    for sample in samples:
        for key, text in sample.texts:
            is_shown = "tag-show" not in options or re.search(options["tag-show"], key)
            if is_shown and not ("tag-hide" in options and re.search(options["tag-hide"], key)):
                sums[key][text] += sample.values[column_of(options)]
    return sums


def seeded(seed):
    return random.Random(seed)
