"""Whether the times of each thread in a recording fit together: wall = cpu + runnable + blocked, and no thread has more of
them than the recording lasted. Folder (recording.py) checks every recording that a case leaves. SPDX-License-Identifier: MIT"""
import collections
import gzip

from pprof_fields import pprof_fields, varints
from tap import Failed

COLUMNS = ["samples", "wall", "cpu", "runnable", "blocked"]
SAMPLE_TYPES, SAMPLES, STRINGS, DURATION, PERIOD = 1, 2, 6, 10, 12
SHORT_THREADS = "0"  # stands for many threads at once


def _labels(sample, strings):
    for number, label in sample:
        if number == 3:
            parts = dict(pprof_fields(label))
            yield strings[parts[1]], strings[parts[2]] if parts.get(2) else str(parts.get(3, 0))


def _thread_of(sample, strings):
    labels = dict(_labels(sample, strings))
    return labels.get("pid", ""), labels.get("thread_id", "")


def times_of_threads(data):
    """({(pid, thread id): [nanoseconds of each of COLUMNS]}, duration, period) of an unpacked pprof file; None if it is no
    recording of time that passes."""
    fields = list(pprof_fields(data))
    strings = [value.decode() for number, value in fields if number == STRINGS]
    if [strings[dict(pprof_fields(value))[1]] for number, value in fields if number == SAMPLE_TYPES] != COLUMNS:
        return None
    threads = collections.defaultdict(lambda: [0] * len(COLUMNS))
    for sample in (list(pprof_fields(value)) for number, value in fields if number == SAMPLES):
        values = [value for number, packed in sample if number == 2 for value in varints(packed)]
        sums = threads[_thread_of(sample, strings)]
        sums[:] = [before + more for before, more in zip(sums, values)]
    single = {number: value for number, value in fields if number in (DURATION, PERIOD)}
    return threads, single.get(DURATION, 0), single.get(PERIOD, 0)


def check_times(data, name):
    times = times_of_threads(data)
    if times is None:
        return
    threads, duration, period = times
    for (pid, thread), (_, wall, cpu, runnable, blocked) in threads.items():
        if wall != cpu + runnable + blocked:
            raise Failed(f"{name}, thread {thread} of {pid}: wall {wall} is not cpu {cpu} + runnable {runnable} + blocked {blocked}")
        if thread != SHORT_THREADS and wall > duration + period:
            raise Failed(f"{name}, thread {thread} of {pid}: {wall} ns of wall time in a recording of {duration} ns")


def check_folder(folder):
    for path in folder.rglob("*.pb.gz"):
        if path.is_file() and path.stat().st_size > 0:
            try:
                data = gzip.decompress(path.read_bytes())
            except (OSError, EOFError):
                continue  # the case has damaged it
            check_times(data, path.name)
