"""Programs with liboffbeat (sdk_program.py) where the server, the network, the disk or the program itself makes trouble: what
becomes of what they would send, and of the program. Arguments: the build folder, and optionally a part of the names of the cases
to run. SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from server import HANG, RESET, RESET_EARLY, Proxy, FakeServer, answer, items_of, make_certificate, wait_until
from recording import Folder, case, check, check_equal, main, run, short, skip, slowness, user_without_rights
from sdk_program import (DRIVES, LIBRARY, OFFBEAT, Ran, arrived, drive, environment, frames_of, functions, helper_that_waits,
                         remaining_files, profiler_ids, read_names, takes_long, times, times_in, too_few, with_sanitizer)

LOADS = OFFBEAT.programs / "sdk_loads"


def spooled(folder):
    """Without rglob, which fails when a process removes a folder meanwhile."""
    return sorted(pathlib.Path(top, name) for top, _, names in os.walk(folder) for name in names if name.endswith(".envelope"))


# --- The server's answers ------------------------------------------------------------------------------------------

def check_sums(ran, server, folder):
    """What was made is what was sent, limited, discarded or waits, by the library's counts and by the server's."""
    counts = ran.counts()
    waits = len(spooled(folder))
    check_equal(counts["sent"] + counts["limited"] + counts["discarded"] + waits, counts["made"], f"{counts}, {waits} wait")
    sums = len(server.chunks), len(server.limited), server.reported_of("profile_chunk"), waits
    check_equal(sum(sums), counts["made"], f"taken, limited, reported, waiting {sums}: {server.reported}")


TWICE = "init start await work 200 stop flush 30000 start await work 200 stop flush 30000 flush 30000 counts shutdown"


@case
def what_is_rejected_is_counted_and_not_sent_again():
    for status in (400, 403, 413, 500, 503):
        with Folder() as folder, FakeServer([answer(status, '{"detail":"no"}')]) as server:
            ran = drive(server, folder, TWICE)
            check_equal(ran.counts(), {"made": 2, "sent": 1, "limited": 0, "discarded": 1}, f"counts after {status}")
            check_sums(ran, server, folder)
            arrived(server, folder, {"send_error:profile_chunk": 1})


@case
def what_the_spool_has_no_room_for_is_counted_once():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init start await work 200 stop flush 30000 flush 30000 counts shutdown", spool_bytes_max=1)
        check_equal(ran.counts(), {"made": 1, "sent": 0, "limited": 0, "discarded": 1}, f"counts of a spool without room: {ran.said}")
        check_sums(ran, server, folder)
    words = "init start await work 200 stop flush 3000 "
    with Folder() as folder, FakeServer(default=RESET) as server:
        drive(server, folder, words, shutdown_timeout_ms=1000)
        size = spooled(folder)[0].stat().st_size
        shutil.rmtree(folder / "spool")
        again, most = "start await work 200 stop flush 1000 ", size * 3 // 2
        ran = drive(server, folder, words + 3 * again + "made 4 sleep 2000 flush 1 counts", spool_bytes_max=most, shutdown_timeout_ms=1000)
        waiting = [path.stat().st_size for path in spooled(folder)]  # chunks differ in size; what is made is counted before what it displaces
        check(0 < sum(waiting) <= most and len(waiting) < 4, f"waiting: {waiting} of {most}")
        check_equal(ran.counts(), {"made": 4, "sent": 0, "limited": 0, "discarded": 4 - len(waiting)}, f"counts: {ran.said}")


@case
def counts_stay_after_the_end_until_the_next_init():
    with Folder() as folder, FakeServer([answer(400)]) as server:
        printed = drive(server, folder, "counts init start await work 200 stop flush 30000 start await work 200 shutdown counts init counts").printed
        check_equal({name: printed[name] for name in ("made", "sent", "discarded")}, {"made": [0, 2, 0], "sent": [0, 1, 0], "discarded": [0, 1, 0]},
                    "before, after the end, after the next init")
        check_equal(len(arrived(server, folder, {"send_error:profile_chunk": 1}).chunks), 1, "chunks")


@case
def under_a_rate_limit_the_profiler_is_stopped_in_each_form_of_the_header():
    takes_long()
    # Each flush makes the worker look again: at the limit, and at what follows from it.
    words = "init start await work 500 flush 30000 flush 30000 flush 30000 id start id counts shutdown"
    for form in ({"X_Sentry_Rate_Limits": "60:profile_chunk:organization:quota"}, {"X_Sentry_Rate_Limits": "60::organization"},
                 {"X_Sentry_Rate_Limits": "0.5:error, 60:profile_duration;profile:key:reason:x"}, {"Retry_After": "60"}, {},
                 {"Retry_After": "Fri, 01 Jan 2100 00:00:00 GMT"}):
        with Folder() as folder, FakeServer([answer(429, **form)]) as server:
            ran = drive(server, folder, words)
            check_equal((ran.printed["flush"], ran.printed["runs"]), ([True] * 3, [False, False]), f"flushed, runs after {form}: {ran.said}")
            for said in ("the profiler stops: the server wants no profiles now",
                         "start_profiler does nothing: the server wants no profiles now"):
                check_equal(ran.said.count(said), 1, f"number of messages: {said}: {ran.said}")
            check_equal((len(server.limited), len(server.chunks)), (1, 0), "limited, taken")
            check_sums(ran, server, folder)
    with Folder() as folder, FakeServer([answer(429, X_Sentry_Rate_Limits="60:error;transaction:key")]) as server:
        check_equal(drive(server, folder, words).printed["runs"], [True, True], "runs: the limit is another's")


def withheld(server):
    """What was sampled between the limit and the stop is a chunk, if there was time for any."""
    return {name: count for name, count in server.reported.items()
            if name in ("ratelimit_backoff:profile_chunk", "insufficient_data:profile_chunk")}


@case
def after_a_rate_limit_the_profiler_starts_again():
    with Folder() as folder, FakeServer([answer(200, X_Sentry_Rate_Limits="5:profile_chunk:key")]) as server:
        ran = drive(server, folder, "init start id await work 500 flush 30000 flush 30000 flush 30000 id sleep 6500 id start id await work 200 stop "
                    "flush 30000 flush 30000 counts shutdown")
        first, limited, after, second = ran.printed["id"]
        check_equal((limited, after), ("", ""), "does not start automatically")
        check_equal(profiler_ids(arrived(server, folder, withheld(server)).chunks), [first, second], "profiler ids")
        check_sums(ran, server, folder)
    with Folder() as folder, FakeServer([answer(200, X_Sentry_Rate_Limits="5:profile_chunk:key")]) as server:
        ran = drive(server, folder, "init transaction a id await work 200 flush 30000 flush 30000 flush 30000 id sleep 6500 id transaction b id "
                    "await work 200 finish a finish b", profile_lifecycle="trace", traces_sample_rate=1)
        first, limited, after, second = ran.printed["id"]
        check_equal((limited, after), ("", ""), "does not start again for roots that are open")
        check_equal(profiler_ids(arrived(server, folder, withheld(server)).chunks), [first, second], "profiler ids")


@case
def what_the_network_breaks_is_sent_again():
    for trouble in (RESET, RESET_EARLY):
        with Folder() as folder, FakeServer([trouble]) as server:
            ran = drive(server, folder, TWICE)
            check_equal(ran.counts(), {"made": 2, "sent": 2, "limited": 0, "discarded": 0}, f"counts after {trouble}")
            check_sums(ran, server, folder)
            check_equal(len(arrived(server, folder).chunks), 2, "chunks")


@case
def who_never_answers_holds_nobody_up_and_the_next_launch_sends():
    with Folder() as folder, FakeServer(default=HANG) as server:
        ran = drive(server, folder, "init start await work 300 stop flush 3000 counts shutdown", shutdown_timeout_ms=1000)
        check_equal(ran.printed["flush"], [False], "flushed")
        slower = slowness()
        check(ran.printed["flush_ms"][0] < 4500 * slower and ran.printed["shutdown_ms"][0] < 2500 * slower, ran.printed)
        check_sums(ran, server, folder)
        check_equal(len(spooled(folder)), 1, "waits")
        server.default = answer(200)
        server.released.set()
        drive(server, folder, "init sleep 100 shutdown")
        check_equal(len(arrived(server, folder).chunks), 1, "chunks of the launch before")


def nobody_listens():
    """A DSN whose connections are rejected."""
    with FakeServer() as gone:
        return gone.dsn


@case
def the_end_does_not_wait_for_a_try_that_would_come_too_late():
    SHUTDOWN_MS = 4900
    for options, waits in (({}, 1), ({"spool_directory": ""}, 0)):
        with Folder() as folder:
            # Each try that fails doubles the rest until the next one, which is at least 5 s after the flush.
            ran = drive(None, folder, "init start await work 200 stop flush 300 flush 300 shutdown", dsn=nobody_listens(),
                        shutdown_timeout_ms=SHUTDOWN_MS, **options)
            check_equal(ran.printed["flush"], [False, False], "flushed")
            check(ran.printed["shutdown_ms"][0] < SHUTDOWN_MS, f"it waited: {ran.printed['shutdown_ms']} ms, {options}")
            check_equal(len(spooled(folder)), waits, f"waits for the next launch, {options}")


@case
def tls_is_checked_against_the_certificates_given():
    if not shutil.which("openssl"):
        skip("openssl is not installed")
    with Folder() as folder:
        certificate = make_certificate(folder)
        with FakeServer(certificate=certificate) as server:
            ran = drive(server, folder, "init start await work 200 stop flush 3000 counts", shutdown_timeout_ms=1000)
            check_equal((ran.printed["flush"], len(server.chunks)), ([False], 0), "sent to a stranger")
            check("certificate" in ran.said, ran.said)
            waits = len(spooled(folder))
            drive(server, folder, "init start await work 200", ca_file=certificate[0])
            check_equal(len(arrived(server, folder).chunks), waits + 1, "chunks")


@case
def proxies_are_used_by_option_and_by_environment():
    with Folder() as folder, FakeServer() as server, Proxy() as proxy:
        for number, options in enumerate(({"proxy": proxy.url}, {"http_proxy": None, "HTTP_PROXY": None}), 1):
            drive(server, folder, "init start await work 200", **options)
        check_equal(proxy.forwarded, 1, "by the option")
        done = run("env", f"http_proxy={proxy.url}", DRIVES, *"init start await work 200".split(), env=environment(server, folder))
        check_equal((done.returncode, proxy.forwarded), (0, 2), "by the environment")
        check_equal(len(arrived(server, folder).chunks), 3, "chunks")


# --- Crashes, disks, many processes ----------------------------------------------------------------------------------

def start(server, folder, words, **options):
    return subprocess.Popen([str(DRIVES), *words.split()], cwd=folder, env=environment(server, folder, **options),
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def chunk_id(path):
    return next(payload["chunk_id"] for item, payload in read_envelope(path) if item["type"] == "profile_chunk")


def read_envelope(path):
    """As it is in the spool, without sent_at."""
    header, rest = path.read_bytes().split(b"\n", 1)
    return items_of(json.dumps({**json.loads(header), "sent_at": ""}).encode() + b"\n" + rest)


@case
def a_kill_at_any_moment_loses_and_repeats_no_complete_envelope():
    with Folder() as folder, FakeServer(default=HANG) as server:
        for _ in range(3):
            programs = [start(server, folder, "init start await work 60000", chunk_seconds=1) for _ in range(3)]
            before = len(spooled(folder))
            check(wait_until(lambda before=before: len(spooled(folder)) > before, 60), "nothing was stored")
            for program in programs:
                time.sleep(random.random() * 0.3)
                program.send_signal(signal.SIGKILL)
                program.wait()
        stored = [chunk_id(path) for path in spooled(folder)]
        recordings = [path for path in folder.rglob("*.recording") if path.stat().st_size > 0]
        recordings[0].with_name(recordings[0].name.replace(".recording", "0.recording")).touch() # killed before the first batch
        recorded = len(recordings)
        server.default = answer(200)
        server.released.set()
        for _ in range(10): # who was killed a moment ago may still be there
            drive(server, folder, "init flush 60000")
            if not remaining_files(folder):
                break
            time.sleep(1)
        got = arrived(server, folder, too_few(server))
        check(set(stored) <= set(server.chunks), f"lost: {set(stored) - set(server.chunks)}")
        check_equal(len(server.chunks), len(set(server.chunks)), "sent once each")
        # What was recorded and not yet made a chunk is the next launch's to send.
        reported = server.reported_of("profile_chunk")
        check(recorded >= 3, f"{recorded} recordings of nine processes")
        check(len(got.chunks) + reported >= len(stored) + recorded, f"{len(got.chunks)}, {reported} reported, of {len(stored)} and {recorded} recordings")


@case
def what_the_end_had_no_time_for_is_sent_by_who_begins_next():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, f"init start id await work 300 stop sleep 300 start id await work 300 shutdown fork 3 exec touch {folder}/go wait "
                    "init start id await work_in_child 300 stop flush 60000", shutdown_timeout_ms=300, helper=helper_that_waits(folder))
        check_equal((ran.printed["init"], ran.printed["flush"]), ([True, True], [True]), "inits, flushed")
        chunks = arrived(server, folder).chunks
        check_equal(profiler_ids(chunks), ran.printed["id"], "profiler ids, in order")
    with Folder() as folder, FakeServer() as server:
        # The same process, but another program: nobody's number is like its own.
        ran = drive(server, folder, f"init start id await work 300 exec {DRIVES} init flush 60000")
        check_equal(profiler_ids(arrived(server, folder).chunks), ran.printed["id"], "profiler ids")


@case
def twenty_processes_on_one_spool_lose_nothing_and_send_nothing_twice():
    takes_long()
    with Folder() as folder, FakeServer([answer(200), RESET, RESET_EARLY] * 5) as server:
        programs = [start(server, folder, "init start await work 500 stop flush 60000") for _ in range(20)]
        check_equal([program.wait(timeout=300) for program in programs], [0] * 20, "statuses")
        drive(server, folder, "init flush 60000")
        got = arrived(server, folder)
        check_equal(len(profiler_ids(got.chunks)), 20, "profiler ids")
        for profiler in profiler_ids(got.chunks):
            check("works" in functions(chunk for chunk in got.chunks if chunk["profiler_id"] == profiler), "works is missing")


@case
def where_the_chosen_spool_cannot_be_written_the_next_place_is_used():
    with Folder() as folder, FakeServer() as server:
        (folder / "spool").mkdir(mode=0o555)
        (folder / "state").mkdir(mode=0o777)
        (folder / "state").chmod(0o777)
        drives = OFFBEAT.reachable().programs / "sdk_drives"
        done = run(drives, *"init start await work 300 stop flush 30000 counts".split(), **user_without_rights(), cwd=folder,
                   env=environment(server, folder, XDG_STATE_HOME=folder / "state"))
        ran = Ran(done, 0)
        check_equal((ran.status, ran.printed["flush"]), (0, [True]), f"status, flushed: {ran.said}")
        check("OFFBEAT_SPOOL_DIRECTORY must name a folder that can be written" in ran.said, f"said: {ran.said}")
        check((folder / "state/offbeat/helper.lock").exists(), "the folder of the state is not used")
        check_sums(ran, server, folder)
        check("works" in functions(arrived(server, folder).chunks), "works is missing")


@case
def a_full_disk_costs_profiles_and_harms_nothing():
    if os.geteuid() != 0:
        skip("needs root, to mount a small file system")
    for filled in (0, 11, 13, 14, 16):
        with Folder() as folder, FakeServer() as server:
            (folder / "small").mkdir()
            if run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder / "small").returncode != 0:
                skip("cannot mount a tmpfs here")
            try:
                with (folder / "small/filler").open("wb") as filler:
                    filler.write(bytes(filled * 4096 - (4096 if filled == 16 else 0)))
                ran = drive(server, folder, "init start await work 300 flush 30000 work 100 stop flush 30000 counts look",
                            spool_directory=folder / "small/spool", TMPDIR=folder / "small")
                # What cannot be stored is not waited for: neither flush nor the end takes its time-out.
                check(max(ran.printed["flush_ms"]) < 30000 and ran.seconds < 60, f"{filled}: {ran.printed['flush_ms']} ms, {ran.seconds} s")
                for reason in server.reported:
                    check(reason.split(":")[0] in ("insufficient_data", "invalid", "internal_sdk_error", "cache_overflow"), server.reported)
                sums = len(server.chunks) + server.reported_of("profile_chunk")
                check(sums <= 2 and (filled > 0 or sums == 2), f"chunks, {filled}: {server.reported}, {ran.said}")
                check(not server.chunks or ran.printed["sent"][-1] <= len(server.chunks), f"counts {ran.counts()}")
                check(wait_until(lambda: not remaining_files(folder), 20), f"remaining files: {remaining_files(folder)}")
                arrived(server, folder, server.reported)
            finally:
                run("umount", "-l", folder / "small")


@short
@case
def without_a_folder_the_message_names_the_true_cause():
    if os.geteuid() != 0:
        skip("needs root, to mount a small file system")
    with Folder() as folder, FakeServer() as server:
        (folder / "small").mkdir()
        if run("mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder / "small").returncode != 0:
            skip("cannot mount a tmpfs here")
        try:
            (folder / "small/filler").write_bytes(bytes(4 * 4096))
            for mode, reason in (("rw", "No space left on device"), ("ro", "Read-only file system")):
                run("mount", "-o", f"remount,{mode}", folder / "small")
                ran = drive(server, folder, "init start work 100 shutdown", spool_directory="", TMPDIR=folder / "small", debug=None)
                said = [line for line in ran.said.splitlines() if "there is no folder to record in" in line]
                check(len(said) == 1 and f": {folder}/small" in said[0] and f": {reason}; OFFBEAT_SPOOL_DIRECTORY can" in said[0], f"said: {ran.said}")
        finally:
            run("umount", "-l", folder / "small")


# --- The program behaves as without the library ----------------------------------------------------------------------

def check_helper_ran(chunks):
    check(any("lineno" in frame for frame in frames_of(chunks, "works")), "no lines: the helper did not run")


@case
def the_program_sees_no_child_and_no_SIGCHLD_of_the_helper():
    # The second child is waited for, by a wait for any, while helpers run.
    words = "init start await work 200 flush 60000 look fork 1 quit wait fork 2 sleep 3000 thread 3000 wait join stop flush 60000 look"
    for before, signals in (("handle ", [0, 2]), ("", [0, 0])):
        with Folder() as folder, FakeServer() as server:
            ran = drive(server, folder, before + words, chunk_seconds=2)
            check_equal((ran.printed["signals"], ran.printed["child"]), (signals, [-1, -1]), "SIGCHLD, children")
            check_equal((ran.printed["waited"], ran.printed["failure"]), ([1, 1], [0, 0]), f"children waited for: {ran.said}")
            check_helper_ran(arrived(server, folder, too_few(server)).chunks)
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "ignore init start await work 200 flush 60000 fork 1 quit wait look")
        check_equal((ran.printed["waited"], ran.printed["child"]), ([0], [-1]), "children where SIGCHLD is ignored")
        check_helper_ran(arrived(server, folder).chunks)


def state_of(process):
    """Its state and its parent, as proc(5) has them; None if it is not there."""
    try:
        state, parent = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[:2]
    except OSError:
        return None, None
    return state, int(parent)


@case
def the_helper_holds_nothing_of_the_program_and_delivers_after_its_death():
    with Folder() as folder, FakeServer() as server:
        program = start(server, folder, "init start await work 300 stop sleep 60000", helper=helper_that_waits(folder))
        begun = folder / "begun"
        check(wait_until(lambda: begun.exists() and begun.read_text(encoding="ascii").endswith("\n"), 60), "no helper began")
        helper = int(begun.read_text(encoding="ascii"))
        check(state_of(helper)[1] != program.pid, "it is a child of the program")
        (folder / "go").touch()
        check(wait_until(lambda: len(server.chunks) == 1, 60), "nothing was sent")
        held = {os.readlink(path) for path in pathlib.Path(f"/proc/{helper}/fd").iterdir() if path.is_symlink()}
        check_equal([path for path in held if not path.startswith(("/dev/null", str(folder / "spool"), "socket:", "anon_inode:", "pipe:"))], [],
                    "what it holds open")
        facts = pathlib.Path(f"/proc/{helper}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        check_equal((os.readlink(f"/proc/{helper}/cwd"), int(facts[3])), ("/", helper), "its folder, its session")
        program.kill()
        program.wait()
        check(wait_until(lambda: not list(folder.rglob("*.session")), 60), "the folder of the killed program is there")
        check_equal(len(arrived(server, folder).chunks), 1, "chunks")


@case
def leaks_no_descriptor_and_no_thread():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "look init start work 100 flush 60000 look " + "work 50 flush 60000 stop flush 60000 start await " * 12
                    + "work 50 flush 60000 look shutdown sleep 500 look") # a thread that ends is listed a moment longer
        for name in ("descriptors", "threads"):
            before, running, later, after = ran.printed[name]
            check_equal((later, after), (running, before), f"{name}, {ran.printed[name]}")


@case
def a_forked_child_profiles_itself_and_takes_nothing_of_its_parent():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init start id await work 400 fork 6 sleep 1500 await work_in_child 400 id work 300 id wait")
        chunks = arrived(server, folder).chunks
        of_parent = [chunk for chunk in chunks if chunk["profiler_id"] == ran.printed["id"][0]]
        of_child = [chunk for chunk in chunks if chunk not in of_parent]
        check_equal((ran.printed["waited"], ran.printed["failure"]), ([1], [0]), f"children: {ran.said}")
        check_equal(len(profiler_ids(of_child)), 1, "profiler ids of the child")
        check("works" in functions(of_parent) and "works_in_the_child" not in functions(of_parent), f"the parent's: {functions(of_parent)}")
        check("works_in_the_child" in functions(of_child) and "works" not in functions(of_child), f"the child's: {functions(of_child)}")


@case
def children_that_call_exec_or_end_at_once_cost_nothing_visible():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init start id await work 200 " + "fork 2 exec true fork 1 quit " * 20 + "wait work 100 look")
        check_equal((ran.printed["waited"], ran.printed["failure"]), ([40], [0]), "children")
        check_equal(profiler_ids(arrived(server, folder).chunks), ran.printed["id"], "profiler ids")


@case
def a_daemon_is_profiled():
    for words in ("init start await work 50 flush 60000 daemon sleep 1500 await work_in_child 400", "daemon init start await work_in_child 400"):
        with Folder() as folder, FakeServer() as server:
            drive(server, folder, words)
            check(wait_until(lambda: any("works_in_the_child" in functions([payload]) for body in server.bodies
                                         for item, payload in items_of(body) if item["type"] == "profile_chunk"), 60), "nothing came")
            check(wait_until(lambda: not remaining_files(folder), 60), "remaining files")
            arrived(server, folder, too_few(server))


@case
def a_stopped_process_sends_valid_chunks_of_the_asked_length():
    # A pause of more than two seconds after the end of a chunk is in none (facts 2.1: 66 s are the most).
    PAUSE_SECONDS = 5
    for chunk_seconds in (2, 30):
        with Folder() as folder, FakeServer() as server:
            program = start(server, folder, "init start await thread 7500 work 7500 sleep 200", chunk_seconds=chunk_seconds)
            check(wait_until(lambda: list(folder.rglob("*.recording")), 60), "nothing was recorded")
            time.sleep(0.8)
            program.send_signal(signal.SIGSTOP)
            stopped = time.time()
            time.sleep(PAUSE_SECONDS)
            resumed = time.time()
            program.send_signal(signal.SIGCONT)
            check_equal(program.wait(timeout=300), 0, "status")
            chunks = arrived(server, folder).chunks
            lasted = times(chunks[-1])[-1] - times(chunks[0])[0]
            fewest, most = (lasted - PAUSE_SECONDS) / (chunk_seconds + 2.2), lasted / chunk_seconds + 1
            check(fewest <= len(chunks) <= most, f"{len(chunks)} chunks of {chunk_seconds} s in {lasted:.1f} s")
            check_equal(len(profiler_ids(chunks)), 1, "profiler ids")
            for chunk in chunks:
                check_equal(times(chunk), sorted(times(chunk)), "order of samples")
                check(times(chunk)[-1] - times(chunk)[0] <= chunk_seconds + 2.2, f"{times(chunk)[-1] - times(chunk)[0]} s of {chunk_seconds}")
            for before, after in zip(chunks, chunks[1:]):
                gap = times(after)[0] - times(before)[-1]
                check(gap >= -0.05, f"{gap * 1e3:.3f} ms between two chunks")
            stamps = [stamp for chunk in chunks for stamp in times_in(chunk, "works")]
            check(stamps[0] < stopped and stamps[-1] > resumed + 0.3, f"not sampled before and after: {stamps[0]}, {stamps[-1]}")


@case
def after_the_end_no_function_of_the_program_is_called():
    with Folder() as folder, FakeServer() as server:
        # The last chunk is still being made when the time for the end is over.
        ran = drive(server, folder, f"option log 0 option before_send 0 init start await work 300 shutdown fork 3 exec touch {folder}/go "
                    "wait sleep 3000 late", shutdown_timeout_ms=300, helper=helper_that_waits(folder))
        check_equal((ran.printed["init"], ran.printed["late_calls"]), ([True], [0]), f"inits, calls after the end: {ran.said}")
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "option before_send 2000 init start await work 300 stop sleep 500 shutdown sleep 2000 late",
                    shutdown_timeout_ms=100)
        check_equal(ran.printed["late_calls"], [0], "calls that went on after the end")
        check(ran.printed["shutdown_ms"][0] < 5000 * slowness(), ran.printed)


@case
def survives_a_program_that_closes_all_descriptors():
    line, held = b"the program's\n", "work 200 write flush 30000 work 100 write flush 30000 write shutdown write"
    for before, options in (("init start await work 300 flush 60000", {}), ("init start await work 100", {}),
                            ("init start await work 300 flush 60000", {"spool_directory": ""}),
                            ("init transaction a await work 300 finish a flush 60000 transaction b work 100 finish b",
                             {"traces_sample_rate": 1})):
        with Folder() as folder, FakeServer() as server:
            ran = drive(server, folder, f"{before} close_others open 40 {held}", **options)
            check_equal(ran.printed.get("lost_file", []), [], f"files of the program that were closed: {ran.said}")
            for path in folder.glob("file-*"):
                check_equal(path.read_bytes(), line * 5, f"what is in {path.name}: {ran.said}")
            for path in folder.glob("folder-*"):
                check_equal([one.name for one in path.iterdir()], ["kept.tmp"], f"what is in {path.name}: {ran.said}")
            for path in folder.glob("folder-*/kept.tmp"):
                path.unlink()
            check_equal(ran.printed["flush"][-2:], [True, True], f"flushed: {ran.said}")
            got = arrived(server, folder, too_few(server))
            flushes = f"{before} {held}".count("flush")
            check("traces_sample_rate" in options or len(got.chunks) >= flushes, f"{len(got.chunks)} chunks: {ran.said}")


@case
def a_second_init_ends_the_first_and_begins_again():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init start id await work 200 init id start id await work 200 shutdown id start id init start id await work 200")
        first, none, second, *over, third = ran.printed["id"]
        check_equal((ran.printed["init"], none, over), ([True] * 3, "", ["", ""]), "inits, ids in between")
        check_equal(profiler_ids(arrived(server, folder).chunks), [first, second, third], "profiler ids")


@case
def init_in_a_forked_child_and_shutdown_at_exit_work():
    for words in ("fork 7 init start await work 200 flush 60000 wait", "init fork 7 init start await work 200 flush 60000 wait",
                  "atexit init start await work 200", "init atexit start await work 200 flush 60000 work 100", "init start await work 200 shutdown shutdown"):
        with Folder() as folder, FakeServer() as server:
            ran = drive(server, folder, words)
            check_equal(ran.printed.get("failure", [0]), [0], "children that failed")
            check("works" in functions(arrived(server, folder).chunks), f"works is missing after {words}")


@case
def a_program_that_loads_and_unloads_the_library_lives_on():
    with Folder() as folder, FakeServer() as server:
        done = run(LOADS, LIBRARY, cwd=folder, env=environment(server, folder, debug=None))
        check_equal((done.returncode, done.stdout, done.stderr), (0, b"", b""), "status, output, standard error")
        check("works" in functions(arrived(server, folder).chunks), "works is missing")


@case
def programs_that_know_nothing_of_it_are_profiled_by_environment_alone():
    data = random.Random(1).randbytes(1 << 20) * 3
    programs = {"xz": (["xz", "-9", "-c"], data), "python3": ([shutil.which("python3"), "-c", "print(sum(i * i for i in range(4000000)))"], b"")}
    for name, (command, given) in programs.items():
        if not shutil.which(name):
            skip(f"{name} is not installed")
        with Folder() as folder, FakeServer() as server:
            alone = run(*command, input=given)
            done = run(*command, input=given, cwd=folder, env=environment(
                server, folder, debug=None, profile_session_sample_rate=None, LD_PRELOAD=with_sanitizer(LIBRARY), HOME=os.environ.get("HOME")))
            check_equal((done.returncode, done.stdout == alone.stdout, done.stderr), (0, True, b""), f"status, output, standard error of {name}")
            chunks = arrived(server, folder).chunks
            check(chunks and chunks[0]["release"].startswith(("xz", "python")), f"chunks of {name}: {[chunk['release'] for chunk in chunks]}")
            check({"<module>", "<genexpr>"} <= functions(chunks) if name == "python3" else len(functions(chunks)) > 3,
                  f"functions of {name}: {functions(chunks)}")


@case
def wrong_options_get_one_clear_line_and_the_program_continues():
    takes_long()
    words = "init start id transaction a work 50 finish a flush 1000 look shutdown"
    for before, options, expected in (
            ("", {"dsn": "https://example.org/1"}, "key"), ("", {"dsn": "nonsense"}, "DSN"),
            ("", {"frequency": "abc"}, 'OFFBEAT_FREQUENCY must be a whole number from 1 to 10000, not "abc"'),
            ("", {"frequency": 10001}, "OFFBEAT_FREQUENCY"), ("", {"frequency": -1}, "OFFBEAT_FREQUENCY"),
            ("", {"chunk_seconds": 61}, "OFFBEAT_CHUNK_SECONDS"), ("", {"profile_session_sample_rate": 1.5}, "OFFBEAT_PROFILE_SESSION_SAMPLE_RATE"),
            ("", {"profile_session_sample_rate": "nan"}, "OFFBEAT_PROFILE_SESSION_SAMPLE_RATE"),
            ("", {"profile_lifecycle": "sometimes"}, "OFFBEAT_PROFILE_LIFECYCLE must be manual or trace"),
            ("", {"is_ui": "perhaps"}, "OFFBEAT_IS_UI"), ("", {"symbols": "x"}, "OFFBEAT_SYMBOLS"), ("", {"mode": "x"}, "OFFBEAT_MODE"),
            ("", {"platform": "x" * 64}, "platform must be shorter than 64 bytes"),
            ("option size 0 ", {}, "size must be sizeof(struct offbeat_options)"),
            ("option size 4 ", {}, "size must be sizeof(struct offbeat_options)")):
        with Folder() as folder, FakeServer() as server:
            ran = drive(server, folder, before + words, **{"debug": None, **options})
            check(len(ran.said.splitlines()) == 1 and ran.said.startswith("offbeat: ") and expected in ran.said, f"{options} {before}: {ran.said}")
            check_equal((ran.printed["init"], ran.printed["runs"], ran.printed["threads"], server.requests), ([False], [False], [1], 0), f"after {options}")


read_names()
main(sys.argv[2] if len(sys.argv) > 2 else "", at_once=6)
