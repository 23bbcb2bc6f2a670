/* The values of --tag-focus and --tag-ignore: a range of numbers, or expressions for texts.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_TAG_FILTER_H
#define OFFBEAT_ANALYZE_TAG_FILTER_H

#include "base/regexp.h"
#include "profile/label_units.h"

enum { TAG_EXPRESSIONS_MAX = 64 };

struct tag_filter {
    bool is_set;
    struct slice key; /* empty: any */
    bool is_range;
    bool has_low, has_high;
    double low, high;
    char unit[32]; /* unit of LOW and HIGH, as unit_scale calls it */
    struct regexp expressions[TAG_EXPRESSIONS_MAX];
    size_t expression_count;
};

/* TEXT NULL or "": not set. OPTION names it in ERROR. TEXT must live as long as FILTER. */
enum status tag_filter_init(struct tag_filter *filter, const char *option, const char *text, struct error *error);
void tag_filter_fini(struct tag_filter *filter); /* accepts {0} */

bool tag_filter_matches(struct tag_filter *filter, const struct label_units *units, const struct sample_labels *labels);

#endif
