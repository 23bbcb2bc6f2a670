"""What becomes of envelopes, whatever the server, the network and the disk do. Always: what the server took, what it
answered with 429, and what is reported as discarded, is what was made. Arguments: the build folder, and optionally a
part of the names of the cases to run. Requirements ENV-1, ENV-2, V2-7; facts §2, §3.7. SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from server import (CUT, HANG, KEY, RESET, RESET_EARLY, Proxy, FakeServer, answer, closed_port, items_of,
                      make_certificate, wait_until)
from recording import ROOT, Folder, Offbeat, case, check, check_equal, main, run, short, skip, slowness, text, user_without_rights

OFFBEAT = Offbeat(sys.argv[1])
SENDS = OFFBEAT.programs / "sends"
FAST = {"retry_ms": 20, "retry_max_ms": 100}
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def words(dsn, settings, program=SENDS):
    return [str(program), f"dsn={dsn}", *(f"{name}={value}" for name, value in {**FAST, **settings}.items())]


def sends(server, environment=None, **settings):
    dsn = server if isinstance(server, str) else server.dsn
    done = run(*words(dsn, settings), env={**ENVIRONMENT, **(environment or {})})
    check(done.returncode == 0, f"status {done.returncode}: {text(done.stderr)}")
    return {**json.loads(done.stdout), "said": text(done.stderr)}


def start(server, **settings):
    return subprocess.Popen(words(server.dsn, settings), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT)


def ids(count, prefix="c"):
    return [f"{prefix}-{number}" for number in range(count)]


def spooled(folder):
    return sorted(pathlib.Path(folder).rglob("*.envelope"))


def spooled_ids(folder):
    return [json.loads(path.read_bytes().split(b"\n")[2])["chunk_id"] for path in spooled(folder)
            if b'"type":"profile_chunk"' in path.read_bytes()]


def check_sums(server, made):
    check_equal(server.problems, [], "what is wrong with requests")
    check_equal(len(server.chunks), len(set(server.chunks)), "chunks taken, and different ones")
    sums = len(server.chunks), len(server.limited), server.reported_of("profile_chunk")
    check_equal(sum(sums), made, f"taken, limited, reported {sums}: {server.reported}")


# --- responses -------------------------------------------------------------------------------------------------------

@short
@case
def what_is_accepted_arrives_once_and_over_one_connection():
    with FakeServer() as server:
        printed = sends(server, count=50)
        check_equal(sorted(server.chunks), sorted(ids(50)), "chunks")
        check_equal(len(server.connections), 1, "connections")
        check_equal((printed["made"], printed["sent"], printed["discarded"]), (50, 50, 0), "counts")
        check(printed["flushed"] and printed["stopped"], printed)
        check_sums(server, 50)


@case
def what_is_rejected_is_reported_and_not_sent_again():
    for status in (400, 401, 403, 413, 500, 503, 302):
        with FakeServer([answer(status, '{"detail":"no"}'), answer(200)]) as server:
            printed = sends(server, count=3, flushes_each=1)
            check_equal(server.reported, {"send_error:profile_chunk": 1}, f"reported after {status}")
            check_equal((printed["sent"], printed["discarded"]), (2, 1), f"counts after {status}")
            check_sums(server, 3)


@case
def a_429_is_honoured_in_each_form_and_not_reported():
    forms = ((answer(429, X_Sentry_Rate_Limits="60:profile_chunk:organization:quota"), True),
             (answer(429, X_Sentry_Rate_Limits="60::organization"), True),
             (answer(429, X_Sentry_Rate_Limits="0.5:error, 60:profile_duration;profile:key:reason:x"), True),
             (answer(429, X_Sentry_Rate_Limits=["60:error", "60:profile_chunk"]), True),
             (answer(429, Retry_After="60"), True), (answer(429), True),
             (answer(429, Retry_After="Fri, 01 Jan 2100 00:00:00 GMT"), True),
             (answer(429, X_Sentry_Rate_Limits="60:transaction;brand_new", Retry_After="60"), False))
    for form, holds in forms:
        with FakeServer([form]) as server:
            printed = sends(server, count=3, flushes_each=1)
            check_equal(server.limited, ["c-0"], f"answered with {form}")
            expected = {"ratelimit_backoff:profile_chunk": 2} if holds else {}
            check_equal(server.reported, expected, f"reported after {form}")
            check_equal(printed["limited"], 1, f"limited after {form}")
            check_sums(server, 3)


@case
def limits_come_with_200_too_and_end():
    with FakeServer([answer(200, X_Sentry_Rate_Limits="0.6:profile_chunk")]) as server:
        sends(server, count=3, flushes_each=1, pause_ms=400)
        check_equal(server.chunks, ["c-0", "c-2"], "chunks")
        check_equal(server.reported, {"ratelimit_backoff:profile_chunk": 1}, "reported")
        check_sums(server, 3)


@case
def a_report_that_does_not_arrive_is_reported_again():
    with FakeServer([answer(500), answer(500), answer(429, X_Sentry_Rate_Limits="0:error")]) as server:
        sends(server, count=4, flushes_each=1, sampled_out=7, report_ms=50)
        check_equal(server.reported, {"send_error:profile_chunk": 1, "sample_rate:profile_chunk": 7}, "reported")
        check_equal(server.limited, ["c-1"], "came with the report for the third time")
        check_sums(server, 11)


# --- networks --------------------------------------------------------------------------------------------------------

@case
def what_the_network_broke_is_sent_again():
    for trouble in (RESET, RESET_EARLY, HANG):
        with FakeServer([trouble, answer(200), trouble, trouble]) as server:
            printed = sends(server, count=3, padding=300000, request_ms=300)
            check_equal(sorted(server.chunks), ids(3), f"chunks after {trouble}")
            check_equal((printed["sent"], printed["discarded"]), (3, 0), f"counts after {trouble}")
            check_sums(server, 3)


@case
def an_answer_that_breaks_off_after_its_status_counts():
    with FakeServer([CUT]) as server:
        sends(server, count=2)
        check_equal(sorted(server.chunks), ids(2), "chunks")
        check_sums(server, 2)


@case
def what_breaks_every_time_is_given_up_and_reported():
    with FakeServer([RESET] * 6) as server:
        printed = sends(server, count=2, padding=300000)
        check_equal(server.chunks, ["c-1"], "chunks")
        check_equal(server.reported, {"network_error:profile_chunk": 1}, "reported")
        check(printed["flushed"], printed)
        check_sums(server, 2)


@case
def a_full_queue_drops_the_newest_and_reports_them():
    with FakeServer([HANG]) as server:
        sends(server, count=20, queue=5, request_ms=500)
        check_equal(sorted(server.chunks)[:1], ["c-0"], "the oldest")
        check(server.reported.get("queue_overflow:profile_chunk", 0) >= 14, server.reported)
        check_sums(server, 20)


@case
def flush_and_stop_end_in_time_whatever_the_network_does():
    def check_ends(dsn):
        before, began = slowness(), time.monotonic()
        printed = sends(dsn, count=3, flush_ms=300, stop_ms=300)
        seconds = (time.monotonic() - began) / max(before, slowness())
        check(not printed["flushed"] and printed["stop_ms"] < 900 * max(before, slowness()) and seconds < 3, f"{dsn}: {printed}, {seconds:.1f} s")
        return printed

    with FakeServer(default=HANG) as server:
        check(not check_ends(server)["stopped"], "stopped")
    for dsn in (f"http://{KEY}@127.0.0.1:{closed_port()}/42", f"http://{KEY}@192.0.2.1/42", f"http://{KEY}@no-such-host.invalid/42"):
        said = check_ends(dsn)["said"]
        check("192.0.2.1" in dsn or said.startswith("sending: "), f"said: {said}")


@case
def tls_is_checked_against_the_certificates_given():
    if not shutil.which("openssl"):
        skip("openssl is not installed")
    with Folder() as folder:
        certificate = make_certificate(folder)
        with FakeServer(certificate=certificate) as server:
            printed = sends(server, count=1, flush_ms=500, stop_ms=100)
            check_equal((printed["sent"], server.chunks), (0, []), "sent to a stranger")
            check("certificate" in printed["said"], f"said: {printed['said']}")
            sends(server, count=3, ca=certificate[0])
            check_equal(sorted(server.chunks), ids(3), "chunks")
            with Proxy() as proxy:
                sends(server, count=3, ca=certificate[0], proxy=proxy.url, prefix="p")
                check_equal((proxy.tunnels, proxy.forwarded), (1, 0), "tunnels")
            check_sums(server, 6)


@case
def proxies_are_used_by_option_and_by_environment():
    with FakeServer() as server, Proxy() as proxy:
        sends(server, count=2, proxy=proxy.url, prefix="a")
        check_equal(proxy.forwarded, 2, "by the option")
        sends(server, {"http_proxy": proxy.url}, count=2, prefix="b")
        check_equal(proxy.forwarded, 4, "by the environment")
        sends(server, {"http_proxy": proxy.url}, count=2, prefix="d", proxy="")
        check_equal(proxy.forwarded, 4, "without")
        check_sums(server, 6)


# --- the spool -------------------------------------------------------------------------------------------------------

@short
@case
def what_could_not_be_sent_is_sent_by_the_next_run():
    with Folder() as folder:
        with FakeServer(default=HANG) as server:
            printed = sends(server, count=5, spool=folder / "spool", flush_ms=200, stop_ms=100, sampled_out=3)
            dsn, port = server.dsn, server.port
            check(not printed["stopped"], printed)
        check_equal(spooled_ids(folder), ids(5), "in the spool")
        check(not any(b"sent_at" in path.read_bytes() for path in spooled(folder)), "sent_at is stored")
        with FakeServer() as server:
            shutil.move(next((folder / "spool").iterdir()), folder / "kept")
            sends(server, count=1, prefix="x", spool=folder / "spool")
            servers_own = next((folder / "spool").iterdir())
            for path in (folder / "kept").iterdir():
                shutil.move(path, servers_own)
            printed = sends(server, count=0, spool=folder / "spool")
            check_equal(server.chunks, ["x-0", *ids(5)], "chunks, in order")
            check_equal(server.reported, {"sample_rate:profile_chunk": 3}, "reported by the next run")
            check_equal(spooled(folder), [], "left")
            check_sums(server, 9)


@case
def what_is_for_one_server_is_not_sent_to_another():
    with Folder() as folder, FakeServer(default=HANG) as away, FakeServer() as other:
        sends(away, count=2, spool=folder / "spool", flush_ms=100, stop_ms=100)
        sends(other, count=1, prefix="o", spool=folder / "spool")
        check_equal(other.chunks, ["o-0"], "chunks")
        check_equal(len(spooled(folder)), 2, "kept")


@case
def a_full_spool_drops_the_oldest_and_reports_them():
    with Folder() as folder, FakeServer([HANG]) as server:
        sends(server, count=30, spool=folder / "spool", spool_count=10, request_ms=1500, pause_ms=10)
        check_equal(server.reported, {"cache_overflow:profile_chunk": 20}, "reported")
        check("c-29" in server.chunks and "c-0" in server.chunks, server.chunks)
        check_sums(server, 30)


@case
def a_kill_while_spooling_loses_and_repeats_no_complete_envelope():
    with Folder() as folder, FakeServer(default=HANG) as server:
        for turn in range(12):
            program = start(server, count=100000, prefix=f"k{turn}", spool=folder / "spool", spool_count=4000, padding=200000)
            check(wait_until(lambda: any(f'"k{turn}-'.encode() in path.read_bytes()[:200] for path in spooled(folder))), "nothing was stored")
            time.sleep(random.random() * 0.05)
            program.send_signal(signal.SIGKILL)
            program.wait()
            program.stdout.close()
        stored = spooled_ids(folder)
        check(len(stored) >= 12, f"only {len(stored)} were stored")
        server.default = answer(200)
        server.released.set()
        sends(server, count=0, spool=folder / "spool", spool_count=4000, flush_ms=60000)
        check_equal(sorted(server.chunks), sorted(stored), "chunks")
        check_sums(server, len(stored))
        check_equal([path for path in (folder / "spool").rglob("*") if path.is_file()], [], "left")


@case
def killed_while_it_sends_nothing_is_lost():
    with Folder() as folder, FakeServer() as server:
        for turn in range(10):
            program = start(server, count=100000, prefix=f"k{turn}", spool=folder / "spool", spool_count=4000, pause_ms=5)
            check(wait_until(lambda: any(name.startswith(f"k{turn}-") for name in server.chunks)), "nothing was sent")
            time.sleep(random.random() * 0.05)
            program.send_signal(signal.SIGKILL)
            program.wait()
            program.stdout.close()
        sends(server, count=0, spool=folder / "spool", spool_count=4000, flush_ms=60000)
        check_equal(server.problems, [], "problems")
        check_equal(spooled(folder), [], "left")
        for turn in range(10):
            numbers = sorted({int(name.split("-")[1]) for name in server.chunks if name.startswith(f"k{turn}-")})
            check_equal(numbers, list(range(len(numbers))), f"numbers that arrived of turn {turn}")
        twice = len(server.chunks) - len(set(server.chunks))
        check(twice <= 10, f"{twice} arrived twice: at most the one that a response was due for")


@short
@case
def killed_after_an_answer_it_does_not_send_again():
    with Folder() as folder, FakeServer([answer(200), answer(400, "no"), answer(429)]) as server:
        for name in ("sent", "rejected", "limited"):
            program = start(server, prefix=name, spool=folder / "spool", flush_ms=60000, dies_when_answered=1)
            check_equal(program.wait(timeout=60), -signal.SIGKILL, f"status of {name}")
            program.stdout.close()
        sends(server, count=0, spool=folder / "spool", flush_ms=60000)
        check_equal((server.chunks, server.limited), (["sent-0"], ["limited-0"]), "chunks")
        check_equal(server.problems, [], "problems")


@case
def twenty_processes_on_one_spool_lose_nothing_and_send_nothing_twice():
    with Folder() as folder, FakeServer([answer(200), RESET, RESET_EARLY] * 10) as server:
        programs = [start(server, count=20, prefix=f"m{number}", spool=folder / "spool", spool_count=1000, padding=5000,
                          flush_ms=60000, stop_ms=20000) for number in range(20)]
        printed = [json.loads(program.communicate(timeout=100)[0]) for program in programs]
        sends(server, count=0, spool=folder / "spool", flush_ms=30000)
        check_equal(sorted(server.chunks), sorted(name for number in range(20) for name in ids(20, f"m{number}")), "chunks")
        check_equal(sum(one["made"] for one in printed), 400, "made")
        check_sums(server, 400)
        check_equal([path for path in (folder / "spool").rglob("*") if path.is_file()], [], "left")


@case
def twenty_processes_on_a_small_spool_count_what_each_drops_once():
    with Folder() as folder, FakeServer([HANG] * 5) as server:
        programs = [start(server, count=20, prefix=f"m{number}", spool=folder / "spool", spool_count=10,
                          request_ms=1000, flush_ms=60000, stop_ms=20000) for number in range(20)]
        for program in programs:
            program.communicate(timeout=100)
        sends(server, count=0, spool=folder / "spool", flush_ms=30000)
        check(server.reported.get("cache_overflow:profile_chunk", 0) > 0, server.reported)
        check_sums(server, 400)


def check_memory_takes_over(folder, server, program=SENDS, **options):
    done = run(*words(server.dsn, {"count": 5, "spool": folder / "spool", "padding": 30000}, program), env=ENVIRONMENT, **options)
    check_equal(done.returncode, 0, f"status: {text(done.stderr)}")
    check("spool" in text(done.stderr) and "stay in memory" in text(done.stderr), f"said: {text(done.stderr)}")
    check_equal(text(done.stderr).count("stay in memory"), 1, "number of messages")
    check_equal(sorted(server.chunks), ids(5), "chunks")
    check_sums(server, 5)


@case
def a_disk_without_room_leaves_envelopes_in_memory_and_says_so():
    with Folder() as folder, FakeServer() as server:
        check_memory_takes_over(folder, server, preexec_fn=lambda: __import__("resource").setrlimit(
            __import__("resource").RLIMIT_FSIZE, (1000, 1000)))
        check_equal(spooled(folder), [], "left")


@case
def a_file_system_that_is_full_leaves_envelopes_in_memory_and_says_so():
    if os.geteuid() != 0:
        skip("needs root, to mount a small file system")
    with Folder() as folder, FakeServer() as server:
        (folder / "spool").mkdir()
        if run("mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder / "spool").returncode != 0:
            skip("cannot mount a tmpfs here")
        try:
            check_memory_takes_over(folder, server)
        finally:
            run("umount", folder / "spool")


@case
def keeps_envelopes_in_memory_if_the_folder_is_read_only():
    with Folder() as folder, FakeServer() as server:
        (folder / "spool").mkdir(mode=0o555)
        check_memory_takes_over(folder, server, OFFBEAT.reachable().programs / "sends", **user_without_rights())


# --- libcurl ---------------------------------------------------------------------------------------------------------

@case
def without_libcurl_envelopes_wait_in_the_spool():
    for program in (OFFBEAT.program, SENDS):
        check("libcurl" not in text(run("readelf", "-d", program).stdout), f"{program.name} needs libcurl")
    with Folder() as folder, FakeServer() as server:
        environment = {"LD_PRELOAD": str(OFFBEAT.programs / "no_curl.so")}
        printed = sends(server, environment, count=3, spool=folder / "spool", flush_ms=100, stop_ms=100)
        check_equal((printed["sent"], printed["flushed"], printed["stopped"]), (0, False, False), "without libcurl")
        check_equal(printed["said"], "sending: libcurl.so.4 is not installed: nothing can be sent", "said")
        sends(server, count=0, spool=folder / "spool")
        check_equal(server.chunks, ids(3), "chunks")
        check_sums(server, 3)


# --- offbeat send ----------------------------------------------------------------------------------------------------

ENVELOPE = ROOT / "test/data/bound.envelope"
ITEM_TYPES = ["transaction", "profile", "span", "client_report", "something_new"]


def send(*arguments, **options):
    return run(OFFBEAT.program, "send", *arguments, env=ENVIRONMENT, **options)


@case
def what_offbeat_send_sends_is_what_the_rules_accept_V2_7():
    with FakeServer() as server, Folder() as folder:
        done = send(ENVELOPE, "--dsn", server.dsn)
        check_equal((done.returncode, text(done.stdout), text(done.stderr)), (0, f"{ENVELOPE}: accepted (200): {{}}", ""), "said")
        (folder / "x.envelope").write_bytes(server.bodies[0])
        checked = run(OFFBEAT.program, "validate", folder / "x.envelope")
        check_equal(checked.returncode, 0, text(checked.stdout))
        check_equal([item["type"] for item, _ in items_of(server.bodies[0])],
                    ITEM_TYPES, "items")


@case
def offbeat_send_validates_first_unless_forced():
    rejected = ROOT / "test/data/trials/send-accepts-rejected.envelope"
    with FakeServer() as server:
        done = send(rejected, ENVELOPE, "--dsn", server.dsn)
        first, second = text(done.stdout).splitlines()
        check(first.startswith(f"{rejected}: not sent: item 2, profile: profiling_not_enough_samples: ") and first.endswith("; --force sends it"), first)
        check_equal((done.returncode, second, len(server.bodies)), (1, f"{ENVELOPE}: accepted (200): {{}}", 1), "status, second line, sent")
        done = send(rejected, "--force", "--dsn", server.dsn)
        check_equal((done.returncode, text(done.stdout), len(server.bodies)), (0, f"{rejected}: accepted (200): {{}}", 2), "forced")
        check("servers drop this, also after the answer 200: item 2, profile: profiling_not_enough" in text(done.stderr), text(done.stderr))


@case
def offbeat_send_says_what_the_server_said():
    script = [answer(413, '{"detail":"too\x1b[31m large"}'), answer(200),
              answer(429, X_Sentry_Rate_Limits="60::key", Retry_After="60")]
    with FakeServer(script) as server, Folder() as folder:
        chunk = folder / "chunk.envelope"
        chunk.write_bytes(b'{}\n{"type":"profile_chunk","platform":"native","length":16}\n{"chunk_id":"c"}\n')
        done = send("--force", chunk, chunk, chunk, ENVELOPE, "--dsn", server.dsn)
        lines = text(done.stdout).splitlines()
        check_equal(done.returncode, 1, "status")
        check_equal([line.split(": ", 1)[1] for line in lines],
                    ['rejected (413): {"detail":"too [31m large"}',
                     "limited (429): {}; rate limits: 60::key; retry after: 60",
                     "withheld: a rate limit is in force",
                     "accepted (200): {}; withheld by a rate limit: 3 items"], "lines")
        for category in ("transaction", "profile", "profile_chunk"):
            check_equal(server.reported.get(f"ratelimit_backoff:{category}"), 1, f"reported of {category}")
    with FakeServer([answer(200, '{"id":"1"}')]) as server:
        done = send(ENVELOPE, "--json", "--dsn", server.dsn)
        check_equal(json.loads(done.stdout), {"status": 200, "withheld": 0, "outcome": "accepted", "answer": '{"id":"1"}', "rate_limits": "",
                                              "retry_after": "", "failure": "", "file": str(ENVELOPE)}, "JSON")


@case
def quiet_send_prints_only_what_is_not_sent():
    with FakeServer([answer(200), answer(403, "no"), answer(200), answer(403, "no")]) as server:
        for options in ((), ("--json",)):
            done = send(ENVELOPE, ENVELOPE, "-q", *options, "--dsn", server.dsn)
            said = text(done.stdout)
            check_equal((done.returncode, len(said.splitlines())), (1, 1), f"status and lines: {said}")
            check("403" in said, said)


@case
def send_exits_with_3_if_it_cannot_print_the_answer():
    for output in ("&-", "/dev/full"):
        with FakeServer() as server:
            done = run("sh", "-c", f'exec "$@" >{output}', "sh", OFFBEAT.program, "send", ENVELOPE, ENVELOPE, "--dsn", server.dsn, env=ENVIRONMENT)
            check_equal((done.returncode, text(done.stderr)), (3, "offbeat: standard output: cannot write"), f"status, said with >{output}")
            check_equal((len(server.bodies), server.problems), (2, []), "sent, what is wrong with requests")


@case
def send_exits_with_3_without_a_server_or_an_envelope():
    done = send(ENVELOPE, ENVELOPE, "--timeout", "0.3", "--dsn", f"http://{KEY}@127.0.0.1:{closed_port()}/1")
    check_equal(done.returncode, 3, "status")
    check("no answer" in text(done.stdout) and "1 more files" in text(done.stderr), text(done.stdout + done.stderr))
    with FakeServer() as server, Folder() as folder:
        (folder / "x").write_text("main;work 5\n", encoding="ascii")
        done = send(folder / "x", ENVELOPE, folder / "none", "--dsn", server.dsn)
        check_equal((done.returncode, len(server.bodies)), (3, 1), "status, sent")
        check_equal(len(text(done.stderr).splitlines()), 2, text(done.stderr))
    check_equal(send(ENVELOPE, "--dsn", "https://example.org/1").returncode, 2, "status for a wrong DSN")
    check_equal(send(ENVELOPE).returncode, 2, "status without a DSN")


main(sys.argv[2] if len(sys.argv) > 2 else "")
