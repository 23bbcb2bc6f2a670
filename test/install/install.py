"""An installed copy of the library, in its own folder: what is in it, what both libraries show, and programs that are
built with it as the documents say, run, and send. Arguments: the build folder, and optionally a part of the names of the
cases to run. SPDX-License-Identifier: MIT"""
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/end_to_end"))
from server import FakeServer, items_of  # noqa: E402
from recording import Failed, Folder, Offbeat, case, check, check_equal, long, main, run, skip, text  # noqa: E402

OFFBEAT = Offbeat(sys.argv[1])
EXAMPLES = ("service.c", "server.c", "frames.c", "spans.cpp")
HEADER = (ROOT / "include/offbeat.h").read_text(encoding="utf-8")
WRAPPER = ROOT / "test/install/wrapper.cpp"


# --- the installed copy ----------------------------------------------------------------------------------------------

class Installation:
    """Below FOLDER as below /. Its own packages only are found, and its own library."""

    def __init__(self, folder):
        self.folder = folder
        done = run("meson", "install", "-C", OFFBEAT.build, "--no-rebuild", "--quiet", "--destdir", folder / "root")
        check(done.returncode == 0, f"meson install: {text(done.stdout)} {text(done.stderr)}")
        self.files = sorted(path for path in (folder / "root").rglob("*") if path.is_file())
        self.library_folder = self.find("liboffbeat.so").parent
        self.prefix = self.find("offbeat.h").parent.parent
        self.environment = {
            **{name: value for name, value in os.environ.items()
               if not name.startswith("OFFBEAT_") and not name.lower().endswith("_proxy")},
            "PATH": f"{self.prefix / 'bin'}:{os.environ['PATH']}",
            "PKG_CONFIG_LIBDIR": str(self.library_folder / "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(folder / "root"),
            "CMAKE_PREFIX_PATH": str(self.prefix),
            "LD_LIBRARY_PATH": str(self.library_folder),
        }

    def find(self, name):
        found = [path for path in self.files if path.name == name and "bash-completion" not in path.parts]
        check(len(found) == 1, f"{name} was installed {len(found)} times")
        return found[0]


FOLDER = Folder()


@functools.lru_cache(maxsize=None)
def installation_or_failure():
    try:
        return Installation(FOLDER.__enter__())
    except Exception as failure:
        return failure


def installation():
    result = installation_or_failure()
    if isinstance(result, Exception):
        raise Failed(f"it could not be installed: {result!r}")
    return result


def shell(command, folder, **environment):
    done = run("sh", "-c", command, cwd=folder, env={**installation().environment, **environment})
    check(done.returncode == 0 and b"warning" not in done.stderr, f"{command}: status {done.returncode}: {text(done.stderr)}")
    return text(done.stdout)


def names(command, path):
    return {line.split()[-1] for line in shell(f"nm {command} '{path}'", "/").splitlines() if len(line.split()) == 3}


@case
def all_of_it_is_installed():
    copy = installation()
    tutorial()
    installed = {path.name for path in copy.files}
    pages = {path.name for path in (ROOT / "doc/man").iterdir()}
    wanted = pages | {"offbeat", "offbeat-helper", "offbeat.h", "offbeat.hpp", "liboffbeat.a", "liboffbeat.so",
                      "liboffbeat.so.0", "liboffbeat.so.0.1.0", "liboffbeat-first.so", "offbeat.pc", "offbeat-static.pc", "offbeatConfig.cmake",
                      "offbeatConfigVersion.cmake",
                      "_offbeat", "offbeat.fish", "offbeat.service", "offbeat-agent.service"}
    check_equal(installed, wanted, "files")


def declared_functions():
    found = set(re.findall(r"^OFFBEAT_API [^;(]*?\b(offbeat_\w+)\(", HEADER, re.MULTILINE))
    check(len(found) > 25, f"only {len(found)} functions found in offbeat.h")
    return found


@case
def both_libraries_export_exactly_the_declared_functions():
    copy = installation()
    declared = declared_functions()
    interposed = {word for line in (ROOT / "test/layers/interposed.symbols").read_text(encoding="utf-8").splitlines()
                  for word in line.split("#")[0].split()}
    for library, shown in (("liboffbeat.so", names("-D --defined-only", copy.find("liboffbeat.so"))),
                           ("liboffbeat.a", names("-g --defined-only", copy.find("liboffbeat.a")))):
        wanted = declared | interposed if library.endswith(".so") else declared
        check(shown == wanted, f"{library}: too much: {sorted(shown - wanted)[:20]}, missing: {sorted(wanted - shown)}")


# --- building --------------------------------------------------------------------------------------------------------

def source_folder(name):
    folder = installation().folder / name
    folder.mkdir(exist_ok=True)
    for path in (ROOT / "example").iterdir():
        shutil.copy(path, folder)
    return folder


def build_line(example):
    """How an example says, at its top, that it is built."""
    return re.search(r"^ \*     (c(?:c|\+\+) .*)$", (ROOT / "example" / example).read_text(encoding="utf-8"), re.MULTILINE).group(1)


@functools.lru_cache(maxsize=None)
def built(example):
    """The example's program, built by its own line."""
    folder = source_folder("plain")
    shell(build_line(example), folder)
    return folder / pathlib.Path(example).stem


@case
def every_example_builds_by_the_line_at_its_top():
    for example in EXAMPLES:
        check(built(example).is_file(), example)


@case
def headers_are_clean_for_every_compiler_and_standard():
    folder = source_folder("headers")
    flags = "-Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only $(pkg-config --cflags offbeat)"
    (folder / "header.c").write_text("#include <offbeat.h>\nint main(void) { return 0; }\n")
    (folder / "header.cpp").write_text("#include <offbeat.hpp>\nint main() {}\n")
    commands = [f"{compiler} -std={standard} {flags} header.c" for compiler in ("gcc", "clang-14") for standard in ("c11", "c17")]
    for compiler in ("g++", "clang++-14"):
        commands += [f"{compiler} -std={standard} {flags} '{WRAPPER}'" for standard in ("c++17", "c++20")]
        commands += [f"{compiler} -std=c++17 -fno-exceptions -fno-rtti {flags} header.cpp"]
        commands += [f"! {compiler} -std=c++14 {flags} header.cpp 2>needs_17 && grep -q 'offbeat.hpp needs C++17' needs_17"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda command: shell(command, folder), commands))


@case
def header_library_and_pkg_config_have_one_version():
    folder = source_folder("version")
    (folder / "version.c").write_text("#include <offbeat.h>\n#include <stdio.h>\nint main(void)\n{\n"
                                      'printf("%d.%d.%d %s\\n", OFFBEAT_VERSION_MAJOR, OFFBEAT_VERSION_MINOR, OFFBEAT_VERSION_PATCH, '
                                      "offbeat_version());\n}\n")
    shell("cc version.c -o version $(pkg-config --cflags --libs offbeat)", folder)
    wanted = shell("pkg-config --modversion offbeat", folder).strip()
    check_equal(shell("./version", folder).split(), [wanted, wanted], "versions of the header and of the library")


@case
def cmake_builds_with_either_library():
    folder = source_folder("cmake")
    shell("cmake -S . -B build && cmake --build build --parallel", folder)
    needed = {program: "liboffbeat.so" in shell(f"readelf -d build/{program}", folder)
              for program in ("service", "server", "frames", "spans", "service_static")}
    check_equal(needed, {"service": True, "server": True, "frames": True, "spans": True, "service_static": False},
                "programs that need the shared library")
    (folder / "other").mkdir()
    (folder / "other/CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.16)\nproject(other C)\nforeach(version 0.1 0.99 1.0)\n"
                                                 "find_package(offbeat ${version} QUIET)\n"
                                                 "message(STATUS \"${version}: ${offbeat_FOUND}\")\nendforeach()\n")
    found = dict(re.findall(r"^-- (0.1|0.99|1.0): (\d)$", shell("cmake -S other -B other/build", folder), re.MULTILINE))
    check_equal(found, {"0.1": "1", "0.99": "0", "1.0": "0"}, "versions that are found")


@case
def a_program_may_have_the_names_that_the_static_library_has_inside():
    folder = source_folder("clash")
    archive = installation().find("liboffbeat.a")
    inside = sorted({line.split()[-1] for line in shell(f"nm '{archive}'", folder).splitlines()
                     if re.fullmatch(r"[0-9a-f]+ [tT] (?!offbeat_)[a-z][a-z0-9]*(_[a-z0-9]+)+", line)})
    check(len(inside) > 50, f"only {len(inside)} functions inside")
    clashing = "".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in inside)
    (folder / "clashing.c").write_text(clashing)
    shell("cc -w -g service.c clashing.c -o clashing $(pkg-config --cflags --libs offbeat-static) -lm", folder)
    helper = str(installation().find("offbeat-helper"))
    check_has(run_and_receive([folder / "clashing", "50"], OFFBEAT_HELPER=helper), functions=("answer", "wait_for_database"))


# --- running ---------------------------------------------------------------------------------------------------------

class Received:
    """What came of one program, all of it accepted by the rules of the real server."""

    def __init__(self, bodies, folder):
        self.items = collections.defaultdict(list)
        for number, body in enumerate(bodies):
            kinds = set()
            for header, payload in items_of(body):
                kinds.add(header["type"])
                self.items[header["type"]].append(payload if isinstance(payload, dict) else json.loads(payload))
            if kinds & {"profile_chunk", "profile"}:
                self.check_accepted(body, folder / f"{number}.envelope")
        self.chunks, self.transactions = self.items["profile_chunk"], self.items["transaction"]
        self.functions = {frame.get("function") for chunk in self.chunks for frame in chunk["profile"]["frames"]}
        self.measurements = {name: measured for chunk in self.chunks for name, measured in chunk.get("measurements", {}).items()}

    @staticmethod
    def check_accepted(body, path):
        path.write_bytes(body)
        done = run(OFFBEAT.program, "validate", "--rules", "relay", path)
        check(done.returncode == 0, f"{path.name}: {text(done.stdout)} {text(done.stderr)}")

    def spans(self, op):
        return [span for transaction in self.transactions for span in transaction["spans"] if span["op"] == op]


def run_and_receive(command, **environment):
    with Folder() as folder, FakeServer() as server:
        done = run(*command, cwd=folder, env={**installation().environment, "OFFBEAT_DSN": server.dsn, "OFFBEAT_SHUTDOWN_TIMEOUT_MS": "10000",
                                              "OFFBEAT_SPOOL_DIRECTORY": str(folder / "spool"), **environment})
        check_equal((done.returncode, text(done.stderr)), (0, ""), f"{command[0]}: status and standard error")
        check_equal(server.problems, [], "what is wrong with requests")
        check_equal(sum(server.reported.values()), 0, f"discarded: {server.reported}")
        return Received(server.bodies, folder)


def check_has(received, **wanted):
    for kind, expected in wanted.items():
        missing = set(expected) - set(getattr(received, kind))
        check(not missing, f"no {kind} {sorted(missing)}; there are {sorted(map(str, getattr(received, kind)))[:60]}")


def check_service(received):
    check_has(received, functions=("answer", "price_of_basket", "wait_for_database"),
              measurements=("queue_bytes", "cpu_usage", "memory_footprint"))
    check_equal({transaction["transaction"] for transaction in received.transactions}, {"GET /basket"}, "transactions")
    check_equal({span["description"] for span in received.spans("db.query")}, {"SELECT price FROM item"}, "queries")
    profilers = {transaction["contexts"]["profile"]["profiler_id"] for transaction in received.transactions}
    check_equal({chunk["profiler_id"] for chunk in received.chunks}, profilers, "profilers of chunks and transactions")
    lines = [frame for chunk in received.chunks for frame in chunk["profile"]["frames"] if frame.get("function") == "answer"]
    check(any(frame.get("lineno") and frame.get("filename", "").endswith("service.c") for frame in lines), f"no line: {lines[:3]}")


@case
def the_service_runs_and_sends_its_profile_and_its_transactions():
    check_service(run_and_receive([built("service.c"), "50"]))


@case
def the_service_does_the_same_with_the_library_inside():
    folder = source_folder("static")
    shell("cc -g service.c -o service $(pkg-config --cflags --libs offbeat-static) -lm", folder)
    check("liboffbeat.so" not in shell("readelf -d service", folder), "it needs the shared library")
    check_service(run_and_receive([folder / "service", "50"], OFFBEAT_HELPER=str(installation().find("offbeat-helper"))))


@case
def a_program_without_any_shared_library_links_and_runs():
    folder = source_folder("all_static")
    done = run("sh", "-c", "cc -static -g service.c -o service $(pkg-config --static --cflags --libs offbeat) -lm", cwd=folder,
               env=installation().environment)
    said = [line for line in text(done.stderr).splitlines() if "warning" in line and "statically linked applications requires" not in line]
    check_equal((done.returncode, said), (0, []), f"status and warnings: {text(done.stderr)}")
    done = run(folder / "service", "10", env={**installation().environment, "OFFBEAT_SPOOL_DIRECTORY": str(folder / "spool")})
    check_equal((done.returncode, text(done.stderr)), (0, "offbeat: there is no DSN (option dsn, OFFBEAT_DSN); nothing is profiled"), "status and standard error")


@case
def a_trace_goes_through_the_server_from_thread_to_thread_and_on():
    received = run_and_receive([built("server.c"), "40"])
    check_has(received, functions=("run_front", "run_decoder", "run_back", "decode_picture"))
    fronts = {transaction["contexts"]["trace"]["trace_id"]: transaction for transaction in received.transactions
              if transaction["transaction"] == "GET /album"}
    backs = {transaction["contexts"]["trace"]["trace_id"]: transaction for transaction in received.transactions
             if transaction["transaction"] == "POST /thumbnails"}
    check_equal((len(fronts), fronts.keys()), (40, backs.keys()), "traces at the front and at the back")
    for number, (trace_id, front) in enumerate(sorted(fronts.items()), 1):
        check_equal((int(trace_id, 16), int(front["contexts"]["trace"]["parent_span_id"], 16)), (number, number), "the client's ids")
        spans = {span["op"]: span for span in front["spans"]}
        check_equal(set(spans), {"image.decode", "http.client"}, "spans")
        back = backs[trace_id]["contexts"]["trace"]
        check_equal(back["parent_span_id"], spans["http.client"]["span_id"], "parent of the transaction at the back")
        threads = {front["contexts"]["trace"]["data"]["thread.id"], spans["image.decode"]["data"]["thread.id"], back["data"]["thread.id"]}
        check_equal(len(threads), 3, "threads")
    check_equal({span["data"]["thread.id"] for span in received.spans("image.decode")} <=
                {thread for chunk in received.chunks for thread in chunk["profile"]["thread_metadata"]}, True, "the decoder's samples")


@case
def frames_and_sessions_of_a_user_interface_are_reported():
    received = run_and_receive([built("frames.c"), "120"])
    check_has(received, functions=("render", "show"), measurements=("slow_frame_renders", "frozen_frame_renders"))
    check_equal(len({chunk["profiler_id"] for chunk in received.chunks}), 2, "profilers: one before and one after the background")


@case
def spans_in_cpp_end_with_their_scope_and_describe_exceptions():
    received = run_and_receive([built("spans.cpp"), "12"])
    status = {transaction["transaction"]: transaction["contexts"]["trace"].get("status") for transaction in received.transactions}
    check_equal(status, {"import 0": "ok", "import 1": "ok", "import 2": "ok", "import 3": "internal_error"}, "status of transactions")
    parsed = collections.Counter((span.get("status"), "rows" in span["data"]) for span in received.spans("file.parse"))
    check(set(parsed) == {(None, True), ("internal_error", False)}, f"spans: {parsed}")
    check(all(transaction["tags"] == {"format": "csv"} for transaction in received.transactions), "tags")


@case
def the_wrapper_does_what_it_says():
    folder = source_folder("wrapper")
    shell(f"c++ -std=c++17 -g -Wall -Wextra '{WRAPPER}' -o wrapper $(pkg-config --cflags --libs offbeat)", folder)
    received = run_and_receive([folder / "wrapper"])
    spans = {span["description"]: span for transaction in received.transactions for span in transaction["spans"]}
    check_equal({name: span.get("status") for name, span in spans.items()},
                {"moved": None, "assigned": None, "unwound": "internal_error", "in a destructor": None, "handed over": None,
                 "current": None}, "spans and their status")
    root = received.transactions[0]["contexts"]["trace"]
    check_equal({name for name, span in spans.items() if span["parent_span_id"] == root["span_id"]}, set(spans), "children of the root")
    check_equal(spans["current"]["data"].get("text"), "b", "text")
    check_equal({name: spans["current"]["data"].get(name) for name in ("number", "integer", "large", "flag", "had_flag")},
                {"number": 1.5, "integer": 9007199254740993, "large": 1.8446744073709552e19, "flag": None, "had_flag": True}, "values")
    transaction = received.transactions[0]
    check_equal((transaction["transaction"], transaction["user"]), ("renamed", {"id": "u-1"}), "name and user")


@case
def profiles_an_unchanged_program_by_environment_variables():
    folder = source_folder("unaware")
    (folder / "unaware.c").write_text("#include <stdio.h>\nint main(void) { volatile double s = 0; for (int i = 1; i < 300000000; i++)"
                                      " s += 1.0 / i; puts(\"done\"); }\n")
    shell("cc -g unaware.c -o unaware", folder)
    library = installation().find("liboffbeat.so")
    received = run_and_receive([folder / "unaware"], LD_PRELOAD=str(library))
    check_has(received, functions=("main",))


@case
def the_installed_program_records():
    copy = installation()
    folder = source_folder("records")
    shell(f"'{copy.find('offbeat')}' record --quiet -o x.pb.gz -- '{built('service.c')}' 20", folder)
    check("answer" in shell("offbeat top x.pb.gz", folder), "the function is not in the table")


@long
@case
def the_program_finds_its_library_in_any_library_folder():
    folder = installation().folder / "elsewhere"
    settings = ("--prefix=/usr", "--bindir=some/programs", "--libdir=lib/a/b", "-Doptimization=0", "-Ddebug=false")
    for command in (("meson", "setup", *settings, folder / "build", ROOT), ("ninja", "-C", folder / "build", "offbeat", "liboffbeat.so.0.1.0")):
        done = run(*command)
        check(done.returncode == 0, f"{command[0]}: {text(done.stdout)[-2000:]} {text(done.stderr)}")
    for name, place in (("offbeat", "usr/some/programs"), ("liboffbeat.so.0.1.0", "usr/lib/a/b")):
        (folder / place).mkdir(parents=True)
        shutil.copy(folder / "build" / name, folder / place)
    (folder / "usr/lib/a/b/liboffbeat.so").symlink_to("liboffbeat.so.0.1.0")
    shell(f"'{folder}/usr/some/programs/offbeat' record --quiet -o x.pb.gz -- sleep 0.3", folder)
    check((folder / "x.pb.gz").stat().st_size > 0, "the profile is empty")


# --- documents -------------------------------------------------------------------------------------------------------

def manual():
    return (ROOT / "doc/man/liboffbeat.3").read_text(encoding="utf-8")


@case
def the_manual_page_names_every_function_option_and_variable():
    functions = declared_functions()
    body = re.search(r"^struct offbeat_options \{(.*?)^\};", HEADER, re.MULTILINE | re.DOTALL).group(1)
    variables = set(re.findall(r"\bOFFBEAT_[A-Z_]+", body))
    members = set(re.findall(r"\b(\w+);", re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL))) - {"size"}
    check(len(members) > 30 and len(variables) > 20, f"members found: {members}, variables: {variables}")
    missing = {name for name in functions | members | variables if not re.search(rf"\b{name}\b", manual())}
    check_equal(missing, set(), "missing in liboffbeat.3")


def blocks_of(document, but):
    """The blocks of DOCUMENT as one script, without those in which the expression BUT is found."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", (ROOT / document).read_text(encoding="utf-8"), re.MULTILINE)
    return "set -e\n" + "\n".join(re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks if not re.search(but, block))


def paste_tutorial():
    """All its blocks except the one that installs, in its own folder."""
    script = blocks_of("doc/library.md", but="meson install")
    return run("sh", "-c", script.replace("/tmp/library", str(source_folder("tutorial") / "library")), env=installation().environment)


@functools.lru_cache(maxsize=None)
def tutorial():
    """Most of it is waiting for a server that is not there: it continues while other cases run."""
    return concurrent.futures.ThreadPoolExecutor(1).submit(paste_tutorial)


@case
def units_of_systemd_are_valid_and_have_few_rights():
    """The exposure is that of systemd-analyze security, in tenths; 100 is that of a service without any limit."""
    if not shutil.which("systemd-analyze"):
        skip("systemd-analyze is not installed: apt-get install systemd")
    for name, exposure in (("offbeat.service", 20), ("offbeat-agent.service", 30)):
        unit = installation().folder / name
        program = installation().find("offbeat")
        unit.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={program}", installation().find(name).read_text(), flags=re.MULTILINE))
        verified = run("systemd-analyze", "verify", "--man=no", unit)
        check_equal((verified.returncode, text(verified.stderr)), (0, ""), f"{name} is valid")
        judged = run("systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={exposure}", unit)
        check_equal(judged.returncode, 0, text(judged.stdout)[-300:] + text(judged.stderr))


@case
def the_tutorial_works_when_it_is_pasted():
    done = tutorial().result()
    said = text(done.stdout)
    check(done.returncode == 0, f"status {done.returncode}: {said[-500:]} {text(done.stderr)}")
    check(re.search(r"^ .*\bslow$", said, re.MULTILINE), f"slow is not in a table:\n{said}")


@case
def the_first_tutorial_works_when_it_is_pasted():
    folder = installation().folder / "first_tutorial"
    folder.mkdir()
    (folder / "build").symlink_to(OFFBEAT.build)
    ends_server = "trap 'kill $! 2>/dev/null || :' EXIT\n"  # if a command before its end fails
    done = run("sh", "-c", ends_server + blocks_of("doc/tutorial.md", but=r"\./dev run|offbeat view"), cwd=folder)
    said = text(done.stdout)
    check(done.returncode == 0, f"status {done.returncode}: {said[-500:]} {text(done.stderr)}")
    for function in ("hash_path", "index_batch", "slow"):
        check(re.search(rf"^ .*\b{function}$", said, re.MULTILINE), f"{function} is not in a table:\n{said}")


try:
    main(*sys.argv[2:3])
finally:
    FOLDER.__exit__()
