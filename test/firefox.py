"""Drives a headless Firefox over Marionette, which each Firefox has: opens pages, presses keys, reads values, takes screenshots, and remembers
what was requested and what the console said.

SPDX-License-Identifier: MIT"""
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PORT_TRIES, START_SECONDS = 5, 60
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Tab": "\ue004"}
# A new profile asks the network for nothing.
QUIET = {"browser.startup.homepage": "about:blank", "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
         "toolkit.telemetry.enabled": False, "app.normandy.enabled": False, "extensions.update.enabled": False, "network.captive-portal-service.enabled": False,
         "network.connectivity-service.enabled": False, "services.settings.server": "data:,", "browser.newtabpage.enabled": False,
         "browser.safebrowsing.downloads.remote.enabled": False, "ui.systemUsesDarkTheme": 0}
# In the browser itself: all requests of pages, and all errors and warnings of pages and of the policy.
WATCH = """
  globalThis.requests = []; globalThis.problems = [];
  Services.obs.addObserver({observe: (channel) => {
    channel.QueryInterface(Ci.nsIHttpChannel);
    if (channel.loadInfo.browsingContextID) requests.push(channel.URI.spec);
  }}, 'http-on-modify-request');
  Services.console.registerListener({observe: (message) => {
    if (!(message instanceof Ci.nsIScriptError) || !/^(file|https?|blob|data):/.test(message.sourceName)) return;
    problems.push(message.errorMessage.slice(0, 300));
  }});
"""


def find():
    return shutil.which("firefox-esr") or shutil.which("firefox")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    """A browser with one page. Use it in a with statement."""

    def __init__(self, width=1280, height=800):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        port = free_port()
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in {**QUIET, "marionette.port": port}.items()]
        pathlib.Path(self.folder.name, "user.js").write_text("\n".join(lines), encoding="ascii")
        self.process = subprocess.Popen([find(), "--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--profile", self.folder.name, f"--width={width}",
                                         f"--height={height}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                        env={**os.environ, "HOME": self.folder.name})
        self.number, self.bytes = 0, b""
        try:
            self.socket = self._connect(port)
            self._message()  # the greeting
            self.ask("WebDriver:NewSession", capabilities={})
            self.in_browser(WATCH)
        except BaseException:
            self._end()
            raise

    def _connect(self, port):
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)
            except ConnectionRefusedError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def _end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self._end()

    def _message(self):
        """Its size in digits, a colon, and JSON."""
        def more():
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.bytes += piece
        while b":" not in self.bytes:
            more()
        size, self.bytes = self.bytes.split(b":", 1)
        while len(self.bytes) < int(size):
            more()
        message, self.bytes = self.bytes[:int(size)], self.bytes[int(size):]
        return json.loads(message)

    def ask(self, method, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, method, parameters]).encode()
        self.socket.sendall(str(len(message)).encode() + b":" + message)
        _, number, error, result = self._message()
        if number != self.number or error:
            raise RuntimeError(f"{method}: {error}")
        return result.get("value") if isinstance(result, dict) else result

    def in_browser(self, script):
        """The value of a function's body that runs as a part of the browser."""
        self.ask("Marionette:SetContext", value="chrome")
        try:
            return self.ask("WebDriver:ExecuteScript", script=script, args=[], sandbox="system", newSandbox=False)
        finally:
            self.ask("Marionette:SetContext", value="content")

    @property
    def requests(self):
        return self.in_browser("return requests")

    @property
    def problems(self):
        return self.in_browser("return problems")

    def open(self, url):
        self.ask("WebDriver:Navigate", url=url)

    def run(self, expression):
        return self.ask("WebDriver:ExecuteScript", script=f"return {expression}", args=[], sandbox=None)

    def wait(self, expression, seconds=30):
        """Until EXPRESSION is true, and its value."""
        end, last = time.monotonic() + seconds, None
        while time.monotonic() < end:
            try:
                value = self.run(expression)
            except RuntimeError as error:
                value, last = None, error  # the page is still loading
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"never true: {expression}; {last}; problems: {self.problems}")

    def press(self, key):
        value = KEYS.get(key, key)
        actions = [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.ask("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def type(self, text):
        for letter in text:
            self.press(letter)

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.ask("WebDriver:TakeScreenshot", full=False)))
