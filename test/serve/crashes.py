"""What `offbeat serve` acknowledges is there exactly once: after kill -9 at random moments, on a full disk, with clocks that jump, and
with a second server on the folder. Arguments: the build folder, the number of kills. SPDX-License-Identifier: MIT"""
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from protobuf_wire import field, pprof, push_series  # noqa: E402
from server_process import chunk_envelope, running  # noqa: E402
from tap import case, check, check_equal, leave_out, main, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
IS_ASAN = "libasan" in subprocess.run(["ldd", OFFBEAT], capture_output=True, text=True, check=False).stdout
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
START, SAMPLES, SENDERS = 1_700_000_000, 20, 4


class Sender(threading.Thread):
    """Sends chunk after chunk, and the same one again until it is acknowledged, as a client does."""

    def __init__(self, first):
        super().__init__()
        self.next, self.acknowledged, self.server, self.ends = first, [], None, False
        self.may_send = threading.Event()

    def run(self):
        while not self.ends:
            self.may_send.wait(1)
            server = self.server
            try:
                sent = server and server.send(chunk_envelope(self.next, start=START + 7 * (self.next % 5000), samples=SAMPLES)).status == 200
            except Exception:
                sent = False
            if sent:
                self.acknowledged.append(self.next)
                self.next += 1
            else:
                time.sleep(0.005)


def check_all(server, acknowledged):
    """Each acknowledged chunk once, also in the sums, and nothing that was not sent."""
    found = []
    for start in range(START, START + 7 * 5000, 7 * 500):
        answer = server.read(f"chunks?from={start - 0.5}&to={start + 7 * 500 - 0.5}")
        check(not answer["is_cut"], "the list is cut")
        found += [int(one["chunk"], 16) for one in answer["chunks"]]
    check_equal(len(found), len(set(found)), "chunks that are there twice")
    check(set(acknowledged) <= set(found), f"lost: {sorted(set(acknowledged) - set(found))[:10]}")
    check(len(found) <= len(acknowledged) + SENDERS, f"{len(found)} chunks, {len(acknowledged)} acknowledged")
    totals = [server.read(f"top?type=samples{query}")["total"] for query in ("", "&platform=python", f"&to={START + 10**6}")]
    check_equal(totals, [SAMPLES * len(found)] * 3, "samples in the sums")
    return found


@case
def every_acknowledged_chunk_is_there_once_after_kills_at_random_moments():
    seed = random.SystemRandom().randrange(1 << 32)
    numbers = random.Random(seed)
    senders = [Sender(1_000_000 * k) for k in range(SENDERS)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            for sender in senders:
                sender.start()
            for _ in range(KILLS):
                with running(OFFBEAT, data=folder) as server:  # and killed in the end
                    for sender in senders:
                        sender.server = server
                        sender.may_send.set()
                    time.sleep(numbers.random() ** 2 * 0.8)
                for sender in senders:
                    sender.may_send.clear()
        finally:
            for sender in senders:
                sender.ends = True
            for sender in senders:
                sender.join()
        acknowledged = [number for sender in senders for number in sender.acknowledged]
        with running(OFFBEAT, data=folder) as server:
            found = check_all(server, acknowledged)
            check_equal((server.stop(), server.said()), (0, ""), "the end")
        check_equal(subprocess.run([OFFBEAT, "store", "check", "--data", folder], capture_output=True, timeout=300).returncode, 0, "store check")
    print(f"# seed {seed}: {KILLS} kills, {len(acknowledged)} chunks acknowledged, {len(found)} stored")
    check(len(acknowledged) > KILLS, "nothing was sent")


def fill(server, first):
    """Sends until something is rejected. The numbers that were acknowledged."""
    acknowledged = []
    for number in range(first, first + 3000):
        status = server.send(chunk_envelope(number, start=START + 7 * (number % 5000), samples=SAMPLES, functions=("main", f"f{number}"))).status
        check(status in (200, 503), f"status {status}")
        if status == 503:
            return acknowledged
        acknowledged.append(number)
    raise RuntimeError("the disk was never full")


def check_full_disk(folder, server, make_room):
    acknowledged = fill(server, 0)
    check(acknowledged, "nothing fitted")
    check_equal(server.get("top").status, 200, "status of a query on the full disk")
    check_equal([server.said().count("cannot store"), server.send(chunk_envelope(9999)).status, server.said().count("cannot store")], [1, 503, 1], "lines in a minute")
    check_equal([server.request("GET", path).status for path in ("/readyz", "/healthz")], [503, 200], "readiness and health")
    make_room()
    for number in range(10_000, 10_020):
        check_equal(server.send(chunk_envelope(number, start=START + 7 * (number % 5000), samples=SAMPLES)).status, 200, "status with room")
        acknowledged.append(number)
    check_equal(len(check_all(server, acknowledged)), len(acknowledged), "stored chunks")
    check_equal(server.stop(), 0, "exit status")
    with running(OFFBEAT, data=folder) as again:
        check_all(again, acknowledged)
    print(f"# {len(acknowledged) - 20} chunks fitted")


@case
def a_file_that_may_not_grow_loses_nothing_that_was_acknowledged():
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT, data=folder) as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4 << 20, resource.RLIM_INFINITY))
        check_full_disk(folder, server, lambda: resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2))


def check_push(server):
    """A profile that is dated ahead is not stored, but listed as rejected: both need room."""
    ahead = pprof({("main",): 1}) + field(9, int(time.time() + 10 * 86400) * 10 ** 9) + field(100, os.urandom(1_000_000))
    headers = {"Content-Type": "application/proto", "Authorization": f"Bearer {server.key}"}
    answer = server.request("POST", "/push.v1.PusherService/Push", field(1, push_series({}, [(ahead, "")])), headers)
    check_equal(answer.status, 503, "status of a push whose profile cannot be listed as rejected")


@case
def a_full_disk_loses_nothing_that_was_acknowledged():
    def make_room():
        check_push(server)
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)

    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True, check=False).returncode:
            skip("only root can mount a small file system")
        try:
            with running(OFFBEAT, data=folder) as server:
                check_full_disk(folder, server, make_room)
        finally:
            subprocess.run(["umount", folder], check=True)


def fill_rest(folder):
    with open(f"{folder}/ballast", "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1024))
        except OSError:
            pass


@case
def a_server_starts_on_a_full_disk_and_serves_what_is_there():
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True, check=False).returncode:
            skip("only root can mount a small file system")
        data = f"{folder}/data"
        try:
            for ends in ("stop", "kill"):
                with running(OFFBEAT, data=data) as server:
                    expected = server.chunk_numbers() + [number for number in (range(5) if ends == "stop" else range(5, 10))
                                                         if server.send(chunk_envelope(number, start=START + number)).status == 200]
                    before = server.get("top").body
                    fill_rest(folder)
                    getattr(server, ends)()
                fill_rest(folder)
                with running(OFFBEAT, data=data) as server:
                    for _ in range(10):  # the start removes logs that it no longer needs
                        fill_rest(folder)
                        time.sleep(0.1)
                    check_equal(server.get("top").body, before, f"an answer after {ends}")
                    check_equal(server.chunk_numbers(), sorted(expected), "chunks")
                    check_equal(server.request("GET", "/readyz").status, 503, "readiness")
                    metrics = server.request("GET", "/metrics", headers=server.read_header()).body.decode()
                    check(int(re.search(r"^offbeat_store_free_bytes (\d+)$", metrics, re.MULTILINE)[1]) < 256 << 10, metrics)
                    check_equal(server.send(chunk_envelope(100)).status, 503, "status of a chunk")
                    os.unlink(f"{folder}/ballast")
                    check_equal([server.send(chunk_envelope(100 + len(expected))).status, server.request("GET", "/readyz").status], [200, 200], "with room")
                    expected.append(100 + len(expected))
                    check_equal(server.chunk_numbers(), sorted(expected), "chunks with room")
                    check_equal(server.stop(), 0, "exit status")
            pathlib.Path(data, "2020-01-01.db").write_bytes(bytes(1 << 20))
            fill_rest(folder)
            with running(OFFBEAT, "--disk", "1", data=data) as server:
                check(not pathlib.Path(data, "2020-01-01.db").exists(), "the oldest day was not removed")
                check_equal(server.send(chunk_envelope(200)).status, 200, "status after --disk made room")
        finally:
            subprocess.run(["umount", folder], check=True)


def leave_room(folder, kibibytes):
    """Fills the disk but for KIBIBYTES."""
    pathlib.Path(f"{folder}/ballast").unlink(missing_ok=True)
    fill_rest(folder)
    with open(f"{folder}/ballast", "ab") as file:
        file.truncate(max(0, file.tell() - 1024 * kibibytes))


@case
def a_start_with_any_room_serves_what_is_there_or_says_why_not():
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True, check=False).returncode:
            skip("only root can mount a small file system")
        try:
            with running(OFFBEAT, data=f"{folder}/old") as server:
                for number in range(5):
                    check_equal(server.send(chunk_envelope(number, start=START + number)).status, 200, "status")
            first_starts = []
            for room in (0, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512):
                leave_room(folder, room)
                with running(OFFBEAT, data=f"{folder}/old") as server:
                    check_equal(server.chunk_numbers(), list(range(5)), f"chunks with {room} KiB")
                    server.kill()
                leave_room(folder, room)
                new = f"{folder}/new"
                process = subprocess.Popen([OFFBEAT, "serve", "--data", new, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                line = process.stdout.readline()
                process.kill()
                said = process.communicate()[1]
                first_starts.append(line != "")
                check(line or (process.returncode == 3 and "full" in said and said.count("\n") < 3), f"the first start with {room} KiB: status {process.returncode}, {said}")
                os.unlink(f"{folder}/ballast")
                with running(OFFBEAT, data=new) as server:  # what a start began is no obstacle to the next one
                    check_equal(server.send(chunk_envelope(1)).status, 200, f"status after a first start with {room} KiB")
                shutil.rmtree(new)
            check(set(first_starts) == {False, True}, f"first starts that had room: {first_starts}")
        finally:
            subprocess.run(["umount", folder], check=True)


def faketime():
    for path in pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"):
        return str(path)
    skip("libfaketime is not installed")


@case
def a_clock_that_jumps_between_two_attempts_stores_nothing_twice():
    if IS_ASAN:
        leave_out("a library before the sanitizer's")
    library, acknowledged = faketime(), []
    with tempfile.TemporaryDirectory() as folder:
        for number, date in enumerate(("2026-11-23", "2031-01-01", "2026-11-24", "2001-05-06", "2026-11-24", "1999-01-01")):
            clock = {"LD_PRELOAD": library, "FAKETIME": f"@{date} 23:59:58", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
            # In 2031 all others are older than the usual 14 days.
            with unittest.mock.patch.dict(os.environ, clock), running(OFFBEAT, "--keep", "0", data=folder) as server:
                for one in acknowledged[-1:] + [number]:
                    check_equal(server.send(chunk_envelope(one, start=START + 7 * one, samples=SAMPLES)).status, 200, "status")
                acknowledged.append(number)
                check_equal(len(check_all(server, acknowledged)), len(acknowledged), "stored chunks")
                check_equal(server.stop(), 0, "exit status")


@case
def a_second_server_on_the_folder_is_rejected_and_the_first_one_continues():
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT, data=folder) as server:
        for number in range(5):
            check_equal(server.send(chunk_envelope(number, start=START + 7 * number, samples=SAMPLES)).status, 200, "status")
            second = subprocess.run([OFFBEAT, "serve", "--data", folder, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60)
            check_equal((second.returncode != 0, "another process of offbeat has it open" in second.stderr), (True, True), second.stderr)
        check_equal(len(check_all(server, list(range(5)))), 5, "stored chunks")
        check_equal(server.stop(), 0, "exit status")


main(sys.argv[3] if len(sys.argv) > 3 else "")
