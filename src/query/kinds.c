/* The kinds of a profile, from its types, its contents and its sender. The store's text has a record for each column:
 * name, type, unit, a letter for the rule, and "*" for the default column, each ended by a unit separator.
 * SPDX-License-Identifier: MIT */
#include "query/kinds.h"

#include "profile/units.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FIELD_END = 0x1F, FIELDS = 4 };

static const char *const rule_names[] = {
    [KIND_SUM] = "sum", [KIND_AVERAGE] = "average", [KIND_DIFFERENCE] = "difference"};

const char *kind_rule_name(enum kind_rule rule)
{
    return rule_names[rule];
}

static bool has_type(const struct profile *profile, const char *type)
{
    return profile_value_index(profile, type) >= 0;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

/* Go writes the same types for both of its profiles of locks: that of mutexes has the functions that unlock, the other
 * one those that wait. */
static bool is_of_mutexes(const struct profile *profile)
{
    static const char end[] = "unlock";
    size_t unlocking = 0, size = strlen(end);
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct stack stack = profile_stack(profile, profile->samples.stack[i]);
        const struct location *location = profile_location(profile, stack.location);
        if (location->line_count == 0) continue;
        const struct function *function = profile_function(profile, profile_lines(profile, location)[0].function);
        struct slice name = profile_slice(profile, function->name);
        unlocking += name.size >= size && strncasecmp((const char *)name.data + name.size - size, end, size) == 0;
    }
    return 2 * unlocking > profile->samples.count;
}

/* The name of a profile whose sender says none. */
static struct slice name_of_contents(const struct profile *profile)
{
    struct slice period = profile_slice(profile, profile->period_type.type);
    if (has_type(profile, "contentions")) return slice_of_text(is_of_mutexes(profile) ? "mutex" : "block");
    if (has_type(profile, "cpu") && !has_type(profile, "wall")) return slice_of_text("cpu");
    if (has_type(profile, "wall")) return slice_of_text("wall");
    if (has_type(profile, "space") || has_type(profile, "objects")) return slice_of_text("heap");
    if (slice_equals_text(period, "cpu") || slice_equals_text(period, "wall")) return period;
    int column = profile_value_index(profile, "");
    return column >= 0 ? profile_slice(profile, profile->value_types[column].type) : slice_of(NULL, 0);
}

/* Names that clients and scrapers give to the profiles of runtimes; their types say as much. */
static struct slice usual_name(struct slice name)
{
    static const char *const names[][2] = {{"process_cpu", "cpu"},      {"cpu", "cpu"},
                                           {"itimer", "itimer"},        {"wall", "wall"},
                                           {"memory", "heap"},          {"heap", "heap"},
                                           {"allocs", "heap"},          {"alloc_objects", "heap"},
                                           {"alloc_space", "heap"},     {"inuse_objects", "heap"},
                                           {"inuse_space", "heap"},     {"goroutine", "goroutine"},
                                           {"goroutines", "goroutine"}, {"mutex", "mutex"},
                                           {"mutex_count", "mutex"},    {"mutex_duration", "mutex"},
                                           {"block", "block"},          {"block_count", "block"},
                                           {"block_duration", "block"}, {"lock_count", "lock"},
                                           {"lock_duration", "lock"},   {"threadcreate", "threadcreate"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (slice_equals_text(name, names[i][0])) return slice_of_text(names[i][1]);
    }
    return slice_of(NULL, 0);
}

/* --- Rules -------------------------------------------------------------------------------------------------------- */

/* Go, and others that write pprof, count allocations and contentions since the start of the process. A profile of a
 * duration has what happened in it. */
static bool counts_from_start(const struct profile *profile, struct slice type)
{
    static const char *const contentions[] = {"contentions", "delay", NULL};
    if (profile->duration_ns > 0 || profile->has_times) return false;
    if (slice_is_one_of(type, contentions)) return has_type(profile, "contentions");
    return text_begins_with(type, "alloc_") && has_type(profile, "inuse_space");
}

static enum kind_rule rule_of(const struct profile *profile, const struct kind_hints *hints, struct slice type)
{
    static const char *const snapshots[] = {"goroutine",     "goroutines",  "threadcreate",
                                            "inuse_objects", "inuse_space", NULL};
    static const char *const heap[] = {"objects", "space", NULL};
    for (size_t i = 0; hints && i < hints->type_count; i++) {
        if (slice_equal(hints->types[i].type, type)) return hints->types[i].rule;
    }
    bool is_heap = has_type(profile, "objects") && has_type(profile, "space"); /* objects of V8 that are alive */
    if (slice_is_one_of(type, snapshots) || (is_heap && slice_is_one_of(type, heap))) return KIND_AVERAGE;
    bool is_delta = hints && hints->is_delta;
    return !is_delta && counts_from_start(profile, type) ? KIND_DIFFERENCE : KIND_SUM;
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

/* Control characters would end a field or a record. */
static void append_field(struct buffer *out, struct slice text)
{
    if (text.size > STORE_NAME_BYTES_MAX) text.size = STORE_NAME_BYTES_MAX;
    for (size_t i = 0; i < text.size; i++) buffer_append_byte(out, text.data[i] < 0x20 ? '_' : text.data[i]);
    buffer_append_byte(out, FIELD_END);
}

void kinds_write(const struct profile *profile, const struct kind_hints *hints, struct buffer *out)
{
    static const char *const generic[] = {"samples", "sample",  "count", "events", "contentions",
                                          "delay",   "objects", "space", "value",  NULL};
    struct slice given = hints ? hints->name : slice_of(NULL, 0), name = given.size ? usual_name(given) : given;
    bool is_own = given.size > 0 && name.size == 0; /* a name that only its sender knows */
    if (is_own) name = given;
    if (name.size == 0) name = name_of_contents(profile);
    int shown = profile_value_index(profile, "");
    for (size_t i = 0; i < profile->value_type_count; i++) {
        const struct value_type *value = &profile->value_types[i];
        struct slice type = profile_slice(profile, value->type);
        char marks[] = {(char)('0' + (int)rule_of(profile, hints, type)), '*', '\0'};
        if ((int)i != shown) marks[1] = '\0';
        append_field(out, is_own || type.size == 0 || slice_is_one_of(type, generic) ? name : type);
        append_field(out, type);
        append_field(out, profile_slice(profile, value->unit));
        append_field(out, slice_of_text(marks));
    }
}

bool kinds_next(struct slice *kinds, struct kind *ret_kind)
{
    struct slice fields[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        const uint8_t *end = kinds->size ? memchr(kinds->data, FIELD_END, kinds->size) : NULL;
        if (!end) return false;
        fields[i] = slice_of(kinds->data, (size_t)(end - kinds->data));
        *kinds = slice_of(end + 1, kinds->size - fields[i].size - 1);
    }
    if (fields[3].size == 0) return false;
    uint8_t rule = (uint8_t)(fields[3].data[0] - '0');
    *ret_kind = (struct kind){.name = fields[0],
                              .type = fields[1],
                              .unit = fields[2],
                              .rule = rule <= KIND_DIFFERENCE ? (enum kind_rule)rule : KIND_SUM,
                              .is_default = fields[3].size > 1};
    return true;
}

bool kinds_need_series(struct slice kinds)
{
    struct kind kind;
    while (kinds_next(&kinds, &kind)) {
        if (kind.rule != KIND_SUM) return true;
    }
    return false;
}

enum kind_rule kinds_rule_of(struct slice kinds, struct slice type)
{
    struct kind kind;
    while (kinds_next(&kinds, &kind)) {
        if (slice_equal(kind.type, type)) return kind.rule;
    }
    return KIND_SUM;
}

static bool is_same_unit(struct slice a, struct slice b)
{
    char texts[2][64];
    if (slice_equal(a, b)) return true;
    if (a.size >= sizeof(texts[0]) || b.size >= sizeof(texts[0])) return false;
    (void)snprintf(texts[0], sizeof(texts[0]), "%.*s", SLICE_ARGUMENTS(a));
    (void)snprintf(texts[1], sizeof(texts[1]), "%.*s", SLICE_ARGUMENTS(b));
    return unit_ratio(texts[0], texts[1]) != 0;
}

bool kind_is_same(const struct kind *a, const struct kind *b)
{
    return slice_equal(a->name, b->name) && slice_equal(a->type, b->type) && is_same_unit(a->unit, b->unit);
}

bool kind_is_usual_name(struct slice name)
{
    return usual_name(name).size > 0;
}

void kind_append_name(const struct kind *kind, struct buffer *out)
{
    if (!slice_equal(kind->name, kind->type)) {
        buffer_append(out, kind->name.data, kind->name.size);
        buffer_append_byte(out, ':');
    }
    buffer_append(out, kind->type.data, kind->type.size);
}
