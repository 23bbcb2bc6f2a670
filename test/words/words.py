"""Finds the words and the old nouns that doc/style.md lists, in comments, strings and names of every file of the repository.

    words.py                     checks the files, as TAP
    words.py --list [PATH]…      prints PATH:LINE: the words, and what to write instead; exits with 1 if it finds one
    words.py --sample N [SEED]   prints N sentences of comments and documents, picked at random, for a reader to judge

An underscore counts as a space, so that names are checked as sentences are. A phrase may continue on the next line.
A program cannot check these entries of the list, because their proper uses look the same:
  "before" (for "in front of"), "had" (for "received"), "who is in" (other than exactly these words), "goes" without one of the
  prepositions below, "name" (for "symbolize"), "place" (for "source location"; only "source place" is found), "text" (for
  "string"), "member" (for "baggage"; JSON has members), "followers", "wanted", "facts" and "losses" where they are plain words,
  "refuse" (for "reject"; a server refuses a connection), "discard" (the verb).
SPDX-License-Identifier: MIT"""
import fnmatch
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
    (r"\bbookkeeping\b", "outcome"),
    (r"\bleft ?overs?\b", "orphaned recording"),
    (r"\btime lines?\b|\btimelines?\b", "timestamps"),
    (r"\bwhat waits\b", "retry queue, spool"),
    (r"\bthreads? to show\b", "default thread"),
]
RULES = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in WORDS + NOUNS]
