"""Stacks of blocked threads taken without a signal, beside those that a signal gives, in real programs.
SPDX-License-Identifier: MIT"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from common import environment, table

COLUMNS = ["equal", "different", "moved", "incomplete", "needs a signal", "awake", "unanswered"]

PYTHON = """
import queue, select, socket, subprocess, threading, time
end = time.monotonic() + {seconds}
empty, lock, (left, right) = queue.Queue(), threading.Lock(), socket.socketpair()
lock.acquire()
left.settimeout(0.02)
def receive():
    try:
        left.recv(1)
    except TimeoutError:
        pass
def take():
    try:
        empty.get(timeout=0.02)
    except queue.Empty:
        pass
ways = [lambda: time.sleep(0.02), lambda: lock.acquire(timeout=0.02), lambda: select.select([left], [], [], 0.02), receive, take,
        lambda: subprocess.run(["sleep", "0.02"])]
def run(way):
    while time.monotonic() < end:
        way()
threads = [threading.Thread(target=run, args=(way,)) for way in ways for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

NODE = """
const fs = require('fs'), zlib = require('zlib'), {{ Worker, isMainThread }} = require('worker_threads');
if (isMainThread) for (let i = 0; i < 2; i++) new Worker(__filename);
setInterval(() => fs.readFile(__filename, () => {{}}), 5);
setInterval(() => zlib.deflate(Buffer.alloc(100000), () => {{}}), 20);
setTimeout(() => process.exit(0), {seconds} * 1000);
"""

JAVA = """
class Waits {{
    public static void main(String[] arguments) throws Exception {{
        long end = System.nanoTime() + {seconds} * 1000000000L;
        Object lock = new Object();
        var empty = new java.util.concurrent.LinkedBlockingQueue<String>();
        for (int i = 0; i < 12; i++) {{
            int way = i % 3;
            new Thread(() -> {{
                try {{
                    while (System.nanoTime() < end) {{
                        if (way == 0) Thread.sleep(20);
                        else if (way == 1) synchronized (lock) {{ lock.wait(20); }}
                        else empty.poll(20, java.util.concurrent.TimeUnit.MILLISECONDS);
                    }}
                }} catch (InterruptedException ended) {{
                }}
            }}).start();
        }}
    }}
}}
"""

RUST = """
use std::sync::{{mpsc, Condvar, Mutex}};
use std::{{thread, time::{{Duration, Instant}}}};
fn main() {{
    let end = Instant::now() + Duration::from_secs({seconds});
    let threads: Vec<_> = (0..12).map(|i| thread::spawn(move || {{
        let (_kept, silent) = mpsc::channel::<u8>();
        let pair = (Mutex::new(()), Condvar::new());
        while Instant::now() < end {{
            match i % 3 {{
                0 => thread::sleep(Duration::from_millis(20)),
                1 => drop(silent.recv_timeout(Duration::from_millis(20))),
                _ => drop(pair.1.wait_timeout(pair.0.lock().unwrap(), Duration::from_millis(20))),
            }}
        }}
    }})).collect();
    for thread in threads {{ thread.join().unwrap(); }}
}}
"""


class Server:
    """A server that runs under the checker while CLIENT keeps it busy, and is asked to end after that."""

    def __init__(self, command, client):
        self.command, self.client = command, client

    def run(self, env, folder, seconds):
        with subprocess.Popen(self.command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            time.sleep(2)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if subprocess.run(self.client, cwd=folder, capture_output=True, check=False, timeout=60).returncode != 0:
                    time.sleep(0.1)
            server.send_signal(signal.SIGTERM)


class Program:
    """A program that ends without a signal."""

    def __init__(self, *command):
        self.command = [str(word) for word in command]

    def run(self, env, folder, seconds):
        subprocess.run(self.command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                       timeout=seconds * 10 + 120)


def real_rustc():
    """The compiler itself, not the shim that runs it."""
    if not shutil.which("rustc"):
        return None
    root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=False).stdout.strip()
    path = pathlib.Path(root, "bin/rustc")
    return path if path.exists() else None


def redis(folder):
    """None if it is not installed. Debian's redis-tools has the server under another name; its redis-server starts one."""
    check = shutil.which("redis-check-rdb")
    if not check or not shutil.which("redis-benchmark"):
        return None
    program, socket = folder / "redis-server", f"{folder}/redis.socket"
    program.unlink(missing_ok=True)
    program.symlink_to(check)
    return Server([str(program), "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "yes", "--dir", str(folder)],
                  ["redis-benchmark", "-s", socket, "-n", "20000", "-t", "set,get,lpush", "-q"])


def mariadb(folder):
    """None if it is not installed."""
    if not all(map(shutil.which, ("mariadbd", "mariadb", "mariadb-install-db"))):
        return None
    data, socket = f"{folder}/mariadb", f"{folder}/mariadb.socket"
    done = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
                           f"--user={os.environ.get('USER', 'root')}"], capture_output=True, check=False)
    if done.returncode != 0:
        return None
    server = ["mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={socket}", "--skip-networking", "--user=root"]
    work = "create table if not exists test.t (i int); insert into test.t select seq from seq_1_to_20000; select count(*) from test.t;"
    return Server(server, ["mariadb", "--no-defaults", "-u", "root", f"--socket={socket}", "-e", work])


def programs(build, folder, seconds):
    """[(name, what to run, or None if it is not installed)]"""
    for name, text in (("waits.py", PYTHON), ("waits.js", NODE), ("Waits.java", JAVA), ("waits.rs", RUST)):
        (folder / name).write_text(text.format(seconds=seconds), encoding="ascii")
    rustc = real_rustc()
    if rustc:
        subprocess.run([rustc, "-O", "waits.rs", "-o", "waits"], cwd=folder, check=True)
    def installed(name, program):
        return program if shutil.which(name) else None
    return [
        ("C, -O2", Program(build / "bench/interruptions", seconds)),
        ("C, with frame pointers", Program(build / "bench/interruptions_with_frame_pointers", seconds)),
        ("python3", installed("python3", Program("python3", "waits.py"))),
        ("node", installed("node", Program("node", "waits.js"))),
        ("java", installed("java", Program("java", "Waits.java"))),
        ("redis-server", redis(folder)),
        ("mariadbd", mariadb(folder)),
        ("rustc", Program(rustc, "-O", "waits.rs", "-o", "again") if rustc else None),
        ("Rust, -O", Program("./waits") if rustc else None),
    ]


def blocked(build, seconds=10):
    print(f"Stacks of blocked threads without a signal, beside those with one, over {seconds} s")
    rows = [["program", *COLUMNS]]
    with tempfile.TemporaryDirectory(prefix="offbeat-bench-") as name:
        folder = pathlib.Path(name)
        for program, command in programs(build, folder, seconds):
            if not command:
                print(f"{program}: skipped, not installed")
                continue
            counts = folder / "counts"
            counts.unlink(missing_ok=True)
            command.run(environment(LD_PRELOAD=build / "bench/blocked.so", OFFBEAT_BENCH_BLOCKED=counts), folder, seconds)
            lines = [list(map(int, line.split())) for line in counts.read_text(encoding="ascii").splitlines()] if counts.exists() else []
            rows.append([program, *(str(sum(column)) for column in zip(*lines))] if lines else [program, *["-"] * len(COLUMNS)])
    table(rows)
