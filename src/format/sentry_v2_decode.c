/* Reads a Sample Format V2 chunk.
 *
 * One pass over the bytes puts frames, stacks, samples and images into arrays as they come, because JSON may bring them
 * in any order; a second step over the arrays makes the model of what the samples use. As liberal as the real receiver
 * (facts §1.7), and more: image types, numbers as thread ids or addresses and negative priorities do not matter here.
 *
 * Sentry wants return addresses for all frames but the leaf; the model wants addresses inside the call. Frames next to
 * each other with the same address are one location with inlined functions.
 * SPDX-License-Identifier: MIT */
#include "format/sentry_decoder_private.h"

#include "base/array.h"
#include "base/uuid.h"
#include "format/facts.h"

#include <stdlib.h>

enum {
    CHUNK_ITEMS_MAX = 64 << 20, /* of each kind; a chunk of the size that is accepted has far fewer */
};

/* Measurements of Node's SDK have milliseconds where all else has seconds (year 5138 on is taken for that). */
#define MILLISECONDS_FROM 1e11

/* Room for one more item of decoder->TABLE, zeroed and counted; NULL on failure, which the reader then remembers. */
#define ADD_ITEM(decoder, table)                                                                                       \
    ((__typeof__((decoder)->chunk.table.items))add_item(                                                               \
        (decoder), &(decoder)->chunk.table.items, &(decoder)->chunk.table.count, &(decoder)->chunk.table.capacity,     \
        sizeof(*(decoder)->chunk.table.items)))

static inline void *add_item(struct chunk_decoder *decoder, void *items, size_t *count, size_t *capacity,
                             size_t item_size)
{
    if (*count == *capacity && !array_reserve(items, capacity, *count + 1, item_size, CHUNK_ITEMS_MAX)) {
        json_reader_refuse(&decoder->reader, STATUS_NO_MEMORY, "no memory for the chunk");
        return NULL;
    }
    uint8_t *item = *(uint8_t **)items + *count * item_size;
    memset(item, 0, item_size);
    (*count)++;
    return item;
}

/* --- Members of objects ------------------------------------------------------------------------------------------- */

int chunk_next_member(struct chunk_decoder *decoder, struct members *members)
{
    struct slice key;
    while (json_object_next(&decoder->reader, &key)) {
        const struct member *found = NULL;
        for (uint32_t tried = 0; tried < members->known_count && !found; tried++) {
            const struct member *member = &members->known[members->guess];
            members->guess = members->guess + 1 == members->known_count ? 0 : members->guess + 1;
            if (key.size == member->name_size && memcmp(key.data, member->name, key.size) == 0) found = member;
        }
        if (!found) {
            json_skip(&decoder->reader);
            continue;
        }
        uint32_t bit = 1u << found->number;
        if (members->seen & bit) json_reader_refuse(&decoder->reader, STATUS_MALFORMED, "duplicate key");
        members->seen |= bit;
        if (!json_null(&decoder->reader)) return found->number;
    }
    return -1;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

struct string_id chunk_read_string(struct chunk_decoder *decoder)
{
    return profile_string(decoder->profile, json_string(&decoder->reader));
}

struct slice chunk_read_text_or_number(struct chunk_decoder *decoder)
{
    if (json_peek(&decoder->reader) == JSON_NUMBER) return json_number(&decoder->reader).text;
    return json_string(&decoder->reader);
}

static bool parse_hex(struct slice digits, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (digits.size == 0 || digits.size > 16) return false;
    for (size_t i = 0; i < digits.size; i++) {
        uint8_t byte = digits.data[i], letter = byte | 0x20;
        if (byte >= '0' && byte <= '9')
            value = value << 4 | (uint64_t)(byte - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = value << 4 | (uint64_t)(letter - 'a' + 10);
        else
            return false;
    }
    *ret_value = value;
    return true;
}

static bool parse_decimal(struct slice digits, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(digits.data[i] - '0'), &value))
            return false;
    }
    *ret_value = value;
    return digits.size > 0;
}

/* "0x1f", "31" or 31. */
static uint64_t read_address(struct chunk_decoder *decoder)
{
    uint64_t value = 0;
    struct slice text = chunk_read_text_or_number(decoder);
    bool is_hex = text.size > 2 && text.data[0] == '0' && (text.data[1] | 0x20) == 'x';
    bool is_valid = is_hex ? parse_hex(slice_of(text.data + 2, text.size - 2), &value) : parse_decimal(text, &value);
    if (!is_valid) json_reader_refuse(&decoder->reader, STATUS_MALFORMED, "expected an address");
    return is_valid ? value : 0;
}

uint64_t chunk_read_u64(struct chunk_decoder *decoder)
{
    uint64_t value = 0;
    if (!parse_decimal(chunk_read_text_or_number(decoder), &value)) {
        json_reader_refuse(&decoder->reader, STATUS_MALFORMED, "expected a whole number, or a string that holds one");
    }
    return value;
}

struct string_id chunk_read_uuid(struct chunk_decoder *decoder)
{
    char text[UUID_TEXT_SIZE];
    if (!uuid_parse(json_string(&decoder->reader), text)) {
        json_reader_refuse(&decoder->reader, STATUS_MALFORMED, "expected a uuid");
        return (struct string_id){0};
    }
    return profile_text(decoder->profile, text);
}

/* As the real receiver does it, so that its numbers and ours are the same to the nanosecond: in doubles, cut off. */
static uint64_t seconds_to_ns(double seconds)
{
    double ns = seconds * 1e9;
    if (!(ns > 0)) return 0;
    return ns < 0x1p64 ? (uint64_t)ns : UINT64_MAX;
}

/* --- The parts of a chunk ----------------------------------------------------------------------------------------- */

static void read_frame(struct chunk_decoder *decoder)
{
    enum { FUNCTION, FILE_NAME, ABSOLUTE_PATH, LINE, COLUMN, IN_APP, ADDRESS, MODULE, PACKAGE, RAW_FUNCTION };
    static const struct member known[] = {
        MEMBER("function", FUNCTION),
        MEMBER("filename", FILE_NAME),
        MEMBER("abs_path", ABSOLUTE_PATH),
        MEMBER("lineno", LINE),
        MEMBER("colno", COLUMN),
        MEMBER("in_app", IN_APP),
        MEMBER("instruction_addr", ADDRESS),
        MEMBER("module", MODULE),
        MEMBER("package", PACKAGE),
        MEMBER("raw_function", RAW_FUNCTION),
        MEMBER("name", FUNCTION),
        MEMBER("file", FILE_NAME),
        MEMBER("line", LINE),
        MEMBER("column", COLUMN),
    };
    struct members members = MEMBERS(known);
    struct json_reader *reader = &decoder->reader;
    struct chunk_frame *frame = ADD_ITEM(decoder, frames);
    if (!frame) return;
    json_object_begin(reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        switch (member) {
        case FUNCTION:
            frame->function.name = chunk_read_string(decoder);
            break;
        case FILE_NAME:
            frame->file_name = chunk_read_string(decoder);
            break;
        case ABSOLUTE_PATH:
            frame->absolute_path = chunk_read_string(decoder);
            break;
        case LINE:
            frame->line = json_i64(reader);
            break;
        case COLUMN:
            frame->column = json_i64(reader);
            break;
        case IN_APP:
            frame->function.in_app = json_bool(reader) ? IN_APP_YES : IN_APP_NO;
            break;
        case ADDRESS:
            frame->address = read_address(decoder);
            frame->has_address = true;
            break;
        case MODULE:
            frame->function.module = chunk_read_string(decoder);
            break;
        case PACKAGE:
            frame->function.package = chunk_read_string(decoder);
            break;
        case RAW_FUNCTION:
            frame->function.system_name = chunk_read_string(decoder);
            break;
        }
    }
}

static void read_stack(struct chunk_decoder *decoder)
{
    struct chunk_stack *stack = ADD_ITEM(decoder, stacks);
    if (!stack) return;
    stack->first = (uint32_t)decoder->chunk.frame_indices.count;
    json_array_begin(&decoder->reader);
    while (json_array_next(&decoder->reader)) {
        uint64_t frame = json_u64(&decoder->reader);
        uint32_t *index = ADD_ITEM(decoder, frame_indices);
        if (!index) return;
        *index = frame < INDEX_NONE ? (uint32_t)frame : INDEX_NONE;
    }
    stack->count = (uint32_t)decoder->chunk.frame_indices.count - stack->first;
}

static struct thread_id read_thread_id(struct chunk_decoder *decoder)
{
    struct slice text = chunk_read_text_or_number(decoder);
    uint64_t hash = text.size;
    for (size_t i = text.size > 4 ? text.size - 4 : 0; i < text.size; i++) hash = hash * 31 + text.data[i];
    __typeof__(&decoder->thread_cache[0]) cached = &decoder->thread_cache[hash % CHUNK_THREAD_CACHE_SIZE];
    if (cached->id.index && slice_equal(cached->text, text)) return cached->id;

    struct thread thread = {.id = profile_string(decoder->profile, text)};
    struct thread_id id = profile_add_thread(decoder->profile, &thread);
    cached->text = profile_slice(decoder->profile, thread.id);
    cached->id = id;
    return id;
}

/* Since 1970, or, in V1, since the profile's start, where it is a number or a string that holds one. */
static uint64_t read_time(struct chunk_decoder *decoder)
{
    return decoder->is_relative ? chunk_read_u64(decoder) : seconds_to_ns(json_double(&decoder->reader));
}

static void read_sample(struct chunk_decoder *decoder)
{
    enum { TIME, STACK, THREAD, ALL = 1 << TIME | 1 << STACK | 1 << THREAD };
    static const struct member known[] = {MEMBER("timestamp", TIME), MEMBER("stack_id", STACK),
                                          MEMBER("thread_id", THREAD)};
    static const struct member relative[] = {MEMBER("elapsed_since_start_ns", TIME), MEMBER("stack_id", STACK),
                                             MEMBER("thread_id", THREAD)};
    struct members members = {.known = decoder->is_relative ? relative : known, .known_count = 3};
    struct chunk_sample *sample = ADD_ITEM(decoder, samples);
    uint32_t taken = 0;
    if (!sample) return;
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        taken |= 1u << member;
        switch (member) {
        case TIME:
            sample->time_ns = read_time(decoder);
            break;
        case STACK:
            sample->stack = json_u64(&decoder->reader);
            break;
        case THREAD:
            sample->thread = read_thread_id(decoder);
            break;
        }
    }
    if (taken != ALL) {
        json_reader_refuse(&decoder->reader, STATUS_MALFORMED,
                           decoder->is_relative ? "sample without elapsed_since_start_ns, stack_id or thread_id"
                                                : "sample without timestamp, stack_id or thread_id");
    }
}

static void read_thread_metadata(struct chunk_decoder *decoder)
{
    enum { NAME, PRIORITY };
    static const struct member known[] = {MEMBER("name", NAME), MEMBER("priority", PRIORITY)};
    struct slice key;
    json_object_begin(&decoder->reader);
    while (json_object_next(&decoder->reader, &key)) {
        struct members members = MEMBERS(known);
        struct thread thread = {.id = profile_string(decoder->profile, key)};
        if (json_null(&decoder->reader)) continue;
        json_object_begin(&decoder->reader);
        for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
            if (member == NAME) {
                thread.name = chunk_read_string(decoder);
            } else {
                int64_t priority = json_i64(&decoder->reader);
                thread.has_priority = priority >= INT32_MIN && priority <= INT32_MAX;
                thread.priority = thread.has_priority ? (int32_t)priority : 0;
            }
        }
        (void)profile_add_thread(decoder->profile, &thread);
    }
}

static void read_list(struct chunk_decoder *decoder, void (*read_item)(struct chunk_decoder *))
{
    json_array_begin(&decoder->reader);
    while (json_array_next(&decoder->reader)) read_item(decoder);
}

void chunk_read_profile(struct chunk_decoder *decoder)
{
    enum { FRAMES, STACKS, SAMPLES, THREADS };
    static const struct member known[] = {MEMBER("frames", FRAMES), MEMBER("stacks", STACKS),
                                          MEMBER("samples", SAMPLES), MEMBER("thread_metadata", THREADS)};
    struct members members = MEMBERS(known);
    decoder->has_profile = true;
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        switch (member) {
        case FRAMES:
            read_list(decoder, read_frame);
            break;
        case STACKS:
            read_list(decoder, read_stack);
            break;
        case SAMPLES:
            read_list(decoder, read_sample);
            break;
        case THREADS:
            read_thread_metadata(decoder);
            break;
        }
    }
}

/* Images without an address (source maps, class mappings) have no place in the model and are left out. */
static void read_image(struct chunk_decoder *decoder)
{
    enum { CODE_FILE, DEBUG_ID, CODE_ID, START, VMADDR, SIZE };
    static const struct member known[] = {
        MEMBER("code_file", CODE_FILE), MEMBER("debug_id", DEBUG_ID), MEMBER("code_id", CODE_ID),
        MEMBER("image_addr", START),    MEMBER("image_size", SIZE),   MEMBER("image_vmaddr", VMADDR),
        MEMBER("name", CODE_FILE),      MEMBER("id", DEBUG_ID),
    };
    struct members members = MEMBERS(known);
    struct mapping mapping = {0};
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        switch (member) {
        case CODE_FILE:
            mapping.file_name = chunk_read_string(decoder);
            break;
        case DEBUG_ID:
            mapping.debug_id = chunk_read_string(decoder);
            break;
        case CODE_ID:
            mapping.build_id = chunk_read_string(decoder);
            break;
        case START:
            mapping.image_start = read_address(decoder);
            break;
        case VMADDR:
            mapping.image_vmaddr = read_address(decoder);
            break;
        case SIZE:
            mapping.image_size = read_address(decoder);
            break;
        }
    }
    struct chunk_image *image = mapping.image_start ? ADD_ITEM(decoder, images) : NULL;
    if (!image) return;
    mapping.start = mapping.image_start;
    if (__builtin_add_overflow(mapping.start, mapping.image_size, &mapping.limit)) mapping.limit = UINT64_MAX;
    image->mapping = mapping;
}

void chunk_read_debug_meta(struct chunk_decoder *decoder)
{
    static const struct member known[] = {MEMBER("images", 0)};
    struct members members = MEMBERS(known);
    json_object_begin(&decoder->reader);
    while (chunk_next_member(decoder, &members) >= 0) read_list(decoder, read_image);
}

void chunk_read_client_sdk(struct chunk_decoder *decoder)
{
    static const struct member known[] = {MEMBER("name", 0), MEMBER("version", 1)};
    struct members members = MEMBERS(known);
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        *(member == 0 ? &decoder->profile->sdk_name : &decoder->profile->sdk_version) = chunk_read_string(decoder);
    }
}

/* A number, or a string that holds one (FMT-7). */
static double read_measured(struct chunk_decoder *decoder)
{
    if (json_peek(&decoder->reader) == JSON_NUMBER) return json_double(&decoder->reader);
    struct json_number number;
    if (!json_number_of_text(json_string(&decoder->reader), &number)) {
        json_reader_refuse(&decoder->reader, STATUS_MALFORMED, "expected a number, or a string that holds one");
        return 0;
    }
    return json_number_to_double(&number);
}

static uint64_t read_measurement_time(struct chunk_decoder *decoder)
{
    if (decoder->is_relative) return chunk_read_u64(decoder);
    double seconds = json_double(&decoder->reader);
    return seconds_to_ns(seconds > MILLISECONDS_FROM ? seconds / 1000 : seconds);
}

static void read_measurement_value(struct chunk_decoder *decoder, struct measurement *measurement)
{
    static const struct member known[] = {MEMBER("timestamp", 0), MEMBER("value", 1)};
    static const struct member relative[] = {MEMBER("elapsed_since_start_ns", 0), MEMBER("value", 1)};
    struct members members = {.known = decoder->is_relative ? relative : known, .known_count = 2};
    uint64_t time_ns = 0;
    double value = 0;
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        if (member == 0)
            time_ns = read_measurement_time(decoder);
        else
            value = read_measured(decoder);
    }
    profile_measure(decoder->profile, measurement, time_ns, value);
}

void chunk_read_measurements(struct chunk_decoder *decoder)
{
    enum { UNIT, VALUES };
    static const struct member known[] = {MEMBER("unit", UNIT), MEMBER("values", VALUES)};
    struct profile *profile = decoder->profile;
    struct slice key;
    json_object_begin(&decoder->reader);
    while (json_object_next(&decoder->reader, &key)) {
        struct members members = MEMBERS(known);
        const char *name = profile_c_string(profile, profile_string(profile, key));
        if (json_null(&decoder->reader)) continue;
        struct measurement *measurement = profile_measurement(profile, name, "");
        if (!measurement) return;
        json_object_begin(&decoder->reader);
        for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
            if (member == UNIT) {
                measurement->unit = chunk_read_string(decoder);
                continue;
            }
            json_array_begin(&decoder->reader);
            while (json_array_next(&decoder->reader)) read_measurement_value(decoder, measurement);
        }
    }
}

/* Our own addition, which other receivers pass over. */
void chunk_read_offbeat(struct chunk_decoder *decoder)
{
    static const struct member known[] = {MEMBER("period_ns", 0), MEMBER("facts", 1)};
    struct members members = MEMBERS(known);
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        if (member == 0)
            decoder->profile->period = json_i64(&decoder->reader);
        else
            facts_read(&decoder->reader, decoder->profile);
    }
}

static void read_version(struct chunk_decoder *decoder)
{
    decoder->has_version = true;
    decoder->is_version_2 = slice_equals_text(json_string(&decoder->reader), "2");
}

static void read_chunk(struct chunk_decoder *decoder)
{
    enum {
        VERSION,
        PROFILER,
        CHUNK,
        PLATFORM,
        RELEASE,
        ENVIRONMENT,
        DIST,
        SDK,
        IMAGES,
        MEASUREMENTS,
        PROFILE,
        OFFBEAT
    };
    static const struct member known[] = {
        MEMBER("version", VERSION),   MEMBER("profiler_id", PROFILER),
        MEMBER("chunk_id", CHUNK),    MEMBER("platform", PLATFORM),
        MEMBER("release", RELEASE),   MEMBER("environment", ENVIRONMENT),
        MEMBER("dist", DIST),         MEMBER("client_sdk", SDK),
        MEMBER("debug_meta", IMAGES), MEMBER("measurements", MEASUREMENTS),
        MEMBER("profile", PROFILE),   MEMBER("offbeat", OFFBEAT),
        MEMBER("profile_id", CHUNK),  MEMBER("event_id", CHUNK),
    };
    struct members members = MEMBERS(known);
    struct profile *profile = decoder->profile;
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        switch (member) {
        case VERSION:
            read_version(decoder);
            break;
        case PROFILER:
            profile->profiler_id = chunk_read_uuid(decoder);
            break;
        case CHUNK:
            profile->chunk_id = chunk_read_uuid(decoder);
            break;
        case PLATFORM:
            profile->platform = chunk_read_string(decoder);
            break;
        case RELEASE:
            profile->release = chunk_read_string(decoder);
            break;
        case ENVIRONMENT:
            profile->environment = chunk_read_string(decoder);
            break;
        case DIST:
            profile->dist = chunk_read_string(decoder);
            break;
        case SDK:
            chunk_read_client_sdk(decoder);
            break;
        case IMAGES:
            chunk_read_debug_meta(decoder);
            break;
        case MEASUREMENTS:
            chunk_read_measurements(decoder);
            break;
        case PROFILE:
            chunk_read_profile(decoder);
            break;
        case OFFBEAT:
            chunk_read_offbeat(decoder);
            break;
        }
    }
}

/* --- Whether it is one -------------------------------------------------------------------------------------------- */

/* Whether BYTES name another version than 2, whatever else is wrong with them. */
static bool is_another_version(struct slice bytes)
{
    struct json_reader reader;
    struct slice key;
    bool is_another = false;
    json_reader_init(&reader, bytes);
    json_object_begin(&reader);
    while (!is_another && json_object_next(&reader, &key)) {
        if (slice_equals_text(key, "version") && json_peek(&reader) == JSON_STRING) {
            is_another = !slice_equals_text(json_string(&reader), "2") && !reader.failed;
        } else {
            json_skip(&reader);
        }
    }
    json_reader_fini(&reader);
    return is_another;
}

static enum status decode(struct chunk_decoder *decoder, struct slice bytes, struct error *error)
{
    json_reader_init(&decoder->reader, bytes);
    if (json_peek(&decoder->reader) != JSON_OBJECT) {
        return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "no JSON object");
    }
    read_chunk(decoder);
    enum status status = json_reader_finish(&decoder->reader, error);
    if (!decoder->is_version_2 && is_another_version(bytes)) {
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "profiling_platform_not_supported: only version 2 of the sample format is read");
    }
    if (status != STATUS_OK) return status;
    if (!decoder->has_version && !decoder->has_profile) {
        return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "no version and no profile in the object");
    }
    if (!decoder->is_version_2 || !decoder->has_profile) {
        return error_set(error, STATUS_MALFORMED, 0, "profiling_invalid_json: no %s",
                         decoder->has_profile ? "version" : "profile");
    }
    decoder->profile->sample_format = 2;
    return chunk_to_profile(&decoder->chunk, decoder->profile, error);
}

void chunk_decoder_fini(struct chunk_decoder *decoder)
{
    json_reader_fini(&decoder->reader);
    free(decoder->chunk.frames.items);
    free(decoder->chunk.stacks.items);
    free(decoder->chunk.frame_indices.items);
    free(decoder->chunk.samples.items);
    free(decoder->chunk.images.items);
}

enum status sentry_v2_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct chunk_decoder decoder = {.profile = profile};
    enum status status = decode(&decoder, bytes, error);
    chunk_decoder_fini(&decoder);
    return status;
}
