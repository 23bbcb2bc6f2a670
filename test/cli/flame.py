"""Flame graphs as files: well-formed whatever the names are, small, and interactive in a browser (headless Chromium).

    flame.py OFFBEAT

SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = sys.argv[1]
SVG = "{http://www.w3.org/2000/svg}"
STACKS = b"main;work;hash 60\nmain;work;copy 10\nmain;idle 20\nmain;work;hash;mix 5\nmain 5\n"
# Runs behind the graph's own script, and leaves what it saw as an attribute.
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
    root = ElementTree.fromstring(svg)
    return "".join(element.text or "" for element in root.iter() if element.tag in (SVG + "text", SVG + "title"))


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
        check(not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]",
                            shown(svg)), f"a dangerous character of {names}")
        check("?" in shown(svg), "no name has reached the drawing")
        elements = [element.tag for element in ElementTree.fromstring(svg).iter()]
        check_equal(elements.count(SVG + "script"), 1, "scripts")
        check_equal(elements.count(SVG + "title"), elements.count(SVG + "rect") - 1, "titles: of all boxes, not of the ground")


@case
def a_large_profile_makes_a_file_below_1_mb():
    source = random.Random(2)
    name = "some::rather::long::namespace::function_of_a_large_program_number_{}"
    lines = [";".join(name.format(source.randrange(12)) for _ in range(20)) + f" {source.randrange(1, 100)}"
             for _ in range(20000)]
    svg = flame("\n".join(lines).encode())
    check(len(svg) < 1_000_000, f"{len(svg)} bytes")
    check(b"left out:" in svg, "nothing is said to be left out")


@case
def long_names_are_cut():
    svg = flame(b"main;" + b"n" * 100000 + b" 1\n")
    check(len(svg) < 30000, f"{len(svg)} bytes")


@case
def is_not_written_to_a_terminal():
    leader, follower = pty.openpty()
    with tempfile.NamedTemporaryFile() as file:
        file.write(STACKS)
        file.flush()
        done = subprocess.run([OFFBEAT, "flame", file.name], stdout=follower, stderr=subprocess.PIPE)
    os.close(follower)
    os.close(leader)
    check_equal(done.returncode, 2, "exit status")
    check(b"-o OUT.svg" in done.stderr, done.stderr)


def run_in_chromium(svg):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        skip("chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.svg"
        path.write_bytes(svg.replace(b"</svg>", DRIVER.encode()))
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                               "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=100)
    found = re.search('data-seen="([^"]*)"', done.stdout)
    check(found, f"no result from {browser}: {done.stdout[-500:]} {done.stderr[-500:]}")
    return json.loads(re.sub("%([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), found[1]).encode("latin-1").decode())


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
