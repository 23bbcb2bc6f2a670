"""Recording processes of other users and in other namespaces, from outside. Arguments: the build folder, and optionally a part of the
names of the cases to run. SPDX-License-Identifier: MIT"""
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import ROOT, Failed, Folder, Offbeat, case, check, check_equal, long, main, reachable_folder, run, skip, slowness, text, user_without_rights, wait_until  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
PROGRAM = OFFBEAT.reachable().build / "test/end_to_end/attached"
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CONTAINER = (*UNSHARE, "--user", "--map-root-user")


class Running:
    """COMMAND until the end of the block; its last descendant is PID."""

    def __init__(self, *command, **options):
        self.outer = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", **options)
        self.line = self.outer.stdout.readline()
        self.pid = self.outer.pid
        while children := pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii").split():
            self.pid = int(children[-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.outer.kill()
        self.outer.communicate()


def needs_root():
    if os.geteuid() != 0:
        skip("needs root, to have namespaces and to be another user")
    if run(*UNSHARE, "mount", "-t", "tmpfs", "none", "/mnt").returncode != 0:
        skip("no namespaces here")


def program(name):
    return OFFBEAT.reachable().build / "test/end_to_end" / name


def record(folder, pid, *options, **more):
    done = run(OFFBEAT.program, "record", "-p", str(pid), "-d", "0.5", "-F", "499", "-o", "x.pb.gz", *options, cwd=folder, **more)
    check_equal(done.returncode, 0, text(done.stderr))
    return text(done.stderr)


def functions(folder):
    return {row["name"]: row for row in OFFBEAT.answer("top", "-n", "100", folder / "x.pb.gz")["functions"]}


def check_names(folder, pid):
    said = record(folder, pid)
    rows = functions(folder)
    check(rows["spends_seventy"]["total"] > 0 and rows["waits_forever"]["total"] > 0, f"{sorted(rows)}: {said}")


# --- JIT code --------------------------------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def generates():
    """The program that generates code, in a folder that stays where another /tmp is mounted."""
    return shutil.copy(OFFBEAT.programs / "generates", reachable_folder(user_without_rights()))


HIDDEN = (*UNSHARE, "sh", "-c", 'mount -t tmpfs none /tmp && exec "$@"', "sh")


def has_generated_name(kind, *before, owner=None, **options):
    """Whether the function that a program generates has its name, if KIND of file is at the path of its map, of user OWNER."""
    with Folder() as folder, Running(*before, generates(), kind, **options) as running:
        check_equal(running.line, b"ready\n", "the program is at work")
        if owner:
            for path in pathlib.Path(f"/proc/{running.pid}/root/tmp").glob("perf-*.map"):
                os.chown(path, owner, owner)
        record(folder, running.pid)
        rows = functions(folder)
        check(rows, "there are stacks")
        return "counts_down_generated" in rows


@case
def generated_code_has_names_from_the_folder_of_its_own_namespace():
    """Its process has another number there, and another /tmp."""
    needs_root()
    check(has_generated_name("map", *HIDDEN), "in its own namespaces")
    check(has_generated_name("map", *CONTAINER, "sh", "-c", 'mount -t tmpfs none /tmp && exec "$@"', "sh"), "in its own user namespace")
    check(has_generated_name("map", **user_without_rights()), "of another user")
    check(not pathlib.Path("/tmp/perf-1.map").exists(), "the map is in a folder of its own")


@case
def generated_code_has_no_names_from_what_another_user_may_have_put_there():
    needs_root()
    for kind in ("link", "fifo", "earlier"):
        check(not has_generated_name(kind, *HIDDEN), kind)
    check(not has_generated_name("map", *HIDDEN, owner=12345), "a file of a third user")


@case
def generated_code_keeps_its_names_after_its_process_has_ended():
    """Its folder is gone when the agent names it."""
    needs_root()
    with Folder() as folder:
        out = folder / "out"
        with Running(*HIDDEN, generates(), "map") as running, open(folder / "agent.log", "wb") as log:
            agent = subprocess.Popen([OFFBEAT.program, "agent", "--data", folder / "data", "-o", out, "-F", "499", "--cpu-max", "100%",
                                      "--rule", "name=^generates$", "--rule", "record=no"], stderr=log)
            said = lambda: text((folder / "agent.log").read_bytes())
            wait_until(lambda: "records 1 processes" in said() or agent.poll() is not None, said)
            wait_until(lambda: list((folder / "data/images/maps").glob("perf-*.map")) or agent.poll() is not None, said)
            wait_until(lambda: any(path.stat().st_size for path in (folder / "data/recordings").glob("*.recording")), said)
            os.kill(running.pid, signal.SIGKILL)
            wait_until(lambda: list(out.glob("*.pb.gz")), said)
            agent.send_signal(signal.SIGTERM)
            check_equal(agent.wait(60), 0, said())
        rows = {row["name"] for path in out.iterdir() for row in OFFBEAT.answer("top", "-n", "100", path)["functions"]}
        check("counts_down_generated" in rows, f"{sorted(rows)}: {said()}")


# --- users and containers --------------------------------------------------------------------------------------------------

@case
def root_records_programs_that_change_their_user():
    """A set-user-ID program runs with the rights of its owner, and is not dumpable."""
    needs_root()
    with Folder() as folder:
        copy = pathlib.Path("/var/tmp") / f"offbeat-set-user-{os.getpid()}"
        shutil.copy(PROGRAM, copy)
        try:
            os.chown(copy, 12345, 12345)
            copy.chmod(0o6755)
            with Running(copy, **user_without_rights()) as running:
                status = pathlib.Path(f"/proc/{running.pid}/status").read_text(encoding="ascii")
                check("\nUid:\t65534\t12345\t" in status, f"it is a set-user-ID program: {status}")
                check_names(folder, running.pid)
                folder.chmod(0o777)
                denied = run(OFFBEAT.reachable().program, "record", "-p", str(running.pid), "-d", "0.1", cwd=folder, **user_without_rights())
        finally:
            copy.unlink()
    said = text(denied.stderr).splitlines()
    check_equal(denied.returncode, 3, said)
    check(f"process {running.pid} belongs to another user, or is protected: set-user-ID" in said[-1], said)
    check("sudo offbeat record -p" in said[-1] and len(said) <= 2, said)


@case
def root_records_processes_in_user_namespaces():
    """In a container without root, whose user is another one outside."""
    needs_root()
    with Folder() as folder, Running(*CONTAINER, PROGRAM, **user_without_rights()) as running:
        inside = os.readlink(f"/proc/{running.pid}/ns/user")
        check(inside != os.readlink("/proc/self/ns/user"), "it has a user namespace")
        check_names(folder, running.pid)


@case
def a_user_records_the_processes_of_own_containers():
    needs_root()
    reachable, user = OFFBEAT.reachable(), user_without_rights()
    with Folder() as folder, Running("unshare", "--user", "--map-root-user", PROGRAM, **user) as running:
        folder.chmod(0o777)
        done = run(reachable.program, "record", "-p", str(running.pid), "-d", "0.5", "-o", "x.pb.gz", cwd=folder,
                   env={**os.environ, "HOME": str(folder)}, **user)
        said = text(done.stderr)
        check_equal(done.returncode, 0, said)
        check("waits_forever" in functions(folder), said)


# --- the rights of the agent -------------------------------------------------------------------------------------------------

def rights_of_unit():
    """The capabilities of the systemd unit; it may have no others."""
    unit = (ROOT / "package/systemd/offbeat-agent.service.in").read_text(encoding="utf-8")
    sets = [set(re.search(rf"^{key}=(.*)$", unit, re.MULTILINE)[1].split()) for key in ("AmbientCapabilities", "CapabilityBoundingSet")]
    check_equal(sets[0], sets[1], "the ambient capabilities are the bounding set")
    return sorted(name.removeprefix("CAP_").lower() for name in sets[0])


def rights_of_daemon_set():
    example = (ROOT / "doc/offbeat-agent.yaml").read_text(encoding="utf-8")
    check("drop: [ALL]" in example and "privileged: true" not in example, example)
    return sorted(name.strip().lower() for name in re.search(r"add: \[(.*)\]", example)[1].split(","))


def as_unit(rights):
    """A user of no name that has RIGHTS."""
    names = ",".join(f"+{right}" for right in rights)
    return ("setpriv", "--reuid", "23456", "--regid", "23456", "--clear-groups", "--no-new-privs", "--inh-caps", f"-all,{names}",
            "--ambient-caps", f"-all,{names}", "--bounding-set", f"-all,{names}")


def as_container(rights):
    """Root with no other capabilities than RIGHTS, and a file system that it cannot write to."""
    names = ",".join(f"+{right}" for right in rights)
    return ("unshare", "--mount", "sh", "-c", 'mount -o remount,bind,ro / && exec "$@"', "sh", "setpriv", "--no-new-privs",
            "--inh-caps", "-all", "--bounding-set", f"-all,{names}")


def seen_by_agent(before, wanted):
    """The functions that an agent names that BEFORE starts, and what it says. It ends when it has named those that are WANTED."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="offbeat-agent-", dir="/dev/shm"))
    os.chown(folder, *(23456, 23456) if "--reuid" in before else (0, 0))
    agent = subprocess.Popen([*before, OFFBEAT.reachable().program, "agent", "--data", folder / "data", "-o", folder / "out",
                              "--chunk-seconds", "1", "-F", "499", "--cpu-max", "100%", "--engine", "bpf", "--rule", "name=^(hidden|generates)$",
                              "--rule", "record=no"], stderr=subprocess.PIPE, env={**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder)})

    def names():
        return {row["name"] for path in folder.glob("out/*.pb.gz") for row in OFFBEAT.answer("top", "-n", "100", path)["functions"]}

    try:
        wait_until(lambda: wanted <= names() or list(folder.glob("out/*.pb.gz"))[2:] or agent.poll() is not None, "", seconds=8 * slowness())
    except Failed:
        pass
    agent.send_signal(signal.SIGTERM)
    said = text(agent.communicate(timeout=60)[1])
    found = names()
    shutil.rmtree(folder)
    return found, said


class Hidden(Running):
    """A program in other namespaces whose C library is deleted."""

    def __init__(self):
        libc = next(line.split()[2] for line in text(run("ldd", PROGRAM).stdout).splitlines() if "libc.so.6" in line)
        inside = f"mount -t tmpfs none /mnt && cp {PROGRAM} /mnt/hidden && cp {libc} /mnt/ && LD_LIBRARY_PATH=/mnt exec /mnt/hidden"
        super().__init__(*UNSHARE, "sh", "-c", inside)
        pathlib.Path(f"/proc/{self.pid}/root/mnt/libc.so.6").unlink()


HIDDEN_FUNCTIONS = {"spends_seventy", "burns", "clock_gettime"}


@case
def the_rights_of_the_unit_and_of_the_daemon_set_are_enough():
    """The agent names the functions of a program of another user, of a deleted library and of generated code, in other namespaces."""
    needs_root()
    rights, wanted = rights_of_unit(), HIDDEN_FUNCTIONS | {"counts_down_generated"}
    check_equal(rights, rights_of_daemon_set(), "the rights of the unit and of the DaemonSet")
    with Hidden(), Running(*HIDDEN, generates(), "map"):
        for before in (as_unit, as_container):
            names, said = seen_by_agent(before(rights), wanted)
            check(wanted <= names, f"{before.__name__}: {sorted(names)}: {said}")


@long
@case
def each_right_of_the_agent_is_needed():
    needs_root()
    rights = rights_of_unit()
    with Hidden():
        for right in rights:
            names, said = seen_by_agent(as_unit([other for other in rights if other != right]), HIDDEN_FUNCTIONS)
            check(not HIDDEN_FUNCTIONS <= names, f"{right} is not needed: {sorted(names)}: {said}")


main(sys.argv[2] if len(sys.argv) > 2 else "")
