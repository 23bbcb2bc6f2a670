/* Writes profile.proto.
 *
 * The model distinguishes more than the format: two functions that differ only in a field that pprof lacks would be
 * read back as one function, and so would locations, stacks and samples that use them. Therefore each entry is first
 * replaced by the first entry with the same bytes in the file (its "canonical" entry), and samples are summed by
 * canonical entries: a file that is read and written again is the same to the byte. Only entries that samples refer to
 * are written, in the order of the model. The program's mapping is first. Frequent locations are first, as their ids
 * are most of a large file and small ids take fewer bytes.
 * SPDX-License-Identifier: MIT */
#include "format/pprof/pprof.h"

#include "base/array.h"
#include "base/gzip.h"
#include "base/hash.h"
#include "base/protobuf.h"
#include "base/utf8.h"
#include "format/common/metadata.h"
#include "format/pprof/pprof_metadata.h"
#include "format/pprof/pprof_synthetic_mappings.h"
#include "format/pprof/pprof_private.h"
#include "profile/build_id.h"
#include "profile/thread_labels.h"

#include <inttypes.h>

/* The labels of a sample as written: first the labels of its set, then the labels of its thread. */
struct written_labels {
    uint32_t set, thread;
    size_t offset, size; /* range of encoder.label_bytes */
    uint32_t canonical;  /* the first with the same bytes */
};

struct written_sample {
    uint32_t stack, labels; /* canonical */
};

struct encoder {
    const struct profile *profile;
    struct buffer out;
    enum status failed;

    /* The file's strings: only the string table of it is used, which numbers them as the file does. */
    struct profile texts;

    struct synthetic_mappings synthetic;

    /* Canonical indexes by index in PROFILE. STACKS is NULL if each stack is its own. */
    uint32_t *mappings, *functions, *locations, *stacks;
    /* Ids in the file by canonical index; 0: not written. */
    uint32_t *mapping_ids, *function_ids, *location_ids;
    uint32_t *location_order; /* canonical indexes by id - 1 */
    size_t location_count;
    uint32_t *frame_varints; /* id of the canonical location, as varint_of_id gives it, by index in PROFILE */

    struct {
        struct written_labels *items;
        size_t count, capacity;
        struct index_table by_source, by_bytes;
    } labels;
    struct buffer label_bytes;

    struct {
        struct written_sample *items;
        size_t count, capacity;
        struct index_table index;
    } samples;
    int64_t *values; /* a row for each of SAMPLES */
    size_t values_capacity;

    uint8_t *frames; /* ids of the sample at hand, as they are written */
    size_t frames_size, frames_capacity;
};

static void fail(struct encoder *encoder, enum status status)
{
    if (encoder->failed == STATUS_OK) encoder->failed = status;
}

/* Readers reject a file in which one string is not UTF-8 (PPF-1): the kernel cuts names of threads in the middle of a
 * character, and symbols are any bytes. */
static uint64_t text_number(struct encoder *encoder, struct slice text)
{
    if (utf8_is_valid(text)) return profile_string(&encoder->texts, text).index;
    struct buffer repaired;
    buffer_init(&repaired, 3 * (size_t)PROFILE_STRING_BYTES_MAX);
    utf8_append_repaired(&repaired, text);
    if (repaired.failed) fail(encoder, STATUS_NO_MEMORY);
    uint64_t number = profile_string(&encoder->texts, buffer_slice(&repaired)).index;
    buffer_fini(&repaired);
    return number;
}

static uint64_t string_number(struct encoder *encoder, struct string_id id)
{
    return text_number(encoder, profile_slice(encoder->profile, id));
}

/* --- What is the same in the file --------------------------------------------------------------------------------- */

static inline uint64_t hash_pair(uint64_t hash, uint32_t high, uint32_t low)
{
    return hash_mix(hash, (uint64_t)high << 32 | low);
}

static uint64_t mapping_hash(const struct encoder *encoder, uint32_t index)
{
    const struct mapping *mapping = &encoder->profile->mappings.items[index];
    uint64_t hash = hash_mix(hash_mix(mapping->start, mapping->limit), mapping->file_offset);
    return hash_pair(hash, mapping->file_name.index, mapping_build_text(mapping).index);
}

static bool mapping_equal(const void *context, uint32_t index, const void *key)
{
    const struct mapping *mappings = ((const struct encoder *)context)->profile->mappings.items;
    const struct mapping *a = &mappings[index], *b = &mappings[*(const uint32_t *)key];
    return a->start == b->start && a->limit == b->limit && a->file_offset == b->file_offset &&
           a->file_name.index == b->file_name.index && mapping_build_text(a).index == mapping_build_text(b).index &&
           a->has_functions == b->has_functions && a->has_filenames == b->has_filenames &&
           a->has_line_numbers == b->has_line_numbers && a->has_inline_frames == b->has_inline_frames;
}

static uint64_t function_hash(const struct encoder *encoder, uint32_t index)
{
    const struct function *function = &encoder->profile->functions.items[index];
    uint64_t hash = hash_pair((uint64_t)function->start_line, function->name.index, function->system_name.index);
    return hash_mix(hash, function->file_name.index);
}

static bool function_equal(const void *context, uint32_t index, const void *key)
{
    const struct function *functions = ((const struct encoder *)context)->profile->functions.items;
    const struct function *a = &functions[index], *b = &functions[*(const uint32_t *)key];
    return a->name.index == b->name.index && a->system_name.index == b->system_name.index &&
           a->file_name.index == b->file_name.index && a->start_line == b->start_line;
}

static uint64_t location_hash(const struct encoder *encoder, uint32_t index)
{
    const struct location *location = &encoder->profile->locations.items[index];
    const struct line *lines = profile_lines(encoder->profile, location);
    uint64_t hash = hash_pair(location->address, encoder->mappings[location->mapping.index], location->is_folded);
    hash = hash_mix(hash, encoder->synthetic.of_location[index]);
    for (uint32_t i = 0; i < location->line_count; i++) {
        hash = hash_pair(hash, encoder->functions[lines[i].function.index], (uint32_t)lines[i].line);
        hash = hash_mix(hash, (uint64_t)lines[i].column);
    }
    return hash;
}

static bool location_equal(const void *context, uint32_t index, const void *key)
{
    const struct encoder *encoder = context;
    const struct location *a = &encoder->profile->locations.items[index];
    const struct location *b = &encoder->profile->locations.items[*(const uint32_t *)key];
    if (a->address != b->address || a->is_folded != b->is_folded || a->line_count != b->line_count ||
        encoder->mappings[a->mapping.index] != encoder->mappings[b->mapping.index] ||
        encoder->synthetic.of_location[index] != encoder->synthetic.of_location[*(const uint32_t *)key]) {
        return false;
    }
    const struct line *a_lines = profile_lines(encoder->profile, a), *b_lines = profile_lines(encoder->profile, b);
    for (uint32_t i = 0; i < a->line_count; i++) {
        if (encoder->functions[a_lines[i].function.index] != encoder->functions[b_lines[i].function.index] ||
            a_lines[i].line != b_lines[i].line || a_lines[i].column != b_lines[i].column) {
            return false;
        }
    }
    return true;
}

static struct stack canonical_links(const struct encoder *encoder, uint32_t index)
{
    struct stack stack = profile_stack_at(encoder->profile, index);
    stack.parent.index = encoder->stacks[stack.parent.index];
    stack.location.index = encoder->locations[stack.location.index];
    return stack;
}

static uint64_t stack_hash(const struct encoder *encoder, uint32_t index)
{
    struct stack stack = canonical_links(encoder, index);
    return hash_pair(0, stack.parent.index, stack.location.index);
}

static bool stack_equal(const void *context, uint32_t index, const void *key)
{
    struct stack a = canonical_links(context, index), b = canonical_links(context, *(const uint32_t *)key);
    return a.parent.index == b.parent.index && a.location.index == b.location.index;
}

static bool is_entry(const struct encoder *encoder, const uint32_t *canonical, uint32_t index)
{
    return canonical != encoder->stacks || profile_is_stack(encoder->profile, index);
}

/* Fills CANONICAL for the entries of one table. True if any is not its own. */
static bool find_canonical(struct encoder *encoder, uint32_t *canonical, size_t count,
                           uint64_t (*hash_of)(const struct encoder *, uint32_t), index_equal equal)
{
    struct index_table seen = {0};
    bool folded = false;
    for (uint32_t i = 1; i < count && encoder->failed == STATUS_OK; i++) {
        if (!is_entry(encoder, canonical, i)) continue;
        uint64_t hash = hash_of(encoder, i);
        uint32_t first = index_table_find(&seen, hash, equal, encoder, &i);
        canonical[i] = first == INDEX_NONE ? i : first;
        folded |= first != INDEX_NONE;
        if (first == INDEX_NONE && !index_table_add(&seen, hash, i)) fail(encoder, STATUS_NO_MEMORY);
    }
    index_table_fini(&seen);
    return folded;
}

static uint32_t *new_map(struct encoder *encoder, size_t count)
{
    uint32_t *map = calloc(count + 1, sizeof(*map));
    if (!map) fail(encoder, STATUS_NO_MEMORY);
    return map;
}

static void make_canonical(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    encoder->mappings = new_map(encoder, profile->mappings.count);
    encoder->functions = new_map(encoder, profile->functions.count);
    encoder->locations = new_map(encoder, profile->locations.count);
    if (encoder->failed != STATUS_OK) return;
    find_canonical(encoder, encoder->mappings, profile->mappings.count, mapping_hash, mapping_equal);
    find_canonical(encoder, encoder->functions, profile->functions.count, function_hash, function_equal);
    if (!find_canonical(encoder, encoder->locations, profile->locations.count, location_hash, location_equal)) return;
    encoder->stacks = new_map(encoder, profile_stack_limit(profile));
    if (encoder->stacks)
        find_canonical(encoder, encoder->stacks, profile_stack_limit(profile), stack_hash, stack_equal);
}

/* --- Labels ------------------------------------------------------------------------------------------------------- */

static void append_label(struct encoder *encoder, uint64_t key, bool is_number, uint64_t value, uint64_t unit)
{
    size_t begin = protobuf_begin_message(&encoder->label_bytes, SAMPLE_LABEL);
    protobuf_append_number(&encoder->label_bytes, LABEL_KEY, key);
    protobuf_append_explicit_number(&encoder->label_bytes, is_number ? LABEL_NUM : LABEL_STR, value);
    protobuf_append_number(&encoder->label_bytes, LABEL_NUM_UNIT, unit);
    protobuf_end_message(&encoder->label_bytes, begin);
}

static bool set_has_key(const struct profile *profile, struct label_set set, const char *const keys[THREAD_LABEL_KEYS])
{
    for (uint32_t i = 0; i < set.count; i++) {
        struct slice key = profile_slice(profile, profile->labels.items[set.first + i].key);
        if (thread_label_place(keys, key) >= 0) return true;
    }
    return false;
}

static void append_thread(struct encoder *encoder, struct label_set set, const struct thread *thread)
{
    const struct profile *profile = encoder->profile;
    struct slice id = profile_slice(profile, thread->id);
    int64_t number;
    if (thread->name.index != 0 && !set_has_key(profile, set, thread_name_keys)) {
        uint64_t key = text_number(encoder, slice_of_text(THREAD_NAME_LABEL));
        append_label(encoder, key, false, string_number(encoder, thread->name), 0);
    }
    if (set_has_key(profile, set, thread_id_keys)) return;
    bool is_number = thread_id_is_number(id, &number);
    append_label(encoder, text_number(encoder, slice_of_text(THREAD_ID_LABEL)), is_number,
                 is_number ? (uint64_t)number : text_number(encoder, id), 0);
}

static void append_labels(struct encoder *encoder, uint32_t set_index, uint32_t thread_index)
{
    const struct profile *profile = encoder->profile;
    struct label_set set = profile->label_sets.items[set_index];
    for (uint32_t i = 0; i < set.count; i++) {
        const struct label *label = &profile->labels.items[set.first + i];
        uint64_t key = string_number(encoder, label->key);
        uint64_t value = label->is_number ? (uint64_t)label->number : string_number(encoder, label->text);
        append_label(encoder, key, label->is_number, value, label->is_number ? string_number(encoder, label->unit) : 0);
    }
    if (thread_index != 0) append_thread(encoder, set, &profile->threads.items[thread_index]);
}

static bool same_source(const void *context, uint32_t index, const void *key)
{
    const struct written_labels *a = &((const struct encoder *)context)->labels.items[index], *b = key;
    return a->set == b->set && a->thread == b->thread;
}

static struct slice bytes_of_labels(const struct encoder *encoder, const struct written_labels *labels)
{
    return labels->size == 0 ? slice_of(NULL, 0) : slice_of(encoder->label_bytes.data + labels->offset, labels->size);
}

static bool same_bytes(const void *context, uint32_t index, const void *key)
{
    const struct encoder *encoder = context;
    return slice_equal(bytes_of_labels(encoder, &encoder->labels.items[index]), bytes_of_labels(encoder, key));
}

/* Returns the canonical index in encoder.labels of the labels of a sample with this set and thread. */
static uint32_t find_labels(struct encoder *encoder, uint32_t set, uint32_t thread)
{
    struct written_labels labels = {.set = set, .thread = thread};
    uint64_t source_hash = hash_pair(0, set, thread);
    uint32_t known = index_table_find(&encoder->labels.by_source, source_hash, same_source, encoder, &labels);
    if (known != INDEX_NONE) return encoder->labels.items[known].canonical;

    labels.offset = encoder->label_bytes.size;
    append_labels(encoder, set, thread);
    labels.size = encoder->label_bytes.size - labels.offset;
    struct slice bytes = bytes_of_labels(encoder, &labels);
    uint64_t bytes_hash = hash_bytes(bytes.data, bytes.size);
    uint32_t same = index_table_find(&encoder->labels.by_bytes, bytes_hash, same_bytes, encoder, &labels);
    uint32_t added = (uint32_t)encoder->labels.count;
    labels.canonical = same == INDEX_NONE ? added : same;
    if (encoder->label_bytes.failed || !ARRAY_RESERVE(&encoder->labels, 1, PROFILE_ENTITIES_MAX) ||
        !index_table_add(&encoder->labels.by_source, source_hash, added) ||
        (same == INDEX_NONE && !index_table_add(&encoder->labels.by_bytes, bytes_hash, added))) {
        fail(encoder, STATUS_NO_MEMORY);
        return 0;
    }
    encoder->labels.items[encoder->labels.count++] = labels;
    return labels.canonical;
}

/* --- Samples, summed ---------------------------------------------------------------------------------------------- */

static bool sample_equal(const void *context, uint32_t index, const void *key)
{
    const struct written_sample *a = &((const struct encoder *)context)->samples.items[index], *b = key;
    return a->stack == b->stack && a->labels == b->labels;
}

static void append_sample(struct encoder *encoder, const struct written_sample *sample, uint64_t hash,
                          const int64_t *values)
{
    size_t row = encoder->profile->value_type_count;
    size_t count = encoder->samples.count;
    if (!ARRAY_RESERVE(&encoder->samples, 1, PROFILE_SAMPLES_MAX) ||
        !array_reserve(&encoder->values, &encoder->values_capacity, (count + 1) * row, sizeof(*values),
                       (size_t)PROFILE_SAMPLES_MAX * PROFILE_VALUES_MAX) ||
        !index_table_add(&encoder->samples.index, hash, (uint32_t)count)) {
        fail(encoder, STATUS_NO_MEMORY);
        return;
    }
    encoder->samples.items[encoder->samples.count++] = *sample;
    if (row > 0) memcpy(encoder->values + count * row, values, row * sizeof(*values));
}

static void sum_samples(struct encoder *encoder)
{
    const struct sample_columns *columns = &encoder->profile->samples;
    size_t row = encoder->profile->value_type_count;
    /* As many are written as there are stacks, mostly, however many equal samples there may be. */
    size_t stack_count = profile_stack_limit(encoder->profile);
    index_table_reserve(&encoder->samples.index, columns->count < stack_count ? columns->count : stack_count);
    for (size_t i = 0; i < columns->count && encoder->failed == STATUS_OK; i++) {
        uint32_t stack = columns->stack[i].index;
        struct written_sample sample = {
            .stack = encoder->stacks ? encoder->stacks[stack] : stack,
            .labels = find_labels(encoder, columns->labels[i].index, columns->thread[i].index),
        };
        const int64_t *values = profile_sample_values(encoder->profile, i);
        uint64_t hash = hash_pair(0, sample.stack, sample.labels);
        uint32_t known = index_table_find(&encoder->samples.index, hash, sample_equal, encoder, &sample);
        if (known == INDEX_NONE) {
            append_sample(encoder, &sample, hash, values);
            continue;
        }
        int64_t *sum = encoder->values + known * row;
        for (size_t value = 0; value < row; value++) sum[value] = profile_add_values(sum[value], values[value]);
    }
}

/* --- Ids for what is referred to ---------------------------------------------------------------------------------- */

struct ranked_location {
    uint64_t frame_count; /* frames in all written samples */
    uint32_t index;       /* canonical */
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked_location *a = left, *b = right;
    if (a->frame_count != b->frame_count) return a->frame_count > b->frame_count ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Counts, for each location, its frames in all written samples. A stack is part of as many samples as have it and its
 * children, whose indices are above its own: one walk down knows of each how many. */
static bool count_frames(struct encoder *encoder, struct ranked_location *ranked)
{
    const struct profile *profile = encoder->profile;
    size_t stack_count = profile_stack_limit(profile);
    uint32_t *samples = new_map(encoder, stack_count);
    if (!samples) return false;
    pages_prepare(samples, stack_count * sizeof(*samples));
    for (size_t i = 0; i < encoder->samples.count; i++) samples[encoder->samples.items[i].stack]++;
    for (uint32_t i = (uint32_t)stack_count; i-- > 1;) {
        if (!profile_is_stack(profile, i)) continue;
        ranked[encoder->locations[profile_stack_location(profile, i)]].frame_count += samples[i];
        samples[profile_parent_at(profile, i)] += samples[i];
    }
    free(samples);
    return true;
}

/* Returns the locations of written stacks, frequent ones first. Sets encoder.location_count. */
static struct ranked_location *rank_locations(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct ranked_location *ranked = calloc(profile->locations.count + 1, sizeof(*ranked));
    if (!ranked || !count_frames(encoder, ranked)) {
        fail(encoder, STATUS_NO_MEMORY);
        free(ranked);
        return NULL;
    }
    for (uint32_t i = 1; i < profile->locations.count; i++) {
        if (ranked[i].frame_count == 0) continue;
        ranked[encoder->location_count++] = (struct ranked_location){ranked[i].frame_count, i};
    }
    qsort(ranked, encoder->location_count, sizeof(*ranked), compare_ranked);
    return ranked;
}

/* The most frequent locations get the ids of one byte, the next ones get ids of two bytes, and so on. Locations whose
 * ids have the same size keep the order of the model, where neighbours are similar: this compresses best. */
static void number_locations(struct encoder *encoder)
{
    struct ranked_location *ranked = rank_locations(encoder);
    if (!ranked) return;
    uint32_t *ids = encoder->location_ids;
    uint32_t next[PROTOBUF_VARINT_BYTES_MAX + 1] = {0}; /* smallest id that is not given yet, by size in bytes */
    for (size_t i = encoder->location_count; i > 0; i--) {
        size_t size = protobuf_varint_size(i);
        ids[ranked[i - 1].index] = (uint32_t)size;
        next[size] = (uint32_t)i;
    }
    for (uint32_t i = 1; i < encoder->profile->locations.count; i++) {
        if (ids[i] == 0) continue;
        ids[i] = next[ids[i]]++;
        encoder->location_order[ids[i] - 1] = i;
    }
    free(ranked);
}

static void mark_mapping_and_functions(struct encoder *encoder, uint32_t index)
{
    const struct location *location = &encoder->profile->locations.items[index];
    const struct line *lines = profile_lines(encoder->profile, location);
    uint32_t synthetic = encoder->synthetic.of_location[index];
    if (synthetic) encoder->synthetic.items[synthetic - 1].id = true;
    encoder->mapping_ids[encoder->mappings[location->mapping.index]] = true;
    for (uint32_t i = 0; i < location->line_count; i++) {
        encoder->function_ids[encoder->functions[lines[i].function.index]] = true;
    }
}

/* Turns marks into ids, from 1 on in the order of the table, and returns the last one. Entry 0, "none", never gets one.
 */
static uint32_t number_marked(uint32_t *ids, size_t count)
{
    uint32_t last = 0;
    ids[0] = 0;
    for (size_t i = 1; i < count; i++) {
        if (ids[i]) ids[i] = ++last;
    }
    return last;
}

/* Numbers the synthetic mappings after the others, whose first is the program's. */
static void number_synthetic_mappings(struct encoder *encoder, uint32_t last)
{
    for (size_t i = 0; i < encoder->synthetic.count; i++) {
        if (encoder->synthetic.items[i].id) encoder->synthetic.items[i].id = ++last;
    }
}

/* Returns ID as a varint, its first byte the lowest; the bytes after it are 0. */
static uint32_t varint_of_id(uint32_t id)
{
    _Static_assert(PROFILE_ENTITIES_MAX < 1 << 28, "four bytes hold the id of a location");
    uint8_t bytes[PROTOBUF_VARINT_BYTES_MAX] = {0};
    uint32_t varint;
    (void)protobuf_put_varint(bytes, id);
    memcpy(&varint, bytes, sizeof(varint));
    return varint;
}

static void give_ids(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    encoder->mapping_ids = new_map(encoder, profile->mappings.count);
    encoder->function_ids = new_map(encoder, profile->functions.count);
    encoder->location_ids = new_map(encoder, profile->locations.count);
    encoder->location_order = new_map(encoder, profile->locations.count);
    encoder->frame_varints = new_map(encoder, profile->locations.count);
    if (encoder->failed == STATUS_OK) number_locations(encoder);
    if (encoder->failed != STATUS_OK) return;
    for (size_t i = 0; i < encoder->location_count; i++) {
        mark_mapping_and_functions(encoder, encoder->location_order[i]);
    }
    if (profile->mappings.count > 1) encoder->mapping_ids[1] = true;
    number_synthetic_mappings(encoder, number_marked(encoder->mapping_ids, profile->mappings.count));
    (void)number_marked(encoder->function_ids, profile->functions.count);
    for (size_t i = 0; i < profile->locations.count; i++) {
        encoder->frame_varints[i] = varint_of_id(encoder->location_ids[encoder->locations[i]]);
    }
}

/* --- Messages ----------------------------------------------------------------------------------------------------- */

static void write_value_type(struct encoder *encoder, uint32_t field, const struct value_type *type)
{
    size_t begin = protobuf_begin_message(&encoder->out, field);
    protobuf_append_number(&encoder->out, VALUE_TYPE_TYPE, string_number(encoder, type->type));
    protobuf_append_number(&encoder->out, VALUE_TYPE_UNIT, string_number(encoder, type->unit));
    protobuf_end_message(&encoder->out, begin);
}

/* Returns the size of the result of varint_of_id. */
static inline size_t size_of_varint(uint32_t varint)
{
    uint32_t last_bytes = ~varint & 0x80808080;
    return ((size_t)__builtin_ctz(last_bytes) + 1) / 8;
}

/* Collects the ids of STACK's frames, leaf first, in encoder.frames. The bulk of a profile passes through here. */
static void collect_frames(struct encoder *encoder, uint32_t stack)
{
    const struct profile *profile = encoder->profile;
    const uint32_t *varints = encoder->frame_varints;
    size_t size = 0, depth = 0;
    for (; stack != 0; stack = profile_parent_at(profile, stack)) {
        uint32_t varint = varints[profile_stack_location(profile, stack)];
        if (varint == 0) continue; /* a frame without a location */
        if (depth++ == PPROF_DEPTH_MAX) {
            fail(encoder, STATUS_TOO_LARGE);
            return;
        }
        if (!array_reserve(&encoder->frames, &encoder->frames_capacity, size + sizeof(varint), 1, SIZE_MAX)) {
            fail(encoder, STATUS_NO_MEMORY);
            return;
        }
        memcpy(encoder->frames + size, &varint, sizeof(varint));
        size += size_of_varint(varint);
    }
    encoder->frames_size = size;
}

static void write_sample(struct encoder *encoder, size_t index)
{
    const struct profile *profile = encoder->profile;
    const struct written_sample *sample = &encoder->samples.items[index];
    collect_frames(encoder, sample->stack);
    size_t row = profile->value_type_count;
    uint64_t values[PROFILE_VALUES_MAX];
    for (size_t i = 0; i < row; i++) values[i] = (uint64_t)encoder->values[index * row + i];

    size_t begin = protobuf_begin_message(&encoder->out, PROFILE_SAMPLE);
    if (encoder->frames_size > 0) {
        struct slice frames = slice_of(encoder->frames, encoder->frames_size);
        protobuf_append_bytes(&encoder->out, SAMPLE_LOCATION_ID, frames);
    }
    protobuf_append_packed(&encoder->out, SAMPLE_VALUE, values, row);
    struct slice labels = bytes_of_labels(encoder, &encoder->labels.items[sample->labels]);
    buffer_append(&encoder->out, labels.data, labels.size);
    protobuf_end_message(&encoder->out, begin);
}

static void write_samples(struct encoder *encoder)
{
    struct stack_id stacks[PROFILE_ADDED_AT_ONCE];
    for (size_t i = 0; i < encoder->samples.count; i++) {
        if (i % PROFILE_ADDED_AT_ONCE == 0) {
            size_t count = 0;
            for (; count < PROFILE_ADDED_AT_ONCE && i + count < encoder->samples.count; count++) {
                stacks[count].index = encoder->samples.items[i + count].stack;
            }
            profile_fetch_stacks(encoder->profile, stacks, count);
        }
        write_sample(encoder, i);
    }
}

static void write_mapping(struct encoder *encoder, uint32_t index)
{
    const struct mapping *mapping = &encoder->profile->mappings.items[index];
    size_t begin = protobuf_begin_message(&encoder->out, PROFILE_MAPPING);
    protobuf_append_number(&encoder->out, MAPPING_ID, encoder->mapping_ids[index]);
    protobuf_append_number(&encoder->out, MAPPING_MEMORY_START, mapping->start);
    protobuf_append_number(&encoder->out, MAPPING_MEMORY_LIMIT, mapping->limit);
    protobuf_append_number(&encoder->out, MAPPING_FILE_OFFSET, mapping->file_offset);
    protobuf_append_number(&encoder->out, MAPPING_FILENAME, string_number(encoder, mapping->file_name));
    protobuf_append_number(&encoder->out, MAPPING_BUILD_ID, string_number(encoder, mapping_build_text(mapping)));
    protobuf_append_number(&encoder->out, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
    protobuf_append_number(&encoder->out, MAPPING_HAS_FILENAMES, mapping->has_filenames);
    protobuf_append_number(&encoder->out, MAPPING_HAS_LINE_NUMBERS, mapping->has_line_numbers);
    protobuf_append_number(&encoder->out, MAPPING_HAS_INLINE_FRAMES, mapping->has_inline_frames);
    protobuf_end_message(&encoder->out, begin);
}

static void write_synthetic_mapping(struct encoder *encoder, const struct synthetic_mapping *mapping)
{
    struct slice name =
        mapping->package.index ? profile_slice(encoder->profile, mapping->package) : slice_of_text(ANONYMOUS_MAPPING);
    size_t begin = protobuf_begin_message(&encoder->out, PROFILE_MAPPING);
    protobuf_append_number(&encoder->out, MAPPING_ID, mapping->id);
    protobuf_append_number(&encoder->out, MAPPING_MEMORY_START, mapping->start);
    protobuf_append_number(&encoder->out, MAPPING_MEMORY_LIMIT, mapping->limit);
    protobuf_append_number(&encoder->out, MAPPING_FILENAME, text_number(encoder, name));
    protobuf_append_number(&encoder->out, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
    protobuf_end_message(&encoder->out, begin);
}

static void write_mappings(struct encoder *encoder)
{
    for (uint32_t i = 1; i < encoder->profile->mappings.count; i++) {
        if (encoder->mapping_ids[i]) write_mapping(encoder, i);
    }
    for (size_t i = 0; i < encoder->synthetic.count; i++) {
        if (encoder->synthetic.items[i].id) write_synthetic_mapping(encoder, &encoder->synthetic.items[i]);
    }
}

static void write_line(struct encoder *encoder, const struct line *line)
{
    size_t begin = protobuf_begin_message(&encoder->out, LOCATION_LINE);
    uint32_t function = encoder->functions[line->function.index];
    protobuf_append_number(&encoder->out, LINE_FUNCTION_ID, encoder->function_ids[function]);
    protobuf_append_number(&encoder->out, LINE_LINE, (uint64_t)line->line);
    protobuf_append_number(&encoder->out, LINE_COLUMN, (uint64_t)line->column);
    protobuf_end_message(&encoder->out, begin);
}

static void write_location(struct encoder *encoder, uint32_t index)
{
    const struct location *location = &encoder->profile->locations.items[index];
    const struct line *lines = profile_lines(encoder->profile, location);
    uint32_t synthetic = encoder->synthetic.of_location[index];
    uint32_t mapping_id = encoder->mapping_ids[encoder->mappings[location->mapping.index]];
    size_t begin = protobuf_begin_message(&encoder->out, PROFILE_LOCATION);
    protobuf_append_number(&encoder->out, LOCATION_ID, encoder->location_ids[index]);
    protobuf_append_number(&encoder->out, LOCATION_MAPPING_ID,
                           synthetic ? encoder->synthetic.items[synthetic - 1].id : mapping_id);
    protobuf_append_number(&encoder->out, LOCATION_ADDRESS, location->address);
    for (uint32_t i = 0; i < location->line_count; i++) {
        /* A line without a function is not valid, and says nothing. */
        if (lines[i].function.index != 0) write_line(encoder, &lines[i]);
    }
    protobuf_append_number(&encoder->out, LOCATION_IS_FOLDED, location->is_folded);
    protobuf_end_message(&encoder->out, begin);
}

static void write_function(struct encoder *encoder, uint32_t index)
{
    const struct function *function = &encoder->profile->functions.items[index];
    size_t begin = protobuf_begin_message(&encoder->out, PROFILE_FUNCTION);
    protobuf_append_number(&encoder->out, FUNCTION_ID, encoder->function_ids[index]);
    protobuf_append_number(&encoder->out, FUNCTION_NAME, string_number(encoder, function->name));
    protobuf_append_number(&encoder->out, FUNCTION_SYSTEM_NAME, string_number(encoder, function->system_name));
    protobuf_append_number(&encoder->out, FUNCTION_FILENAME, string_number(encoder, function->file_name));
    protobuf_append_number(&encoder->out, FUNCTION_START_LINE, (uint64_t)function->start_line);
    protobuf_end_message(&encoder->out, begin);
}

static void write_text_field(struct encoder *encoder, uint32_t field, struct string_id id)
{
    protobuf_append_number(&encoder->out, field, string_number(encoder, id));
}

static void write_metadata(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    uint32_t tag = pprof_metadata_tag(profile);
    struct buffer line;
    buffer_init(&line, 4 * (size_t)PROFILE_STRING_BYTES_MAX);
    for (size_t i = 0; i < profile->metadata.count; i++) {
        if (metadata_is_repeated(profile, i)) continue;
        buffer_clear(&line);
        pprof_metadata_append(profile, &profile->metadata.items[i], tag, &line);
        if (line.failed) fail(encoder, STATUS_NO_MEMORY);
        protobuf_append_explicit_number(&encoder->out, PROFILE_COMMENT, text_number(encoder, buffer_slice(&line)));
    }
    buffer_fini(&line);
}

static void write_comments(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    for (size_t i = 0; i < profile->comments.count; i++) {
        uint64_t number = string_number(encoder, profile->comments.items[i]);
        protobuf_append_explicit_number(&encoder->out, PROFILE_COMMENT, number);
    }
    write_metadata(encoder);
}

static void write_profile(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct buffer *out = &encoder->out;
    for (size_t i = 0; i < profile->value_type_count; i++) {
        write_value_type(encoder, PROFILE_SAMPLE_TYPE, &profile->value_types[i]);
    }
    write_samples(encoder);
    write_mappings(encoder);
    for (size_t i = 0; i < encoder->location_count; i++) write_location(encoder, encoder->location_order[i]);
    for (uint32_t i = 1; i < profile->functions.count; i++) {
        if (encoder->function_ids[i]) write_function(encoder, i);
    }
    write_text_field(encoder, PROFILE_DROP_FRAMES, profile->drop_frames);
    write_text_field(encoder, PROFILE_KEEP_FRAMES, profile->keep_frames);
    protobuf_append_number(out, PROFILE_TIME_NANOS, (uint64_t)profile->time_ns);
    protobuf_append_number(out, PROFILE_DURATION_NANOS, profile->duration_ns);
    if (profile->period_type.type.index != 0 || profile->period_type.unit.index != 0) {
        write_value_type(encoder, PROFILE_PERIOD_TYPE, &profile->period_type);
    }
    protobuf_append_number(out, PROFILE_PERIOD, (uint64_t)profile->period);
    write_comments(encoder);
    write_text_field(encoder, PROFILE_DEFAULT_SAMPLE_TYPE, profile->default_value_type);
    write_text_field(encoder, PROFILE_DOC_URL, profile->doc_url);
    for (size_t i = 0; i < encoder->texts.strings.count; i++) {
        protobuf_append_bytes(out, PROFILE_STRING_TABLE, encoder->texts.strings.items[i]);
    }
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static void encoder_fini(struct encoder *encoder)
{
    synthetic_mappings_fini(&encoder->synthetic);
    profile_fini(&encoder->texts);
    buffer_fini(&encoder->out);
    buffer_fini(&encoder->label_bytes);
    free(encoder->mappings);
    free(encoder->functions);
    free(encoder->locations);
    free(encoder->stacks);
    free(encoder->mapping_ids);
    free(encoder->function_ids);
    free(encoder->location_ids);
    free(encoder->location_order);
    free(encoder->frame_varints);
    free(encoder->labels.items);
    index_table_fini(&encoder->labels.by_source);
    index_table_fini(&encoder->labels.by_bytes);
    free(encoder->samples.items);
    index_table_fini(&encoder->samples.index);
    free(encoder->values);
    free(encoder->frames);
}

static enum status encode_raw(struct encoder *encoder, struct error *error)
{
    encoder->failed = synthetic_mappings_init(&encoder->synthetic, encoder->profile);
    if (encoder->failed == STATUS_OK) make_canonical(encoder);
    if (encoder->failed == STATUS_OK) sum_samples(encoder);
    if (encoder->failed == STATUS_OK) give_ids(encoder);
    if (encoder->failed == STATUS_OK) write_profile(encoder);
    if (encoder->failed == STATUS_OK) encoder->failed = encoder->texts.failed;
    if (encoder->out.failed) {
        return error_set(error, STATUS_NO_MEMORY, 0, "the profile is larger than memory, or %d bytes", PPROF_BYTES_MAX);
    }
    if (encoder->failed == STATUS_OK) return STATUS_OK;
    return error_set(error, encoder->failed, 0, "%s",
                     encoder->failed == STATUS_NO_MEMORY ? "not enough memory to write the profile"
                                                         : "a stack or a text is too long for a pprof profile");
}

/* A large profile consists mainly of ids that compress badly: the higher level takes twice the time to save a
 * twenty-fifth of the size. */
static int level_of_size(size_t size)
{
    enum { LARGE_BYTES = 1 << 20, LEVEL_LARGE = 1 };
    return size < LARGE_BYTES ? GZIP_LEVEL_DEFAULT : LEVEL_LARGE;
}

enum status pprof_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    enum status status = profile_failed(profile, error);
    if (status != STATUS_OK) return status;
    if (profile->samples.count > 0 && profile->value_type_count == 0) {
        return error_set(error, STATUS_UNSUPPORTED, 0, "samples without values cannot be written as pprof");
    }
    struct encoder encoder = {.profile = profile};
    buffer_init(&encoder.out, PPROF_BYTES_MAX);
    buffer_init(&encoder.label_bytes, PPROF_BYTES_MAX);
    profile_init(&encoder.texts);
    status = encode_raw(&encoder, error);
    if (status == STATUS_OK)
        status = gzip_compress(buffer_slice(&encoder.out), level_of_size(encoder.out.size), out, error);
    encoder_fini(&encoder);
    return status;
}
