"""The folder of speedscope that npm installed, and a server of files for a browser.  SPDX-License-Identifier: MIT"""
import contextlib
import functools
import http.server
import os
import pathlib
import threading


def npm_file(name):
    """What npm installed (./dev setup all); None: it is not there."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    path = cache / "offbeat-npm/node_modules" / name
    return path if path.exists() else None


def speedscope_folder():
    return npm_file("speedscope/dist/release")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
