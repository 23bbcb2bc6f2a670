"""Finds the words and the old nouns of the list below, in comments, strings and names of every file of the repository.

    words.py                     checks the files, as TAP
    words.py --list [PATH]…      prints PATH:LINE: the words, and what to write instead; exits with 1 if it finds one
    words.py --sample N [SEED]   prints N sentences of comments and documents, picked at random, for a reader to judge

An underscore counts as a space, so that names are checked as sentences are. A phrase may continue on the next line.
A program cannot check these entries of the list, because their proper uses look the same:
  "before" (for "in front of"), "had" (for "received"), "who is in" (other than exactly these words), "goes" without one of the
  prepositions below, "name" (for "symbolize"), "place" (for "source location"; only "source place" is found), "text" (for
  "string"), "member" (for "baggage"; JSON has members), "followers", "wanted", "facts" and "losses" where they are plain words,
  "discard" (the verb).
SPDX-License-Identifier: MIT"""
import fnmatch
import functools
import pathlib
import random
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import case, check, check_equal, main  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

# (regular expression, what to write instead). Matched without regard to case, underscores read as spaces.
WORDS = [
    (r"\b(told|tells?|telling)\b", "report, say, print, state; distinguish (tell apart)"),
    (r"\b(is|are|was|be) said\b", "prints, reports, states"),
    (r"\banew\b", "again"),
    (r"\bonce more\b", "again"),
    (r"\bbehind\b", "after"),
    (r"\bwho(so)?ever\b", "name the person or the program"),
    (r"\bthose of\b", "repeat the noun"),
    (r"\bwho is in\b", "name it"),
    (r"(?<!there )\b(is|are|was|were|be) none\b", "say what is missing"),
    (r"\bof old\b", "legacy, earlier"),
    (r"\bof (its|their) own\b", "its own ..., a separate ..."),
    (r"\bbesides\b", "also, in addition to"),
    (r"\b(is|are|be|was|were) had\b", "received"),
    (r"\bfor ever\b", "without end, forever"),
    (r"\bby (itself|themselves)\b", "automatically, alone"),
    (r"\bcom(es?|ing) by\b", "name what happens"),
    (r"\b(stands?|stood|standing)\b(?! (for|in for|up)\b)", "is"),
    (r"\b(lies?|lay|lain|lying)\b(?! out\b)", "is"),
    (r"\bkeeps? no\b", "cannot store, has no"),
    (r"\b(is|are|was|were|be) made of\b|\bmade of (a|the|its|what)\b", "consists of, is built from"),
    (r"\bgo(es)? (to|into|in|out|there|on|by|under|along|with|over|without|beside|after|where|down|up)\b", "is sent, is written; continues"),
    (r"\bthe whole\b", "all of, the entire"),
    (r"\bwish(es|ed)?\b", "desired state, request, hint"),
    (r"\bmade up\b", "assigned, invented, computed"),
]
NOUNS = [
    (r"\breceivers?\b", "server"),
    (r"\b(a|one|each|every|first|last|next|this|that|between|two|per|the) looks?\b|\blooks (a|per) second\b", "tick, scan"),
    (r"\bname ind(ex|ices|exes)\b", "symbol index"),
    (r"\bsource places?\b", "source location"),
    (r"\b(judges?|judged|judging|verdicts?)\b", "validate, result"),
    (r"\brefus(e|es|ed|ing|als?)\b", "reject; deny (of a kernel)"),
    (r"\bbookkeeping\b", "outcome"),
    (r"\bleft ?overs?\b", "orphaned recording"),
    (r"\btime lines?\b|\btimelines?\b", "timestamps"),
    (r"\bwhat waits\b", "retry queue, spool"),
    (r"\bthreads? to show\b", "default thread"),
]
RULES = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in WORDS + NOUNS]

# (files, what the line contains, why it may stay)
EXCEPTIONS = [
    ("test/words/*", r"", "the list itself"),
    ("*/corpus/*", r"", "input for the decoders"),
    ("test/data/*", r"", "input for the decoders"),
    ("test/cli/data/*", r"", "input for the decoders"),
    ("LICENSE", r"", "a quoted text"),
    ("*", r"OFFBEAT_SYMBOLS|symbols=\"receiver\"|\.BR symbols|receiver: the server", "the value of an option; programs use it"),
    ("*.py", r"\b(is|is not|==) None\b", "Python's None"),
]
TEST_NAME_CHARACTERS = 70  # too many
ANY = re.compile("|".join(f"(?:{pattern})" for pattern, _ in WORDS + NOUNS), re.IGNORECASE)  # most lines have no hit
COMMENT = re.compile(r"^\s*(\*+/?|#+|//|/\*+|\.\\\"|>)?\s*")


def is_text(name):
    path = ROOT / name
    return path.is_file() and b"\0" not in path.read_bytes()[:8192]


@functools.cache
def files():
    """Every file of text in the repository that is not excepted as a file."""
    names = subprocess.run(("git", "-C", str(ROOT), "ls-files"), check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in names if not is_excepted(name, "") and is_text(name)]


def is_excepted(name, line):
    return any(fnmatch.fnmatch(name, pattern) and re.search(text, line) for pattern, text, _ in EXCEPTIONS)


def hits_in(name, text):
    """(line number, the words, what to write instead) of each hit that starts on the line."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        following = COMMENT.sub("", lines[number]) if number < len(lines) else ""
        searched = f"{line} {following}".replace("_", " ")
        if not ANY.search(searched):
            continue
        for expression, instead in RULES:
            for match in expression.finditer(searched):
                if match.start() < len(line) and not is_excepted(name, line):
                    yield number, match[0], instead


def hits(names):
    for name in names:
        for number, words, instead in hits_in(name, (ROOT / name).read_text(encoding="utf-8", errors="replace")):
            yield f"{name}:{number}: \"{words}\": write {instead}"


def is_below(name, folders):
    return any(name == folder or name.startswith(f"{folder}/") for folder in folders)


def sentences():
    """(file, sentence) of block comments in C, docstrings and comments in Python and shell, and paragraphs of documents."""
    for name in files():
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        if name.endswith((".c", ".h", ".cc", ".cpp", ".S")):
            parts = re.findall(r"/\*(.*?)\*/", text, re.DOTALL)
        elif name.endswith(".py"):
            parts = re.findall(r'"""(.*?)"""', text, re.DOTALL) + re.findall(r"^\s*# (.*)$", text, re.MULTILINE)
        elif name.endswith(".md"):
            parts = [part for part in re.split(r"\n\s*\n", re.sub(r"```.*?```", "", text, flags=re.DOTALL)) if part[:1] not in "|#<"]
        else:
            parts = re.findall(r"^\s*# (.*)$", text, re.MULTILINE)
        for part in parts:
            joined = " ".join(COMMENT.sub("", line) for line in part.split("\n"))
            for sentence in re.split(r"(?<=[.;:?]) +(?=[A-Z])", joined):
                sentence = " ".join(sentence.split())
                if len(sentence.split()) >= 5 and "SPDX" not in sentence:
                    yield name, sentence


def long_test_names(name, text):
    """The names of test cases that are too long, in C or Python."""
    pattern = r"^TEST\((\w+)" if name.endswith((".c", ".cc")) else r"^@case\w*(?:\(.*\))?\ndef (\w+)"
    return [found for found in re.findall(pattern, text, re.MULTILINE) if len(found) >= TEST_NAME_CHARACTERS]


@case
def no_word_of_the_list_is_in_a_file():
    found = list(hits(files()))
    check(not found, "\n".join(found))


@case
def names_of_test_cases_are_short():
    found = [f"{name}: {long}" for name in files() if name.startswith("test/") and name.endswith((".c", ".cc", ".py"))
             for long in long_test_names(name, (ROOT / name).read_text(encoding="utf-8", errors="replace"))]
    check(not found, f"{TEST_NAME_CHARACTERS} characters or more:\n" + "\n".join(found))


@case
def a_long_name_of_a_test_case_is_found():
    for name, text in (("a.c", "TEST({})"), ("a.py", "@case\ndef {}():")):
        check_equal(long_test_names(name, text.format("x" * TEST_NAME_CHARACTERS)), ["x" * TEST_NAME_CHARACTERS], name)
        check_equal(long_test_names(name, text.format("x" * (TEST_NAME_CHARACTERS - 1))), [], name)


@case
def each_pattern_finds_a_bad_sentence():
    bad = ["the reader is told", "It is said where it is.", "begins anew", "does it once more", "the byte behind the end",
           "whoever has it", "those of the others", "the one who is in it", "a rate that is none", "formats of old", "a file of its own",
           "nothing besides", "it can be had", "lasts for ever", "ends by itself", "places that it comes by", "where it stands",
           "what lies there", "keeps no times", "is made of two", "it goes to the server", "the whole file", "a wish", "times are made up",
           "sent to a receiver", "at each look", "a name index", "a source place", "the judge of chunks", "refused by the kernel", "the bookkeeping",
           "a leftover", "on the time line", "what waits in it", "the thread to show"]
    check_equal(len(bad), len(RULES), "bad sentences, one for each rule")
    for sentence, (expression, _) in zip(bad, RULES):
        check(expression.search(sentence), f"{expression.pattern} does not find {sentence!r}")
        check(list(hits_in("a.c", f"/* {sentence} */")), f"not found in a comment: {sentence}")
        check(list(hits_in("a.c", f"TEST({sentence.replace(' ', '_')})")), f"not found in a name: {sentence}")


@case
def a_phrase_that_continues_on_the_next_line_is_found_once():
    check_equal(len(list(hits_in("a.c", "/* It can be\n * had here. */"))), 1, "hits")


@case
def proper_uses_are_left_alone():
    good = "there is none; it stands for it; x is None; a table lookup; the code goes wrong; layout; a blood test"
    check_equal([found for found in hits_in("a.py", good) if found[1] != "is None"], [], "hits")


arguments = sys.argv[1:]
if arguments[:1] == ["--list"]:
    found = list(hits(name for name in files() if not arguments[1:] or is_below(name, arguments[1:])))
    print("\n".join(found))
    sys.exit(1 if found else 0)
elif arguments[:1] == ["--sample"]:
    chosen = random.Random(int(arguments[2]) if len(arguments) > 2 else None).sample(list(sentences()), int(arguments[1]))
    print("\n".join(f"{name}: {sentence}" for name, sentence in chosen))
else:
    main()
