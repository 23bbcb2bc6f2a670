"""Flame graphs as files: well-formed whatever the names are, small, and interactive in a browser (headless Chromium).

    flame.py OFFBEAT

SPDX-License-Identifier: MIT"""
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import chromium  # noqa: E402
import svg as drawings  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402
from terminal import open_terminal, read_terminal  # noqa: E402

OFFBEAT = sys.argv[1]
STACKS = b"main;work;hash 60\nmain;work;copy 10\nmain;idle 20\nmain;work;hash;mix 5\nmain 5\n"
# Runs after the graph's own script, and stores its results in an attribute.
DRIVER = """<script><![CDATA[
(function () {
  const rects = Array.from(document.querySelectorAll("g.row rect"));
  const named = (name) => rects.find((rect) => rect.querySelector("title").textContent.split("\\n")[0] === name);
  const press = (key, options) => window.dispatchEvent(new KeyboardEvent("keydown",
    Object.assign({key, cancelable: true}, options || {})));
  const widths = () => Object.fromEntries(rects.map((rect) => [rect.querySelector("title").textContent.split("\\n")[0],
    rect.style.display === "none" ? -1 : Math.round(+rect.getAttribute("width"))]));
  const field = document.querySelector("foreignObject").firstChild;
  const seen = {first: widths()};
  named("work").dispatchEvent(new MouseEvent("click", {bubbles: true}));
  seen.zoomed = widths();
  press("Escape");
  seen.reset = widths();
  const find = new KeyboardEvent("keydown", {key: "f", ctrlKey: true, cancelable: true});
  window.dispatchEvent(find);
  seen.takesFind = find.defaultPrevented;
  field.value = "hash|MIX";
  field.dispatchEvent(new Event("input"));
  seen.matches = rects.filter((rect) => rect.classList.contains("match")).length;
  seen.result = document.getElementById("result").textContent;
  field.value = "(";
  field.dispatchEvent(new Event("input"));
  seen.literal = document.getElementById("result").textContent;
  press("Escape");
  seen.cleared = document.getElementById("result").textContent;
  for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowUp", "Enter"]) press(key);
  seen.selected = document.getElementById("selected").textContent;
  seen.entered = widths();
  document.documentElement.setAttribute("data-seen", encodeURIComponent(JSON.stringify(seen)));
})();
]]></script></svg>"""


def flame(stacks, *options):
    return subprocess.run([OFFBEAT, "flame", *options, "-"], input=stacks, check=True, capture_output=True).stdout


def shown(svg):
    """All that a reader sees of the drawing: its texts and tooltips."""
    return "".join(drawings.texts(svg))


@case
def random_names_make_well_formed_files_without_dangerous_characters():
    source = random.Random(1)
    pieces = ["<", ">", "&", "'", '"', "]]>", "\x01", "\x1b[31m", "\x7f", "\x85", "\u202e", "\u2066", "\u200f", "\ufeff",
              "\ufffe", "\uffff", "\u2028", "<script>", "</title>", "é", "漢", "\U0001f600", "a", "::", "."]
    for _ in range(40):
        names = ["x" + "".join(source.choice(pieces) for _ in range(source.randrange(1, 9))) for _ in range(6)]
        lines = [f"main;{';'.join(source.sample(names, 3))} {source.randrange(1, 50)}\n" for _ in range(20)]
        stacks = ("main 1\n" * 400 + "".join(lines)).encode().replace(b"x", b"\xff\xfe", 3)
        svg = flame(stacks)
        drawings.check_harmless(svg, script_count=1)
        check("\\" in shown(svg), "no name has reached the drawing")
        check_equal(len(drawings.elements(svg, "title")), len(drawings.elements(svg, "rect")) - 1, "titles: of all boxes, not of the ground")


@case
def a_large_profile_makes_a_file_below_1_mb():
    source = random.Random(2)
    name = "some::rather::long::namespace::function_of_a_large_program_number_{}"
    lines = [";".join(name.format(source.randrange(12)) for _ in range(20)) + f" {source.randrange(1, 100)}"
             for _ in range(20000)]
    svg = flame("\n".join(lines).encode())
    check(len(svg) < 1_000_000, f"{len(svg)} bytes")
    check(b"left out:" in svg, "no message that boxes were left out")


@case
def long_names_are_cut():
    svg = flame(b"main;" + b"n" * 100000 + b" 1\n")
    check(len(svg) < 30000, f"{len(svg)} bytes")


def on_a_terminal(*options, stacks=STACKS, **variables):
    """(status, output, messages) of a flame graph whose output is a terminal of 80 characters in a line."""
    leader, follower = open_terminal()
    environment = {**os.environ, "TERM": "xterm", **variables}
    with tempfile.NamedTemporaryFile() as file:
        file.write(stacks)
        file.flush()
        done = subprocess.run([OFFBEAT, "flame", "--no-pager", *options, file.name] if NO_PAGER else
                              [OFFBEAT, "flame", *options, file.name], stdout=follower, stderr=subprocess.PIPE, env=environment)
    os.close(follower)
    return done.returncode, read_terminal(leader), done.stderr.decode()


def help_has(option):
    return option in subprocess.run([OFFBEAT, "flame", "--help"], check=True, capture_output=True, text=True).stdout


NO_PAGER = help_has("--no-pager")


@case
def a_terminal_gets_text_and_no_drawing():
    status, output, messages = on_a_terminal(NO_COLOR="1")
    check_equal((status, messages), (0, ""), "status and messages")
    check("\033" not in output, "colours in spite of NO_COLOR")
    check(all(len(line) <= 80 for line in output.splitlines()), "a line is too long")
    names = [line.split()[-1] for line in output.splitlines()[2:]]
    check_equal(names, ["all", "main", "idle", "work", "copy", "hash", "mix"], "rows")
    status, output, messages = on_a_terminal("--to", "svg")
    check_equal((status, output), (2, ""), "a drawing to a terminal")
    check("-o OUT.svg" in messages, messages)


@case
def text_has_colours_on_a_terminal_only():
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    os.environ.pop("NO_COLOR", None)
    check("\033[" in on_a_terminal()[1], "no colours on a terminal")
    check("\033[" not in on_a_terminal(TERM="dumb")[1], "colours on a dumb terminal")
    os.environ.update(environment)
    check(b"\033" not in flame(STACKS, "--to", "text"), "colours in a pipe")


def rows_of(text):
    """(total, self, depth, name) of each row of the text, whose names are one word or "… N narrow boxes"."""
    rows = []
    for line in text.splitlines()[2:]:
        found = re.match(r" *(\d+) +[\d.]+% +(\d+)  .{24}  ( *)(.*)$", line)
        check(found, f"no row: {line!r}")
        rows.append((int(found[1]), int(found[2]), len(found[3]), found[4]))
    return rows


def check_sums(rows):
    """Each row is what the rows below it and its own part sum up to, unless nothing is below it."""
    for at, (total, own, depth, name) in enumerate(rows):
        children = []
        for row in rows[at + 1:]:
            if row[2] <= depth:
                break
            if row[2] == depth + 1:
                children.append(row[0])
        check(name.startswith("…") or total == own + sum(children), f"{name}: {total}, not {own} + {children}")


def random_stacks(seed, count=400, depth=9):
    source = random.Random(seed)
    lines = []
    for _ in range(count):
        names = [source.choice("abcdefgh") + str(level % 4) for level in range(source.randrange(1, depth))]
        lines.append(f"{';'.join(names)} {int(source.paretovariate(0.7))}\n")
    return "".join(lines).encode()


@case
def rows_of_text_add_up_and_narrow_ones_are_merged_and_counted():
    merged = 0
    for seed in range(20):
        rows = rows_of(flame(random_stacks(seed), "--to", "text").decode())
        check(len([row for row in rows if not row[3].startswith("…")]) <= 100, f"{len(rows)} rows")
        check_sums(rows)
        merged += sum(row[3].startswith("…") for row in rows)
    check(merged > 20, "hardly anything was merged")


def flame_json(stacks, *options):
    return json.loads(flame(stacks, "--json", *options))


@case
def what_is_left_out_is_counted_once():
    """The boxes' own parts and what is left out sum up to the total; the heading says the same sum."""
    for seed in range(30):
        stacks = random_stacks(seed)
        for options in ((), ("--inverted",), ("--nodecount", "20"), ("--inverted", "--nodecount", "7")):
            graph = flame_json(stacks, *options)
            own = sum(box["self"] for box in graph["boxes"])
            check_equal(own + graph["left_out"]["total"], graph["total"], f"sum {seed} {options}")
            heading = re.search(r"left out: (\d+) boxes (?:narrower than|of at most) [^ ]+ pixels \((\d+), ",
                                shown(flame(stacks, "--nodecount", "20")))
            check(int(heading[2]) <= graph["total"], f"more is left out than there is: {heading[0]}")
            if options == ("--nodecount", "20"):
                left_out = graph["left_out"]
                check_equal((int(heading[1]), int(heading[2])), (left_out["boxes"], left_out["total"]), "heading")
                check(left_out["boxes"] > 0, "nothing is left out")


# --- Flamecharts -----------------------------------------------------------------------------------------------------


def v1(samples):
    """A profile of V1 with SAMPLES: (nanosecond, thread, frames from the outermost on)."""
    names = sorted({name for _, _, frames in samples for name in frames})
    stacks = [list(stack) for stack in sorted({frames for _, _, frames in samples})]
    number = {tuple(stack): place for place, stack in enumerate(stacks)}
    return json.dumps({
        "version": "1", "event_id": "41fed0925670468bb0457f61a74688ec", "platform": "python", "release": "a@1",
        "timestamp": "2023-11-14T22:13:20.000000Z", "device": {"architecture": "x86_64"},
        "os": {"name": "Linux", "version": "6.1"}, "runtime": {"name": "CPython", "version": "3.11.2"},
        "transaction": {"id": "30976f2ddbe04ac9b6bffe6e35d4710c", "name": "GET", "active_thread_id": "1",
                        "trace_id": "4b25bc58f14243d8b208d1e22a054164"},
        "profile": {
            "samples": [{"elapsed_since_start_ns": str(time), "stack_id": number[frames], "thread_id": thread}
                        for time, thread, frames in samples],
            "stacks": [[names.index(name) for name in reversed(stack)] for stack in stacks],
            "frames": [{"function": name} for name in names],
            "thread_metadata": {"1": {"name": "one"}, "2": {"name": "two"}}}}).encode()


def random_samples(seed):
    source, time, samples = random.Random(seed), 0, []
    for _ in range(200):
        time += source.choice((0, 1, 1000, 1000000, 50000000))
        frames = tuple(source.choice("ab") for _ in range(source.randrange(1, 6)))
        samples.append((time, source.choice("12"), frames))
    return samples


def plain_chart(samples, thread):
    """The boxes of a flamechart, computed depth by depth: (depth, names from the root, start, duration, total)."""
    own = [(time, frames) for time, number, frames in samples if number == thread]
    boxes = [(0, (), own[0][0], own[-1][0] - own[0][0], own[-1][0] - own[0][0])]
    for depth in range(1, 6):
        current = None
        for (start, frames), (end, _) in zip(own, own[1:]):
            names = frames[:depth]
            if start == end:
                continue
            if current and current[1] == names:
                current = (depth, names, current[2], end - current[2], end - current[2])
                continue
            if current and len(current[1]) == depth:
                boxes.append(current)
            current = (depth, names, start, end - start, end - start)
        if current and len(current[1]) == depth:
            boxes.append(current)
    return sorted(boxes)


def found_boxes(chart):
    boxes, names = [], []
    for number, box in enumerate(chart["boxes"]):
        names.append(names[box["parent"]] + (box["name"],) if number else ())
        boxes.append((box["depth"], names[-1], box["start_ns"], box["duration_ns"], box["total"]))
    return sorted(boxes)


@case
def random_flamecharts_agree_with_a_plain_computation():
    for seed in range(30):
        samples = random_samples(seed)
        for thread in "12":
            chart = flame_json(v1(samples), "--time-order", "--thread", f"^{thread}$")
            check_equal(found_boxes(chart), plain_chart(samples, thread), f"boxes of thread {thread}, seed {seed}")
            check_equal(sum(box["self"] for box in chart["boxes"]), chart["total"], "sum")


@case
def narrow_boxes_of_a_flamechart_are_merged_and_sums_stay():
    for seed in range(20):
        profile = v1(random_samples(seed))
        for count in ("3", "10", "40"):
            chart = flame_json(profile, "--time-order", "--thread", "two", "--nodecount", count)
            boxes = chart["boxes"]
            check(len(boxes) <= int(count), f"{len(boxes)} boxes")
            check_equal(sum(box["self"] for box in boxes) + chart["left_out"]["total"], chart["total"], "sum")
            for number, box in enumerate(boxes):
                inside = sum(other["total"] for other in boxes[1:] if other["parent"] == number)
                check(inside + box["self"] <= box["total"], f"{box} is less than the boxes in it")


@case
def gaps_between_samples_are_visible():
    line = "work 7/7 {:.6f}: 10000000 cpu-clock:\n\t1000 f (work)\n\t2000 main (work)\n\n"
    times = (1.0, 1.01, 1.0200004, 1.5, 1.51)
    chart = flame_json("".join(line.format(time) for time in times).encode(), "--time-order", "--sample-index", "cpu-clock")
    mains = [(box["start_ns"], box["duration_ns"], box["total"]) for box in chart["boxes"] if box["depth"] == 1]
    check_equal([total for _, _, total in mains], [30000000, 20000000], "boxes to the left and right of the gap")
    check_equal(mains[1][0] - mains[0][0], 500000000, "place of the second")


# --- Comparisons -----------------------------------------------------------------------------------------------------


def compared(base, new, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "base"
        path.write_bytes(base)
        return flame(new, "--diff-base", str(path), *options)


@case
def a_profile_against_itself_is_neutral():
    for seed in range(10):
        stacks = random_stacks(seed)
        for options in ((), ("--inverted",)):
            graph = json.loads(compared(stacks, stacks, "--json", *options))
            check(all(box["base"] == box["total"] for box in graph["boxes"]), f"a box differs: {seed}")
            check_equal(graph["left_out"]["removed_boxes"], 0, "removed boxes")
            classes = set(re.findall(rb'<rect x[^>]*class="([^ "]*)', compared(stacks, stacks, *options)))
            check_equal(classes, {b"n0"}, "colours")


def sums_by_stack(stacks):
    sums = collections.Counter()
    for line in stacks.decode().splitlines():
        names, value = line.rsplit(" ", 1)
        names = tuple(names.split(";"))
        for end in range(len(names) + 1):
            sums[names[:end]] += int(value)
    return sums


@case
def comparisons_have_both_values_of_each_box():
    for seed in range(10):
        base, new = random_stacks(seed, 40), random_stacks(seed + 100, 40)
        graph = json.loads(compared(base, new, "--json"))
        sums, names = (sums_by_stack(base), sums_by_stack(new)), []
        for number, box in enumerate(graph["boxes"]):
            names.append(names[box["parent"]] + (box["name"],) if number else ())
            check_equal((box["base"], box["total"]), tuple(each[names[-1]] for each in sums), f"values of {names[-1]}")
        check_equal(set(names), set(sums[1]), "boxes")
        removed = [stack for stack in sums[0] if stack not in sums[1] and stack[:-1] in sums[1]]
        check_equal((graph["left_out"]["removed_boxes"], graph["left_out"]["removed_base"]),
                    (len(removed), sum(sums[0][stack] for stack in removed)), "what is only in the base")


@case
def colours_of_a_comparison_are_red_for_growth():
    svg = compared(b"m;a 50\nm;b 50\n", b"m;a 70\nm;b 30\nm;c 1\n").decode()
    classes = {name: colour for colour, name in re.findall(r'class="([^ "]*)[^"]*"><title>(\w+)', svg)}
    check_equal(classes, {"all": "n0", "m": "n0", "a": "g3", "b": "b4", "c": "g1"}, "colours")
    check("base: 50, 50.00%" in svg and "new: 70, 69.31%" in svg, "values of both")


@case
def diff_as_flame_is_the_flame_graph_with_a_base():
    with tempfile.TemporaryDirectory() as folder:
        base, new, drawing = (pathlib.Path(folder) / name for name in ("base.txt", "new.txt", "x.svg"))
        base.write_bytes(b"main;a 10\nmain;b 10\n")
        new.write_bytes(b"main;a 30\nmain;b 10\n")
        expected = subprocess.run([OFFBEAT, "flame", new, "--diff-base", base], check=True, capture_output=True).stdout
        subprocess.run([OFFBEAT, "diff", base, new, "--as", "flame", "-o", drawing], check=True)
        check(drawing.read_bytes() == expected, "another drawing than that of offbeat flame --diff-base")
        done = subprocess.run([OFFBEAT, "diff", base, new, "--as", "flame", "--fail-over", "5%"], capture_output=True, text=True, check=False)
        check_equal((done.returncode, "--fail-over is for the table" in done.stderr), (2, True), "a wrong use: " + done.stderr)


# --- In a browser ----------------------------------------------------------------------------------------------------


def many_nodes():
    """Stacks with 100 000 different chains of callers: a tree whose branches differ in weight."""
    source, lines = random.Random(5), []
    for branch in range(1000):
        lines.append(";".join(f"library::function_{source.randrange(9)}_of_{branch * level}" for level in range(101))
                     + f" {source.randrange(900, 1100)}\n")
    return "".join(lines).encode()


# What a reader waits for: the script that runs when the drawing is there, its layout, and then a click.
COUNTS = """<script><![CDATA[
(function () {
  const rects = document.querySelectorAll("g.row rect"), drawn = rects.length;
  rects[rects.length - 1].dispatchEvent(new MouseEvent("click", {bubbles: true}));
  const seen = {drawn, zoomed: document.querySelectorAll("g.row rect").length};
  document.documentElement.setAttribute("data-seen", encodeURIComponent(JSON.stringify(seen)));
})();
]]></script></svg>"""


def run_in_chromium(svg, driver=DRIVER):
    with tempfile.TemporaryDirectory() as folder, chromium.started() as browser:
        path = pathlib.Path(folder) / "x.svg"
        path.write_bytes(svg.replace(b"</svg>", driver.encode()))
        browser.open(path.as_uri())
        return json.loads(urllib.parse.unquote(browser.wait("document.documentElement.getAttribute('data-seen')")))


@case
def a_drawing_of_100_000_nodes_makes_elements_of_its_widest_boxes():
    stacks = many_nodes()
    check(len(flame_json(stacks)["boxes"]) > 90000, "there are fewer nodes")
    widest, everything = flame(stacks), flame(stacks, "--nodecount", "0")
    check(len(widest) < 1_000_000 and b"left out: " in widest, f"{len(widest)} bytes")
    check(len(everything) < 6_000_000 and b"left out: " not in everything, f"{len(everything)} bytes")
    for svg in (widest, everything):
        seen = run_in_chromium(svg, COUNTS)
        check(3000 < seen["drawn"] <= 10001 and seen["zoomed"] <= 20001, f"elements: {seen}")


# A box that is too narrow in the drawing is there once a part is enlarged, and is found before.
NARROW = """<script><![CDATA[
(function () {
  const rects = () => Array.from(document.querySelectorAll("g.row rect"));
  const tips = () => rects().filter((rect) => rect.style.display !== "none").map((rect) => rect.textContent);
  const press = (key) => window.dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
  const field = document.querySelector("foreignObject").firstChild;
  const seen = {first: tips()};
  field.value = "^leaf_7_";
  field.dispatchEvent(new Event("input"));
  seen.result = document.getElementById("result").textContent;
  const branch = rects().find((rect) => rect.textContent.startsWith("branch_7\\n"));
  branch.dispatchEvent(new MouseEvent("click", {bubbles: true}));
  seen.zoomed = tips();
  seen.matches = document.querySelectorAll(".match").length;
  seen.widths = rects().filter((rect) => rect.textContent.startsWith("leaf_7_")).map((rect) => +rect.getAttribute("width"));
  press("Escape");
  seen.reset = tips();
  document.documentElement.setAttribute("data-seen", encodeURIComponent(JSON.stringify(seen)));
})();
]]></script></svg>"""


@case
def narrow_boxes_appear_when_a_part_is_enlarged():
    stacks = "".join(f"main;branch_{branch};leaf_{branch}_{leaf} {leaf}\n"
                     for branch in range(20) for leaf in range(1, 1001)).encode()
    svg = flame(stacks, "--nodecount", "0")
    check(b"narrow boxes appear when a part is enlarged" in svg, "the heading does not name them")
    check("left out" not in shown(svg), "boxes are left out")
    seen = run_in_chromium(svg, NARROW)
    check(3000 < len(seen["first"]) <= 10001, f"{len(seen['first'])} boxes are drawn at first")
    check_equal(sorted(seen["reset"]), sorted(seen["first"]), "boxes after Escape")
    check_equal(seen["result"], "matched 5.00% of the drawing, boxes: 1000", "search")
    expected = {f"leaf_7_{leaf}\n{leaf}, " for leaf in range(105, 1001)}  # at least a quarter of a pixel wide
    found = {tip.split(", ")[0] + ", " for tip in seen["zoomed"]}
    check(expected <= found, f"not shown: {sorted(expected - found)[:5]} of {len(found)}")
    check(not any(tip.startswith("leaf_8_") for tip in seen["zoomed"]), "another part is shown")
    check_equal(seen["matches"], len(seen["widths"]), "matches that are drawn")
    check(abs(sum(seen["widths"]) - 1200) < 60, f"the enlarged boxes are {sum(seen['widths'])} pixels wide")


@case
def chromium_zooms_searches_and_obeys_the_keyboard():
    seen = run_in_chromium(flame(STACKS))
    first = {"all": 1200, "main": 1200, "idle": 240, "work": 900, "copy": 120, "hash": 780, "mix": 60}
    check_equal(seen["first"], first, "boxes")
    check_equal(seen["zoomed"], {"all": 1200, "main": 1200, "idle": -1, "work": 1200, "copy": 160, "hash": 1040, "mix": 80},
                "boxes after a click")
    check_equal(seen["reset"], first, "boxes after Escape")
    check(seen["takesFind"], "Ctrl-F opened the browser's own search")
    check_equal((seen["matches"], seen["result"]), (2, "matched 65.00% of the drawing, boxes: 2"), "search")
    check_equal(seen["literal"], "matched 0.00% of the drawing, boxes: 0", "search for what is no expression")
    check_equal(seen["cleared"], "", "search after Escape")
    check(seen["selected"].startswith("work · 75, 75.00%"), f"selected: {seen['selected']}")
    check_equal(seen["entered"], seen["zoomed"], "boxes after arrows and Enter")


main()
