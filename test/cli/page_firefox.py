"""The page in a headless Firefox, from file:// and served: each view works by keyboard, its total is the total of `offbeat top`, a file asks for
nothing, and neither the console nor the policy complains. Keeps screenshots.

    page_firefox.py OFFBEAT FOLDER      FOLDER: for the screenshots

SPDX-License-Identifier: MIT"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "serve")]
import firefox  # noqa: E402
from server_process import chunk_envelope, running  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT, PICTURES = sys.argv[1], pathlib.Path(sys.argv[2])
VIEWS = ("flame", "top", "sandwich", "tree", "time")
HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "a\u202egnp.exe", "n" * 1_000_000]


def samples(names=("hash", "copy")):
    """Text of perf script: two threads with times."""
    lines = []
    for i in range(200):
        for thread, name in enumerate(names):
            lines.append(f"worker{thread} 7/{8 + thread} {1 + i / 100 + thread / 1000:.6f}: 10000000 cpu-clock:\n\t2000 {name} (prog)\n\t1000 main (prog)\n\n")
    return "".join(lines)


def write_page(folder, text, ending="perf"):
    source, path = folder / f"x.{ending}", folder / "x.html"
    source.write_text(text, encoding="utf-8")
    done = subprocess.run([OFFBEAT, "flame", source, "-o", path], capture_output=True, text=True)
    if "built without its web page" in done.stderr:
        skip("offbeat was built without its page: esbuild is not installed")
    check_equal(done.returncode, 0, f"flame -o x.html: {done.stderr}")
    return source, path


def a_browser():
    if not firefox.find():
        skip("firefox is not installed")
    return firefox.Browser()


def walk(browser, total, name):
    """Each view by its key."""
    browser.wait("Number(document.querySelector('.total')?.dataset.total) === %d" % total)
    for number, view in enumerate(VIEWS, 1):
        browser.press(str(number))
        browser.wait(f"!document.querySelector('.view.{view}').hidden")
        content = {"top": "[data-function]", "sandwich": "[data-function]", "tree": "[data-function]"}.get(view, "[role=treeitem]")
        browser.wait(f"document.querySelector('.view.{view} {content}') !== null" if view != "time" else "true")
        PICTURES.mkdir(parents=True, exist_ok=True)
        browser.screenshot(PICTURES / f"firefox-{name}-{view}.png")


def total_of(path):
    return json.loads(subprocess.run([OFFBEAT, "top", "--json", path], capture_output=True, check=True).stdout)["total"]


@case
def a_file_works_in_firefox_and_asks_for_nothing():
    with tempfile.TemporaryDirectory() as name, a_browser() as browser:
        source, path = write_page(pathlib.Path(name), samples())
        browser.open(path.as_uri())
        walk(browser, total_of(source), "file")
        browser.wait("document.querySelectorAll('.lane').length === 2 && document.querySelector('.view.time [role=treeitem]') !== null")
        browser.press("r")
        browser.wait("location.hash.includes('range=') && !document.querySelector('.view.flame').hidden")
        browser.press("/")
        browser.type("hash")
        browser.wait("document.querySelector('.result').textContent.endsWith(' · 1')")
        check_equal((browser.requests, browser.problems), ([], []), "requests, and complaints of the console")
        browser.run("void document.head.append(Object.assign(document.createElement('script'), {src: 'http://127.0.0.1:1/x.js'}))")
        end = time.monotonic() + 10
        while not browser.problems and time.monotonic() < end:
            time.sleep(0.1)
        check(browser.problems, "a script that the policy forbids is a complaint")


@case
def hostile_names_are_text_in_firefox():
    with tempfile.TemporaryDirectory() as name, a_browser() as browser:
        source, path = write_page(pathlib.Path(name), "".join(f"main;{each} 10\n" for each in HOSTILE), "collapsed")
        browser.open(path.as_uri())
        walk(browser, total_of(source), "hostile")
        check_equal(browser.run("[document.querySelectorAll('main img, main script').length, document.scripts.length]"), [0, 2], "elements")
        check_equal((browser.requests, browser.problems), ([], []), "requests, and complaints of the console")


@case
def view_works_in_firefox():
    with tempfile.TemporaryDirectory() as name, a_browser() as browser:
        source, _ = write_page(pathlib.Path(name), samples())
        view = subprocess.Popen([OFFBEAT, "view", source, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = view.stdout.readline().strip()
            browser.open(url)
            walk(browser, total_of(source), "view")
            others = [each for each in browser.requests if not each.startswith(url)]
            check(url + "data" in browser.requests, f"requests that are seen: {browser.requests}")
            check_equal((others, browser.problems), ([], []), "requests to others, and complaints of the console")
        finally:
            view.send_signal(signal.SIGINT)
            view.communicate(timeout=20)


@case
def the_page_of_a_server_works_in_firefox():
    with running(OFFBEAT) as server, a_browser() as browser:
        if server.request("GET", "/").status == 404:
            skip("offbeat was built without its page: esbuild is not installed")
        check_equal(server.send(chunk_envelope(1, release="shop@1.0")).status, 200, "status of a chunk")
        browser.open(server.page_url)
        browser.wait("document.querySelector('table.list') !== null")
        browser.screenshot(PICTURES / "firefox-serve-services.png")
        browser.run("document.querySelector('table.list td button').click()")
        browser.wait("document.querySelector('.view.flame [role=treeitem]') !== null")
        browser.screenshot(PICTURES / "firefox-serve-profile.png")
        for place in ("sessions", "ingest"):
            browser.open(f"http://127.0.0.1:{server.port}/?place={place}")
            browser.wait("document.querySelector('table.list') !== null && document.querySelector('.line').hidden")
            browser.screenshot(PICTURES / f"firefox-serve-{place}.png")
        others = [each for each in browser.requests if not each.startswith(f"http://127.0.0.1:{server.port}/")]
        check_equal((others, browser.problems), ([], []), "requests to others, and complaints of the console")


main()
