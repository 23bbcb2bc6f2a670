/* SPDX-License-Identifier: MIT */
#include "analyze/tag_filter.h"

#include "analyze/name_match.h"
#include "profile/label_units.h"
#include "profile/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* --- Reading ------------------------------------------------------------------------------------------------------ */

struct number {
    int64_t value;
    char unit[32];
};

/* Reads "-12kb" at *TEXT and moves *TEXT past it. */
static bool take_number(const char **text, struct number *ret_number)
{
    const char *at = *text;
    char *end;
    size_t length = 0;
    if (*at == '+' || *at == '-') at++;
    if (!isdigit((unsigned char)*at)) return false;
    errno = 0;
    ret_number->value = strtoll(*text, &end, 10);
    while (isalpha((unsigned char)end[length])) length++;
    if (errno != 0 || length >= sizeof(ret_number->unit)) return false;
    memcpy(ret_number->unit, end, length);
    ret_number->unit[length] = '\0';
    *text = end + length;
    return true;
}

/* "N", "N:", ":N" or "N:M", and nothing else. */
static bool parse_range(struct tag_filter *filter, const char *text)
{
    struct number first, second;
    bool has_low = *text != ':';
    if (!has_low) text++;
    if (!take_number(&text, &first)) return false;
    struct scaled_value limit = unit_scale(first.value, first.unit, first.unit);
    (void)snprintf(filter->unit, sizeof(filter->unit), "%s", limit.unit);
    filter->low = filter->high = limit.value;
    filter->has_low = has_low;
    filter->has_high = true;
    if (*text == '\0') return true;
    if (!has_low || *text++ != ':') return false;
    filter->has_high = *text != '\0';
    if (!filter->has_high) return true;
    if (!take_number(&text, &second) || *text != '\0') return false;
    limit = unit_scale(second.value, second.unit, filter->unit);
    filter->high = limit.value;
    return strcmp(limit.unit, filter->unit) == 0;
}

static enum status compile(struct tag_filter *filter, const char *option, const char *text, struct error *error)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        if (filter->expression_count == TAG_EXPRESSIONS_MAX)
            return error_set(error, STATUS_TOO_LARGE, 0, "%s: more than %d expressions", option, TAG_EXPRESSIONS_MAX);
        enum status status =
            compile_option(&filter->expressions[filter->expression_count++], option, slice_of(text, length), error);
        if (status != STATUS_OK || text[length] == '\0') return status;
        text += length + 1;
    }
}

enum status tag_filter_init(struct tag_filter *filter, const char *option, const char *text, struct error *error)
{
    *filter = (struct tag_filter){0};
    if (!text || text[0] == '\0') return STATUS_OK;
    const char *equals = strchr(text, '=');
    filter->is_set = true;
    if (equals) filter->key = slice_of(text, (size_t)(equals - text));
    const char *value = equals ? equals + 1 : text;
    filter->is_range = parse_range(filter, value);
    return filter->is_range ? STATUS_OK : compile(filter, option, value, error);
}

void tag_filter_fini(struct tag_filter *filter)
{
    for (size_t i = 0; i < filter->expression_count; i++) regexp_fini(&filter->expressions[i]);
    *filter = (struct tag_filter){0};
}

/* --- Matching ----------------------------------------------------------------------------------------------------- */

static bool has_key(const struct tag_filter *filter, const struct sample_label *label)
{
    return filter->key.size == 0 || slice_equals_text(filter->key, label->key);
}

static bool is_in_range(const struct tag_filter *filter, const struct label_units *units,
                        const struct sample_label *label)
{
    struct scaled_value number = unit_scale(label->number, label_unit(units, label), filter->unit);
    if (strcmp(number.unit, filter->unit) != 0) return false;
    return (!filter->has_low || number.value >= filter->low) && (!filter->has_high || number.value <= filter->high);
}

static bool text_matches(struct tag_filter *filter, struct regexp *regexp, const struct sample_label *label)
{
    if (filter->key.size > 0) return regexp_matches_within(regexp, slice_of_text(label->text));
    struct buffer pair;
    buffer_init(&pair, SIZE_MAX);
    buffer_append_format(&pair, "%s:%s", label->key, label->text);
    bool is_match = !pair.failed && regexp_matches_within(regexp, buffer_slice(&pair));
    buffer_fini(&pair);
    return is_match;
}

static bool any_label_matches(struct tag_filter *filter, struct regexp *regexp, const struct sample_labels *labels)
{
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct sample_label *label = &labels->items[i];
        if (!label->is_number && has_key(filter, label) && text_matches(filter, regexp, label)) return true;
    }
    return false;
}

bool tag_filter_matches(struct tag_filter *filter, const struct label_units *units, const struct sample_labels *labels)
{
    bool wants_all = filter->key.size == 0;
    if (filter->is_range) {
        for (uint32_t i = 0; i < labels->count; i++) {
            const struct sample_label *label = &labels->items[i];
            if (label->is_number && has_key(filter, label) && is_in_range(filter, units, label)) return true;
        }
        return false;
    }
    for (size_t i = 0; i < filter->expression_count; i++) {
        if (any_label_matches(filter, &filter->expressions[i], labels) != wants_all) return !wants_all;
    }
    return wants_all;
}
