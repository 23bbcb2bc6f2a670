"""The web page of large profiles in a headless Chromium without a GPU, beside speedscope on the same data: seconds until a million samples
are visible and the memory of their page, frames per second while the flame graph is panned and zoomed, search, and the first drawing of an
aggregate. The window has 1920 × 1080 pixels.

SPDX-License-Identifier: MIT"""
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from pprof_data import missing_tools, pprof_files

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "test"))
import chromium  # noqa: E402
from speedscope_page import served, speedscope_folder  # noqa: E402

SECONDS, FRAMES_WANTED = 4, 30
SAMPLES, VISIBLE_SECONDS, VISIBLE_MB = 1_000_000, 2, 300
NAMES, SEARCH_MS, TURNS = 100_000, 50, 7
NODES, DRAWING_MS = 300_000, 500
# One key in each frame, as a key that is held down sends them; the answer is how long each frame lasted, in ms.
MOVE = """new Promise((resolve) => {
  const boxes = document.querySelector('.view.flame .boxes'), keys = %s, times = [];
  let last = performance.now(), number = 0;
  const end = last + %d, step = () => {
    const now = performance.now();
    times.push(now - last);
    last = now;
    if (now >= end) return resolve(times);
    boxes.dispatchEvent(new KeyboardEvent('keydown', {key: keys[number++ %% keys.length], bubbles: true, cancelable: true}));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
PAN, ZOOM = ["d"] * 12 + ["a"] * 12, ["w"] * 6 + ["s"] * 6
# Before the page's script: when the worker got the bytes, how long each answer took, and when boxes were first drawn.
WATCH = """
  window.marks = {find: []};
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...more) {
    const start = performance.now();
    if (message.name === 'open') marks.open = start;
    this.addEventListener('message', ({data}) => {
      if (data.number !== message.number) return;
      if (message.name === 'find') marks.find.push(performance.now() - start);
      if (message.name === 'boxes' || message.name === 'chart') marks.boxes ||= performance.now();
    });
    return post.call(this, message, ...more);
  };
  const put = CanvasRenderingContext2D.prototype.putImageData;
  CanvasRenderingContext2D.prototype.putImageData = function (...all) {
    put.apply(this, all);
    if (marks.boxes) marks.drawn ||= performance.now();
  };
"""


def frames(browser, keys):
    """Frames per second on average, and the longest frame in ms."""
    times = browser.run(MOVE % (keys, SECONDS * 1000))[1:]
    return len(times) * 1000 / sum(times), max(times)


def hash_of(browser):
    return browser.run("location.hash")


def peak_mb(browser):
    """The largest peak of resident memory among the browser's renderers: the page with its worker, and Chromium's own."""
    peaks = []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if os.getsid(int(status.parent.name)) == browser.process.pid and b"--type=renderer" in (status.parent / "cmdline").read_bytes():
                peaks.append(int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024)
    return max(peaks)


def write_samples(path):
    """SAMPLES stacks of one thread, each a bit different from the one before it, as speedscope's JSON."""
    numbers, stack, samples = random.Random(1), [0], []
    for _ in range(SAMPLES):
        del stack[max(1, len(stack) - numbers.randrange(3)):]
        for _ in range(numbers.randrange(3)):
            if len(stack) < 40:
                stack.append(numbers.randrange(2000 if len(stack) >= 20 else 8 * len(stack) + 8))
        samples.append(list(stack))
    profile = {"type": "sampled", "name": "main", "unit": "microseconds", "startValue": 0, "endValue": SAMPLES * 100, "samples": samples,
               "weights": [100] * SAMPLES}
    names = [{"name": f"module{i % 40}::function_{i}"} for i in range(2000)]
    path.write_text(json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": names}, "profiles": [profile]}))


@contextlib.contextmanager
def watching(*options):
    with chromium.Browser(*options, width=1920, height=1080) as browser:
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        yield browser


def say(what, is_met, text):
    print(f"page  {what}: {text}{'' if is_met else ' MISSED'}", flush=True)
    return is_met


def offbeat_samples(build, data, folder):
    """Seconds until the flamechart has boxes, and MB."""
    page, start = folder / "samples.html", time.monotonic()
    subprocess.run([build / "offbeat", "flame", data, "-o", page], check=True)
    written = time.monotonic() - start
    with watching() as browser:
        start = time.monotonic()
        browser.open(page.as_uri() + "#v=1&view=time")
        browser.wait("!!window.marks?.drawn && !!document.querySelector('.view.time [role=treeitem]')", 120)
        taken, peak = time.monotonic() - start, peak_mb(browser)
    is_met = taken <= VISIBLE_SECONDS and peak <= VISIBLE_MB
    return say("1 000 000 samples, offbeat", is_met, f"visible after {taken:.2f} s, {peak:.0f} MB of the renderer; the file is {page.stat().st_size / 1e6:.1f} MB and was "
               f"written in {written:.1f} s (wanted: {VISIBLE_SECONDS} s, {VISIBLE_MB} MB)")


def speedscope_samples(data, folder):
    place = speedscope_folder()
    if not place:
        print("page  1 000 000 samples, speedscope: NOT MEASURED, it is not installed (./dev setup all)")
        return
    (folder / "speedscope").symlink_to(place)
    with served(folder) as url, watching("--enable-unsafe-swiftshader") as browser:
        start = time.monotonic()
        browser.open(f"{url}speedscope/index.html#profileURL=/{data.name}")
        browser.wait("document.title !== 'speedscope' && document.title !== '' && !!document.querySelector('canvas')", 120)
        print(f"page  1 000 000 samples, speedscope: {time.monotonic() - start:.2f} s, {peak_mb(browser):.0f} MB of the renderer; its JSON has {data.stat().st_size / 1e6:.1f} MB",
              flush=True)


def search(build, folder):
    """The worker's answers to words that are in many names, in few, and in none."""
    source, page = folder / "names.collapsed", folder / "names.html"
    source.write_text("".join(f"main;package{i % 500}::Class{i % 7000}::method_{i} {i % 90 + 1}\n" for i in range(NAMES)))
    subprocess.run([build / "offbeat", "flame", source, "-o", page], check=True)
    with watching() as browser:
        browser.open(page.as_uri())
        browser.wait("!!window.marks?.drawn", 60)
        for turn in range(TURNS):
            for word in ("method", f"class{turn}12", "nothing has it"):
                count = browser.run("marks.find.length")
                browser.run(f"void (location.hash = 'v=1&search=' + encodeURIComponent({json.dumps(word)}))")
                browser.wait(f"marks.find.length > {count}")
        times = sorted(browser.run("marks.find"))
    return say("search of 100 000 names", times[-1] <= SEARCH_MS, f"median {times[len(times) // 2]:.0f} ms, at most {times[-1]:.0f} ms of {len(times)} (wanted: {SEARCH_MS})")


def drawing(build, folder):
    """From the bytes to the picture, of an aggregate."""
    numbers, source, page = random.Random(2), folder / "nodes.collapsed", folder / "nodes.html"
    with source.open("w") as out:
        for i in range(NODES // 10):
            out.write(";".join(["main"] + [f"f{numbers.randrange(40 if depth < 3 else 5000)}" for depth in range(12)]) + f" {i % 50 + 1}\n")
    subprocess.run([build / "offbeat", "flame", source, "-o", page], check=True)
    times = []
    for _ in range(TURNS):
        with watching() as browser:
            browser.open(page.as_uri())
            browser.wait("!!window.marks?.drawn", 60)
            times.append(browser.run("marks.drawn - marks.open"))
    times.sort()
    return say("first drawing of an aggregate of 300 000 calls", times[-1] <= DRAWING_MS, f"median {times[len(times) // 2]:.0f} ms, at most {times[-1]:.0f} ms of {len(times)} "
               f"after its bytes are there (wanted: {DRAWING_MS})")


def motion(build, folder):
    path = folder / "m.html"
    subprocess.run([build / "offbeat", "flame", *pprof_files("m"), "-o", path], check=True)
    with chromium.Browser(width=1920, height=1080) as browser:
        start = time.monotonic()
        browser.open(path.as_uri())
        browser.wait("!!document.querySelector('.view.flame [role=treeitem]')", 60)
        print(f"page  m: {path.stat().st_size / 1e6:.2f} MB, numbers are in the page after {time.monotonic() - start:.2f} s")
        for key in "www":
            browser.press(key)
        browser.wait("location.hash.includes('zoom')")
        before, is_met = hash_of(browser), True
        for what, keys in (("pan", PAN), ("zoom", ZOOM)):
            rate, longest = frames(browser, keys)
            is_met &= say(what, rate >= FRAMES_WANTED, f"{rate:.1f} frames per second, the longest {longest:.0f} ms (wanted: at least {FRAMES_WANTED})")
            time.sleep(0.6)
            after = hash_of(browser)
            if after == before:
                raise SystemExit(f"{what}: the keys moved nothing: {after}")
            before = after
    return is_met


def page(build):
    if not chromium.find() or missing_tools():
        print(f"page: NOT MEASURED, missing: {missing_tools() or 'chromium'}")
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = folder / "samples.speedscope.json"
        write_samples(data)
        met = [offbeat_samples(build, data, folder)]
        speedscope_samples(data, folder)
        return all(met + [search(build, folder), drawing(build, folder), motion(build, folder)])
