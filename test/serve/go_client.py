"""A Go program sends each kind of profile as pyroscope-go does, and Grafana Alloy pushes the same files. `go tool pprof` combines the
files by the rule of each kind: the server must have the same table. Argument: the build folder. SPDX-License-Identifier: MIT"""
import gzip
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from protobuf_wire import field, fields, push_series  # noqa: E402
from server_process import running  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
ROUNDS, STEP = 12, 300
START = int(time.time()) - ROUNDS * STEP - 60
# Sample type, unit of `go tool pprof`, kind of the server, profile of the runtime.
KINDS = [("cpu", "ns", "cpu", "cpu"), ("samples", "count", "cpu:samples", "cpu"), ("inuse_space", "B", "inuse_space", "heap"),
         ("inuse_objects", "count", "inuse_objects", "heap"), ("alloc_space", "B", "alloc_space", "heap"), ("delay", "ns", "mutex:delay", "mutex"),
         ("contentions", "count", "mutex:contentions", "mutex"), ("delay", "ns", "block:delay", "block"), ("goroutine", "count", "goroutine", "goroutine")]


def go(folder, *words):
    done = subprocess.run(["go", *words], capture_output=True, timeout=120, cwd=folder,
                          env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
    check(done.returncode == 0, f"go {words}: {done.stderr.decode()}")
    return done.stdout


def table(folder, sample_type, unit, *words):
    """{function: (flat, cum)} of `go tool pprof -top`."""
    text = go(folder, "tool", "pprof", "-top", "-nodefraction=0", "-nodecount=100000", f"-sample_index={sample_type}", f"-unit={unit}", *map(str, words)).decode()
    rows = re.findall(r"^ *(-?[0-9.]+)\S* +\S+ +\S+ +(-?[0-9.]+)\S* +\S+ +(.+)$", text[text.index("flat%"):], re.MULTILINE)
    return {name.removesuffix(" (inline)").removesuffix(" (partial-inline)"): (float(flat), float(cum)) for flat, cum, name in rows}


def by_the_rule(folder, sample_type, unit, profile):
    """The files of PROFILE, added, averaged, or the last one without the first."""
    files = sorted(folder.glob(f"{profile}-*.pb.gz"))
    check_equal(len(files), ROUNDS, f"files of {profile}")
    if profile == "cpu":
        return table(folder, sample_type, unit, *files)
    if sample_type in ("inuse_space", "inuse_objects", "goroutine"):
        return {name: (flat / ROUNDS, cum / ROUNDS) for name, (flat, cum) in table(folder, sample_type, unit, *files).items()}
    return table(folder, sample_type, unit, f"-base={files[0]}", files[-1])


def compare(server, folder, service):
    """What `go tool pprof URL` and `top` have of each kind, with what the files have: averages are rounded for each stack."""
    for sample_type, unit, kind, profile in KINDS:
        expected = {name: pair for name, pair in by_the_rule(folder, sample_type, unit, profile).items() if any(pair)}
        query = urllib.parse.urlencode({"service": service, "type": kind})
        found = {one["name"]: (one["self"], one["total"]) for one in server.read(f"top?{query}")["functions"]}
        read = table(folder, sample_type, unit, f"{server.url}?{query}")
        # pprof rounds an average to two digits.
        slack = 40 if sample_type in ("inuse_space", "inuse_objects", "goroutine") else 0
        check(len(expected) > 1, f"{kind} of the files: {expected}")
        for name, pair in expected.items():
            for other, where in ((read, "pprof"), (found, "top")):
                values = other.get(name, (0, 0))
                check(all(abs(a - b) <= slack for a, b in zip(values, pair)), f"{where}, {service}, {kind}, {name}: {values}, expected {pair}")
        check_equal([name for name, pair in read.items() if any(pair) and name not in expected], [], f"functions of {kind} that the files do not have")


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def dated(path, seconds):
    """The file with the time of a scrape. Its fields are varints and messages."""
    data, kept, at = gzip.decompress(path.read_bytes()), b"", 0
    while at < len(data):
        start = at
        key, at = read_varint(data, at)
        value, at = read_varint(data, at)
        at += value if key & 7 == 2 else 0
        if key >> 3 != 9:
            kept += data[start:at]
    return gzip.compress(kept + field(9, seconds * 10 ** 9), 1)


def push(server, folder):
    """What Alloy pushes: a series for each profile of a target, one request for each scrape."""
    for number in range(ROUNDS):
        series = [({"__name__": {"cpu": "process_cpu", "heap": "memory"}.get(name, name), "service_name": "alloy", "instance": "10.0.0.1:6060", "job": "shop"},
                   [(dated(folder / f"{name}-{number:03}.pb.gz", START + number * STEP), f"{number:08x}-0000-4000-8000-{kind:012x}")])
                  for kind, name in enumerate(("cpu", "heap", "mutex", "block", "goroutine"))]
        answer = server.request("POST", "/push.v1.PusherService/Push", fields(1, [push_series(*one) for one in series]),
                                {"Authorization": f"Bearer {server.key}", "Content-Type": "application/proto", "Connect-Protocol-Version": "1"})
        check_equal((answer.status, answer.body), (200, b""), f"push {number}")


@case
def each_kind_of_a_go_program_is_what_pprof_makes_of_its_files():
    if not shutil.which("go"):
        skip("go is not installed")
    with running(OFFBEAT) as server, tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = folder / "client"
        go(folder, "build", "-o", program, pathlib.Path(__file__).resolve().with_name("go_client.go"))
        done = subprocess.run([program, f"http://127.0.0.1:{server.port}", server.key, folder, str(ROUNDS), str(START), str(STEP)],
                              capture_output=True, text=True, timeout=120)
        check_equal(done.returncode, 0, done.stderr)
        compare(server, folder, "go.shop")
        push(server, folder)
        compare(server, folder, "alloy")
        check_equal(server.read("rejected")["rejected"], [], "rejected profiles")


main()
