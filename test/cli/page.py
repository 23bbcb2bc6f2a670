"""The web page in a headless Chromium: its numbers agree with `offbeat top`, every view works by mouse and by keyboard, names are never
executed, nothing is requested, and neither the console nor the policy complains. Keeps a screenshot of each view.

    page.py OFFBEAT FOLDER      FOLDER: for the screenshots

SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[level] / folder) for level, folder in ((1, ""), (2, "bench"))]
import chromium  # noqa: E402
from fixtures import REAL, of_real  # noqa: E402
from pprof_data import missing_tools, pprof_files  # noqa: E402
from tap import case, check, check_equal, long, main, short, skip, some_of  # noqa: E402

OFFBEAT, PICTURES = sys.argv[1], pathlib.Path(sys.argv[2])
READY = "!!(document.querySelector('main') || document.getElementById('failed'))"
STACKS = "main;work;hash 60\nmain;work;copy 10\nmain;idle 20\nmain;work;hash;mix 5\nmain 5\n"
# All rows of the table of functions, which has only the visible ones: name, self, total.
ROWS = """(async () => {
  const table = document.querySelector('.view.top .table'), rows = new Map();
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  for (let top = 0; ; top += 300) {
    table.scrollTop = top;
    await frame();
    for (const row of table.querySelectorAll('[data-function]')) rows.set(row.getAttribute('data-function'), [
      row.querySelector('.name').title, Number(row.querySelector('[data-self]').getAttribute('data-self')),
      Number(row.querySelector('[data-total]').getAttribute('data-total'))]);
    if (top > table.scrollHeight) return [...rows.values()];
  }
})()"""


def run(*words, **more):
    return subprocess.run([OFFBEAT, *words], capture_output=True, **more)


def write_page(folder, stacks, name="x", *options):
    """The page of STACKS, text of collapsed stacks or the path of a profile."""
    source = stacks
    if not isinstance(stacks, pathlib.Path):
        source = folder / f"{name}.collapsed"
        source.write_bytes(stacks if isinstance(stacks, bytes) else stacks.encode())
    path = folder / f"{name}.html"
    done = run("flame", source, "-o", path, *options, text=True)
    if "built without its web page" in done.stderr:
        skip("offbeat was built without its page: esbuild is not installed")
    check_equal((done.returncode, done.stdout), (0, ""), f"flame -o x.html: {done.stderr}")
    return path


def open_page(browser, path, state=""):
    browser.problems.clear()
    browser.requests.clear()
    browser.open("about:blank")
    browser.open(path.as_uri() + state)
    browser.wait(READY)
    check(not browser.run("!!document.getElementById('failed')"), f"{path}: {browser.run('document.body.textContent')[:300]}")


def check_quiet(browser, path):
    browser.check_quiet(path.as_uri(), "blob:")


def shown(name):
    """How the page shows a name: dangerous characters are replaced, long names have "…" inside."""
    name = name if len(name) <= 300 else name[:199] + "…" + name[-100:]
    return re.sub("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]", "\ufffd", name)


# --- Numbers ---------------------------------------------------------------------------------------------------------


def body_of(folder, number, directory):
    """The request's body as it was sent, as a file; packed runs are unpacked to FOLDER."""
    packed = REAL / f"envelopes/{directory}.tar.gz"
    if not packed.exists():
        return REAL / f"envelopes/{directory}/{number}.raw"
    with tarfile.open(packed) as archive:
        member = next(name for name in archive.getnames() if name.endswith(f"{number}.raw"))
        path = folder / f"{directory}.{number}"
        path.write_bytes(archive.extractfile(member).read())
        return path


@case
def numbers_agree_with_top_for_every_real_profile():
    count = 0
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        folder = pathlib.Path(name)
        for expected in some_of(sorted((REAL / "expected").glob("*.vroom.json*")), 4):
            directory, number = expected.name.split(".vroom.json")[0].rsplit(".", 1)
            profile = body_of(folder, number, directory)
            top = json.loads(run("top", "--json", profile, check=True).stdout)
            path = write_page(folder, profile)
            open_page(browser, path, "#view=top")
            browser.run("location.hash = 'view=top'")
            browser.wait("!document.querySelector('.view.top').hidden")
            wanted = sorted((shown(function["name"]), function["self"], function["total"]) for function in top["functions"])
            found = sorted(map(tuple, browser.run(ROWS)))
            check_equal(found, wanted, f"functions of {expected.name}")
            total = browser.run("Number(document.querySelector('.total').dataset.total)")
            check_equal(total, top["total"], f"total of {expected.name}")
            count += 1
            path.unlink()
    check(count >= of_real(20, 1), f"only {count} profiles")


# --- Views -----------------------------------------------------------------------------------------------------------


def perf_text():
    """Samples of two threads with times: main waits and works by turns, the other one only works."""
    lines = []
    for i in range(300):
        work = ("2000 work (prog)\n\t" + ("3000 hash (prog)\n\t" if i % 3 else "")) if i // 50 % 2 else "4000 wait (libc)\n\t"
        frames = [line.strip() for line in work.split("\n") if line.strip()][::-1] + ["1000 main (prog)"]
        lines.append(f"main 7/7 {1 + i / 100:.6f}: 10000000 cpu-clock:\n" + "".join(f"\t{frame}\n" for frame in frames) + "\n")
        lines.append(f"loader 7/8 {1.002 + i / 100:.6f}: 10000000 cpu-clock:\n\t5000 load_{i % 4} (prog)\n\t6000 start (prog)\n\n")
    return "".join(lines).encode()


@case
def every_view_works_in_both_themes_and_leaves_a_screenshot():
    with tempfile.TemporaryDirectory() as name:
        path = write_page(pathlib.Path(name), perf_text())
        for theme in ("light", "dark"):
            with chromium.started(dark=theme == "dark") as browser:
                open_page(browser, path)
                for number, view in enumerate(("flame", "top", "sandwich", "tree", "time"), 1):
                    browser.press(str(number))
                    browser.wait(f"!document.querySelector('.view.{view}').hidden")
                    if view == "sandwich":
                        browser.press("Enter")  # the first function of the table
                    browser.settle()
                    browser.keep(PICTURES, f"{view}-{theme}")
                browser.press("?")
                browser.wait("document.querySelector('dialog').open")
                browser.keep(PICTURES, f"help-{theme}")
                colour = browser.run("getComputedStyle(document.body).backgroundColor")
                check_equal(colour, "rgb(255, 255, 255)" if theme == "light" else "rgb(21, 24, 30)", "background")
                check_quiet(browser, path)


@case
def the_page_fits_widths_from_360_to_2560_pixels():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), perf_text())
        open_page(browser, path)
        for width in (360, 640, 2560):
            browser.resize(width, 740)
            for number, view in enumerate(("flame", "top", "sandwich", "tree", "time"), 1):
                browser.press(str(number))
                browser.wait(f"!document.querySelector('.view.{view}').hidden")
                browser.settle()
                check_equal(browser.run("document.documentElement.scrollWidth"), width, f"width of {view} at {width} pixels")
                browser.keep(PICTURES, f"{view}-{width}")
        check_quiet(browser, path)


@case
def the_tree_beside_the_canvas_has_the_numbers_of_the_boxes():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), STACKS)
        open_page(browser, path)
        check_equal(browser.items(), {"all": [1, 100, 0], "main": [2, 100, 5], "work": [3, 75, 0], "hash": [4, 65, 60], "mix": [5, 5, 5],
                                     "copy": [4, 10, 10], "idle": [3, 20, 20]}, "flame graph")
        browser.press("i")
        browser.settle()
        inverted = browser.items(level=2)
        check_equal([inverted[leaf] for leaf in ("hash", "idle", "copy")], [[2, 60, 0], [2, 20, 0], [2, 10, 0]], "inverted")
        browser.run("location.hash = 'v=1&view=top'")
        browser.settle()
        rows = dict((row[0], row) for row in browser.run(ROWS))
        check_equal(rows["hash"], ["hash", 60, 65], "row of hash")
        check_quiet(browser, path)


@case
def the_keyboard_selects_zooms_searches_and_opens_functions():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), STACKS)
        open_page(browser, path)
        selected = "document.querySelector('.view:not([hidden]) [aria-selected=true][role=treeitem]')?.textContent || ''"
        for key, wanted in (("ArrowDown", "all"), ("ArrowDown", "main"), ("ArrowDown", "work"), ("ArrowRight", "idle"), ("ArrowLeft", "work"),
                            ("ArrowUp", "main"), ("ArrowDown", "work")):
            browser.press(key)
            browser.wait(f"({selected}).startsWith('{wanted}:')")
        browser.press("Enter")
        browser.wait("location.hash.includes('zoom=0~0.75')")
        browser.settle()
        check("idle" not in browser.items(), "idle is visible in the zoom to work")
        browser.press("Escape")
        browser.wait("!location.hash.includes('zoom')")
        browser.press("f", control=True)
        browser.type("HASH")
        browser.wait("document.querySelector('.result').textContent === '65.00% · 1'")
        browser.press("Enter")
        browser.wait("document.querySelector('.status').textContent.startsWith('match 1 of 1: hash')")
        browser.keep(PICTURES, "search")
        browser.press("Escape")
        browser.press("g")
        browser.wait("!document.querySelector('.view.sandwich').hidden")
        browser.wait("document.querySelector('.view.sandwich h2').textContent.startsWith('hash')")
        browser.settle()
        browser.keep(PICTURES, "sandwich-hash")
        check_quiet(browser, path)


@short
@case
def a_link_reproduces_the_view_and_back_leads_to_the_one_before():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), STACKS)
        open_page(browser, path)
        for key in ("2", "4", "i"):
            browser.press(key)
            browser.settle()
        state = browser.run("location.hash")
        check_equal(state, "#v=1&view=tree&inverted=1", "state")
        browser.run("history.back()")
        browser.wait("location.hash === '#v=1&view=tree'")
        browser.run("history.back()")
        browser.wait("!document.querySelector('.view.top').hidden")
        browser.run("history.forward()")
        browser.wait("!document.querySelector('.view.tree').hidden")
        browser.open("about:blank")
        browser.open(path.as_uri() + state)
        browser.wait("!document.querySelector('.view.tree')?.hidden")
        browser.wait("document.querySelector('button[aria-pressed=true]').textContent === 'Inverted'")
        check_quiet(browser, path)


@case
def the_time_view_chooses_threads_by_name_and_a_range_is_a_flame_graph():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), perf_text())
        open_page(browser, path)
        browser.press("5")
        browser.wait("document.querySelectorAll('.lane').length === 2")
        names = browser.run("[...document.querySelectorAll('.lane .name')].map((lane) => lane.textContent).sort()")
        check_equal(names, ["loader (8)", "main (7)"], "lanes")
        browser.run("[...document.querySelectorAll('.lane')].find((lane) => lane.textContent.startsWith('loader')).click()")
        browser.wait("[...document.querySelectorAll('.view.time [role=treeitem]')].some((item) => item.textContent.startsWith('load_1'))")
        place = browser.run("(({x, y, width}) => [x, y, width])(document.querySelector('.view.time .boxes').getBoundingClientRect())")
        left, right, y = place[0] + place[2] / 4, place[0] + place[2] / 2, place[1] + 30
        browser.mouse("mousePressed", left, y, button="left", buttons=1, clickCount=1, modifiers=8)
        for x in (left + 20, right):
            browser.mouse("mouseMoved", x, y, button="left", buttons=1, modifiers=8)
        browser.mouse("mouseReleased", right, y, button="left", clickCount=1, modifiers=8)
        browser.wait("!document.querySelector('.view.flame').hidden && !!document.querySelector('.chips button')")
        browser.settle()
        total = browser.items()["all"][1]
        check(700e6 < total < 800e6, f"a quarter of 3 s: {total}")
        check(set(browser.items()) <= {"all", "start", "load_0", "load_1", "load_2", "load_3"}, f"other threads: {set(browser.items())}")
        check_quiet(browser, path)


def chunk(source="x.c", **more):
    """A Sentry chunk of 2 s with lines, measurements and a second without samples."""
    start, stacks = 1700000000, [[0, 1], [2, 1]]
    frames = [{"function": name, "filename": source, "abs_path": source, "lineno": line, "in_app": True} for name, line in (("hash", 2), ("main", 6), ("hash", 3))]
    samples = [{"timestamp": start + i * 0.01, "stack_id": int(i % 4 == 0), "thread_id": "7"} for i in range(200)]
    values = {"slow_frame_renders": ("nanosecond", [(0.5, 3e7)]), "cpu_usage": ("percent", [(i / 10, 10 + i) for i in range(20)]), "memory_footprint": ("byte", [(0, 2**20), (1, 2**21)])}
    measured = {name: {"unit": unit, "values": [{"timestamp": start + time, "value": value} for time, value in all_]} for name, (unit, all_) in values.items()}
    return {"version": "2", "profiler_id": "7" * 32, "chunk_id": "8" * 32, "platform": "native", "release": "a@1", "client_sdk": {"name": "test", "version": "1"},
            "measurements": measured, "profile": {"frames": frames, "stacks": stacks, "samples": samples, "thread_metadata": {"7": {"name": "main"}}}, **more}


@case
def measurements_are_below_the_flamechart():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        source = pathlib.Path(name, "x.json")
        source.write_text(json.dumps(chunk()))
        path = write_page(pathlib.Path(name), source)
        open_page(browser, path, "#v=1&view=time")
        tracks = browser.wait("((all) => all.length === 3 && all)([...document.querySelectorAll('.track')].map((each) => each.getAttribute('aria-label').replaceAll('\u202f', ' ')))")
        check_equal(sorted(tracks), ["cpu_usage: 10 % – 29 %", "memory_footprint: 1.000 MiB – 2.000 MiB", "slow_frame_renders: 1, at most 30.00 ms"], "measurements")
        place = browser.run("((each) => (({x, y, width}) => [x, y, width])(each.getBoundingClientRect()))([...document.querySelectorAll('.track')].find((each) => each.textContent.includes('cpu_usage')))")
        browser.mouse("mouseMoved", place[0] + place[2] / 2, place[1] + 20)
        browser.wait("[...document.querySelectorAll('.track .value')].some((each) => /^20.% at 1\\.000.s$/.test(each.textContent))")
        browser.keep(PICTURES, "measurements")
        check_quiet(browser, path)


@case
def times_without_samples_are_hatched():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        text = perf_text().decode().replace(" 3.", " 9.")  # from 3 s on, 6 s later
        path = write_page(pathlib.Path(name), text.encode())
        open_page(browser, path, "#v=1&view=time")
        browser.wait("/Hatched: 5\\.998.s without a sample of any thread, in 1 part/.test(document.querySelector('.view.time').textContent)")
        browser.keep(PICTURES, "gap")
        open_page(browser, write_page(pathlib.Path(name), perf_text(), "y"), "#v=1&view=time")
        browser.wait("document.querySelectorAll('.lane').length === 2")
        browser.settle()
        check("Hatched" not in browser.run("document.querySelector('.view.time').textContent"), "a gap where none is")


@case
def two_files_are_compared():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        base = pathlib.Path(name, "base.collapsed")
        base.write_text("main;work;hash 10\nmain;idle 90\n")
        path = write_page(pathlib.Path(name), STACKS, "x", "--diff-base", base)
        open_page(browser, path, "#v=1&view=top")
        rows = browser.wait("((all) => all.length > 0 && all)([...document.querySelectorAll('.view.top [data-change]')].map((each) => [each.parentNode.querySelector('.name').title, Number(each.dataset.change)]))")
        check_equal({name: round(change, 1) for name, change in rows}, {"hash": 50.0, "copy": 10.0, "idle": -70.0, "mix": 5.0, "main": 5.0, "work": 0.0}, "changes in points")
        browser.press("b")
        browser.wait("getComputedStyle(document.querySelectorAll('.side')[1]).display !== 'none'")
        check_quiet(browser, path)
        with View(pathlib.Path(name), STACKS, "--no-browser", "--diff-base", base) as view:
            browser.open(view.url + "#v=1&view=top")
            browser.wait("[...document.querySelectorAll('.view.top [data-change]')].some((each) => Math.abs(Number(each.dataset.change) - 50) < 0.01)")
            check_equal(browser.problems, [], "complaints")


@case
def the_flame_graph_rises_from_below_and_two_fingers_zoom():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), STACKS)
        open_page(browser, path)
        browser.press("u")
        browser.wait("location.hash.includes('up=1')")
        browser.settle()
        browser.keep(PICTURES, "upwards")
        place = browser.run("(({x, y, width, height}) => [x, y, width, height])(document.querySelector('.view.flame .boxes').getBoundingClientRect())")
        browser.click(place[0] + place[2] / 2, place[1] + place[3] - 12)  # the root is below
        browser.wait("document.querySelector('.view.flame [aria-selected=true]')?.textContent.startsWith('all')")

        def fingers(kind, *places):
            browser.ask("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": place[1] + place[3] - 12, "id": i} for i, x in enumerate(places)])

        fingers("touchStart", 400)
        fingers("touchStart", 400, 600)
        for step in (50, 100, 150, 200):
            fingers("touchMove", 400 - step, 600 + step)
        fingers("touchEnd")
        zoom = browser.wait("(location.hash.match(/zoom=([\\d.]+)~([\\d.]+)/) || [, ''])[1] && location.hash.match(/zoom=([\\d.]+)~([\\d.]+)/).slice(1).map(Number)")
        check(0.25 < zoom[1] - zoom[0] < 0.45, f"three times wider: {zoom}")
        check_quiet(browser, path)


# --- Keyboard --------------------------------------------------------------------------------------------------------


SOURCES = pathlib.Path(__file__).resolve().parents[2] / "web/src"
# How the overlay of keys calls those that have no letter.
IN_OVERLAY = {"ArrowUp": "↑", "ArrowDown": "↓", "ArrowLeft": "←", "ArrowRight": "→", "Arrow": "arrows", "PageUp": "Page", "PageDown": "Page", "=": "+", "-": "−"}
UNLISTED = {" "}  # a button is pressed with it, as everywhere


def keys_of_the_sources():
    """All keys that the page's code asks for, and the digits of the views."""
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES.glob("*.ts"))
    named = set(re.findall(r'\bkey === "([^"]+)"', text)) | set(re.findall(r'key\.startsWith\("([^"]+)"\)', text))
    table = re.search(r"const steps: [^=]*= \{(.*?)\};", text).group(1)
    return named | set(re.findall(r"(\w+):", table)) | {str(number) for number in range(1, len(VIEWS) + 2)}  # and the source


VIEWS = ("flame", "top", "sandwich", "tree", "time")


@case
def the_overlay_of_keys_lists_every_shortcut():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        open_page(browser, write_page(pathlib.Path(name), STACKS))
        browser.press("?")
        listed = " ".join(browser.wait("[...document.querySelectorAll('dialog[open] dt')].map((each) => each.textContent)"))
        words = set(re.split(r"[\s,]+|(?<=Ctrl)-(?=F)", listed))
        keys = keys_of_the_sources()
        check(len(keys) > 30, f"the sources have only {sorted(keys)}")
        missing = [key for key in sorted(keys - UNLISTED) if IN_OVERLAY.get(key, key) not in words and key.upper() not in words]
        check_equal(missing, [], f"keys that are not among {sorted(words)}")


@case
def tab_reaches_every_control_of_every_view_and_shows_where_it_is():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), perf_text())
        open_page(browser, path)
        for state in [f"#v=1&view={view}" for view in VIEWS] + ["#v=1&view=sandwich&function=1", "#v=1&range=0~1000000000&search=work"]:
            browser.run(f"location.hash = {json.dumps(state)}")
            browser.settle()
            check_equal(browser.faults_of_tab(), [], f"controls of {state}")
            check(len(browser.controls()) > 8, f"{state}: {browser.controls()}")
        for key in "e?":
            browser.press(key)
            browser.wait("!!document.querySelector('dialog[open]')")
            check_equal(browser.faults_of_tab(), [], f"controls of the dialog of {key}")
            browser.press("Escape")
            browser.wait("!document.querySelector('dialog[open]')")
        browser.run("document.querySelector('header').append(Object.assign(document.createElement('button'), {tabIndex: -1, title: 'lost'}))")
        check("lost" in " ".join(browser.faults_of_tab()), "a control that Tab does not reach is found")
        check_quiet(browser, path)


def focus_by_tab(browser, name):
    """Tab until the control NAME has the focus."""
    browser.run("document.activeElement.blur()")
    for _ in range(60):
        browser.press("Tab")
        if browser.focused() == name:
            return
    raise AssertionError(f"Tab does not lead to {name!r}")


@case
def the_keyboard_operates_every_control_of_every_view():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), perf_text())
        open_page(browser, path)
        browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")

        def becomes(part, is_there=True):
            browser.wait(f"location.hash.includes({json.dumps(part)}) === {json.dumps(is_there)}")

        for label, part in (("Thread", "thread="), ("Colours", "colors=system"), ("Order", "order=name")):
            focus_by_tab(browser, label)
            browser.press("ArrowDown")
            becomes(part)
            browser.press("ArrowUp")
            becomes(part, False)
        for label, part in (("callers inside (i)", "inverted=1"), ("light or dark (t)", "theme=dark"), ("Functions (2)", "view=top"), ("sort by the function with all that it calls", "sort=total")):
            focus_by_tab(browser, label)
            browser.press("Enter")
            becomes(part)
        for key, part in (("i", "inverted"), ("t", "theme=light"), ("o", "order=name"), ("c", "colors=system"), ("1", "view=top")):
            browser.press(key)
            becomes(part, part in ("theme=light", "order=name", "colors=system"))
        browser.settle()
        selected = "document.querySelector('.view:not([hidden]) .boxes:not([hidden]) [aria-selected=true][role=treeitem]')?.textContent || ''"
        browser.press("Home")
        browser.wait(f"({selected}).startsWith('all')")
        browser.press("End")
        browser.wait(f"!!({selected}) && !({selected}).startsWith('all')")
        for key, wanted in (("y", "\\w+"), ("Y", "\\w+\\n\\w+"), ("p", "prog|libc")):
            browser.run("window.copied = ''")
            browser.press(key)
            browser.wait(f"/^({wanted})/.test(window.copied)")
        browser.press("+")
        becomes("zoom=")
        before = browser.run("location.hash")
        browser.press("d")
        browser.wait(f"location.hash !== {json.dumps(before)}")
        browser.press("0")
        becomes("zoom=", False)
        browser.press("4")
        browser.wait("!document.querySelector('.view.tree').hidden && document.activeElement.getAttribute('role') === 'treegrid'")
        browser.wait("!!document.querySelector('.view.tree [aria-expanded]')")
        browser.press("Home")
        open_rows = "document.querySelectorAll('.view.tree [aria-expanded=true]').length"
        count = browser.run(open_rows)
        browser.press("ArrowLeft" if count else "ArrowRight")
        browser.wait(f"{open_rows} !== {count}")
        browser.press("g")
        becomes("view=sandwich")
        for graph in ("Callers", "Callees"):
            focus_by_tab(browser, graph)
            browser.press("ArrowDown")
            browser.wait(f"!!document.querySelector('[aria-label={graph}] [aria-selected=true]')")
        browser.press("5")
        browser.wait("document.querySelectorAll('.lane').length === 2")
        chosen = "document.querySelector('.lane[aria-selected=true]').textContent"
        first = browser.run(chosen)
        focus_by_tab(browser, "Threads")
        browser.press("ArrowDown")
        browser.wait(f"{chosen} !== {json.dumps(first)}")
        browser.press("[")
        browser.wait(f"{chosen} === {json.dumps(first)}")
        focus_by_tab(browser, "Flamechart")
        browser.press("w")
        becomes("window=")
        browser.press("r")
        becomes("range=")
        browser.wait("!document.querySelector('.view.flame').hidden")
        focus_by_tab(browser, "show all of the time")
        browser.press("Enter")
        becomes("range=", False)
        check_quiet(browser, path)


# --- offbeat view ----------------------------------------------------------------------------------------------------


class View:
    """offbeat view of STACKS, or COMMAND, and its URL."""

    def __init__(self, folder, stacks, *options, command=("view",), **environment):
        path = folder / "x.collapsed"
        path.write_text(stacks)
        self.process = subprocess.Popen([OFFBEAT, *command, *options, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Ctrl-C: the exit status, and the lines on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        lines = self.process.communicate(timeout=chromium.WAIT_SECONDS)[1]
        return self.process.returncode, lines


def answer_of(url, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=chromium.WAIT_SECONDS) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


@short
@case
def view_serves_the_page_until_ctrl_c_to_the_one_who_knows_the_url():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        with View(pathlib.Path(name), STACKS, "--no-browser") as view:
            if "built without its web page" in (view.url or view.end()[1]):
                skip("offbeat was built without its page: esbuild is not installed")
            check(re.fullmatch("http://127.0.0.1:[0-9]+/[0-9a-f]{32}/", view.url), f"URL: {view.url!r}")
            browser.open(view.url)
            check_equal(browser.items()["hash"], [4, 65, 60], "a box")
            browser.press("4")
            browser.settle()
            browser.keep(PICTURES, "view-tree")
            check_equal(browser.problems, [], "complaints of the console and the policy")
            check(all(url.startswith(view.url) for url in browser.requests if url != "about:blank"), f"requests: {browser.requests}")
            status, headers, _ = answer_of(view.url)
            check("script-src 'self'" in headers["Content-Security-Policy"] and "unsafe" not in headers["Content-Security-Policy"], "policy")
            root = view.url[:-33]
            paths = ["", "data", "0" * 32 + "/", view.url[len(root):-1], view.url[len(root):] + "../etc/passwd", view.url[len(root):] + "nothing"]
            check_equal([answer_of(root + path)[0] for path in paths], [404] * 6, "other paths")
            check_equal(answer_of(view.url + "data", "POST")[0], 405, "POST")
            status, lines = view.end()
            check_equal((status, lines.count("\n")), (0, 1), f"status, and lines of {lines!r}")


@case
def view_opens_the_browser_unless_it_must_not():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        opener, seen = folder / "bin/xdg-open", folder / "seen"
        opener.parent.mkdir()
        opener.write_text(f'#!/bin/sh\necho "$1" >{seen}.part\nmv {seen}.part {seen}\n')
        opener.chmod(0o755)
        path = f"{opener.parent}:{os.environ['PATH']}"
        with View(folder, STACKS, PATH=path, DISPLAY=":0", XDG_RUNTIME_DIR=name) as view:
            if "built without its web page" in (view.url or view.end()[1]):
                skip("offbeat was built without its page: esbuild is not installed")
            end = time.monotonic() + chromium.WAIT_SECONDS
            while not seen.exists() and time.monotonic() < end:
                time.sleep(0.02)
            opened = pathlib.Path(seen.read_text().strip())
            check(view.url[-33:-1] not in str(opened), "everybody can read the secret in the arguments of the browser")
            check_equal(opened.stat().st_mode & 0o777, 0o600, "mode of the file that leads to the page")
            check(f"url={view.url}" in opened.read_text(), "the file does not lead to the page")
        check(not opened.exists(), "the file is still there")
        seen.unlink()
        with View(folder, STACKS, PATH=path, DISPLAY=":0", XDG_RUNTIME_DIR="/nowhere") as view:
            check("leads the browser to the page: No such file or directory" in view.end()[1], "no reason why no browser was opened")
        for words, screen in (["--no-browser"], ":0"), ([], ""):
            with View(folder, STACKS, *words, PATH=path, DISPLAY=screen, WAYLAND_DISPLAY="", BROWSER="") as view:
                check_equal(answer_of(view.url)[0], 200, "status of the page")
            check(not seen.exists(), f"a browser was opened with {words or 'no screen'}")


@case
def view_over_ssh_prints_the_command_that_reaches_it():
    with tempfile.TemporaryDirectory() as name, socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        other.close()
        with View(pathlib.Path(name), STACKS, "--port", str(port), DISPLAY="", WAYLAND_DISPLAY="", BROWSER="",
                  SSH_CONNECTION="198.51.100.7 50000 192.0.2.1 2222") as view:
            if "built without its web page" in (view.url or view.end()[1]):
                skip("offbeat was built without its page: esbuild is not installed")
            check(view.url.startswith(f"http://127.0.0.1:{port}/"), f"URL: {view.url!r}")
            said = view.end()[1]
            check(re.search(rf"ssh -N -p 2222 -L {port}:127\.0\.0\.1:{port} \w+@192\.0\.2\.1, ", said), f"{said!r}")


@case
def pprof_http_serves_the_page_at_the_port_that_it_names():
    with tempfile.TemporaryDirectory() as name, socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        other.close()
        with View(pathlib.Path(name), STACKS, f"-http=localhost:{port}", "-no_browser", command=("pprof",)) as view:
            if "built without its web page" in (view.url or view.end()[1]):
                skip("offbeat was built without its page: esbuild is not installed")
            check(view.url.startswith(f"http://127.0.0.1:{port}/"), f"URL: {view.url!r}")
            check_equal(answer_of(view.url)[0], 200, "status of the page")
            check_equal(view.end()[0], 0, "status")


# --- Hostile names ---------------------------------------------------------------------------------------------------


@case
def view_shows_source_lines_with_their_costs():
    code = "int hash(int x) {\n\tx ^= x >> 3; // <b>\n\treturn x;\n}\nint main(void) {\n\treturn hash(1);\n}\n"
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        source, profile = pathlib.Path(name, "x.c"), pathlib.Path(name, "x.json")
        source.write_text(code)
        profile.write_text(json.dumps(chunk(str(source))))
        listed = json.loads(run("list", "--json", "^hash$", profile, "--source-path", name, check=True).stdout)["functions"][0]
        process = subprocess.Popen([OFFBEAT, "view", "--no-browser", profile, "--source-path", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = process.stdout.readline().strip()
            browser.open(url)
            browser.wait("!!document.querySelector('.view.flame [role=treeitem]')")
            browser.press("2")
            browser.press("6")
            rows = browser.wait("((all) => all.length > 0 && all)([...document.querySelectorAll('.view.source [data-line]')].map((row) => [Number(row.dataset.line),"
                                "Number(row.querySelector('[data-self]').dataset.self), Number(row.querySelector('[data-total]').dataset.total), row.lastChild.textContent]))")
            costs = {line: (self, total) for line, self, total, _ in rows if total > 0}
            check_equal(costs, {each["line"]: (each["self"], each["total"]) for each in listed["lines"]}, "costs of lines")
            texts = {line: text for line, _, _, text in rows}
            check_equal(texts[2], "    x ^= x >> 3; // <b>", "text of a line")
            browser.keep(PICTURES, "source")
            source.unlink()
            browser.open("about:blank")
            browser.open(url + "#v=1&view=source")
            browser.wait("document.querySelector('.view.source').textContent.includes('not on this machine')")
            status, _, body = answer_of(url + "source/0/%2Fetc%2Fpasswd")
            check_equal((status, body), (200, b"[]"), "a function that the profile has not")
            check_equal(browser.problems, [], "complaints of the console and the policy")
        finally:
            process.kill()


# Python's interpreter is a native program whose functions have names. The program ends when it may not read FILE any more.
RUNS = "import os, sys\nwhile os.path.exists(sys.argv[1]): sum(i * i for i in range(20000))\nsys.exit(7)"
TOTAL = "Number(document.querySelector('.total').dataset.total)"


@case
def view_shows_a_command_while_it_runs():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        folder, flag = pathlib.Path(name), pathlib.Path(name, "runs")
        (folder / "tmp").mkdir()
        flag.touch()
        command = [OFFBEAT, "view", "--no-browser", "-o", folder / "x.pb.gz", "--", sys.executable, "-c", RUNS, flag]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": f"{folder}/tmp"})
        try:
            first = process.stderr.readline()
            if "built without its web page" in first:
                skip("offbeat was built without its page: esbuild is not installed")
            browser.open(re.search(r"http://\S+", first)[0])
            browser.wait("document.querySelector('.live') && !document.querySelector('.live').hidden")
            # The selected function stays selected, whatever number it has in the next profile.
            browser.wait("document.querySelectorAll('.view.flame [role=treeitem]').length > 3")
            browser.press("1")
            for _ in range(3):
                browser.press("ArrowDown")
            selected = browser.wait("document.querySelector('.view.flame [aria-selected=true]')?.textContent.split(':')[0]")
            before = browser.run(TOTAL)
            browser.wait(f"{TOTAL} > {before}")
            browser.wait(f"document.querySelector('.view.flame [aria-selected=true]')?.textContent.split(':')[0] === {json.dumps(selected)}")
            browser.press("l")
            browser.wait("document.querySelector('.live').textContent === 'paused'")
            paused = browser.unchanged(TOTAL)  # an update may have been under way
            browser.run("new Promise((resolve) => setTimeout(resolve, 1500))")
            check_equal(browser.run(TOTAL), paused, "total while the page is paused")
            browser.press("l")
            browser.keep(PICTURES, "live")
            flag.unlink()
            browser.wait("document.querySelector('.live').hidden")
            browser.settle()
            top = json.loads(run("top", "--json", folder / "x.pb.gz", check=True).stdout)
            check_equal(browser.run(TOTAL), top["total"], "total of the final profile")
            check(top["total"] > paused, "the page has shown more than the file has")
            check_equal(browser.problems, [], "complaints of the console and the policy")
            check(process.poll() is None, "view ended with the command")
            process.send_signal(signal.SIGINT)
            lines = process.communicate(timeout=chromium.WAIT_SECONDS)[1]
            check_equal(process.returncode, 7, f"exit status of the command: {lines}")
            check("x.pb.gz" in lines and "until Ctrl-C" in lines, f"messages: {lines}")
            check_equal(list((folder / "tmp").iterdir()), [], "recordings that are left")
        finally:
            process.kill()


@case
def view_shows_a_process_that_runs_already():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        folder, flag = pathlib.Path(name), pathlib.Path(name, "runs")
        flag.touch()
        program = subprocess.Popen([sys.executable, "-c", RUNS, flag])
        process = subprocess.Popen([OFFBEAT, "view", "--no-browser", "-o", folder / "x.pb.gz", "-p", str(program.pid)], stderr=subprocess.PIPE, text=True)
        try:
            first = process.stderr.readline()
            while first and "http://" not in first:  # another engine is used, or the page was not built
                if "no engine can record" in first or "built without its web page" in first:
                    skip(first.strip())
                first = process.stderr.readline()
            browser.open(re.search(r"http://\S+", first)[0])
            before = browser.wait(TOTAL)
            browser.wait(f"{TOTAL} > {before}")
            process.send_signal(signal.SIGINT)
            browser.wait("document.querySelector('.live').hidden")
            browser.settle()
            check_equal(browser.run(TOTAL), json.loads(run("top", "--json", folder / "x.pb.gz", check=True).stdout)["total"], "total")
            check(program.poll() is None, "the program has ended")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=chromium.WAIT_SECONDS)
        finally:
            process.kill()
            program.kill()
            program.wait()


@case
def hostile_names_are_shown_and_never_executed():
    hostile = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "<!--<script>", "\x1b[31mred", "a\u202egnp.exe", "&ltb&gt",
               "javascript:alert(3)", "'\"><svg onload=alert(4)>", "\ufeffbom", "line\u2028break", "n" * 1_000_000, "n" * 400 + "::first", "n" * 400 + "::second", "__proto__", "constructor"]
    stacks = "".join(f"main;{name};leaf 10\n" for name in hostile)
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), stacks)
        open_page(browser, path)
        for number, view in enumerate(("flame", "top", "sandwich", "tree", "time"), 1):
            browser.press(str(number))
            browser.wait(f"!document.querySelector('.view.{view}').hidden")
            browser.settle()
            elements = browser.run("[document.querySelectorAll('main img, main svg, main script, main b').length, document.scripts.length]")
            check_equal(elements, [0, 2], f"elements of the page in {view}")
            if view == "top":
                names = {row[0] for row in browser.run(ROWS)}
                check({shown(each) for each in hostile} <= names, f"missing: {({shown(each) for each in hostile} - names)}")
            browser.keep(PICTURES, f"hostile-{view}")
        text = browser.run("document.body.innerText")
        check(not re.search("[\u202a-\u202e\u2066-\u2069\x1b\ufeff]", text), "a dangerous character is in the page")
        check_quiet(browser, path)


@long
@case
def a_million_threads_are_shown_or_counted():
    count, tail = 1_000_000, "\t1000 work (prog)\n\t2000 main (prog)\n\n"
    stacks = "".join(f"t 9/{i} {1 + i / 1e6:.6f}: 1000 cpu-clock:\n{tail}" for i in range(1, count + 1)).encode()
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), stacks)
        open_page(browser, path)
        check_equal(browser.wait("document.querySelector('select[aria-label=Thread]')?.options[0].textContent"), f"all {count} threads", "the list of threads")
        options = browser.run("[...document.querySelector('select[aria-label=Thread]').options].map((each) => each.textContent)")
        check(len(options) < 10_000 and f"{count - len(options) + 2} more" in options[-1], f"{len(options)} options, the last one: {options[-1]}")
        browser.press("5")
        line = browser.wait("[...document.querySelectorAll('.view.time .hint')].find((each) => !each.hidden && /threads/.test(each.textContent))?.textContent")
        lanes = browser.run("document.querySelectorAll('.lane').length")
        check(line.startswith(f"{count - lanes} more threads"), f"{lanes} lanes; {line}")
        browser.wait("!!document.querySelector('.view.time [role=treeitem]')")
        browser.keep(PICTURES, "million-threads")
        check_quiet(browser, path)


@case
def the_page_of_the_large_bench_file_is_at_most_3_MB_and_asks_for_nothing():
    if missing_tools():
        skip(f"not found: {missing_tools()}")
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), pprof_files("m")[0])
        check(path.stat().st_size <= 3_000_000, f"{path.stat().st_size} bytes")
        open_page(browser, path)
        total = json.loads(run("top", "--json", *pprof_files("m"), check=True).stdout)["total"]
        check_equal(browser.wait("Number(document.querySelector('.total').dataset.total)"), total, "total")
        check_quiet(browser, path)


@case
def a_damaged_file_is_one_line_and_no_empty_page():
    with tempfile.TemporaryDirectory() as name, chromium.started() as browser:
        path = write_page(pathlib.Path(name), STACKS)
        text = path.read_text()
        path.write_text(re.sub('(id="data">.{40})....', r"\1AAAA", text))
        browser.open(path.as_uri())
        line = browser.wait("document.getElementById('failed')?.textContent")
        check(line.startswith("This profile cannot be shown: "), line)


main()
