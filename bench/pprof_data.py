"""Large pprof profiles for benchmarks, from ../shared/bench/generate-pprof.c: the same bytes on each machine.

They are kept in a cache folder outside the repository, so that all checkouts share them. SPDX-License-Identifier: MIT"""
import os
import pathlib
import shutil
import subprocess
import tempfile

GENERATOR = pathlib.Path(__file__).resolve().parent.parent.parent / "shared/bench/generate-pprof.c"
MERGED_FILES = 16

WITHOUT_LABELS, OTHER_ADDRESSES = ["-L", 0], ["-b", 0x555500000000]
MEDIUM, LARGE = ["-n", 125000, "-f", 20000, "-d", "20,60"], ["-n", 1350000, "-f", 50000, "-d", "20,60"]

# As ../shared/bench/make-data.sh makes them.
ARGUMENTS = {
    "m": [*MEDIUM, "-s", 1],
    "mnl": [*MEDIUM, "-s", 1, *WITHOUT_LABELS],
    "mnl2": [*MEDIUM, "-s", 2, *OTHER_ADDRESSES, *WITHOUT_LABELS],
    "l": [*LARGE, "-s", 1],
    "lnl": [*LARGE, "-s", 1, *WITHOUT_LABELS],
    **{f"g{i}": ["-n", 25000, "-f", 20000, "-d", "20,60", "-s", i + 1, "-b", 0x550000000000 + i * 0x1000000000]
       for i in range(MERGED_FILES)},
}


def missing_tools():
    """What cannot be found to make the files, as text; empty if they can be made."""
    missing = [str(GENERATOR)] if not GENERATOR.exists() else []
    return ", ".join(missing + [tool for tool in ("cc", "gzip") if not shutil.which(tool)])


def cache_folder():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "offbeat-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def pprof_files(*names):
    """The paths of the files NAMES in their order, made if they are not there. A file gets its name when it is
    complete."""
    folder = cache_folder()
    paths = [folder / f"{name}.pb.gz" for name in names]
    wanted = [(name, path) for name, path in zip(names, paths) if not path.exists()]
    if not wanted:
        return paths
    with tempfile.TemporaryDirectory(dir=folder) as place:
        generate = pathlib.Path(place) / "generate"
        subprocess.run(["cc", "-O2", "-w", GENERATOR, "-o", generate], check=True)
        for name, path in wanted:
            raw = pathlib.Path(place) / f"{name}.pb"
            subprocess.run([generate, *map(str, ARGUMENTS[name]), "-o", raw], check=True)
            subprocess.run(["gzip", "-6", "-n", raw], check=True)
            raw.with_suffix(".pb.gz").rename(path)
    return paths


def raw_bytes(path):
    """The size of a gzip file's content, from its trailer."""
    with open(path, "rb") as packed:
        packed.seek(-4, os.SEEK_END)
        return int.from_bytes(packed.read(), "little")
