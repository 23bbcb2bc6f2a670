"""Real programs under the sampler and the SDK. Three kinds of cases, each for every program of list.py:

- "NAME is not changed": standard output, standard error, exit status and all files are the same bare, recorded
  (`offbeat record`), and with the SDK preloaded (a server that answers, and a port that is closed); each as root and as nobody.
  The long form has two bare runs: whatever differs between those must be declared in list.py, with its reason.
- "NAME has complete stacks": of the stacks that were taken, at least 99 % reach the root (list.py states each exception and its
  reason), as root, as nobody, and together. One stack may miss it where a run has fewer than 100. Runs of under 500 stacks that
  miss it are repeated, twice at most, and count together.
- "NAME keeps its CPU time": the stated part of the user + system time that the shell says it took, without the sampler's, is in the
  profile; as root and as nobody.

Arguments: the build folder; "all", "quick" (the dozen of ./dev test, in fewer forms) or "figures" (only the two measured runs);
names of programs, if not every one. The table of figures is printed, and written to programs.txt in the build folder.  SPDX-License-Identifier: MIT"""
import functools
import os
import pathlib
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import list as programs  # noqa: E402
from forms import MEASURED_FORMS, QUICK_FORMS, SAME_FORMS, Form, Stage, differences, run_form  # noqa: E402
from inputs import write_inputs  # noqa: E402
from recording_figures import add_figures, add_up  # noqa: E402
from tap import case, check, main, skip  # noqa: E402

AT_ONCE = 2
FEW_STACKS, MORE_RUNS_MAX = 500, 2
CPU_SECONDS_MIN = 0.3  # a program that used less may end before a chunk is due


class Results:
    """What was found of one program. Its forms run when they are first asked for, one at a time: they share folders."""

    def __init__(self, stage, program, same_forms, measured_forms):
        self.stage, self.program, self.same_forms, self.measured_forms = stage, program, same_forms, measured_forms
        self.bare_runs = 2 if measured_forms else 1
        self.lock = threading.Lock()
        self.bare = {}      # {user: Outcome}
        self.changes = []   # lines
        self.figures = {}   # {form: Figures}
        self.own_lines = set()
        self.is_same_done = self.is_measured = False

    def compare(self):
        """Lines that say what a form changed."""
        with self.lock:
            if not self.is_same_done:
                self.is_same_done = True
                for user in self.program.users:
                    self._compare_as(user)
            return self.changes

    def _compare_as(self, user):
        bare = [self._run(Form("bare", user)) for _ in range(self.bare_runs)]
        if not all(bare):
            return
        first = self.bare[user] = bare[0]
        self.changes += [f"two bare runs as {user}: {line}" for other in bare[1:] for line in differences(self.program, first, other)]
        if first.status < 0 or first.status in (126, 127):
            self.changes.append(f"bare as {user}: status {first.status}: {first.stderr[-500:]!r}")
        for form in self.same_forms:
            if form.user == user:
                self._compare_form(first, form)

    def _compare_form(self, bare, form):
        outcome = self._run(form)
        if not outcome:
            return
        self.changes += [f"{form}: {line}" for line in differences(self.program, bare, outcome)]
        self.own_lines.update(outcome.own_lines)
        if form.kind == "record":
            self.figures[form] = add_figures(outcome.recordings)
            if not outcome.recordings:
                self.changes.append(f"{form}: no profile; {outcome.own_lines}")
        if not outcome.is_profiled and bare.cpu_seconds > CPU_SECONDS_MIN:
            self.changes.append(f"{form}: no chunk was sent, and none is kept")

    def measure(self):
        with self.lock:
            if not self.is_measured:
                self.is_measured = True
                for form in self.measured_forms:
                    if form.user in self.program.users:
                        self._measure(form)
            return self.figures

    def _measure(self, form):
        outcome = self._run(form)
        if not outcome:
            return
        figures = add_figures(outcome.recordings)
        figures.user_and_system = outcome.cpu_seconds
        figures.in_profile = outcome.profile_cpu_seconds
        self.figures[form] = figures

    def run_again(self, form):
        """The figures of one more run, without its CPU time, or None."""
        with self.lock:
            outcome = self._run(form)
            return add_figures(outcome.recordings) if outcome else None

    def _run(self, form):
        try:
            return run_form(self.stage, self.program, form)
        except (TimeoutError, RuntimeError) as failed:
            self.changes.append(f"{form}: {failed}")
            return None


def skip_without(program):
    if os.geteuid() != 0:
        skip("only root can run programs as root and as nobody")
    missing = [word for word in program.packages.split() if not pathlib.Path(f"/var/lib/dpkg/info/{word}.list").exists()
               and not list(pathlib.Path("/var/lib/dpkg/info").glob(f"{word}:*.list"))]
    if missing:
        skip(f"not installed: {' '.join(missing)}")


def add_case(name, program, function):
    def run_it():
        skip_without(program)
        function()

    run_it.__name__ = f"{program.name} {name}"
    case(run_it)


def check_same(results):
    changes = results.compare()
    check(not changes, "\n".join(changes))


def is_short(figure, wanted):
    return figure.stacks - figure.root > max(1, figure.stacks * (100 - wanted) / 100)


def with_more_runs(results, form, figure):
    """Few stacks say little about a rate: 2 of 104 may be 1 % in truth. All runs count together."""
    for _ in range(MORE_RUNS_MAX):
        if not is_short(figure, results.program.complete) or figure.stacks >= FEW_STACKS:
            break
        more = results.run_again(form)
        if not more:
            break
        figure = add_up([figure, more])
    return figure


def check_complete(results):
    figures, wanted = results.measure(), results.program.complete
    if not figures and not results.measured_forms:
        results.compare()
    every = {form: with_more_runs(results, form, figure) for form, figure in figures.items()}
    every["all together"] = add_up(every.values())
    short = [f"{form}: {figure.complete:.2f} % of {figure.stacks} stacks, {wanted} % required; {figure.causes()}"
             for form, figure in every.items() if is_short(figure, wanted)]
    check(figures, "no form was measured")
    check(wanted == 0 or any(figure.stacks for figure in figures.values()), "no stack was taken")
    check(not short, "\n".join(short))


def check_cpu(results):
    figures = [(form, figure) for form, figure in results.measure().items() if figure.user_and_system]
    check(figures, "no form was measured")
    short = [f"{form}: {figure.cpu:.1f} % of {figure.user_and_system:.2f} s in the profile, {results.program.cpu} % required; {figure.causes()}"
             for form, figure in figures if figure.cpu < results.program.cpu]
    check(not short, "\n".join(short))


def cell(by_user, user, field, digits):
    """A dash if there is none: without stacks, or if a server's processes were not waited for, so that their time is unknown."""
    if user not in by_user or (field == "cpu" and by_user[user].user_and_system < 0.05):
        return "-"
    return f"{getattr(by_user[user], field):.{digits}f}"


def table(all_results):
    lines = ["per cent of stacks that reach the root | of user + system time in the profile | of ticks lost",
             f"{'program':18} {'changed':>8} {'CPU s':>6} | {'root':>7} {'nobody':>7} | {'root':>6} {'nobody':>6} | {'root':>6} {'nobody':>6} | what record said"]
    for results in all_results:
        if not results.is_measured:
            continue
        by_user = {form.user: figure for form, figure in results.figures.items() if figure.stacks}
        cells = [[cell(by_user, user, field, digits) for user in ("root", "nobody")]
                 for field, digits in (("complete", 2), ("cpu", 1), ("lost", 1))]
        cpu = max((figure.user_and_system for figure in by_user.values()), default=0)
        changed = "-" if not results.is_same_done else str(len(results.changes) or "no")
        lines.append(f"{results.program.name:18} {changed:>8} {cpu:6.2f} | {cells[0][0]:>7} {cells[0][1]:>7} | {cells[1][0]:>6} {cells[1][1]:>6} | "
                     f"{cells[2][0]:>6} {cells[2][1]:>6} | {len(results.own_lines)}")
    return lines


def run_all(build, which, words):
    forms = (QUICK_FORMS, ()) if which == "quick" else (SAME_FORMS, MEASURED_FORMS)
    with tempfile.TemporaryDirectory(prefix="offbeat-programs-") as folder:
        stage = Stage(build, folder)
        write_inputs(stage.inputs)
        chosen = [program for program in programs.LIST if (which != "quick" or program.is_quick)
                  and (not words or any(word == program.name for word in words))]
        all_results = [Results(stage, program, *forms) for program in chosen]
        for results in all_results if which != "figures" else ():
            add_case("is not changed", results.program, functools.partial(check_same, results))
        for results in all_results:
            add_case("has complete stacks", results.program, functools.partial(check_complete, results))
            if results.program.cpu and which != "quick":
                add_case("keeps its CPU time", results.program, functools.partial(check_cpu, results))
        try:
            main(at_once=AT_ONCE)
        finally:
            lines = table(all_results)
            print(*(f"# {line}" for line in lines), sep="\n")
            pathlib.Path(build, "programs.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_all(sys.argv[1], sys.argv[2], sys.argv[3:])
