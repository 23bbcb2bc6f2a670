/* Heap, growth and fragmentation profiles, contention profiles, threads and Go's counts: a line a stack, all of them
 * with hexadecimal return addresses after "@" or in separate lines (requirements PPF-1, PPF-3, PPF-4).
 * SPDX-License-Identifier: MIT */
#include "format/pprof/pprof_legacy_private.h"

/* --- Heap --------------------------------------------------------------------------------------------------------- */

/* "1: 2 [3: 4] @": in use now, and allocated in all. */
struct heap_counts {
    int64_t objects, bytes, all_objects, all_bytes;
};

static struct heap_counts read_heap_counts(struct cursor *cursor)
{
    struct heap_counts counts;
    counts.objects = legacy_decimal(cursor);
    legacy_expect(cursor, ":");
    legacy_skip_blanks(cursor);
    counts.bytes = legacy_decimal(cursor);
    legacy_skip_blanks(cursor);
    legacy_expect(cursor, "[");
    legacy_skip_blanks(cursor);
    counts.all_objects = legacy_decimal(cursor);
    legacy_expect(cursor, ":");
    legacy_skip_blanks(cursor);
    counts.all_bytes = legacy_decimal(cursor);
    legacy_skip_blanks(cursor);
    legacy_expect(cursor, "]");
    legacy_skip_blanks(cursor);
    legacy_expect(cursor, "@");
    return counts;
}

struct heap_kind {
    bool has_all;        /* the allocated objects differ from the objects in use */
    bool is_sampled;     /* PERIOD is a mean distance in bytes */
    int64_t sample_rate; /* mean distance in bytes */
};

/* The kind is the word after "@": its name, and perhaps "/" and a period. Go's period is half of the number. */
static bool read_heap_kind(struct cursor *cursor, struct heap_kind *kind)
{
    static const char *const whole[] = {"heapprofile", "growth", "growthz", "fragmentation", "fragmentationz"};
    legacy_skip_blanks(cursor);
    struct slice word = legacy_word(cursor);
    const uint8_t *slash = word.size ? memchr(word.data, '/', word.size) : NULL;
    struct slice name = slice_of(word.data, slash ? (size_t)(slash - word.data) : word.size);
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        if (!slice_equals_text(name, whole[i])) continue;
        kind->sample_rate = 1;
        return true;
    }
    bool is_go = slice_equals_text(name, "heap");
    if (!is_go && !slice_equals_text(name, "heapz_v2") && !slice_equals_text(name, "heap_v2")) return false;
    kind->is_sampled = true;
    if (slash) {
        struct cursor period = cursor_of(slice_of(slash + 1, word.size - name.size - 1));
        kind->sample_rate = legacy_decimal(&period) / (is_go ? 2 : 1);
    }
    return true;
}

static struct heap_kind read_heap_header(struct legacy *legacy, struct slice line)
{
    struct heap_kind kind = {0};
    struct cursor cursor = cursor_of(line);
    legacy_expect(&cursor, "heap profile:");
    legacy_skip_blanks(&cursor);
    struct heap_counts counts = read_heap_counts(&cursor);
    bool is_known = read_heap_kind(&cursor, &kind);
    if (cursor.failed || !is_known) {
        LEGACY_FAIL(legacy, line.data, "a heap profile of a kind that nobody knows: \"%.*s\"",
                    (int)(line.size < 100 ? line.size : 100), (const char *)line.data);
    }
    kind.has_all = (counts.all_objects != counts.objects && counts.all_objects != 0) ||
                   (counts.all_bytes != counts.bytes && counts.all_bytes != 0);
    return kind;
}

/* Appends a pair of values to those that SAMPLE has COUNT of. */
static void add_heap_values(struct legacy_sample *sample, unsigned count, const struct heap_kind *kind, int64_t objects,
                            int64_t bytes)
{
    if (objects != 0) {
        sample->block_bytes = objects == -1 ? legacy_times(bytes, -1) : bytes / objects;
        if (kind->is_sampled) legacy_unsample(&objects, &bytes, kind->sample_rate);
    }
    sample->values[count] = objects;
    sample->values[count + 1] = bytes;
}

static void read_heap_sample(struct legacy *legacy, struct slice line, const struct heap_kind *kind)
{
    struct cursor cursor = cursor_of(line);
    struct heap_counts counts = read_heap_counts(&cursor);
    if (cursor.failed) LEGACY_FAIL(legacy, line.data, "a stack's line does not read as \"1: 2 [3: 4] @ 0x…\"");
    if ((counts.objects == 0 && counts.bytes != 0) ||
        (kind->has_all && counts.all_objects == 0 && counts.all_bytes != 0)) {
        LEGACY_FAIL(legacy, line.data, "0 objects have bytes");
    }
    struct legacy_sample *sample = legacy_add_sample(legacy);
    if (!sample) return;
    sample->has_block_bytes = true;
    unsigned count = 0;
    if (kind->has_all) {
        add_heap_values(sample, count, kind, counts.all_objects, counts.all_bytes);
        count += 2;
    }
    add_heap_values(sample, count, kind, counts.objects, counts.bytes);
    legacy_add_frames(legacy, legacy_rest(&cursor), 0);
}

void legacy_read_heap(struct legacy *legacy, struct cursor *cursor)
{
    struct slice line = {0};
    (void)legacy_next_line(cursor, &line);
    struct heap_kind kind = read_heap_header(legacy, line);
    legacy_set_period(legacy, "space", "bytes", kind.sample_rate);
    if (kind.has_all) { /* the objects in use come last: the last type is shown first */
        profile_add_value_type(legacy->profile, "alloc_objects", "count");
        profile_add_value_type(legacy->profile, "alloc_space", "bytes");
    }
    profile_add_value_type(legacy->profile, kind.has_all ? "inuse_objects" : "objects", "count");
    profile_add_value_type(legacy->profile, kind.has_all ? "inuse_space" : "space", "bytes");
    while (legacy->status == STATUS_OK && legacy_next_line(cursor, &line) && !legacy_announces_mappings(line)) {
        if (!legacy_is_blank(line)) read_heap_sample(legacy, legacy_trim(line), &kind);
    }
    legacy_read_mappings_section(legacy, line, cursor);
}

/* --- Go's counts -------------------------------------------------------------------------------------------------- */

static void read_count_sample(struct legacy *legacy, struct slice line)
{
    struct cursor cursor = cursor_of(line);
    struct legacy_sample *sample = legacy_add_sample(legacy);
    if (!sample) return;
    sample->values[0] = legacy_decimal(&cursor);
    legacy_expect(&cursor, " @");
    if (cursor.failed) LEGACY_FAIL(legacy, line.data, "a stack's line does not read as \"1 @ 0x…\"");
    legacy_add_frames(legacy, legacy_rest(&cursor), 0);
}

void legacy_read_count(struct legacy *legacy, struct cursor *cursor)
{
    struct slice line = {0};
    (void)legacy_next_line(cursor, &line);
    struct cursor header = cursor_of(line);
    struct string_id name = profile_string(legacy->profile, legacy_word(&header));
    const char *type = profile_c_string(legacy->profile, name);
    legacy_set_period(legacy, type, "count", 1);
    profile_add_value_type(legacy->profile, type, "count");
    while (legacy->status == STATUS_OK && legacy_next_line(cursor, &line) && !text_begins_with(line, "---")) {
        if (!legacy_is_blank(line)) read_count_sample(legacy, line);
    }
    legacy_read_mappings_section(legacy, line, cursor);
}

/* --- Contention --------------------------------------------------------------------------------------------------- */

struct contention {
    int64_t cycles_per_second; /* 0: delays are nanoseconds */
    int64_t period;
};

/* "key = value". False, with nothing done, if LINE is not in that form. */
static bool read_contention_attribute(struct legacy *legacy, struct slice line, struct contention *contention)
{
    struct slice key, text;
    if (!legacy_split_attribute(line, &key, &text)) return false;
    struct cursor cursor = cursor_of(text);
    int64_t number = legacy_decimal(&cursor);
    if (slice_equals_text(key, "cycles/second")) {
        contention->cycles_per_second = number;
    } else if (slice_equals_text(key, "sampling period")) {
        contention->period = number;
    } else if (slice_equals_text(key, "ms since reset")) {
        legacy->profile->duration_ns = number < 0 ? 0 : (uint64_t)legacy_times(number, 1000000);
    } else if (!slice_equals_text(key, "discarded samples")) {
        LEGACY_FAIL(legacy, line.data, "\"%.*s\" is not known of a contention profile",
                    (int)(key.size < 100 ? key.size : 100), (const char *)key.data);
    }
    if (cursor.failed) LEGACY_FAIL(legacy, text.data, "a number is expected");
    return true;
}

/* "cycles contentions @ 0x…", as they were sampled. */
static void read_contention_sample(struct legacy *legacy, struct slice line, const struct contention *contention)
{
    struct cursor cursor = cursor_of(line);
    int64_t delay, count;
    legacy_two_decimals(&cursor, &delay, &count);
    if (cursor.failed) LEGACY_FAIL(legacy, line.data, "a stack's line does not read as \"1 2 @ 0x…\"");
    if (contention->period > 0) {
        if (contention->cycles_per_second > 0) {
            double gigahertz = (double)contention->cycles_per_second / 1e9;
            delay = legacy_whole((double)delay * (double)contention->period / gigahertz);
        }
        count = legacy_times(count, contention->period);
    }
    struct legacy_sample *sample = legacy_add_sample(legacy);
    if (!sample) return;
    sample->values[0] = count;
    sample->values[1] = delay;
    legacy_add_frames(legacy, legacy_rest(&cursor), 0);
}

void legacy_read_contention(struct legacy *legacy, struct cursor *cursor)
{
    struct contention contention = {.period = 1};
    struct slice line = {0};
    bool is_header = true;
    (void)legacy_next_line(cursor, &line);
    profile_add_value_type(legacy->profile, "contentions", "count");
    profile_add_value_type(legacy->profile, "delay", "nanoseconds");
    while (legacy->status == STATUS_OK && legacy_next_line(cursor, &line)) {
        struct slice text = legacy_trim(line);
        if (text_begins_with(text, "---")) break;
        if (legacy_is_blank(text)) continue;
        is_header = is_header && read_contention_attribute(legacy, text, &contention);
        if (!is_header) read_contention_sample(legacy, text, &contention);
    }
    legacy_set_period(legacy, "contentions", "count", contention.period);
    legacy_read_mappings_section(legacy, line, cursor);
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

/* The lines of one stack: the leaf as it is, all others return addresses. *RET_NEXT is the line that ends it. */
static void read_thread(struct legacy *legacy, struct cursor *cursor, struct slice *ret_next)
{
    bool same_as_previous = false;
    size_t frame_first = legacy->frames.count;
    struct legacy_sample *sample = legacy_add_sample(legacy);
    if (!sample) return;
    sample->values[0] = 1;
    *ret_next = slice_of(NULL, 0);
    struct slice line;
    while (legacy->status == STATUS_OK && legacy_next_line(cursor, &line)) {
        line = legacy_trim(line);
        *ret_next = line;
        if (text_begins_with(line, "---") || legacy_announces_mappings(line)) break;
        *ret_next = slice_of(NULL, 0);
        same_as_previous |= legacy_search(line, "same as previous thread") != NULL;
        if (!same_as_previous) legacy_add_frames(legacy, line, 1);
    }
    if (!same_as_previous && sample->frame_count > 0) return;
    /* It stands for one more of the stack before. */
    legacy->frames.count = frame_first;
    legacy->samples.count--;
    if (legacy->samples.count > 0) legacy->samples.items[legacy->samples.count - 1].values[0]++;
}

void legacy_read_threads(struct legacy *legacy, struct cursor *cursor)
{
    struct slice line = {0};
    legacy_set_period(legacy, "thread", "count", 1);
    profile_add_value_type(legacy->profile, "thread", "count");
    (void)legacy_next_line(cursor, &line);
    if (text_begins_with(line, "--- threadz ")) {
        while (legacy_next_line(cursor, &line) && !text_begins_with(line, "-") && !legacy_announces_mappings(line)) {
        }
    }
    while (legacy->status == STATUS_OK && line.size > 0 && !legacy_announces_mappings(line) &&
           !text_begins_with(line, "---- no stack trace for")) {
        if (!text_begins_with(line, "--- Thread ") || !legacy_search(line, ") stack: ---")) {
            LEGACY_FAIL(legacy, line.data, "\"--- Thread … stack: ---\" is expected");
        }
        read_thread(legacy, cursor, &line);
    }
    legacy_read_mappings_section(legacy, line, cursor);
    legacy_drop_doubled_leaves(legacy);
}
