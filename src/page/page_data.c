/* The data of the page (doc/decisions/page.md): a JSON object, then streams of varints, compressed together.
 *
 * A call is written as the callee's place in the list of its caller's callees, the most frequent one first: most places
 * are 0, and so are most numbers of levels that the tree returns before the next call. Runs of zeros are one number.
 * SPDX-License-Identifier: MIT */
#include "analyze/time_cut.h"
#include "base/array.h"
#include "base/gzip.h"
#include "base/hash.h"
#include "base/json_writer.h"
#include "page/page.h"
#include "page/page_tree.h"

#include <math.h>
#include <string.h>

enum { COMPRESSION = 6, VARINT_BYTES = 10 }; /* level 9 takes five times as long for 3 % less */

enum stream {
    STREAM_JSON,
    STREAM_POPS,
    STREAM_PLACES,
    STREAM_CALLS,
    STREAM_SAMPLES,
    STREAM_TIMES,
    STREAM_VALUES,
    STREAMS
};

/* A function that another one calls. The callees of a function have places, the most frequent one 0. */
struct call {
    uint32_t caller, callee, count, place;
};

struct calls {
    struct call *items;
    size_t count, capacity;
    struct index_table index;
    uint32_t *of_node; /* index of the call that leads to each node of the tree */
};

/* Numbers that mostly are 0: how many zeros, a number, how many zeros, … */
struct zero_runs {
    struct buffer *out;
    uint64_t zeros;
};

struct encoder {
    const struct profile *profile;
    const struct grouping *grouping;
    const struct page_options *options;
    struct page_tree tree;
    struct calls calls;
    uint32_t *order; /* samples: by thread, then by time or by node */
    struct buffer streams[STREAMS];
    uint64_t divisors[PROFILE_VALUES_MAX];
    uint64_t origin_ns; /* time 0 of the page */
    size_t written_samples;
};

static void write_varint(struct buffer *out, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    buffer_append(out, bytes, size);
}

static void write_signed(struct buffer *out, int64_t value)
{
    write_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

/* --- The tree ----------------------------------------------------------------------------------------------------- */

static bool is_call(const void *context, uint32_t index, const void *key)
{
    const struct call *call = &((const struct calls *)context)->items[index], *wanted = key;
    return call->caller == wanted->caller && call->callee == wanted->callee;
}

/* Counts a call. The callers are the groups, and the root after them. */
static bool count_call(struct calls *calls, uint32_t node, uint32_t caller, uint32_t callee)
{
    struct call call = {.caller = caller, .callee = callee};
    uint64_t hash = hash_mix(caller, callee);
    uint32_t found = index_table_find(&calls->index, hash, is_call, calls, &call);
    if (found == INDEX_NONE) {
        if (!array_reserve(&calls->items, &calls->capacity, calls->count + 1, sizeof(call), PAGE_NODES_MAX))
            return false;
        found = (uint32_t)calls->count++;
        calls->items[found] = call;
        if (!index_table_add(&calls->index, hash, found)) return false;
    }
    calls->items[found].count++;
    calls->of_node[node] = found;
    return true;
}

static bool count_calls(struct encoder *encoder)
{
    const struct page_tree *tree = &encoder->tree;
    uint32_t root = (uint32_t)encoder->grouping->count;
    encoder->calls.of_node = calloc(tree->count, sizeof(*encoder->calls.of_node));
    if (!encoder->calls.of_node) return false;
    for (uint32_t node = 1; node < tree->count; node++) {
        uint32_t parent = tree->nodes[node].parent;
        if (!count_call(&encoder->calls, node, parent ? tree->nodes[parent].group : root, tree->nodes[node].group))
            return false;
    }
    return true;
}

static int compare_calls(const void *left, const void *right, void *context)
{
    const struct calls *calls = context;
    const struct call *a = &calls->items[*(const uint32_t *)left], *b = &calls->items[*(const uint32_t *)right];
    if (a->caller != b->caller) return a->caller < b->caller ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return (a->callee > b->callee) - (a->callee < b->callee);
}

/* Writes how many functions each caller calls, and these. */
static bool write_calls(struct encoder *encoder)
{
    struct calls *calls = &encoder->calls;
    struct buffer *out = &encoder->streams[STREAM_CALLS];
    uint32_t *order = calloc(calls->count + 1, sizeof(*order));
    if (!order) return false;
    for (size_t i = 0; i < calls->count; i++) order[i] = (uint32_t)i;
    qsort_r(order, calls->count, sizeof(*order), compare_calls, calls);
    size_t at = 0;
    for (uint32_t caller = 0; caller <= encoder->grouping->count; caller++) {
        size_t end = at;
        while (end < calls->count && calls->items[order[end]].caller == caller) end++;
        write_varint(out, end - at);
        for (uint32_t place = 0; at < end; at++) {
            write_varint(out, calls->items[order[at]].callee);
            calls->items[order[at]].place = place++;
        }
    }
    free(order);
    return true;
}

static void write_run(struct zero_runs *runs, uint32_t value)
{
    if (value == 0) {
        runs->zeros++;
        return;
    }
    write_varint(runs->out, runs->zeros);
    write_varint(runs->out, value);
    runs->zeros = 0;
}

static bool write_tree(struct encoder *encoder)
{
    const struct page_tree *tree = &encoder->tree;
    struct zero_runs all_pops = {.out = &encoder->streams[STREAM_POPS]};
    struct zero_runs places = {.out = &encoder->streams[STREAM_PLACES]};
    uint32_t pops, node = 0;
    if (!count_calls(encoder) || !write_calls(encoder)) return false;
    while ((node = page_tree_next(tree, node, &pops)) != PAGE_NO_NODE) {
        write_run(&all_pops, pops);
        write_run(&places, encoder->calls.items[encoder->calls.of_node[node]].place);
    }
    write_varint(all_pops.out, all_pops.zeros);
    write_varint(places.out, places.zeros);
    return true;
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

static uint32_t number_of_sample(const struct encoder *encoder, uint32_t sample)
{
    return encoder->tree.nodes[encoder->tree.of_stack[encoder->profile->samples.stack[sample].index]].number;
}

static int compare_samples(const void *left, const void *right, void *context)
{
    const struct encoder *encoder = context;
    const struct sample_columns *samples = &encoder->profile->samples;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    uint32_t threads[] = {samples->thread[a].index, samples->thread[b].index};
    if (threads[0] != threads[1]) return threads[0] < threads[1] ? -1 : 1;
    bool has_times = encoder->profile->has_times;
    uint64_t first = has_times ? samples->time_ns[a] : number_of_sample(encoder, a);
    uint64_t second = has_times ? samples->time_ns[b] : number_of_sample(encoder, b);
    if (first != second) return first < second ? -1 : 1;
    return (a > b) - (a < b);
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Sets the divisors of the values. False if a value is negative. */
static bool find_divisors(struct encoder *encoder)
{
    size_t types = encoder->profile->value_type_count;
    for (size_t i = 0; i < encoder->profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(encoder->profile, i);
        for (size_t type = 0; type < types; type++) {
            if (values[type] < 0) return false;
            if (values[type] > 0 && encoder->divisors[type] != 1)
                encoder->divisors[type] = greatest_common_divisor(encoder->divisors[type], (uint64_t)values[type]);
        }
    }
    for (size_t type = 0; type < types; type++) {
        if (encoder->divisors[type] == 0) encoder->divisors[type] = 1;
    }
    return true;
}

static bool may_join(const struct encoder *encoder, uint32_t a, uint32_t b)
{
    const struct sample_columns *samples = &encoder->profile->samples;
    return !encoder->profile->has_times && samples->thread[a].index == samples->thread[b].index &&
           number_of_sample(encoder, a) == number_of_sample(encoder, b);
}

/* Each sample: the difference of the threads, the difference of the nodes, the time since the thread's last sample. */
static void write_samples(struct encoder *encoder)
{
    const struct sample_columns *samples = &encoder->profile->samples;
    uint32_t last_thread = 0, last_node = 0;
    uint64_t last_ns = encoder->origin_ns;
    for (size_t first = 0, end; first < samples->count; first = end) {
        uint32_t sample = encoder->order[first];
        for (end = first + 1; end < samples->count && may_join(encoder, sample, encoder->order[end]);) end++;
        uint32_t thread = samples->thread[sample].index, node = number_of_sample(encoder, sample);
        write_varint(&encoder->streams[STREAM_SAMPLES], thread - last_thread);
        write_signed(&encoder->streams[STREAM_SAMPLES], (int64_t)node - (int64_t)last_node);
        if (encoder->profile->has_times) {
            write_signed(&encoder->streams[STREAM_TIMES], (int64_t)(samples->time_ns[sample] - last_ns));
            last_ns = samples->time_ns[sample];
        }
        for (size_t type = 0; type < encoder->profile->value_type_count; type++) {
            int64_t sum = 0;
            for (size_t i = first; i < end; i++)
                sum = profile_add_values(sum, profile_sample_values(encoder->profile, encoder->order[i])[type]);
            write_varint(&encoder->streams[STREAM_VALUES], (uint64_t)sum / encoder->divisors[type]);
        }
        last_thread = thread;
        last_node = node;
        encoder->written_samples++;
    }
}

/* --- The object --------------------------------------------------------------------------------------------------- */

static void write_types(const struct encoder *encoder, struct json_writer *json)
{
    const struct profile *profile = encoder->profile;
    json_begin_array_member(json, "types");
    for (size_t i = 0; i < profile->value_type_count; i++) {
        json_begin_object(json);
        json_member_string(json, "type", profile_slice(profile, profile->value_types[i].type));
        json_member_string(json, "unit", profile_slice(profile, profile->value_types[i].unit));
        json_member_u64(json, "divisor", encoder->divisors[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_threads(const struct profile *profile, struct json_writer *json)
{
    json_begin_array_member(json, "threads");
    for (size_t i = 0; i < profile->threads.count; i++) {
        json_begin_array(json);
        json_write_string(json, profile_slice(profile, profile->threads.items[i].id));
        json_write_string(json, profile_slice(profile, profile->threads.items[i].name));
        json_end_array(json);
    }
    json_end_array(json);
}

static struct string_id package_of(const struct profile *profile, const struct group *group)
{
    struct string_id package = profile_mapping(profile, group->mapping)->file_name;
    return package.index ? package : profile_function(profile, group->function)->package;
}

/* Files and packages are written once, however many functions they have. */
static void write_texts(const struct encoder *encoder, struct json_writer *json, const char *key, uint32_t *places,
                        bool is_package)
{
    const struct profile *profile = encoder->profile;
    uint32_t count = 0;
    json_begin_array_member(json, key);
    for (size_t i = 0; i < encoder->grouping->count; i++) {
        const struct group *group = &encoder->grouping->items[i];
        struct string_id text =
            is_package ? package_of(profile, group) : profile_function(profile, group->function)->file_name;
        if (places[text.index] != 0) continue;
        places[text.index] = ++count;
        json_write_string(json, profile_slice(profile, text));
    }
    json_end_array(json);
}

/* [name, file, package, line, 0: not known, 1: of the system, 2: of the application] */
static void write_functions(const struct encoder *encoder, struct json_writer *json, const uint32_t *files,
                            const uint32_t *packages)
{
    const struct profile *profile = encoder->profile;
    json_begin_array_member(json, "functions");
    for (size_t i = 0; i < encoder->grouping->count; i++) {
        const struct group *group = &encoder->grouping->items[i];
        const struct function *function = profile_function(profile, group->function);
        json_begin_array(json);
        json_write_text(json, group_name(encoder->grouping, group));
        json_write_u64(json, files[function->file_name.index] - 1);
        json_write_u64(json, packages[package_of(profile, group).index] - 1);
        json_write_i64(json, function->start_line);
        json_write_u64(json, (uint64_t)function->in_app);
        json_end_array(json);
    }
    json_end_array(json);
}

/* [time in ns, value, …]; a value that no number of JSON can be is left out. */
static void write_points(const struct encoder *encoder, struct json_writer *json, const struct measurement *measurement)
{
    size_t step = (measurement->count + PAGE_POINTS_MAX - 1) / PAGE_POINTS_MAX;
    json_begin_array_member(json, "points");
    for (size_t first = 0; first < measurement->count; first += step) {
        const struct measurement_value *largest = &measurement->values[first];
        for (size_t i = first; i < first + step && i < measurement->count; i++)
            if (measurement->values[i].value > largest->value) largest = &measurement->values[i];
        if (!isfinite(largest->value)) continue;
        json_write_i64(json, (int64_t)(largest->time_ns - encoder->origin_ns));
        json_write_double(json, largest->value);
    }
    json_end_array(json);
}

static void write_measurements(const struct encoder *encoder, struct json_writer *json)
{
    const struct profile *profile = encoder->profile;
    json_begin_array_member(json, "measurements");
    for (size_t i = 0; profile->has_times && i < profile->measurements.count; i++) {
        const struct measurement *measurement = &profile->measurements.items[i];
        json_begin_object(json);
        json_member_string(json, "name", profile_slice(profile, measurement->name));
        json_member_string(json, "unit", profile_slice(profile, measurement->unit));
        write_points(encoder, json, measurement);
        json_end_object(json);
    }
    json_end_array(json);
}

static bool write_object(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct json_writer json = json_writer_of(&encoder->streams[STREAM_JSON]);
    uint32_t *files = calloc(profile->strings.count + 1, sizeof(*files));
    uint32_t *packages = calloc(profile->strings.count + 1, sizeof(*packages));
    if (files && packages) {
        json_begin_object(&json);
        json_member_string(&json, "title", slice_of_text(encoder->options->title));
        json_member_string(&json, "release", profile_slice(profile, profile->release));
        json_member_string(&json, "environment", profile_slice(profile, profile->environment));
        write_types(encoder, &json);
        json_member_u64(&json, "type", encoder->options->column);
        write_threads(profile, &json);
        json_member_u64(&json, "thread", profile_thread_with_samples(profile, profile_default_thread(profile)).index);
        json_member_bool(&json, "has_times", profile->has_times);
        json_write_key(&json, "start"); /* milliseconds since 1970; 0: not known */
        json_write_u64(&json, encoder->origin_ns / 1000000);
        json_member_u64(&json, "nodes", encoder->tree.count);
        json_member_u64(&json, "samples", encoder->written_samples);
        write_measurements(encoder, &json);
        write_texts(encoder, &json, "files", files, false);
        write_texts(encoder, &json, "packages", packages, true);
        write_functions(encoder, &json, files, packages);
        json_end_object(&json);
    }
    bool has_memory = files && packages;
    free(files);
    free(packages);
    return has_memory;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static enum status compress(struct encoder *encoder, struct buffer *out, struct error *error)
{
    struct buffer all;
    buffer_init(&all, PAGE_DATA_BYTES_MAX);
    buffer_append_text(&all, "OBP1");
    for (int i = 0; i < STREAMS; i++) {
        uint32_t size = (uint32_t)encoder->streams[i].size;
        all.failed |= encoder->streams[i].failed;
        buffer_append(&all, &size, sizeof(size)); /* little-endian, as the machine */
        buffer_append(&all, encoder->streams[i].data, size);
    }
    enum status status = all.failed ? error_set(error, STATUS_TOO_LARGE, 0, "the profile is too large for a page")
                                    : gzip_compress(buffer_slice(&all), COMPRESSION, out, error);
    buffer_fini(&all);
    return status;
}

static enum status encode_profile(struct encoder *encoder, struct buffer *out, struct error *error)
{
    size_t count = encoder->profile->samples.count;
    if (count > PAGE_SAMPLES_MAX)
        return error_set(error, STATUS_TOO_LARGE, 0,
                         "the profile has more than 32 million samples, too many for a page");
    if (!find_divisors(encoder))
        return error_set(error, STATUS_UNSUPPORTED, 0, "the page does not show negative values");
    enum status status = page_tree_init(&encoder->tree, encoder->profile, encoder->grouping, error);
    if (status != STATUS_OK) return status;
    encoder->order = calloc(count + 1, sizeof(*encoder->order));
    bool has_memory = encoder->order && write_tree(encoder);
    if (has_memory) {
        for (size_t i = 0; i < count; i++) encoder->order[i] = (uint32_t)i;
        encoder->origin_ns = times_origin_ns(encoder->profile);
        qsort_r(encoder->order, count, sizeof(*encoder->order), compare_samples, encoder);
        write_samples(encoder);
        has_memory = write_object(encoder);
    }
    if (!has_memory) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the page");
    return compress(encoder, out, error);
}

enum status page_data_encode(const struct profile *profile, const struct page_options *options, struct buffer *out,
                             struct error *error)
{
    struct grouping grouping;
    struct encoder encoder = {.profile = profile, .grouping = &grouping, .options = options};
    for (int i = 0; i < STREAMS; i++) buffer_init(&encoder.streams[i], PAGE_DATA_BYTES_MAX);
    enum status status = grouping_init(&grouping, profile, &options->grouping, error);
    if (status == STATUS_OK) status = encode_profile(&encoder, out, error);
    for (int i = 0; i < STREAMS; i++) buffer_fini(&encoder.streams[i]);
    page_tree_fini(&encoder.tree);
    index_table_fini(&encoder.calls.index);
    free(encoder.calls.items);
    free(encoder.calls.of_node);
    free(encoder.order);
    grouping_fini(&grouping);
    return status;
}
