"""What programs with liboffbeat profile and send (sdk_program.py). Arguments: the build folder, and optionally a part of the names
of the cases to run. SPDX-License-Identifier: MIT"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

from server import FakeServer, answer, wait_until
from recording import ROOT, Folder, case, case_by_the_clock, check, check_equal, leave_out, main, run, short, skip, slowness, some_of, text
from sdk_program import (DRIVES, IS_ASAN, OFFBEAT, Arrived, arrived, drive, environment, frames_of, functions, helper_that_waits, profiler_ids,
                         read_names, remaining_files, takes_long, times, times_in, too_few, with_sanitizer)

SOURCE = ROOT / "test/end_to_end/sdk_drives.c"

# --- Lifecycle -------------------------------------------------------------------------------------------------------

@short
@case
def manual_restarts_have_new_ids_SES_3_SES_4_SES_11_LNK_1():
    """SES-3, SES-4, SES-11, LNK-1"""
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init id transaction alone start id await work 300 stop id flush 30000 finish alone transaction after finish after work_in_child 200 "
                    "start id await work 300 stop shutdown", traces_sample_rate=1)
        got = arrived(server, folder)
        (before, first, between, second), runs = ran.printed["id"], ran.printed["runs"]
        check_equal((runs, before, between), ([False, True, False, True], "", ""), "runs")
        check_equal(profiler_ids(got.chunks), [first, second], "profiler ids, in order")
        check(all(re.fullmatch(r"[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}", one) for one in (first, second)), f"uuid4: {first}, {second}")
        check("works" in functions(got.chunks[:1]) and "works" in functions(got.chunks[1:]), "works is missing")
        check("works_in_the_child" not in functions(got.chunks), "sampled while it was stopped")
        check_equal({one["transaction"]: one["contexts"].get("profile") for one in got.transactions},
                    {"alone": {"profiler_id": first}, "after": None}, "profiles of transactions")


@case
def a_session_that_is_not_sampled_is_never_profiled_SES_2_SES_6():
    """SES-2, SES-6, SES-7"""
    for rate in (None, 0):
        with Folder() as folder, FakeServer() as server:
            ran = drive(server, folder, "init start id work 50 look flush 5000", profile_session_sample_rate=rate)
            check("start_profiler does nothing: the session is not sampled" in ran.said, ran.said)
            check_equal((ran.printed["runs"], ran.printed["threads"], server.requests), ([False], [1], 0), "runs, threads, requests")
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init transaction a work 50 id finish a flush 30000", profile_session_sample_rate=0,
                    profile_lifecycle="trace", traces_sample_rate=1)
        got = arrived(server, folder)
        check_equal((ran.printed["runs"], len(got.chunks), len(got.transactions)), ([False], 0, 1), "runs, chunks, transactions")
        check("profile" not in got.transactions[0]["contexts"], "linked to a profile that is not")


@case
def samples_sessions_at_the_set_rate_SES_2_SES_8_SES_9_SES_10():
    """SES-2, SES-8, SES-9, SES-10: 60 draws at 0.5: fewer than 11 or more than 49 would come once in a million times."""
    takes_long()
    for what, words, options in (("sessions of processes", "init start id " * 60, {}),
                                 ("sessions of a user", "init " + "background foreground start id " * 60, {"is_ui": 1}),
                                 ("starts of the next launch", "init id " * 61, {"start_profiler_on_app_start": 1}),
                                 ("transactions of V1", "init " + "transaction t id finish t " * 60, {"profiles_sample_rate": 0.5, "traces_sample_rate": 1})):
        with Folder() as folder, FakeServer() as server:
            printed = drive(server, folder, words, **{"profile_session_sample_rate": 0.5, "helper": "/nonexistent", "debug": None, **options}).printed
            check(all(printed["init"]), f"inits of {what}")
            check(11 <= sum(printed["runs"]) <= 49, f"{sum(printed['runs'])} of 60 {what} were sampled")


@case
def the_items_header_names_the_platform_that_the_program_chose_V2_7():
    """V2-7: servers count a chunk by its platform."""
    for options, expected in (({}, "native"), ({"platform": "javascript"}, "javascript")):
        with Folder() as folder, FakeServer() as server:
            drive(server, folder, "init start await work 300 stop flush 60000", **options)
            got = arrived(server, folder)
            named = {(item.get("platform"), payload["platform"]) for envelope in got.envelopes for item, payload in envelope}
            check_equal(named, {(expected, expected)}, "platforms of the item's header and of the payload")


@case_by_the_clock
def samples_101_times_a_second_by_default_SES_1():
    """SES-1"""
    takes_long()
    for options, expected in (({}, 1 / 101), ({"frequency": 50}, 1 / 50)):
        with Folder() as folder, FakeServer() as server:
            drive(server, folder, "init start await work 2000", **options)
            chunk, = arrived(server, folder).chunks
            # Ticks fall at random in their periods, and of samples at one place in a row some are left out: the ticks are counted.
            facts, stamps = chunk["offbeat"]["facts"], times(chunk)
            ticks = sum(int(facts[name]) for name in ("ticks", "ticks_missed", "ticks_spared"))
            between = (stamps[-1] - stamps[0]) / ticks
            check(len(times_in(chunk, "works")) >= 20, f"{len(times_in(chunk, 'works'))} samples")
            check(abs(between / expected - 1) < 0.02, f"{between * 1e3:.3f} ms between two ticks, expected {expected * 1e3:.3f}")


@case_by_the_clock
def a_thread_that_runs_has_a_sample_each_tick_SES_12():
    """A loop that stays at one place for seconds; who counts samples sees all of its time."""
    with Folder() as folder, FakeServer() as server:
        drive(server, folder, "init start await thread 2500 join")
        chunk, = arrived(server, folder).chunks
        threads = chunk["profile"]["thread_metadata"]
        busy, waiting = (next(one for one, facts in threads.items() if facts["name"] == name) for name in ("second", "sdk_drives"))
        counts = {thread: sum(sample["thread_id"] == thread for sample in chunk["profile"]["samples"]) for thread in (busy, waiting)}
        check(counts[busy] >= 0.9 * 2.5 * 101, f"{counts[busy]} samples of a thread that ran for 2.5 s")
        check(counts[waiting] < counts[busy] / 2, f"{counts[waiting]} samples of a thread that waits, {counts[busy]} of the other one")


@case
def trace_mode_runs_from_first_sampled_root_to_last_chunk_SES_5_SES_11():
    """SES-5, SES-11"""
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init unsampled u id finish u transaction a id await work 200 transaction b finish a id work 200 "
                    "finish b id work_in_child 300 transaction d id finish d sleep 6500 flush 60000 id transaction c id await work 300 finish c",
                    profile_lifecycle="trace", traces_sample_rate=1, chunk_seconds=6)
        got = arrived(server, folder, {"sample_rate:transaction": 1, "sample_rate:span": 1})
        of_none, of_a, of_b, finishing, of_d, over, of_c = ran.printed["id"]
        check_equal((of_none, over), ("", ""), "with no sampled root")
        check_equal([of_b, finishing, of_d], [of_a] * 3, "overlapping roots, until the chunk ends, and one that begins before that")
        check(of_c and of_c != of_a, f"the same id again: {of_c}")
        check_equal(profiler_ids(got.chunks), [of_a, of_c], "profiler ids")
        check("works_in_the_child" in functions(chunk for chunk in got.chunks if chunk["profiler_id"] == of_a), "the chunk was not finished")
        check_equal(len(got.transactions), 4, "transactions")


@case
def trace_without_tracing_says_so_SES_5():
    """SES-5"""
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init transaction root id work 50 finish root look", profile_lifecycle="trace", debug=None)
        check_equal(ran.said, "offbeat: nothing is profiled, because profiles follow transactions and tracing is off: set traces_sample_rate",
                    "said")
        check_equal((ran.printed["runs"], ran.printed["threads"]), ([False], [1]), "runs, threads")


@case
def calls_that_do_nothing_say_so_to_who_debugs_SES_7():
    """SES-7"""
    with Folder() as folder, FakeServer() as server:
        words = "init stop start start id work 50 stop stop background foreground"
        said = drive(server, folder, words).said.splitlines()
        printed = [line for line in said if "nothing" in line or "no effect" in line]
        check_equal(printed, ["offbeat: stop_profiler does nothing: the profiler is not running", "offbeat: start_profiler does nothing: the profiler is running",
                           "offbeat: stop_profiler does nothing: the profiler is not running",
                           "offbeat: background has no effect: the session lasts as long as the process",
                           "offbeat: foreground has no effect: the session lasts as long as the process"], "said")
        check_equal(drive(server, folder, words, debug=None).said, "", "said without debug")
        ran = drive(server, folder, "init start stop id transaction a stop id", profile_lifecycle="trace", traces_sample_rate=1)
        check_equal(ran.said.count("does nothing: profile_lifecycle is trace"), 3, f"times in {ran.said}")
        check_equal(ran.printed["runs"], [False, True], "runs")


@short
@case
def debug_logs_each_setting_with_its_source_and_each_action():
    with Folder() as folder, FakeServer() as server:
        drive_of = lambda words, **options: drive(server, folder, words, **{"dsn": None, "SENTRY_DSN": server.dsn, "OTEL_SERVICE_NAME": "shop",
                                                                            "traces_sample_rate": 1, **options}).said
        said = drive_of("init start await work 300 stop transaction a finish a", release="1.2", proxy="http://u:secret@h", NO_PROXY="*")
        for line in (f'dsn: "{server.dsn}" (SENTRY_DSN)', 'service: "shop" (OTEL_SERVICE_NAME)', 'release: "shop@1.2" (OFFBEAT_RELEASE)',
                     "frequency_hz: 101 (default)", 'proxy: "http://u:***@h" (OFFBEAT_PROXY)',
                     "the session is sampled: profile_session_sample_rate is 1", "starts: offbeat_start_profiler was called",
                     "stops: offbeat_stop_profiler was called"):
            check(line in said, f"{line!r} is missing: {said}")
        check("profile_session_sample_rate: 0.5 (the program)" in drive_of("option profile_session_sample_rate 0.5 init"), "not the program")
        check(re.search(r"profiler \w+ stops: the library shuts down", drive_of("init start await")), "no reason of the end")


@short
@case
def debug_logs_what_becomes_of_each_envelope():
    words, dropped = "init start await work 300 stop flush 30000", "an envelope is dropped: the server rejects it; items: 1; status: "
    for reply, lines in ((answer(200), ["an envelope is sent; items: 1; status: 200"]),
                         (answer(401, '{"detail":"invalid \x1b[31m\noffbeat: forged"}'), [dropped + '401; answer: {"detail":"invalid \\x1b[31m\\x0aoffbeat: forged"}']),
                         (answer(413, "x" * 5000), [f"{dropped}413; answer: {'x' * 500}"]), (answer(302, "", Location="/"), [dropped + "302"]),
                         (answer(429, "slower", Retry_After="60"),
                          ["an envelope is dropped: the server limits the rate; items: 1; status: 429; answer: slower; retry after: 60",
                           "an envelope is dropped: a rate limit is in force; items: 1"])):
        with Folder() as folder, FakeServer([reply]) as server:
            said = drive(server, folder, words + " transaction a finish a flush 30000", traces_sample_rate=1).said.splitlines()
            logged = [line.removeprefix("offbeat: ") for line in said]
            check_equal([line for line in logged if re.match("an envelope is (sent|dropped)", line)][:len(lines)], lines, f"after {reply}")
            for pattern in ("a recording is complete: offbeat-helper makes a chunk of it", ".*/offbeat-helper is started, for .*/spool",
                            "the envelope of a chunk is made, and stored in .*/spool/.*", r"an envelope of \d+ bytes is stored in .*/spool/.*"):
                check(any(re.fullmatch(pattern, line) for line in logged), f"{pattern!r} is missing: {logged}")
    with Folder() as folder, FakeServer(default=answer(401, "no")) as server:
        check_equal(drive(server, folder, words, debug=None).said, "", "without debug")


@case
def debug_logs_more_than_the_helpers_log_has_room_for():
    with Folder() as folder, FakeServer(default=answer(500, "x" * 500)) as server:
        said = drive(server, folder, "init " + "transaction t finish t " * 500 + "flush 60000", traces_sample_rate=1).said
        check_equal(said.count("an envelope is dropped: the server rejects it; items: 1; status: 500"), 500, "lines")


@case
def the_programs_log_may_wait_for_a_thread_that_traces():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "option log_after_a_transaction x init transaction a await work 100 finish a", profile_lifecycle="trace", traces_sample_rate=1)
        for line in ('the transaction "a" is sampled', 'the transaction "a" is complete, with 0 spans'):
            check(f"logged: {line}" in ran.said, f"{line!r} is missing: {ran.said}")


@short
@case
def a_missing_dsn_and_an_invalid_option_are_one_line_and_false():
    with Folder() as folder:
        for words, said in (("init", "there is no DSN (option dsn, OFFBEAT_DSN); nothing is profiled"),
                            ("option profile_session_sample_rate 100 init",
                             "profile_session_sample_rate must be a number from 0 to 1, not 100; nothing is profiled")):
            ran = drive(None, folder, words, debug=None)
            check_equal((ran.printed["init"], ran.said), ([False], f"offbeat: {said}"), words)


@case
def the_service_is_the_name_that_was_started_or_the_script():
    (note,) = re.findall(r"Build ID: ([0-9a-f]+)", text(run("readelf", "-n", DRIVES).stdout))
    with Folder() as folder, FakeServer() as server:
        (folder / "redis-server").symlink_to(DRIVES)
        done = run(folder / "redis-server", "init", cwd=folder, env=environment(server, folder))
        check(f'release: "redis-server@{note}" (default)' in text(done.stderr), text(done.stderr))
        if IS_ASAN:
            return
        (folder / "app.py").write_text("print('hello')\n")
        done = run(sys.executable, "-W", "ignore", "app.py", "x", cwd=folder, env=environment(server, folder, dsn=None, SENTRY_DSN=server.dsn,
                                                                                                      LD_PRELOAD=OFFBEAT.build / "liboffbeat.so"))
        check('release: "app.py@' in text(done.stderr) and "starts: the library was loaded" in text(done.stderr), text(done.stderr))
        done = run("true", env=environment(None, folder, LD_PRELOAD=OFFBEAT.build / "liboffbeat.so"))
        check("there is no DSN" in text(done.stderr), text(done.stderr))


@short
@case
def the_program_changes_spans_and_transactions_before_they_are_sent():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "option changes hidden init transaction a user a u-7 tag a secret x integer a count 9007199254740993 tag a tag before "
                    "span kept a integer kept secret 1 finish kept span dropped a finish dropped finish a transaction hidden finish hidden "
                    "flush 9000 counts", traces_sample_rate=1)
        got = arrived(server, folder, {"before_send:span": 2, "before_send:transaction": 1})
        transaction, = got.transactions
        trace, span = transaction["contexts"]["trace"], transaction["spans"][0]
        check_equal((transaction["transaction"], transaction["transaction_info"], transaction["user"], transaction["tags"]),
                    ("changed name", {"source": "route"}, {"id": "u-7", "ip_address": "192.0.2.1"}, {"tag": "changed"}), "the transaction")
        check_equal((trace["description"], trace["data"]["added"], trace["data"]["count"]),
                    ("changed description", "a text", 9007199254740993), "data of the root")
        check_equal((len(transaction["spans"]), span["description"], span["tags"], span["data"].get("secret"), span["data"]["added"]),
                    (1, "changed description", {"tag": "changed"}, None, "a text"), "spans")
        check_equal(ran.printed["attribute"][0], ["secret", 2, "", 1], "what the program reads")
        contexts = transaction["contexts"]
        check_equal((contexts["os"]["name"], contexts["device"]["arch"], contexts["runtime"]["name"], contexts["app"]["app_name"]),
                    ("Linux", os.uname().machine, "glibc", "sdk_drives"), "contexts")
        check_equal(ran.counts(), {"made": 2, "sent": 1, "limited": 0, "discarded": 1}, "counts")


@case
def what_the_program_removes_is_in_no_file_of_the_spool():
    with Folder() as folder, FakeServer() as server:
        drive(server, folder, "option changes hidden init transaction a tag a secret s3cr3t span kept a finish kept finish a transaction hidden tag hidden "
              "other s3cr3t finish hidden", traces_sample_rate=1, profile_session_sample_rate=0, helper="/nonexistent", shutdown_timeout_ms=100)
        stored = [path.read_bytes() for path in (folder / "spool").rglob("*.envelope")]
        check_equal([b"changed name" in data for data in stored], [True], "transactions in the spool")
        check(not any(b"s3cr3t" in path.read_bytes() for path in folder.rglob("*") if path.is_file()), "the spool has what was removed")


@case
def spans_outside_of_the_transaction_sent_are_reported_and_logged():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init transaction a span late a " + "span s a finish s " * 1001 + "finish a finish late flush 9000", traces_sample_rate=1)
        transaction, = arrived(server, folder, {"no_parent_span:span": 1, "buffer_overflow:span": 2}).transactions
        check_equal(len(transaction["spans"]), 999, "spans")
        for said in ("dropped: 1 of span (no_parent_span)", "dropped: 2 of span (buffer_overflow)"):
            check(said in ran.said, f"not said: {said}: {ran.said}")


@case
def a_trace_of_another_organization_is_not_continued():
    with Folder() as folder, FakeServer() as server:
        for variables, parent in (({}, True), ({"org_id": 7}, True), ({"org_id": 7, "strict_trace_continuation": 1}, False)):
            server.bodies.clear()
            drive(server, folder, "init caller_sampled a finish a", traces_sample_rate=1, **variables)
            transaction, = arrived(server, folder).transactions
            check_equal("parent_span_id" in transaction["contexts"]["trace"], parent, f"continued with {variables}")


@case
def v1_options_win_and_profiles_follow_transactions_SES_8_V1_5():
    """SES-8, V2-8 (only these options ask for V1), V1-1, V1-3, V1-5, V1-6"""
    for option in ({"profiles_sample_rate": 1}, {}):
        with Folder() as folder, FakeServer() as server:
            words = "" if option else "option profiles_sampler ab "
            ran = drive(server, folder, words + "init start id transaction a await work 300 transaction b work 300 finish a work 200 finish b "
                        "flush 60000 counts", traces_sample_rate=1, **option)
            got = arrived(server, folder)
            for said in ("profile_session_sample_rate has no effect", "start_profiler does nothing: transactions are profiled"):
                check(said in ran.said, f"not said: {said}: {ran.said}")
            check_equal((len(got.chunks), len(got.profiles), len(got.transactions)), (0, 2, 2), "chunks, profiles, transactions")
            for envelope in got.envelopes:
                by_type = {item["type"]: payload for item, payload in envelope}
                transaction, profile = by_type["transaction"], by_type["profile"]
                check_equal((profile["version"], profile["transaction"]["id"], profile["transaction"]["trace_id"],
                             profile["transaction"]["name"], str(profile["transaction"]["active_thread_id"])),
                            ("1", transaction["event_id"], transaction["contexts"]["trace"]["trace_id"], transaction["transaction"],
                             transaction["contexts"]["trace"]["data"]["thread.id"]),
                            "the profile's transaction")
                check("works" in {frame.get("function") for frame in profile["profile"]["frames"]}, "works is missing")
                check("build_number" not in profile["os"], "build_number is cocoa's (V1-6)")
                check("profiler_id" not in transaction["contexts"].get("profile", {}), "linked to a continuous profile")
                longest = max(int(sample["elapsed_since_start_ns"]) for sample in profile["profile"]["samples"]) / 1e9
                lasted = transaction["timestamp"] - transaction["start_timestamp"]
                check(0.3 * lasted < longest <= lasted + 0.1, f"samples over {longest} s of {lasted} s")
                measured = [int(value["elapsed_since_start_ns"]) / 1e9 for one in profile["measurements"].values() for value in one["values"]]
                check(measured and min(measured) > 0 and max(measured) <= lasted, f"measured at {measured} of {lasted} s")
            check_equal(ran.counts(), {"made": 4, "sent": 4, "limited": 0, "discarded": 0}, "counts")


@case
def a_limit_of_profiles_is_the_reason_why_v1_makes_none():
    limit = answer(200, X_Sentry_Rate_Limits="60:profile:key")
    with Folder() as folder, FakeServer([limit]) as server:
        drive(server, folder, "init transaction a work 300 finish a flush 60000 sleep 1200 transaction b work 200 finish b", profiles_sample_rate=1, traces_sample_rate=1)
        check_equal((server.reported, len(Arrived(server, folder).transactions)), ({"ratelimit_backoff:profile": 1}, 2), "reported, transactions")
    with Folder() as folder, FakeServer([limit]) as server: # it begins while b runs
        ran = drive(server, folder, "init transaction a work 300 finish a transaction b flush 60000 sleep 1200 finish b", profiles_sample_rate=1, traces_sample_rate=1)
        check_equal((server.reported, len(Arrived(server, folder).transactions)), ({"ratelimit_backoff:profile": 1}, 2), "reported, transactions")
        check("dropped: 1 of profile (ratelimit_backoff)" in ran.said, f"the library has a profile made: {ran.said}")


# What the program's samplers receive about a caller, which decided by a rate of a quarter.
NO, YES, CALLERS_RATE = 1, 2, 0.25


@case
def traces_sampler_decides_before_the_caller_and_the_rate_SES_5():
    """SES-5"""
    decided = "caller_sampled a finish a caller_unsampled b finish b unsampled c finish c sampled d finish d transaction e finish e"
    for words, options, asked, sent in (
            ("option traces_sampler y init transaction yes id finish yes transaction no id finish no caller_unsampled yes-2 finish yes-2 "
             "caller_sampled no-2 finish no-2 sampled no-3 finish no-3 unsampled yes-3 finish yes-3", {},
             [["yes", "test", 0, -1, "yes"], ["no", "test", 0, -1, "no"], ["yes-2", "test", NO, CALLERS_RATE, "yes-2"],
              ["no-2", "test", YES, CALLERS_RATE, "no-2"]], ["yes", "yes-2", "no-3"]),
            ("option traces_sampler y init transaction no id finish no transaction yes id finish yes", {"traces_sample_rate": 1},
             [["no", "test", 0, -1, "no"], ["yes", "test", 0, -1, "yes"]], ["yes"]),
            ("init " + decided, {"traces_sample_rate": 0}, [], ["a", "d"]),
            ("init " + decided, {"traces_sample_rate": 1}, [], ["a", "d", "e"])):
        with Folder() as folder, FakeServer() as server:
            ran = drive(server, folder, words, profile_lifecycle="trace", **options)
            started = len(re.findall("finish", words))
            not_sent = {f"sample_rate:{category}": started - len(sent) for category in ("transaction", "span")}
            got = arrived(server, folder, {**not_sent, **too_few(server)})
            check_equal(ran.printed.get("traces_sampler", []), asked, "arguments of the sampler")
            check_equal([one["transaction"] for one in got.transactions], sent, f"sent of {words}, {options}")
            # With a sampler alone tracing is on, and what it does not sample starts no profile.
            check("tracing is off" not in ran.said, ran.said)
            check_equal(ran.printed.get("runs", []), {0: [], 2: [False, True], 4: [True, True]}[len(asked)], "runs")


@case
def profiles_sampler_chooses_sampled_transactions_SES_8_V1_5():
    """SES-8, V1-5"""
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "option profiles_sampler y init transaction no id work 100 finish no transaction yes id await work 300 finish yes "
                    "unsampled yes-2 id finish yes-2 caller_sampled yes-3 id await work 300 finish yes-3 flush 60000", traces_sample_rate=1,
                    profiles_sample_rate=1)
        check_equal(ran.printed["profiles_sampler"], [["no", "test", 0, -1, "no"], ["yes", "test", 0, -1, "yes"],
                                                   ["yes-3", "test", YES, CALLERS_RATE, "yes-3"]], "arguments of the sampler")
        check_equal(ran.printed["runs"], [False, True, False, True], "runs")
        got = arrived(server, folder, {"sample_rate:transaction": 1, "sample_rate:span": 1})
        check_equal(sorted(one["transaction"] for one in got.transactions), ["no", "yes", "yes-3"], "transactions")
        check_equal(sorted(one["transaction"]["name"] for one in got.profiles), ["yes", "yes-3"], "profiles")
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init start id transaction a id finish a", traces_sample_rate=1, profiles_sample_rate=0)
        check("profile_session_sample_rate has no effect" in ran.said, f"a rate of 0 is set, too: {ran.said}")
        check_equal(ran.printed["runs"], [False, False], "runs at a rate of 0")


@case
def what_the_program_says_counts_before_the_environment_SES_2_SES_3():
    """SES-2, SES-3"""
    for option, options, runs in (("profile_session_sample_rate 1", {"profile_session_sample_rate": 0}, [True, True]),
                                  ("profile_session_sample_rate 0.000001", {"profile_session_sample_rate": 1}, [False, False]),
                                  ("profile_lifecycle trace", {"profile_lifecycle": "manual"}, [False, True])):
        with Folder() as folder, FakeServer() as server:
            ran = drive(server, folder, f"option {option} init start id transaction a id finish a", traces_sample_rate=1, helper="/nonexistent",
                        **options)
            check_equal(ran.printed["runs"], runs, f"runs with {option}")


@case_by_the_clock
def requests_of_the_program_are_met_while_a_helper_works():
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, f"init start id await work 300 stop sleep 300 start id await work_in_child 300 measure queue byte 1 stop "
                    f"start id await work 300 stop fork 3 exec touch {folder}/go wait flush 60000 counts", helper=helper_that_waits(folder))
        chunks = arrived(server, folder).chunks
        check_equal(profiler_ids(chunks), ran.printed["id"], "profiler ids, in order")
        check_equal(["works_in_the_child" in functions([chunk]) for chunk in chunks], [False, True, False], "chunks with works_in_the_child")
        check_equal(["queue" in chunk["measurements"] for chunk in chunks], [False, True, False], "chunks with the measurement")
        check_equal(ran.counts()["sent"], 3, "sent")
    with Folder() as folder, FakeServer() as server:
        # The first chunk is being made when the last root ends, and with it what is to be the last chunk.
        ran = drive(server, folder, f"init transaction a id await work 1500 finish a id sleep 5000 id fork 3 exec touch {folder}/go wait",
                    profile_lifecycle="trace", traces_sample_rate=1, chunk_seconds=1, helper=helper_that_waits(folder))
        chunks = arrived(server, folder).chunks
        first, finishing, over = ran.printed["id"]
        check_equal((finishing, over), (first, ""), "after the root, after the chunk")
        check_equal(profiler_ids(chunks), [first], "profiler ids")
        check(len(chunks) > 1, "one chunk") # on a busy machine there are more than two


@case
def a_session_of_a_user_interface_ends_in_the_background_SES_9():
    """SES-9, SES-11"""
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init start id await work 200 background id start id flush 60000 foreground id start id await work 200", is_ui=1)
        got = arrived(server, folder)
        first, *none, second = ran.printed["id"]
        check_equal((none, ran.said.count("the session has ended")), (["", "", ""], 1), "in the background")
        check_equal(profiler_ids(got.chunks), [first, second], "profiler ids")
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init transaction a id await work 200 background id foreground transaction b id work 200 finish a id "
                    "flush 60000 await work 200 finish b background id", is_ui=1, profile_lifecycle="trace", traces_sample_rate=1)
        got = arrived(server, folder, too_few(server))
        first, away, carried, second, end = ran.printed["id"]
        check_equal((away, carried, end), (first, first, ""), "an open trace carries its session")
        check_equal(profiler_ids(got.chunks), [first, second], "profiler ids")


@case
def a_new_session_has_a_new_profiler_id_LNK_1_SES_9():
    """The profiler restarts a moment after the transaction's root span began."""
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init transaction a id await work 200 background foreground finish a transaction b id await work 300 "
                    "finish b id flush 60000", is_ui=1, profile_lifecycle="trace", traces_sample_rate=1)
        got = arrived(server, folder, too_few(server))
        first, second, _ = ran.printed["id"]
        check(first and second and first != second, f"profilers {ran.printed['id']}")
        named = {transaction["transaction"]: transaction["contexts"]["profile"]["profiler_id"] for transaction in got.transactions}
        check_equal(named, {"a": first, "b": second}, "profiler ids of transactions")


@case
def spans_have_the_name_that_their_thread_has_in_the_chunk_LNK_4():
    with Folder() as folder, FakeServer() as server:
        drive(server, folder, "init transaction a span part a await work 100 finish part rename later work 200 finish a work 50",
              profile_lifecycle="trace", traces_sample_rate=1)
        got = arrived(server, folder)
        transaction, threads = got.transactions[0], got.chunks[0]["profile"]["thread_metadata"]
        for data in (transaction["contexts"]["trace"]["data"], transaction["spans"][0]["data"]):
            check_equal((data["thread.name"], threads[data["thread.id"]]["name"]), ("later", "later"), "names")


@case
def profiles_the_launch_as_the_previous_launch_decided_SES_10():
    """SES-10"""
    with Folder() as folder, FakeServer() as server:
        def launch(words, **options):
            return drive(server, folder, words, start_profiler_on_app_start=1, **options).printed["id"]
        check_equal(launch("init id"), [""], "the very first launch")
        first, stopped = launch("init id await work 200 stop id")
        check(first and not stopped, "the second launch is profiled from init to stop")
        start, in_root, after = launch("init id transaction a id await work 200 finish a id flush 60000",
                                       profile_lifecycle="trace", traces_sample_rate=1)
        check(start and start == in_root and not after, f"with the first root: {start}, {in_root}, {after}")
        drive(server, folder, "init id")
        check_equal(launch("init id"), [""], "forgotten where the option was off")
        launch("init id", profile_session_sample_rate=0)
        check_equal(launch("init start id"), [""], "kept: do not profile")
        check(launch("init id await work 200")[0], "and the next one again as drawn")
        check_equal(profiler_ids(arrived(server, folder, too_few(server)).chunks)[:2], [first, start], "profiler ids")


@case
def the_decision_for_a_start_belongs_to_one_program_in_one_release_SES_13():
    with Folder() as folder, FakeServer() as server:
        def launch(release, **options):
            return drive(server, folder, "init id", start_profiler_on_app_start=1, release=release, **options).printed["id"]
        check_equal(launch("a@1"), [""], "the first launch of a@1")
        check_equal(launch("a@2"), [""], "the first launch of a@2")
        check(launch("a@1")[0], "the second launch of a@1 is not profiled")
        launch("a@2", profile_session_sample_rate=0)
        check(launch("a@1")[0], "what a@2 decided counts for a@1")
        ran = drive(server, folder, "init id", start_profiler_on_app_start=1, spool_directory="")
        check("start_profiler_on_app_start has no effect" in ran.said, ran.said)


@case
def rejects_invalid_rates_and_accepts_zero_SES_14_SES_15():
    with Folder() as folder, FakeServer() as server:
        for name in ("traces_sample_rate", "profiles_sample_rate"):
            for rate in (2, -1, "nan"):
                ran = drive(server, folder, f"option {name} {rate} init start id")
                check_equal(ran.said.count(f"{name} must be a number from 0 to 1"), 1, f"{name} {rate}: {ran.said!r}")
        ran = drive(server, folder, "init start id", profiles_sample_rate=1, traces_sample_rate=1)
        check_equal(ran.printed["id"], [""], "V1 by the environment")
        ran = drive(server, folder, "option profiles_sample_rate -0.0 init start id", profiles_sample_rate=1)
        check(ran.printed["id"][0], "an explicit 0 does not count before the environment")


@short
@case
def spans_name_their_profile_and_thread_LNK_1_LNK_2_LNK_3():
    """LNK-1, LNK-2, LNK-3"""
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init transaction a span part a await work 200 thread 300 work 100 finish part join finish a id work 50",
                    profile_lifecycle="trace", traces_sample_rate=1)
        got = arrived(server, folder)
        check_equal((len(got.chunks), len(got.transactions)), (1, 1), "chunks, transactions")
        chunk, transaction = got.chunks[0], got.transactions[0]
        trace, spans = transaction["contexts"]["trace"], {span["description"]: span for span in transaction["spans"]}
        check_equal((transaction["contexts"]["profile"]["profiler_id"], chunk["profiler_id"]), (ran.printed["id"][0],) * 2, "profiler id")
        named = {thread: facts["name"] for thread, facts in chunk["profile"]["thread_metadata"].items()}
        sampled = {sample["thread_id"] for sample in chunk["profile"]["samples"]}
        for data, name in ((trace["data"], "sdk_drives"), (spans["part"]["data"], "sdk_drives"), (spans["elsewhere"]["data"], "second")):
            check(data["thread.id"] in sampled, f"{data} has no samples: {sampled}")
            check_equal((named.get(data["thread.id"]), data["thread.name"]), (name, name), f"name of thread {data['thread.id']}")
            check_equal(data.get("profiler_id", chunk["profiler_id"]), chunk["profiler_id"], "profiler id of a span")
        check_equal({span["trace_id"] for span in spans.values()}, {trace["trace_id"]}, "trace ids")
        check_equal({span["parent_span_id"] for span in spans.values()}, {trace["span_id"]}, "parents")
        check(times(chunk)[0] < transaction["timestamp"] and times(chunk)[-1] > transaction["start_timestamp"], "no common time")


@case_by_the_clock
def chunks_join_without_gap_or_overlap_by_one_anchor_SES_1():
    """SES-1, V2-1, V2-3; facts 3.2. The wall clock is set back an hour each time that the program asks for it."""
    takes_long()
    with Folder() as folder, FakeServer() as server:
        ran = drive(server, folder, "init start id await work 3300", chunk_seconds=1, LD_PRELOAD=with_sanitizer(OFFBEAT.programs / "clock_set_back.so"))
        chunks = arrived(server, folder).chunks
        check_equal(profiler_ids(chunks), ran.printed["id"], "profiler ids")
        check(len(chunks) >= 4, f"{len(chunks)} chunks")
        check(all(times(chunk) == sorted(times(chunk)) for chunk in chunks), "samples out of order")
        for before, after in zip(chunks, chunks[1:]):
            gap = times(after)[0] - times(before)[-1]
            check(-0.05 <= gap <= 0.15, f"{gap * 1e3:.1f} ms between two chunks")
            check(0.8 <= times(before)[-1] - times(before)[0] <= 1.5, "a chunk is not a second long")
        lasted = times(chunks[-1])[-1] - times(chunks[0])[0]
        check(3.2 <= lasted <= ran.seconds, f"{lasted} s were sampled")
        # How many come on a busy machine cannot be known, but not more than the frequency says.
        check(sum(len(times(chunk)) for chunk in chunks) <= 101 * lasted * 1.1, "more samples than the frequency gives")


# --- What is sent ----------------------------------------------------------------------------------------------------

def lines_of(function):
    """The numbers of the lines of FUNCTION in the driver's source."""
    source = SOURCE.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(source, 1) if re.match(rf"\S.*\b{function}\(", line) and not line.endswith(";"))
    last = next(number for number, line in enumerate(source, 1) if number > first and line == "}")
    return range(first, last + 1)


@short
@case
def functions_have_file_and_line_and_inlined_frames_by_the_helper():
    with Folder() as folder, FakeServer() as server:
        drive(server, folder, "init start await work 400")
        chunks = arrived(server, folder).chunks
        for name in ("works_deeper", "works", "is_inlined"):
            frames = frames_of(chunks, name)
            check(frames, f"no {name} in {functions(chunks)}")
            for frame in frames:
                check(frame["filename"] == SOURCE.name and frame["lineno"] in lines_of(name), frame)
                check(frame["in_app"] is True and frame["package"] == str(DRIVES) and "instruction_addr" in frame, frame)
        outside = [frame for frame in chunks[0]["profile"]["frames"] if "libc" in frame.get("package", "")]
        check(outside and not any(frame["in_app"] for frame in outside), f"in_app of the system: {outside}")


@case
def where_no_helper_can_be_started_profiles_wait_and_one_line_says_so():
    """A sidecar, or the next start that has a helper, sends them."""
    with Folder() as folder, FakeServer() as server:
        (folder / "no_program").write_bytes(bytes(16))
        (folder / "no_program").chmod(0o755)
        for helper, said in (("/nonexistent", "offbeat-helper was not found"), (folder / "no_program", "cannot be started")):
            ran = drive(server, folder, "init start await work 300 flush 30000 work 100", helper=helper)
            check_equal(ran.printed["flush"], [False], f"flushed: {ran.said}")
            check(ran.printed["flush_ms"][0] < 10000, f"it waited for nobody: {ran.printed}")
            check_equal((ran.said.count(said), ran.said.count("profiles wait in")), (1, 1), f"number of lines: {ran.said}")
        check_equal(server.requests, 0, "requests")
        with subprocess.Popen([OFFBEAT.build / "offbeat-helper", "--spool", folder / "spool"]) as sidecar:
            try:
                check(wait_until(lambda: len(server.chunks) + server.reported_of("profile_chunk") == 4 and not remaining_files(folder), 60),
                      f"{len(server.chunks)} chunks, {remaining_files(folder)}")
                second = run(OFFBEAT.build / "offbeat-helper", "--spool", folder / "spool")
                said = f"offbeat-helper: {folder}/spool: another offbeat-helper sends what is there"
                check_equal((second.returncode, text(second.stderr)), (2, said), "a second one")
            finally:
                sidecar.terminate()
        chunks = arrived(server, folder, too_few(server)).chunks
        check({"works", "works_deeper", "main"} <= functions(chunks) and any("lineno" in frame for frame in frames_of(chunks, "works")),
              f"functions {functions(chunks)}")


@case
def a_program_is_served_although_many_servers_are_away():
    """The helper sends to 64 servers at a time. Those that are needed by no program leave their place."""
    with Folder() as folder, FakeServer() as server:
        drive(None, folder, "init sampled name finish name shutdown", dsn="http://0123456789abcdef0123456789abcdef@127.0.0.1:9/1", traces_sample_rate=1, helper="/nonexistent")
        away, = (folder / "spool").iterdir()
        for number in range(70):
            shutil.copytree(away, away.with_name(f"{away.name}-{number}"))
        with subprocess.Popen([OFFBEAT.build / "offbeat-helper", "--spool", folder / "spool"]) as sidecar:
            try:
                tasks = pathlib.Path(f"/proc/{sidecar.pid}/task")
                check(wait_until(lambda: len(list(tasks.iterdir())) > 64, 60), "it does not try 64 servers")
                ran = drive(server, folder, "init sampled name finish name flush 60000 counts", traces_sample_rate=1)
            finally:
                sidecar.terminate()
        check_equal((ran.printed["flush"], len(server.bodies)), ([True], 1), ran.said)


@case
def a_server_that_names_gets_addresses_and_images():
    with Folder() as folder, FakeServer() as server:
        drive(server, folder, "init start await " + "thread 0 " * 8 + "work 300", symbols="receiver")
        chunk, = arrived(server, folder).chunks
        check(functions([chunk]) <= {None, "[too short to sample]", "[starting]"}, f"functions {functions([chunk])}")
        images = {image["code_file"]: image for image in chunk["debug_meta"]["images"]}
        note = re.search(r"Build ID: ([0-9a-f]+)", text(run("readelf", "-n", DRIVES).stdout)).group(1)
        check_equal(images[str(DRIVES)]["code_id"], note, "code_id")
        for frame in chunk["profile"]["frames"]:
            check("platform" not in frame, f"{frame} is not native")
            address = int(frame["instruction_addr"], 16)
            check(any(int(image["image_addr"], 16) <= address < int(image["image_addr"], 16) + image["image_size"]
                      for image in images.values()), f"{frame} is in no image")


@case
def rules_say_what_is_the_programs_own():
    with Folder() as folder, FakeServer() as server:
        drive(server, folder, "init start await work 300", in_app_exclude="/,works_d", in_app_include=f"works,{DRIVES.parent}")
        chunks = arrived(server, folder).chunks
        own = {name: {frame["in_app"] for frame in frames_of(chunks, name)} for name in ("works", "works_deeper", "main")}
        check_equal(own, {"works": {True}, "works_deeper": {True}, "main": {True}}, "the longest prefix counts")
    with Folder() as folder, FakeServer() as server:
        drive(server, folder, "init start await work 300", in_app_exclude="works_d", in_app_include="/usr/lib,/lib")
        chunks = arrived(server, folder).chunks
        check_equal({frame["in_app"] for frame in frames_of(chunks, "works_deeper")}, {False}, "excluded by name")
        outside = {frame["in_app"] for chunk in chunks for frame in chunk["profile"]["frames"] if "libc" in frame.get("package", "")}
        check_equal(outside, {True}, "included by folder")


@case
def release_and_environment_are_as_set_or_from_the_program():
    note = re.search(r"Build ID: ([0-9a-f]+)", text(run("readelf", "-n", DRIVES).stdout)).group(1)
    for options, expected in (({}, (f"sdk_drives@{note}", "production", None)),
                              ({"release": "r@1", "environment": "e", "dist": "7"}, ("r@1", "e", "7"))):
        with Folder() as folder, FakeServer() as server:
            drive(server, folder, "init start transaction a await work 200 finish a", traces_sample_rate=1, **options)
            got = arrived(server, folder)
            for payload in got.chunks + got.transactions:
                check_equal(tuple(payload.get(name) for name in ("release", "environment", "dist")), expected, "release, environment, dist")


@case
def one_helper_sends_for_many_short_processes():
    """40 processes, 1000 in ./dev nightly: at most 20 ms of CPU time for each, and a second to begin."""
    takes_long()

    def cpu_seconds(pid):
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except FileNotFoundError:  # another one had the lock
            return 0
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    with Folder() as folder, FakeServer() as server:
        (folder / "notes").write_text(f'#!/bin/sh\necho $$ >>"{folder}/begun"\nexec "{OFFBEAT.build}/offbeat-helper" "$@"\n', encoding="utf-8")
        (folder / "notes").chmod(0o755)
        count = len(some_of(range(1000), 25))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: drive(server, folder, "init transaction a work 5 finish a", traces_sample_rate=1, helper=folder / "notes"),
                          range(count)))
        check(wait_until(lambda: len(server.bodies) == count, 100), f"{len(server.bodies)} of {count} transactions")
        begun = (folder / "begun").read_text(encoding="ascii").split()
        check(len(begun) <= 4, f"{len(begun)} helpers were started")
        seconds = max(map(cpu_seconds, begun))
        print(f"# {count} processes, {len(begun)} helpers started, {seconds:.2f} s of CPU time")
        check(0 < seconds < 1 + 0.02 * count, f"{seconds} s of CPU time")


@case
def a_recorded_program_begins_the_library_as_alone():
    if IS_ASAN:
        leave_out("record does not preload the sanitizer's library")
    with Folder() as folder, FakeServer() as server:
        for options in ((), ("-F", "997", "--cpu-max", "5", "--mode", "cpu")):
            ran = drive(server, folder, "init start await work 300", prefix=(OFFBEAT.program, "record", "-o", "x.pb.gz", *options, "--"), debug=None)
            check_equal((ran.printed["init"], [line for line in ran.said.splitlines() if "must be" in line]), ([True], []), "init, and messages")
            check((folder / "x.pb.gz").exists(), ran.said)


@case
def what_before_send_drops_is_counted_and_reported():
    for dropped, options, left, reported in (
            ("profile_chunk", {}, (0, 0, 1), {"before_send:profile_chunk": 1}),
            ("transaction", {}, (1, 0, 0), {"before_send:transaction": 1, "before_send:span": 2}),
            ("profile", {"profiles_sample_rate": 1}, (0, 0, 1), {"before_send:profile": 1}),
            ("transaction", {"profiles_sample_rate": 1}, (0, 0, 0),
             {"before_send:transaction": 1, "before_send:span": 2, "before_send:profile": 1})):
        with Folder() as folder, FakeServer() as server:
            ran = drive(server, folder, f"option drops {dropped} init start transaction a span s a await work 1500 finish s finish a stop "
                        "flush 30000 counts", traces_sample_rate=1, **options)
            got = arrived(server, folder, reported)
            check_equal((len(got.chunks), len(got.profiles), len(got.transactions)), left, f"chunks, profiles, transactions without {dropped}")
            check_equal(ran.counts(), {"made": 2, "sent": sum(left), "limited": 0, "discarded": 2 - sum(left)}, "counts")
            check(f"dropped: 1 of {dropped} (before_send)" in ran.said, f"the log does not say what is dropped: {ran.said}")


@case
def a_flush_at_the_moment_of_a_start_sends_a_chunk():
    if IS_ASAN:
        leave_out("ASan: frame tables are not ready at the first ticks, and a chunk of one sample is discarded")
    with Folder() as folder, FakeServer() as server:
        for words in ("init start flush 30000 work 100", "init start await flush 30000 flush 30000 work 100"):
            drive(server, folder, words)
            check_equal(server.reported, {}, f"reported as discarded after {words}")
        check_equal(len(arrived(server, folder).chunks), 5, "chunks")


@case
def measurements_arrive_FMT_7():
    """FMT-7, V2-4"""
    with Folder() as folder, FakeServer() as server:
        drive(server, folder, "measure early byte 1 init start await work 1200 measure queue byte 17.5 measure queue byte 18 frame 16000000 "
              "frame 30000000 frame 800000000 stop flush 30000 measure late byte 1 start await work 200")
        chunk, after = arrived(server, folder).chunks
        measured = {name: (one["unit"], [value["value"] for value in one["values"]]) for name, one in chunk["measurements"].items()}
        stamps = [value["timestamp"] for one in chunk["measurements"].values() for value in one["values"]]
        check(times(chunk)[0] - 1 < min(stamps) and max(stamps) < times(chunk)[-1] + 1, "times of measurements")
        cpu, memory = measured.pop("cpu_usage"), measured.pop("memory_footprint")
        check_equal((cpu[0], memory[0]), ("percent", "byte"), "units")
        check(all(0 < value <= 100 * os.cpu_count() for value in cpu[1]), cpu)
        check(all(1 << 20 < value < 1 << 34 for value in memory[1]), memory)
        check_equal(measured, {"queue": ("byte", [17.5, 18]), "slow_frame_renders": ("nanosecond", [30000000]),
                               "frozen_frame_renders": ("nanosecond", [800000000])}, "measurements")
        check(not {"late", "early", "queue"} & set(after["measurements"]), "measured while nothing ran, or twice")


# --- Off, it costs nothing -------------------------------------------------------------------------------------------

OFF = {"without a DSN": {"dsn": None}, "with no session sampled": {"profile_session_sample_rate": 0}}


@case
def off_it_has_no_thread_and_no_descriptor():
    for name, options in OFF.items():
        with Folder() as folder, FakeServer() as server:
            printed = drive(server, folder, "look init start look transaction a finish a measure x byte 1 sleep 100 look", debug=None, **options).printed
            check_equal((printed["threads"], printed["descriptors"]), ([1] * 3, [3] * 3), f"threads, descriptors {name}")
            check_equal((server.requests, list(folder.iterdir())), (0, []), f"requests, files {name}")


@case_by_the_clock
def off_it_takes_no_memory_and_no_time():
    if IS_ASAN:
        leave_out("memory and time would be the sanitizer's")
    def least(words, **options):
        with Folder() as folder, FakeServer() as server:
            printed = [drive(server, folder, "pid memory " + words + "memory", debug=None, **options).printed for _ in range(5)]
        return [min(one[name][1] - one[name][0] for one in printed) for name in ("anonymous_kib", "cpu_us")]
    without = least("")
    for name, options in OFF.items():
        kib, cpu_us = (a - b for a, b in zip(least("init start ", **options), without))
        check(kib < 64, f"{kib} KiB {name}")
        check(cpu_us < 2000 * slowness(), f"{cpu_us} µs {name}")


@case
def memcheck_finds_nothing():
    if IS_ASAN:
        leave_out("a program has one sanitizer or valgrind")
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    with Folder() as folder, FakeServer() as server:
        drive(server, folder, "init start transaction a span s a await work 1000 finish s finish a measure x byte 1 flush 60000 work 100",
              traces_sample_rate=1, prefix=("valgrind", "--quiet", "--error-exitcode=9",
                                            "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"))
        check_equal(len(arrived(server, folder, too_few(server)).transactions), 1, "transactions")


read_names()
main(sys.argv[2] if len(sys.argv) > 2 else "", at_once=6)
