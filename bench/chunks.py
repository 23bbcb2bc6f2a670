"""How fast chunks of real clients are decoded, and decoded and judged, beside the JSON reader alone.

Reads ../shared/fixtures/real; without it there is nothing to measure. SPDX-License-Identifier: MIT"""
import gzip
import pathlib
import subprocess
import tarfile
import tempfile

from common import table

REAL = pathlib.Path(__file__).resolve().parents[2] / "shared/fixtures/real/envelopes"
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


def chunks(build):
    if not REAL.exists():
        print(f"chunks: {REAL} is not here")
        return
    rows = [["MB/s of JSON", "bytes", "reader alone", "decoded", "and judged"]]
    with tempfile.TemporaryDirectory() as folder:
        for name, directory, number in CHOSEN:
            path = pathlib.Path(folder) / f"{directory}.json"
            path.write_bytes(payload_of(directory, number))
            done = subprocess.run([build / "bench/chunks", path], capture_output=True, text=True, check=True)
            rows.append([name, *done.stdout.split("\t")[1:]])
            rows[-1][-1] = rows[-1][-1].strip()
    table(rows)
