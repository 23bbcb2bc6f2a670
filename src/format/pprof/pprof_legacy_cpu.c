/* The CPU profile of gperftools, and Java's in the same form (requirements PPF-1, PPF-4).
 *
 * Words of 4 or 8 bytes in either byte order: 0, 3, version (0, or 1 for Java), period in microseconds, 0; then for
 * each stack its count, its depth, its addresses; then 0, 1, 0; then text: the mappings, or Java's names.
 * SPDX-License-Identifier: MIT */
#include "format/pprof/pprof_legacy_private.h"

enum { HEADER_WORDS = 5, VERSION_NATIVE = 0, VERSION_JAVA = 1 };

struct words {
    unsigned size; /* size of one word, bytes */
    bool is_big_endian;
};

static uint64_t read_word(struct cursor *cursor, struct words words)
{
    struct slice bytes = cursor_take(cursor, words.size);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        value = value << 8 | bytes.data[words.is_big_endian ? i : bytes.size - 1 - i];
    }
    return value;
}

/* The header's words, if it is one in this form. */
static bool read_header(struct cursor *cursor, struct words words, uint64_t header[HEADER_WORDS])
{
    for (int i = 0; i < HEADER_WORDS; i++) header[i] = read_word(cursor, words);
    return !cursor->failed && header[0] == 0 && header[1] == 3 && header[2] <= VERSION_JAVA && header[3] > 0 &&
           header[4] == 0;
}

static bool find_header(struct cursor *cursor, struct words *ret_words, uint64_t header[HEADER_WORDS])
{
    static const struct words forms[] = {{4, false}, {4, true}, {8, false}, {8, true}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct cursor attempt = *cursor;
        if (!read_header(&attempt, forms[i], header)) continue;
        *cursor = attempt;
        *ret_words = forms[i];
        return true;
    }
    return false;
}

bool legacy_detect_cpu(struct slice bytes)
{
    struct cursor cursor = cursor_of(bytes);
    struct words words;
    uint64_t header[HEADER_WORDS];
    return find_header(&cursor, &words, header);
}

enum { DEPTH_WRITTEN_MAX = 1024 }; /* gperftools writes up to 254 frames */

/* Leaves out the last stack, at PLACE, of a program that was killed; rejects a file in which that is the first one, or
 * which has a depth there that no profiler writes. */
static void end_in_stack(struct legacy *legacy, const uint8_t *place, bool may_be_cut)
{
    if (may_be_cut && legacy->samples.count > 0)
        profile_add_omission(legacy->profile, "the last stack, at byte %zu, is cut short and left out",
                             (size_t)(place - legacy->bytes.data));
    else
        LEGACY_FAIL(legacy, place, "a stack is cut short or empty");
}

/* Reads all stacks up to the one that ends them, or to the end of the file. */
static void read_samples(struct legacy *legacy, struct cursor *cursor, struct words words, bool has_return_addresses)
{
    while (legacy->status == STATUS_OK && !cursor_at_end(cursor)) {
        const uint8_t *place = cursor->position;
        uint64_t count = read_word(cursor, words), depth = read_word(cursor, words);
        if (cursor->failed || depth > cursor_left(cursor) / words.size || count > INT64_MAX) {
            end_in_stack(legacy, place, cursor->failed || (depth <= DEPTH_WRITTEN_MAX && count <= INT64_MAX));
            return;
        }
        struct cursor frames = *cursor;
        if (count == 0 && depth == 1 && read_word(&frames, words) == 0) {
            *cursor = frames;
            return;
        }
        struct legacy_sample *sample = legacy_add_sample(legacy);
        if (!sample) return;
        sample->values[0] = (int64_t)count;
        sample->values[1] = legacy_times((int64_t)count, legacy->profile->period);
        for (uint64_t i = 0; i < depth && legacy->status == STATUS_OK; i++) {
            legacy_add_frame(legacy, read_word(cursor, words) - (i > 0 && has_return_addresses));
        }
    }
}

static bool has_caller(const struct legacy *legacy, const struct legacy_sample *sample, uint64_t address)
{
    return sample->frame_count > 1 && legacy->frames.items[sample->frame_first + 1] == address;
}

/* The leaf's caller in more than half of the samples, if there is one (the majority vote of Boyer and Moore). */
static uint64_t most_common_caller(const struct legacy *legacy)
{
    uint64_t candidate = 0;
    size_t votes = 0;
    for (size_t i = 0; i < legacy->samples.count; i++) {
        const struct legacy_sample *sample = &legacy->samples.items[i];
        if (sample->frame_count < 2) continue;
        if (votes == 0) candidate = legacy->frames.items[sample->frame_first + 1];
        if (has_caller(legacy, sample, candidate)) {
            votes++;
        } else {
            votes--;
        }
    }
    return candidate;
}

/* A caller of the leaf that (nearly) all samples share is the signal handler's own frame: the leaf is from the signal's
 * context, the rest from the stack. There may be two of them. */
static void drop_signal_handlers(struct legacy *legacy)
{
    enum { HANDLER_FRAMES = 2, SAMPLES_FOR_ONE_OTHER = 32 };
    size_t sample_count = legacy->samples.count;
    for (int i = 0; i < HANDLER_FRAMES; i++) {
        uint64_t handler = most_common_caller(legacy);
        size_t shared_by = 0;
        for (size_t s = 0; s < sample_count; s++) shared_by += has_caller(legacy, &legacy->samples.items[s], handler);
        if (shared_by == 0 || shared_by < sample_count - sample_count / SAMPLES_FOR_ONE_OTHER) return;
        for (size_t s = 0; s < sample_count; s++) {
            struct legacy_sample *sample = &legacy->samples.items[s];
            if (has_caller(legacy, sample, handler)) legacy_drop_caller(legacy, sample);
        }
    }
}

void legacy_read_cpu(struct legacy *legacy, struct cursor *cursor)
{
    struct words words = {0};
    uint64_t header[HEADER_WORDS] = {0};
    if (!find_header(cursor, &words, header)) {
        LEGACY_FAIL(legacy, cursor->position, "no header of a CPU profile");
        return;
    }
    int64_t period_us = header[3] > INT64_MAX ? INT64_MAX : (int64_t)header[3];
    legacy_set_period(legacy, "cpu", "nanoseconds", legacy_times(period_us, 1000));
    profile_add_value_type(legacy->profile, "samples", "count");
    profile_add_value_type(legacy->profile, "cpu", "nanoseconds");
    bool is_java = header[2] == VERSION_JAVA;
    read_samples(legacy, cursor, words, !is_java);
    if (!is_java) drop_signal_handlers(legacy);
    legacy_find_places(legacy);
    if (is_java) {
        legacy_read_java_places(legacy, cursor);
    } else {
        legacy_read_mappings(legacy, cursor);
        legacy_drop_doubled_leaves(legacy);
    }
}
