"""Costs that a file states are shown exactly: by every report, of real files and of random call graphs with circles.

    stated.py OFFBEAT DATA

Callgrind states what each call cost. The inclusive cost of a function is the sum of the calls from other functions, or, if no
function calls it, its own costs and those of its calls of others. Python's profilers and stackprof state the inclusive cost itself.

SPDX-License-Identifier: MIT"""
import json
import marshal
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = str(pathlib.Path(sys.argv[1]).resolve())
DATA = pathlib.Path(sys.argv[2]).resolve() / "trials"
GRAPHS = 25


def run(*arguments):
    done = subprocess.run([OFFBEAT, *map(str, arguments)], capture_output=True, text=True)
    check_equal(done.returncode, 0, f"{arguments}: {done.stderr}")
    return done.stdout, done.stderr


def top(*arguments):
    """{function: (self, inclusive)}"""
    functions = json.loads(run("top", "--json", "-n", "0", *arguments)[0])["functions"]
    return {row["name"]: (row["self"], row["total"]) for row in functions}


# --- Random call graphs: functions with costs in several lines, and calls between any of them. ------------------------


class Graph:
    def __init__(self, number):
        chance = random.Random(number)
        count = chance.randint(2, 12)
        self.names = [f"f{i}" for i in range(count)]
        self.lines = {name: {chance.randint(1, 9): chance.randint(1, 10**6) for _ in range(chance.randint(1, 3))}
                      for name in self.names}
        self.calls = {}  # (caller, callee): {line: [calls, cost]}
        for _ in range(chance.randint(1, 3 * count)):
            edge = self.calls.setdefault((chance.choice(self.names), chance.choice(self.names)), {})
            edge[chance.randint(10, 19)] = [chance.randint(1, 50), chance.randint(1, 10**7)]
        self.cumulative = {name: sum(self.lines[name].values()) + chance.randint(0, 10**7) for name in self.names}

    def own(self, name):
        return sum(self.lines[name].values())

    def call_cost(self, caller, callee):
        return sum(cost for _, cost in self.calls.get((caller, callee), {}).values())

    def inclusive(self, name):
        callers = [pair for pair in self.calls if pair[1] == name and pair[0] != name]
        if callers:
            return sum(self.call_cost(*pair) for pair in callers)
        return self.own(name) + sum(self.call_cost(*pair) for pair in self.calls if pair[0] == name and pair[1] != name)

    def callgrind(self):
        text = "version: 1\npositions: line\nevents: Ir\n"
        for name in self.names:
            text += f"\nfl=a.c\nfn={name}\n" + "".join(f"{line} {cost}\n" for line, cost in self.lines[name].items())
            for (caller, callee), edge in self.calls.items():
                for line, (calls, cost) in edge.items() if caller == name else ():
                    text += f"cfn={callee}\ncalls={calls} 1\n{line} {cost}\n"
        return text.encode()

    def pstats(self):
        """The line of a function is its number plus one."""
        key = {name: ("a.py", i + 1, name) for i, name in enumerate(self.names)}
        statistics = {}
        for name in self.names:
            callers = {key[caller]: (1, 1, 0.0, self.call_cost(caller, callee) / 1e9)
                       for caller, callee in self.calls if callee == name}
            statistics[key[name]] = (1, 1, self.own(name) / 1e9, self.cumulative[name] / 1e9, callers)
        return marshal.dumps(statistics)

    def stackprof(self):
        """Without stacks; samples of lines are with all that these call, and alone."""
        number = {name: str(140000000000000 + 40 * i) for i, name in enumerate(self.names)}
        frames = {}
        for i, name in enumerate(self.names):
            frames[number[name]] = {"name": name, "file": "a.rb", "line": 1, "total_samples": self.cumulative[name], "samples": self.own(name),
                                    "edges": {number[callee]: self.call_cost(name, callee) for caller, callee in self.calls if caller == name},
                                    "lines": {str(line): [cost + 5, cost] for line, cost in self.lines[name].items()}}
        return json.dumps({"version": 1.2, "mode": "object", "interval": 1, "samples": 1, "gc_samples": 0, "missed_samples": 0,
                           "metadata": {}, "frames": frames}).encode()


def check_reports(path, expected, calls, what):
    """EXPECTED is {function: (self, inclusive)}, CALLS {(caller, callee): cost}."""
    check_equal(top(path), expected, f"{what}: top")
    tree = json.loads(run("tree", "--json", "--no-trim", path)[0])["functions"]
    check_equal({row["name"]: (row["self"], row["total"]) for row in tree}, expected, f"{what}: tree")
    check_equal({(row["name"], callee["name"]): callee["weight"] for row in tree for callee in row["callees"]}, calls,
                f"{what}: callees of tree")
    check_equal({(caller["name"], row["name"]): caller["weight"] for row in tree for caller in row["callers"]}, calls,
                f"{what}: callers of tree")
    listing = json.loads(run("list", "--json", ".", path)[0])["functions"]
    check_equal({row["name"]: (row["self"], row["total"]) for row in listing}, expected, f"{what}: list")


def check_graph(graph, folder):
    calls = {pair: graph.call_cost(*pair) for pair in graph.calls if pair[0] != pair[1]}
    stated = {name: (graph.own(name), graph.inclusive(name)) for name in graph.names}
    path, again, python, ruby = (pathlib.Path(folder) / name for name in ("x.callgrind", "y.callgrind", "x.pstats", "x.json"))
    path.write_bytes(graph.callgrind())
    check_reports(path, stated, calls, "callgrind")
    run("convert", path, "-o", again)
    check_reports(again, stated, calls, "written again")
    run("merge", path, again, "-o", again)
    check_equal(top(again), {name: (2 * a, 2 * b) for name, (a, b) in stated.items()}, "merged")
    check_equal(top("--base", path, path), {}, "subtracted from itself")
    differences = json.loads(run("diff", "--json", "--cum", path, again)[0])["functions"]
    check_equal({row["name"]: row["difference"] for row in differences}, {name: b for name, (_, b) in stated.items()}, "diff")
    python.write_bytes(graph.pstats())
    stated = {name: (graph.own(name), graph.cumulative[name]) for name in graph.names}
    check_reports(python, stated, calls, "pstats")
    ruby.write_bytes(graph.stackprof())
    check_reports(ruby, stated, calls, "stackprof")


@case
def random_call_graphs_come_back_from_callgrind_pstats_and_stackprof():
    for number in range(GRAPHS):
        with tempfile.TemporaryDirectory() as folder:
            check_graph(Graph(number), folder)


@case
def threads_keep_their_stated_costs():
    graphs = [Graph(101), Graph(102)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / f"{i}.callgrind" for i in range(2)]
        for i, path in enumerate(paths):
            path.write_bytes(graphs[i].callgrind().replace(b"events:", b"thread: %d\nevents:" % i, 1))
        for i, graph in enumerate(graphs):
            stated = {name: (graph.own(name), graph.inclusive(name)) for name in graph.names}
            check_equal(top("--thread", str(i), *paths), stated, f"--thread {i}")
            groups = json.loads(run("top", "--json", "-n", "0", "--by-thread", *paths)[0])["threads"]
            rows = {row["name"]: (row["self"], row["total"]) for row in groups[str(i)]["functions"]}
            check_equal(rows, stated, f"thread {i} of --by-thread")


# --- Files of the trials ---------------------------------------------------------------------------------------------


@case
def functions_in_a_circle_and_beside_it_have_stated_costs():
    rows = top(DATA / "cyc.callgrind")
    check_equal({name: rows[name][1] for name in ("render", "parse", "visit", "children")},
                {"render": 90055, "parse": 2641599, "visit": 2641591, "children": 2641272}, "callgrind")
    rows = top(DATA / "cyc.pstats")
    wanted = {"children": 877445997, "visit": 877488948, "parse": 877507262, "main": 879128588, "render": 1605238,
              "<built-in method builtins.exec>": 879202859}
    check_equal({name: rows[name][1] for name in wanted}, wanted, "pstats")


@case
def files_of_a_circle_cost_what_calls_from_outside_cost():
    for name, total in (("cyc.callgrind", 2731664), ("cyc.pstats", 879128588)):
        rows = top("--granularity", "files", DATA / name)
        check_equal(next(values[1] for file, values in rows.items() if "cyc." in file), total, name)


@case
def estimated_stacks_divide_a_circle_by_what_its_functions_cost():
    rows = top("--focus", "render|parse", DATA / "cyc.callgrind")
    check_equal({name: rows[name][1] for name in ("render", "parse", "visit", "children", "work")},
                {"render": 90055, "parse": 2641599, "visit": 2641591, "children": 2641272, "work": 2588280}, "with a filter")


@case
def negative_values_come_back_from_callgrinds_format():
    with tempfile.TemporaryDirectory() as folder:
        written = pathlib.Path(folder) / "x.callgrind"
        run("convert", DATA / "pp_neg.pb.gz", "-o", written)
        check_equal(top(written), top(DATA / "pp_neg.pb.gz"), "after callgrind and back")


@case
def requests_that_xdebug_appends_to_a_file_are_added():
    check_equal(top(DATA / "xd_append.cg"), {"{main}": (30000, 42000), "php::strlen": (12000, 12000)}, "two requests")


@case
def a_request_of_xdebug_without_a_summary_is_read_and_named():
    whole = (DATA / "xd_append.cg").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        cut = pathlib.Path(folder) / "x.cg"
        cut.write_bytes(whole[:whole.rindex(b"{main}")])
        check_equal(top(cut), {"{main}": (10000, 15000), "php::strlen": (12000, 12000)}, "functions that returned")
        check("1 of 2 requests in the file did not end" in run("top", cut)[1], "top says nothing")


@case
def only_views_that_need_stacks_say_that_they_are_estimated():
    line = "the stacks are estimated: the file states the costs of functions and calls, and has no stacks"
    path = DATA / "cyc.callgrind"
    for report in (["top"], ["tree"], ["peek", "main"], ["list", "visit"], ["top", "--thread", ".*"]):
        check("estimated" not in run(*report, path)[1], f"{report} is exact")
    for report in (["traces"], ["flame"]):
        check(line in run(*report, path)[1], f"{report} says nothing")
    check("a filter needs stacks" in run("top", "--focus", "render", path)[1], "--focus says nothing")
    with tempfile.TemporaryDirectory() as folder:
        check(line in run("convert", path, "-o", pathlib.Path(folder) / "x.pb.gz")[1], "convert says nothing")
        check("estimated" not in run("convert", path, "-o", pathlib.Path(folder) / "x.callgrind")[1], "callgrind is exact")


main()
