"""Programs with liboffbeat under test: sdk_drives.c is one that its arguments control. In every case, the envelopes are validated by the
server's rules, standard output stays empty, errno is kept, and no file remains.
SPDX-License-Identifier: MIT"""
import atexit
import functools
import json
import os
import re
import shutil
import sys
import tempfile
import time

from server import FakeServer, items_of
from recording import ROOT, Folder, Offbeat, chunk_functions, check, check_equal, leave_out, run, text


@functools.lru_cache(maxsize=None)
def suppressions():
    """leaks.supp, where every user can read it."""
    copy, path = tempfile.mkstemp(prefix="offbeat-test-", suffix=".supp")
    atexit.register(os.unlink, path)
    os.write(copy, (ROOT / "test/end_to_end/leaks.supp").read_bytes())
    os.fchmod(copy, 0o644)
    os.close(copy)
    return path


OFFBEAT = Offbeat(sys.argv[1])
DRIVES, LIBRARY = OFFBEAT.programs / "sdk_drives", OFFBEAT.build / "liboffbeat.so"
IS_ASAN = b"libasan" in run("ldd", LIBRARY).stdout

# Names of functions, which all cases share so that each library is read once.
CACHE = tempfile.mkdtemp(prefix="offbeat-test-cache-")
os.chmod(CACHE, 0o777)
atexit.register(shutil.rmtree, CACHE, True)


def read_names():
    """Before all else, for the helper steps back after other programs, and the names of libc's functions are many."""
    with Folder() as folder, FakeServer() as server:
        if IS_ASAN: # cannot be preloaded by record
            drive(server, folder, "init start await work 300")
            return
        done = run(OFFBEAT.program, "record", "-o", "x.pb.gz", "--", DRIVES, "work", "300", cwd=folder,
                   env={**os.environ, "OFFBEAT_CACHE_DIRECTORY": CACHE, "TMPDIR": str(folder)})
        check(done.returncode == 0, text(done.stderr))


def environment(server, folder, **options):
    """OPTIONS in small letters are the library's, None for one that is not to be set; the others are variables as they are."""
    chosen = {"dsn": server.dsn if server else None, "spool_directory": folder / "spool", "profile_session_sample_rate": 1, "debug": 1,
              "shutdown_timeout_ms": 60000, "cache_directory": CACHE, **options}
    variables = {"PATH": os.environ["PATH"], "OFFBEAT_INVARIANTS": "abort", "HOME": folder, "TMPDIR": folder,
                 "UBSAN_OPTIONS": os.environ.get("UBSAN_OPTIONS", ""), "ASAN_OPTIONS": "detect_leaks=0" if options.get("LD_PRELOAD") else "",
                 "LSAN_OPTIONS": f"suppressions={suppressions()}:print_suppressions=0"}
    for name, value in chosen.items():
        variables[name if name.isupper() else "OFFBEAT_" + name.upper()] = value
    return {name: str(value) for name, value in variables.items() if value is not None}


def with_sanitizer(library):
    """What LD_PRELOAD must hold to have LIBRARY in a program: the sanitizer before it, if there is one."""
    found = re.search(r"libasan\S* => (\S+)", text(run("ldd", LIBRARY).stdout))
    return f"{found.group(1)} {library}" if found else library


def takes_long():
    """For cases that with a sanitizer take minutes and run only what others run, too: there they must be asked for by name."""
    if IS_ASAN and len(sys.argv) < 3:
        leave_out("takes long with a sanitizer, and runs what other cases run: name it to run it")


class Ran:
    """What a program did: what it printed, name by name, its messages on standard error, its status, how long it took."""

    def __init__(self, done, seconds):
        self.status, self.said, self.seconds, self.printed = done.returncode, text(done.stderr), seconds, {}
        for line in text(done.stdout).splitlines():
            check(line.startswith("{"), f"on standard output: {line}")
            for name, value in json.loads(line).items():
                self.printed.setdefault(name, []).append(value)
        check_equal(self.printed.get("errno_changes", [0]), [0], "calls that changed errno")

    def counts(self):
        """The sums that must hold in every case."""
        made, sent, limited, discarded = (self.printed[name][-1] for name in ("made", "sent", "limited", "discarded"))
        return {"made": made, "sent": sent, "limited": limited, "discarded": discarded}


def drive(server, folder, words, status=0, prefix=(), **options):
    began = time.monotonic()
    done = run(*prefix, DRIVES, *words.split(), cwd=folder, env=environment(server, folder, **options))
    ran = Ran(done, time.monotonic() - began)
    check_equal(ran.status, status, f"status of {words}: {ran.said}")
    return ran


def helper_that_waits(folder):
    """The path of a helper that sets about its work when the file `go` is in FOLDER, and writes its number into `begun`."""
    (folder / "waits").write_text(f'#!/bin/sh\necho $$ >"{folder}/begun"\nuntil [ -e "{folder}/go" ]; do sleep 0.05; done\nexec "{OFFBEAT.build}/offbeat-helper" "$@"\n',
                                  encoding="utf-8")
    (folder / "waits").chmod(0o755)
    return folder / "waits"


def remaining_files(folder):
    """Without rglob, which fails when a process removes a folder meanwhile."""
    suffixes = (".envelope", ".part", ".made", ".done", ".flush", ".linked", ".tmp", ".recording", ".request", ".session")
    return [os.path.relpath(os.path.join(top, name), folder) for top, _, names in os.walk(folder) for name in names if name.endswith(suffixes)]


class Arrived:
    """What SERVER accepted. Everything is validated as a server does, by `offbeat validate` and by check_chunk.py."""

    def __init__(self, server, folder):
        check_equal(server.problems, [], "what is wrong with requests")
        self.envelopes = [[(item, payload if isinstance(payload, dict) else json.loads(payload)) for item, payload in items_of(body)]
                          for body in server.bodies]
        self.chunks = sorted(self.of("profile_chunk"), key=lambda chunk: times(chunk)[0])
        self.profiles, self.transactions = self.of("profile"), self.of("transaction")
        check_equal(len({chunk["chunk_id"] for chunk in self.chunks}), len(self.chunks), "different chunk ids")
        for body in server.bodies:
            check("profile_chunk" not in body.decode().split("\n")[1] or re.fullmatch("[0-9a-f]{32}", json.loads(body.split(b"\n")[0])["event_id"]), "no event_id")
        for chunk in self.chunks + self.profiles:
            names = [facts.get("name") for facts in chunk["profile"]["thread_metadata"].values()]
            check("offbeat-chunks" not in names, f"the library's own thread is in a profile: {names}")
        self.validate(server, folder)

    def of(self, wanted):
        return [payload for envelope in self.envelopes for item, payload in envelope if item["type"] == wanted]

    def validate(self, server, folder):
        files = {"profile_chunk": [], "profile": []}
        for number, (body, envelope) in enumerate(zip(server.bodies, self.envelopes)):
            types = [item["type"] for item, _ in envelope]
            check(types.count("profile_chunk") + types.count("profile") <= 1, f"profiles in one envelope: {types}")
            for wanted, paths in files.items():
                if wanted in types:
                    paths.append(folder / f"{number}.validated")
                    paths[-1].write_bytes(body)
        for validator, paths in (((OFFBEAT.program, "validate", "--rules", "relay"), files["profile_chunk"] + files["profile"]),
                             ((sys.executable, ROOT / "test/cli/check_chunk.py", "--sender"), files["profile_chunk"])):
            done = run(*validator, *paths) if paths else None
            check(not done or done.returncode == 0, done and text(done.stdout + done.stderr))
        for path in files["profile_chunk"] + files["profile"]:
            path.unlink()


def arrived(server, folder, reported=None):
    """All that arrived, when the programs have ended: nothing else is REPORTED as discarded, no file remains."""
    check_equal(server.reported, reported or {}, "reported as discarded")
    check_equal(remaining_files(folder), [], "remaining files")
    return Arrived(server, folder)


def too_few(server):
    """What is sampled between a flush and a stop can be too little to be sent, which is counted."""
    return {name: count for name, count in server.reported.items() if name == "insufficient_data:profile_chunk"}


def times(chunk):
    return [sample["timestamp"] for sample in chunk["profile"]["samples"]]


def times_in(chunk, function):
    """When FUNCTION was seen."""
    places = {number for number, frame in enumerate(chunk["profile"]["frames"]) if frame.get("function") == function}
    stacks = {number for number, stack in enumerate(chunk["profile"]["stacks"]) if places & set(stack)}
    return [sample["timestamp"] for sample in chunk["profile"]["samples"] if sample["stack_id"] in stacks]


def functions(chunks):
    return {name for chunk in chunks for name in chunk_functions(chunk)}


def frames_of(chunks, function):
    return [frame for chunk in chunks for frame in chunk["profile"]["frames"] if frame.get("function") == function]


def profiler_ids(chunks):
    return list(dict.fromkeys(chunk["profiler_id"] for chunk in chunks))
