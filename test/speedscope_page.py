"""The folder of speedscope that npm installed, and a server of files for a browser.  SPDX-License-Identifier: MIT"""
import contextlib
import functools
import http.server
import os
import pathlib
import threading


def speedscope_folder():
    """What npm installed (./dev setup all); None: it is not there."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "offbeat-npm/node_modules/speedscope/dist/release"
    return folder if folder.exists() else None


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
