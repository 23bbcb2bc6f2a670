/* Our regular expressions, for the C++ of regexps.cc.  SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/regexp.h"

struct regexp *ours_new(const char *pattern, size_t size);
void ours_free(struct regexp *regexp);
bool ours_matches(struct regexp *regexp, const char *text, size_t size);

struct regexp *ours_new(const char *pattern, size_t size)
{
    struct regexp *regexp = calloc(1, sizeof(*regexp));
    if (regexp && regexp_compile(regexp, slice_of(pattern, size), NULL) == STATUS_OK) return regexp;
    free(regexp);
    return NULL;
}

void ours_free(struct regexp *regexp)
{
    regexp_fini(regexp);
    free(regexp);
}

bool ours_matches(struct regexp *regexp, const char *text, size_t size)
{
    return regexp_matches_within(regexp, slice_of(text, size));
}
