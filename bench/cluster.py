"""A store in ClickHouse beside one in files: chunks a second, bytes a sample; and a day of thousands of processes: the time of `top` over 24 hours, and
the cost at 1, 4 and 16 times as many processes up to these, which is drawn as an SVG into the file that OFFBEAT_BENCH_PLOT names.

The chunks of the day are made in ClickHouse: 50 services, each process a host of its own, a chunk a minute with 100 of the 1 000 stacks of its service.
Sums of chunks that roll-ups have are without entries, because no query reads them; those of the last 20 minutes, and all roll-ups, have theirs.
One ClickHouse without a replica. SPDX-License-Identifier: MIT"""
import os
import pathlib
import random
import sys
import time

from common import table

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test" / "serve"), str(ROOT / "test" / "store")]
from server_process import chunk_envelope, envelope, item  # noqa: E402
from serving import cpu_seconds, measure, send_all  # noqa: E402

SERVICES, STACKS, ALL_STACKS, DAY_NS, MINUTES = 50, 100, 1000, 86_400 * 10 ** 9, 1440
LEVELS = ((1, 600 * 10 ** 9), (2, 3600 * 10 ** 9))  # no whole day is in 24 hours that end now


def stacks_chunk(number, service, count):
    """COUNT stacks of a service, a sample each."""
    numbers = random.Random(service)
    names = [f"function_{service}_{i}" for i in range(400)]
    stacks = [[numbers.randrange(400) for _ in range(12)] for _ in range(ALL_STACKS)][:count]
    start = time.time() - 30
    return envelope(item("profile_chunk", {
        "version": "2", "profiler_id": f"{service + 1:032x}", "chunk_id": f"{number:032x}", "platform": "python", "release": f"service-{service}@1",
        "environment": "test", "client_sdk": {"name": "test", "version": "1"},
        "profile": {"frames": [{"function": name, "in_app": True} for name in names], "stacks": stacks,
                    "samples": [{"timestamp": round(start + i * 0.001, 6), "stack_id": i, "thread_id": "1"} for i in range(count)],
                    "thread_metadata": {"1": {"name": "MainThread"}}}}, platform="python"))


def columns_of(store, name):
    return store.servers[0].query(f"SELECT name FROM system.columns WHERE database = '{store.database}' AND table = '{name}'").split()


def select(store, name, changes):
    return ", ".join(f"{changes[column]} AS {column}" if column in changes else column for column in columns_of(store, name))


def insert(store, into, changes, source, settings=3600):
    names = ", ".join(columns_of(store, into))
    store.servers[0].query(f"INSERT INTO {store.database}.{into} ({names}) SELECT {select(store, into, changes)} FROM {source}", timeout=settings)


def fill(store, processes, now_ns):
    """Rows of PROCESSES over 24 hours, from the rows of two chunks of each service: one with few, one with all stacks."""
    database, each = store.database, processes // SERVICES
    query = lambda statement: store.servers[0].query(statement, timeout=3600)  # noqa: E731
    for name in ("sum", "chunk", "raw"):
        few = f"id IN (SELECT id FROM {database}.chunk WHERE samples = {STACKS})"
        query(f"CREATE TABLE {database}.few_{name} ENGINE = Memory AS SELECT * FROM {database}.{name} WHERE {few}")
    query(f"CREATE TABLE {database}.all_sum ENGINE = Memory AS SELECT * FROM {database}.sum WHERE id IN (SELECT id FROM {database}.chunk WHERE samples = "
          f"{ALL_STACKS})")
    for name in ("sum", "chunk", "raw"):
        query(f"TRUNCATE TABLE {database}.{name}")
    first_ns, fresh_ns = now_ns - DAY_NS, now_ns - 20 * 60 * 10 ** 9
    step = max(1, min(60, 1500 // each))  # minutes of an insertion: a block of all is in memory
    for begin in range(0, MINUTES, step):
        grid = f"(SELECT number FROM system.numbers LIMIT {each * min(step, MINUTES - begin)})"
        start = f"toUInt64({first_ns} + ({begin} + intDiv(number, {each})) * 60000000000 + number % {each} * 1000000)"
        ident = f"toFixedString(substring(MD5(concat(service, toString(number + {begin} * 1000003))), 1, 16), 16)"
        host = f"concat('pod-', service, '-', toString(number % {each}))"
        day = f"toDate(toUInt32(intDiv({start}, 1000000000)))"
        common = {"id": ident, "day": day, "host": host, "start_ns": start}
        cross = lambda name: f"{database}.few_{name} CROSS JOIN {grid}"  # noqa: E731
        insert(store, "sum", common | {"first_ns": start, "last_ns": f"{start} + 59000000000",
                                       "entries": f"if({start} >= {fresh_ns}, entries, substring(entries, 1, 1))"}, cross("sum"))
        insert(store, "chunk", common | {"end_ns": f"{start} + 59000000000", "received_ns": f"{start} + 60000000000"}, cross("chunk"))
        insert(store, "raw", common | {"end_ns": f"{start} + 59000000000", "received_ns": f"{start} + 60000000000", "payload": "''", "size": "toUInt64(0)"}, cross("raw"))
    for level, step in LEVELS:
        made = (f"(SELECT service, intDiv(start_ns, {step}) * {step} AS bucket, count() AS n, groupBitXor(reinterpretAsUInt64(substring(toString(id), 1, 8))) AS x, "
                f"min(first_ns) AS f, max(last_ns) AS l, max(day) AS d FROM {database}.sum WHERE level = 0 GROUP BY service, bucket) ANY INNER JOIN "
                f"{database}.all_sum USING service")
        insert(store, "sum", {"level": f"toUInt8({level})", "start_ns": "bucket", "inputs": "n", "inputs_xor": "x", "first_ns": "f", "last_ns": "l", "day": "d",
                              "id": f"toFixedString(substring(MD5(concat(service, toString(bucket), '-{level}')), 1, 16), 16)", "set_rows": "toUInt64(1)"}, made)


def text_of(time_ns):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_ns // 10 ** 9))


def day_of(processes, queries=20):
    """(median, 95th percentile, CPU seconds of the server and of ClickHouse for a query) of `top` over 24 hours."""
    from store_kinds import cluster
    with cluster() as store:
        running = store.server()
        for service in range(SERVICES):
            for number, count in ((2 * service, STACKS), (2 * service + 1, ALL_STACKS)):
                if running.send(stacks_chunk(number, service, count)).status != 200:
                    raise RuntimeError("a chunk was not taken")
        if running.stop() != 0:
            raise RuntimeError("the server did not stop")
        now_ns = int(time.time()) * 10 ** 9
        for one in pathlib.Path(store.folder, "inserts").glob("*.rows"):
            one.unlink()  # they would be sent again
        fill(store, processes, now_ns)
        running = store.server()
        route = f"top?type=samples&from={text_of(now_ns - DAY_NS)}&to={text_of(now_ns)}"
        total = running.read(route)["total"]  # looks at the days, which is kept for a minute
        cpu, begun = (cpu_seconds(running), cpu_seconds(store.servers[0])), time.monotonic()
        times = sorted(measure(lambda: running.read(route)) for _ in range(queries))
        used = (cpu_seconds(running) - cpu[0], cpu_seconds(store.servers[0]) - cpu[1])
        print(f"# {processes} processes: total {total}, {time.monotonic() - begun:.1f} s for {queries} queries", flush=True)
        if running.stop() != 0:
            raise RuntimeError("the server did not stop")
        print(f"# CPU seconds of a query: {used[0] / queries:.3f} of the server, {used[1] / queries:.3f} of ClickHouse", flush=True)
        return times[len(times) // 2], times[int(len(times) * 0.95)], used[0] / queries, used[1] / queries


def take_in(store, chunks):
    """(chunks a second, chunks a second of the server's CPU time, bytes a sample on disk)."""
    running = store.server(ack="spool")
    bodies = [chunk_envelope(number, samples=6000, start=time.time() - 60, functions=[f"f{i}" for i in range(2)], profiler=number % 20) for number in range(chunks)]
    cpu = cpu_seconds(running)
    seconds = measure(lambda: send_all(running, bodies))
    cpu = cpu_seconds(running) - cpu
    end = time.monotonic() + 120
    while len(running.read("chunks?limit=10000")["chunks"]) < chunks and time.monotonic() < end:
        time.sleep(0.2)
    if running.stop() != 0:
        raise RuntimeError("the server did not stop")
    if store.name == "clickhouse":
        size = int(store.servers[0].query(f"SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = '{store.database}'"))
    else:
        size = sum(path.stat().st_blocks * 512 for path in pathlib.Path(store.folder).iterdir())
    return chunks / seconds, chunks / cpu, size / (chunks * 6000)


def write_plot(path, rows):
    """ROWS: (processes, seconds), each four times as many as the one before."""
    width, height, left, bottom = 560, 300, 70, 250
    largest = max(seconds for _, seconds in rows)
    x = lambda i: left + i * (width - left - 40) / (len(rows) - 1)  # noqa: E731
    y = lambda seconds: bottom - 200 * (seconds / largest)  # noqa: E731
    points = " ".join(f"{x(i):.0f},{y(seconds):.0f}" for i, (_, seconds) in enumerate(rows))
    marks = "".join(f'<circle cx="{x(i):.0f}" cy="{y(seconds):.0f}" r="4"/><text x="{x(i):.0f}" y="{y(seconds) - 10:.0f}" text-anchor="middle">'
                    f'{1000 * seconds:.0f} ms</text><text x="{x(i):.0f}" y="{bottom + 20}" text-anchor="middle">{count}</text>'
                    for i, (count, seconds) in enumerate(rows))
    pathlib.Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">'
        f'<title>CPU time of a query over 24 hours by processes</title><rect width="{width}" height="{height}" fill="white"/>'
        f'<path d="M{left} 30V{bottom}H{width - 20}" fill="none" stroke="black"/><polyline points="{points}" fill="none" stroke="#0969da" stroke-width="2"/>'
        f'{marks}<text x="{width / 2}" y="{bottom + 42}" text-anchor="middle">processes</text>'
        f'<text x="{left}" y="20">CPU time of a query over 24 hours, of server and ClickHouse</text></svg>\n',
        encoding="utf-8")


def cluster(build, processes=5000):
    """PROCESSES: those of the day at one time; the plot has a sixteenth, a quarter and all of them."""
    sys.argv[1:] = [str(build)]  # the programs of store_kinds.py
    import clickhouse
    missing = clickhouse.missing()
    if missing:
        print(f"cluster: {missing} is not installed")
        return
    from store_kinds import cluster as new_cluster, days
    rows = [["500 chunks of 6 000 samples, 8 connections", "files", "clickhouse"]]
    taken = []
    for kind in (days, new_cluster):
        with kind() as store:
            taken.append(take_in(store, 500))
    for name, digits, index in (("chunks a second, acknowledged on disk", 0, 0), ("chunks a second of the server's CPU time", 0, 1), ("bytes a sample on disk", 2, 2)):
        rows.append([name, *(f"{one[index]:.{digits}f}" for one in taken)])
    table(rows)
    sizes = [processes // 16, processes // 4, processes]
    found = [(size, *day_of(size)) for size in sizes]
    table([["top over 24 hours", "median", "p95", "server CPU", "ClickHouse CPU"]] +
          [[f"{size} processes", *(f"{1000 * value:.0f} ms" for value in values)] for size, *values in found])
    if os.environ.get("OFFBEAT_BENCH_PLOT"):
        write_plot(os.environ["OFFBEAT_BENCH_PLOT"], [(size, values[2] + values[3]) for size, *values in found])
