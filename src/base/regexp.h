/* Regular expressions in the syntax of RE2, which profiles and users of pprof write, matched in time linear in the
 * text.
 *
 * Known: literals, ., [classes] with [:names:], \d \D \w \W \s \S, \b \B ^ $ \A \z, groups (plain, (?:…), (?P<name>…)),
 * the flags i, s and U, |, * + ? {n} {n,} {n,m} (greedy or not: only whether it matches is asked), \t \n \r \f \v \a
 * \xFF \x{10FFFF} \012 \Q…\E. Not known, and rejected: \p{…} and \pN, \C, the flag m. Only ASCII letters are compared
 * without case. Text is UTF-8; a byte that is not UTF-8 is one character.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_REGEXP_H
#define OFFBEAT_BASE_REGEXP_H

#include "base/slice.h"
#include "base/status.h"

enum {
    REGEXP_BYTES_MAX = 1 << 16,
    REGEXP_INSTRUCTIONS_MAX = 1 << 13,
    REGEXP_RANGES_MAX = 1 << 14,
    REGEXP_REPEAT_MAX = 1000,
    REGEXP_DEPTH_MAX = 100, /* groups in groups */
};

/* {0} is valid for regexp_fini only. Not for several threads: a match writes to it. */
struct regexp {
    struct regexp_instruction *instructions;
    size_t count, capacity;
    struct regexp_range *ranges;
    size_t range_count, range_capacity;
    uint32_t *states;       /* working memory of a match: the states now and next, marks, a stack */
    uint32_t round;         /* the last one that marks hold */
    struct regexp_dfa *dfa; /* made by the first match within a text; NULL */
    uint64_t steps_left;
    bool is_exhausted; /* a match stopped because there were no steps left, and gave false */
};

/* All matches together take at most STEPS_LEFT steps (at first UINT64_MAX); a step takes some nanoseconds.
 * STATUS_MALFORMED or STATUS_UNSUPPORTED with the offset in PATTERN, STATUS_TOO_LARGE past a maximum. */
enum status regexp_compile(struct regexp *regexp, struct slice pattern, struct error *error);
void regexp_fini(struct regexp *regexp);

/* True if it matches all of TEXT. At most so many steps as TEXT has bytes, times regexp.count. */
bool regexp_matches_whole(struct regexp *regexp, struct slice text);
/* True if it matches anywhere in TEXT. Mostly one step for each byte (regexp_dfa.c), at most the same time. */
bool regexp_matches_within(struct regexp *regexp, struct slice text);

#endif
