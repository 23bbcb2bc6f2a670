"""What must hold between the parts: who includes whom (the table in doc/architecture.md), what the code that runs in a
signal handler calls, what the preloaded library needs and shows. Argument: the build folder.
SPDX-License-Identifier: MIT"""
import ast
import builtins
import collections
import functools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
LIBRARY = BUILD / "liboffbeat.so"
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)

# Headers that every folder may include: C and POSIX/Linux, as they come with libc and the compiler.
LIBC_FOLDERS = ("sys/", "linux/", "bits/", "arpa/", "netinet/", "asm/", "sanitizer/")
# What is not libc is named in the table; the header's first folder or file name says which library it is of.
LIBRARY_OF_HEADER = {"bpf/bpf.h": "libbpf", "bpf/bpf_core_read.h": "libbpf", "bpf/bpf_helpers.h": "libbpf", "bpf/bpf_tracing.h": "libbpf",
                     "bpf/libbpf.h": "libbpf",
                     "brotli/decode.h": "libbrotlidec", "curl/curl.h": "libcurl", "zstd.h": "libzstd", "libdeflate.h": "libdeflate",
                     "microhttpd.h": "libmicrohttpd", "sqlite3.h": "libsqlite3", "nettle/sha2.h": "nettle",
                     "gelf.h": "libelf", "libelf.h": "libelf", "dwarf.h": "libdw",
                     "elfutils/libdw.h": "libdw", "elfutils/libdwfl.h": "libdw", "elfutils/libdwelf.h": "libdw",
                     "capstone/capstone.h": "libcapstone",
                     "libiberty/demangle.h": "libiberty", "demangle.h": "libiberty"}


# What the compiler calls in builds with sanitizers or with coverage.
SANITIZERS = ("__asan_", "__ubsan_", "__tsan_", "__sanitizer_", "__gcov_", "__sanitizer", "__llvm_")


def words(cell):
    return set(re.findall(r"[a-z0-9_/.]+", cell))


def read_table():
    """{folder: (folders and single headers it may include, libraries it may include)} out of doc/architecture.md."""
    text = (ROOT / "doc/architecture.md").read_text(encoding="utf-8")
    table = {}
    for row in re.findall(r"^\| `([a-z_/]+)/` \|([^|]*)\|([^|]*)\|", text, re.MULTILINE):
        table[row[0]] = (words(row[1]), words(row[2]))
    return table


def includes_of(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))


def lines_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


@functools.cache
def source_files():
    return sorted(path for path in (ROOT / "src").rglob("*.[ch]"))


def row_of(name, table):
    """The folder of the table that the file NAME, below src/, is in; the innermost one: "format/text" before "format"."""
    return max((folder for folder in table if name.startswith(f"{folder}/")), key=len, default=None)


def may_include(folder, target, header, table):
    """A row of another folder that names `format` means all of its families; `format` and its families name one another."""
    folders, _ = table[folder]
    outer = target.split("/")[0]
    return target == folder or {target, header} & folders or (outer in folders and outer != folder.split("/")[0])


def include_problem(path, quote, header, table):
    folder = row_of(str(path.relative_to(ROOT / "src")), table)
    _, libraries = table[folder]
    if quote == "<":
        library = LIBRARY_OF_HEADER.get(header)
        if library and library not in libraries:
            return f"includes <{header}>: {folder}/ may not use {library}"
        if not library and "/" in header and not header.startswith(LIBC_FOLDERS) and header != "offbeat.h":
            return f"includes <{header}>, which is of no library that the table knows"
        return None
    target = row_of(header, table) if "/" in header else None
    if target is None:
        return f'includes "{header}": write "FOLDER/{header}"'
    if not may_include(folder, target, header, table):
        return f'includes "{header}": {folder}/ may not know {target}/'
    if header.endswith("_private.h") and target != folder:
        return f'includes "{header}", which is for {target}/ alone'
    return None


@case
def the_table_names_every_folder_of_src_and_points_down_only():
    table = read_table()
    folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    check_equal({folder.split("/")[0] for folder in table}, folders, "folders in the table of doc/architecture.md")
    inner = {str(path.parent.relative_to(ROOT / "src")) for path in source_files()}
    check_equal(sorted(inner - set(table)), [], "folders without a row in doc/architecture.md")
    seen = set()
    for folder, (may, _) in table.items():
        targets = {name if name in table else row_of(name, table) for name in may}
        check(targets <= seen, f"{folder}/ points at {sorted(targets - seen)}, which is below it in the table")
        seen.add(folder)


@case
def a_file_includes_only_what_the_table_allows():
    table = read_table()
    problems = [f"{path.relative_to(ROOT)} {problem}" for path in source_files() for quote, header in includes_of(path)
                if (problem := include_problem(path, quote, header, table))]
    check(not problems, "\n".join(problems))


@case
def the_sampler_knows_its_sources_by_their_functions_alone():
    """A *_source.c has no header of its own, and none that another source includes has its name: what the tick and the
    others have to know is in source.h. Only the list of sources names them."""
    folder = ROOT / "src/sampler"
    names = [path.stem for path in (folder / "source").glob("*_source.c")]
    check(len(names) > 1, f"sources: {names}")
    headers = [name for name in names if (folder / f"source/{name}.h").exists()]
    check_equal(headers, [], "sources with a header")
    users = {str(path.relative_to(folder)) for path in folder.rglob("*.[ch]")
             if re.search(rf"\b({'|'.join(names)})\b(?!\.c)", COMMENT_OR_TEXT.sub("", path.read_text(encoding="utf-8")))}
    check_equal(users, {"run/source_list.c", "source/sources.h", *(f"source/{name}.c" for name in names)}, "files that name a source")


STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def member_count(body):
    """The members of a struct; those of a struct inside it count as one."""
    body = re.sub(r"\{[^{}]*\}", "", COMMENT_OR_TEXT.sub("", body))
    declarations = [re.sub(r"\([^()]*\)|\[[^\]]*\]", "", line) for line in body.split(";") if line.strip()]
    return sum(1 if "(" in line else len(line.split(",")) for line in declarations)


@case
def the_parts_of_the_sampler_stay_small():
    """A struct with many members, or a header that many files include, is where every change meets every other."""
    paths = sorted((ROOT / "src/sampler").rglob("*.[ch]"))
    structs = {name: member_count(body) for path in paths for name, body in STRUCT.findall(path.read_text(encoding="utf-8"))}
    check(len(structs) > 50, f"structs: {sorted(structs)}")
    check_equal({name: count for name, count in structs.items() if count > 15}, {}, "structs with more than 15 members")
    headers = [header for path in paths for header in {header for quote, header in includes_of(path) if header.startswith("sampler/")}]
    check_equal({name: headers.count(name) for name in set(headers) if headers.count(name) > 8}, {}, "headers in more than 8 files")
    check_equal(member_count("int a, b[2];\nstruct x { int c; int d; } e;\nvoid (*f)(int, int);\n"), 4, "members")


@case
def each_folder_has_a_paragraph():
    missing = [path.name for path in (ROOT / "src").iterdir() if path.is_dir() and not (path / "README.md").is_file()]
    check(not missing, f"no README.md in {missing}")


@case
def only_one_file_reads_the_environment():
    """With AT_SECURE no variable may count, and base/environment.c sees to that."""
    reads = re.compile(r"\b(secure_getenv|getenv|environ|__environ)\b\s*[(\[;]")
    found = [str(path.relative_to(ROOT)) for path in source_files() if reads.search(path.read_text(encoding="utf-8"))]
    check_equal(found, ["src/base/environment.c"], "files that read the environment")


@case
def only_the_model_knows_how_stacks_are_encoded():
    users = [path for path in source_files() if re.search(r"\bstack_words\b|\bPROFILE_BRANCH\b", path.read_text())]
    check(users, "no file has stack_words: this check looks for a name that is gone")
    others = [str(path) for path in users if "src/profile/" not in str(path)]
    check(not others, f"{others} read the table of stacks: use the functions of profile/profile.h")


def stem(path):
    """Names a header and its source together: "analyze/top_functions"."""
    return str(path.relative_to(ROOT / "src").with_suffix(""))


def file_graph():
    graph = {}
    for path in source_files():
        targets = {header.rpartition(".")[0] for quote, header in includes_of(path) if quote == '"'}
        graph.setdefault(stem(path), set()).update(targets)
    return graph


def cycle_through(start, graph):
    """The shortest way from START back to it, or None."""
    ways = [[start]]
    seen = set()
    while ways:
        way = ways.pop(0)
        for target in graph.get(way[-1], ()):
            if target == start and len(way) > 1:
                return way + [start]
            if target not in seen:
                seen.add(target)
                ways.append(way + [target])
    return None


def cycles_across_folders(graph):
    ways = (cycle_through(start, graph) for start in sorted(graph))
    return [" -> ".join(way) for way in ways if way and len({name.rpartition("/")[0] for name in way}) > 1]


@case
def no_cycle_of_includes_crosses_a_folder():
    check_equal(cycles_across_folders(file_graph()), [], "cycles of files in several folders")
    made = {"a/x": {"b/y"}, "b/y": {"b/z"}, "b/z": {"a/x"}, "c/w": {"c/v"}, "c/v": {"c/w"}}
    check_equal(len(cycles_across_folders(made)), 3, "files of a cycle that was made for this check")


@case
def source_files_of_two_folders_have_different_names():
    """Messages, stacks and editors show a file by its name. Commands of cli/, which have no header, are named as they are
    typed."""
    names = {}
    for path in source_files():
        if path.parent.name == "cli" and not path.with_suffix(".h").is_file():
            continue
        names.setdefault(path.name, []).append(str(path.relative_to(ROOT)))
    check_equal([paths for paths in names.values() if len(paths) > 1], [], "files with one name")


COMMENT_OR_TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
DEFINITION = re.compile(r"^(?!static )[a-z_][\w ]*[ *]+(\w+)\([^;{}]*\)\s*\n\{", re.MULTILINE)
INLINE_DEFINITION = re.compile(r"^static inline [\w ]*[ *]+(\w+)\(", re.MULTILINE)
# Functions without a caller in src/, and who needs them.
CALLED_FROM_OUTSIDE = {"main": "libc", "invariant_set_aborts": "tests of invariants", "fcntl64": "the linker",
                       "__memcpy_chk": "the linker", "__memmove_chk": "the linker", "__snprintf_chk": "the linker",
                       "__realpath_chk": "the linker", "own_calloc": "the linker", "own_realloc": "the linker", "own_free": "the linker",
                       "bpf_programs_sample_caller": "tests of the walk in the kernel", "BPF_PROG": "the kernel"}


def uncalled_functions(texts):
    """Of TEXTS, {path: source}: functions whose names occur nowhere but in lines that declare or define them, which alone
    begin in the first column."""
    defined, used = {}, set()
    for path, text in texts.items():
        code = COMMENT_OR_TEXT.sub(lambda found: "\n" * found.group().count("\n"), text)
        pattern = DEFINITION if path.suffix == ".c" else INLINE_DEFINITION
        defined.update({name: path for name in pattern.findall(code)})
        for line in code.split("\n"):
            if line[:1] in (" ", "\t", "#") or path.suffix == ".S":
                used |= set(re.findall(r"\w+", line))
    return {name: path for name, path in defined.items() if name not in used}


@case
def every_function_has_a_caller_in_src():
    paths = source_files() + sorted((ROOT / "src").rglob("*.S"))
    exported = set(re.findall(r"\w+", (ROOT / "include/offbeat.h").read_text(encoding="utf-8")))
    known = exported | symbols_on_list("interposed.symbols") | set(CALLED_FROM_OUTSIDE)
    uncalled = uncalled_functions({path: path.read_text(encoding="utf-8") for path in paths})
    check_equal([f"{uncalled[name]}: {name}" for name in sorted(set(uncalled) - known)], [], "functions without a caller")
    check_equal(sorted(set(CALLED_FROM_OUTSIDE) - set(uncalled)), [], "exceptions that are no longer needed")
    made = {pathlib.Path("a.c"): "int called(void)\n{\n    return 0;\n}\n\nint forgotten(void)\n{\n    return called();\n}\n"}
    check_equal(list(uncalled_functions(made)), ["forgotten"], "uncalled functions of the source made for this check")


def unused_limits(texts):
    """Constants whose name says that they are a limit, and which only their declaration names."""
    words = collections.Counter(word for text in texts for word in re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)))
    declared = {name for text in texts for name in re.findall(r"\b([A-Z]\w*_(?:MAX|MIN)) =", text)}
    return sorted(name for name in declared if words[name] == 1)


@case
def every_limit_is_used():
    check_equal(unused_limits([path.read_text(encoding="utf-8") for path in source_files()]), [], "limits that nothing checks")
    check_equal(unused_limits(["enum { A_MAX = 1, B_MAX = 2 }; /* B_MAX */\n", "int a = A_MAX;\n"]), ["B_MAX"], "limits of the source made for this check")


@case
def the_signal_handler_calls_only_what_is_on_its_list():
    allowed = symbols_on_list("signal_handler.symbols")
    walks = (f"libunwind.a.p_{name}.c.o" for name in ("unwind", "resume_cache", "x86_64_step", "expression", "wide_rule",
                                                       "frame_lookup", "cfi", "x86_64_compile", "x86_64_plt_stub"))
    functions = tuple(f"libinterpreters.a.p_{name}.c.o" for name in ("block_view", "cpython_stack", "merged_stack", "php_stack", "recalled_memory", "ruby_stack"))
    for name in ("signal_handler.c.o", *walks, *functions):
        objects = [path for path in object_files() if str(path).replace("/", "_").endswith(name)]
        check(objects, f"no object file {name} in {BUILD}")
        for path in objects:
            others = undefined_in(path) - allowed
            check(not others, f"{path} calls {sorted(others)}: not on the list of "
                  "test/layers/signal_handler.symbols")


@functools.cache
def object_files():
    return sorted(BUILD.rglob("*.o"))


@functools.cache
def symbols_in(path):
    """(needed, defined): the names that an object needs, and the global ones that it defines. An address is before the latter."""
    rows = [line.split() for line in lines_of("nm", "--extern-only", str(path))]
    return {row[-1] for row in rows if len(row) == 2}, {row[-1] for row in rows if len(row) == 3}


def undefined_in(path):
    return symbols_in(path)[0]


def defined_in(path):
    return symbols_in(path)[1]


def symbols_on_list(name):
    """The words of a list in this folder, without its comments."""
    lines = (ROOT / "test/layers" / name).read_text(encoding="utf-8").splitlines()
    return {word for line in lines for word in line.split("#")[0].split()}


def files_in_a_circle(calls):
    """Of CALLS, {file: files whose functions it calls}: those from which a way of calls leads into a circle."""
    left = dict(calls)
    while free := [name for name in left if not left[name] & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


@case
def the_files_of_the_server_call_one_another_in_one_direction():
    for folder in ("query", "serve"):
        objects = {path.name: path for path in BUILD.glob(f"src/{folder}/lib{folder}.a.p/*.o") if (ROOT / "src" / folder / path.stem).is_file()}
        check(objects, f"no objects of {folder}/ in {BUILD}")
        defined, undefined = ({name: of(path) for name, path in objects.items()} for of in (defined_in, undefined_in))
        calls = {name: {other for other in objects if other != name and undefined[name] & defined[other]} for name in objects}
        check_equal(files_in_a_circle(calls), [], f"files of {folder}/ that call one another in a circle")
    check_equal(files_in_a_circle({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": set()}), ["a", "b"], "a circle made for this check")


def objects_of_the_sampler_thread():
    """The objects of sampler/, unwind/ and interpreters/, and the objects of base/ that they need."""
    folders = {name: sorted(BUILD.glob(pattern)) for name, pattern in (
        ("sampler", "libsampler.a.p/src_sampler_*.o"), ("unwind", "src/unwind/libunwind.a.p/*.o"),
        ("interpreters", "src/interpreters/libinterpreters.a.p/*.o"),
        ("base", "src/base/libbase*.a.p/*.o"))}
    for name, found in folders.items():
        check(found, f"no objects of {name}/ in {BUILD}")
    chosen = folders["sampler"] + folders["unwind"] + folders["interpreters"]
    while True:
        needed = set().union(*map(undefined_in, chosen)) - set().union(*map(defined_in, chosen))
        more = [path for path in folders["base"] if path not in chosen and defined_in(path) & needed]
        if not more:
            return chosen
        chosen += more


def plain_memory():
    """The names of libc's that liboffbeat defines for itself alone."""
    found = list(BUILD.glob("src/sampler/libplain_memory.a.p/*.o"))
    check(len(found) == 1, f"objects of plain_memory.c: {found}")
    return defined_in(found[0])


@case
def the_sampler_thread_calls_only_what_is_on_its_list():
    chosen = objects_of_the_sampler_thread()
    allowed = set().union(*map(defined_in, chosen)) | plain_memory() | symbols_on_list("sampler_thread.symbols")
    for path in chosen:
        others = {name for name in undefined_in(path) - allowed if not name.startswith(SANITIZERS)}
        check(not others, f"{path.name} calls {sorted(others)}: not on the list of test/layers/sampler_thread.symbols")


@case
def the_preloaded_library_binds_memcpy_and_its_like_to_its_own():
    wanted = {line.split()[-1].split("@")[0] for line in lines_of("nm", "--dynamic", "--undefined-only", str(LIBRARY))}
    check(not wanted & plain_memory(), f"it takes {sorted(wanted & plain_memory())} from other libraries")


@case
def the_preloaded_library_needs_libc_alone():
    check(LIBRARY.is_file(), f"{LIBRARY} was not built")
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", "\n".join(lines_of("readelf", "--dynamic", "--wide", str(LIBRARY)))))
    check(needed <= {"libc.so.6", "ld-linux-x86-64.so.2"}, f"it needs {sorted(needed)}")


@case
def the_preloaded_library_has_no_model_and_no_decoders():
    defined = {line.split()[-1].split(".")[0] for line in lines_of("nm", "--defined-only", str(LIBRARY))}
    check("offbeat_init" in defined, f"{LIBRARY} has no symbols")
    others = sorted(name for name in defined if re.match("profile_(init|add)|sentry_v[12]_|format_find|inflate", name))
    check(not others, f"it has {others}")


@case
def the_preloaded_library_exports_only_its_names_and_interposed_ones():
    check(LIBRARY.is_file(), f"{LIBRARY} was not built")
    shown = [line.split()[-1] for line in lines_of("nm", "--dynamic", "--defined-only", str(LIBRARY))]
    interposed = symbols_on_list("interposed.symbols")
    others = [name for name in shown if not name.startswith("offbeat_") and name not in interposed]
    check(not others, f"it exports {others}")
    check(interposed <= set(shown), f"it does not interpose {sorted(interposed - set(shown))}")


def undefined_names(text):
    """Names that a Python file uses and nothing in it binds."""
    bound, used = set(dir(builtins)) | {"__file__"}, set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler):
            bound.add(node.name)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)):
            bound.add(node.name)
    return used - bound


@case
def python_files_use_only_names_that_they_define():
    check_equal(undefined_names("def f(a):\n return a + b"), {"b"}, "undefined names of an example")
    files = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True).stdout.split() or \
        [str(path.relative_to(ROOT)) for folder in ("bench", "test") for path in (ROOT / folder).rglob("*.py")]
    found = {name: names for name in files if (ROOT / name).is_file() and (names := undefined_names((ROOT / name).read_text(encoding="utf-8")))}
    check_equal(found, {}, "names that nothing defines")


main(sys.argv[2] if len(sys.argv) > 2 else "")
