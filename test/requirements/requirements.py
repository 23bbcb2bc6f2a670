"""Checks doc/requirements.md against the tests: each requirement has a test that names it, each id that a test names is in the
document, each test that the document names exists, each section of the documents has a row.
Argument: a part of the names of the cases to run. SPDX-License-Identifier: MIT"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import case, check, check_equal, main, skip  # noqa: E402

DOCUMENT = ROOT / "doc/requirements.md"
TESTS = ROOT / "test"
SPECIFICATION = ROOT.parent / "shared/spec"  # beside a developer's clone
AREAS = "FMT|V1|V2|ENV|SES|LNK|REL|PPF"
# One id, or several in a row: "SES-4, 5, 6", "LNK-1 to LNK-3", "PPF-1 … PPF-8", "LNK-1..3", "manual_SES_3_SES_4".
ID = re.compile(rf"(?<![A-Za-z0-9])({AREAS})[-_](\d+)((?:\s*(?:…|\.\.|to|,)\s*(?:and )?(?:(?:{AREAS})-)?\d+)*)(?![0-9])")
NEXT = re.compile(rf"(…|\.\.|to|,)\s*(?:and )?(?:({AREAS})-)?(\d+)")
REFERENCE = re.compile(r"`([a-z_0-9/]+(?:\.[a-z]+)?)(?:: ([A-Za-z0-9_, ]+))?`")
EXCUSE = re.compile(r"^(not held|does not apply): \S.{10,}")


def ids_in(text):
    """All ids that TEXT names. Of "SES-4, 5" both; of "FMT-1 to FMT-3" all three."""
    found = set()
    for match in ID.finditer(text):
        area, last = match[1], int(match[2])
        found.add(f"{area}-{last}")
        for joint, other, number in NEXT.findall(match[3]):
            first = last + 1 if joint in ("…", "..", "to") and other in ("", area) else int(number)
            area, last = other or area, int(number)
            found |= {f"{area}-{one}" for one in range(first, last + 1)}
    return found


def rows(text, columns):
    """The cells of the tables that have so many columns, without their heads."""
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("|--") and not line.startswith("| id ") and not line.startswith("| section "):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == columns:
                yield cells


def requirements(text):
    """{id: its row}"""
    return {cells[0]: cells for cells in rows(text, 4) if re.fullmatch(rf"(?:{AREAS})-\d+", cells[0])}


def sentences(text):
    """(section, what it says, held by) of the tables of the documents."""
    return [cells for cells in rows(text, 3)]


def test_files():
    """{path below test/: its text}, of all that holds tests; not of what tests read."""
    own = pathlib.Path(__file__).resolve()
    found = [path for suffix in ("*.py", "*.c", "*.sh", "script") for path in TESTS.rglob(suffix) if path.resolve() != own]
    return {str(path.relative_to(TESTS)): path.read_text(encoding="utf-8", errors="replace") for path in found}


def file_of(name, files):
    """The text of the test NAME: a file, or the folder of a case of the command line."""
    return files.get(name) or files.get(f"{name}/script")


def problem_of_reference(name, cases, files):
    text = file_of(name, files)
    if text is None:
        return f"there is no test/{name}"
    missing = [one for one in re.findall(r"\w+", cases) if not re.search(rf"(?:TEST\(|def ){one}\b", text)]
    return f"test/{name} has no case {missing}" if missing else ""


def problems_of_requirement(cells, files):
    name, _, source, held = cells
    if not re.search(r"\b00[0-4]\b", source):
        yield f"{name} names no document"
    if EXCUSE.match(held):
        return
    references = REFERENCE.findall(held)
    if not references:
        yield f"{name} names no test and no reason"
    for reference, cases in references:
        problem = problem_of_reference(reference, cases, files)
        if problem:
            yield f"{name}: {problem}"
        elif name not in ids_in(file_of(reference, files)):
            yield f"{name}: test/{reference} does not name it"


def problems_of_sentence(cells, known, files):
    section, said, held = cells
    where = f"{section} “{said[:40]}”"
    if EXCUSE.match(held):
        return
    references = REFERENCE.findall(held)
    ids = ids_in(REFERENCE.sub("", held))
    if not references and not ids:
        yield f"{where}: no test, no requirement and no reason"
    if len(ids) > 1:
        yield f"{where}: sentences of different requirements have a row each"
    for name in sorted(ids - known):
        yield f"{where}: {name} is no requirement"
    for reference, cases in references:
        problem = problem_of_reference(reference, cases, files)
        if problem:
            yield f"{where}: {problem}"


def all_problems(text, files):
    table = requirements(text)
    for cells in table.values():
        yield from problems_of_requirement(cells, files)
    for cells in sentences(text):
        yield from problems_of_sentence(cells, set(table), files)
    for name, content in sorted(files.items()):
        for unknown in sorted(ids_in(content) - set(table)):
            yield f"test/{name} names {unknown}, which doc/requirements.md lacks"


def document():
    return DOCUMENT.read_text(encoding="utf-8")


@case
def each_requirement_and_sentence_has_a_test_or_a_reason():
    text = document()
    check(len(requirements(text)) > 70 and len(sentences(text)) > 100, "the tables were not found")
    problems = list(all_problems(text, test_files()))
    check(not problems, "\n".join(problems))


@case
def each_requirement_of_the_specification_is_in_the_document():
    if not (SPECIFICATION / "requirements.md").is_file():
        skip(f"{SPECIFICATION} is not there")
    wanted = re.findall(rf"^\| ((?:{AREAS})-\d+) \|", (SPECIFICATION / "requirements.md").read_text(encoding="utf-8"), re.MULTILINE)
    check_equal(sorted(set(wanted) - set(requirements(document()))), [], "requirements that the document lacks")


@case
def each_section_of_the_documents_has_a_row():
    if not (SPECIFICATION / "seeds").is_dir():
        skip(f"{SPECIFICATION}/seeds is not there")
    named = {cells[0] for cells in sentences(document())}
    for path in sorted((SPECIFICATION / "seeds").iterdir()):
        number = path.name[:3]
        check(any(one.startswith(number) for one in named), f"no row of document {number}")
        headings = re.findall(r"^#{2,4} \[?([^\]\n]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        missing = [one for one in headings if f"{number} {one.strip()}" not in named]
        check(not missing, f"document {number}: no row of {missing}")


@case
def what_is_missing_or_wrong_is_found():
    files = {"unit/a.c": "/* SES-1, 2; LNK-1 to LNK-3 */ TEST(it_works_SES_5_V1_6)", "cli/cases/b/script": "# V2-1"}
    check_equal(ids_in(files["unit/a.c"]), {"SES-1", "SES-2", "LNK-1", "LNK-2", "LNK-3", "SES-5", "V1-6"}, "ids")
    good = "| SES-1 | text | 000 §A | `unit/a.c` |\n| V2-1 | text | 000 §A | `cli/cases/b` |\n"
    others = "".join(f"| {one} | text | 000 | not held: nobody has written it |\n" for one in ("SES-2", "LNK-1", "LNK-2", "LNK-3", "SES-5", "V1-6"))
    check_equal(len(list(all_problems(good + others + "| 000 A | said | SES-1, V2-1 |", files))), 1, "problems of a row with two requirements")
    check_equal(list(all_problems(good + others + "| 000 A | said | SES-1, `unit/a.c: it_works_SES_5_V1_6` |", files)), [], "of a good one")
    for broken, said in (("| SES-1 | text | 000 §A | `unit/b.c` |", "SES-1: there is no test/unit/b.c"),
                         ("| SES-1 | text | 000 §A | `unit/a.c: other` |", "SES-1: test/unit/a.c has no case ['other']"),
                         ("| SES-1 | text | 000 §A | by hand |", "SES-1 names no test and no reason"),
                         ("| SES-1 | text | somewhere | `unit/a.c` |", "SES-1 names no document"),
                         ("| SES-9 | text | 000 | `unit/a.c` |", "SES-9: test/unit/a.c does not name it"),
                         ("| 000 A | said | SES-77 |", "000 A “said”: SES-77 is no requirement"),
                         ("| 000 A | said | it is so |", "000 A “said”: no test, no requirement and no reason")):
        check(said in list(all_problems(good + others + broken, files)), f"not found: {said}")
    check("test/cli/cases/b/script names V2-1, which doc/requirements.md lacks" in list(all_problems(others, files)), "an unknown id")


main(sys.argv[1] if len(sys.argv) > 1 else "")
