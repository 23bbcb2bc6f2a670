"""Other programs that open a file, and what they say of it.  SPDX-License-Identifier: MIT"""
import collections
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import chromium  # noqa: E402
from speedscope_page import npm_file, served, speedscope_folder  # noqa: E402
from tap import check, check_equal, skip  # noqa: E402


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"NOT COMPARED: {program} is not installed")


def run(*command, folder=None, status=0, errors=subprocess.STDOUT, **environment):
    """What COMMAND prints, with its errors."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, cwd=folder, timeout=120,
                          env={**os.environ, "LC_ALL": "C.UTF-8", **environment})
    text = done.stdout.decode(errors="replace")
    check(status is None or done.returncode == status, f"{command}: status {done.returncode}: {text[-2000:]}")
    return text


# --- speedscope, in a browser -----------------------------------------------------------------------------------------

# Its button "Export" makes a file of a blob and clicks on a link to it.
HOOK = """
window.saved = null;
URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return 'blob:none'; };
HTMLAnchorElement.prototype.click = function () {};
"""


@contextlib.contextmanager
def speedscope(folder):
    """A function that lets speedscope open a file of FOLDER and write what it read as its own JSON."""
    if not chromium.find() or not speedscope_folder():
        skip("NOT COMPARED: chromium or speedscope is not installed (./dev setup all)")
    (folder / "speedscope").symlink_to(speedscope_folder())
    with served(folder) as url, chromium.Browser("--enable-unsafe-swiftshader") as browser:
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=HOOK)

        def read_and_write(path):
            browser.open("about:blank")
            browser.open(f"{url}speedscope/index.html#profileURL=/{path.name}")
            browser.wait("document.title !== 'speedscope' && document.title !== '' && !!document.querySelector('canvas')", 60)
            browser.press("s", control=True)
            written = path.with_name(path.name + ".speedscope.json")
            written.write_text(browser.wait("window.saved", 30), encoding="utf-8")
            return written
        yield read_and_write


def sums_of_speedscope(path):
    """{name: weight of the function alone} over all profiles of a file that speedscope wrote; its frames have parentheses for places."""
    document = json.loads(path.read_text(encoding="utf-8"))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    sums = collections.Counter()
    for profile in document["profiles"]:
        open_now, last = [], profile["startValue"]
        for event in profile.get("events", []):
            if open_now:
                sums[names[open_now[-1]]] += event["at"] - last
            last = event["at"]
            if event["type"] == "O":
                open_now.append(event["frame"])
            else:
                check_equal(open_now.pop(), event["frame"], "the frame that ends")
        for stack, weight in zip(profile.get("samples", []), profile.get("weights", [])):
            sums[names[stack[-1]] if stack else ""] += weight
    return sums


# --- The Firefox Profiler, on the command line ------------------------------------------------------------------------

def functions_of_firefox(path, folder):
    """The facts of a profile, and {function: weight of it alone} over all threads, as the Firefox Profiler has them."""
    program, home = npm_file("@firefox-devtools/profiler-cli/dist/profiler-cli.js"), {"HOME": str(folder)}

    def ask(*words):
        return json.loads(run("node", program, *words, "--json", "--session", "judge", errors=subprocess.DEVNULL, **home))
    run("node", program, "load", path, "--session", "judge", status=None, **home)
    try:
        deadline = time.monotonic() + 30  # its daemon may still start when the command has ended
        while run("node", program, "status", "--session", "judge", status=None, **home).startswith("Error") and time.monotonic() < deadline:
            time.sleep(0.2)
        sums = collections.Counter()
        for thread in ask("thread", "list")["threads"]:
            found = ask("thread", "functions", "--include-idle", "--thread", thread["threadHandle"])
            for function in found["functions"]:
                sums[function["name"]] += function["selfSamples"] * (10**6 if found["weightType"] == "tracing-ms" else 1)
        return ask("profile", "meta"), sums
    finally:
        run("node", program, "stop", "judge", status=None, **home)
