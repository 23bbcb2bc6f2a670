"""Reading, merging and writing profiles: large pprof profiles beside go tool pprof; chunks of Sentry's V2, decoded and
judged, beside a JSON library that only reads them. All is seconds of a processor, the least of several runs, and peak
memory.

The pprof profiles come from ../shared/bench/generate-pprof.c and are kept in the build folder. SPDX-License-Identifier: MIT"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from chunks import chunks
from common import environment, table

HERE = pathlib.Path(__file__).resolve().parent
SHARED = HERE.parent.parent / "shared"
MERGED_FILES = 16


def output(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def pprof_data(build):
    """The folder of the generated profiles. What ../shared/bench/make-data.sh makes, as far as it is needed here."""
    folder = build / "bench-formats"
    wanted = {"m": ["-n", 125000, "-f", 20000, "-d", "20,60", "-s", 1],
              "lnl": ["-n", 1350000, "-f", 50000, "-d", "20,60", "-s", 1, "-L", 0]}
    for i in range(MERGED_FILES):
        wanted[f"g{i}"] = ["-n", 25000, "-f", 20000, "-d", "20,60", "-s", i + 1, "-b", 0x550000000000 + i * 0x1000000000]
    folder.mkdir(exist_ok=True)
    generator = folder / "generate"
    subprocess.run(["cc", "-O2", "-w", SHARED / "bench/generate-pprof.c", "-o", generator], check=True)
    for name, arguments in wanted.items():
        raw, packed = folder / f"{name}.pb", folder / f"{name}.pb.gz"
        if not packed.exists():
            subprocess.run([generator, *map(str, arguments), "-o", raw], check=True)
            subprocess.run(["gzip", "-6", "-n", "-k", "-f", raw], check=True)
    return folder


def run(command, rounds):
    """(least seconds of processors, greatest MiB)"""
    seconds, memory = [], []
    for _ in range(rounds):
        with open(os.devnull, "w", encoding="ascii") as nowhere:
            process = subprocess.Popen(list(map(str, command)), stdout=nowhere, stderr=nowhere,
                                       env=environment(PPROF_TMPDIR="/tmp", PPROF_NO_BROWSER=1))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        seconds.append(usage.ru_utime + usage.ru_stime)
        memory.append(usage.ru_maxrss / 1024)
    return min(seconds), max(memory)


def pprof_version():
    """What go tool pprof is, or None."""
    if not shutil.which("go"):
        return None
    return re.search(r"go[\d.]+", output("go", "version"))[0]


def compare(name, ours, theirs, rounds):
    seconds, memory = run(ours, rounds)
    row = [name, f"{seconds:.2f} s", f"{memory:.0f} MiB"]
    if not theirs:
        return row + ["-"] * 4
    their_seconds, their_memory = run(theirs, max(rounds // 3, 1))
    return row + [f"{their_seconds:.2f} s", f"{their_memory:.0f} MiB", f"{their_seconds / seconds:.1f}",
                  f"{their_memory / memory:.1f}"]


def pprof(build, folder, rounds):
    data = pprof_data(build)
    version = pprof_version()
    offbeat, load = build / "offbeat", [build / "bench/formats"]
    peer = ["go", "tool", "pprof", "-symbolize=none"] if version else None
    merged = [data / f"g{i}.pb.gz" for i in range(MERGED_FILES)]
    out = folder / "out.pb.gz"

    def theirs(*arguments):
        return peer + list(arguments) if peer else None

    rows = [["pprof", "offbeat", "", f"pprof ({version or 'go is not installed'})", "", "time", "memory"]]
    for name in ("m", "lnl"):
        path = data / f"{name}.pb.gz"
        raw = (data / f"{name}.pb").stat().st_size
        rows.append(compare(f"load {path.name}, {raw / 2**20:.0f} MiB raw", load + [path], theirs("-comments", path),
                            rounds if name == "m" else 3))
    rows.append(compare("info m.pb.gz", [offbeat, "info", data / "m.pb.gz"], None, rounds))
    rows.append(compare("top m.pb.gz", [offbeat, "top", data / "m.pb.gz"], theirs("-top", data / "m.pb.gz"), rounds))
    rows.append(compare("top lnl.pb.gz", [offbeat, "top", data / "lnl.pb.gz"], None, 3))
    rows.append(compare("write m.pb.gz again", [offbeat, "convert", data / "m.pb.gz", "-o", out],
                        theirs("-proto", f"-output={out}", data / "m.pb.gz"), rounds))
    rows.append(compare(f"merge {MERGED_FILES} g*.pb.gz, write", [offbeat, "merge", *merged, "-o", out],
                        theirs("-proto", f"-output={out}", *merged), rounds))
    table(rows)
    print("The pprof in Debian's Go 1.19 loads about four times slower than newer ones: no claim is made against its loading.")


def formats(build, rounds=5):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # First, as the system counts our own memory as a child's until it has become another program.
        if (SHARED / "bench/generate-pprof.c").exists():
            pprof(build, folder, rounds)
        else:
            print(f"pprof: {SHARED}/bench/generate-pprof.c is not there")
    print()
    chunks(build)
