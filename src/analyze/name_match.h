/* A regular expression over the strings of a profile: each string is matched at most once.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_NAME_MATCH_H
#define OFFBEAT_ANALYZE_NAME_MATCH_H

#include "base/regexp.h"
#include "profile/profile.h"

struct name_match {
    bool is_set; /* false: there is no expression, and nothing matches */
    const struct profile *profile;
    struct regexp regexp;
    uint8_t *results; /* result of matching each string */
    size_t count;
    bool simplifies; /* names are matched without parameters (profile/simple_name.h) */
};

/* PATTERN NULL or "": no expression. OPTION names it in ERROR. Strings that are added to PROFILE later do not match. */
enum status name_match_init(struct name_match *match, const struct profile *profile, const char *option,
                            const char *pattern, struct error *error);
void name_match_fini(struct name_match *match); /* accepts {0} */

/* True if the expression matches anywhere in the string. */
bool name_matches(struct name_match *match, struct string_id string);
bool name_matches_text(struct name_match *match, struct slice name);

/* The steps of matching (base/regexp.h) that one expression may take: about a second, and what the names need. */
#define EXPRESSION_STEPS_MAX (UINT64_C(1) << 28)
enum { EXPRESSION_STEPS_OF_BYTE = 16 };

/* STATUS_TOO_LARGE, and ERROR names OPTION, if the expression had no steps left. */
enum status check_steps(const struct regexp *regexp, const char *option, struct error *error);

/* Compiles PATTERN; on failure ERROR names OPTION and the remedy. */
enum status compile_option(struct regexp *regexp, const char *option, struct slice pattern, struct error *error);

#endif
