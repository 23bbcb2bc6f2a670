"""Programs that run until they are ended, for a recorder to attach to. Each is a function of a folder and yields what was started: the
process to attach to, and whether perf has names for its code. SPDX-License-Identifier: MIT"""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time

C = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FRAME __attribute__((noinline, noclone))

FRAME static int compare(const void *left, const void *right) { return *(const int *)left - *(const int *)right; }

FRAME static int sorts(unsigned *random, unsigned count) {
    int *numbers = malloc(count * sizeof(*numbers)), result;
    for (unsigned i = 0; i < count; i++) numbers[i] = (int)((*random = *random * 1103515245 + 12345) >> 8);
    qsort(numbers, count, sizeof(*numbers), compare);
    result = numbers[count / 2];
    free(numbers);
    return result;
}

FRAME static int sums(unsigned *random, unsigned depth) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 4000; i++) sum = sum * 31 + (i ^ *random);
    *random = sum;
    return depth > 0 ? sums(random, depth - 1) + (int)sum : (int)sum;
}

FRAME static void *works(void *pause_us) {
    unsigned random = 1;
    volatile int result = 0;
    for (;;) {
        result += sorts(&random, 300) + sums(&random, 12);
        if (pause_us) usleep((useconds_t)(uintptr_t)pause_us);
    }
    return NULL;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    uintptr_t pause_us = count > 2 ? (uintptr_t)atoi(arguments[2]) : 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (int i = 1; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, works, (void *)pause_us) != 0) return 1;
    }
    puts("ready");
    fflush(stdout);
    return works((void *)pause_us) != NULL;
}
"""

GO = """package main

import (
	"fmt"
	"sort"
	"strings"
)

func words(count int) []string {
	found := []string{}
	for i := 0; i < count; i++ {
		found = append(found, fmt.Sprintf("word %d", i*7919%count))
	}
	return found
}

func work(done chan string) {
	for {
		found := words(2000)
		sort.Strings(found)
		done <- strings.Join(found, " ")
	}
}

func main() {
	println("ready")
	done := make(chan string)
	go work(done)
	go work(done)
	for {
		<-done
	}
}
"""

RUST = """
use std::collections::{BTreeMap, HashMap};
#[inline(never)]
fn counts(round: u64) -> HashMap<String, u64> {
    let mut found = HashMap::new();
    for i in 0..3000u64 { *found.entry(format!("key {}", (i * 7919 + round) % 500)).or_insert(0) += i; }
    found
}
#[inline(never)]
fn orders(found: HashMap<String, u64>) -> u64 {
    let ordered: BTreeMap<String, u64> = found.into_iter().collect();
    ordered.values().enumerate().fold(0, |sum, (i, value)| sum * 31 + value * i as u64)
}
fn main() {
    println!("ready");
    let mut sum = 0u64;
    for round in 0.. { sum = std::hint::black_box(sum.wrapping_add(orders(counts(round)))); }
}
"""

JAVA = """
import java.util.*;

class Work {
    static Map<String, Integer> counts(int round) {
        Map<String, Integer> found = new HashMap<>();
        for (int i = 0; i < 3000; i++) found.merge("key " + (i * 7919 + round) % 500, i, Integer::sum);
        return found;
    }
    static long orders(Map<String, Integer> found) {
        long sum = 0;
        for (var entry : new TreeMap<>(found).entrySet()) sum = sum * 31 + entry.getValue();
        return sum;
    }
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] arguments) {
        long sum = 0;
        System.out.println("ready");
        for (int round = 0;; round++) {
            sum += orders(counts(round)) + fib(15);
            if (sum == 42) System.out.println(sum);
        }
    }
}
"""

NODE = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function counts(round) {
  const found = new Map();
  for (let i = 0; i < 3000; i++) { const key = 'key ' + (i * 7919 + round) % 500; found.set(key, (found.get(key) || 0) + i); }
  return found;
}
function orders(found) { return [...found].sort((a, b) => a[0] < b[0] ? -1 : 1).reduce((sum, [, value]) => (sum * 31 + value) % 65521, 0); }
console.log('ready');
for (let round = 0, sum = 0;; round++) { sum += orders(counts(round)) + fib(15); if (sum === 0.5) console.log(sum); }
"""

PYTHON = """
import json
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def counts(round):
    found = {}
    for i in range(3000):
        key = f"key {(i * 7919 + round) % 500}"
        found[key] = found.get(key, 0) + i
    return found
print("ready", flush=True)
for round in range(10 ** 9): json.loads(json.dumps(counts(round), sort_keys=True)), fib(12)
"""

NGINX = """
daemon off; error_log stderr crit; pid nginx.pid; worker_processes 1; USER
events { worker_connections 256; }
http {
  access_log off; gzip on; gzip_min_length 1; gzip_types text/plain; client_body_temp_path body; proxy_temp_path proxy;
  fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi; types { text/plain txt; }
  server { listen 127.0.0.1:PORT; root FOLDER; }
}
"""


class Missing(Exception):
    """A program that is not installed."""


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Missing(f"{program} is not installed")


def ordinary_user():
    return {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


@contextlib.contextmanager
def started(*command, is_ready=True, **options):
    """COMMAND, after its first line if IS_READY, until the end of the block; with the processes that it has started."""
    if is_ready:
        options["stdout"] = subprocess.PIPE
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL, **options}
    process = subprocess.Popen([str(word) for word in command], start_new_session=True, **options)
    try:
        if is_ready and not process.stdout.readline():
            raise Missing(f"{command[0]} does not run")
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
        if process.stdout:
            process.stdout.close()


def wait_for(is_there, what):
    deadline = time.monotonic() + 60
    while not is_there():
        if time.monotonic() > deadline:
            raise Missing(f"{what} does not answer")
        time.sleep(0.05)


def succeeds(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, check=False, **options).returncode == 0


def built(folder, name, source, *command):
    (folder / name).write_text(source, encoding="utf-8")
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "CGO_ENABLED": "0", "GOCACHE": f"{folder}/cache", "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
    if done.returncode != 0:
        raise Missing(f"{command[0]}: {done.stderr.strip()[:200]}")


@contextlib.contextmanager
def redis(folder, load=("-q", "-l", "-n", "1000000", "-c", "20", "-P", "8", "-t", "set,get,lpush,lrange_100")):
    need("redis-benchmark", "redis-check-rdb")
    server = folder / "redis-server"  # redis-check-rdb is the same program under another name
    server.symlink_to(shutil.which("redis-check-rdb"))
    place = folder / "socket"
    command = (server, "--port", "0", "--unixsocket", place, "--save", "", "--daemonize", "no")
    with started(*command, is_ready=False, cwd=folder) as process:
        wait_for(lambda: succeeds("redis-cli", "-s", place, "ping"), "redis-server")
        with started("redis-benchmark", "-s", place, *load, is_ready=False) if load else contextlib.nullcontext():
            yield process.pid


@contextlib.contextmanager
def postgres(folder, load=("-n", "-S", "-c", "2", "-T", "3600")):
    programs = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=None)
    if not programs or not shutil.which("pgbench"):
        raise Missing("postgresql is not installed")
    folder.chmod(0o777)
    user, client = {"cwd": folder, **ordinary_user()}, ("-h", folder, "-U", "tester")
    if not succeeds(programs / "initdb", "-D", "data", "-A", "trust", "-U", "tester", "--no-sync", **user):
        raise Missing("initdb fails")
    with started(programs / "postgres", "-D", "data", "-k", folder, "-h", "", "-F", is_ready=False, **user) as process:
        wait_for(lambda: succeeds(programs / "pg_isready", *client), "postgres")
        succeeds("pgbench", "-i", "-q", "-s", "2", *client, "postgres", **user)
        with started("pgbench", *load, *client, "postgres", is_ready=False, **user) if load else contextlib.nullcontext():
            yield process.pid


@contextlib.contextmanager
def nginx(folder):
    need("nginx", "wrk")
    folder.chmod(0o755)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    user = "user nobody nogroup;" if os.geteuid() == 0 else ""
    text = NGINX.replace("PORT", str(port)).replace("USER", user).replace("FOLDER", str(folder))
    (folder / "nginx.conf").write_text(text, encoding="ascii")
    (folder / "page.txt").write_text("".join(f"line {i * 7919 % 1000} of a page\n" for i in range(1000)), encoding="ascii")
    with started("nginx", "-p", folder, "-c", "nginx.conf", is_ready=False, cwd=folder) as process:
        url = f"http://127.0.0.1:{port}/page.txt"
        wait_for(lambda: succeeds("curl", "-sf", url), "nginx")
        with started("wrk", "-t", "1", "-c", "20", "-d", "3600", "-H", "Accept-Encoding: gzip", url, is_ready=False):
            yield process.pid


@contextlib.contextmanager
def mariadb(folder):
    need("mariadbd", "mariadb", "mariadb-install-db")
    folder.chmod(0o777)
    place = folder / "socket"
    user = {"cwd": folder, **ordinary_user()}
    name = "nobody" if user.get("user") else os.environ.get("USER", "root")
    if not succeeds("mariadb-install-db", "--no-defaults", f"--datadir={folder}/data", "--auth-root-authentication-method=normal",
                    "--skip-test-db", f"--user={name}"):
        raise Missing("mariadb-install-db fails")
    options = ("--no-defaults", f"--datadir={folder}/data", f"--socket={place}", "--skip-networking", f"--user={name}",
               "--lc-messages-dir=/usr/share/mysql")
    client = ("mariadb", "--no-defaults", "-uroot", "-S", place)
    fill = ("create database b; use b; create table t (id int primary key auto_increment, name varchar(30), amount double) engine=innodb; "
            "insert into t (name, amount) select concat('n', seq % 991), seq * 7 % 1000 from seq_1_to_20000")
    ask = "select name, sum(amount) s from b.t where amount > 3 group by name order by s desc, name limit 3;\n" * 100000
    (folder / "ask.sql").write_text(ask, encoding="ascii")
    with started("mariadbd", *options, is_ready=False, cwd=folder) as process, open(folder / "ask.sql", encoding="ascii") as questions:
        wait_for(lambda: succeeds(*client, "-e", "select 1"), "mariadbd")
        succeeds(*client, "-e", fill)
        with started(*client, is_ready=False, stdin=questions):
            yield process.pid


@contextlib.contextmanager
def go(folder, flags="-w"):
    need("go")
    built(folder, "work.go", GO, "go", "build", "-ldflags", flags, "-o", "work", "work.go")
    with started(folder / "work", stderr=subprocess.STDOUT) as process:
        yield process.pid


def stripped_go(folder):
    return go(folder, "-s -w")


@contextlib.contextmanager
def rust(folder):
    need("rustc")
    built(folder, "work.rs", RUST, "rustc", "-O", "work.rs")
    with started(folder / "work") as process:
        yield process.pid


def build_c(folder, *flags, compiler="gcc"):
    need(compiler)
    built(folder, "work.c", C, compiler, "-O2", *flags, "-o", "work", "work.c", "-pthread")
    folder.chmod(0o755)
    return folder / "work"


@contextlib.contextmanager
def set_user_id(folder):
    program = build_c(folder)
    program.chmod(0o4755)
    with started(program, **ordinary_user()) as process:
        yield process.pid


@contextlib.contextmanager
def musl(folder, *flags):
    program = build_c(folder, "-fasynchronous-unwind-tables", *flags, compiler="musl-gcc")
    with started(program) as process:
        yield process.pid


def static_musl(folder):
    return musl(folder, "-static")


@contextlib.contextmanager
def thousand_threads(folder):
    with started(build_c(folder), 1000, 200000) as process:
        yield process.pid


@contextlib.contextmanager
def other_namespaces(folder):
    """Its file is in a file system that only its mount namespace has, and its own number is 1. perf finds a copy of the file."""
    program = build_c(folder)
    (folder / "inner").mkdir()
    shutil.copy2(program, folder / "inner/work")
    inside = f"mount -t tmpfs none {folder}/inner && cp {program} {folder}/inner/work && exec {folder}/inner/work"
    with started("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside) as outer:
        yield int(pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text(encoding="ascii").split()[0])


@contextlib.contextmanager
def node(folder, *flags):
    need("node")
    (folder / "work.js").write_text(NODE, encoding="utf-8")
    with started("node", "--perf-basic-prof", *flags, "work.js", cwd=folder) as process:
        time.sleep(1)
        yield process.pid


@contextlib.contextmanager
def java(folder, *flags):
    need("java", "javac", "jcmd")
    built(folder, "Work.java", JAVA, "javac", "Work.java")
    with started("java", "-Xshare:auto", *flags, "Work", cwd=folder) as process:
        time.sleep(5)  # until the hot methods are compiled
        succeeds("jcmd", process.pid, "Compiler.perfmap")
        yield process.pid


def java_with_frame_pointers(folder):
    return java(folder, "-XX:+PreserveFramePointer")


@contextlib.contextmanager
def python3(folder):
    (folder / "work.py").write_text(PYTHON, encoding="utf-8")
    with started("/usr/bin/python3", "work.py", cwd=folder) as process:
        yield process.pid


PROGRAMS = {"redis-server": redis, "postgres": postgres, "nginx": nginx, "mariadbd": mariadb, "Go, static": go,
           "Go, static, stripped": stripped_go, "Rust": rust, "set-user-ID": set_user_id, "node": node, "JVM, frame pointers": java_with_frame_pointers,
           "JVM": java, "python3": python3, "musl": musl, "musl, static": static_musl, "other namespaces": other_namespaces,
           "1 000 threads": thousand_threads}
