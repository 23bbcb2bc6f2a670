/* Writes a Sample Format V2 chunk as it was planned (sentry_v2_plan.c), into a separate buffer: the caller's buffer
 * gets only a complete chunk that a server accepts.  SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_encoder_private.h"

#include "base/hash.h"
#include "base/json_reader.h"
#include "base/uuid.h"
#include "binary/debug_id.h"
#include "format/common/metadata.h"
#include "format/common/text_line.h"
#include "format/sentry/sentry_extension.h"
#include "profile/build_id.h"
#include "profile/sample_times.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void chunk_write_member(struct json_writer *writer, const struct profile *profile, const char *key,
                        struct string_id value)
{
    if (value.index == 0) return;
    json_member_string(writer, key, profile_slice(profile, value));
}

void chunk_write_decimal(struct json_writer *writer, const char *key, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRIu64, number);
    json_member_text(writer, key, text);
}

/* --- Attributes --------------------------------------------------------------------------------------------------- */

/* Returns which of NAMES, up to a NULL, the object ATTRIBUTES has, as bits: these are written as they came. Returns
 * UINT32_MAX if it is no object; labels may come from anywhere. */
static uint32_t find_attributes(struct slice attributes, const char *const *names)
{
    struct json_reader reader;
    struct slice key;
    uint32_t found = 0;
    if (attributes.size == 0) return 0;
    json_reader_init(&reader, attributes);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        for (uint32_t i = 0; names[i]; i++) found |= (uint32_t)slice_equals_text(key, names[i]) << i;
        json_skip(&reader);
    }
    if (json_reader_finish(&reader, NULL) != STATUS_OK) found = UINT32_MAX;
    json_reader_fini(&reader);
    return found;
}

void chunk_write_attributes(struct json_writer *writer, const struct profile *profile, struct string_id attributes)
{
    struct slice text = profile_slice(profile, attributes);
    if (text.size > 2) json_write_raw(writer, slice_of(text.data + 1, text.size - 2));
}

/* --- Metadata ----------------------------------------------------------------------------------------------------- */

/* Writes ID if it is a uuid, else a new one. */
void chunk_write_uuid(struct json_writer *writer, const char *key, struct slice id)
{
    char text[UUID_TEXT_SIZE];
    if (!uuid_parse(id, text) && !uuid_new(text)) memset(text, 0, sizeof(text));
    json_member_text(writer, key, text);
}

void chunk_write_client_sdk(struct json_writer *writer, const struct profile *profile)
{
    bool has_sdk = profile->sdk_name.index != 0;
    json_begin_object_member(writer, "client_sdk");
    json_member_text(writer, "name", has_sdk ? profile_c_string(profile, profile->sdk_name) : "offbeat");
    json_member_text(writer, "version", has_sdk ? profile_c_string(profile, profile->sdk_version) : OFFBEAT_VERSION);
    if (has_sdk) chunk_write_attributes(writer, profile, sentry_extension(profile)->attributes.client_sdk);
    json_end_object(writer);
}

static void write_chunk_metadata(struct json_writer *writer, const struct chunk_plan *plan)
{
    const struct profile *profile = plan->profile;
    const char *chunk_id = plan->options ? plan->options->chunk_id : NULL;
    static const char *const names[] = {"dist", NULL};
    bool keeps_dist = find_attributes(profile_slice(profile, sentry_extension(profile)->attributes.chunk), names) != 0;
    json_member_text(writer, "version", "2");
    chunk_write_uuid(writer, "profiler_id", profile_slice(profile, profile->profiler_id));
    chunk_write_uuid(writer, "chunk_id",
                     chunk_id ? slice_of_text(chunk_id) : profile_slice(profile, profile->chunk_id));
    json_member_text(writer, "platform", sentry_v2_platform(profile));
    chunk_write_member(writer, profile, "release", profile->release);
    if (!keeps_dist) chunk_write_member(writer, profile, "dist", profile->dist);
    json_member_text(writer, "environment",
                     profile->environment.index ? profile_c_string(profile, profile->environment) : "production");
    chunk_write_client_sdk(writer, profile);
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

/* doc/formats/sentry-v2.md has the rule. */
static bool is_in_app(const struct profile *profile, const struct written_frame *frame, struct slice path)
{
    static const char *const system_folders[] = {
        "[",         "/lib/",       "/lib32/",     "/lib64/",      "/libx32/",
        "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/usr/libx32/", "/usr/libexec/"};
    enum in_app in_app = profile_function(profile, frame->function)->in_app;
    if (in_app != IN_APP_UNKNOWN) return in_app == IN_APP_YES;
    if (path.size == 0) return frame->address == 0;
    /* Mapping 1 is the program, which is in-app wherever its file is. */
    if (profile->mappings.count > 1 && slice_equal(path, profile_slice(profile, profile->mappings.items[1].file_name)))
        return true;
    for (size_t i = 0; i < sizeof(system_folders) / sizeof(system_folders[0]); i++) {
        if (text_begins_with(path, system_folders[i])) return false;
    }
    return true;
}

static void write_file(struct json_writer *writer, const struct profile *profile, struct string_id file_name)
{
    struct slice path = profile_slice(profile, file_name);
    if (path.size == 0) return;
    const uint8_t *slash = path.data[0] == '/' ? memrchr(path.data, '/', path.size) : NULL;
    size_t folder_size = slash ? (size_t)(slash - path.data) + 1 : 0;
    json_member_string(writer, "filename", slice_of(path.data + folder_size, path.size - folder_size));
    if (slash) chunk_write_member(writer, profile, "abs_path", file_name);
}

/* Servers hold line numbers in 32 bits without a sign. */
static void write_line_number(struct json_writer *writer, const char *key, int64_t number)
{
    if (number <= 0 || number > UINT32_MAX) return;
    json_member_i64(writer, key, number);
}

static uint64_t image_start(const struct mapping *mapping)
{
    return mapping->image_start ? mapping->image_start : mapping->start;
}

/* Finds the debug id of MAPPING, its own or that of its build id. False if it has neither. */
static bool find_debug_id(const struct profile *profile, const struct mapping *mapping,
                          char ret_text[DEBUG_ID_TEXT_SIZE])
{
    char uuid[UUID_TEXT_SIZE];
    struct slice own = profile_slice(profile, mapping->debug_id);
    if (own.size != DEBUG_ID_TEXT_SIZE - 1 || !uuid_parse(own, uuid)) {
        return debug_id_from_build_id(profile_slice(profile, mapping->build_id), ret_text);
    }
    memcpy(ret_text, own.data, own.size);
    ret_text[own.size] = 0;
    return true;
}

static bool is_image(const struct profile *profile, const struct mapping *mapping)
{
    char debug_id[DEBUG_ID_TEXT_SIZE];
    return find_debug_id(profile, mapping, debug_id) || mapping->attributes.index != 0;
}

/* FMT-9, FMT-10: a frame without an address or an image is not native. A frame that came from Sentry is not changed. */
static bool is_other_code(const struct profile *profile, const struct written_frame *frame)
{
    if (sentry_extension(profile)->sample_format != 0 || strcmp(sentry_v2_platform(profile), "native") != 0)
        return false;
    return frame->address == 0 || frame->mapping.index == 0 ||
           !is_image(profile, profile_mapping(profile, frame->mapping));
}

/* Writes the platform of FUNCTION, which is not native code: servers show Python's frames by theirs. */
static void write_other_platform(struct json_writer *writer, const struct profile *profile,
                                 const struct function *function)
{
    struct slice file = profile_slice(profile, function->file_name);
    bool is_python = text_ends_with(file, ".py") || text_begins_with(file, "<frozen ");
    json_member_text(writer, "platform", is_python ? "python" : "other");
}

static void write_frame(struct json_writer *writer, const struct profile *profile, const struct written_frame *frame)
{
    enum {
        FUNCTION = 1,
        MODULE = 2,
        FILE = 4,
        PATH = 8,
        LINE = 16,
        COLUMN = 32,
        PACKAGE = 64,
        IN_APP = 128,
        RAW = 256,
        ADDRESS = 512,
        PLATFORM = 1024,
        START_LINE = 2048
    };
    static const char *const names[] = {
        "function",     "module",           "filename", "abs_path",           "lineno", "colno", "package", "in_app",
        "raw_function", "instruction_addr", "platform", "offbeat_start_line", NULL};
    const struct function *function = profile_function(profile, frame->function);
    uint32_t kept = find_attributes(profile_slice(profile, frame->attributes), names);
    struct string_id name = function->name.index ? function->name : function->system_name;
    struct string_id package =
        function->package.index ? function->package : profile_mapping(profile, frame->mapping)->file_name;
    json_begin_object(writer);
    bool is_named = name.index || function->file_name.index || frame->address || (kept & (FUNCTION | FILE | ADDRESS));
    if (!is_named) { /* FMT-3: never without any */
        json_member_text(writer, "function", "<unknown>");
    }
    if (!(kept & FUNCTION)) chunk_write_member(writer, profile, "function", name);
    if (function->system_name.index != name.index && !(kept & RAW))
        chunk_write_member(writer, profile, "raw_function", function->system_name);
    if (!(kept & MODULE)) chunk_write_member(writer, profile, "module", function->module);
    if (!(kept & FILE))
        write_file(writer, profile, function->file_name);
    else if (!(kept & PATH))
        chunk_write_member(writer, profile, "abs_path", function->file_name);
    if (!(kept & LINE)) write_line_number(writer, "lineno", frame->line);
    if (!(kept & COLUMN)) write_line_number(writer, "colno", frame->column);
    if (frame->address && !(kept & ADDRESS)) json_member_hex(writer, "instruction_addr", frame->address);
    /* Where a reader keeps it, so that what is read and written again is the same. */
    bool is_bare = !name.index && !function->file_name.index && !function->module.index && !frame->line;
    bool is_other = !(kept & PLATFORM) && is_other_code(profile, frame);
    if (is_other && is_bare) write_other_platform(writer, profile, function);
    if (!(kept & PACKAGE)) chunk_write_member(writer, profile, "package", package);
    if (!(kept & IN_APP))
        json_member_bool(writer, "in_app", is_in_app(profile, frame, profile_slice(profile, package)));
    if (is_other && !is_bare) write_other_platform(writer, profile, function);
    if (!(kept & START_LINE)) write_line_number(writer, "offbeat_start_line", function->start_line);
    chunk_write_attributes(writer, profile, frame->attributes);
    json_end_object(writer);
}

static struct slice thread_id_text(const struct profile *profile, struct thread_id id)
{
    struct slice text = profile_slice(profile, profile_thread(profile, id)->id);
    return text.size ? text : slice_of_text("0");
}

/* A server rejects a chunk with a negative priority: it gets another name. */
static void write_thread(struct json_writer *writer, const struct profile *profile, const struct thread *thread)
{
    enum { NAME = 1, PRIORITY = 2, OUR_PRIORITY = 4 };
    static const char *const names[] = {"name", "priority", "offbeat_priority", NULL};
    uint32_t kept = find_attributes(profile_slice(profile, thread->attributes), names);
    if (!(kept & NAME)) chunk_write_member(writer, profile, "name", thread->name);
    if (thread->has_priority && !(kept & (PRIORITY | OUR_PRIORITY)))
        json_member_i64(writer, thread->priority < 0 ? "offbeat_priority" : "priority", thread->priority);
    chunk_write_attributes(writer, profile, thread->attributes);
}

static void write_thread_metadata(struct json_writer *writer, const struct chunk_plan *plan)
{
    const struct profile *profile = plan->profile;
    bool has_zero = false;
    json_begin_object_member(writer, "thread_metadata");
    for (uint32_t i = 1; i < profile->threads.count; i++) {
        const struct thread *thread = &profile->threads.items[i];
        if (plan->thread_samples[i] == 0) continue;
        struct slice id = thread_id_text(profile, (struct thread_id){i});
        has_zero |= slice_equals_text(id, "0");
        json_write_key_slice(writer, id);
        json_begin_object(writer);
        write_thread(writer, profile, thread);
        json_end_object(writer);
    }
    if (plan->thread_samples[0] && !has_zero) { /* samples without a thread are written with the id "0" */
        json_begin_object_member(writer, "0");
        json_end_object(writer);
    }
    json_end_object(writer);
}

/* V2 has seconds since 1970; V1 nanoseconds since the profile's start, as a string, since no double holds them all. */
static void write_time(struct json_writer *writer, const struct chunk_plan *plan, uint64_t time_ns)
{
    if (!plan->is_v1) {
        json_write_key(writer, "timestamp");
        json_write_fixed(writer, chunk_microseconds(time_ns), 6);
        return;
    }
    chunk_write_decimal(writer, "elapsed_since_start_ns", time_ns > plan->start_ns ? time_ns - plan->start_ns : 0);
}

/* The attributes of a sample are a label, which may come from another format. */
static void write_sample_attributes(struct json_writer *writer, const struct profile *profile,
                                    struct label_set_id labels)
{
    static const char *const names[] = {"timestamp", "elapsed_since_start_ns", "stack_id", "thread_id", NULL};
    const struct label_set *set = &profile->label_sets.items[labels.index];
    for (uint32_t i = 0; i < set->count; i++) {
        const struct label *label = &profile->labels.items[set->first + i];
        struct slice text = profile_slice(profile, label->text);
        if (label->is_number || !slice_equals_text(profile_slice(profile, label->key), PROFILE_ATTRIBUTES_LABEL))
            continue;
        if (text.size && text.data[0] == '{' && find_attributes(text, names) == 0)
            chunk_write_attributes(writer, profile, label->text);
        return;
    }
}

static void write_samples(struct json_writer *writer, const struct chunk_plan *plan)
{
    const struct profile *profile = plan->profile;
    json_begin_array_member(writer, "samples");
    for (size_t i = 0; i < plan->ticks.count && !writer->out->failed; i++) {
        const struct tick *tick = &plan->ticks.items[i];
        json_begin_object(writer);
        write_time(writer, plan, tick->time_ns);
        json_member_u64(writer, "stack_id", tick->stack);
        json_member_string(writer, "thread_id", thread_id_text(profile, profile->samples.thread[tick->sample]));
        struct label_set_id labels = profile->samples.labels[tick->sample];
        if (labels.index && !tick->is_end) write_sample_attributes(writer, profile, labels);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void write_stacks(struct json_writer *writer, const struct chunk_plan *plan)
{
    json_begin_array_member(writer, "stacks");
    for (size_t i = 0; i < plan->stacks.count; i++) {
        const struct written_stack *stack = &plan->stacks.items[i];
        json_begin_array(writer);
        for (uint32_t k = 0; k < stack->count; k++) {
            json_write_u64(writer, plan->frame_indices.items[stack->first + k]);
        }
        json_end_array(writer);
    }
    json_end_array(writer);
}

static void write_profile(struct json_writer *writer, const struct chunk_plan *plan)
{
    json_begin_object_member(writer, "profile");
    write_samples(writer, plan);
    write_stacks(writer, plan);
    json_begin_array_member(writer, "frames");
    for (size_t i = 0; i < plan->frames.count; i++) {
        write_frame(writer, plan->profile, &plan->frames.items[i]);
    }
    json_end_array(writer);
    write_thread_metadata(writer, plan);
    chunk_write_attributes(writer, plan->profile, sentry_extension(plan->profile)->attributes.data);
    json_end_object(writer);
}

static void write_image(struct json_writer *writer, const struct profile *profile, const struct mapping *mapping,
                        const char *debug_id)
{
    uint64_t start = image_start(mapping);
    uint64_t size = mapping->image_size ? mapping->image_size : mapping->limit - mapping->start;
    enum { TYPE = 1, DEBUG_ID = 2, CODE_ID = 4, CODE_FILE = 8 };
    static const char *const names[] = {"type", "debug_id", "code_id", "code_file", NULL};
    uint32_t kept = find_attributes(profile_slice(profile, mapping->attributes), names);
    json_begin_object(writer);
    if (!(kept & TYPE))
        json_member_text(writer, "type", "symbolic"); /* a server rejects a chunk with "elf" (facts §1.3) */
    if (debug_id && !(kept & DEBUG_ID)) json_member_text(writer, "debug_id", debug_id);
    if (!(kept & CODE_ID)) chunk_write_member(writer, profile, "code_id", mapping_build_text(mapping));
    if (!(kept & CODE_FILE)) chunk_write_member(writer, profile, "code_file", mapping->file_name);
    json_member_hex(writer, "image_addr", start);
    json_member_u64(writer, "image_size", size);
    json_member_hex(writer, "image_vmaddr", mapping->image_vmaddr);
    chunk_write_attributes(writer, profile, mapping->attributes);
    json_end_object(writer);
}

struct image_starts {
    const struct profile *profile;
    struct index_table index; /* mappings by their start */
};

static bool start_equal(const void *context, uint32_t index, const void *key)
{
    const struct image_starts *starts = context;
    return image_start(&starts->profile->mappings.items[index]) == *(const uint64_t *)key;
}

static bool uses_images(const struct chunk_plan *plan)
{
    for (size_t i = 1; i < plan->profile->mappings.count; i++) {
        if (plan->mapping_is_used[i] && is_image(plan->profile, &plan->profile->mappings.items[i])) return true;
    }
    return sentry_extension(plan->profile)->sample_format != 0; /* Sentry's own chunks have images */
}

/* A file is one image, however many segments of it are mappings. */
static void write_debug_meta(struct json_writer *writer, struct chunk_plan *plan)
{
    const struct profile *profile = plan->profile;
    struct image_starts starts = {.profile = profile};
    char debug_id[DEBUG_ID_TEXT_SIZE];
    bool uses_image =
        uses_images(plan); /* native code needs an image (FMT-6): without one in use, the first is written */
    json_begin_object_member(writer, "debug_meta");
    json_begin_array_member(writer, "images");
    for (uint32_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        uint64_t start = image_start(mapping), hash = hash_mix(0, start);
        bool is_used = plan->mapping_is_used[i] || (!uses_image && is_image(profile, mapping));
        bool has_id = is_used && find_debug_id(profile, mapping, debug_id);
        if (!has_id && !(is_used && mapping->attributes.index)) continue;
        uses_image = true;
        if (index_table_find(&starts.index, hash, start_equal, &starts, &start) != INDEX_NONE) continue;
        if (!index_table_add(&starts.index, hash, i)) plan->no_memory = true;
        write_image(writer, profile, mapping, has_id ? debug_id : NULL);
    }
    for (size_t i = 0; i < sentry_extension(profile)->images.count; i++) {
        json_write_raw(writer, profile_slice(profile, sentry_extension(profile)->images.items[i]));
    }
    index_table_fini(&starts.index);
    json_end_array(writer);
    chunk_write_attributes(writer, profile, sentry_extension(profile)->attributes.debug_meta);
    json_end_object(writer);
}

static bool is_chosen(const struct sentry_v2_options *options, uint64_t time_ns)
{
    if (!options || (options->from_ns == 0 && options->to_ns == 0)) return true;
    if (time_ns < options->from_ns) return options->is_first;
    return time_ns < options->to_ns || options->is_last;
}

static void write_measurement(struct json_writer *writer, const struct chunk_plan *plan,
                              const struct measurement *measurement, uint64_t from_ns, uint64_t to_ns)
{
    json_write_key_slice(writer, profile_slice(plan->profile, measurement->name));
    json_begin_object(writer);
    chunk_write_member(writer, plan->profile, "unit", measurement->unit);
    json_begin_array_member(writer, "values");
    for (size_t i = 0; i < measurement->count && !writer->out->failed; i++) {
        const struct measurement_value *value = &measurement->values[i];
        if (!is_chosen(plan->options, value->time_ns) || !isfinite(value->value)) continue;
        if (value->time_ns < from_ns || value->time_ns > to_ns) continue;
        json_begin_object(writer);
        write_time(writer, plan, value->time_ns);
        json_write_key(writer, "value");
        json_write_double(writer, value->value);
        json_end_object(writer);
    }
    json_end_array(writer);
    chunk_write_attributes(writer, plan->profile, measurement->attributes);
    json_end_object(writer);
}

static void write_measurements(struct json_writer *writer, const struct chunk_plan *plan, const char *key,
                               bool of_known_units)
{
    const struct profile *profile = plan->profile;
    /* A profile of V1 has the values between its start and its last sample. */
    uint64_t from_ns = plan->is_v1 ? plan->start_ns : 0, to_ns = plan->is_v1 ? 0 : UINT64_MAX;
    for (size_t i = 0; plan->is_v1 && i < plan->ticks.count; i++)
        if (plan->ticks.items[i].time_ns > to_ns) to_ns = plan->ticks.items[i].time_ns;
    json_begin_object_member(writer, key);
    for (size_t i = 0; i < profile->measurements.count; i++) {
        const struct measurement *measurement = &profile->measurements.items[i];
        bool is_known = chunk_unit_is_known(profile_slice(profile, measurement->unit), RULES_RELAY);
        if (is_known == of_known_units) write_measurement(writer, plan, measurement, from_ns, to_ns);
    }
    json_end_object(writer);
}

/* Measurements whose units servers do not know are separate, so that servers accept the chunk. */
static void write_our_measurements(struct json_writer *writer, const struct chunk_plan *plan)
{
    static const char *const names[] = {"offbeat_measurements", NULL};
    const struct profile *profile = plan->profile;
    bool are_known = true;
    for (size_t i = 0; i < profile->measurements.count; i++) {
        are_known &= chunk_unit_is_known(profile_slice(profile, profile->measurements.items[i].unit), RULES_RELAY);
    }
    if (are_known || find_attributes(profile_slice(profile, sentry_extension(profile)->attributes.chunk), names))
        return;
    write_measurements(writer, plan, names[0], false);
}

/* Writes the metadata of the recorder. */
static void write_offbeat(struct json_writer *writer, const struct profile *profile)
{
    int64_t period = chunk_period_ns(profile);
    bool is_cpu = profile_counts_cpu_time(profile);
    if (period == 0 && profile->metadata.count == 0 && !is_cpu) return;
    json_begin_object_member(writer, "offbeat");
    if (period) json_member_i64(writer, "period_ns", period);
    if (is_cpu) json_member_text(writer, "time", "cpu");
    json_write_key(writer, "facts");
    metadata_write(writer, profile);
    json_end_object(writer);
}

static void write_chunk(struct chunk_plan *plan, chunk_write_metadata *write_metadata, struct buffer *out)
{
    struct json_writer writer = json_writer_of(out);
    json_begin_object(&writer);
    write_metadata(&writer, plan);
    write_debug_meta(&writer, plan);
    write_measurements(&writer, plan, "measurements", true);
    write_profile(&writer, plan);
    write_offbeat(&writer, plan->profile);
    write_our_measurements(&writer, plan);
    /* An unknown member of one version may be a known one of the other, and would then be there twice. */
    const struct sentry_extension *extension = sentry_extension(plan->profile);
    if (extension->sample_format == (plan->is_v1 ? 1 : 2))
        chunk_write_attributes(&writer, plan->profile, extension->attributes.chunk);
    json_end_object(&writer);
}

/* --- Encoding ---------------------------------------------------------------------------------------------------- */

/* FMT-10: native code has addresses, and images around them. */
const char *sentry_v2_platform(const struct profile *profile)
{
    struct slice known = profile_slice(profile, profile->platform);
    bool is_kept = sentry_extension(profile)->sample_format != 0 || !slice_equals_text(known, "native");
    if (known.size > 0 && is_kept) return profile_c_string(profile, profile->platform);
    for (size_t i = 1; i < profile->mappings.count; i++) {
        if (is_image(profile, &profile->mappings.items[i])) return "native";
    }
    return "other";
}

/* The sender validates what it has written as a server does (V2-6), in one reading. A chunk of another client keeps its
 * ids and frames, and a profile of V1 its platform, even if the documents do not allow them. */
static enum status validate(const struct profile *profile, struct slice payload, bool is_v1,
                            struct rules_result *ret_result, struct error *error)
{
    struct slice platform = slice_of_text(sentry_v2_platform(profile));
    const struct rules_context context = {.is_in_envelope = true, .platform = platform, .has_transaction = true};
    bool keeps_documents =
        sentry_extension(profile)->sample_format == 0 && (!is_v1 || rules_v1_platform_is_listed(platform));
    unsigned sets = keeps_documents ? RULES_BOTH : 1 << RULES_RELAY;
    enum status status = rules_validate_by(payload, is_v1, &context, sets, ret_result, error);
    return status == STATUS_OK ? rules_result_status(ret_result, error) : status;
}

enum status chunk_encode(struct chunk_plan *plan, const struct profile *profile,
                         const struct sentry_v2_options *options, chunk_write_metadata *write_metadata,
                         struct buffer *out, struct rules_result *ret_result, struct error *error)
{
    struct buffer chunk;
    buffer_init(&chunk, CHUNK_BYTES_MAX);
    rules_result_init(ret_result);
    if (chunk_plan_make(plan, profile, options)) write_chunk(plan, write_metadata, &chunk);
    chunk_plan_fini(plan); /* before the validation, which needs memory, too */
    enum status status = STATUS_OK;
    if (plan->is_too_large || (chunk.failed && chunk.is_full)) {
        (void)rules_reject(ret_result, REJECT_EXCEED_SIZE_LIMIT, "at most 50 MiB", "more", "%s", "");
        status = chunk_reject(error, REJECT_EXCEED_SIZE_LIMIT, "the chunk would be over 50 MiB");
    }
    if (plan->no_memory || (chunk.failed && !chunk.is_full)) status = chunk_no_memory(error);
    if (status == STATUS_OK) status = validate(profile, buffer_slice(&chunk), plan->is_v1, ret_result, error);
    if (status == STATUS_OK) buffer_append(out, chunk.data, chunk.size);
    if (status == STATUS_OK && out->failed) status = chunk_no_memory(error);
    buffer_fini(&chunk);
    return status;
}

enum status sentry_v2_encode_and_validate(const struct profile *profile, const struct sentry_v2_options *options,
                                          struct buffer *out, struct rules_result *ret_result, struct error *error)
{
    struct chunk_plan plan = {0};
    return chunk_encode(&plan, profile, options, write_chunk_metadata, out, ret_result, error);
}

enum status sentry_v2_encode(const struct profile *profile, const struct sentry_v2_options *options, struct buffer *out,
                             struct error *error)
{
    struct rules_result result;
    return sentry_v2_encode_and_validate(profile, options, out, &result, error);
}
