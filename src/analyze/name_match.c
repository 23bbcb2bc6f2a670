/* SPDX-License-Identifier: MIT */
#include "analyze/name_match.h"

#include "profile/simple_name.h"

#include <inttypes.h>
#include <stdlib.h>

enum match_result { NOT_MATCHED_YET, MATCHES, DIFFERS };

enum status compile_option(struct regexp *regexp, const char *option, struct slice pattern, struct error *error)
{
    struct error reason = {0};
    enum status status = regexp_compile(regexp, pattern, &reason);
    regexp->steps_left = EXPRESSION_STEPS_MAX;
    if (status == STATUS_OK) return status;
    return error_set(error, status, 0, "%s: %s, at byte %" PRIu64 " of the expression", option, reason.message,
                     reason.offset);
}

enum status check_steps(const struct regexp *regexp, const char *option, struct error *error)
{
    if (!regexp->is_exhausted) return STATUS_OK;
    return error_set(error, STATUS_TOO_LARGE, 0, "%s: the expression takes too long on these names; use a simpler one",
                     option);
}

enum status name_match_init(struct name_match *match, const struct profile *profile, const char *option,
                            const char *pattern, struct error *error)
{
    *match = (struct name_match){.profile = profile, .count = profile->strings.count};
    if (!pattern || pattern[0] == '\0') return STATUS_OK;
    enum status status = compile_option(&match->regexp, option, slice_of_text(pattern), error);
    if (status != STATUS_OK) return status;
    match->is_set = true;
    for (size_t i = 0; i < match->count; i++)
        match->regexp.steps_left += EXPRESSION_STEPS_OF_BYTE * profile->strings.items[i].size;
    match->results = calloc(match->count, sizeof(*match->results));
    return match->results ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for %s", option);
}

void name_match_fini(struct name_match *match)
{
    regexp_fini(&match->regexp);
    free(match->results);
    *match = (struct name_match){0};
}

bool name_matches_text(struct name_match *match, struct slice name)
{
    if (!match->is_set) return false;
    return regexp_matches_within(&match->regexp, match->simplifies ? simple_name(name) : name);
}

bool name_matches(struct name_match *match, struct string_id string)
{
    if (!match->is_set || string.index >= match->count) return false;
    uint8_t *result = &match->results[string.index];
    if (*result == NOT_MATCHED_YET)
        *result = name_matches_text(match, profile_slice(match->profile, string)) ? MATCHES : DIFFERS;
    return *result == MATCHES;
}
