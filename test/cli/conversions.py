"""Whether every conversion keeps the time of each function (FMT-4, FMT-11; V1-4 and V1-5 where V1 is written): made
profiles in CPU and wall time, and real perf scripts, written in every format. Arguments: the program, the folder of real
profiles. SPDX-License-Identifier: MIT"""
import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from function_times import JITTER, TARGETS, check_all, converted, of_collapsed, of_speedscope, run  # noqa: E402
from pprof_readers import CheckedFolder  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

REAL = pathlib.Path(sys.argv[2]).resolve()
SENTRY_TARGETS = ("envelope", "sentry-v2", "sentry-v1", "envelope-v1")


def conversions_of(name, text, targets):
    """Of a file NAME that holds TEXT: each target, the files that were written, and the messages."""
    with CheckedFolder() as folder:
        source = pathlib.Path(folder) / name
        source.write_text(text, encoding="utf-8")
        for target in targets:
            yield target, converted(source, target, pathlib.Path(folder))


# --- Made ones: work of 50 ms, sleep of 200 ms ------------------------------------------------------------------------


def perf_script(event, period):
    lines = []
    time_us = 1_000_000
    for cycle in range(8):
        for tick in range(10):
            name = "spin" if tick % 3 else "other"
            lines.append(f"prog  77/78  [001] {time_us // 1000000}.{time_us % 1000000:06d}:  {period} {event}:\n"
                         f"\t    401136 {name}+0x6 (/bin/prog)\n\t    401200 main+0x10 (/bin/prog)\n\n")
            time_us += 5000 + (cycle * 7 + tick * 3) % 11 * 10
        time_us += 200000
    return "".join(lines), {"spin": 8 * 6 * 0.005, "other": 8 * 4 * 0.005}


@case
def cpu_time_of_perf_scripts_is_the_same_in_every_format():
    with CheckedFolder() as name:
        folder = pathlib.Path(name)
        for event in ("cpu-clock:u", "task-clock"):
            text, expected = perf_script(event, 5000000)
            source = folder / "in.perf.txt"
            source.write_text(text, encoding="utf-8")
            written = check_all(source, expected, JITTER, 0.001, folder)
            check(written == len(TARGETS), f"{event}: only {written} formats were written")


@case
def cycles_of_perf_scripts_are_no_sleep_in_sentrys_formats():
    with CheckedFolder() as name:
        folder = pathlib.Path(name)
        text, expected = perf_script("cycles", 12345678)
        source = folder / "in.perf.txt"
        source.write_text(text, encoding="utf-8")
        check_all(source, expected, JITTER, 0.001, folder, ("envelope", "sentry-v2", "sentry-v1", "envelope-v1"))


@case
def real_perf_scripts_keep_the_time_of_each_function():
    scripts = sorted((REAL / "perf").glob("*.script.txt")) if (REAL / "perf").is_dir() else []
    if not scripts:
        skip(f"there is no perf script in {REAL}")
    with CheckedFolder() as name:
        for path in scripts:
            top = json.loads(run("top", "--json", path).stdout)
            if top["sample_type"]["unit"] != "nanoseconds":
                continue
            expected = collections.Counter({row["name"]: row["self"] / 1e9 for row in top["functions"]})
            check_all(path, expected, JITTER, 0.02, pathlib.Path(name), ("pprof", "collapsed", "speedscope", "firefox"))


@case
def a_heap_profile_does_not_become_time():
    text = "heap profile: 1: 8 [2: 16] @ heap/512\n1: 8 [2: 16] @ 0x401136\n"
    for target, (paths, said) in conversions_of("heap.txt", text, SENTRY_TARGETS):
        check(not paths and "holds only time" in said and "pprof" in said, f"{target}: {said}")
    for _, (paths, said) in conversions_of("heap.txt", text, ("pprof",)):
        check(paths, f"not written as pprof: {said}")


@case
def a_profile_without_timestamps_says_so_every_time():
    for target, (_, said) in conversions_of("x.collapsed", "main;work 42\n", (*SENTRY_TARGETS, "speedscope", "firefox")):
        check("no timestamps" in said, f"{target}: {said!r}")


@case
def functions_of_different_modules_stay_apart_FMT_4():
    frames = [{"function": "run", "module": f"com.example.Task{i}"} for i in range(11)]
    chunk = {"version": "2", "profiler_id": "0b167bf84f9e4b84b384f321756d51e0", "chunk_id": "9723ec98a59b4cf9a8321939aa98f852",
             "platform": "java", "release": "a@1", "client_sdk": {"name": "x", "version": "1"},
             "profile": {"frames": frames, "stacks": [[i] for i in range(11)],
                         "thread_metadata": {"1": {"name": "main"}},
                         "samples": [{"timestamp": 1700000000 + i, "stack_id": i % 11, "thread_id": "1"} for i in range(12)]}}
    with CheckedFolder() as name:
        folder = pathlib.Path(name)
        source = folder / "java.json"
        source.write_text(json.dumps(chunk), encoding="utf-8")
        expected = collections.Counter({f"com.example.Task{i}.run": 1.0 for i in range(11)})
        check_all(source, expected, 1e-6, 1e-4, folder)
        top = json.loads(run("top", "--json", source).stdout)
        check(len(top["functions"]) == 11, f"{len(top['functions'])} rows")


def chunk_of_two_libraries(has_images):
    """liba and libb have a function g each, the program calls both; with places in memory, or with nothing but names."""
    starts = {"/usr/lib/liba.so": 0x7f0000000000, "/opt/libb.so": 0x7f1000000000}
    frames = [{"function": "g", "package": path, **({"instruction_addr": hex(start + 0x100)} if has_images else {})}
              for path, start in starts.items()]
    images = [{"type": "symbolic", "code_file": path, "debug_id": f"8e9f2f64-4a2c-4d1f-9c1e-0000000000{i:02}",
               "image_addr": hex(start), "image_size": 0x1000} for i, (path, start) in enumerate(starts.items())]
    return {"version": "2", "profiler_id": "0b167bf84f9e4b84b384f321756d51e0", "chunk_id": "9723ec98a59b4cf9a8321939aa98f852",
            "platform": "native" if has_images else "other", "release": "a@1", "client_sdk": {"name": "x", "version": "1"},
            "profile": {"frames": frames, "stacks": [[0], [1]], "thread_metadata": {"1": {"name": "main"}},
                        "samples": [{"timestamp": 1700000000 + i, "stack_id": i % 2, "thread_id": "1"} for i in range(5)]},
            **({"debug_meta": {"images": images}} if has_images else {})}


def rows_of_g(path):
    top = json.loads(run("top", "--json", path).stdout)
    return {row["package"]: row["self"] for row in top["functions"] if row["name"].startswith("g")}


@case
def functions_of_different_packages_stay_apart_FMT_11():
    for has_images in (True, False):
        with CheckedFolder() as name:
            folder = pathlib.Path(name)
            source = folder / "two.json"
            source.write_text(json.dumps(chunk_of_two_libraries(has_images)), encoding="utf-8")
            expected = {"/usr/lib/liba.so": 2e9, "/opt/libb.so": 2e9}
            check_equal(rows_of_g(source), expected, f"top, images: {has_images}")
            for target in ("pprof", "envelope", "sentry-v1"):
                paths, said = converted(source, target, folder)
                check(paths, said)
                check_equal(rows_of_g(paths[0]), expected, f"top of {target}, images: {has_images}")
            names = {"g [liba.so]": 2.0, "g [libb.so]": 2.0}
            for target, read in (("collapsed", of_collapsed), ("speedscope", of_speedscope)):
                check_equal(dict(read(converted(source, target, folder)[0])), names, f"{target}, images: {has_images}")
            firefox = json.loads(converted(source, "firefox", folder)[0][0].read_text(encoding="utf-8"))
            check_equal(firefox["shared"]["funcTable"]["length"], 2, f"functions for Firefox, images: {has_images}")
            short = json.loads(run("top", "--short-names", "--json", source).stdout)
            check_equal([row["name"] for row in short["functions"]], ["g"], "with short names")


def losses_of(text, name, target):
    for _, (_, said) in conversions_of(name, text, (target,)):
        return said


@case
def what_is_lost_is_named():
    script, _ = perf_script("cpu-clock:u", 5000000)
    check("servers show CPU time as wall time" in losses_of(script, "in.perf.txt", "envelope"), "CPU time as wall time")
    check("under the callers that both have" in losses_of(script, "in.perf.txt", "sentry-v1"), "idle time in V1")
    contention = "--- contention:\ncycles/second = 1000000000\n1000 2 @ 0x401136\n"
    check("difference between wall time and other time" in losses_of(contention, "c.txt", "envelope"), "delays as wall time")


@case
def a_profile_without_images_is_no_native_code_FMT_10():
    script, _ = perf_script("cpu-clock:u", 5000000)
    with CheckedFolder() as name:
        folder = pathlib.Path(name)
        for file, text in (("in.perf.txt", script), ("in.collapsed", "main;work 42\n")):
            (folder / file).write_text(text, encoding="utf-8")
            for target in ("sentry-v1", "sentry-v2"):
                paths, said = converted(folder / file, target, folder)
                check(paths, said)
                check_equal(json.loads(paths[0].read_text(encoding="utf-8"))["platform"], "other", f"platform of {file} to {target}")
                done = run("validate", "--rules", "spec", paths[0], may_fail=True)
                check_equal(done.returncode, 0, done.stdout)


@case
def a_profile_of_v1_ends_with_its_thirty_seconds_V1_5():
    with CheckedFolder() as name:
        folder = pathlib.Path(name)
        source = folder / "x.collapsed"
        source.write_text("main;work 4000\n", encoding="utf-8")
        paths, said = converted(source, "envelope-v1", folder)
        check(paths and "only the first 30 s" in said, said)
        done = run("validate", paths[0], may_fail=True)
        check(done.returncode == 0, done.stdout)


main()
