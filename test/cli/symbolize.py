"""offbeat symbolize: a stored profile gets the names that its addresses have (PPF-4, PPF-5, REL-3), whatever it is
stored as. The program is built here, so that addresses and names are known. Argument: the program.
SPDX-License-Identifier: MIT"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from pprof_readers import CheckedFolder  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
BASE = 0x555555554000

SOURCE = """
__attribute__((noinline)) int leaf(int x) { volatile int y = x; return y + 1; }
__attribute__((noinline)) int caller(int x) { return leaf(x) + 1; }
int main(void) { volatile int sum = 0; for (long i = 0; i < 40000000; i++) sum += caller((int)i); return sum == 1; }
"""


class Program:
    """`program` without symbols, its debug file as debuggers look for it, and what is where."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.path = self.folder / "program"
        (self.folder / "program.c").write_text(SOURCE, encoding="utf-8")
        self.run("cc", "-g", "-O1", "-fno-omit-frame-pointer", "-fpie", "-pie", "-Wl,--build-id", "-o", self.path,
                 "program.c")
        symbols = [line.split() for line in self.run("nm", self.path).splitlines()]
        self.addresses = {words[2]: int(words[0], 16) for words in symbols if len(words) == 3}
        self.build_id = self.run("readelf", "-n", self.path).split("Build ID: ")[1].split()[0]
        self.debug = self.folder / "debug/.build-id" / self.build_id[:2] / f"{self.build_id[2:]}.debug"
        self.debug.parent.mkdir(parents=True)
        self.run("objcopy", "--only-keep-debug", self.path, self.debug)
        self.run("strip", self.path)

    def run(self, *command, **options):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True, **options)
        return done.stdout

    def debug_id(self):
        b = self.build_id
        return "-".join((b[6:8] + b[4:6] + b[2:4] + b[0:2], b[10:12] + b[8:10], b[14:16] + b[12:14], b[16:20],
                         b[20:32]))

    def chunk(self, name, **image):
        """A chunk as an SDK sends it: the leaf's own address, and for its caller the return address."""
        leaf = BASE + self.addresses["leaf"] + 4
        returns_to = BASE + self.addresses["caller"] + 9
        document = {
            "version": "2", "profiler_id": "0" * 31 + "1", "chunk_id": "0" * 31 + "2", "platform": "native",
            "release": "program@1", "client_sdk": {"name": "test", "version": "1"},
            "debug_meta": {"images": [{
                "type": "symbolic", "code_file": str(self.path), "code_id": self.build_id, "debug_id": self.debug_id(),
                "image_addr": hex(BASE), "image_size": 0x5000, "image_vmaddr": "0x0", **image}]},
            "profile": {
                "frames": [{"instruction_addr": hex(leaf)}, {"instruction_addr": hex(returns_to)}],
                "stacks": [[0, 1]],
                "samples": [{"timestamp": 1700000000.0 + i / 100, "stack_id": 0, "thread_id": "1"} for i in range(3)],
                "thread_metadata": {"1": {"name": "main"}}}}
        path = self.folder / name
        path.write_text(json.dumps(document), encoding="utf-8")
        return path


def offbeat(*arguments, status=0):
    environment = {**os.environ, "OFFBEAT_CACHE_DIRECTORY": "/dev/null/none"}
    done = subprocess.run([OFFBEAT, *arguments], capture_output=True, text=True, env=environment)
    check_equal(done.returncode, status, f"offbeat {arguments}: {done.stderr.strip()}; status")
    return done


def functions(path):
    report = json.loads(offbeat("top", "--json", path).stdout)
    return {function["name"] for function in report["functions"]}


def with_program(function):
    def run():
        for tool in ("cc", "nm", "objcopy", "readelf", "strip"):
            if not shutil.which(tool):
                skip(f"{tool} is not installed (Debian: gcc, binutils)")
        with CheckedFolder() as folder:
            function(Program(folder))

    run.__name__ = function.__name__
    return case(run)


@with_program
def a_chunk_gets_names_from_the_debug_file_and_keeps_its_addresses(program):
    chunk, out = program.chunk("chunk.json"), program.folder / "named.json"
    done = offbeat("symbolize", chunk, "-o", out, "--debug-dir", program.folder / "debug")
    check_equal(done.stderr, f"offbeat: {chunk}: named 2 of 2 places without a name\n", "standard error")
    before, after = json.loads(chunk.read_text()), json.loads(out.read_text())
    frames = after["profile"]["frames"]
    check_equal([frame["function"] for frame in frames], ["leaf", "caller"], "functions")
    check_equal([frame["filename"] for frame in frames], ["program.c", "program.c"], "files")
    check_equal([frame["lineno"] for frame in frames], [2, 3], "lines")
    check_equal([frame["instruction_addr"] for frame in frames],
                [frame["instruction_addr"] for frame in before["profile"]["frames"]], "addresses")
    check_equal([sample["timestamp"] for sample in after["profile"]["samples"][:3]],
                [sample["timestamp"] for sample in before["profile"]["samples"]], "times")


@with_program
def a_pprof_profile_is_named_later_and_its_callers_are_inside_their_calls(program):
    stored, named = program.folder / "stored.pb.gz", program.folder / "named.pb.gz"
    offbeat("convert", program.chunk("chunk.json"), "-o", stored)
    check(not {"leaf", "caller"} & functions(stored), "named before")
    offbeat("symbolize", stored, "-o", named, "--debug-dir", program.folder / "debug")
    check_equal(functions(named), {"leaf", "caller"}, "functions")


@with_program
def an_envelope_is_named_too(program):
    stored, named = program.folder / "stored.envelope", program.folder / "named.envelope"
    offbeat("convert", program.chunk("chunk.json"), "-o", stored)
    offbeat("symbolize", stored, "-o", named, "--debug-dir", program.folder / "debug")
    check_equal(functions(named), {"leaf", "caller"}, "functions")


@with_program
def a_debug_id_is_enough_to_know_the_file_by(program):
    chunk, out = program.chunk("chunk.json", code_id=None), program.folder / "named.json"
    offbeat("symbolize", chunk, "-o", out, "--debug-dir", program.folder / "debug")
    check_equal(functions(out), {"leaf", "caller"}, "functions")


@with_program
def a_file_of_another_build_is_not_used(program):
    chunk = program.chunk("chunk.json", code_id="00" * 20)
    done = offbeat("symbolize", chunk, "-o", program.folder / "named.json", "--debug-dir", program.folder / "debug")
    check("named 0 of 2" in done.stderr and "1 of another build" in done.stderr, done.stderr)


@with_program
def reports_a_missing_folder_of_debug_files(program):
    chunk, out = program.chunk("chunk.json"), program.folder / "named.json"
    for folder, why in (("missing", "No such file or directory"), (chunk, "Not a directory")):
        done = offbeat("symbolize", chunk, "-o", out, "--debug-dir", folder, status=3)
        check_equal(done.stderr, f"offbeat: --debug-dir {folder}: {why}\n", "standard error")
        check(not out.exists(), "it was written")


@with_program
def a_file_that_is_gone_is_named_from_its_debug_file_alone(program):
    chunk, out = program.chunk("chunk.json"), program.folder / "named.json"
    program.path.unlink()
    offbeat("symbolize", chunk, "-o", out, "--debug-dir", program.folder / "debug")
    check_equal(functions(out), {"leaf", "caller"}, "functions")


@with_program
def names_by_the_start_of_a_function_make_way_for_better_ones(program):
    """Recorded without the debug file, all that is known of a function is where it begins."""
    first, second = program.folder / "first.pb.gz", program.folder / "second.pb.gz"
    done = offbeat("symbolize", program.chunk("chunk.json"), "-o", first)
    said = ["named 0 of 2 places", "2 more places have only a function's start as a name"]
    check(all(part in done.stderr for part in said), done.stderr)
    starts = {f"program+{hex(program.addresses[name])}" for name in ("leaf", "caller")}
    check_equal(functions(first), starts, "names by the start of the function")
    offbeat("symbolize", first, "-o", second, "--debug-dir", program.folder / "debug")
    check_equal(functions(second), {"leaf", "caller"}, "functions")
    done = offbeat("symbolize", first, "-o", second)
    check("named 0 of 2 places" in done.stderr, done.stderr)
    check_equal(functions(second), starts, "names where there is nothing better")


@with_program
def a_recording_is_named_with_the_given_debug_files(program):
    recordings, out = program.folder / "recordings", program.folder / "out.pb.gz"
    recordings.mkdir()
    environment = {**os.environ, "LD_PRELOAD": str(OFFBEAT.parent / "liboffbeat.so"),
                   "OFFBEAT_RECORD_DIRECTORY": str(recordings), "OFFBEAT_MODE": "wall"}
    program.run(program.path, env=environment)
    [recording] = recordings.glob("*.recording")
    offbeat("symbolize", recording, "-o", out, "--debug-dir", program.folder / "debug")
    check({"leaf", "caller", "main"} <= functions(out), f"{functions(out)}")


@with_program
def merged_recordings_keep_their_processes_apart(program):
    recordings, out = program.folder / "recordings-of-two", program.folder / "merged.pb.gz"
    recordings.mkdir()
    environment = {**os.environ, "LD_PRELOAD": str(OFFBEAT.parent / "liboffbeat.so"),
                   "OFFBEAT_RECORD_DIRECTORY": str(recordings), "OFFBEAT_MODE": "wall"}
    for _ in range(2):
        program.run(program.path, env=environment)
    found = sorted(recordings.glob("*.recording"))
    check_equal(len(found), 2, "recordings")
    offbeat("merge", *found, "-o", out)
    raw = subprocess.run([OFFBEAT, "raw", out], capture_output=True, text=True, check=True).stdout
    check_equal(len(set(re.findall(r"\bpid:\[(\d+)\]", raw))), 2, "processes in the labels of the merged file")


main()
