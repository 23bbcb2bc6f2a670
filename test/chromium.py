"""Drives a headless Chromium over its DevTools pipe: opens pages, presses keys, reads values, takes screenshots, and remembers
what the console, the policy and the network said.

SPDX-License-Identifier: MIT"""
import base64
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from tap import check, check_equal, skip

WAIT_SECONDS = 120  # only a page that hangs takes so long


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser")


def started(**more):
    """A browser; without Chromium, the case is skipped."""
    if not find():
        skip("chromium is not installed")
    return Browser(**more)


def find_axe():
    """axe-core, as `./dev setup all` installs it from npm; None: it is not there."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = pathlib.Path(cache, "offbeat-npm/node_modules/axe-core/axe.min.js")
    return path if path.exists() else None


KEY_CODES = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}


NAME_OF_CONTROL = "(each) => each.getAttribute('aria-label') || each.title || each.id || each.textContent.slice(0, 60)"
CONTROLS = """[...document.querySelectorAll('button, select, input, a[href], [tabindex]')].filter((each) => !each.disabled
  && each.checkVisibility({checkVisibilityCSS: true}) && (!document.querySelector('dialog[open]') || each.closest('dialog[open]'))
  && !(each.tabIndex < 0 && each.closest('[data-arrows]')?.querySelector('[tabindex="0"]')))"""


def high_pipe():
    """A pipe whose numbers are above those that the browser has. dash knows no numbers over 9."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Browser:
    """A browser with one page. Use it in a with statement."""

    def __init__(self, *options, width=1280, height=800, dark=False):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self.commands = high_pipe()
        self.answers, answers = high_pipe()
        line = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "--no-first-run",
                f"--user-data-dir={self.folder.name}", f"--window-size={width},{height}", *options, "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", *line], pass_fds=(commands, answers),
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(commands)
        os.close(answers)
        self.bytes, self.number, self.session = b"", 0, None
        self.problems, self.requests = [], []
        target = next(each for each in self.ask("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.resize(width, height)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.commands)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.answers)
        self.folder.cleanup()

    def _message(self):
        while b"\0" not in self.bytes:
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.bytes += piece
        message, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        name, given = message.get("method"), message.get("params", {})
        if name == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(given["exceptionDetails"])[:500])
        elif name == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.problems.append(json.dumps(given["args"])[:500])
        elif name == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.problems.append(given["entry"]["text"])
        elif name == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif name == "Page.javascriptDialogOpening":
            self.problems.append(f"a dialog: {given['message']}")

    def ask(self, method, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            self._note(answer)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def faults_of_access(self):
        """What axe-core finds in the page as it is: serious and critical faults, one line each."""
        self.run(find_axe().read_text(encoding="utf-8") + ";true")
        return self.run("""axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations
          .filter(({impact}) => impact === 'serious' || impact === 'critical')
          .map(({id, help, nodes}) => `${id}: ${help}: ${nodes.slice(0, 3).map(({html}) => html.slice(0, 150)).join(' | ')}`))""")

    def controls(self):
        """The names of all visible controls, of an open dialog alone. One of a group that arrows move through stands for the group."""
        return self.run(f"{CONTROLS}.map({NAME_OF_CONTROL})")

    def focused(self):
        return self.run(f"document.activeElement === document.body ? '' : ({NAME_OF_CONTROL})(document.activeElement)")

    def faults_of_tab(self):
        """The controls that Tab does not reach, or that do not show that they have the focus, one line each."""
        self.run("document.activeElement.blur(), window.reached = new Set(), window.unmarked = []")
        step = f"""((each) => {{
          const isNew = !reached.has(each), isFirst = [...reached].find((other) => other !== document.body) === each;
          if (isNew && each !== document.body && getComputedStyle(each).outlineStyle === 'none') unmarked.push(({NAME_OF_CONTROL})(each));
          reached.add(each);
          return isNew ? 'new' : isFirst ? 'first' : 'known';
        }})(document.activeElement)"""
        for turn in range(400):
            self.press("Tab")
            if self.run(step) == "first" and turn > 8:
                break
        lost = self.run(f"{CONTROLS}.filter((each) => !reached.has(each)).map({NAME_OF_CONTROL})")
        return [f"{name}: not reached" for name in lost] + [f"{name}: has the focus without a mark" for name in self.run("unmarked")]

    def resize(self, width, height, scale=1):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def open(self, url):
        self.ask("Page.navigate", url=url)

    def run(self, expression):
        """The value of an expression of JavaScript, also of a promise."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression[:200]}: {json.dumps(result['exceptionDetails'])[:500]}")
        return result["result"].get("value")

    def wait(self, expression, seconds=WAIT_SECONDS):
        """Until EXPRESSION is true, and its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                value = self.run(expression)
            except RuntimeError:
                value = None  # the page is still loading
            if value:
                return value
            time.sleep(0.03)
        raise AssertionError(f"never true: {expression}; problems: {self.problems}")

    def press(self, key, shift=False, control=False):
        text = key if len(key) == 1 and not control else "\r" if key == "Enter" else ""
        code = KEY_CODES.get(key, ord(key.upper()) if len(key) == 1 and key.isalnum() else 0)
        modifiers = (8 if shift else 0) | (2 if control else 0)
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, modifiers=modifiers,
                     **({"text": text} if text and kind == "keyDown" else {}))

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y, count=1, modifiers=0):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", buttons=1, clickCount=count, modifiers=modifiers)

    def screenshot(self, path):
        picture = self.ask("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(picture))

    def keep(self, folder, name):
        """Keeps a screenshot in FOLDER."""
        folder.mkdir(parents=True, exist_ok=True)
        self.screenshot(folder / f"{name}.png")

    def settle(self):
        """Until the page has answered what was asked of it."""
        self.run("new Promise((resolve) => setTimeout(resolve, 350))")

    def unchanged(self, expression):
        """The value of EXPRESSION when it is the same at two times."""
        before, value = None, self.run(expression)
        while before != value:
            self.run("new Promise((resolve) => setTimeout(resolve, 500))")
            before, value = value, self.run(expression)
        return value

    def items(self, view="flame", level=None):
        """{name: [level, total, self]} of the tree beside the canvas of VIEW, of one LEVEL or of all."""
        self.wait(f"!!document.querySelector('.view.{view} [role=treeitem]')")
        found = self.run(f"""[...document.querySelectorAll('.view.{view} [role=treeitem]')].map((item) => [item.textContent.split(':')[0],
          Number(item.getAttribute('aria-level')), Number(item.dataset.total), Number(item.dataset.self)])""")
        return {name: rest for name, *rest in found if level in (None, rest[0])}

    def check_quiet(self, *prefixes):
        """Neither the console nor the policy complained, and all requests begin with one of PREFIXES."""
        check_equal(self.problems, [], "complaints of the console and the policy")
        others = [url for url in self.requests if not url.startswith((*prefixes, "about:blank"))]
        check(not others, f"requests to others: {others}")
