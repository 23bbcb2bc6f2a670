"""What a program notices of being recorded from outside: the latency of its answers, interrupted system calls and context switches,
without a recorder, with ours and with perf, in turn. SPDX-License-Identifier: MIT"""
import contextlib
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

from attached_programs import Missing, postgres, redis
from common import perf_works, table

RATES = (101, 1000)
REQUESTS = 200_000
PGBENCH_SECONDS = 4


def recorders(build, folder, pid):
    """{name: command that records PID, which SIGINT ends; None: nobody}"""
    found = {"nobody": None}
    for rate in RATES:
        found[f"offbeat {rate} Hz"] = [build / "offbeat", "record", "--engine", "bpf", "-q", "-p", pid, "-F", rate, "-o", folder / "x.pb.gz"]
        if perf_works(folder):
            found[f"perf {rate} Hz"] = ["perf", "record", "-q", "-e", "cpu-clock", "-F", rate, "--call-graph", "fp", "-p", pid,
                                        "-o", folder / "perf.data"]
    return found


@contextlib.contextmanager
def recorded(command):
    if not command:
        yield
        return
    recorder = subprocess.Popen([str(word) for word in command], stderr=subprocess.DEVNULL)
    try:
        time.sleep(1.5)
        yield
    finally:
        recorder.send_signal(2)
        recorder.wait()


def switches(pid):
    """(voluntary, other) context switches of all threads of PID."""
    sums = [0, 0]
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        found = re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text(encoding="ascii"))
        sums = [sums[i] + int(found[i]) for i in range(2)]
    return sums


def redis_load(folder, pid):
    """{measure: value} of one run of redis-benchmark."""
    before, began = switches(pid), time.monotonic()
    done = subprocess.run(["redis-benchmark", "-s", folder / "socket", "--csv", "-n", str(REQUESTS), "-c", "20", "-t", "get"],
                          capture_output=True, text=True, check=True)
    seconds, after = time.monotonic() - began, switches(pid)
    names, values = ([word.strip('"') for word in line.split(",")] for line in done.stdout.strip().splitlines()[-2:])
    row = dict(zip(names, values))
    return {"requests/s": float(row["rps"]), "p50 ms": float(row["p50_latency_ms"]), "p95 ms": float(row["p95_latency_ms"]),
            "p99 ms": float(row["p99_latency_ms"]), "max ms": float(row["max_latency_ms"]),
            "switches, own will/s": (after[0] - before[0]) / seconds, "other/s": (after[1] - before[1]) / seconds}


def pgbench_load(folder, _pid):
    log = folder / "log"
    log.mkdir(exist_ok=True)
    log.chmod(0o777)
    done = subprocess.run(["pgbench", "-n", "-S", "-c", "2", "-T", str(PGBENCH_SECONDS), "-l", "--log-prefix", log / "t", "-h", folder,
                           "-U", "tester", "postgres"], capture_output=True, text=True, check=True)
    times = sorted(int(line.split()[2]) for file in log.iterdir() for line in file.read_text(encoding="ascii").splitlines())
    for file in log.iterdir():
        file.unlink()
    rate = float(re.search(r"tps = ([\d.]+)", done.stdout)[1])
    return {"requests/s": rate, **{f"p{percent} ms": times[int(len(times) * percent / 100)] / 1000 for percent in (50, 99, 99.9)}}


def waits_load(build, seconds):
    """{measure: value} of a program of a hundred threads that counts its own interrupted waits; it is started for each run."""
    def run(make_command):
        with subprocess.Popen([str(build / "bench/interruptions"), str(seconds)], stdout=subprocess.PIPE, text=True) as program:
            with recorded(make_command(program.pid)):
                lines = [line.split() for line in program.communicate()[0].splitlines()]
        counts = [tuple(map(int, line[1:])) for line in lines if len(line) == 4]
        return {"calls": sum(each[0] for each in counts), "EINTR": sum(each[1] for each in counts), "early": sum(each[2] for each in counts)}
    return run


def print_rounds(title, names, run, rounds):
    """Runs all in turn; the medians, and how far nobody's own runs are apart."""
    measured = {name: [] for name in names}
    for _ in range(rounds):
        for name in random.sample(names, len(names)):
            measured[name].append(run(name))
    measures = list(measured[names[0]][0])
    rows = [["recorder", *measures]]
    for name in names:
        rows.append([name, *(f"{statistics.median(each[measure] for each in measured[name]):.3f}" for measure in measures)])
    apart = [[each[measure] for each in measured[names[0]]] for measure in measures]
    rows.append(["nobody, least to most", *(f"{min(values):.3f}-{max(values):.3f}" for values in apart)])
    print(f"{title}, medians of {rounds} rounds in turn")
    table(rows)


def latency(build, rounds=7):
    for title, start, load in (("redis-server under redis-benchmark", redis, redis_load), ("postgres under pgbench", postgres, pgbench_load)):
        with tempfile.TemporaryDirectory(prefix="offbeat-bench-", ignore_cleanup_errors=True) as place:
            folder = pathlib.Path(place)
            try:
                with start(folder, load=None) as pid:
                    commands = recorders(build, folder, pid)

                    def run(name):
                        with recorded(commands[name]):
                            return load(folder, pid)

                    print_rounds(title, list(commands), run, rounds)
            except Missing as missing:
                print(f"{title}: skipped, {missing}")
            names = list(recorders(build, folder, 0))
    wait = waits_load(build, 5)
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-", ignore_cleanup_errors=True) as place:
        print_rounds("Waits of a hundred threads", names, lambda name: wait(lambda pid: recorders(build, pathlib.Path(place), pid)[name]), 2)
