"""Whether dense input keeps the 40 bytes of memory per byte of doc/formats/limits.md. The fixed 64 MiB would hide a smaller
file that takes more, so what counts is how much the peak grows from a small file to a large one. Argument: the program.
SPDX-License-Identifier: MIT"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from pprof_written import varint  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = sys.argv[1]
SMALL, LARGE, OF_BYTE = 2 << 20, 6 << 20, 40


def chunk(frames="{}", stacks="[0]", samples="", images="", threads=""):
    sample = '{"timestamp":1700000000.1,"stack_id":0,"thread_id":"1"}'
    return (f'{{"version":"2","platform":"python","profiler_id":"{"1" * 32}","chunk_id":"{"2" * 32}","release":"a@1",'
            f'"debug_meta":{{"images":[{images}]}},"profile":{{"frames":[{frames}],"stacks":[{stacks}],"samples":[{samples}{sample}],'
            f'"thread_metadata":{{{threads}}}}}}}').encode()


def repeated(text, size):
    return ",".join([text] * (size // (len(text) + 1)))


def pprof(parts):
    names = b"".join(b"\x32" + bytes([len(text)]) + text for text in (b"", b"samples", b"count"))
    return b"\x0a\x04\x08\x01\x10\x02" + names + parts


def speedscope(frames="{}", samples="[0]", weights="1"):
    return (f'{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{frames}]}},"profiles":[{{"type":"sampled",'
            f'"name":"t","unit":"none","startValue":0,"endValue":1,"samples":[{samples}],"weights":[{weights}]}}]}}').encode()


# Files of about SIZE bytes with as many parts as they have room for.
DENSE = {
    "frames of a chunk": lambda size: chunk(frames=repeated("{}", size)),
    "stacks of a chunk": lambda size: chunk(stacks="[0]," + repeated("[]", size)),
    "images with places of a chunk": lambda size: chunk(images=repeated('{"image_addr":"0x1"}', size)),
    "threads of a chunk": lambda size: chunk(threads=",".join(f'"{i}":{{}}' for i in range(size // 12))),
    "strings of pprof": lambda size: pprof(b"\x32\x00" * (size // 2)),
    "different strings of pprof": lambda size: pprof(b"".join(b"\x32\x04" + i.to_bytes(4, "little") for i in range(size // 6))),
    "functions of pprof": lambda size: pprof(b"".join(b"\x2a" + bytes([1 + len(n)]) + b"\x08" + n for n in map(varint, range(1, size // 6)))),
    "locations of pprof": lambda size: pprof(b"".join(b"\x22" + bytes([1 + len(n)]) + b"\x08" + n for n in map(varint, range(1, size // 6)))),
    "samples of pprof": lambda size: pprof(b"\x12\x03\x12\x01\x01" * (size // 5)),
    "frames of speedscope": lambda size: speedscope(frames=repeated("{}", size)),
    "samples of speedscope": lambda size: speedscope(samples=repeated("[0]", size * 2 // 3), weights=repeated("1", size // 3)),
    "trace events": lambda size: f'[{{"ph":"X","name":"f","pid":1,"tid":1,"ts":1,"dur":1}},{repeated("{}", size)}]'.encode(),
    "collapsed stacks": lambda size: b"".join(b"%x 1\n" % i for i in range(size // 8)),
    "lines of callgrind": lambda size: b"events: Ir\nfn=f\n" + b"+1 1\n" * (size // 5),
}


# A process of its own starts the program: a child's peak begins with what its parent has, and this one has the file.
LAUNCHER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_maxrss << 10)
"""


def peak(path):
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}  # fills what nobody uses
    done = subprocess.run([sys.executable, "-S", "-c", LAUNCHER, OFFBEAT, "info", path], env=environment, capture_output=True, text=True, check=True)
    status, size = map(int, done.stdout.split())
    check_equal(status, 0, "status of info")
    return size


@case
def the_memory_for_each_byte_of_dense_input_is_bounded():
    over = []
    with tempfile.TemporaryDirectory() as name:
        for kind, make in DENSE.items():
            sizes, peaks = [], []
            for size in (SMALL, LARGE):
                path = pathlib.Path(name, "x")
                path.write_bytes(make(size))
                sizes.append(path.stat().st_size)
                peaks.append(peak(path))
            slope = (peaks[1] - peaks[0]) / max(1, sizes[1] - sizes[0])
            print(f"# {kind}: {slope:.1f} bytes for each byte", flush=True)
            if slope > OF_BYTE:
                over.append(f"{kind}: {slope:.1f}")
    check(not over, f"more than {OF_BYTE} bytes for each byte of {', '.join(over)}")


main()
