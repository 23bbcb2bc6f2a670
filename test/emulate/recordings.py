"""Recordings on another processor, in an emulated machine: ./dev emulate python3 test/emulate/recordings.py build-aarch64. Arguments: the
build folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("test", "test/end_to_end", "test/programs", "test/serve")]
from recording import Folder, Offbeat, case, check, check_equal, main, run, skip, text  # noqa: E402
from recording_figures import add_figures  # noqa: E402
from server_process import Server  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
WAITS = OFFBEAT.build / "test/emulate/waits"
KINDS = ("read poll select epoll nanosleep recv accept mutex condition rwlock barrier semaphore flock waitpid syscall").split()
SECONDS = 4


def complete_shares(path):
    """{kind of wait: share of the time of its thread whose stack reaches the function that begins the thread}."""
    shares = {}
    for name, functions, all_ns in OFFBEAT.threads(path):
        if name in KINDS:
            reached = min(functions.get("run_" + name, 0), functions.get("waits_in_" + name, 0))
            shares[name] = reached / all_ns if all_ns else 0
    return shares


def check_waits(path):
    """All stacks of blocked threads are complete."""
    shares = complete_shares(path)
    check_equal(sorted(shares), sorted(KINDS), "threads")
    print("# complete: " + ", ".join(f"{name} {share:.0%}" for name, share in shares.items()))
    incomplete = {name: f"{share:.0%}" for name, share in shares.items() if share < 0.9}
    check(not incomplete, f"incomplete stacks: {incomplete}")


@case
def blocked_threads_have_complete_stacks_and_no_wait_is_interrupted():
    with Folder() as folder:
        done = OFFBEAT.record(folder, WAITS, SECONDS)
        check_equal(done.returncode, 0, f"status; {text(done.stderr)}")
        check_equal(text(done.stdout), "0", "waits that a signal has interrupted")
        check_waits(folder / "x.pb.gz")


def record_running(folder, program, *options):
    """Records PROGRAM, which runs already, into x.pb.gz in FOLDER."""
    with subprocess.Popen([program, "1000"], stdout=subprocess.PIPE) as running:
        try:
            time.sleep(0.5)
            done = run(OFFBEAT.program, "record", *options, "-p", running.pid, "--duration", SECONDS, "-o", "x.pb.gz", cwd=folder)
            check_equal(done.returncode, 0, f"status; {text(done.stderr)}")
        finally:
            running.kill()


def attached(engine, program=WAITS):
    with Folder() as folder:
        record_running(folder, program, "--engine", engine)
        check_waits(folder / "x.pb.gz")
        busy = [functions for _, functions, _ in OFFBEAT.threads(folder / "x.pb.gz") if "computes" in functions]
        check(busy and busy[0].get("main", 0) >= busy[0]["computes"], f"the busy thread shows {busy}")


@case
def the_perf_engine_records_a_running_process():
    attached("perf")


@case
def the_perf_engine_records_a_static_program():
    attached("perf", OFFBEAT.build / "test/emulate/waits_static")


@case
def the_engine_in_the_kernel_records_a_running_process():
    attached("bpf")


@case
def the_engine_in_the_kernel_records_a_static_program():
    attached("bpf", OFFBEAT.build / "test/emulate/waits_static")


@case
def waits_are_recorded_with_their_stacks():
    """Off-CPU time: each thread that waits has one stack, complete, for all of the time."""
    with Folder() as folder:
        record_running(folder, WAITS, "--mode", "off-cpu")
        check_waits(folder / "x.pb.gz")


def check_stacks(path, least=99):
    """Of the stacks of the recording at PATH, at least LEAST per cent reach the root. One may miss it."""
    figures = add_figures([OFFBEAT.answer("info", path)])
    print(f"# {path.name}: {figures.complete:.1f} % of {figures.stacks} stacks are complete; {figures.causes()}")
    check(figures.stacks > 20, f"only {figures.stacks} stacks")
    check(figures.stacks - figures.root <= max(1, figures.stacks * (100 - least) / 100), f"incomplete: {figures.causes()}")


def check_go(engine):
    program = OFFBEAT.build / "test/emulate/spins_in_go"
    if not program.exists():
        skip("go is not installed where this was built")
    with Folder() as folder:
        record_running(folder, program, "--engine", engine, "--mode", "cpu")
        stacks = OFFBEAT.stacks(folder / "x.pb.gz", folder)
    every = sum(weight for _, weight in stacks)
    spinning = sum(weight for frames, weight in stacks if "main.spins" in frames)
    complete = sum(weight for frames, weight in stacks if frames[0] in ("runtime.goexit.abi0", "runtime.mstart.abi0", "runtime.goexit"))
    print(f"# {complete / every:.1%} complete, {spinning / every:.1%} in main.spins")
    check(complete > 0.95 * every and spinning > 0.9 * every, f"{stacks[:5]}")


@case
def the_engine_in_the_kernel_has_complete_stacks_of_a_static_go_program():
    check_go("bpf")


@case
def the_perf_engine_has_complete_stacks_of_a_static_go_program():
    check_go("perf")


# --- real programs ----------------------------------------------------------------------------------------------------

# What each does takes about 150 million instructions. $DATA is a file of 4 MB.
PROGRAMS = {
    "bash": "n=0; for ((i = 0; i < 20000; i++)); do ((n += i * i % 7)); done; echo $n",
    "gawk": "BEGIN { for (i = 0; i < 500000; i++) s += i % 7 * 3; print s }",
    "mawk": "BEGIN { for (i = 0; i < 800000; i++) s += i % 7 * 3; print s }",
    "perl": "for (1..500000) { $s += $_ * $_ % 7 } print $s",
    "python3": "print(sum(i * i % 7 for i in range(400000)))",
    "lua5.4": "local s = 0; for i = 1, 3000000 do s = (s * 31 + i) % 65521 end; print(s)",
    "bc": "scale = 900; 4 * a(1)",
    "sqlite3": "with recursive c(x) as (select 1 union all select x + 1 from c where x < 150000) select sum(x * x % 7) from c",
    "xz": "$DATA", "gzip": "$DATA", "zstd": "$DATA", "sort": "$DATA",
}
OPTIONS = {"bash": ["-c"], "gawk": [], "mawk": [], "perl": ["-e"], "python3": ["-c"], "lua5.4": ["-e"], "bc": ["-l"],
           "sqlite3": [":memory:"], "xz": ["-6", "-c"], "gzip": ["-9", "-c"], "zstd": ["-q", "-12", "-c"], "sort": ["-R"]}


def add_program(name, work):
    def has_complete_stacks():
        with Folder() as folder:
            data, words = folder / "data", OPTIONS[name] + ([] if name == "bc" else [work])
            data.write_bytes(b"".join(b"%d %x\n" % (i * i % 9973, i * i) for i in range(60000)))
            words = [str(data) if word == "$DATA" else word for word in words]
            out = {"input": work.encode()} if name == "bc" else {}
            done = run(OFFBEAT.program, "record", "-F", "199", "-o", f"{name}.pb.gz", "--", name, *words, cwd=folder, **out)
            check_equal(done.returncode, 0, f"status; {text(done.stderr)}")
            check_stacks(folder / f"{name}.pb.gz")

    has_complete_stacks.__name__ = f"{name} has complete stacks"
    case(has_complete_stacks)


for program_name, program_work in PROGRAMS.items():
    add_program(program_name, program_work)


# --- the SDK ----------------------------------------------------------------------------------------------------------

@case
def a_program_with_the_library_sends_to_a_server():
    with Folder() as folder:
        server = Server(OFFBEAT.program, folder / "data")
        done = run("env", f"LD_PRELOAD={OFFBEAT.build}/liboffbeat.so", f"OFFBEAT_DSN={server.dsn}", "OFFBEAT_SERVICE=emulated", WAITS, SECONDS, cwd=folder)
        check_equal((done.returncode, text(done.stdout)), (0, "0"), f"status and interrupted waits; {text(done.stderr)}")
        for _ in range(100):
            found = run(OFFBEAT.program, "top", "--json", server.url, cwd=folder)
            if found.returncode == 0 and b"computes" in found.stdout:
                break
            time.sleep(0.2)
        check(b"computes" in found.stdout and b"waits_in_poll" in found.stdout, f"the server shows {text(found.stdout)[:500]} {text(found.stderr)}")


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
