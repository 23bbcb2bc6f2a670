"""offbeat agent: processes of the machine recorded from outside, all the time. Arguments: the build folder, and optionally a part of
the names of the cases to run. SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "serve")]
from recording import Folder, Offbeat, case, check, check_equal, main, run, short, skip, text, wait_until  # noqa: E402
from server_process import Server  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
PROGRAM = OFFBEAT.build / "test/end_to_end/attached"
SPINS = OFFBEAT.build / "test/end_to_end/spins"
ONLY_IT = ("--rule", "name=^attached$ service=shop@1", "--rule", "record=no")  # the machine runs other programs, too
PATH_BYTES_MAX = 4060


class Program:
    """The program, whose threads are at work when the block begins."""

    def __init__(self, path=PROGRAM):
        self.path = path

    def __enter__(self):
        self.process = subprocess.Popen([self.path], stdout=subprocess.PIPE)
        self.process.stdout.readline()
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Agent:
    """An agent for FOLDER that has begun to record."""

    def __init__(self, folder, *options, env=None, limits=(), before=()):
        self.log = folder / "agent.log"
        variables = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), **(env or {})}
        with open(self.log, "ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen([*before, OFFBEAT.program, "agent", "--data", folder / "data", "--chunk-seconds", "1", *options],
                                            stderr=log, env=variables, preexec_fn=lambda: [resource.setrlimit(*limit) for limit in limits])
        wait_until(lambda: b"records " in self.log.read_bytes()[begin:] or self.process.poll() is not None, "the agent does not begin")
        if "no engine can record" in self.said():
            skip(self.said())
        check(self.process.poll() is None, self.said())

    def said(self):
        return text(self.log.read_bytes())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        check_equal(status, 0, self.said())
        return self.said()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def waiting(folder):
    return [path.name for path in (folder / "data").rglob("*.envelope")]


def recordings(folder):
    return [path.name for path in (folder / "data/recordings").glob("*.recording")]


def services(server):
    path, headers = f"/api/{server.project}/services", {"Authorization": f"Bearer {server.token}"}
    return {row["name"]: row["samples"] for row in server.request("GET", path, headers=headers).json()["services"]}


@short
@case
def a_service_arrives_in_a_server_with_its_functions_and_threads():
    with Folder() as folder, Program():
        server = Server(OFFBEAT.program, folder / "store")
        with Agent(folder, "--dsn", server.dsn, "-F", "499", *ONLY_IT) as agent:
            wait_until(lambda: services(server).get("shop-1", 0) >= 100, agent.said)
            agent.stop()
        check_equal(list(services(server)), ["shop-1"], agent.said())
        url = f"{server.url}?service=shop-1"
        rows = {row["name"]: row for row in OFFBEAT.answer("top", "-n", "100", url)["functions"]}
        check(rows["spends_seventy"]["total"] > rows["spends_thirty"]["total"] > 0, str(rows))
        tags = text(run(OFFBEAT.program, "tags", url).stdout)
        check("thread: Total" in tags and "): attached" in tags, tags)
        server.stop()
        check_equal((waiting(folder), recordings(folder)), ([], []), "nothing waits")


@case
def what_cannot_be_sent_waits_on_disk_and_is_sent_by_the_next_agent():
    """Recordings that a killed agent did not deliver are delivered, too."""
    with Folder() as folder, Program():
        server = Server(OFFBEAT.program, folder / "store")
        server.stop()
        with Agent(folder, "--dsn", server.dsn, *ONLY_IT) as agent:
            wait_until(lambda: waiting(folder), agent.said)
            wait_until(lambda: recordings(folder) and "the server does not answer" in agent.said(), agent.said)
            agent.process.kill()
            agent.process.wait()
        kept = recordings(folder)
        again = Server(OFFBEAT.program, folder / "store", "--listen", f"127.0.0.1:{server.port}")
        with Agent(folder, "--dsn", server.dsn, "--rule", "record=no") as agent:
            wait_until(lambda: not recordings(folder), agent.said)
            agent.stop()
        check_equal((waiting(folder), list(services(again))), ([], ["shop-1"]), f"of {kept}: {agent.said()}")
        again.stop()


@case
def a_folder_has_a_file_for_each_process_and_time_and_stays_small():
    with Folder() as folder, Program() as program:
        out = folder / "out"
        out.mkdir()
        (out / "notes.txt").write_text("mine")
        old = ("old-1-20200101T000000.000000Z.pb.gz", "oldZ.x-1-20200101T000000.000000Z.pb.gz")
        for name in (*old, "not-ours-20200101T000000Z.pb.gz"):
            (out / name).write_text("x")
            os.utime(out / name, (1, 1))
        with Agent(folder, "-o", out, "--keep", "1h", *ONLY_IT) as agent:
            wait_until(lambda: list(out.glob("shop-1-*")), agent.said)
            agent.stop()
        names = sorted(path.name for path in out.iterdir())
        check("notes.txt" in names and "not-ours-20200101T000000Z.pb.gz" in names, f"files of others: {names}")
        check(not set(old) & set(names), f"{names}")
        ours = [name for name in names if re.fullmatch(rf"shop-1-{program.pid}-\d{{8}}T\d{{6}}\.\d{{6}}Z\.pb\.gz", name)]
        check(ours, f"{names}: {agent.said()}")
        (out / "not-ours-20200101T000000Z.pb.gz").unlink()
        rows = {row["name"] for name in ours for row in OFFBEAT.answer("top", "-n", "100", out / name)["functions"]}
        check("spends_seventy" in rows, f"{sorted(rows)}")


@case
def a_thread_that_stays_blocked_is_in_each_recording_for_all_of_its_time():
    with Folder() as folder, Program():
        out = folder / "out"
        with Agent(folder, "-o", out, "--mode", "wall", *ONLY_IT) as agent:
            began = time.monotonic()
            wait_until(lambda: len(list(out.iterdir())) >= 3, agent.said)
            ended = time.monotonic()
            agent.stop()
        blocked = 0
        for path in out.iterdir():
            rows = {row["name"]: row["total"] for row in OFFBEAT.answer("top", "-n", "100", "--sample-index", "blocked", path)["functions"]}
            check("waits_forever" in rows, f"{path.name}: {sorted(rows)}")
            blocked += rows["waits_forever"] / 1e9
        check(blocked > 0.9 * (ended - began) - 0.5, f"{blocked} s of {ended - began} s in {len(list(out.iterdir()))} files: {agent.said()}")


@case
def rules_are_read_again_at_a_signal_and_a_wrong_one_changes_nothing():
    with Folder() as folder, Program():
        out, rules = folder / "out", folder / "agent.conf"
        rules.write_text(f"output = {out}\n# comment\nrule = record=no\n")
        with Agent(folder, "--config", rules) as agent:
            check("records 0 processes" in agent.said(), agent.said())
            rules.write_text(f"output = {out}\nrule = name=^attached$ color=red\n")
            agent.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "the rules stay as they were" in agent.said(), agent.said)
            check('rule: "color" is none of' in agent.said(), agent.said())
            rules.write_text(f"output = {out}\nrule = name=^attached$ service=unit\nrule = record=no\n")
            agent.process.send_signal(signal.SIGHUP)
            wait_until(lambda: list(out.glob("*.pb.gz")), agent.said)
            agent.process.send_signal(signal.SIGUSR1)
            wait_until(lambda: "agent: 1 processes, " in agent.said(), agent.said)
            agent.stop()


@case
def a_rule_says_how_often_and_the_time_stays_right():
    with Folder() as folder:
        out = folder / "out"
        links = {name: folder / name for name in ("often", "seldom")}
        rules = [word for name in links for word in ("--rule", f"name=^{name}$ service={name}" + (" frequency=50" if name == "seldom" else ""))]
        for link in links.values():
            os.link(PROGRAM, link)
        programs = [subprocess.Popen([link], stdout=subprocess.DEVNULL) for link in links.values()]
        try:
            with Agent(folder, "-o", out, "-F", "499", "--cpu-max", "100%", *rules, "--rule", "record=no") as agent:
                wait_until(lambda: all(list(out.glob(f"{name}-*")) for name in links), agent.said)
                agent.stop()
        finally:
            for program in programs:
                program.kill()
                program.wait()
        found = {}
        for path in out.iterdir():
            name = path.name.split("-")[0]
            taken = re.search(r"samples_taken (\d+)", text(run(OFFBEAT.program, "info", path).stdout))
            spent = sum(row["self"] for row in OFFBEAT.answer("top", "-n", "0", path)["functions"])
            before = found.get(name, (0, 0))
            found[name] = (before[0] + int(taken[1]), before[1] + spent / 1e9)
        often, seldom = (found[name][0] / found[name][1] for name in links)
        check(3 * seldom < often, f"samples and seconds of CPU time: {found}")


@case
def a_rule_holds_for_the_children_of_recorded_processes():
    with Folder() as folder:
        keeper = folder / "keeper"
        shutil.copy("/bin/sh", keeper)
        shell = subprocess.Popen([keeper, "-c", f"{PROGRAM}; true"], stdout=subprocess.PIPE, start_new_session=True)
        shell.stdout.readline()
        try:
            with Agent(folder, "-o", folder / "out", "--rule", "name=^keeper$", "--rule", "record=no") as agent:
                check("records 1 processes" in agent.said(), agent.said())
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
            shell.stdout.close()


@case
def a_profile_that_cannot_be_written_holds_up_no_others():
    """The path of its file is longer than any may be."""
    with Folder() as folder, Program():
        out = folder / "out"
        while len(str(out)) < PATH_BYTES_MAX:
            out /= "x" * min(200, PATH_BYTES_MAX - len(str(out)))
        with Agent(folder, "-o", out, *ONLY_IT) as agent:
            wait_until(lambda: "a profile is dropped: its path in" in agent.said(), agent.said)
            agent.stop()
        check_equal(recordings(folder), [], "nothing waits")


def fill(path):
    """Leaves no room in the file system of PATH, a new file."""
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass


def state(agent):
    """The numbers of the line about the state that SIGUSR1 asks for."""
    before = agent.said().count("samples a second")
    agent.process.send_signal(signal.SIGUSR1)
    wait_until(lambda: agent.said().count("samples a second") > before, agent.said)
    line = agent.said().split("samples a second")[-1]
    return {what: int(re.search(rf"(\d+) {what}", line)[1]) for what in ("made", "cut short", "failed")}


@case
def a_full_disk_is_said_once_and_recording_goes_on_when_there_is_room():
    if os.geteuid() != 0:
        skip("needs root, to mount a small file system")
    with Folder() as folder, Program():
        out, data = folder / "out", folder / "data"
        inside = ("unshare", "--mount", "sh", "-c", f'mkdir -p {data} {out} && mount -t tmpfs -o size=1M none {data} && mount -t tmpfs -o size=8M none {out} && exec "$@"', "sh")
        with Agent(folder, "-o", out, "-F", "499", "--cpu-max", "100%", *ONLY_IT, before=inside) as agent:
            seen = pathlib.Path(f"/proc/{agent.process.pid}/root")
            data, out = seen / str(data)[1:], seen / str(out)[1:]
            wait_until(lambda: list(out.glob("*.pb.gz")), agent.said)
            fill(data / "filler")
            wait_until(lambda: "recordings cannot be written to" in agent.said(), agent.said)
            failed = state(agent)
            wait_until(lambda: sum(state(agent)[key] for key in ("failed", "cut short")) >= sum(failed[key] for key in ("failed", "cut short")) + 2, agent.said)
            check_equal(agent.said().count("No space left on device"), 1, agent.said())
            (data / "filler").unlink()
            wait_until(lambda: "recordings are written again" in agent.said(), agent.said)
            made = state(agent)["made"]
            wait_until(lambda: state(agent)["made"] > made, agent.said)
            fill(out / "filler")
            wait_until(lambda: agent.said().count("No space left on device") == 2, agent.said)
            time.sleep(6)  # the next try
            check_equal(agent.said().count("No space left on device"), 2, agent.said())
            (out / "filler").unlink()
            wait_until(lambda: "profiles are stored again" in agent.said(), agent.said)
            said = agent.stop()
        check_equal(said.count("cannot be written"), 1, said)


@case
def a_folder_has_one_agent():
    with Folder() as folder:
        link = folder / "data/images/.build-id/ab/cd.debug"
        link.parent.mkdir(parents=True)
        link.symlink_to("/proc/1/fd/0")
        with Agent(folder, "-o", folder / "out", "--rule", "record=no"):
            check(not os.path.lexists(link), "the link of an agent that has ended leads to a file of another process")
            second = run(OFFBEAT.program, "agent", "--data", folder / "data", "-o", folder / "out")
        (folder / "data/recordings").chmod(0o777)
        third = run(OFFBEAT.program, "agent", "--data", folder / "data", "-o", folder / "out")
    check_equal((second.returncode, third.returncode), (3, 3), text(second.stderr + third.stderr))
    check("another agent uses" in text(second.stderr), text(second.stderr))
    check("another user can write to" in text(third.stderr), text(third.stderr))


@case
def recordings_of_one_process_within_a_second_have_a_file_each():
    """The process executes a program several times a second."""
    TIMES, SECONDS = 8, 0.15
    with Folder() as folder:
        out, program, keeper = folder / "out", folder / "again", folder / "keeper"
        shutil.copy(SPINS, program)
        shutil.copy("/bin/sh", keeper)
        shell = subprocess.Popen([keeper, "-c", f"read line; exec {program} {1000 * SECONDS:.0f} {TIMES}"], stdin=subprocess.PIPE)
        with Agent(folder, "-o", out, "-F", "499", "--cpu-max", "100%", "--rule", "name=^(again|keeper)$ service=again", "--rule", "record=no") as agent:
            shell.communicate(b"\n")
            check_equal(shell.returncode, 0, "status")
            agent.stop()
        spent = {path.name: sum(row["self"] for row in OFFBEAT.answer("top", "-n", "0", path)["functions"]) / 1e9 for path in out.iterdir()}
        check(sum(spent.values()) > 0.6 * TIMES * SECONDS, f"{spent}: {agent.said()}")


@case
def new_processes_are_left_out_if_memory_is_short():
    """The program has a name of its own: tests that run at the same time start others of its kind."""
    with Folder() as folder, Agent(folder, "-o", folder / "out", "--memory-max", "8", "--rule", "name=^alone$", "--rule", "record=no") as agent:
        def says(words):
            agent.process.send_signal(signal.SIGHUP)  # searches at once: on a busy machine, searches are rare
            time.sleep(0.2)
            return words in agent.said()

        def number(pattern):
            """The number in the next line about the state."""
            before = len(re.findall(pattern, agent.said()))
            agent.process.send_signal(signal.SIGUSR1)
            wait_until(lambda: len(re.findall(pattern, agent.said())) > before, agent.said)
            return int(re.findall(pattern, agent.said())[-1])

        alone = folder / "alone"
        shutil.copy(PROGRAM, alone)
        wait_until(lambda: number(r"(\d+) MB of memory, ") > 8, agent.said)  # the first look
        with Program(alone):
            wait_until(lambda: says("1 processes are left out: the agent has"), agent.said)
            check_equal(number(r"agent: (\d+) processes, "), 0, "processes that are recorded")
        wait_until(lambda: says("no processes are left out any more"), agent.said)


def build_id_at(program):
    """The place and the size of the build id in the bytes of PROGRAM."""
    at = program.index(b"GNU\0", program.index(b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0")) + 4
    return at, 20


def kernel_tables():
    """Returns the number of frame tables in the kernel; None without bpftool."""
    done = subprocess.run(["bpftool", "-j", "map", "list"], capture_output=True, check=False) if shutil.which("bpftool") else None
    return [row.get("name") for row in json.loads(done.stdout)].count("frame_table") if done and done.returncode == 0 else None


@case
def programs_that_have_ended_leave_memory_and_descriptors():
    """Each copy of the program is another file with another build id. The limit of descriptors lets the agent keep half as many files."""
    COPIES, DESCRIPTORS = (4000, 1024) if os.environ.get("OFFBEAT_TEST_LONG") else (150, 128)
    program = SPINS.read_bytes()
    at, size = build_id_at(program)
    with Folder() as folder:
        out, copies = folder / "out", folder / "copies"
        copies.mkdir()
        for number in range(COPIES):
            copy = copies / f"copy{number}"
            copy.write_bytes(program[:at] + number.to_bytes(size, "little") + program[at + size:])
            copy.chmod(0o755)
        shutil.copy("/bin/sh", folder / "keeper")
        before = kernel_tables()
        rules = ("--rule", "name=^(keeper|copy[0-9]+)$", "--rule", "record=no")
        shell = subprocess.Popen([folder / "keeper", "-c", f"read line; for i in {copies}/*; do $i 10 1; done; echo done; read line"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            with Agent(folder, "-o", out, "--keep", "10M", "-F", "499", "--cpu-max", "100%", *rules,
                       limits=((resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)),)) as agent:
                shell.stdin.write(b"\n")
                shell.stdin.flush()
                descriptors, tables, resident = [], [], []
                while not select.select([shell.stdout], [], [], 0.5)[0]:
                    descriptors.append(len(os.listdir(f"/proc/{agent.process.pid}/fd")))
                    resident.append(int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{agent.process.pid}/status").read_text())[1]))
                    tables.append((kernel_tables() or 0) - (before or 0))
                agent.process.send_signal(signal.SIGUSR1)
                wait_until(lambda: " dropped" in agent.said(), agent.said)
                said = agent.stop()
        finally:
            shell.kill()
            shell.wait()
            shell.stdin.close()
            shell.stdout.close()
    state = re.search(r"(\d+) MB of memory, (\d+) files with code, (\d+) dropped, (\d+) processes left out", said)
    seen = int(state[2]) + int(state[3])
    print(f"# {seen} of {COPIES} files seen, {state[0]}; descriptors up to {max(descriptors)}, tables up to {max(tables)}, "
          f"resident up to {max(resident)} kB")
    check(seen > COPIES / 2, f"of {COPIES} files {seen} were seen: {said}")
    check(max(descriptors) < DESCRIPTORS, f"{descriptors}")
    check(before is None or max(tables) < DESCRIPTORS, f"tables: {tables}")
    check(int(state[1]) < 64, said)


main(sys.argv[2] if len(sys.argv) > 2 else "")
