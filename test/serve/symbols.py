"""Names on the server: debug files are uploaded, before and after the profiles that need them. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import concurrent.futures
import ctypes
import gzip
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import Server, envelope, item, new_project, new_token, running  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
START = 1_736_928_000
PROGRAM = """
static inline __attribute__((always_inline)) long mix(long x) { return x * 7 + %d; }
__attribute__((noinline)) long work(long n) { for (long i = 0; i < n; i++) n ^= mix(n + i); return n; }
__attribute__((noinline)) long outer(long n) { return work(n) + 1; }
int main(int count, char **words) { return (int)outer(count); }
"""


def build_id_of(path):
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    return notes.split("Build ID: ")[1].split()[0]


def debug_id_of(build_id):
    raw = bytes.fromhex(build_id)
    text = (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:16]).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Program:
    """A program in FOLDER, stripped, with its debug file beside it. NUMBER makes its code and build id another one's."""

    def __init__(self, folder, number=1):
        self.path, self.debug, self.whole = (pathlib.Path(folder) / f"program{number}{end}" for end in ("", ".debug", ".whole"))
        source = pathlib.Path(folder) / "program.c"
        source.write_text(PROGRAM % number, encoding="utf-8")
        subprocess.run(["cc", "-g", "-O1", "-Wl,--build-id", "-o", self.whole, source], check=True)
        subprocess.run(["objcopy", "--only-keep-debug", self.whole, self.debug], check=True)
        subprocess.run(["strip", "-o", self.path, self.whole], check=True)
        self.build_id = build_id_of(self.whole)
        names = subprocess.run(["nm", self.whole], check=True, capture_output=True, text=True).stdout.splitlines()
        self.symbols = {line.split()[2]: int(line.split()[0], 16) for line in names if len(line.split()) == 3}
        self.inlined = self.find_inlined()

    def find_inlined(self):
        """An address of work where mix was inlined."""
        for address in range(self.symbols["work"], self.symbols["work"] + 64):
            lines = subprocess.run(["addr2line", "-f", "-i", "-e", self.whole, hex(address)], check=True, capture_output=True, text=True).stdout.splitlines()
            if lines[::2] == ["mix", "work"]:
                return address
        raise AssertionError("the compiler did not inline mix")

    def debug_id(self):
        return debug_id_of(self.build_id)

    def chunk(self, number, base=0x560000000000, start=START, placeholder=False, code_file=None, **image):
        """Ten samples, 10 ms apart, in mix inlined into work, called by outer called by main: addresses and nothing else."""
        inside = [base + self.inlined] + [base + self.symbols[name] + 5 for name in ("outer", "main")]
        frames = [{"instruction_addr": hex(address), "platform": "native"} for address in inside]
        if placeholder:
            for frame, name in zip(frames, ("work", "outer", "main")):
                frame |= {"function": f"{self.path.name}+{self.symbols[name]:#x}"}
        images = {"type": "symbolic", "debug_id": self.debug_id(), "code_file": str(code_file or self.path), "image_addr": hex(base),
                  "image_size": 0x10000} | image
        return {"version": "2", "profiler_id": f"{number:032x}", "chunk_id": f"{number:032x}", "platform": "native", "release": "native@1",
                "environment": "test", "client_sdk": {"name": "test", "version": "1"}, "debug_meta": {"images": [images]},
                "profile": {"frames": frames, "stacks": [[0, 1, 2]], "thread_metadata": {"1": {"name": "main"}},
                            "samples": [{"timestamp": start + i * 0.01, "stack_id": 0, "thread_id": "1"} for i in range(10)]}}


def send(server, chunk):
    answer = server.send(envelope(item("profile_chunk", chunk, platform="native")))
    check_equal(answer.status, 200, f"status: {server.read('rejected')}")


def upload(server, *paths, url=None):
    return subprocess.run([OFFBEAT, "upload-debug", "--url", url or server.upload_url, *paths], capture_output=True, text=True, timeout=250)


def functions(server, query=""):
    return {one["name"]: one["self"] for one in server.read(f"top?{query}")["functions"]}


def rounded(server):
    """In hundredths of a second."""
    return {name: round(value / 10_000_000) for name, value in functions(server).items()}


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def post(server, path, body, kind="application/json", token=None):
    return server.request("POST", path, body, bearer(token or server.upload_token) | {"Content-Type": kind})


def assemble(server, body, project="1", chunk_size=4 << 20, token=None):
    chunks = [body[i:i + chunk_size] for i in range(0, len(body), chunk_size)]
    wanted = {hashlib.sha1(body).hexdigest(): {"name": "x", "chunks": [hashlib.sha1(one).hexdigest() for one in chunks]}}
    answer = post(server, f"/api/0/projects/any/{project}/files/difs/assemble/", json.dumps(wanted), token=token)
    return answer if answer.status != 200 else answer.json()[hashlib.sha1(body).hexdigest()]


def form(*parts):
    """(kind, name, bytes) each."""
    body = b"".join(b'--x\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n%s\r\n' % (kind.encode(), name.encode(), data)
                    for kind, name, data in parts)
    return body + b"--x--\r\n"


def send_chunk(server, data, name=None, kind="file"):
    name = hashlib.sha1(data).hexdigest() if name is None else name
    return post(server, "/api/0/organizations/any/chunk-upload/", form((kind, name, data)), "multipart/form-data; boundary=x")


def finish(server, body):
    """The last state of a file whose chunks were sent."""
    for _ in range(2000):
        state = assemble(server, body)
        if state["state"] not in ("created", "assembling"):
            break
        time.sleep(0.02)
    return state


# --- Names ------------------------------------------------------------------------------------------------------------


@case
def a_debug_file_names_what_came_before_it_and_after_it():
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT) as server:
        program = Program(folder)
        chunks = [program.chunk(1), program.chunk(2, base=0x7f0000000000, start=START + 1), program.chunk(3, start=START + 2, placeholder=True),
                  program.chunk(4, start=START + 3, image_vmaddr="0x0")]
        send(server, chunks[0])
        send(server, chunks[1])
        found = functions(server)
        check_equal((len(found), found.get(f"program1+{program.inlined:#x}", 0) // 10_000), (3, 17_999), f"functions of two processes: {found}")
        decoded = "top?tag_ignore=none=none"  # sums have no tags
        check_equal(server.read("top"), server.read(decoded), "sums and decoded chunks without names")
        done = upload(server, program.debug)
        check_equal((done.returncode, done.stdout.split()[:2]), (0, ["uploaded", program.build_id]), done.stderr)
        send(server, chunks[2])
        send(server, chunks[3])
        check_equal(rounded(server), {"mix": 36, "work": 0, "outer": 0, "main": 0}, "functions")
        check_equal(server.read("top"), server.read(decoded), "sums and decoded chunks")
        for query in ("seconds=1000000000", f"from={START + 0.005}", f"profiler={1:032x}", "release=native@1&focus=work"):
            check_equal(set(functions(server, query)), {"mix", "work", "outer", "main"}, f"functions of {query}")
        check({"mix", "work", "outer", "main"} <= {box["name"] for box in server.read("flame")["boxes"]}, "flame graph")
        chart = {box["name"] for box in server.read(f"flamechart?profiler={1:032x}&thread=1")["boxes"]}
        check({"mix", "work", "outer", "main"} <= chart, f"flamechart: {chart}")
        collapsed = server.get("export?format=collapsed").body.decode()
        check("main;outer;work;mix_[i] 3" in collapsed, collapsed)
        pprof = subprocess.run([OFFBEAT, "traces", server.url], capture_output=True, text=True).stdout
        check("mix" in pprof and "program.c" in subprocess.run([OFFBEAT, "raw", server.url], capture_output=True, text=True).stdout, pprof)
        callers = server.read("function?name=work")["callers"]
        check_equal([one["name"] for one in callers], ["outer"], "callers")
        for number, chunk in enumerate(chunks, 1):
            check_equal(server.get(f"raw?chunk={number:032x}").json(), chunk, "the chunk as it was sent")
        metrics = server.request("GET", "/metrics", headers=server.read_header()).body.decode()
        check("offbeat_symbol_readers_failed_total 0\n" in metrics, metrics)
        asked = metrics.split("offbeat_symbol_readers_total ")[1].split("\n")[0]
        functions(server)
        check(f"offbeat_symbol_readers_total {asked}\n" in server.request("GET", "/metrics", headers=server.read_header()).body.decode(),
              "a process was started for names that are in memory")
        check_equal(server.stop(), 0, "exit status")
        data = server.process.args[3]
        with running(OFFBEAT, data=data) as again:
            check_equal(rounded(again), {"mix": 36, "work": 0, "outer": 0, "main": 0}, "functions after a restart")
            check_equal(again.stop(), 0, "exit status")
        copy = pathlib.Path(folder) / "copy"
        subprocess.run([OFFBEAT, "store", "backup", copy, "--data", data], check=True, capture_output=True)
        with running(OFFBEAT, data=copy) as again:
            check_equal(rounded(again), {"mix": 36, "work": 0, "outer": 0, "main": 0}, "functions of a backup")
            check_equal(again.stop(), 0, "exit status")


@case
def another_build_names_nothing_and_no_path_of_a_profile_is_opened():
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT) as server:
        program, other = Program(folder, 1), Program(folder, 2)
        watch = libc.inotify_init1(os.O_NONBLOCK)
        check(libc.inotify_add_watch(watch, os.fsencode(program.whole), 0x20 | 0x1) >= 0, "inotify is not available")  # IN_OPEN, IN_ACCESS
        send(server, program.chunk(1, code_file=program.whole))
        send(server, program.chunk(2, code_file=program.whole, start=START + 1, placeholder=True))
        check_equal(upload(server, other.debug).returncode, 0, "exit status")
        names = set(functions(server)) | set(functions(server, f"profiler={1:032x}"))
        check(all("+0x" in name for name in names), f"names from nowhere: {names}")
        try:
            opened = os.read(watch, 4096)
        except BlockingIOError:
            opened = b""
        check_equal(opened, b"", "events of a file that only the profile names")
        program.whole.read_bytes()
        check(os.read(watch, 4096), "the watch does not work")
        os.close(watch)


# --- Slow files -------------------------------------------------------------------------------------------------------

# Functions whose names fill a symbol index for half a second: long enough to stop the process that makes it.
MANY_FUNCTIONS = """
.file 1 "slow.c"
.text
.globl main
main: nop
.altmacro
.macro one number
.type f\\number, @function
f\\number:
.loc 1 \\number 1
nop
.size f\\number, . - f\\number
.endm
.set i, 1
.rept 100000
one %i
.set i, i + 1
.endr
"""


def readers(server):
    """The processes that read a debug file for SERVER."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
            if parent == server.process.pid and b"--read-symbols" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            pass  # it ended
    return found


def stop_reader(server):
    """Waits for a process that reads a debug file, and stops it."""
    for _ in range(10000):
        for reader in readers(server):
            os.kill(reader, signal.SIGSTOP)
            return reader
    raise AssertionError("no debug file was read")


def timed(call, *arguments):
    begun = time.monotonic()
    return call(*arguments), time.monotonic() - begun


@case
def a_slow_debug_file_delays_only_queries_that_need_it():
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT) as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
        known, other, slow = Program(folder, 1), Program(folder, 2), pathlib.Path(folder) / "slow"
        slow.with_suffix(".s").write_text(MANY_FUNCTIONS, encoding="utf-8")
        subprocess.run(["cc", "-g", "-nostdlib", "-Wl,-e,main", "-Wl,--build-id", "-o", slow, slow.with_suffix(".s")], check=True)
        build_id = build_id_of(slow)
        check_equal(upload(server, known.debug, other.debug, slow).returncode, 0, "exit status")
        for path in pathlib.Path(server.process.args[3], "debug/1", build_id[:32]).glob("*.names"):
            path.unlink()
        send(server, known.chunk(1) | {"release": "known@1"})
        send(server, other.chunk(2) | {"release": "other@1"})
        chunk = known.chunk(3)
        chunk["debug_meta"]["images"][0] |= {"debug_id": debug_id_of(build_id), "code_file": "slow"}
        send(server, chunk | {"release": "slow@1"})
        check("work" in functions(server, "service=known"), "no names")
        slow_queries = [pool.submit(functions, server, "service=slow")]
        reader = stop_reader(server)
        slow_queries += [pool.submit(functions, server, "service=slow") for _ in range(3)]
        time.sleep(1.5)
        for service in ("known", "other"):  # in memory; to be read
            names, seconds = timed(functions, server, f"service={service}")
            check("work" in names and seconds < 5, f"{service}: {names} after {seconds:.1f} s")
        rejected, seconds = timed(server.get, "top?service=slow")
        check_equal((rejected.status, rejected.headers.get("Retry-After"), seconds < 5), (503, "5", True), f"{rejected.body} after {seconds:.1f} s")
        check_equal(readers(server), [reader], "processes for one file")
        os.kill(reader, signal.SIGCONT)
        for query in slow_queries:
            check(any(name.startswith("f") for name in query.result()), f"functions: {query.result()}")


# --- Uploads ----------------------------------------------------------------------------------------------------------


@case
def folders_are_searched_and_what_is_there_is_not_sent_again():
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT) as server:
        program = Program(folder)
        for expected in ("2 uploaded, 0 were there; 2 other files have no symbols", "0 uploaded, 2 were there; 2 other files have no symbols"):
            done = upload(server, folder)
            check_equal((done.returncode, done.stdout.splitlines()[-1]), (0, expected), done.stderr)
        check_equal(upload(server, "--quiet", folder).stdout, "", "standard output with --quiet")
        line = json.loads(upload(server, "--json", program.debug).stdout)
        check_equal(line, {"state": "was there", "build_id": program.build_id, "file": str(program.debug)}, "JSON")
        listed = server.read("debug-files")["debug_files"]
        check_equal({(one["objectName"], one["data"]["type"], one["codeId"], one["debugId"]) for one in listed},
                    {("program1.debug", "dbg", program.build_id, program.debug_id()), ("program1.whole", "exe", program.build_id, program.debug_id())},
                    "debug files")
        for arguments, status, said in (([program.path], 1, "neither symbols nor debug information"), ([folder + "/none"], 3, "No such file"),
                                        ([folder + "/program.c"], 1, "not an ELF file")):
            done = upload(server, *arguments)
            check(done.returncode == status and said in done.stderr, f"{arguments}: {done.returncode} {done.stderr}")
        stripped = pathlib.Path(folder, "stripped")
        stripped.mkdir()
        shutil.copy(program.path, stripped)
        for arguments, said in (([stripped], "none of 1 files has symbols"), ([stripped, program.path], "it was stripped")):
            done = upload(server, *arguments, url="http://" + "0" * 32 + "@127.0.0.1:1/1")  # where nobody listens
            check(done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1, f"{arguments}: {done.returncode} {done.stderr}")
        for url, status in ((server.upload_url.replace(server.upload_token, server.token), 3), (server.upload_url.replace(server.upload_token, server.key), 3),
                            (server.upload_url[:-1] + "7", 3), ("http://x", 2), ("http://" + "0" * 32 + "@127.0.0.1:1/1", 3)):
            done = upload(server, program.debug, url=url)
            check(done.returncode == status and len(done.stderr.splitlines()) == 1, f"{url}: {done.returncode} {done.stderr}")


@case
def hostile_requests_are_rejected():
    with running(OFFBEAT) as server:
        bomb, sums = gzip.compress(b"\0" * (64 << 20)), "/api/0/projects/any/1/files/difs/assemble/"
        for answer, status in ((send_chunk(server, bomb, hashlib.sha1(b"").hexdigest(), "file_gzip"), 413), (send_chunk(server, b"x", "0" * 40), 400),
                               (send_chunk(server, b"x", "../../../../etc/passwd"), 400), (send_chunk(server, b"\x1f\x8b broken", kind="file_gzip"), 400),
                               (send_chunk(server, b"x" * ((4 << 20) + 1)), 413), (post(server, sums, "[]"), 400), (post(server, sums, "{"), 400),
                               (post(server, sums, '{"../x": {"chunks": []}}'), 400), (post(server, sums, json.dumps({"0" * 40: {"chunks": ["/"]}})), 400),
                               (post(server, sums, json.dumps({"0" * 40: {"debug_id": "../..", "chunks": []}})), 400),
                               (post(server, sums, json.dumps({f"{i:040x}": {"chunks": []} for i in range(1001)})), 413),
                               (post(server, sums, json.dumps({"0" * 40: {"chunks": ["0" * 40] * 513}})), 413),
                               (post(server, sums.replace("/1/", "/9/"), "{}"), 404),
                               (post(server, "/api/0/organizations/any/chunk-upload/", b"x", "text/plain"), 400)):
            check_equal(answer.status, status, str(answer.body[:200]))
        check_equal(send_chunk(server, b"abc").status, 200, "status of a chunk")
        wrong = post(server, sums, json.dumps({"1" * 40: {"name": "x", "chunks": [hashlib.sha1(b"abc").hexdigest()]}})).json()["1" * 40]
        check_equal(wrong["state"], "created", str(wrong))
        while wrong["state"] in ("created", "assembling"):
            wrong = post(server, sums, json.dumps({"1" * 40: {"name": "x", "chunks": [hashlib.sha1(b"abc").hexdigest()]}})).json()["1" * 40]
        check_equal((wrong["state"], "do not add up" in wrong["detail"]), ("error", True), str(wrong))
        check_equal(finish(server, b"abc")["detail"], "not an ELF file", "detail")
        check_equal(assemble(server, b"unknown")["missingChunks"], [hashlib.sha1(b"unknown").hexdigest()], "missing chunks")
        check_equal(server.read("debug-files")["debug_files"], [], "debug files")


@case
def damaged_files_fail_alone():
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT) as server:
        program = Program(folder)
        whole, maker, states = program.debug.read_bytes(), random.Random(1), {}
        for number in range(40):
            body = bytearray(whole[:maker.randrange(64, len(whole))] if number % 4 == 0 else whole)
            for _ in range(maker.choice((1, 10, 400))):
                body[maker.randrange(len(body))] = maker.choice((0, 0xff, maker.randrange(256)))
            body = bytes(body)
            check_equal(send_chunk(server, body).status, 200, "status of a chunk")
            state = finish(server, body)
            check(state["state"] in ("ok", "error"), str(state))
            states[state["state"]] = states.get(state["state"], 0) + 1
        print(f"# {states}")
        send(server, program.chunk(1))
        server.read("top")  # whatever the names are: there is an answer
        for one in server.read("debug-files")["debug_files"]:
            pathlib.Path(server.process.args[3], "debug/1").joinpath(program.build_id[:32], one["sha1"] + ".names").unlink(missing_ok=True)
        check_equal(upload(server, program.debug).returncode, 0, "exit status")
        check(server.process.poll() is None, server.said())


@case
def a_damaged_symbol_index_is_made_again():
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT) as server:
        program = Program(folder)
        upload(server, program.debug)
        index, = pathlib.Path(server.process.args[3], "debug/1", program.build_id[:32]).glob("*.names")
        kept = bytearray(index.read_bytes())
        kept[len(kept) // 2] ^= 0xff
        index.write_bytes(kept)
        send(server, program.chunk(1))
        check_equal(set(functions(server)), {"mix", "work", "outer", "main"}, "functions")
        check("failed_total 0\n" in server.request("GET", "/metrics", headers=server.read_header()).body.decode(), server.said())


@case
def a_token_uploads_to_its_project_only():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(OFFBEAT, folder)
        new_project(OFFBEAT, folder, "second")
        token, reads = new_token(OFFBEAT, folder, "2", "upload"), new_token(OFFBEAT, folder, "2")
        try:
            body = pathlib.Path("/bin/true").read_bytes()
            check_equal(send_chunk(server, body).status, 200, "status")  # with the token for all projects
            check_equal(assemble(server, body, "1", token=token).status, 403, "status in the first project")
            check_equal(assemble(server, body, "second", token=token)["state"], "not_found", "another token's chunks")
            check_equal(assemble(server, body, "2", token=token)["state"], "not_found", "the same by number")
            check_equal(assemble(server, body, "2", token=reads).status, 403, "status with a read token")
            for path in ("/api/1/debug-files", "/api/2/debug-files", "/api/2/top", "/metrics", "/api/projects"):
                check_equal(server.request("GET", path, headers=bearer(token)).status, 403, f"{path} with an upload token")
        finally:
            server.kill()


@case
def uploads_at_the_same_time_and_kills_lose_nothing():
    with tempfile.TemporaryDirectory() as folder:
        programs = [Program(folder, number) for number in range(3)]
        paths, data, maker = [one.debug for one in programs], f"{folder}/data", random.Random(2)
        for path in paths:  # several chunks each
            with path.open("ab") as file:
                file.write(maker.randbytes(9 << 20))
        for turn in range(4):
            with running(OFFBEAT, data=data) as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
                jobs = [pool.submit(upload, server, *maker.sample(paths, 3)) for _ in range(4)]
                time.sleep(maker.uniform(0.05, 0.5))
                if turn < 3:
                    server.kill()
                results = [job.result() for job in jobs]
                if turn == 3:
                    check_equal([one.returncode for one in results], [0] * 4, str([one.stderr for one in results]))
                    listed = sorted(one["codeId"] for one in server.read("debug-files")["debug_files"])
                    check_equal(listed, sorted(one.build_id for one in programs), "debug files")
                    server.stop()
        left = [path.name for path in pathlib.Path(data, "debug").rglob("*") if path.name.startswith("part-")]
        check_equal(left, [], "files that were not finished")
        check_equal(len(list(pathlib.Path(data, "debug/1").rglob("*.debug"))), 3, "debug files in the folder")


@case
def old_debug_files_are_removed_by_size():
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT, "--debug-disk", "1") as server:
        program = Program(folder)
        with program.debug.open("ab") as file:
            file.write(bytes(2 << 20))
        check_equal(upload(server, program.debug).returncode, 0, "exit status")
        check_equal(len(server.read("debug-files")["debug_files"]), 1, "debug files")
        data = server.process.args[3]
        server.stop()
        with running(OFFBEAT, "--debug-disk", "1", data=data) as again:
            for _ in range(200):
                left = list(pathlib.Path(data, "debug/1").rglob("*.*"))
                if not left:
                    break
                time.sleep(0.05)
            check_equal((left, again.read("debug-files")["debug_files"]), ([], []), "files in the folder, and in the list")


@case
def the_real_client_uploads():
    client = os.environ.get("OFFBEAT_SENTRY_CLI") or shutil.which("sentry-cli")
    if not client:
        skip("sentry-cli is not installed; OFFBEAT_SENTRY_CLI names it (npm install @sentry/cli-linux-x64)")
    with tempfile.TemporaryDirectory() as folder, running(OFFBEAT) as server:
        program = Program(folder)
        send(server, program.chunk(1))
        environment = {"SENTRY_AUTH_TOKEN": server.upload_token, "HOME": folder, "PATH": os.environ["PATH"]}
        for expected in ("OK", "Nothing to upload"):
            done = subprocess.run([client, "--url", f"http://127.0.0.1:{server.port}", "debug-files", "upload", "--wait", "-o", "any", "-p", "default",
                                   program.debug], env=environment, capture_output=True, text=True, timeout=60)
            check(done.returncode == 0 and expected in done.stdout, done.stdout + done.stderr)
        check_equal(set(functions(server)), {"mix", "work", "outer", "main"}, "functions")


main(sys.argv[2] if len(sys.argv) > 2 else "")
