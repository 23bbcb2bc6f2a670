"""Chunks that others made. What is decoded and encoded again has lost nothing (FMT-8), and `offbeat validate` says of each,
and of thousands of damaged ones, what check_chunk.py says, which has no line in common with it (V2-5, REL-1).
Reads the fixtures that test/fixtures.py finds. Argument: the program. SPDX-License-Identifier: MIT"""
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "test/cli")]
sys.dont_write_bytecode = True
from check_chunk import Rejected, check_chunk, items_of  # noqa: E402
from fixtures import REAL, of_real  # noqa: E402
from pprof_readers import CheckedFolder  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = sys.argv[1]
ENVELOPES = REAL / "envelopes"
OURS = "offbeat_"
DAMAGED = 400  # of each of a few chunks


def bodies():
    for path in sorted(ENVELOPES.glob("*/*.raw")):
        decoded = path.with_suffix(".body")
        yield f"{path.parent.name}.{path.stem}", (decoded if decoded.exists() else path).read_bytes()
    for path in sorted(ENVELOPES.glob("*.tar.gz")):
        with tarfile.open(path) as archive:
            for name in archive.getnames():
                if name.endswith(".raw"):
                    yield f"{path.name[:-7]}.{pathlib.Path(name).stem}", archive.extractfile(name).read()


def chunks():
    """(name, payload) of each chunk of a real client."""
    for name, body in bodies():
        body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        if b'"profile_chunk' in body[:2000]:
            for header, payload in items_of(body):
                if header["type"].startswith("profile_chunk"):
                    yield name, payload


# --- FMT-8 ---------------------------------------------------------------------------------------------------------

def without_nulls(value):
    """VALUE as the format means it: null is absent, and what is kept under a name of ours has its own again."""
    if isinstance(value, dict):
        return {key.removeprefix(OURS): without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def address(text):
    return int(str(text), 16 if str(text).lower().startswith("0x") else 10)


def normal(entity, aliases):
    entity = dict(entity)
    for alias, name in aliases:
        if alias in entity:
            entity[name] = entity.pop(alias)
    for name in ("instruction_addr", "image_addr", "image_vmaddr", "image_size"):
        if name in entity:
            entity[name] = address(entity[name])
    return entity


FRAME_ALIASES = (("name", "function"), ("file", "filename"), ("line", "lineno"), ("column", "colno"))
IMAGE_ALIASES = (("name", "code_file"), ("id", "debug_id"))


def check_kept(before, after, place):
    """All that BEFORE says AFTER says too; it may say more."""
    for key, value in before.items():
        check(key in after, f"{place}.{key} is lost: {value!r:.60}")
        check_equal(after[key], value, f"{place}.{key}")


def check_profile_kept(before, after, name):
    check_kept({key: value for key, value in before.items() if key not in ("samples", "stacks", "frames", "thread_metadata")},
               after, f"{name} profile")
    threads = {str(sample["thread_id"]) for sample in before["samples"]}
    samples = [sorted(profile["samples"], key=lambda sample: sample["timestamp"]) for profile in (before, after)]
    check_equal(len(samples[1]), len(samples[0]), f"{name}: samples")
    for thread in sorted(threads):
        if thread in before.get("thread_metadata", {}):
            check_kept(before["thread_metadata"][thread], after["thread_metadata"][thread], f"{name} thread {thread}")
    for old, new in zip(*samples):
        check(abs(old["timestamp"] - new["timestamp"]) < 1e-6, f"{name}: time {new['timestamp']}, was {old['timestamp']}")
        check_kept({key: str(value) if key == "thread_id" else value for key, value in old.items()
                    if key not in ("timestamp", "stack_id")}, new, f"{name} sample")
        old_frames, new_frames = before["stacks"][old["stack_id"]], after["stacks"][new["stack_id"]]
        check_equal(len(new_frames), len(old_frames), f"{name}: frames of a stack")
        for i, k in zip(old_frames, new_frames):
            check_kept(normal(before["frames"][i], FRAME_ALIASES), normal(after["frames"][k], ()),
                       f"{name} frame {i}")


def check_measurements_kept(before, after, name):
    for key, measurement in before.items():
        check_kept({what: value for what, value in measurement.items() if what != "values"}, without_nulls(after[key]), f"{name} {key}")
        times = [value["timestamp"] / (1000 if value["timestamp"] > 1e11 else 1) for value in measurement["values"]]
        check(all(abs(time - value["timestamp"]) < 1e-6 for time, value in zip(times, after[key]["values"])), f"{name} {key}: times")
        check_equal([value["value"] for value in after[key]["values"]],
                    [float(value["value"]) for value in measurement["values"]], f"{name} {key}: values")


def check_nothing_lost(payload, name, folder):
    before_path, after_path = folder / "before.json", folder / "after.json"
    before_path.write_bytes(payload)
    done = subprocess.run([OFFBEAT, "convert", before_path, "-o", after_path, "--to", "sentry-v2"],
                          capture_output=True, text=True)
    check_equal(done.returncode, 0, f"{name}: status ({done.stderr.strip()})")
    written = json.loads(after_path.read_bytes())
    before, after = without_nulls(json.loads(payload)), without_nulls(written)
    apart = ("profile", "measurements", "debug_meta", "client_sdk")
    check_kept({key: value for key, value in before.items() if key not in apart}, after, name)
    check_kept(before["client_sdk"], after["client_sdk"], f"{name} client_sdk")
    check_profile_kept(before["profile"], after["profile"], name)
    more = written["measurements"] | written.get(OURS + "measurements", {})
    check_measurements_kept(before.get("measurements", {}), more, name)
    meta = before.get("debug_meta", {})
    check_kept({key: value for key, value in meta.items() if key != "images"}, after["debug_meta"], f"{name} debug_meta")
    images = [normal(image, ()) for image in after["debug_meta"]["images"]]
    for image in meta.get("images", []):
        image = normal(image, IMAGE_ALIASES)
        check(any(all(found.get(key) == value for key, value in image.items()) for found in images),
              f"{name}: image {image} is lost, there are {images}")
    check_chunk(after_path.read_bytes())


@case
def every_real_chunk_is_written_back_without_loss_FMT_8():
    count = 0
    with CheckedFolder() as folder:
        for name, payload in chunks():
            check_nothing_lost(payload, name, pathlib.Path(folder))
            count += 1
    check(count > of_real(40, 14), f"only {count} chunks were found")


@case
def unknown_attributes_everywhere_are_written_back_FMT_8():
    unknown = {"text": "\u00e9\"\\", "list": [1, {"a": None}, 1.5e3], "": False}
    frames = [
        {"function": "f", "filename": "/a/f.py", "abs_path": "/a/f.py", "vars": {"x": "1"}, "pre_context": ["a"], "context_line": "b",
         "post_context": [], "stack_start": True, "addr_mode": "rel:0", "platform": "python", "raw_function": "f"},
        {"function": "", "abs_path": "http://localhost/x.js", "lineno": 0, "colno": 4, "more": unknown},
        {"instruction_addr": "0x7f0000000010", "in_app": True, "package": "/lib/m.so", "platform": "native"},
        {"function": "g", "lineno": -1, "raw_function": 7, "trust": "cfi"},
        {"filename": "lib/g.py", "abs_path": "/usr/lib/g.py", "function": "g", "module": ""},
        {"function": "h", "filename": "", "abs_path": "webpack:///h.js", "package": "p"},
        {"instruction_addr": "0x0"},
    ]
    chunk = {
        "version": "2", "profiler_id": "0" * 31 + "1", "chunk_id": "0" * 31 + "2", "platform": "native", "release": "r", "dist": 5,
        "environment": "e", "client_sdk": {"name": "n", "version": "1", "packages": [unknown]}, "timestamp": 1.5, "extra": unknown,
        "debug_meta": {"sdk_info": unknown, "images": [
            {"type": "elf", "debug_id": "1cc8ef1f-c2a2-e14d-ce2e-848c620ef422", "code_id": "aa", "arch": "x86_64", "more": unknown,
             "image_addr": "0x7f0000000000", "image_size": "4096", "code_file": "/lib/l.so", "build_id": "ff00"},
            {"type": "sourcemap", "debug_id": "1cc8ef1f-c2a2-e14d-ce2e-848c620ef423", "code_file": "x.js", "more": unknown}]},
        "measurements": {"cpu": {"unit": "percent", "more": unknown, "values": [{"timestamp": 1700000000.5, "value": "1e3"}]},
                         "power": {"unit": "joule", "values": [{"timestamp": 1700000000.5, "value": 2.0}]}},
        "profile": {
            "queue_metadata": {"0x1": {"label": "main"}}, "frames": frames, "stacks": [list(range(len(frames)))],
            "samples": [{"timestamp": 1700000000.0 + i, "stack_id": 0, "thread_id": "1", "queue": unknown} for i in range(3)],
            "thread_metadata": {"1": {"name": "t", "priority": -5, "more": unknown}}},
    }
    with CheckedFolder() as folder:
        check_nothing_lost(json.dumps(chunk).encode(), "edge", pathlib.Path(folder))


# --- The result, compared with the other validator -----------------------------------------------------------------

def damaged(payload, source):
    """PAYLOAD with a byte or a value in it made into another."""
    place = source.randrange(1, len(payload))  # the first one says that it is JSON
    if source.random() < 0.3:
        return payload[:place] + bytes([source.choice(b'0-1"{}[],:x\\e.') if source.random() < 0.8 else source.randrange(256)]) + payload[place + 1:]
    chunk = json.loads(payload)
    for _ in range(source.randrange(1, 3)):
        value, key = chunk, None
        while True:
            keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
            if not keys or (key is not None and source.random() < 0.25):
                break
            holder, key = value, source.choice(keys)
            value = holder[key]
        if key is not None:
            holder[key] = source.choice([None, -1, 0, 3, 1.5, "1", "x", 1 << 33, [], {}, True, "0x1f", "elf"])
            if source.random() < 0.2 and isinstance(holder, dict):
                del holder[key]
    return json.dumps(chunk).encode()


def result_of_the_other(payload):
    try:
        check_chunk(payload)
    except Rejected as rejected:
        return rejected.reason
    return ""


def results_of_offbeat(paths):
    done = subprocess.run([OFFBEAT, "validate", "--json", *paths], capture_output=True, text=True)
    found = {line["file"]: line for line in map(json.loads, done.stdout.splitlines())}
    check_equal(len(found), len(paths), f"results ({done.stderr.strip()[:200]})")
    check_equal(done.returncode, 0 if all(line["accepted"] for line in found.values()) else 1, "status")
    return found


def check_agreement(payloads, folder):
    paths = {}
    for i, payload in enumerate(payloads):
        path = folder / f"{i}.json"
        path.write_bytes(payload)
        paths[str(path)] = payload
    for path, result in results_of_offbeat(list(paths)).items():
        other = result_of_the_other(paths[path])
        if result["reason"] != other:
            check(False, f"{result}, the other validator says {other!r} of {paths[path][:3000]!r}")
    return sum(1 for payload in payloads if result_of_the_other(payload))


@case
def two_validators_agree_on_every_real_chunk_REL_1():
    with CheckedFolder() as folder:
        rejected = check_agreement([payload for _, payload in chunks()], pathlib.Path(folder))
    check_equal(rejected, 0, "real chunks that are rejected")


@case
def two_validators_agree_on_damaged_chunks_V2_5():
    source = random.Random(7)
    payloads = sorted((payload for _, payload in chunks()), key=len)[:6]
    with CheckedFolder() as folder:
        rejected = check_agreement([damaged(payload, source) for payload in payloads for _ in range(DAMAGED)], pathlib.Path(folder))
    check(rejected > DAMAGED, f"only {rejected} were rejected")


main()
