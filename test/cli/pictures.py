"""Call graphs as pictures, through the Graphviz library. Argument: the program.
SPDX-License-Identifier: MIT"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import svg  # noqa: E402
from tap import case, check, check_equal, main, skip  # noqa: E402
from terminal import open_terminal, read_terminal  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve()
PROFILE = pathlib.Path(__file__).resolve().parent / "data/work.collapsed"
MAGIC = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "ps": b"%!PS", "gif": b"GIF8"}
HOSTILE = ("<script>alert(1)</script>", "]]>&amp;", "a\x1b[2J\u202eb\u0085\uffff", r"App\Node\Goo\Last", 'q"];evil[label="x'.replace(";", ","),
           "back\\", "&#60,b", "</title><a xlink:href=\"javascript:1\">", "x" * 40000)


def offbeat(folder, *words, status=0, text=""):
    done = subprocess.run([OFFBEAT, *map(str, words)], cwd=folder, capture_output=True, check=False, timeout=100, input=text.encode())
    check_equal(done.returncode, status, f"{words}: {done.stderr.decode(errors='replace')}; status")
    return done


def needs_graphviz():
    try:
        ctypes.CDLL("libgvc.so.6")
    except OSError:
        skip("libgvc6 is not installed")


@case
def the_ending_of_the_output_names_the_format():
    needs_graphviz()
    with tempfile.TemporaryDirectory() as folder:
        for ending, magic in MAGIC.items():
            path = pathlib.Path(folder, f"x.{ending}")
            offbeat(folder, "graph", PROFILE, "-o", path)
            check(path.read_bytes().startswith(magic), f"{path} is {path.read_bytes()[:20]!r}")
            named = offbeat(folder, "graph", PROFILE, "--to", ending).stdout
            check(named.startswith(magic), f"--to {ending}: {named[:20]!r}")
            flag = offbeat(folder, "pprof", f"-{ending}", PROFILE).stdout
            check(flag.startswith(magic), f"-{ending}: {flag[:20]!r}")
        offbeat(folder, "graph", PROFILE, "-o", "x.dot")
        check(pathlib.Path(folder, "x.dot").read_bytes().startswith(b"digraph"), "x.dot is DOT")
        offbeat(folder, "graph", PROFILE, "--to", "dot", "-o", "y.svg")
        check(pathlib.Path(folder, "y.svg").read_bytes().startswith(b"digraph"), "--to wins over the ending")


@case
def an_ending_of_another_kind_of_picture_is_rejected():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("x.bmp", "x.jpg", "X.JPEG", "x.webp", "x.html"):
            done = offbeat(folder, "graph", PROFILE, "-o", name, status=2)
            ending = name.split(".")[1].lower()
            check_equal(done.stderr.decode(), f"offbeat: {name}: offbeat graph does not write {ending}; the endings that it knows are"
                        " .svg, .png, .pdf, .ps, .gif and .dot\n", "graph")
            if ending == "html":  # flame writes the page
                continue
            done = offbeat(folder, "flame", PROFILE, "-o", name, status=2)
            check_equal(done.stderr.decode(), f"offbeat: {name}: offbeat flame does not write {ending}; the endings that it knows are"
                        " .svg, .html and .txt\n", "flame")
        offbeat(folder, "flame", PROFILE, "-o", "x.png", status=2)
        check_equal(os.listdir(folder), [], "files")


@case
def an_ending_that_is_no_picture_is_dot():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("x", "x.dot", "x.gv", "x.txt", "x.y/z", "bmp"):
            pathlib.Path(folder, name).parent.mkdir(exist_ok=True)
            done = offbeat(folder, "graph", PROFILE, "-o", name)
            check_equal(done.stderr, b"", name)
            check(pathlib.Path(folder, name).read_bytes().startswith(b"digraph"), f"{name} is DOT")


@case
def endings_in_capital_letters_name_the_format():
    needs_graphviz()
    with tempfile.TemporaryDirectory() as folder:
        offbeat(folder, "graph", PROFILE, "-o", "X.SVG")
        check(pathlib.Path(folder, "X.SVG").read_bytes().startswith(MAGIC["svg"]), "X.SVG is a picture")


@case
def a_report_in_a_file_that_is_named_like_a_picture_prints_a_line():
    with tempfile.TemporaryDirectory() as folder:
        for words, says in ((("graph", "--to", "dot", "-o", "x.bmp", PROFILE), "x.bmp contains DOT, not bmp"),
                            (("pprof", "-dot", "-output=x.png", PROFILE), "x.png contains DOT, not png"),
                            (("pprof", "-top", "-output=x.jpg", PROFILE), "x.jpg contains text, not jpg"),
                            (("flame", "--to", "svg", "-o", "x.png", PROFILE), "x.png contains svg, not png"),
                            (("pprof", "-dot", "-output=x.dot", PROFILE), None)):
            done = offbeat(folder, *words)
            check_equal(done.stderr.decode(), f"offbeat: {says}\n" if says else "", str(words))
        done = offbeat(folder, "pprof", PROFILE, text="dot >x.bmp\n")
        check(b"x.bmp contains DOT, not bmp" in done.stderr, str(done.stderr))


@case
def a_picture_has_the_functions_and_their_costs():
    needs_graphviz()
    with tempfile.TemporaryDirectory() as folder:
        offbeat(folder, "graph", "--ignore", "idle", PROFILE, "-o", "x.svg")
        texts = svg.texts(pathlib.Path(folder, "x.svg").read_bytes(), "text")
        dot = offbeat(folder, "graph", "--ignore", "idle", PROFILE).stdout.decode()
        for name in ("main", "hash"):
            check(name in texts, f"{name} is in {texts}")
            check(f'label="{name}\\n' in dot, f"{name} is in {dot}")


@case
def names_stay_text():
    needs_graphviz()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "x.collapsed").write_text("".join(f"main;{name} 5\n" for name in HOSTILE), encoding="utf-8")
        offbeat(folder, "graph", "x.collapsed", "-o", "x.svg")
        drawing = pathlib.Path(folder, "x.svg").read_bytes()
        svg.check_harmless(drawing)
        tags = {element.tag.removeprefix(svg.NAMESPACE) for element in svg.elements(drawing)}
        check_equal(tags - {"svg", "g", "title", "a", "polygon", "path", "text"}, set(), "elements")
        tips = {element.get("{http://www.w3.org/1999/xlink}title") for element in svg.elements(drawing, "a")}
        for name in HOSTILE:
            shown = name.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e").replace("\u0085", "\\u0085").replace("\uffff", "?").split(";")[0]
            check(f"{shown} (5)" in tips, f"{shown[:80]!r} is a tooltip of {[tip[:80] for tip in tips]}")


@case
def too_large_a_graph_is_rejected():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "x.collapsed").write_text("".join(f"main;f{i} 5\n" for i in range(600)), encoding="utf-8")
        done = offbeat(folder, "graph", "--no-trim", "x.collapsed", "-o", "x.svg", status=3)
        check(b"601 functions and 600 calls are too many for a picture (at most 500 and 2000)" in done.stderr, str(done.stderr))
        check(not pathlib.Path(folder, "x.svg").exists(), "no file is left")


@case
def without_the_library_a_line_says_what_to_install():
    """An empty library of the same name hides the installed one."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "libgvc.so.6").write_bytes(b"")
        environment = {**os.environ, "LD_LIBRARY_PATH": folder}
        done = subprocess.run([OFFBEAT, "graph", PROFILE, "--to", "svg"], capture_output=True, check=False, env=environment, timeout=60)
        check_equal((done.returncode, done.stdout), (3, b""), "status and output")
        check_equal(done.stderr, b"offbeat: pictures need the Graphviz library: apt install libgvc6; DOT needs nothing\n", "message")


def on_a_terminal(folder, *words):
    ours, theirs = open_terminal()
    running = subprocess.Popen([OFFBEAT, *map(str, words)], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = read_terminal(ours)
    return running.wait(), text


@case
def a_terminal_gets_no_picture():
    needs_graphviz()
    with tempfile.TemporaryDirectory() as folder:
        status, text = on_a_terminal(folder, "graph", PROFILE, "--to", "png")
        check_equal((status, text), (2, "offbeat: a picture is not written to a terminal; use -o OUT.png\n"), "graph")
        for number in (1, 2):
            status, text = on_a_terminal(folder, "pprof", "-svg", PROFILE)
            check_equal((status, text), (0, f"offbeat: the report is in profile00{number}.svg\n"), "pprof")
        check(pathlib.Path(folder, "profile002.svg").read_bytes().startswith(MAGIC["svg"]), "the second file is a picture")


@case
def the_prompt_draws_into_a_file():
    needs_graphviz()
    with tempfile.TemporaryDirectory() as folder:
        offbeat(folder, "pprof", PROFILE, text="png >x.png\n")
        check(pathlib.Path(folder, "x.png").read_bytes().startswith(MAGIC["png"]), "x.png is a picture")


main()
