/* The rules for a profile of sample format V1 (V1-1…4; facts §1.4).
 *
 * A first look finds the version, without which nothing else is asked. Then the whole payload is read, typed, into as
 * little as the later rules need: of each sample its time, stack and thread, of each stack whether it is empty. Only
 * for a frame's index that points nowhere it is read once more, to tell the place. SPDX-License-Identifier: MIT */
#include "format/sentry/rules_private.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/index_table.h"
#include "base/uuid.h"
#include "format/sentry/sentry_decoder_private.h"

#include <stdio.h>
#include <stdlib.h>

#define DURATION_NS_MAX ((uint64_t)30 * 1000000000)

enum { ITEMS_MAX = RULES_RELAY_BYTES_MAX };

struct v1_sample {
    uint64_t elapsed_ns, stack;
    uint32_t thread; /* in THREADS */
    uint32_t number; /* its place in the payload */
};

struct v1_transaction {
    bool is_there, has_id, has_trace_id, has_name, has_thread, has_nil_id;
    char id[UUID_TEXT_SIZE];
    uint64_t start_ns, end_ns, cpu_start_ms, cpu_end_ms;
};

/* clang-format off */
struct judge {
    struct rules_reader reader;
    enum rules rules;
    bool is_version_1;
    struct slice version; /* as it stands in the payload */
    struct { struct v1_sample *items; size_t count, capacity; } samples;
    struct { bool *items; size_t count, capacity; } stacks; /* which have frames */
    struct { uint64_t *items; size_t count, capacity; struct index_table index; } threads;
    uint64_t frame_count, frame_index_max;
    bool has_frame_index;
    struct v1_sample sample;           /* that is being read */
    uint64_t stack_frames;             /* of the stack that is being read */
    bool frame_tells, has_profile;     /* the frame that is being read has a name, a file or an address */
    bool frame_has_address, frame_is_other;
    bool lacks_address;                /* a frame, the first of them FRAME_WITHOUT_ADDRESS, unless it is of other code */
    uint64_t frame_without_address;
    struct v1_transaction transaction; /* the one that counts */
    struct v1_transaction candidate;   /* that is being read */
    bool is_cocoa, is_native, has_images, has_build_number, has_emulator, has_locale, has_manufacturer, has_model;
    struct { uint64_t *items; size_t count, capacity; } metadata; /* the threads that it is about */
};
/* clang-format on */

static struct judge *judge_of(struct rules_reader *reader)
{
    return (struct judge *)reader;
}

static void fail_memory(struct judge *judge)
{
    json_reader_refuse(&judge->reader.json, STATUS_NO_MEMORY, "no memory");
}

/* --- Samples, stacks, frames -------------------------------------------------------------------------------------- */

static bool thread_equal(const void *context, uint32_t index, const void *key)
{
    const struct judge *judge = context;
    return judge->threads.items[index] == *(const uint64_t *)key;
}

static uint32_t thread_number(struct judge *judge, uint64_t id)
{
    uint64_t hash = hash_mix(0, id);
    uint32_t known = index_table_find(&judge->threads.index, hash, thread_equal, judge, &id);
    if (known != INDEX_NONE) return known;
    size_t count = judge->threads.count;
    if (!array_reserve(&judge->threads.items, &judge->threads.capacity, count + 1, sizeof(uint64_t), ITEMS_MAX) ||
        !index_table_add(&judge->threads.index, hash, (uint32_t)count)) {
        fail_memory(judge);
        return 0;
    }
    judge->threads.items[judge->threads.count++] = id;
    return (uint32_t)count;
}

/* A whole number: for the documents a string of one (V1-9), for the service also the number. */
static uint64_t take_number(struct rules_reader *reader)
{
    uint64_t offset = rules_next_offset(reader);
    if (judge_of(reader)->rules == RULES_SPEC && json_peek(&reader->json) != JSON_STRING) {
        rules_violate(reader, offset, "string of an integer");
        return 0;
    }
    return rules_u64_or_text(reader);
}

/* Document 004 has a number in its example. Its text and document 000 say a string, and 000 takes precedence. */
static void take_elapsed(struct rules_reader *reader)
{
    judge_of(reader)->sample.elapsed_ns = take_number(reader);
}

static void take_elapsed_of_value(struct rules_reader *reader)
{
    (void)take_number(reader);
}

static void take_stack_id(struct rules_reader *reader)
{
    judge_of(reader)->sample.stack = rules_u64(reader, UINT64_MAX);
}

static void take_thread_id(struct rules_reader *reader)
{
    struct judge *judge = judge_of(reader);
    judge->sample.thread = thread_number(judge, take_number(reader));
}

static void take_sample(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"elapsed_since_start_ns", NULL, RULES_REQUIRED, "string of an integer", take_elapsed},
        {"stack_id", NULL, RULES_REQUIRED, "integer", take_stack_id},
        {"thread_id", NULL, RULES_REQUIRED, "string of an integer", take_thread_id},
        {"queue_address", NULL, RULES_OPTIONAL, "string", rules_take_string},
    };
    struct judge *judge = judge_of(reader);
    size_t count = judge->samples.count;
    judge->sample = (struct v1_sample){.number = (uint32_t)count};
    RULES_TAKE_OBJECT(reader, members);
    if (reader->json.failed) return;
    if (!array_reserve(&judge->samples.items, &judge->samples.capacity, count + 1, sizeof(struct v1_sample),
                       ITEMS_MAX)) {
        fail_memory(judge);
        return;
    }
    judge->samples.items[judge->samples.count++] = judge->sample;
}

static void take_samples(struct rules_reader *reader)
{
    rules_take_array(reader, take_sample);
}

static void take_frame_index(struct rules_reader *reader)
{
    struct judge *judge = judge_of(reader);
    uint64_t index = rules_u64(reader, UINT64_MAX);
    if (!judge->has_frame_index || index > judge->frame_index_max) judge->frame_index_max = index;
    judge->has_frame_index = true;
    judge->stack_frames++;
}

static void take_stack(struct rules_reader *reader)
{
    struct judge *judge = judge_of(reader);
    judge->stack_frames = 0;
    rules_take_array(reader, take_frame_index);
    if (!array_reserve(&judge->stacks.items, &judge->stacks.capacity, judge->stacks.count + 1, sizeof(bool),
                       ITEMS_MAX)) {
        fail_memory(judge);
        return;
    }
    judge->stacks.items[judge->stacks.count++] = judge->stack_frames > 0;
}

static void take_stacks(struct rules_reader *reader)
{
    rules_take_array(reader, take_stack);
}

static void take_telling_string(struct rules_reader *reader)
{
    judge_of(reader)->frame_tells = true;
    rules_take_string(reader);
}

static void take_telling_address(struct rules_reader *reader)
{
    judge_of(reader)->frame_tells = judge_of(reader)->frame_has_address = true;
    rules_take_address(reader);
}

static bool is_native(struct slice platform)
{
    return slice_equals_text(platform, "native") || slice_equals_text(platform, "cocoa") ||
           slice_equals_text(platform, "rust");
}

static void take_platform_of_frame(struct rules_reader *reader)
{
    judge_of(reader)->frame_is_other = !is_native(rules_string(reader));
}

static void take_frame(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"function", "name", RULES_OPTIONAL, NULL, take_telling_string},
        {"filename", "file", RULES_OPTIONAL, NULL, take_telling_string},
        {"instruction_addr", NULL, RULES_OPTIONAL, NULL, take_telling_address},
        {"lineno", "line", RULES_OPTIONAL, NULL, rules_take_u32},
        {"colno", "column", RULES_OPTIONAL, NULL, rules_take_u32},
        {"abs_path", NULL, RULES_OPTIONAL, NULL, rules_take_string},
        {"in_app", NULL, RULES_OPTIONAL, NULL, rules_take_bool},
        {"module", NULL, RULES_OPTIONAL, NULL, rules_take_string},
        {"package", NULL, RULES_OPTIONAL, NULL, rules_take_string},
        {"platform", NULL, RULES_OPTIONAL, NULL, take_platform_of_frame},
    };
    struct judge *judge = judge_of(reader);
    uint64_t offset = rules_next_offset(reader);
    judge->frame_tells = judge->frame_has_address = judge->frame_is_other = false;
    RULES_TAKE_OBJECT(reader, members);
    bool lacks_address = !judge->frame_has_address && !judge->frame_is_other;
    if (lacks_address && !judge->lacks_address) judge->frame_without_address = judge->frame_count;
    judge->lacks_address |= lacks_address;
    judge->frame_count++;
    if (judge->rules == RULES_SPEC && !judge->frame_tells) {
        rules_violate(reader, offset, "filename, function or instruction_addr"); /* FMT-3 */
    }
}

static void take_frames(struct rules_reader *reader)
{
    rules_take_array(reader, take_frame);
}

static void take_thread_facts(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"name", NULL, RULES_OPTIONAL, NULL, rules_take_string},
        {"priority", NULL, RULES_OPTIONAL, NULL, rules_take_u32},
    };
    struct judge *judge = judge_of(reader);
    size_t count = judge->metadata.count;
    if (!array_reserve(&judge->metadata.items, &judge->metadata.capacity, count + 1, sizeof(uint64_t), ITEMS_MAX)) {
        fail_memory(judge);
        return;
    }
    /* No sample's thread has an id that is no number. */
    if (!chunk_parse_decimal(reader->key, &judge->metadata.items[count])) judge->metadata.items[count] = UINT64_MAX;
    judge->metadata.count++;
    RULES_TAKE_OBJECT(reader, members);
}

static void take_thread_metadata(struct rules_reader *reader)
{
    rules_take_map(reader, take_thread_facts);
}

#define TABLES                                                                                                         \
    {"samples", NULL, RULES_REQUIRED, "array", take_samples}, {"stacks", NULL, RULES_REQUIRED, "array", take_stacks},  \
    {                                                                                                                  \
        "frames", NULL, RULES_REQUIRED, "array", take_frames                                                           \
    }

static void take_profile(struct rules_reader *reader)
{
    static const struct rules_member of_spec[] = {
        TABLES, {"thread_metadata", NULL, RULES_REQUIRED, "object", take_thread_metadata}};
    static const struct rules_member of_relay[] = {
        TABLES, {"thread_metadata", NULL, RULES_OPTIONAL, NULL, take_thread_metadata}};
    judge_of(reader)->has_profile = true;
    if (judge_of(reader)->rules == RULES_SPEC) {
        RULES_TAKE_OBJECT(reader, of_spec);
    } else {
        RULES_TAKE_OBJECT(reader, of_relay);
    }
}

/* --- Images and measurements -------------------------------------------------------------------------------------- */

/* `elf` is in the documents, but no type that the service knows. */
static void take_image_type(struct rules_reader *reader)
{
    static const char *const known[] = {"macho", "symbolic", "sourcemap", "proguard", "jvm"};
    uint64_t offset = rules_next_offset(reader);
    struct slice type = rules_string(reader);
    if (judge_of(reader)->rules == RULES_SPEC) return;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (slice_equals_text(type, known[i])) return;
    }
    rules_violate(reader, offset, "macho, symbolic, sourcemap, proguard or jvm");
}

/* The documents know nothing of it; the service takes it for a uuid. */
static void take_image_uuid(struct rules_reader *reader)
{
    if (judge_of(reader)->rules == RULES_SPEC) {
        json_skip(&reader->json);
    } else {
        rules_take_uuid(reader);
    }
}

static void take_image(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"type", NULL, RULES_REQUIRED, "string", take_image_type},
        {"code_file", "name", RULES_OPTIONAL, NULL, rules_take_string},
        {"debug_id", "id", RULES_OPTIONAL, NULL, rules_take_string},
        {"image_addr", NULL, RULES_OPTIONAL, NULL, rules_take_address},
        {"image_vmaddr", NULL, RULES_OPTIONAL, NULL, rules_take_address},
        {"image_size", NULL, RULES_NOT_NULL, NULL, rules_take_u64_or_text},
        {"uuid", "build_id", RULES_OPTIONAL, NULL, take_image_uuid},
    };
    judge_of(reader)->has_images = true;
    RULES_TAKE_OBJECT(reader, members);
}

static void take_images(struct rules_reader *reader)
{
    rules_take_array(reader, take_image);
}

static void take_debug_meta(struct rules_reader *reader)
{
    static const struct rules_member members[] = {{"images", NULL, RULES_REQUIRED, "array", take_images}};
    RULES_TAKE_OBJECT(reader, members);
}

static void take_unit(struct rules_reader *reader)
{
    static const char *const known[] = {"nanosecond", "ns", "hertz", "hz", "byte", "percent", "nanojoule", "nj"};
    enum { KNOWN = sizeof(known) / sizeof(known[0]), KNOWN_TO_SPEC = KNOWN - 2 };
    size_t count = judge_of(reader)->rules == RULES_SPEC ? KNOWN_TO_SPEC : KNOWN;
    uint64_t offset = rules_next_offset(reader);
    struct slice unit = rules_string(reader);
    for (size_t i = 0; i < count; i++) {
        if (slice_equals_text(unit, known[i])) return;
    }
    rules_violate(reader, offset, "nanosecond, ns, hertz, hz, byte, percent (or nanojoule, nj)");
}

static void take_measured(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"elapsed_since_start_ns", NULL, RULES_REQUIRED, "string of an integer", take_elapsed_of_value},
        {"value", NULL, RULES_REQUIRED, "number, or a string of one", rules_take_double_or_text},
    };
    RULES_TAKE_OBJECT(reader, members);
}

static void take_measured_values(struct rules_reader *reader)
{
    rules_take_array(reader, take_measured);
}

static void take_measurement(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"unit", NULL, RULES_REQUIRED, "string", take_unit},
        {"values", NULL, RULES_REQUIRED, "array", take_measured_values},
    };
    RULES_TAKE_OBJECT(reader, members);
}

static void take_measurements(struct rules_reader *reader)
{
    rules_take_map(reader, take_measurement);
}

/* --- Metadata ----------------------------------------------------------------------------------------------------- */

static bool is_nil(struct slice uuid)
{
    for (size_t i = 0; i < uuid.size; i++) {
        if (uuid.data[i] != '0' && uuid.data[i] != '-') return false;
    }
    return true;
}

/* A uuid; *HAS_NIL is set if it is all zeros. */
static struct slice take_id(struct rules_reader *reader, bool *ret_is_nil)
{
    uint64_t offset = rules_next_offset(reader);
    rules_take_uuid(reader);
    if (reader->json.failed) return (struct slice){0};
    struct slice text = slice_of(reader->bytes.data + offset + 1, json_reader_taken(&reader->json) - offset - 2);
    *ret_is_nil |= is_nil(text);
    return text;
}

static void take_transaction_id(struct rules_reader *reader)
{
    struct v1_transaction *transaction = &judge_of(reader)->candidate;
    transaction->has_id = true;
    (void)uuid_parse(take_id(reader, &transaction->has_nil_id), transaction->id);
}

static void take_trace_id(struct rules_reader *reader)
{
    judge_of(reader)->candidate.has_trace_id = true;
    (void)take_id(reader, &judge_of(reader)->candidate.has_nil_id);
}

static void take_transaction_name(struct rules_reader *reader)
{
    judge_of(reader)->candidate.has_name = rules_string(reader).size > 0;
}

static void take_active_thread(struct rules_reader *reader)
{
    judge_of(reader)->candidate.has_thread = true;
    (void)take_number(reader);
}

static void take_relative_start(struct rules_reader *reader)
{
    judge_of(reader)->candidate.start_ns = rules_u64_or_text(reader);
}

static void take_relative_end(struct rules_reader *reader)
{
    judge_of(reader)->candidate.end_ns = rules_u64_or_text(reader);
}

static void take_cpu_start(struct rules_reader *reader)
{
    judge_of(reader)->candidate.cpu_start_ms = rules_u64_or_text(reader);
}

static void take_cpu_end(struct rules_reader *reader)
{
    judge_of(reader)->candidate.cpu_end_ms = rules_u64_or_text(reader);
}

static void read_transaction(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"id", NULL, RULES_REQUIRED, "uuid", take_transaction_id},
        {"name", NULL, RULES_REQUIRED, "string", take_transaction_name},
        {"trace_id", NULL, RULES_REQUIRED, "uuid", take_trace_id},
        {"active_thread_id", NULL, RULES_NOT_NULL, NULL, take_active_thread},
        {"relative_start_ns", NULL, RULES_NOT_NULL, NULL, take_relative_start},
        {"relative_end_ns", NULL, RULES_NOT_NULL, NULL, take_relative_end},
        {"relative_cpu_start_ms", NULL, RULES_NOT_NULL, NULL, take_cpu_start},
        {"relative_cpu_end_ms", NULL, RULES_NOT_NULL, NULL, take_cpu_end},
    };
    judge_of(reader)->candidate = (struct v1_transaction){.is_there = true};
    RULES_TAKE_OBJECT(reader, members);
}

/* The object counts, whether it stands before the list or behind it. */
static void take_transaction(struct rules_reader *reader)
{
    read_transaction(reader);
    judge_of(reader)->transaction = judge_of(reader)->candidate;
    judge_of(reader)->transaction.is_there = true;
}

static void take_listed_transaction(struct rules_reader *reader)
{
    read_transaction(reader);
    if (!judge_of(reader)->transaction.is_there) judge_of(reader)->transaction = judge_of(reader)->candidate;
}

static void take_transactions(struct rules_reader *reader)
{
    rules_take_array(reader, take_listed_transaction);
}

static void take_build_number(struct rules_reader *reader)
{
    judge_of(reader)->has_build_number = true;
    rules_take_string(reader);
}

static void take_os(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"name", NULL, RULES_REQUIRED, "string", rules_take_string},
        {"version", NULL, RULES_REQUIRED, "string", rules_take_string},
        {"build_number", NULL, RULES_OPTIONAL, NULL, take_build_number},
    };
    RULES_TAKE_OBJECT(reader, members);
}

static void take_is_emulator(struct rules_reader *reader)
{
    judge_of(reader)->has_emulator = true;
    rules_take_bool(reader);
}

static void take_locale(struct rules_reader *reader)
{
    judge_of(reader)->has_locale = true;
    rules_take_string(reader);
}

static void take_manufacturer(struct rules_reader *reader)
{
    judge_of(reader)->has_manufacturer = true;
    rules_take_string(reader);
}

static void take_model(struct rules_reader *reader)
{
    judge_of(reader)->has_model = true;
    rules_take_string(reader);
}

static void take_device(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"architecture", NULL, RULES_REQUIRED, "string", rules_take_string},
        {"is_emulator", NULL, RULES_OPTIONAL, NULL, take_is_emulator},
        {"locale", NULL, RULES_OPTIONAL, NULL, take_locale},
        {"manufacturer", NULL, RULES_OPTIONAL, NULL, take_manufacturer},
        {"model", NULL, RULES_OPTIONAL, NULL, take_model},
    };
    RULES_TAKE_OBJECT(reader, members);
}

static void take_runtime(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"name", NULL, RULES_OPTIONAL, NULL, rules_take_string},
        {"version", NULL, RULES_OPTIONAL, NULL, rules_take_string},
    };
    RULES_TAKE_OBJECT(reader, members);
}

static void take_platform(struct rules_reader *reader)
{
    struct slice platform = rules_string(reader);
    judge_of(reader)->is_cocoa = slice_equals_text(platform, "cocoa");
    judge_of(reader)->is_native = is_native(platform);
}

/* The documents allow one spelling alone: 32 lowercase digits. */
static void take_event_id(struct rules_reader *reader)
{
    char plain[UUID_TEXT_SIZE];
    uint64_t offset = rules_next_offset(reader);
    rules_take_uuid(reader);
    if (reader->json.failed || judge_of(reader)->rules != RULES_SPEC) return;
    struct slice text = slice_of(reader->bytes.data + offset + 1, json_reader_taken(&reader->json) - offset - 2);
    bool is_uuid = uuid_parse(text, plain);
    if (!is_uuid || !slice_equals_text(text, plain)) {
        rules_violate(reader, offset, "32 lowercase hex digits");
    } else if (!uuid_is_random(plain)) {
        rules_violate(reader, offset, "uuid of version 4");
    }
}

/* What both sets agree on. They differ in what must be there: the documents say release, the service timestamp. */
#define MEMBERS_OF_BOTH                                                                                                \
    {"version", NULL, RULES_REQUIRED, "\"1\"", rules_take_string},                                                     \
        {"platform", NULL, RULES_REQUIRED, "string", take_platform},                                                   \
        {"device", NULL, RULES_REQUIRED, "object", take_device}, {"os", NULL, RULES_REQUIRED, "object", take_os},      \
        {"profile", NULL, RULES_REQUIRED, "object", take_profile},                                                     \
        {"environment", NULL, RULES_OPTIONAL, NULL, rules_take_string},                                                \
        {"dist", NULL, RULES_OPTIONAL, NULL, rules_take_string},                                                       \
        {"runtime", NULL, RULES_OPTIONAL, NULL, take_runtime},                                                         \
        {"debug_meta", NULL, RULES_NOT_NULL, NULL, take_debug_meta},                                                   \
        {"measurements", NULL, RULES_NOT_NULL, NULL, take_measurements},                                               \
        {"transaction", NULL, RULES_OPTIONAL, NULL, take_transaction},                                                 \
    {                                                                                                                  \
        "transactions", NULL, RULES_NOT_NULL, NULL, take_transactions                                                  \
    }

static void take_payload(struct rules_reader *reader)
{
    static const struct rules_member of_spec[] = {
        MEMBERS_OF_BOTH,
        {"event_id", NULL, RULES_REQUIRED, "uuid", take_event_id},
        {"release", NULL, RULES_REQUIRED, "string", rules_take_string},
        {"timestamp", NULL, RULES_OPTIONAL, NULL, rules_take_time},
    };
    static const struct rules_member of_relay[] = {
        MEMBERS_OF_BOTH,
        {"event_id", "profile_id", RULES_REQUIRED, "uuid", take_event_id},
        {"release", NULL, RULES_OPTIONAL, NULL, rules_take_string},
        {"timestamp", NULL, RULES_REQUIRED, "string with an RFC 3339 time", rules_take_time},
    };
    if (judge_of(reader)->rules == RULES_SPEC) {
        RULES_TAKE_OBJECT(reader, of_spec);
    } else {
        RULES_TAKE_OBJECT(reader, of_relay);
    }
}

/* --- The rules, in the service's order ---------------------------------------------------------------------------- */

static void take_version(struct rules_reader *reader)
{
    uint64_t offset = rules_next_offset(reader);
    judge_of(reader)->is_version_1 = slice_equals_text(rules_string(reader), "1");
    judge_of(reader)->version = slice_of(reader->bytes.data + offset, json_reader_taken(&reader->json) - offset);
}

/* 3: what must be there to look for a version at all. */
static void take_front(struct rules_reader *reader)
{
    static const struct rules_member members[] = {
        {"platform", NULL, RULES_REQUIRED, "string", rules_take_string},
        {"event_id", "profile_id", RULES_REQUIRED, "uuid", rules_take_uuid},
        {"release", NULL, RULES_OPTIONAL, NULL, rules_take_string},
        {"version", NULL, RULES_OPTIONAL, NULL, take_version},
    };
    RULES_TAKE_OBJECT(reader, members);
}

static bool check_version(const struct judge *judge, struct verdict *verdict)
{
    char found[VERDICT_TEXT_SIZE];
    if (judge->is_version_1) return true;
    struct slice version = judge->version.size ? judge->version : slice_of_text("nothing");
    (void)snprintf(found, sizeof(found), "%.*s", SLICE_ARGUMENTS(version));
    return verdict_refuse(verdict, "profiling_platform_not_supported", "\"1\"", found, "version");
}

/* 6 */
static bool check_cocoa(const struct judge *judge, struct verdict *verdict)
{
    static const char reason[] = "profiling_invalid_profile_metadata";
    if (!judge->is_cocoa) return true;
    if (!judge->has_build_number) return verdict_refuse(verdict, reason, "string", "nothing", "os.build_number");
    if (!judge->has_emulator) return verdict_refuse(verdict, reason, "boolean", "nothing", "device.is_emulator");
    if (!judge->has_locale) return verdict_refuse(verdict, reason, "string", "nothing", "device.locale");
    if (!judge->has_manufacturer) return verdict_refuse(verdict, reason, "string", "nothing", "device.manufacturer");
    if (!judge->has_model) return verdict_refuse(verdict, reason, "string", "nothing", "device.model");
    return true;
}

/* 7, 8 */
static bool check_transaction(const struct judge *judge, struct verdict *verdict)
{
    static const char reason[] = "profiling_invalid_transaction_metadata";
    const struct v1_transaction *transaction = &judge->transaction;
    char found[VERDICT_TEXT_SIZE];
    if (!transaction->is_there) {
        return verdict_refuse(verdict, "profiling_no_transaction_associated", "object", "nothing", "transaction");
    }
    if (transaction->has_nil_id) {
        return verdict_refuse(verdict, reason, "an id and a trace_id other than 0", "0", "transaction");
    }
    if (!transaction->has_name) return verdict_refuse(verdict, reason, "a name", "\"\"", "transaction.name");
    if (judge->rules == RULES_SPEC && !transaction->has_thread) {
        return verdict_refuse(verdict, reason, "string of an integer", "nothing", "transaction.active_thread_id");
    }
    if (transaction->start_ns > transaction->end_ns || transaction->cpu_start_ms > transaction->cpu_end_ms) {
        (void)snprintf(found, sizeof(found), "%llu to %llu", (unsigned long long)transaction->start_ns,
                       (unsigned long long)transaction->end_ns);
        return verdict_refuse(verdict, reason, "a start that is not behind the end", found,
                              "transaction.relative_start_ns");
    }
    return true;
}

static bool is_active(const struct judge *judge, const struct v1_sample *sample)
{
    return sample->stack < judge->stacks.count && judge->stacks.items[sample->stack];
}

/* 9: what lies outside of the transaction goes. */
static size_t drop_outside(struct judge *judge)
{
    const struct v1_transaction *transaction = &judge->transaction;
    size_t kept = 0, count = judge->samples.count;
    if (transaction->end_ns == 0) return 0;
    for (size_t i = 0; i < count; i++) {
        const struct v1_sample *sample = &judge->samples.items[i];
        bool is_inside = sample->elapsed_ns >= transaction->start_ns && sample->elapsed_ns <= transaction->end_ns;
        if (is_inside) judge->samples.items[kept++] = *sample;
    }
    judge->samples.count = kept;
    return count - kept;
}

struct thread_range {
    size_t first_active, last_active; /* places, plus one; 0 = none */
    size_t count;
};

/* 10: of each thread what is idle before the first and behind the last active sample goes; 11: then threads with one
 * sample. */
static void drop_idle_edges(struct judge *judge, struct thread_range *ranges, struct verdict *verdict)
{
    size_t count = judge->samples.count, kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct thread_range *range = &ranges[judge->samples.items[i].thread];
        if (!is_active(judge, &judge->samples.items[i])) continue;
        if (!range->first_active) range->first_active = i + 1;
        range->last_active = i + 1;
    }
    for (size_t i = 0; i < count; i++) {
        const struct v1_sample *sample = &judge->samples.items[i];
        struct thread_range *range = &ranges[sample->thread];
        if (!range->first_active || i + 1 < range->first_active || i + 1 > range->last_active) continue;
        range->count++;
        judge->samples.items[kept++] = *sample;
    }
    verdict_repair(verdict, "idle samples at the edges of a thread dropped", count - kept);
    judge->samples.count = kept;
}

static void drop_single_samples(struct judge *judge, const struct thread_range *ranges, struct verdict *verdict)
{
    size_t count = judge->samples.count, kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (ranges[judge->samples.items[i].thread].count > 1) judge->samples.items[kept++] = judge->samples.items[i];
    }
    verdict_repair(verdict, "samples of threads with a single one dropped", count - kept);
    judge->samples.count = kept;
}

/* 16: what is said of threads that have no samples any more. RANGES are of the threads. */
static void drop_metadata(const struct judge *judge, const struct thread_range *ranges, struct verdict *verdict)
{
    uint64_t dropped = 0;
    for (size_t i = 0; i < judge->metadata.count; i++) {
        uint64_t id = judge->metadata.items[i];
        uint32_t thread = index_table_find(&judge->threads.index, hash_mix(0, id), thread_equal, judge, &id);
        dropped += thread == INDEX_NONE || ranges[thread].count < 2;
    }
    verdict_repair(verdict, "thread_metadata of threads without samples dropped", dropped);
}

static enum status repair_samples(struct judge *judge, struct verdict *verdict, struct error *error)
{
    struct thread_range *ranges = calloc(judge->threads.count + 1, sizeof(*ranges));
    if (!ranges) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to judge the payload");
    verdict_repair(verdict, "samples outside of the transaction dropped", drop_outside(judge));
    drop_idle_edges(judge, ranges, verdict);
    drop_single_samples(judge, ranges, verdict);
    if (judge->samples.count > 0) drop_metadata(judge, ranges, verdict);
    free(ranges);
    return STATUS_OK;
}

static bool refuse_number(struct verdict *verdict, const char *reason, const char *expected, uint64_t found,
                          const char *place)
{
    char text[VERDICT_TEXT_SIZE];
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)found);
    return verdict_refuse(verdict, reason, expected, text, "%s", place);
}

static bool refuse_sample(struct verdict *verdict, const char *reason, const char *expected, uint64_t found,
                          const struct v1_sample *sample, const char *member)
{
    char place[VERDICT_PLACE_SIZE];
    (void)snprintf(place, sizeof(place), "profile.samples[%u].%s", sample->number, member);
    return refuse_number(verdict, reason, expected, found, place);
}

/* 13, the samples that are left */
static bool check_stack_ids(const struct judge *judge, struct verdict *verdict)
{
    char expected[VERDICT_TEXT_SIZE];
    (void)snprintf(expected, sizeof(expected), "below %zu, the number of stacks", judge->stacks.count);
    for (size_t i = 0; i < judge->samples.count; i++) {
        const struct v1_sample *sample = &judge->samples.items[i];
        if (sample->stack < judge->stacks.count) continue;
        return refuse_sample(verdict, "profiling_malformed_samples", expected, sample->stack, sample, "stack_id");
    }
    return true;
}

/* Goes to the value of the member NAME of the object that comes next; the payload was read before, so that it is there.
 */
static void go_to(struct json_reader *reader, const char *name)
{
    struct slice key;
    json_object_begin(reader);
    while (json_object_next(reader, &key) && !slice_equals_text(key, name)) json_skip(reader);
}

/* Where the first frame index at or above LIMIT stands. */
static void find_frame_index(struct slice payload, uint64_t limit, char *ret_place, size_t size, uint64_t *ret_index)
{
    struct json_reader reader;
    bool is_found = false;
    json_reader_init(&reader, payload);
    go_to(&reader, "profile");
    go_to(&reader, "stacks");
    json_array_begin(&reader);
    for (size_t stack = 0; !is_found && json_array_next(&reader); stack++) {
        json_array_begin(&reader);
        for (size_t at = 0; !is_found && json_array_next(&reader); at++) {
            *ret_index = json_u64(&reader);
            is_found = *ret_index >= limit;
            (void)snprintf(ret_place, size, "profile.stacks[%zu][%zu]", stack, at);
        }
    }
    json_reader_fini(&reader);
}

/* 13, all stacks, also those that no sample has */
static bool check_frame_indices(const struct judge *judge, struct verdict *verdict)
{
    char place[VERDICT_PLACE_SIZE] = "profile.stacks", expected[VERDICT_TEXT_SIZE];
    uint64_t index = judge->frame_index_max;
    if (!judge->has_frame_index || judge->frame_index_max < judge->frame_count) return true;
    find_frame_index(judge->reader.bytes, judge->frame_count, place, sizeof(place), &index);
    (void)snprintf(expected, sizeof(expected), "below %llu, the number of frames",
                   (unsigned long long)judge->frame_count);
    return refuse_number(verdict, "profiling_malformed_stacks", expected, index, place);
}

/* 14: how far the last one lies behind the start, not how long it all is. */
static bool check_duration_of_relay(const struct judge *judge, struct verdict *verdict)
{
    const struct v1_sample *last = &judge->samples.items[judge->samples.count - 1];
    if (last->elapsed_ns <= DURATION_NS_MAX) return true;
    return refuse_sample(verdict, "profiling_duration_is_too_long", "at most 30000000000", last->elapsed_ns, last,
                         "elapsed_since_start_ns");
}

static enum status judge_by_relay(struct judge *judge, struct verdict *verdict, struct error *error)
{
    if (!check_cocoa(judge, verdict) || !check_transaction(judge, verdict)) return STATUS_OK;
    enum status status = repair_samples(judge, verdict, error);
    if (status != STATUS_OK) return status;
    if (judge->samples.count == 0) {
        (void)refuse_number(verdict, "profiling_not_enough_samples", "a thread with two samples, its edges not idle", 0,
                            "profile.samples");
        return STATUS_OK;
    }
    (void)(check_stack_ids(judge, verdict) && check_frame_indices(judge, verdict) &&
           check_duration_of_relay(judge, verdict));
    return STATUS_OK;
}

/* --- The documents' rules ----------------------------------------------------------------------------------------- */

/* Between the first and the last sample, whatever their order. */
static bool check_duration_of_spec(const struct judge *judge, struct verdict *verdict)
{
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    for (size_t i = 0; i < judge->samples.count; i++) {
        uint64_t elapsed_ns = judge->samples.items[i].elapsed_ns;
        if (elapsed_ns < first_ns) first_ns = elapsed_ns;
        if (elapsed_ns > last_ns) last_ns = elapsed_ns;
    }
    if (last_ns - first_ns <= DURATION_NS_MAX) return true;
    return refuse_number(verdict, "profiling_duration_is_too_long",
                         "at most 30000000000 ns between first and last sample", last_ns - first_ns, "profile.samples");
}

/* V1-5: a profile is sent with its own transaction. The service does not compare the ids. */
static bool is_of_transaction(const struct judge *judge, const struct rules_context *context, struct verdict *verdict)
{
    const char *expected = context ? context->transaction_id : "", *found = judge->transaction.id;
    if (!*expected || !*found || strcmp(expected, found) == 0) return true;
    char wanted[64];
    (void)snprintf(wanted, sizeof(wanted), "%s, the id in the envelope", expected);
    (void)verdict_refuse(verdict, "profiling_invalid_transaction_metadata", wanted, found, "%s", "transaction.id");
    return false;
}

static void judge_by_spec(const struct judge *judge, const struct rules_context *context, struct verdict *verdict)
{
    static const char metadata[] = "profiling_invalid_profile_metadata";
    if (!check_transaction(judge, verdict) || !is_of_transaction(judge, context, verdict)) return;
    if (judge->samples.count < 2) {
        (void)refuse_number(verdict, "profiling_not_enough_samples", "at least 2", judge->samples.count,
                            "profile.samples");
    } else if (judge->frame_count == 0) {
        (void)refuse_number(verdict, "profiling_malformed_stacks", "at least 1", 0, "profile.frames");
    } else if (judge->stacks.count == 0) {
        (void)refuse_number(verdict, "profiling_malformed_samples", "at least 1", 0, "profile.stacks");
    } else if (judge->is_native && !judge->has_images) {
        (void)verdict_refuse(verdict, metadata, "an image", "nothing", "debug_meta.images"); /* FMT-6 */
    } else if (judge->is_native && judge->lacks_address) {
        (void)verdict_refuse(verdict, "profiling_invalid_json", "string with an address", "nothing",
                             "profile.frames[%llu].instruction_addr",
                             (unsigned long long)judge->frame_without_address); /* FMT-10 */
    } else {
        (void)(check_stack_ids(judge, verdict) && check_frame_indices(judge, verdict) &&
               check_duration_of_spec(judge, verdict));
    }
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

static void judge_fini(struct judge *judge)
{
    free(judge->samples.items);
    free(judge->stacks.items);
    free(judge->metadata.items);
    free(judge->threads.items);
    index_table_fini(&judge->threads.index);
}

/* Reads the payload by TAKE. False if that is the end of it: it was refused, or *STATUS tells. */
static bool read_payload(struct judge *judge, struct slice payload, rules_take *take, struct verdict *verdict,
                         enum status *status, struct error *error)
{
    rules_reader_init(&judge->reader, payload);
    take(&judge->reader);
    *status = rules_finish(&judge->reader, "profiling_invalid_json", verdict, error);
    rules_reader_fini(&judge->reader);
    return *status == STATUS_OK && verdict->accepted;
}

static enum status judge_payload(struct judge *judge, struct slice payload, const struct rules_context *context,
                                 struct verdict *verdict, struct error *error)
{
    enum status status;
    if (!read_payload(judge, payload, take_front, verdict, &status, error)) return status;
    if (!check_version(judge, verdict)) return STATUS_OK;
    if (!read_payload(judge, payload, take_payload, verdict, &status, error)) return status;
    if (judge->rules == RULES_RELAY) return judge_by_relay(judge, verdict, error);
    judge_by_spec(judge, context, verdict);
    return STATUS_OK;
}

enum status rules_judge_profile(struct slice payload, const struct rules_context *context, enum rules rules,
                                struct verdict *ret_verdict, struct error *error)
{
    struct judge judge = {.rules = rules};
    struct verdict verdict;
    enum status status = STATUS_OK;
    verdict_init(&verdict);
    if (!rules_allow_size(payload, rules, &verdict)) {
        status = STATUS_OK;
    } else if (context && context->is_in_envelope && !context->has_transaction) {
        (void)verdict_refuse(&verdict, "missing_transaction", "a transaction in the envelope", "nothing", "%s", "");
    } else {
        status = judge_payload(&judge, payload, context, &verdict, error);
    }
    judge_fini(&judge);
    if (status == STATUS_OK) *ret_verdict = verdict;
    return status;
}
