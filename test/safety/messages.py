"""Messages of `offbeat record`: each is printed for its cause, and not for the nearest other cause. README.md lists all messages.
Arguments: the build folder, and optionally a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from recording import Folder, Offbeat, case, check, check_equal, main, opens, run, skip, text  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
SECONDS = 60
BUSY, STATIC, STOPS, CONFINED, FILTERED, DELETES, LIBRARY = (
    OFFBEAT.build / "test/safety" / f"safety_{name}"
    for name in ("busy", "busy_static", "stops", "seccomp_narrow", "under_filter", "deletes_library", "library_that_works.so"))


def lines_of(folder, *words, env=None):
    return text(run(*OFFBEAT.command("record", *words), cwd=folder, env={**os.environ, **(env or {})}).stderr)


def check_pair(message, cause, other, prepare=lambda folder: None, env=None):
    """The words CAUSE of `record` print MESSAGE, and the words OTHER do not."""
    with Folder() as folder:
        prepare(folder)
        said = lines_of(folder, *cause, env=env)
        check(message in said, f"{cause}: {said}")
        said = lines_of(folder, *other)
        check(message not in said, f"{other}: {said}")


@case
def a_command_that_is_not_in_path():
    check_pair("cannot find a program called", ["no-such-program"], ["./no-such-program"])


@case
def a_path_without_a_file():
    check_pair("there is no such file", ["./no-such-program"], ["./plain"], lambda folder: (folder / "plain").write_text("text", encoding="ascii"))


@case
def a_file_that_may_not_be_executed():
    check_pair("it is not an executable file", ["./plain"], ["/bin/true"],
               lambda folder: (folder / "plain").write_text("text", encoding="ascii"))


@case
def a_static_program():
    check_pair("is statically linked", [STATIC, "0.1"], [BUSY, "0.1"])


@case
def a_program_that_gains_privileges():
    if os.geteuid() != 0:
        skip("needs root")

    def prepare(folder):
        for name, mode in (("gains", 0o4755), ("usual", 0o755)):
            shutil.copy(BUSY, folder / name)
            os.chown(folder / name, 65534, 65534)
            (folder / name).chmod(mode)

    check_pair("gains privileges when it starts", ["./gains", "0.1"], ["./usual", "0.1"], prepare)


@case
def a_program_of_32_bits():
    def prepare(folder):
        (folder / "old").write_bytes(b"\x7fELF\x01\x01\x01" + BUSY.read_bytes()[7:])
        (folder / "old").chmod(0o755)

    check_pair("is for another processor or word size", ["./old"], [BUSY, "0.1"], prepare)


@case
def an_output_that_cannot_be_written():
    check_pair("cannot write missing/x.pb.gz: No such file", ["-o", "missing/x.pb.gz", "--", "true"],
               ["-o", "folder.pb.gz", "--", "true"], lambda folder: (folder / "folder.pb.gz").mkdir())
    check_pair("Is a directory", ["-o", "folder.pb.gz", "--", "true"], ["-o", "x.pb.gz", "--", "true"],
               lambda folder: (folder / "folder.pb.gz").mkdir())


@case
def two_outputs_for_one_stream():
    check_pair("--output - was given twice", ["-o", "-", "-o", "-", "--", "true"], ["-o", "-", "-o", "x.pb.gz", "--", "true"])
    check_pair("--split-processes writes a file for each process", ["--split-processes", "-o", "-", "--", "true"],
               ["--split-processes", "-o", "x.pb.gz", "--", "true"])


@case
def a_folder_of_recordings_that_cannot_be_made():
    check_pair("cannot make a folder for recordings in /no-such-folder (TMPDIR)", ["--", "true"], ["--", "true"],
               env={"TMPDIR": "/no-such-folder"})


@case
def the_end_by_a_signal():
    check_pair("was ended by signal 9", ["--", "sh", "-c", "kill -9 $$"], ["--", "sh", "-c", "exit 9"])


@case
def a_process_that_cannot_be_sampled():
    check_pair("could not be sampled", ["--", "sh", "-c", f"{STATIC} 0.3; :"], ["--", "sh", "-c", f"{BUSY} 0.3; :"])


@case
def a_filter_that_ends_the_sampler():
    """Not the rights of the program, nor its descriptors."""
    with Folder() as folder:
        said = lines_of(folder, "--", "sh", "-c", f"{CONFINED}; {BUSY} 0.2")
        ends = [line for line in said.splitlines() if "the sampler ended before" in line]
        check(ends and all("seccomp filter" in line for line in ends), said)


@case
def a_deleted_library():
    """Without the right to read it while it is mapped; with that right it has names."""
    def record(folder, *command, before=()):
        return text(run(*before, *OFFBEAT.command("record", "-o", "x.pb.gz", "--", *command), cwd=folder).stderr)

    message = "copied.so was deleted while it was mapped"
    without = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []
    with Folder() as folder:
        said = record(folder, DELETES, LIBRARY, before=without)
        check(message in said, said)
        said = record(folder, DELETES, LIBRARY, "keep", before=without)
        check(message not in said, said)
        if os.geteuid() != 0:
            skip("needs root")
        for filtered in ((), (FILTERED, "kill")):
            said = record(folder, *filtered, DELETES, LIBRARY)
            check(message not in said, said)
            check(opens(OFFBEAT, folder / "x.pb.gz").get("work_in_library", 0) > 2e8, f"work_in_library has no name: {said}")


@case
def a_stopped_program_is_not_an_overloaded_machine():
    with Folder() as folder:
        job = subprocess.Popen(OFFBEAT.command("record", "-o", "x.pb.gz", "--", STOPS), cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")

        def is_stopped():
            found = children.read_text(encoding="ascii").split()
            return bool(found) and pathlib.Path(f"/proc/{found[0]}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "T"

        deadline = time.monotonic() + SECONDS
        while not is_stopped():
            check(time.monotonic() < deadline, "it did not stop")
            time.sleep(0.01)
        time.sleep(2)
        os.kill(job.pid, signal.SIGCONT)
        said = text(job.communicate(timeout=SECONDS)[1])
        check_equal(job.returncode, 0, f"exit status; {said}")
        stopped = OFFBEAT.answer("info", folder / "x.pb.gz")["recorder"]["stopped_ns"] / 1e9
        shown = opens(OFFBEAT, folder / "x.pb.gz")
        check(stopped > 1.7 and shown.get("[stopped]", 0) / 1e9 > 1.7, f"{stopped} s stopped, of which {shown} show")


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
