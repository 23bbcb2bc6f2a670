"""Files of perf record, compared with perf script and perf report on the same file.

Recordings in test/data/perf (make.sh made them) are compared sample by sample with what perf script printed of them. Others are
recorded here, if this machine has perf and lets it record, and compared by functions.

    perf_data.py OFFBEAT DATA

SPDX-License-Identifier: MIT"""
import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
DATA = pathlib.Path(sys.argv[2]).resolve() / "perf"
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="offbeat-test-perf-"))
KERNEL = 1 << 63
PAGE = 0xFFF

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
static volatile double sum;
__attribute__((noipa)) static double work_one(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
__attribute__((noipa)) static double work_two(int n) { double s = 0; for (int i = 1; i < n; i++) s += i * 0.5; return s; }
__attribute__((noipa)) static double deep(int depth, int n)
{
    if (depth == 0) return work_one(2 * n) + work_two(n);
    return deep(depth - 1, n) + 1;
}
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void *run(void *name)
{
    int numbers[600];
    prctl(PR_SET_NAME, name);
    for (int i = 0; i < 2500; i++) {
        sum += deep(20, 20000);
        for (int k = 0; k < 600; k++) numbers[k] = rand();
        qsort(numbers, 600, sizeof(int), compare);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t one, two;
    if (argc > 1) {
        run(argv[1]);
        return 0;
    }
    pthread_create(&one, NULL, run, "first");
    pthread_create(&two, NULL, run, "the second");
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, **options)
    check_equal(done.returncode, 0, f"{command}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


# --- What perf script says ---------------------------------------------------------------------------------------------------

HEADER = re.compile(r"^\s*(.+?)\s+(-?\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(\S+?):\s*([0-9a-f]+)?\s*$")


def read_script(text):
    """[(time, comm, tid, period, event, [address])], the addresses of call chains as offsets in their files."""
    samples = []
    for line in text.splitlines():
        found = HEADER.match(line)
        if found:
            comm, tid, seconds, fraction, period, event, address = found.groups()
            frames = [int(address, 16)] if address else []
            samples.append((int(seconds) * 10**9 + int(fraction), comm, tid, int(period), event, frames))
        elif line.strip():
            samples[-1][5].append(int(line.split()[0], 16))
    return sorted(samples, key=lambda sample: sample[0])


# --- What offbeat says -------------------------------------------------------------------------------------------------------

def read_raw(path, counted):
    """The same of what `offbeat raw` prints, in order of time: [(comm, tid, period, event, [address])]."""
    text = run(OFFBEAT, "raw", path)
    head, rest = text.split("\nSamples:\n", 1)
    samples, rest = rest.split("\nLocations\n", 1)
    locations, mappings = rest.split("\nMappings\n", 1)
    offsets = {}
    for number, start, offset in re.findall(r"^\s*(\d+): 0x([0-9a-f]+)/0x[0-9a-f]+/0x([0-9a-f]+)", mappings, re.M):
        offsets[number] = int(offset, 16) - int(start, 16)
    addresses, marks = {}, set()
    for number, address, mapping, name in re.findall(r"^\s*(\d+): 0x([0-9a-f]+)(?: M=(\d+))?(.*)", locations, re.M):
        plain = int(address, 16)
        addresses[number] = plain + (0 if counted or plain >= KERNEL else offsets.get(mapping, 0))
        if "[incomplete:" in name:
            marks.add(number)
    lines = samples.splitlines()
    events = [name.split("/")[0] for name in lines[0].split()]
    result = []
    for line in lines[1:]:
        row = re.match(r"^\s*([\d ]+): ([\d ]*)$", line)
        if row:
            values = [int(value) for value in row[1].split()]
            event = next((i for i in range(1, len(values)) if values[i]), 1)
            frames = [addresses[number] for number in row[2].split() if number not in marks]
            result.append({"period": values[event], "event": events[event], "frames": frames})
        else:
            result[-1].update(re.findall(r"(\w+):\[(.*?)\](?: |$)", line))
    return result


def check_same(ours, perf, frames, several_processes):
    """A caller's address is in its call here, and after it in perf's text. A file has one place in a profile, also where several
    processes have it in several places: then only the places in a page are equal."""
    check_equal(len(ours), len(perf), "samples")
    for number, (mine, (_, comm, tid, period, event, perf_frames)) in enumerate(zip(ours, perf)):
        what = f"sample {number}"
        check_equal((mine["thread"], mine["thread_id"]), (comm, tid), f"{what}: thread")
        check_equal((mine["event"], mine["period"]), (event, period), f"{what}: event")
        if not frames:
            continue
        expected = []
        for place, address in enumerate(perf_frames):
            first = place == 0 or (perf_frames[place - 1] >= KERNEL > address)
            expected.append(address if first or address == 0 else address - 1)
        mask = PAGE if several_processes else ~0
        check_equal([hex(frame & mask) for frame in mine["frames"]], [hex(frame & mask) for frame in expected], f"{what}: frames")


def compare_kept(name, counted=False, frames=True, several_processes=False):
    perf = read_script(gzip.decompress((DATA / f"{name}.script.gz").read_bytes()).decode())
    check(len(perf) > 20, f"perf script printed {len(perf)} samples of {name}")
    check_same(read_raw(DATA / f"{name}.data", counted), perf, frames, several_processes)


@case
def call_chains_agree_with_perf_script():
    compare_kept("chains")


@case
def compressed_records_hold_the_same_samples():
    compare_kept("compressed", counted=True)


@case
def what_perf_writes_into_a_pipe_holds_the_same_samples():
    compare_kept("pipe")


@case
def several_events_with_periods_agree_with_perf_script():
    compare_kept("events", counted=True, several_processes=True)


@case
def samples_with_copied_stacks_agree_with_perf_script():
    compare_kept("copied", frames=False)


REPORT = ("perf", "report", "--stdio", "-q", "-g", "none", "--no-children", "-t", ",")
HOST = 0xEFFFFFFB  # the kernel's number of the first cgroup namespace (PROC_CGROUP_INIT_INO)


def read_report(text):
    """{(cgroup, number of the cgroup namespace, tid): [period, samples]} of perf report."""
    rows = [[column.strip() for column in line.split(",")] for line in text.splitlines() if line.strip()]
    return {(cgroup, int(number.split("/")[1], 16), thread.split(":")[0]): [int(period), int(samples)]
            for period, samples, cgroup, number, thread in rows}


def compare_groups(name, first):
    """FIRST: the number of the cgroup namespace that has no label."""
    ours = {}
    for sample in read_raw(DATA / f"{name}.data", False):
        found = re.search(r"cgroup:(\d+)", sample.get("namespaces", ""))
        total = ours.setdefault((sample["cgroup"], int(found[1]) if found else first, sample["thread_id"]), [0, 0])
        total[0] += sample["period"]
        total[1] += 1
    perf = read_report(gzip.decompress((DATA / f"{name}.report.gz").read_bytes()).decode())
    check(len(perf) >= 4, f"perf report printed {len(perf)} lines of {name}")
    check_equal(ours, perf, "cgroup, namespace and thread: period and samples")
    if not shutil.which("perf"):
        return
    options = ("--sort", "cgroup,cgroup_id,pid", "-F", "period,sample,cgroup,cgroup_id,pid")
    check_equal(ours, read_report(run(*REPORT, *options, "-i", DATA / f"{name}.data")), "the same, of the perf that is installed")


@case
def cgroups_agree_with_perf_report():
    compare_kept("cgroups", several_processes=True)
    compare_groups("cgroups", 0)


@case
def namespaces_agree_with_perf_report():
    compare_kept("namespaces", several_processes=True)
    compare_groups("namespaces", HOST)


@case
def a_file_through_standard_input_is_the_same():
    with open(DATA / "chains.data", "rb") as file:
        piped = subprocess.run([OFFBEAT, "raw", "-"], stdin=file, capture_output=True, check=True).stdout.decode()
    check_equal(piped, run(OFFBEAT, "raw", DATA / "chains.data"), "what is read from a pipe")


@case
def a_recording_that_was_killed_is_read_to_its_last_whole_record():
    whole = bytearray((DATA / "chains.data").read_bytes())
    size = int.from_bytes(whole[48:56], "little")
    start = int.from_bytes(whole[40:48], "little")
    whole[48:56] = bytes(8)  # as perf leaves it
    killed = FOLDER / "killed.data"
    killed.write_bytes(whole[: start + size - 5])
    left = len(read_raw(killed, True))
    check(0 < left <= len(read_raw(DATA / "chains.data", True)), f"{left} samples")


# --- Recorded here -----------------------------------------------------------------------------------------------------------

def build_program(name="program", source=PROGRAM):
    if not shutil.which("perf") or not shutil.which("gcc"):
        skip("perf or gcc is not installed")
    program = FOLDER / name
    if not program.exists():
        program.with_suffix(".c").write_text(source)
        run("gcc", "-O2", "-g", "-o", program, program.with_suffix(".c"), "-lpthread")
    return program


def perf_record(path, *arguments):
    done = subprocess.run(["perf", "record", "-q", "-o", path, *arguments], capture_output=True, text=True)
    if done.returncode != 0 or "unshare" in done.stderr or "mount" in done.stderr:
        skip(f"perf cannot record this here: {done.stderr.strip()[:120]}")
    return path


def record(name, *options, arguments=()):
    """The path of a new recording of PROGRAM, which has one thread if it has arguments."""
    program = build_program()
    return perf_record(FOLDER / f"{name}.data", *options, "--", program, *arguments)


def by_leaf(path):
    """{(thread, function): period} of perf script, and the sum."""
    counts = collections.Counter()
    head = leaf = None
    for line in run("perf", "script", "-i", path, "--no-inline", "-F", "comm,tid,period,event,ip,sym").splitlines():
        found = re.match(r"^\s*(.+?)\s+(\d+)\s+(\d+) (\S+):\s*(?:[0-9a-f]+ (.*))?$", line)
        if found:
            head, leaf = found, found[5]
        elif line.strip() and leaf is None:
            leaf = line.split(None, 1)[1].strip()
        if head and leaf is not None and (found is None or found[5]):
            counts[(head[1], leaf)] += int(head[3])
            head = None
    return counts


FUNCTIONS = ("work_one", "work_two", "compare")


def compare_recorded(path):
    perf = by_leaf(path)
    out = FOLDER / "out.collapsed"
    ours = collections.Counter()
    text = run(OFFBEAT, "traces", path)
    total = int(re.search(r"Event count \(approx\.\): (\d+)", run("perf", "report", "--stdio", "-i", path, "--no-children"))[1])
    for function in FUNCTIONS:
        whole = sum(count for (_, leaf), count in perf.items() if leaf == function)
        check(whole > 0, f"perf has no samples of {function}")
    run(OFFBEAT, "convert", path, "-o", out)
    for line in out.read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        ours[stack.split(";")[-1]] += int(count)
    check_equal(sum(ours.values()), total, "the sum of all periods, against perf report")
    for function in FUNCTIONS:
        whole = sum(count for (_, leaf), count in perf.items() if leaf == function)
        check_equal(ours[function], whole, function)
    for thread in ("first", "the second"):
        check(thread in text, f"no thread {thread!r}")
    return out


@case
def a_recording_made_here_has_perfs_totals_and_functions():
    compare_recorded(record("plain", "-F", "499", "-e", "cpu-clock", "-g"))


@case
def a_folder_of_several_threads_of_perf_is_one_profile():
    path = record("threads", "-F", "499", "-e", "cpu-clock", "-g", "--threads")
    compare_recorded(path)
    done = subprocess.run([OFFBEAT, "top", path / "data"], capture_output=True, text=True)
    check_equal((done.returncode, "name the folder" in done.stderr), (3, True), f"the file of the headers: {done.stderr}")


@case
def a_group_is_read_with_its_leader():
    # perf 6.1 counts groups of one thread only.
    path = record("group", "-F", "499", "-e", "{task-clock,page-faults,context-switches}:S", "-g", arguments=["one"])
    perf = collections.Counter()
    for line in run("perf", "script", "-i", path, "-F", "event,period", "-G").splitlines():
        found = re.match(r"^\s*(\d+)\s+(\S+):", line)
        if found:
            perf[found[2]] += int(found[1])
    check(perf["task-clock"] > 0 and perf["page-faults"] > 0, f"perf script says {perf}")
    samples = run(OFFBEAT, "raw", path).split("\nSamples:\n", 1)[1].split("\nLocations\n", 1)[0].splitlines()
    events = [name.split("/")[0] for name in samples[0].split()]
    rows = [[int(value) for value in line.split(":")[0].split()] for line in samples[1:] if re.match(r"^\s*[\d ]+: ", line)]
    for event, total in perf.items():
        check_equal(sum(row[events.index(event)] for row in rows), total, event)


@case
def copied_stacks_are_unwound_to_their_roots():
    path = record("dwarf", "-F", "499", "-e", "task-clock", "--call-graph", "dwarf")
    out = compare_recorded(path)
    whole = broken = 0
    for line in out.read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        frames = stack.split(";")
        whole += int(count)
        broken += int(count) * (frames[0] not in ("_start", "clone3", "[ld-linux-x86-64.so.2]"))
        if "work_one" in frames and "deep" in frames:
            check(frames.count("deep") == 21 or "work_one" != frames[-1], f"{frames.count('deep')} frames of 21: {stack}")
    check(whole > 0 and broken <= whole // 100, f"{broken} of {whole} do not begin at a root")


def cgroup_here(name):
    """A new cgroup, which the caller removes: its path for processes, and its folder."""
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    root = next((pathlib.Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    if not root or not os.access(root, os.W_OK):
        skip("no cgroup can be created here")
    folder = root / f"offbeat-test-{os.getpid()}-{name}"
    try:
        folder.mkdir()
    except OSError as error:
        skip(f"no cgroup can be created here: {error}")
    return f"/{folder.name}", folder


def compare_cgroups_recorded(cgroups):
    """One process in each of two cgroups, the second one with other namespaces, and copied stacks."""
    program = build_program()
    script = (f"(echo 0 >{cgroups[0][1]}/cgroup.procs; exec {program} one) & "
              f"(echo 0 >{cgroups[1][1]}/cgroup.procs; exec unshare --net --cgroup {program} two) & wait")
    path = perf_record(FOLDER / "groups.data", "-F", "499", "-e", "cpu-clock", "--call-graph", "dwarf", "--all-cgroups", "--namespaces",
                       "--", "sh", "-c", script)
    perf = collections.Counter()
    for line in run(*REPORT, "--sort", "cgroup,sym", "-F", "period,cgroup,sym", "-i", path).splitlines():
        if line.strip():
            period, cgroup, symbol = (column.strip() for column in line.split(",", 2))
            perf[(cgroup, symbol.split("] ")[-1])] += int(period)
    for name, _ in cgroups:
        top = json.loads(run(OFFBEAT, "top", "--json", "-n", "0", "--tag-focus", f"cgroup={name}", path))
        ours = {row["name"]: row["self"] for row in top["functions"]}
        check_equal(sum(row["self"] for row in top["functions"]), sum(count for (cgroup, _), count in perf.items() if cgroup == name), f"the sum of {name}")
        for function in FUNCTIONS:
            check(perf[(name, function)] > 0, f"perf has no samples of {function} in {name}")
            check_equal(ours.get(function), perf[(name, function)], f"{function} in {name}")
    tags = run(OFFBEAT, "tags", path)
    check(re.search(r"net:\d+ cgroup:\d+$", tags, re.M), f"no namespaces: {tags}")


@case
def cgroups_recorded_here_have_perfs_totals():
    cgroups = []
    try:
        cgroups.append(cgroup_here("one"))
        cgroups.append(cgroup_here("two"))
        compare_cgroups_recorded(cgroups)
    finally:
        for _, folder in cgroups:
            folder.rmdir()


@case
def a_file_of_another_mount_namespace_has_no_names_of_a_file_here():
    """One path is two files; perf notes which one each process has mapped."""
    program, other = build_program(), build_program("other", PROGRAM.replace("work_", "other_"))
    script = f"{program} one & unshare --mount sh -c 'mount --bind {other} {program} && exec {program} two' & wait"
    path = perf_record(FOLDER / "mounts.data", "-F", "199", "-e", "cpu-clock", "--buildid-mmap", "--namespaces", "--", "sh", "-c", script)
    for focus, is_named in (("--tag-ignore", True), ("--tag-focus", False)):
        top = run(OFFBEAT, "top", "-n", "0", focus, "namespaces=mnt:", path)
        check_equal(("work_one" in top, "other_one" in top, "program+0x" in top), (is_named, False, not is_named), top)


@case
def recordings_without_build_ids_are_named_while_their_files_are_the_same():
    """perf notes no build ids with -z, -B and in a pipe, and none of an ELF file that has none."""
    program = build_program("unchanged")
    bare = build_program("bare")
    run("objcopy", "--remove-section", ".note.gnu.build-id", bare)
    for number, (file, options) in enumerate(((program, ["-z"]), (program, ["-B", "-N"]), (bare, ["-g"]), (program, ["-z", "--call-graph", "dwarf"]))):
        path = perf_record(FOLDER / f"unproven{number}.data", "-F", "499", "-e", "cpu-clock", *options, "--", file)
        top = run(OFFBEAT, "top", "-n", "0", path)
        check("work_one" in top and f"{file.name}+0x" not in top, f"{options}: {top}")
    again = path.with_suffix(".again")
    file.write_bytes(program.read_bytes())
    done = subprocess.run([OFFBEAT, "top", "-n", "0", path], capture_output=True, text=True)
    check("work_one" not in done.stdout and "unchanged+0x" in done.stdout, done.stdout)
    check("perf noted no build id of 1 file; another file may be at the same path by now" in done.stderr, done.stderr)
    run(OFFBEAT, "symbolize", "--trust-paths", path, "-o", again.with_suffix(".pb.gz"))
    check("work_one" in run(OFFBEAT, "top", again.with_suffix(".pb.gz")), "work_one is not named")


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C.UTF-8"
    try:
        main()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
