"""Checks the comments of the C code against the rules of CONTRIBUTING.md ("Comments").

    comments.py                     checks every file, as TAP
    comments.py --list [PATH]…      prints PATH:LINE: RULE: the comment; exits with 1 if it finds one
    comments.py --sample N [SEED]   prints N comments chosen at random, for a reader to judge

A program sees how a comment begins, not whether it is clear. Test case names are checked for their length.
SPDX-License-Identifier: MIT"""
import bisect
import pathlib
import random
import re
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "include", "test", "example", "bench")
TEST_NAME_CHARACTERS = 70  # too many


def words(text):
    return frozenset(text.split())


# First words, in lower case. A lone relative clause leaves out the noun that it describes.
RELATIVE = words("of what which by those they so who whose whom that how why where")
CONTINUES = words("and or but nor also too likewise else ditto")
PREPOSITIONS = words("as in for from after with without at to if before until only not under between again when while then over since because "
                     "unless once on through during above below against")
PRONOUNS = words("it its this these there he she them")
VERBS_OF_STATE = words("is are was were has have had may can must will")
RULES = {
    # kind of comment: [(rule, first words that break it)]
    "member": [("does not begin with a noun", RELATIVE | CONTINUES | PREPOSITIONS | PRONOUNS | VERBS_OF_STATE)],
    "function": [("does not begin with a verb or the result", RELATIVE | CONTINUES | PREPOSITIONS | PRONOUNS)],
    "other": [("begins with a lone relative clause", RELATIVE - {"where"}), ("continues another comment", CONTINUES)],
}
PAST = re.compile(r"\b(no longer|any ?more|formerly|previously|earlier versions?|older versions? of offbeat|used to be)\b|"
                  r"\b(is|are|has|have|does|do) now\b|^now\b", re.IGNORECASE)
UNIT = re.compile(r"in (\w+ )?(bytes|seconds|milliseconds|microseconds|nanoseconds|ns|us|ms|KB|MB|kibibytes|pages|frames|samples|characters)\b")
FUNCTION = re.compile(r"\n(?!typedef|TEST\(|struct \w+ \{|union \w+ \{|enum \w+ \{|extern \")[A-Za-z_][^;{}=#/]*\(")
IGNORED = re.compile(r"^(-{3}|SPDX|clang-format|NOLINT|fall ?through)")


class Comment(NamedTuple):
    line: int
    kind: str  # of RULES
    text: str


def joined(body):
    return " ".join(" ".join(re.sub(r"^\s*\*+", "", line).split()) for line in body.split("\n")).strip()


def tokens(source):
    """Comments, strings and braces, in the order of the source."""
    return re.finditer(r"/\*(?P<comment>.*?)\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(?P<type>\b(?:struct|union)\b[\s\w]*\{)|(?P<brace>[{}])",
                       source, re.DOTALL)


def comments(source):
    """Each block comment of a C file that has words."""
    ends = [match.start() for match in re.finditer("\n", source)]
    scopes = []  # True: a struct or union
    for token in tokens(source):
        if token["type"]:
            scopes.append(True)
        elif token["brace"] == "{":
            scopes.append(False)
        elif token["brace"] and scopes:
            scopes.pop()
        text = joined(token["comment"] or "")
        if not text or IGNORED.match(text):
            continue
        begin = source.rfind("\n", 0, token.start()) + 1
        if scopes and scopes[-1]:
            kind = "member"
        elif not scopes and begin == token.start() and FUNCTION.match(source, token.end()):
            kind = "function"
        else:
            kind = "other"
        yield Comment(bisect.bisect_left(ends, token.start()) + 1, kind, text)


def broken_rules(comment):
    first = re.match(r"\w*", comment.text)[0].lower()
    if not UNIT.match(comment.text):
        for rule, first_words in RULES[comment.kind]:
            if first in first_words:
                yield rule
    if PAST.search(comment.text):
        yield "says what was, not what is"


def files(endings=(".c", ".h")):
    return sorted(str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.name.endswith(endings))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def hits(names):
    for name in names:
        for comment in comments(read(name)):
            for rule in broken_rules(comment):
                yield f"{name}:{comment.line}: a comment ({comment.kind}) {rule}: {comment.text}"


def is_below(name, folders):
    return any(name == folder.rstrip("/") or name.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def long_test_names(name, text):
    """The names of test cases that are too long, in C or Python."""
    pattern = r"^TEST\((\w+)" if name.endswith((".c", ".cc")) else r"^@case\w*(?:\(.*\))?\ndef (\w+)"
    return [found for found in re.findall(pattern, text, re.MULTILINE) if len(found) >= TEST_NAME_CHARACTERS]


@case
def every_comment_follows_the_rules():
    found = list(hits(files()))
    check(not found, "\n".join(found))


@case
def names_of_test_cases_are_short():
    found = [f"{name}: {long}" for name in files((".c", ".cc", ".py")) if name.startswith("test/") for long in long_test_names(name, read(name))]
    check(not found, f"{TEST_NAME_CHARACTERS} characters or more:\n" + "\n".join(found))


@case
def a_long_name_of_a_test_case_is_found():
    for name, text in (("a.c", "TEST({})"), ("a.py", "@case\ndef {}():")):
        check_equal(long_test_names(name, text.format("x" * TEST_NAME_CHARACTERS)), ["x" * TEST_NAME_CHARACTERS], name)
        check_equal(long_test_names(name, text.format("x" * (TEST_NAME_CHARACTERS - 1))), [], name)


@case
def kinds_of_comments_are_told_apart():
    source = ('/* The head. */\nstruct a {\n    int b; /* bytes */\n    /* lines */\n    int c;\n};\n/* Adds B. */\nstatic int f(int b)\n{\n'
              '    char *s = "/* no comment { */";\n    /* a reason */\n    return b; /* an end */\n}\n/* A table. */\nstatic const int t[] = {1};\n')
    check_equal([(comment.line, comment.kind) for comment in comments(source)],
                [(1, "other"), (3, "member"), (4, "member"), (7, "function"), (11, "other"), (12, "other"), (14, "other")], "kinds")


@case
def each_rule_finds_a_bad_comment():
    bad = [("member", "that one of their hits stands for: a tick, or some"), ("member", "of the thread"), ("member", "is set once"),
           ("function", "What is left of TEXT."), ("function", "For how long THREAD waits."), ("function", "As above, for a list."),
           ("other", "By whom it is called."), ("other", "and the rest of it"), ("other", "The cache is no longer used."),
           ("function", "Returns what an earlier version wrote.")]
    for kind, text in bad:
        check(list(broken_rules(Comment(1, kind, text))), f"not found: {text}")


@case
def good_comments_are_left_alone():
    good = [("member", "CPU time that one timer signal stands for, ns"), ("member", "in bytes"), ("member", "NULL: none"),
            ("function", "Returns the stack that THREAD had, or NULL."), ("function", "True if NAME is a placeholder."),
            ("other", "Where the kernel denies the timer, nothing is written."), ("other", "The clock may be set back at any time.")]
    for kind, text in good:
        check_equal(list(broken_rules(Comment(1, kind, text))), [], text)


def run():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--list"]:
        found = list(hits(name for name in files() if not arguments[1:] or is_below(name, arguments[1:])))
        print("\n".join(found))
        sys.exit(1 if found else 0)
    if arguments[:1] == ["--sample"]:
        everything = [(name, comment) for name in files() if name.startswith(("src/", "include/")) for comment in comments(read(name))]
        for name, comment in random.Random(int(arguments[2]) if len(arguments) > 2 else None).sample(everything, int(arguments[1])):
            print(f"{name}:{comment.line}: {comment.text}")
        return
    main()


run()
