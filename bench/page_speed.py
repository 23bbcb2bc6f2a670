"""The web page of a large profile in a headless Chromium without a GPU: frames per second while the flame graph is panned and
zoomed. The window has 1920 × 1080 pixels. No other program is measured beside it.

SPDX-License-Identifier: MIT"""
import pathlib
import subprocess
import sys
import tempfile
import time

from pprof_data import missing_tools, pprof_files

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "test"))
import chromium  # noqa: E402

SECONDS, FRAMES_WANTED = 4, 30
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


def frames(browser, keys):
    """Frames per second on average, and the longest frame in ms."""
    times = browser.run(MOVE % (keys, SECONDS * 1000))[1:]
    return len(times) * 1000 / sum(times), max(times)


def hash_of(browser):
    return browser.run("location.hash")


def page(build):
    if not chromium.find() or missing_tools():
        print(f"page: NOT MEASURED, missing: {missing_tools() or 'chromium'}")
        return None
    print("page: offbeat alone; speedscope is NOT measured beside it")
    with tempfile.TemporaryDirectory() as name, chromium.Browser(width=1920, height=1080) as browser:
        path = pathlib.Path(name) / "m.html"
        subprocess.run([build / "offbeat", "flame", *pprof_files("m"), "-o", path], check=True)
        start = time.monotonic()
        browser.open(path.as_uri())
        browser.wait("!!document.querySelector('.view.flame [role=treeitem]')", 60)
        print(f"page  m: {path.stat().st_size / 1e6:.2f} MB, numbers are in the page after {time.monotonic() - start:.2f} s")
        for key in "www":
            browser.press(key)
        browser.wait("location.hash.includes('zoom')")
        before = hash_of(browser)
        is_met = True
        for what, keys in (("pan", PAN), ("zoom", ZOOM)):
            rate, longest = frames(browser, keys)
            is_met = is_met and rate >= FRAMES_WANTED
            print(f"page  {what}: {rate:.1f} frames per second, the longest {longest:.0f} ms (wanted: at least {FRAMES_WANTED})")
            time.sleep(0.6)
            after = hash_of(browser)
            if after == before:
                raise SystemExit(f"{what}: the keys moved nothing: {after}")
            before = after
        return is_met
