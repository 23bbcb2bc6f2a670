"""What recording from outside costs: in the kernel by its own statistics of BPF programs, in the recorder by its CPU time. Both hold on a
busy machine, too. Needs root. SPDX-License-Identifier: MIT"""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import tempfile
import time

from attached_programs import NODE, Missing, build_c, started
from common import compiler_proper, environment, large_source, perf_works, table
from slowdown import Contestant, WORK, beside_perf, row_of

STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
BPFTOOL = "/usr/sbin/bpftool"
RATE = 997
MODULES = 60
AGENT_SECONDS = 60

DEEP = r"""
#include <stdio.h>
static volatile unsigned sink;
__attribute__((noinline, noclone)) static unsigned deep(unsigned depth) {
    if (depth > 0) return deep(depth - 1) + sink;
    for (;;) sink = sink * 31 + 7;
}
int main(void) { puts("ready"); fflush(stdout); return (int)deep(40); }
"""

MODULE = "volatile unsigned sink{n}; __attribute__((noinline)) unsigned calls{n}(unsigned (*next)(void)) {{ return next() + sink{n}; }}\n"


def kernel_programs(pid):
    """{name: (ns, runs)} of the programs in the kernel that the recorder PID has."""
    open_files = [file.read_text(encoding="ascii") for file in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir()]
    numbers = {int(number) for each in open_files for number in re.findall(r"^prog_id:\s+(\d+)", each, re.M)}
    listed = json.loads(subprocess.run([BPFTOOL, "prog", "list", "-j"], capture_output=True, check=True).stdout)
    ours = ("timer_tick", "observe_thread", "thread_exit", "process_fork", "process_exec", "place_chosen")
    return {each["name"]: (each.get("run_time_ns", 0), each.get("run_cnt", 0)) for each in listed
            if each.get("name") in ours and each["id"] in numbers}


@contextlib.contextmanager
def counted():
    """The kernel counts the time of BPF programs until the end of the block."""
    before = STATISTICS.read_text(encoding="ascii")
    STATISTICS.write_text("1", encoding="ascii")
    try:
        yield
    finally:
        STATISTICS.write_text(before, encoding="ascii")


def cpu_ns(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def recorder_of(build, folder, pid, *options):
    command = [build / "offbeat", "record", "--engine", "bpf", "-p", pid, "--mode", "cpu", "--no-symbols", "-q", *options]
    return subprocess.Popen([str(word) for word in command], cwd=folder, env=environment(TMPDIR=folder, XDG_CACHE_HOME=folder),
                            stderr=subprocess.PIPE, text=True)


def frames_of(files):
    """(stacks, mean number of frames) in envelopes, which are then removed."""
    depths = []
    for file in files:
        chunk = json.loads(file.read_bytes().splitlines()[2])["profile"]
        depths += [len(chunk["stacks"][sample["stack_id"]]) for sample in chunk["samples"]]
        file.unlink()
    return len(depths), statistics.mean(depths) if depths else 0


def walks(build, folder, pid, seconds):
    """(ns that timer_tick took, its runs, stacks, mean number of frames) of a recording of PID."""
    recorder = recorder_of(build, folder, pid, "-F", RATE, "-o", "x.envelope")
    time.sleep(1)  # its tables are in the kernel
    first = kernel_programs(recorder.pid).get("timer_tick", (0, 0))
    time.sleep(seconds)
    last = kernel_programs(recorder.pid).get("timer_tick", (0, 0))
    recorder.send_signal(signal.SIGINT)
    recorder.communicate()
    stacks, frames = frames_of(list(folder.glob("x*.envelope")))
    share = (last[1] - first[1]) / max(last[1], 1)
    return last[0] - first[0], last[1] - first[1], stacks * share, frames


def deep_program(folder):
    (folder / "deep.c").write_text(DEEP, encoding="ascii")
    subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "deep.c", "-o", "deep"], cwd=folder, check=True)
    return started(folder / "deep")


def sleeping(_folder):
    return started("sleep", "1000", is_ready=False)


@contextlib.contextmanager
def compiling(folder):
    large_source(folder / "large.c", 1500)
    again = f"while :; do {compiler_proper()} -quiet -O2 large.c -o /dev/null; done"
    with started("sh", "-c", again, is_ready=False, cwd=folder) as shell:
        yield shell


def frame_costs(build, folder, seconds):
    """A run for a thread that is not recorded costs what it does while nobody is recorded who runs."""
    with counted():
        with sleeping(folder) as program:
            idle_ns, idle_runs, _, _ = walks(build, folder, program.pid, seconds)
        other_ns = idle_ns / max(idle_runs, 1)
        rows = [["program", "runs", "stacks", "frames", "ns a run", "ns a frame", "most"]]
        rows.append(["another's thread", str(idle_runs), "", "", f"{other_ns:.0f}", "", ""])
        for name, start, most in (("the same stack again and again", deep_program, 150), ("cc1", compiling, 500)):
            with start(folder) as program:
                spent, runs, stacks, frames = walks(build, folder, program.pid, seconds)
            spent -= (runs - stacks) * other_ns
            rows.append([name, str(runs), f"{stacks:.0f}", f"{frames:.1f}", f"{spent / max(stacks, 1):.0f}",
                         f"{spent / max(stacks, 1) / max(frames, 1):.0f}", str(most)])
    print("Walks in the kernel, with what a sample costs beside them")
    table(rows)


def recording_bytes(build, folder, seconds):
    """The recorder is killed, so that the recording stays."""
    with compiling(folder) as program:
        recorder = recorder_of(build, folder, program.pid, "-F", RATE, "-o", "x.envelope")
        time.sleep(seconds)
        recorder.kill()
        recorder.communicate()
    size = samples = 0
    for recording in folder.rglob("*.recording"):
        answer = subprocess.run([build / "offbeat", "info", "--json", recording], capture_output=True, text=True, check=False).stdout
        size += recording.stat().st_size
        samples += int(json.loads(answer)["recorder"]["samples_taken"]) if answer else 0
    print(f"Recording of cc1 from outside: {size} bytes, {samples} samples, {size / max(samples, 1):.1f} bytes a sample (most: 16)")


@contextlib.contextmanager
def program_of_modules(folder, count):
    """A busy program whose stack goes through COUNT libraries."""
    for n in range(count):
        (folder / f"m{n}.c").write_text(MODULE.format(n=n), encoding="ascii")
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", f"m{n}.c", "-o", f"libm{n}.so"], cwd=folder, check=True)
    text = "#include <stdio.h>\nstatic volatile unsigned sink;\n"
    text += "".join(f"unsigned calls{n}(unsigned (*next)(void));\n" for n in range(count))
    text += "static unsigned next0(void) { for (;;) sink++; }\n"
    text += "".join(f"static unsigned next{n + 1}(void) {{ return calls{n}(next{n}) + sink; }}\n" for n in range(count))
    text += f'int main(void) {{ puts("ready"); fflush(stdout); return (int)next{count}(); }}\n'
    (folder / "many.c").write_text(text, encoding="ascii")
    libraries = [f"-lm{n}" for n in range(count)]
    subprocess.run(["gcc", "-O1", "many.c", "-L.", "-Wl,-rpath," + str(folder), *libraries, "-o", "many"], cwd=folder, check=True)
    with started(folder / "many") as program:
        yield program


def first_samples(build, folder):
    """What 60 modules add to the time of the first sample, which is that of a program with two."""
    found = []
    for count in (0, MODULES):
        with program_of_modules(folder, count) as program:
            began_ns = time.time_ns()
            recorder_of(build, folder, program.pid, "-F", RATE, "-d", 1, "-o", "x.envelope").communicate()
        answer = subprocess.run([build / "offbeat", "info", "--json", folder / "x.envelope"], capture_output=True, text=True, check=True).stdout
        facts = json.loads(answer)
        stacks = {key: value for key, value in facts["recorder"].items() if key.startswith("stacks_")}
        found.append(((facts["first_sample"] - began_ns) / 1e6, 100 * stacks["stacks_root"] / max(sum(stacks.values()), 1)))
    print(f"First sample: {found[0][0]:.0f} ms after the start of the command; of a program with {MODULES} more libraries {found[1][0]:.0f} ms: "
          f"{found[1][0] - found[0][0]:+.0f} (most: 100); {found[1][1]:.1f} % of its stacks reach the root")


def locked_bytes():
    """{number: bytes} of all maps in the kernel."""
    listed = json.loads(subprocess.run([BPFTOOL, "map", "list", "-j"], capture_output=True, check=True).stdout)
    return {each["id"]: each.get("bytes_memlock", 0) for each in listed}


@contextlib.contextmanager
def crowd(folder):
    """A hundred processes with 2 000 threads that wake five times a second, and one of cc1, of LLVM and of node."""
    program = build_c(folder)
    (folder / "work.js").write_text(NODE, encoding="utf-8")
    large_source(folder / "large.c", 300)
    with contextlib.ExitStack() as all_of_them:
        for _ in range(97):
            all_of_them.enter_context(started(program, 20, 400000))
        for command in (f"{compiler_proper()} -quiet -O2", "clang-14 -O2 -c"):
            again = f"while :; do {command} large.c -o /dev/null; sleep 2; done"
            all_of_them.enter_context(started("sh", "-c", again, is_ready=False, cwd=folder))
        all_of_them.enter_context(started("node", "work.js", cwd=folder))
        yield


def agent_costs(build, folder):
    with counted(), crowd(folder):
        maps = locked_bytes()
        command = [build / "offbeat", "agent", "--output", folder / "profiles", "--data", folder / "data", "--chunk-seconds", "20", "-v"]
        with open(folder / "said", "w", encoding="utf-8") as said:
            agent = subprocess.Popen([str(word) for word in command], cwd=folder, stdout=said, stderr=said)
        time.sleep(20)  # it has built its tables
        before, kernel = cpu_ns(agent.pid), sum(ns for ns, _ in kernel_programs(agent.pid).values())
        time.sleep(AGENT_SECONDS)
        used, kernel = cpu_ns(agent.pid) - before, sum(ns for ns, _ in kernel_programs(agent.pid).values()) - kernel
        status = pathlib.Path(f"/proc/{agent.pid}/status").read_text(encoding="ascii")
        memory_kb = int(status.split("VmRSS:")[1].split()[0])
        in_maps = sum(size for number, size in locked_bytes().items() if number not in maps)
        agent.terminate()
        agent.wait()
    print(f"Agent, 100 processes with 2 000 threads, {AGENT_SECONDS} s: {used / AGENT_SECONDS / 1e7:.2f} % of a core in it and "
          f"{kernel / AGENT_SECONDS / 1e7:.2f} % in its programs in the kernel (most: 1); {memory_kb / 1024:.0f} MB resident and "
          f"{in_maps / 2 ** 20:.0f} MB of maps (most: 100); {len(list((folder / 'profiles').glob('*')))} profiles")
    print((folder / "said").read_text(encoding="utf-8").strip()[-600:])


def slower(build, folder, rounds):
    busy = [str(build / "bench/busy"), str(WORK)]
    record = [str(build / "offbeat"), "record", "--engine", "bpf", "--mode", "cpu", "-o", "x.pb.gz"]
    everybody = [Contestant("none", busy)]
    everybody += [Contestant(f"offbeat {rate} Hz, outside", [*record, "-F", str(rate), "--", *busy]) for rate in (101, 1000)]
    for rate in (101, 1000) if perf_works(folder) else ():
        for graph in ([], ["--call-graph", "fp"], ["--call-graph", "dwarf"]):
            everybody.append(Contestant(f"perf {rate} Hz, {graph[-1] if graph else 'no stacks'}",
                                        ["perf", "record", "-e", "cpu-clock", "-F", str(rate), *graph, "-o", "x.data", "--", *busy]))
    for _ in range(rounds):
        for contestant in random.sample(everybody, len(everybody)):
            contestant.run(folder)
    print(f"A busy program of four threads, {rounds} rounds: what its pieces of work take longer, and the recorder, in % of the work")
    rows = [["profiler", "wall ms", "in threads", "beside", "recorder", "cost", "±", "all", "±", "after ms", "samples"]]
    table(rows + [row_of(contestant, everybody[0]) for contestant in everybody])
    beside_perf(everybody)


def outside(build, seconds=5):
    if os.geteuid() != 0 or not STATISTICS.exists() or not pathlib.Path(BPFTOOL).exists():
        print("outside: skipped, needs root, statistics of BPF programs and bpftool")
        return
    parts = (lambda folder: frame_costs(build, folder, seconds), lambda folder: recording_bytes(build, folder, 4 * seconds),
             lambda folder: first_samples(build, folder), lambda folder: slower(build, folder, seconds), lambda folder: agent_costs(build, folder))
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="offbeat-bench-", ignore_cleanup_errors=True) as place:
            pathlib.Path(place).chmod(0o755)
            try:
                part(pathlib.Path(place))
            except Missing as missing:
                print(f"skipped: {missing}")
