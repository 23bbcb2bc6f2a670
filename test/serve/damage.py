"""A damaged block of a day file: every changed answer says so, and `offbeat store check` finds it. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import Server, chunk_envelope, envelope, item, running  # noqa: E402
from tap import IS_LONG, case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
BLOCK = 4096
ROUTES = ("services", "chunks", "sessions", "top", "top?service=s1", "top?service=s2", "flame", "profile.pb.gz", "activity", "trend", "spans", "rejected", "outcomes")


def fill(data):
    """A store with each kind of table: chunks with sums, spans, rejected items."""
    with running(OFFBEAT, data=data) as server:
        start = time.time() - 7000
        for number in range(24):
            functions = tuple(f"service{number % 3}_function{i}_" + "x" * 60 for i in range(100 + number))
            sent = chunk_envelope(number, start=start + 60 * number, samples=300, functions=functions, release=f"s{number % 3}@1", profiler=number % 5 + 1)
            check_equal(server.send(sent).status, 200, "status")
            check_equal(server.send(envelope(item("profile_chunk", {"version": "2"}, platform="python"))).status, 200, "status")
        check_equal(server.stop(), 0, "exit status")


def answers(server):
    return {route: server.get(route) for route in ROUTES}


def damaged_copy(good, bad, day, block, kind):
    shutil.rmtree(bad, ignore_errors=True)
    shutil.copytree(good, bad, ignore=shutil.ignore_patterns("admin.sock"))
    with open(f"{bad}/{day}", "r+b") as file:
        file.seek(block * BLOCK)
        before = file.read(BLOCK)
        file.seek(block * BLOCK)
        file.write(bytes(BLOCK) if kind == 0 and any(before) else bytes([before[0] ^ 1]) + before[1:] if kind == 1 else before[:-1] + bytes([before[-1] ^ 128]))


@case
def every_damaged_block_is_found_and_no_answer_changes_in_silence():
    with tempfile.TemporaryDirectory() as folder:
        good, bad = f"{folder}/good", f"{folder}/bad"
        fill(good)
        with running(OFFBEAT, data=good) as server:
            before = answers(server)
            check_equal(server.stop(), 0, "exit status")
        check_equal({answer.status for answer in before.values()}, {200}, "statuses")
        day = next(path.name for path in pathlib.Path(good).glob("2*.db"))
        blocks = pathlib.Path(good, day).stat().st_size // BLOCK
        check(blocks > 50, f"{blocks} blocks")
        asked = said = 0
        for block in range(blocks):
            damaged_copy(good, bad, day, block, block % 3)
            checked = subprocess.run([OFFBEAT, "store", "check", "--data", bad], capture_output=True, text=True, check=False)
            check(checked.returncode != 0 and "damaged" in checked.stderr, f"block {block}: {checked.returncode} {checked.stderr}")
            if block % 7 and block > 4 and not IS_LONG:
                continue
            server = Server(OFFBEAT, bad)
            asked += 1
            for route, answer in answers(server).items():
                if (answer.status, answer.body) != (before[route].status, before[route].body):
                    said += 1
                    check(answer.headers.get("X-Offbeat-Damaged") == "true" or answer.status >= 400, f"block {block}: {route} changed in silence")
            server.kill()
        print(f"# {blocks} blocks, {asked} servers, {said} changed answers")
        check(said > 5, f"only {said} answers changed")


@case
def a_command_says_that_the_server_has_damaged_data():
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder, "data")
        with running(OFFBEAT, data=data) as server:
            check_equal(server.send(chunk_envelope(1)).status, 200, "status")
            url = server.url + "?type=samples"
            for is_damaged in (False, True):
                if is_damaged:
                    pathlib.Path(data, "damaged-2026-01-01.db").touch()
                done = subprocess.run([OFFBEAT, "top", url, "--json"], capture_output=True, text=True, check=True)
                lines = ["the server's answer lacks data that are damaged there"] if is_damaged else []
                check_equal(json.loads(done.stdout).get("omissions", []), lines, "member of JSON")
                check_equal([line.split(": ", 2)[-1] for line in done.stderr.splitlines()], lines, "standard error")
                check(server.token not in done.stderr, done.stderr)


@case
def files_of_a_store_are_private_in_any_folder():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "data").mkdir(mode=0o755)
        with running(OFFBEAT, data=f"{folder}/data") as server:
            check_equal(server.send(chunk_envelope(1)).status, 200, "status")
            check_equal(subprocess.run([OFFBEAT, "store", "backup", f"{folder}/copy", "--data", f"{folder}/data"], check=False, capture_output=True).returncode, 0, "backup")
            found = {str(path): oct(path.stat().st_mode & 0o777) for path in pathlib.Path(folder).rglob("*") if path.is_file()}
            check(len(found) > 4 and set(found.values()) == {"0o600"}, str(found))


main()
