"""Prints which lines of src/ ran, by folder, and the files of which the fewest ran. Arguments: a build folder of ./dev coverage,
and the folder with its counts. SPDX-License-Identifier: MIT"""
import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOW_PERCENT = 60
build, counts = map(pathlib.Path, sys.argv[1:])


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def has_counters(path):
    return path.is_file() and (path.stat().st_mode & 0o111) and path.read_bytes()[:4] == b"\x7fELF" and "__llvm_covmap" in output("readelf", "-SW", str(path))


def folder_of(path):
    return "/".join(path.parts[:2])


def line(covered, lines, name):
    return f"{100 * covered / lines:6.1f} % of {lines:6}  {name}"


profile = counts / "merged.profdata"
output("llvm-profdata-14", "merge", "--failure-mode=all", "-o", str(profile), *map(str, counts.glob("*.profraw")))
programs = sorted(str(path) for path in build.rglob("*") if has_counters(path))
exported = json.loads(output("llvm-cov-14", "export", "--summary-only", f"--instr-profile={profile}", programs[0],
                             *(f"--object={program}" for program in programs[1:])))
files = {}
for file in exported["data"][0]["files"]:
    lines, path = file["summary"]["lines"], pathlib.Path(os.path.relpath(os.path.normpath(file["filename"]), ROOT))
    if path.parts[0] == "src" and lines["count"]:
        files[path] = (lines["covered"], lines["count"])
folders = collections.defaultdict(lambda: (0, 0))
for path, (covered, total) in files.items():
    folders[folder_of(path)] = tuple(map(sum, zip(folders[folder_of(path)], (covered, total))))
for folder in sorted(folders):
    print(line(*folders[folder], folder))
print(f"files below {LOW_PERCENT} %, those with the most unreached lines first:")
low = [path for path, (covered, total) in files.items() if 100 * covered < LOW_PERCENT * total]
for path in sorted(low, key=lambda path: files[path][0] - files[path][1]):
    print(line(*files[path], path))
print(line(*map(sum, zip(*files.values())), "all of src/"))
