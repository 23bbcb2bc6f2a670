"""What programs with liboffbeat do and send: sdk_drives.c is one that does what it is told. Whatever a case is about, what
arrived is judged by the receiver's rules, nothing may stand on standard output, errno is kept, and nothing is left behind.
Arguments: the build folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import atexit
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from receiver import (HANG, KEY, RESET, RESET_EARLY, Proxy, Receiver, answer, items_of, make_certificate, wait_until)
from recording import (ROOT, Folder, Offbeat, case, case_by_the_clock, chunk_functions, check, check_equal, main, run, skip, text,
                       user_without_rights)

OFFBEAT = Offbeat(sys.argv[1])
DRIVES, LOADS, LIBRARY = OFFBEAT.programs / "sdk_drives", OFFBEAT.programs / "sdk_loads", OFFBEAT.build / "liboffbeat.so"
SOURCE = ROOT / "test/end_to_end/sdk_drives.c"
IS_ASAN = b"libasan" in run("ldd", LIBRARY).stdout
PERIOD = 1 / 101

# Names of functions, which all cases share so that each library is read once.
CACHE = tempfile.mkdtemp(prefix="offbeat-test-cache-")
os.chmod(CACHE, 0o777)
atexit.register(shutil.rmtree, CACHE, True)


def read_names():
    """Before all else, for the helper steps back behind other programs, and the names of libc's functions are many."""
    with Folder() as folder, Receiver() as receiver:
        if IS_ASAN: # cannot be preloaded by record
            drive(receiver, folder, "init start await work 300")
            return
        done = run(OFFBEAT.program, "record", "-o", "x.pb.gz", "--", DRIVES, "work", "300", cwd=folder,
                   env={**os.environ, "OFFBEAT_CACHE_DIRECTORY": CACHE, "TMPDIR": str(folder)})
        check(done.returncode == 0, text(done.stderr))


def environment(receiver, folder, **options):
    """OPTIONS in small letters are the library's, None for one that is not to be set; the others are variables as they are."""
    chosen = {"dsn": receiver.dsn if receiver else None, "spool_directory": folder / "spool", "profile_session_sample_rate": 1, "debug": 1,
              "shutdown_timeout_ms": 60000, "cache_directory": CACHE, **options}
    variables = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder,
                 "UBSAN_OPTIONS": os.environ.get("UBSAN_OPTIONS", ""), "ASAN_OPTIONS": "detect_leaks=0" if options.get("LD_PRELOAD") else "",
                 "LSAN_OPTIONS": f"suppressions={ROOT}/test/end_to_end/leaks.supp:print_suppressions=0"}
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
        skip("takes long with a sanitizer, and runs what other cases run: name it to run it")


class Ran:
    """What a program did: what it told, name by name, what was said on standard error, its status, how long it took."""

    def __init__(self, done, seconds):
        self.status, self.said, self.seconds, self.told = done.returncode, text(done.stderr), seconds, {}
        for line in text(done.stdout).splitlines():
            check(line.startswith("{"), f"on standard output: {line}")
            for name, value in json.loads(line).items():
                self.told.setdefault(name, []).append(value)
        check_equal(self.told.get("errno_changes", [0]), [0], "calls that changed errno")

    def counts(self):
        """The sums that must hold in every case."""
        made, sent, limited, discarded = (self.told[name][-1] for name in ("made", "sent", "limited", "discarded"))
        return {"made": made, "sent": sent, "limited": limited, "discarded": discarded}


def drive(receiver, folder, words, status=0, prefix=(), **options):
    began = time.monotonic()
    done = run(*prefix, DRIVES, *words.split(), cwd=folder, env=environment(receiver, folder, **options))
    ran = Ran(done, time.monotonic() - began)
    check_equal(ran.status, status, f"status of {words}: {ran.said}")
    return ran


def left_behind(folder):
    return [str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*")
            if path.is_file() and path.suffix in (".envelope", ".tmp", ".recording", ".request", ".payloads", ".session")]


def spooled(folder):
    return sorted(pathlib.Path(folder).rglob("*.envelope"))


class Arrived:
    """What RECEIVER took. Everything is judged as a receiver judges it, by `offbeat validate` and by check_chunk.py."""

    def __init__(self, receiver, folder):
        check_equal(receiver.problems, [], "what is wrong with requests")
        self.envelopes = [[(item, payload if isinstance(payload, dict) else json.loads(payload)) for item, payload in items_of(body)]
                          for body in receiver.bodies]
        self.chunks = sorted(self.of("profile_chunk"), key=lambda chunk: times(chunk)[0])
        self.profiles, self.transactions = self.of("profile"), self.of("transaction")
        check_equal(len({chunk["chunk_id"] for chunk in self.chunks}), len(self.chunks), "different chunk ids")
        self.judge(receiver, folder)

    def of(self, wanted):
        return [payload for envelope in self.envelopes for item, payload in envelope if item["type"] == wanted]

    def judge(self, receiver, folder):
        files = {"profile_chunk": [], "profile": []}
        for number, (body, envelope) in enumerate(zip(receiver.bodies, self.envelopes)):
            types = [item["type"] for item, _ in envelope]
            check(types.count("profile_chunk") + types.count("profile") <= 1, f"profiles in one envelope: {types}")
            for wanted, paths in files.items():
                if wanted in types:
                    paths.append(folder / f"{number}.judged")
                    paths[-1].write_bytes(body)
        for judge, paths in (((OFFBEAT.program, "validate", "--rules", "relay"), files["profile_chunk"] + files["profile"]),
                             ((sys.executable, ROOT / "test/cli/check_chunk.py", "--sender"), files["profile_chunk"])):
            done = run(*judge, *paths) if paths else None
            check(not done or done.returncode == 0, done and text(done.stdout + done.stderr))
        for path in files["profile_chunk"] + files["profile"]:
            path.unlink()


def arrived(receiver, folder, reported=None):
    """All that arrived, when the programs have ended: nothing else is REPORTED as discarded, nothing is left behind."""
    check_equal(receiver.reported, reported or {}, "reported as discarded")
    check_equal(left_behind(folder), [], "left behind")
    return Arrived(receiver, folder)


def too_few(receiver):
    """What is sampled between a flush and a stop can be too little to be sent, which is counted."""
    return {name: count for name, count in receiver.reported.items() if name == "insufficient_data:profile_chunk"}


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


def lines_of(function):
    """The numbers of the lines of FUNCTION in the driver's source."""
    source = SOURCE.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(source, 1) if re.match(rf"\S.*\b{function}\(", line) and not line.endswith(";"))
    last = next(number for number, line in enumerate(source, 1) if number > first and line == "}")
    return range(first, last + 1)


# --- Lifecycle -------------------------------------------------------------------------------------------------------

@case
def manual_starts_stops_and_starts_again_with_a_new_id_SES_3_SES_4_SES_11_LNK_1():
    """SES-3, SES-4, SES-11, LNK-1"""
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init id transaction alone start id await work 300 stop id flush 30000 finish alone transaction after finish after work_in_child 200 "
                    "start id await work 300 stop shutdown", traces_sample_rate=1)
        got = arrived(receiver, folder)
        (before, first, between, second), runs = ran.told["id"], ran.told["runs"]
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
        with Folder() as folder, Receiver() as receiver:
            ran = drive(receiver, folder, "init start id work 50 look flush 5000", profile_session_sample_rate=rate)
            check("start_profiler does nothing: the session is not sampled" in ran.said, ran.said)
            check_equal((ran.told["runs"], ran.told["threads"], receiver.requests), ([False], [1], 0), "runs, threads, requests")
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init transaction a work 50 id finish a flush 30000", profile_session_sample_rate=0,
                    profile_lifecycle="trace", traces_sample_rate=1)
        got = arrived(receiver, folder)
        check_equal((ran.told["runs"], len(got.chunks), len(got.transactions)), ([False], 0, 1), "runs, chunks, transactions")
        check("profile" not in got.transactions[0]["contexts"], "linked to a profile that is not")


@case
def what_is_drawn_comes_as_often_as_its_rate_says_SES_2_SES_8_SES_9_SES_10():
    """SES-2, SES-8, SES-9, SES-10: 60 draws at 0.5: fewer than 11 or more than 49 would come once in a million times."""
    takes_long()
    for what, words, options in (("sessions of processes", "init start id " * 60, {}),
                                 ("sessions of a user", "init " + "background foreground start id " * 60, {"is_ui": 1}),
                                 ("starts of the next launch", "init id " * 61, {"start_profiler_on_app_start": 1}),
                                 ("transactions of V1", "init " + "transaction t id finish t " * 60, {"profiles_sample_rate": 0.5, "traces_sample_rate": 1})):
        with Folder() as folder, Receiver() as receiver:
            told = drive(receiver, folder, words, **{"profile_session_sample_rate": 0.5, "helper": "/nonexistent", "debug": None, **options}).told
            check(all(told["init"]), f"inits of {what}")
            check(11 <= sum(told["runs"]) <= 49, f"{sum(told['runs'])} of 60 {what} were sampled")


@case_by_the_clock
def the_program_is_sampled_101_times_a_second_unless_it_says_otherwise_SES_1():
    """SES-1"""
    takes_long()
    for options, expected in (({}, 1 / 101), ({"frequency": 50}, 1 / 50)):
        with Folder() as folder, Receiver() as receiver:
            drive(receiver, folder, "init start await work 2000", **options)
            chunk, = arrived(receiver, folder).chunks
            stamps = times_in(chunk, "works")
            # Where it has to wait for a processor, ticks go by at which it has not run.
            between = [after - before for before, after in zip(stamps, stamps[1:]) if after - before < 1.5 * expected]
            check(len(between) >= 20, f"{len(between)} samples at one tick and the next")
            between = statistics.median(between)
            check(abs(between / expected - 1) < 0.005, f"{between * 1e3:.3f} ms between two samples, expected {expected * 1e3:.3f}")


@case
def trace_runs_from_the_first_sampled_root_to_the_end_of_the_chunk_of_the_last_one_SES_5_SES_11():
    """SES-5, SES-11"""
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init unsampled u id finish u transaction a id await work 200 transaction b finish a id work 200 "
                    "finish b id work_in_child 300 transaction d id finish d sleep 3500 flush 60000 id transaction c id await work 300 finish c",
                    profile_lifecycle="trace", traces_sample_rate=1, chunk_seconds=3)
        got = arrived(receiver, folder, {"sample_rate:transaction": 1, "sample_rate:span": 1})
        of_none, of_a, of_b, finishing, of_d, over, of_c = ran.told["id"]
        check_equal((of_none, over), ("", ""), "with no sampled root")
        check_equal([of_b, finishing, of_d], [of_a] * 3, "overlapping roots, until the chunk ends, and one that begins before that")
        check(of_c and of_c != of_a, f"the same id again: {of_c}")
        check_equal(profiler_ids(got.chunks), [of_a, of_c], "profiler ids")
        check("works_in_the_child" in functions(chunk for chunk in got.chunks if chunk["profiler_id"] == of_a), "the chunk was not finished")
        check_equal(len(got.transactions), 4, "transactions")


@case
def trace_without_tracing_says_so_SES_5():
    """SES-5"""
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init transaction a id work 50 finish a look", profile_lifecycle="trace", debug=None)
        check_equal(ran.said, "offbeat: nothing is profiled, because profiles follow transactions and tracing is off: set traces_sample_rate",
                    "said")
        check_equal((ran.told["runs"], ran.told["threads"]), ([False], [1]), "runs, threads")


@case
def calls_that_do_nothing_say_so_to_who_debugs_SES_7():
    """SES-7"""
    with Folder() as folder, Receiver() as receiver:
        words = "init stop start start id work 50 stop stop background foreground"
        said = drive(receiver, folder, words).said.splitlines()
        told = [line for line in said if "nothing" in line]
        check_equal(told, ["offbeat: stop_profiler does nothing: it does not run", "offbeat: start_profiler does nothing: it runs already",
                           "offbeat: stop_profiler does nothing: it does not run",
                           "offbeat: background means nothing: the session is the process",
                           "offbeat: foreground means nothing: the session is the process"], "said")
        check_equal(drive(receiver, folder, words, debug=None).said, "", "said without debug")
        ran = drive(receiver, folder, "init start stop id transaction a stop id", profile_lifecycle="trace", traces_sample_rate=1)
        check_equal(ran.said.count("does nothing: profile_lifecycle is trace"), 3, f"times in {ran.said}")
        check_equal(ran.told["runs"], [False, True], "runs")


@case
def v1_options_overrule_with_a_warning_and_profiles_go_with_their_transactions_SES_8_V1_5():
    """SES-8, V1-1, V1-3, V1-5"""
    for option in ({"profiles_sample_rate": 1}, {}):
        with Folder() as folder, Receiver() as receiver:
            words = "" if option else "option profiles_sampler ab "
            ran = drive(receiver, folder, words + "init start id transaction a await work 300 transaction b work 300 finish a work 200 finish b "
                        "flush 60000 counts", traces_sample_rate=1, **option)
            got = arrived(receiver, folder)
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
                check("profiler_id" not in transaction["contexts"].get("profile", {}), "linked to a continuous profile")
                longest = max(int(sample["elapsed_since_start_ns"]) for sample in profile["profile"]["samples"]) / 1e9
                lasted = transaction["timestamp"] - transaction["start_timestamp"]
                check(0.3 * lasted < longest <= lasted + 0.1, f"samples over {longest} s of {lasted} s")
            check_equal(ran.counts(), {"made": 4, "sent": 4, "limited": 0, "discarded": 0}, "counts")


# What the program's samplers are told of a caller, which decided by a rate of a quarter.
NO, YES, CALLERS_RATE = 1, 2, 0.25


@case
def traces_sampler_is_told_what_starts_and_decides_before_the_caller_and_the_rate_SES_5():
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
        with Folder() as folder, Receiver() as receiver:
            ran = drive(receiver, folder, words, profile_lifecycle="trace", helper="/nonexistent", **options)
            started = len(re.findall("finish", words))
            not_sent = {f"sample_rate:{category}": started - len(sent) for category in ("transaction", "span")}
            got = arrived(receiver, folder, {**not_sent, **too_few(receiver)})
            check_equal(ran.told.get("traces_sampler", []), asked, "what the sampler was told")
            check_equal([one["transaction"] for one in got.transactions], sent, f"sent of {words}, {options}")
            # With a sampler alone tracing is on, and what it does not sample starts no profile.
            check("tracing is off" not in ran.said, ran.said)
            check_equal(ran.told.get("runs", []), {0: [], 2: [False, True], 4: [True, True]}[len(asked)], "runs")


@case
def profiles_sampler_is_told_of_each_sampled_transaction_and_chooses_among_them_SES_8_V1_5():
    """SES-8, V1-5"""
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "option profiles_sampler y init transaction no id work 100 finish no transaction yes id await work 300 finish yes "
                    "unsampled yes-2 id finish yes-2 caller_sampled yes-3 id await work 300 finish yes-3 flush 60000", traces_sample_rate=1,
                    profiles_sample_rate=1)
        check_equal(ran.told["profiles_sampler"], [["no", "test", 0, -1, "no"], ["yes", "test", 0, -1, "yes"],
                                                   ["yes-3", "test", YES, CALLERS_RATE, "yes-3"]], "what the sampler was told")
        check_equal(ran.told["runs"], [False, True, False, True], "runs")
        got = arrived(receiver, folder, {"sample_rate:transaction": 1, "sample_rate:span": 1})
        check_equal(sorted(one["transaction"] for one in got.transactions), ["no", "yes", "yes-3"], "transactions")
        check_equal(sorted(one["transaction"]["name"] for one in got.profiles), ["yes", "yes-3"], "profiles")
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init start id transaction a id finish a", traces_sample_rate=1, profiles_sample_rate=0)
        check("profile_session_sample_rate has no effect" in ran.said, f"a rate of 0 is set, too: {ran.said}")
        check_equal(ran.told["runs"], [False, False], "runs at a rate of 0")


@case
def what_the_program_says_counts_before_the_environment_SES_2_SES_3():
    """SES-2, SES-3"""
    for option, options, runs in (("profile_session_sample_rate 1", {"profile_session_sample_rate": 0}, [True, True]),
                                  ("profile_session_sample_rate 0.000001", {"profile_session_sample_rate": 1}, [False, False]),
                                  ("profile_lifecycle trace", {"profile_lifecycle": "manual"}, [False, True])):
        with Folder() as folder, Receiver() as receiver:
            ran = drive(receiver, folder, f"option {option} init start id transaction a id finish a", traces_sample_rate=1, helper="/nonexistent",
                        **options)
            check_equal(ran.told["runs"], runs, f"runs with {option}")


def helper_that_waits(folder):
    """The path of a helper that sets about its work when the file `go` is in FOLDER, and writes its number into `begun`."""
    (folder / "waits").write_text(f'#!/bin/sh\necho $$ >"{folder}/begun"\nuntil [ -e "{folder}/go" ]; do sleep 0.05; done\nexec "{OFFBEAT.build}/offbeat-helper" "$@"\n',
                                  encoding="utf-8")
    (folder / "waits").chmod(0o755)
    return folder / "waits"


@case_by_the_clock
def what_the_program_wishes_is_done_while_a_helper_is_at_work():
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, f"init start id await work 300 stop sleep 300 start id await work_in_child 300 measure queue byte 1 stop "
                    f"start id await work 300 stop fork 3 exec touch {folder}/go wait flush 60000 counts", helper=helper_that_waits(folder))
        chunks = arrived(receiver, folder).chunks
        check_equal(profiler_ids(chunks), ran.told["id"], "profiler ids, in order")
        check_equal(["works_in_the_child" in functions([chunk]) for chunk in chunks], [False, True, False], "chunks with works_in_the_child")
        check_equal(["queue" in chunk["measurements"] for chunk in chunks], [False, True, False], "chunks with the measurement")
        check_equal(ran.counts()["sent"], 3, "sent")
    with Folder() as folder, Receiver() as receiver:
        # The first chunk is being made when the last root ends, and with it what is to be the last chunk.
        ran = drive(receiver, folder, f"init transaction a id await work 1500 finish a id sleep 5000 id fork 3 exec touch {folder}/go wait",
                    profile_lifecycle="trace", traces_sample_rate=1, chunk_seconds=1, helper=helper_that_waits(folder))
        chunks = arrived(receiver, folder).chunks
        first, finishing, over = ran.told["id"]
        check_equal((finishing, over), (first, ""), "after the root, after the chunk")
        check_equal(profiler_ids(chunks), [first], "profiler ids")
        check(len(chunks) > 1, "one chunk") # on a busy machine there are more than two


@case
def a_session_of_a_user_interface_ends_in_the_background_SES_9():
    """SES-9, SES-11"""
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init start id await work 200 background id start id flush 60000 foreground id start id await work 200", is_ui=1)
        got = arrived(receiver, folder)
        first, *none, second = ran.told["id"]
        check_equal((none, ran.said.count("the session has ended")), (["", "", ""], 1), "in the background")
        check_equal(profiler_ids(got.chunks), [first, second], "profiler ids")
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init transaction a id await work 200 background id foreground transaction b id work 200 finish a id "
                    "flush 60000 await work 200 finish b background id", is_ui=1, profile_lifecycle="trace", traces_sample_rate=1)
        got = arrived(receiver, folder, too_few(receiver))
        first, away, carried, second, end = ran.told["id"]
        check_equal((away, carried, end), (first, first, ""), "an open trace carries its session")
        check_equal(profiler_ids(got.chunks), [first, second], "profiler ids")


@case
def the_start_of_the_program_is_profiled_as_the_launch_before_decided_SES_10():
    """SES-10"""
    with Folder() as folder, Receiver() as receiver:
        def launch(words, **options):
            return drive(receiver, folder, words, start_profiler_on_app_start=1, **options).told["id"]
        check_equal(launch("init id"), [""], "the very first launch")
        first, stopped = launch("init id await work 200 stop id")
        check(first and not stopped, "the second launch is profiled from init to stop")
        start, in_root, after = launch("init id transaction a id await work 200 finish a flush 60000 sleep 3500 flush 60000 id", chunk_seconds=3,
                                       profile_lifecycle="trace", traces_sample_rate=1)
        check(start and start == in_root and not after, f"with the first root: {start}, {in_root}, {after}")
        drive(receiver, folder, "init id")
        check_equal(launch("init id"), [""], "forgotten where the option was off")
        launch("init id", profile_session_sample_rate=0)
        check_equal(launch("init start id"), [""], "kept: do not profile")
        check(launch("init id await work 200")[0], "and the next one again as drawn")
        check_equal(profiler_ids(arrived(receiver, folder, too_few(receiver)).chunks)[:2], [first, start], "profiler ids")


@case
def transactions_and_spans_name_their_profile_and_thread_LNK_1_LNK_2_LNK_3():
    """LNK-1, LNK-2, LNK-3"""
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init transaction a span part a await work 200 thread 300 work 100 finish part join finish a id work 50",
                    profile_lifecycle="trace", traces_sample_rate=1)
        got = arrived(receiver, folder)
        check_equal((len(got.chunks), len(got.transactions)), (1, 1), "chunks, transactions")
        chunk, transaction = got.chunks[0], got.transactions[0]
        trace, spans = transaction["contexts"]["trace"], {span["description"]: span for span in transaction["spans"]}
        check_equal((transaction["contexts"]["profile"]["profiler_id"], chunk["profiler_id"]), (ran.told["id"][0],) * 2, "profiler id")
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
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init start id await work 3300", chunk_seconds=1, LD_PRELOAD=with_sanitizer(OFFBEAT.programs / "clock_set_back.so"))
        chunks = arrived(receiver, folder).chunks
        check_equal(profiler_ids(chunks), ran.told["id"], "profiler ids")
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

@case
def functions_have_file_and_line_and_inlined_frames_by_the_helper():
    with Folder() as folder, Receiver() as receiver:
        drive(receiver, folder, "init start await work 400")
        chunks = arrived(receiver, folder).chunks
        for name in ("works_deeper", "works", "is_inlined"):
            frames = frames_of(chunks, name)
            check(frames, f"no {name} in {functions(chunks)}")
            for frame in frames:
                check(frame["filename"] == SOURCE.name and frame["lineno"] in lines_of(name), frame)
                check(frame["in_app"] is True and frame["package"] == str(DRIVES) and "instruction_addr" in frame, frame)
        outside = [frame for frame in chunks[0]["profile"]["frames"] if "libc" in frame.get("package", "")]
        check(outside and not any(frame["in_app"] for frame in outside), f"in_app of the system: {outside}")


@case
def without_a_helper_there_are_the_names_of_symbol_tables():
    with Folder() as folder, Receiver() as receiver:
        (folder / "fails").write_text("#!/bin/sh\nexit 9\n", encoding="ascii")
        (folder / "fails").chmod(0o755)
        # One that fails is tried again, as the next chunk may find more time or memory.
        for helper, said, times in (("/nonexistent", "offbeat-helper is not there", 1),
                                    (folder / "fails", "did not do it (status 9)", 2)):
            receiver.bodies.clear()
            ran = drive(receiver, folder, "init start await work 300 flush 30000 work 100", helper=helper)
            check_equal(ran.said.count("symbol tables only"), times, f"times that it was said: {ran.said}")
            check(said in ran.said, ran.said)
            chunks = arrived(receiver, folder).chunks
            check_equal(len(chunks), 2, "chunks")
            for chunk in chunks:
                check({"works", "works_deeper", "main"} <= functions([chunk]), f"functions {functions([chunk])}")
            check(not any("lineno" in frame for frame in frames_of(chunks, "works")), "lines without a helper")


@case
def a_receiver_that_names_gets_addresses_and_images():
    with Folder() as folder, Receiver() as receiver:
        drive(receiver, folder, "init start await work 300", symbols="receiver")
        chunk, = arrived(receiver, folder).chunks
        check_equal(functions([chunk]), {None}, "functions")
        images = {image["code_file"]: image for image in chunk["debug_meta"]["images"]}
        note = re.search(r"Build ID: ([0-9a-f]+)", text(run("readelf", "-n", DRIVES).stdout)).group(1)
        check_equal(images[str(DRIVES)]["code_id"], note, "code_id")
        for frame in chunk["profile"]["frames"]:
            address = int(frame["instruction_addr"], 16)
            check(any(int(image["image_addr"], 16) <= address < int(image["image_addr"], 16) + image["image_size"]
                      for image in images.values()), f"{frame} is in no image")


@case
def rules_say_what_is_the_programs_own():
    with Folder() as folder, Receiver() as receiver:
        drive(receiver, folder, "init start await work 300", in_app_exclude="/,works_d", in_app_include=f"works,{DRIVES.parent}")
        chunks = arrived(receiver, folder).chunks
        own = {name: {frame["in_app"] for frame in frames_of(chunks, name)} for name in ("works", "works_deeper", "main")}
        check_equal(own, {"works": {True}, "works_deeper": {True}, "main": {True}}, "the longest prefix counts")
    with Folder() as folder, Receiver() as receiver:
        drive(receiver, folder, "init start await work 300", in_app_exclude="works_d", in_app_include="/usr/lib,/lib")
        chunks = arrived(receiver, folder).chunks
        check_equal({frame["in_app"] for frame in frames_of(chunks, "works_deeper")}, {False}, "excluded by name")
        outside = {frame["in_app"] for chunk in chunks for frame in chunk["profile"]["frames"] if "libc" in frame.get("package", "")}
        check_equal(outside, {True}, "included by folder")


@case
def release_and_environment_are_as_told_or_those_of_the_program():
    note = re.search(r"Build ID: ([0-9a-f]+)", text(run("readelf", "-n", DRIVES).stdout)).group(1)
    for options, expected in (({}, (f"sdk_drives@{note}", "production", None)),
                              ({"release": "r@1", "environment": "e", "dist": "7"}, ("r@1", "e", "7"))):
        with Folder() as folder, Receiver() as receiver:
            drive(receiver, folder, "init start transaction a await work 200 finish a", traces_sample_rate=1, **options)
            got = arrived(receiver, folder)
            for payload in got.chunks + got.transactions:
                check_equal(tuple(payload.get(name) for name in ("release", "environment", "dist")), expected, "release, environment, dist")


@case
def what_before_send_drops_is_counted_and_reported():
    for dropped, options, left, reported in (
            ("profile_chunk", {}, (0, 0, 1), {"before_send:profile_chunk": 1}),
            ("transaction", {}, (1, 0, 0), {"before_send:transaction": 1, "before_send:span": 2}),
            ("profile", {"profiles_sample_rate": 1}, (0, 0, 1), {"before_send:profile": 1}),
            ("transaction", {"profiles_sample_rate": 1}, (0, 0, 0),
             {"before_send:transaction": 1, "before_send:span": 2, "before_send:profile": 1})):
        with Folder() as folder, Receiver() as receiver:
            ran = drive(receiver, folder, f"option drops {dropped} init start transaction a span s a await work 1500 finish s finish a stop "
                        "flush 30000 counts", traces_sample_rate=1, **options)
            got = arrived(receiver, folder, reported)
            check_equal((len(got.chunks), len(got.profiles), len(got.transactions)), left, f"chunks, profiles, transactions without {dropped}")
            check_equal(ran.counts(), {"made": 2, "sent": sum(left), "limited": 0, "discarded": 2 - sum(left)}, "counts")


@case
def a_flush_at_the_moment_of_a_start_sends_a_chunk():
    with Folder() as folder, Receiver() as receiver:
        for words in ("init start flush 30000 work 100", "init start await flush 30000 flush 30000 work 100"):
            drive(receiver, folder, words)
            check_equal(receiver.reported, {}, f"reported as discarded after {words}")
        check_equal(len(arrived(receiver, folder).chunks), 5, "chunks")


@case
def measurements_arrive_FMT_7():
    """FMT-7, V2-4"""
    with Folder() as folder, Receiver() as receiver:
        drive(receiver, folder, "measure early byte 1 init start await work 1200 measure queue byte 17.5 measure queue byte 18 frame 16000000 "
              "frame 30000000 frame 800000000 stop flush 30000 measure late byte 1 start await work 200")
        chunk, after = arrived(receiver, folder).chunks
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


# --- The receiver's answers ------------------------------------------------------------------------------------------

def check_sums(ran, receiver, folder):
    """What was made is what was sent, limited, discarded or waits, by the library's counts and by the receiver's."""
    counts = ran.counts()
    waits = len(spooled(folder))
    check_equal(counts["sent"] + counts["limited"] + counts["discarded"] + waits, counts["made"], f"{counts}, {waits} wait")
    sums = len(receiver.chunks), len(receiver.limited), receiver.reported_of("profile_chunk"), waits
    check_equal(sum(sums), counts["made"], f"taken, limited, reported, waiting {sums}: {receiver.reported}")


TWICE = "init start await work 200 stop flush 30000 start await work 200 stop flush 30000 flush 30000 counts shutdown"


@case
def what_is_refused_is_counted_and_not_sent_again():
    for status in (400, 403, 413, 500, 503):
        with Folder() as folder, Receiver([answer(status, '{"detail":"no"}')]) as receiver:
            ran = drive(receiver, folder, TWICE)
            check_equal(ran.counts(), {"made": 2, "sent": 1, "limited": 0, "discarded": 1}, f"counts after {status}")
            check_sums(ran, receiver, folder)
            arrived(receiver, folder, {"send_error:profile_chunk": 1})


@case
def counts_stay_after_the_end_until_the_next_init():
    with Folder() as folder, Receiver([answer(400)]) as receiver:
        told = drive(receiver, folder, "counts init start await work 200 stop flush 30000 start await work 200 shutdown counts init counts").told
        check_equal({name: told[name] for name in ("made", "sent", "discarded")}, {"made": [0, 2, 0], "sent": [0, 1, 0], "discarded": [0, 1, 0]},
                    "before, after the end, after the next init")
        check_equal(len(arrived(receiver, folder, {"send_error:profile_chunk": 1}).chunks), 1, "chunks")


@case
def under_a_rate_limit_the_profiler_is_stopped_in_each_form_of_the_header():
    takes_long()
    # Each flush makes the worker look once more: at the limit, and at what follows from it.
    words = "init start await work 500 flush 30000 flush 30000 flush 30000 id start id counts shutdown"
    for form in ({"X_Sentry_Rate_Limits": "60:profile_chunk:organization:quota"}, {"X_Sentry_Rate_Limits": "60::organization"},
                 {"X_Sentry_Rate_Limits": "0.5:error, 60:profile_duration;profile:key:reason:x"}, {"Retry_After": "60"}, {},
                 {"Retry_After": "Fri, 01 Jan 2100 00:00:00 GMT"}):
        with Folder() as folder, Receiver([answer(429, **form)]) as receiver:
            ran = drive(receiver, folder, words)
            check_equal(ran.told["runs"], [False, False], f"runs after {form}")
            for said in ("the profiler stops: the receiver wants no profiles now",
                         "start_profiler does nothing: the receiver wants no profiles now"):
                check_equal(ran.said.count(said), 1, f"times that it was said: {said}: {ran.said}")
            check_equal((len(receiver.limited), len(receiver.chunks)), (1, 0), "limited, taken")
            check_sums(ran, receiver, folder)
    with Folder() as folder, Receiver([answer(429, X_Sentry_Rate_Limits="60:error;transaction:key")]) as receiver:
        check_equal(drive(receiver, folder, words).told["runs"], [True, True], "runs: the limit is another's")


def withheld(receiver):
    """What was sampled between the limit and the stop is a chunk, if there was time for any."""
    return {name: count for name, count in receiver.reported.items()
            if name in ("ratelimit_backoff:profile_chunk", "insufficient_data:profile_chunk")}


@case
def after_a_rate_limit_the_profiler_starts_again():
    with Folder() as folder, Receiver([answer(200, X_Sentry_Rate_Limits="5:profile_chunk:key")]) as receiver:
        ran = drive(receiver, folder, "init start id await work 200 flush 30000 flush 30000 flush 30000 id sleep 6500 id start id await work 200 stop "
                    "flush 30000 flush 30000 counts shutdown")
        first, limited, after, second = ran.told["id"]
        check_equal((limited, after), ("", ""), "does not start by itself")
        check_equal(profiler_ids(arrived(receiver, folder, withheld(receiver)).chunks), [first, second], "profiler ids")
        check_sums(ran, receiver, folder)
    with Folder() as folder, Receiver([answer(200, X_Sentry_Rate_Limits="5:profile_chunk:key")]) as receiver:
        ran = drive(receiver, folder, "init transaction a id await work 200 flush 30000 flush 30000 flush 30000 id sleep 6500 id transaction b id "
                    "await work 200 finish a finish b", profile_lifecycle="trace", traces_sample_rate=1)
        first, limited, after, second = ran.told["id"]
        check_equal((limited, after), ("", ""), "does not start again for roots that are open")
        check_equal(profiler_ids(arrived(receiver, folder, withheld(receiver)).chunks), [first, second], "profiler ids")


@case
def what_the_network_breaks_is_sent_again():
    for trouble in (RESET, RESET_EARLY):
        with Folder() as folder, Receiver([trouble]) as receiver:
            ran = drive(receiver, folder, TWICE)
            check_equal(ran.counts(), {"made": 2, "sent": 2, "limited": 0, "discarded": 0}, f"counts after {trouble}")
            check_sums(ran, receiver, folder)
            check_equal(len(arrived(receiver, folder).chunks), 2, "chunks")


@case
def who_never_answers_holds_nobody_up_and_the_next_launch_sends():
    with Folder() as folder, Receiver(default=HANG) as receiver:
        ran = drive(receiver, folder, "init start await work 300 stop flush 3000 counts shutdown", shutdown_timeout_ms=1000,
                    helper="/nonexistent")
        check_equal(ran.told["flush"], [False], "flushed")
        check(ran.told["flush_ms"][0] < 4500 and ran.told["shutdown_ms"][0] < 2500, ran.told)
        check_sums(ran, receiver, folder)
        check_equal(len(spooled(folder)), 1, "waits")
        receiver.default = answer(200)
        receiver.released.set()
        drive(receiver, folder, "init sleep 100 shutdown")
        check_equal(len(arrived(receiver, folder).chunks), 1, "chunks of the launch before")


def nobody_listens():
    """A DSN whose connections are refused."""
    with Receiver() as gone:
        return gone.dsn


@case
def the_end_does_not_wait_for_a_try_that_would_come_too_late():
    for options, waits in (({}, 1), ({"spool_directory": ""}, 0)):
        with Folder() as folder:
            # Each try that fails doubles the rest until the next one, which is at least 5 s after the flush.
            ran = drive(None, folder, "init start await work 200 stop flush 300 flush 300 shutdown", dsn=nobody_listens(),
                        shutdown_timeout_ms=4900, helper="/nonexistent", **options)
            check_equal(ran.told["flush"], [False, False], "flushed")
            check(ran.told["shutdown_ms"][0] < 2500, f"{ran.told['shutdown_ms']} ms, {options}")
            check_equal(len(spooled(folder)), waits, f"waits for the next launch, {options}")


@case
def tls_is_checked_against_the_certificates_given():
    if not shutil.which("openssl"):
        skip("openssl is not installed")
    with Folder() as folder:
        certificate = make_certificate(folder)
        with Receiver(certificate=certificate) as receiver:
            ran = drive(receiver, folder, "init start await work 200 stop flush 3000 counts", shutdown_timeout_ms=1000,
                        helper="/nonexistent")
            check_equal((ran.told["flush"], len(receiver.chunks)), ([False], 0), "sent to a stranger")
            check("certificate" in ran.said, ran.said)
            waits = len(spooled(folder))
            drive(receiver, folder, "init start await work 200", ca_file=certificate[0])
            check_equal(len(arrived(receiver, folder).chunks), waits + 1, "chunks")


@case
def proxies_are_used_by_option_and_by_environment():
    with Folder() as folder, Receiver() as receiver, Proxy() as proxy:
        for number, options in enumerate(({"proxy": proxy.url}, {"http_proxy": None, "HTTP_PROXY": None}), 1):
            drive(receiver, folder, "init start await work 200", **options)
        check_equal(proxy.forwarded, 1, "by the option")
        done = run("env", f"http_proxy={proxy.url}", DRIVES, *"init start await work 200".split(), env=environment(receiver, folder))
        check_equal((done.returncode, proxy.forwarded), (0, 2), "by the environment")
        check_equal(len(arrived(receiver, folder).chunks), 3, "chunks")


# --- Crashes, disks, many processes ----------------------------------------------------------------------------------

def start(receiver, folder, words, **options):
    return subprocess.Popen([str(DRIVES), *words.split()], cwd=folder, env=environment(receiver, folder, **options),
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def chunk_id(path):
    return next(payload["chunk_id"] for item, payload in read_envelope(path) if item["type"] == "profile_chunk")


def read_envelope(path):
    """As it lies in the spool, without sent_at."""
    header, rest = path.read_bytes().split(b"\n", 1)
    return items_of(json.dumps({**json.loads(header), "sent_at": ""}).encode() + b"\n" + rest)


@case
def killed_at_any_moment_nothing_whole_is_lost_or_sent_twice_and_nothing_torn_is_sent():
    with Folder() as folder, Receiver(default=HANG) as receiver:
        for _ in range(3):
            programs = [start(receiver, folder, "init start await work 60000", chunk_seconds=1) for _ in range(3)]
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
        receiver.default = answer(200)
        receiver.released.set()
        for _ in range(10): # who was killed a moment ago may still be there
            drive(receiver, folder, "init flush 60000", helper="/nonexistent")
            if not left_behind(folder):
                break
            time.sleep(1)
        got = arrived(receiver, folder, too_few(receiver))
        check(set(stored) <= set(receiver.chunks), f"lost: {set(stored) - set(receiver.chunks)}")
        check_equal(len(receiver.chunks), len(set(receiver.chunks)), "sent once each")
        # What was recorded and not yet made a chunk is the next launch's to send.
        reported = receiver.reported_of("profile_chunk")
        check(recorded >= 3, f"{recorded} recordings of nine processes")
        check(len(got.chunks) + reported >= len(stored) + recorded, f"{len(got.chunks)}, {reported} reported, of {len(stored)} and {recorded} recordings")


@case
def what_the_end_had_no_time_for_is_sent_by_who_begins_next():
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, f"init start id await work 300 stop sleep 300 start id await work 300 shutdown fork 3 exec touch {folder}/go wait "
                    "init start id await work_in_child 300 stop flush 60000", shutdown_timeout_ms=300, helper=helper_that_waits(folder))
        check_equal((ran.told["init"], ran.told["flush"]), ([True, True], [True]), "inits, flushed")
        chunks = arrived(receiver, folder).chunks
        check_equal(profiler_ids(chunks), ran.told["id"], "profiler ids, in order")
    with Folder() as folder, Receiver() as receiver:
        # The same process, but another program: nobody's number is like its own.
        ran = drive(receiver, folder, f"init start id await work 300 exec {DRIVES} init flush 60000")
        check_equal(profiler_ids(arrived(receiver, folder).chunks), ran.told["id"], "profiler ids")


@case
def twenty_processes_on_one_spool_lose_nothing_and_send_nothing_twice():
    takes_long()
    with Folder() as folder, Receiver([answer(200), RESET, RESET_EARLY] * 5) as receiver:
        programs = [start(receiver, folder, "init start await work 500 stop flush 60000") for _ in range(20)]
        check_equal([program.wait(timeout=100) for program in programs], [0] * 20, "statuses")
        drive(receiver, folder, "init flush 60000")
        got = arrived(receiver, folder)
        check_equal(len(profiler_ids(got.chunks)), 20, "profiler ids")
        for profiler in profiler_ids(got.chunks):
            check("works" in functions(chunk for chunk in got.chunks if chunk["profiler_id"] == profiler), "works is missing")


@case
def where_no_spool_can_be_written_profiles_are_sent_from_memory():
    with Folder() as folder, Receiver() as receiver:
        (folder / "spool").mkdir(mode=0o555)
        (folder / "temporary").mkdir(mode=0o777)
        (folder / "temporary").chmod(0o777)
        done = run(DRIVES, *"init start await work 300 stop flush 30000 counts".split(), **user_without_rights(), cwd=folder,
                   env=environment(receiver, folder, TMPDIR=folder / "temporary"))
        ran = Ran(done, 0)
        check_equal((ran.status, ran.told["flush"]), (0, [True]), f"status, flushed: {ran.said}")
        check("spool" in ran.said and "stay in memory" in ran.said, f"said: {ran.said}")
        check_sums(ran, receiver, folder)
        check("works" in functions(arrived(receiver, folder).chunks), "works is missing")
        check_equal([path.name for path in folder.rglob("offbeat-*")], [], "left in the folder for what is temporary")


@case
def a_full_disk_costs_profiles_and_harms_nothing():
    if os.geteuid() != 0:
        skip("needs root, to mount a small file system")
    for filled in (0, 11, 14, 16):
        with Folder() as folder, Receiver() as receiver:
            (folder / "small").mkdir()
            if run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder / "small").returncode != 0:
                skip("cannot mount a tmpfs here")
            try:
                with (folder / "small/filler").open("wb") as filler:
                    filler.write(bytes(filled * 4096 - (4096 if filled == 16 else 0)))
                ran = drive(receiver, folder, "init start await work 300 flush 30000 work 100 stop flush 30000 counts look",
                            spool_directory=folder / "small/spool", TMPDIR=folder / "small")
                check_equal(ran.told["flush"], [True, True], f"flushed with {filled} of 16 pages in use: {ran.said}")
                check_sums(ran, receiver, folder)
                for reason in receiver.reported:
                    check(reason.split(":")[0] in ("insufficient_data", "invalid", "internal_sdk_error"), receiver.reported)
                check_equal(len(receiver.chunks) + receiver.reported_of("profile_chunk"), 2, f"chunks, {filled}: {receiver.reported}, {ran.said}")
                if filled == 16:
                    check_equal(ran.said.count("recordings are lost"), 1, f"times that it was said: {ran.said}")
                arrived(receiver, folder, receiver.reported)
            finally:
                run("umount", "-l", folder / "small")


# --- The program is as without us ------------------------------------------------------------------------------------

def check_helper_ran(chunks):
    check(any("lineno" in frame for frame in frames_of(chunks, "works")), "no lines: the helper did not run")


@case
def the_program_sees_no_child_and_no_SIGCHLD_of_the_helper():
    # The second child is waited for, by a wait for any, while helpers run.
    words = "init start await work 200 flush 60000 look fork 1 quit wait fork 2 sleep 3000 thread 3000 wait join stop flush 60000 look"
    for before, signals in (("handle ", [0, 2]), ("", [0, 0])):
        with Folder() as folder, Receiver() as receiver:
            ran = drive(receiver, folder, before + words, chunk_seconds=2)
            check_equal((ran.told["signals"], ran.told["child"]), (signals, [-1, -1]), "SIGCHLD, children")
            check_equal((ran.told["waited"], ran.told["failures"]), ([1, 1], [0, 0]), f"children waited for: {ran.said}")
            check_helper_ran(arrived(receiver, folder, too_few(receiver)).chunks)
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "ignore init start await work 200 flush 60000 fork 1 quit wait look")
        check_equal((ran.told["waited"], ran.told["child"]), ([0], [-1]), "children where SIGCHLD is ignored")
        check_helper_ran(arrived(receiver, folder).chunks)


def state_of(process):
    """Its state and its parent, as proc(5) has them; None if it is not there."""
    try:
        state, parent = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[:2]
    except OSError:
        return None, None
    return state, int(parent)


@case
def the_helper_holds_nothing_of_the_program_open_and_is_killed_with_it():
    with Folder() as folder, Receiver() as receiver:
        program = start(receiver, folder, "init start await work 300 stop sleep 60000", helper=helper_that_waits(folder))
        begun = folder / "begun"
        check(wait_until(lambda: begun.exists() and begun.read_text(encoding="ascii").endswith("\n"), 60), "no helper began")
        helper = int(begun.read_text(encoding="ascii"))
        between = state_of(helper)[1]
        check_equal(state_of(between)[1], program.pid, "whose child it is that stands between")
        check_equal(os.listdir(f"/proc/{between}/fd"), [], "its descriptors")
        program.kill()
        program.wait()
        check(wait_until(lambda: all(state_of(process)[0] in (None, "Z") for process in (helper, between)), 20), "it lives on")
        drive(receiver, folder, "init flush 60000")
        check_equal(len(arrived(receiver, folder).chunks), 1, "chunks by the next launch")


@case
def no_descriptor_and_no_thread_stays_after_many_chunks_and_none_after_the_end():
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "look init start work 100 flush 60000 look " + "work 50 flush 60000 stop flush 60000 start await " * 12
                    + "work 50 flush 60000 look shutdown look")
        for name in ("descriptors", "threads"):
            before, running, later, after = ran.told[name]
            check_equal((later, after), (running, before), f"{name}, {ran.told[name]}")


@case
def a_forked_child_profiles_itself_and_takes_nothing_of_its_parent():
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init start id await work 400 fork 6 sleep 1500 await work_in_child 400 id work 300 id wait")
        chunks = arrived(receiver, folder).chunks
        of_parent = [chunk for chunk in chunks if chunk["profiler_id"] == ran.told["id"][0]]
        of_child = [chunk for chunk in chunks if chunk not in of_parent]
        check_equal((ran.told["waited"], ran.told["failures"]), ([1], [0]), f"children: {ran.said}")
        check_equal(len(profiler_ids(of_child)), 1, "profiler ids of the child")
        check("works" in functions(of_parent) and "works_in_the_child" not in functions(of_parent), f"the parent's: {functions(of_parent)}")
        check("works_in_the_child" in functions(of_child) and "works" not in functions(of_child), f"the child's: {functions(of_child)}")


@case
def children_that_call_exec_or_end_at_once_cost_nothing_visible():
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init start id await work 200 " + "fork 2 exec true fork 1 quit " * 20 + "wait work 100 look")
        check_equal((ran.told["waited"], ran.told["failures"]), ([40], [0]), "children")
        check_equal(profiler_ids(arrived(receiver, folder).chunks), ran.told["id"], "profiler ids")


@case
def a_daemon_is_profiled():
    for words in ("init start await work 50 flush 60000 daemon sleep 1500 await work_in_child 400", "daemon init start await work_in_child 400"):
        with Folder() as folder, Receiver() as receiver:
            drive(receiver, folder, words)
            check(wait_until(lambda: any("works_in_the_child" in functions([payload]) for body in receiver.bodies
                                         for item, payload in items_of(body) if item["type"] == "profile_chunk"), 60), "nothing came")
            check(wait_until(lambda: not left_behind(folder), 60), "left behind")
            arrived(receiver, folder, too_few(receiver))


@case
def a_process_that_is_stopped_for_seconds_sends_valid_chunks_none_much_longer_than_asked():
    # A pause of more than two seconds behind the end of a chunk is in none (facts 2.1: 66 s are the most).
    for chunk_seconds, expected in ((2, range(2, 40)), (30, range(1, 2))):
        with Folder() as folder, Receiver() as receiver:
            program = start(receiver, folder, "init start await thread 7500 work 7500 sleep 200", chunk_seconds=chunk_seconds, helper="/nonexistent")
            check(wait_until(lambda: list(folder.rglob("*.recording")), 60), "nothing was recorded")
            time.sleep(0.8)
            program.send_signal(signal.SIGSTOP)
            stopped = time.time()
            time.sleep(5)
            resumed = time.time()
            program.send_signal(signal.SIGCONT)
            check_equal(program.wait(timeout=100), 0, "status")
            chunks = arrived(receiver, folder).chunks
            check(len(chunks) in expected, f"{len(chunks)} chunks of {chunk_seconds} s")
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
    with Folder() as folder, Receiver() as receiver:
        # The last chunk is still being made when the time for the end is over.
        ran = drive(receiver, folder, f"option log 0 option before_send 0 init start await work 300 shutdown fork 3 exec touch {folder}/go "
                    "wait sleep 3000 late", shutdown_timeout_ms=300, helper=helper_that_waits(folder))
        check_equal((ran.told["init"], ran.told["late_calls"]), ([True], [0]), f"inits, calls after the end: {ran.said}")
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "option before_send 2000 init start await work 300 stop sleep 500 shutdown sleep 2000 late",
                    shutdown_timeout_ms=100, helper="/nonexistent")
        check_equal(ran.told["late_calls"], [0], "calls that went on after the end")
        check(ran.told["shutdown_ms"][0] < 5000, ran.told)


@case
def what_a_program_opens_after_it_closed_all_is_its_own_and_profiling_goes_on():
    line, held = b"the program's\n", "work 200 write flush 30000 work 100 write flush 30000 write shutdown write"
    for before, options in (("init start await work 300 flush 60000", {}), ("init start await work 100", {"helper": "/nonexistent"}),
                            ("init start await work 300 flush 60000", {"spool_directory": "", "helper": "/nonexistent"}),
                            ("init transaction a await work 300 finish a flush 60000 transaction b work 100 finish b",
                             {"traces_sample_rate": 1, "helper": "/nonexistent"})):
        with Folder() as folder, Receiver() as receiver:
            ran = drive(receiver, folder, f"{before} close_others open 40 {held}", **options)
            check_equal(ran.told.get("lost_file", []), [], f"files of the program that were closed: {ran.said}")
            for path in folder.glob("file-*"):
                check_equal(path.read_bytes(), line * 5, f"what is in {path.name}: {ran.said}")
            for path in folder.glob("folder-*"):
                check_equal([one.name for one in path.iterdir()], ["kept.tmp"], f"what is in {path.name}: {ran.said}")
            for path in folder.glob("folder-*/kept.tmp"):
                path.unlink()
            check_equal(ran.told["flush"][-2:], [True, True], f"flushed: {ran.said}")
            got = arrived(receiver, folder, too_few(receiver))
            flushes = f"{before} {held}".count("flush")
            check("traces_sample_rate" in options or len(got.chunks) >= flushes, f"{len(got.chunks)} chunks: {ran.said}")


@case
def a_second_init_ends_the_first_and_begins_anew():
    with Folder() as folder, Receiver() as receiver:
        ran = drive(receiver, folder, "init start id await work 200 init id start id await work 200 shutdown id start id init start id await work 200")
        first, none, second, *over, third = ran.told["id"]
        check_equal((ran.told["init"], none, over), ([True] * 3, "", ["", ""]), "inits, ids in between")
        check_equal(profiler_ids(arrived(receiver, folder).chunks), [first, second, third], "profiler ids")


@case
def init_in_a_forked_child_and_shutdown_at_exit_work():
    for words in ("fork 7 init start await work 200 flush 60000 wait", "init fork 7 init start await work 200 flush 60000 wait",
                  "atexit init start await work 200", "init atexit start await work 200 flush 60000 work 100", "init start await work 200 shutdown shutdown"):
        with Folder() as folder, Receiver() as receiver:
            ran = drive(receiver, folder, words)
            check_equal(ran.told.get("failures", [0]), [0], "children that failed")
            check("works" in functions(arrived(receiver, folder).chunks), f"works is missing after {words}")


@case
def a_program_that_loads_and_unloads_the_library_lives_on():
    with Folder() as folder, Receiver() as receiver:
        done = run(LOADS, LIBRARY, cwd=folder, env=environment(receiver, folder, debug=None))
        check_equal((done.returncode, done.stdout, done.stderr), (0, b"", b""), "status, output, standard error")
        check("works" in functions(arrived(receiver, folder).chunks), "works is missing")


@case
def programs_that_know_nothing_of_it_are_profiled_by_environment_alone():
    data = random.Random(1).randbytes(1 << 20) * 3
    programs = {"xz": (["xz", "-9", "-c"], data), "python3": ([shutil.which("python3"), "-c", "print(sum(i * i for i in range(4000000)))"], b"")}
    for name, (command, given) in programs.items():
        if not shutil.which(name):
            skip(f"{name} is not installed")
        with Folder() as folder, Receiver() as receiver:
            alone = run(*command, input=given)
            done = run(*command, input=given, cwd=folder, env=environment(
                receiver, folder, debug=None, profile_session_sample_rate=None, LD_PRELOAD=with_sanitizer(LIBRARY), HOME=os.environ["HOME"]))
            check_equal((done.returncode, done.stdout == alone.stdout, done.stderr), (0, True, b""), f"status, output, standard error of {name}")
            chunks = arrived(receiver, folder).chunks
            check(chunks and chunks[0]["release"].startswith(("xz", "python")), f"chunks of {name}: {[chunk['release'] for chunk in chunks]}")
            check(len(functions(chunks)) > 3, f"functions of {name}: {functions(chunks)}")


@case
def wrong_options_get_one_clear_line_and_the_program_goes_on():
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
            ("option size 0 ", {}, "size must be sizeof(struct offbeat_options)"),
            ("option size 4 ", {}, "size must be sizeof(struct offbeat_options)")):
        with Folder() as folder, Receiver() as receiver:
            ran = drive(receiver, folder, before + words, **{"debug": None, **options})
            check(len(ran.said.splitlines()) == 1 and ran.said.startswith("offbeat: ") and expected in ran.said, f"{options} {before}: {ran.said}")
            check_equal((ran.told["init"], ran.told["runs"], ran.told["threads"], receiver.requests), ([False], [False], [1], 0), f"after {options}")


# --- Off, it costs nothing -------------------------------------------------------------------------------------------

OFF = {"without a DSN": {"dsn": None}, "with no session sampled": {"profile_session_sample_rate": 0}}


@case
def off_it_has_no_thread_and_no_descriptor():
    for name, options in OFF.items():
        with Folder() as folder, Receiver() as receiver:
            told = drive(receiver, folder, "look init start look transaction a finish a measure x byte 1 sleep 100 look", debug=None, **options).told
            check_equal((told["threads"], told["descriptors"]), ([1] * 3, [3] * 3), f"threads, descriptors {name}")
            check_equal((receiver.requests, list(folder.iterdir())), (0, []), f"requests, files {name}")


@case_by_the_clock
def off_it_takes_no_memory_and_no_time():
    if IS_ASAN:
        skip("memory and time would be the sanitizer's")
    def least(words, **options):
        with Folder() as folder, Receiver() as receiver:
            told = [drive(receiver, folder, "pid memory " + words + "memory", debug=None, **options).told for _ in range(5)]
        return [min(one[name][1] - one[name][0] for one in told) for name in ("anonymous_kib", "cpu_us")]
    without = least("")
    for name, options in OFF.items():
        kib, cpu_us = (a - b for a, b in zip(least("init start ", **options), without))
        check(kib < 64, f"{kib} KiB {name}")
        check(cpu_us < 2000, f"{cpu_us} µs {name}")


@case
def memcheck_finds_nothing():
    if IS_ASAN:
        skip("a program has one sanitizer or valgrind")
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    with Folder() as folder, Receiver() as receiver:
        drive(receiver, folder, "init start transaction a span s a await work 1000 finish s finish a measure x byte 1 flush 60000 work 100",
              traces_sample_rate=1, prefix=("valgrind", "--quiet", "--error-exitcode=9",
                                            "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"))
        check_equal(len(arrived(receiver, folder, too_few(receiver)).transactions), 1, "transactions")


read_names()
main(sys.argv[2] if len(sys.argv) > 2 else "", at_once=6)
