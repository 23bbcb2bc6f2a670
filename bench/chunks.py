"""How fast chunks of real clients, and a large one made here, are decoded, and decoded and validated, beside the JSON reader
alone and a JSON library alone. A part of `formats`. SPDX-License-Identifier: MIT"""
import gzip
import json
import pathlib
import random
import shutil
import subprocess
import tarfile
import tempfile

from common import table

HERE = pathlib.Path(__file__).resolve().parent
REAL = HERE.parents[1] / "shared/fixtures/real/envelopes"
CHOSEN = (("Python, 60 s", "py-2.68.0-v2-long", "0030"), ("Java", "java-8.53.0-manual", "0003"),
          ("Node, 60 s", "node-v10-long", "0026"), ("Node", "node-v11-manual", "0001"), ("browser", "br-v11-manual", "0003"))


def body_of(directory, number):
    packed = REAL / f"{directory}.tar.gz"
    if packed.exists():
        with tarfile.open(packed) as archive:
            name = next(name for name in archive.getnames() if name.endswith(f"{number}.raw"))
            return archive.extractfile(name).read()
    decoded = REAL / directory / f"{number}.body"
    return (decoded if decoded.exists() else REAL / directory / f"{number}.raw").read_bytes()


def payload_of(directory, number):
    body = body_of(directory, number)
    body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    return body.split(b"\n", 2)[2].rstrip(b"\n")  # the only item


def made_chunk(path):
    """A minute of 40 threads, 4 000 frames and 3 000 stacks; the same bytes each time."""
    chance = random.Random(7)
    words = ["read", "parse", "flush", "merge", "query", "commit", "lookup", "encode"]
    frames = [{"function": f"{chance.choice(words)}_{chance.choice(words)}_{i}", "module": f"shop.{chance.choice(words)}",
               "filename": f"shop/{chance.choice(words)}.py", "abs_path": f"/srv/app/shop/{chance.choice(words)}.py",
               "lineno": chance.randrange(1, 3000), "in_app": chance.random() < 0.6} for i in range(4000)]
    stacks = [[chance.randrange(len(frames)) for _ in range(chance.randrange(20, 60))] for _ in range(3000)]
    threads = [str(140000000000000 + i * 4096) for i in range(40)]
    samples = [{"timestamp": round(1700000000 + tick / 101, 6), "stack_id": chance.randrange(len(stacks)), "thread_id": thread}
               for tick in range(101 * 60) for thread in threads]
    path.write_text(json.dumps({
        "version": "2", "profiler_id": "0123456789abcdef0123456789abcdef", "chunk_id": "fedcba9876543210fedcba9876543210",
        "platform": "python", "release": "shop@1", "environment": "production",
        "client_sdk": {"name": "sentry.python", "version": "2.0.0"}, "debug_meta": {"images": []},
        "profile": {"samples": samples, "stacks": stacks, "frames": frames,
                    "thread_metadata": {thread: {"name": f"worker-{i}"} for i, thread in enumerate(threads)}}},
        separators=(",", ":")), encoding="ascii")


def json_library(folder):
    """simdjson, built for this machine; None if it is not installed (Debian: libsimdjson-dev)."""
    program = folder / "json_library"
    built = shutil.which("g++") and subprocess.run(
        ["g++", "-std=c++17", "-O2", HERE / "json_library.cc", "-o", program, "-lsimdjson"], capture_output=True, check=False)
    return program if built and built.returncode == 0 else None


def alone(library, path):
    """(version, MB/s) of the library."""
    version, size, seconds = subprocess.run([library, path], capture_output=True, text=True, check=True).stdout.split()
    return version.strip('"'), float(size) / float(seconds) / 1e6


def chunks(build):
    version = "not installed (Debian: libsimdjson-dev)"
    rows = [["Sentry V2, MB/s of JSON a core", "bytes", "simdjson alone", "our reader alone", "decoded", "and validated"]]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        inputs = {"made: 60 s, 40 threads": folder / "made.json"}
        made_chunk(inputs["made: 60 s, 40 threads"])
        for name, directory, number in CHOSEN if REAL.exists() else ():
            inputs[name] = folder / f"{directory}.json"
            inputs[name].write_bytes(payload_of(directory, number))
        library = json_library(folder)
        for name, path in inputs.items():
            done = subprocess.run([build / "bench/chunks", path], capture_output=True, text=True, check=True)
            size, *ours = (cell.strip() for cell in done.stdout.split("\t")[1:])
            rate = "-"
            if library:
                version, megabytes = alone(library, path)
                rate = f"{megabytes:.0f}"
            rows.append([name, size, rate, *ours])
    table(rows)
    print(f"simdjson: {version}; it makes a tree of the values, and leaves all else to do")
    if not REAL.exists():
        print(f"{REAL} is not here: no chunks of real clients")
