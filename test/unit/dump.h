/* A profile as text, to compare two of them: what every format that keeps it must keep.  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_TEST_DUMP_H
#define OFFBEAT_TEST_DUMP_H

#include "base/buffer.h"
#include "profile/profile.h"

#include <inttypes.h>

enum {
    DUMP_TIMES = 1,
    DUMP_THREADS = 2,
    DUMP_VALUES = 4,
    DUMP_ADDRESSES = 8,
    DUMP_LABELS = 16,
    DUMP_BYTES_MAX = 1 << 30,
};

static void dump_text(struct buffer *out, const struct profile *profile, struct string_id id)
{
    struct slice text = profile_slice(profile, id);
    buffer_append(out, text.data, text.size);
}

static inline void dump_location(struct buffer *out, const struct profile *profile, struct location_id id,
                                 unsigned what)
{
    const struct location *location = profile_location(profile, id);
    const struct line *lines = profile_lines(profile, location);
    if (what & DUMP_ADDRESSES) {
        buffer_append_format(out, " @%" PRIx64 " in ", location->address);
        dump_text(out, profile, profile_mapping(profile, location->mapping)->file_name);
    }
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct function *function = profile_function(profile, lines[i].function);
        buffer_append_text(out, i ? " < " : " ");
        dump_text(out, profile, function->name);
        buffer_append_text(out, " (");
        dump_text(out, profile, function->file_name);
        buffer_append_format(out, ":%" PRId64 ":%" PRId64 ")", lines[i].line, lines[i].column);
    }
    if (location->line_count == 0) buffer_append_text(out, " ?");
    buffer_append_byte(out, '\n');
}

static inline void dump_labels(struct buffer *out, const struct profile *profile, struct label_set_id id)
{
    struct label_set set = profile->label_sets.items[id.index];
    for (uint32_t i = 0; i < set.count; i++) {
        const struct label *label = &profile->labels.items[set.first + i];
        buffer_append_byte(out, ' ');
        dump_text(out, profile, label->key);
        buffer_append_byte(out, '=');
        if (label->is_number)
            buffer_append_format(out, "%" PRId64, label->number);
        else
            dump_text(out, profile, label->text);
    }
}

static inline void dump_sample(struct buffer *out, const struct profile *profile, size_t i, unsigned what)
{
    const struct thread *thread = profile_thread(profile, profile->samples.thread[i]);
    buffer_append_text(out, "sample");
    if (what & DUMP_TIMES) buffer_append_format(out, " at %" PRIu64, profile->samples.time_ns[i]);
    if (what & DUMP_THREADS) {
        buffer_append_text(out, " thread ");
        dump_text(out, profile, thread->id);
        buffer_append_byte(out, '/');
        dump_text(out, profile, thread->name);
    }
    for (size_t k = 0; (what & DUMP_VALUES) && k < profile->value_type_count; k++)
        buffer_append_format(out, " %" PRId64, profile_sample_values(profile, i)[k]);
    if (what & DUMP_LABELS) dump_labels(out, profile, profile->samples.labels[i]);
    buffer_append_byte(out, '\n');
    for (struct stack_id stack = profile->samples.stack[i]; stack.index; stack = profile_stack(profile, stack).parent)
        dump_location(out, profile, profile_stack(profile, stack).location, what);
}

/* The samples of the thread called ID with their times and values. */
static inline const char *dump_thread(struct buffer *out, const struct profile *profile, const char *id)
{
    buffer_init(out, DUMP_BYTES_MAX);
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct string_id thread = profile_thread(profile, profile->samples.thread[i])->id;
        if (slice_equals_text(profile_slice(profile, thread), id))
            dump_sample(out, profile, i, DUMP_TIMES | DUMP_VALUES);
    }
    buffer_append_byte(out, '\0');
    return (const char *)out->data;
}

/* NUL-terminated; the caller finishes OUT. */
static inline const char *dump(struct buffer *out, const struct profile *profile, unsigned what)
{
    buffer_init(out, DUMP_BYTES_MAX);
    for (size_t k = 0; (what & DUMP_VALUES) && k < profile->value_type_count; k++) {
        dump_text(out, profile, profile->value_types[k].type);
        buffer_append_byte(out, '/');
        dump_text(out, profile, profile->value_types[k].unit);
        buffer_append_byte(out, k + 1 < profile->value_type_count ? ' ' : '\n');
    }
    for (size_t i = 0; i < profile->samples.count; i++) dump_sample(out, profile, i, what);
    buffer_append_byte(out, '\0');
    return (const char *)out->data;
}

#endif
