/* The contents of a file, for programs: the object described in doc/man/offbeat-info.1. SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_extension.h"
#include "profile/build_id.h"
#include "profile/frame_kind.h"
#include "report/info_report.h"
#include "report/profile_json.h"

static void write_identity(struct json_writer *json, const struct profile *profile)
{
    string_write_json(json, profile, "platform", profile->platform);
    string_write_json(json, profile, "release", profile->release);
    string_write_json(json, profile, "environment", profile->environment);
    string_write_json(json, profile, "profiler_id", profile->profiler_id);
    string_write_json(json, profile, "chunk_id", profile->chunk_id);
    json_begin_object_member(json, "sdk");
    string_write_json(json, profile, "name", profile->sdk_name);
    string_write_json(json, profile, "version", profile->sdk_version);
    json_end_object(json);
}

static void write_origin(struct json_writer *json, const struct profile *profile)
{
    const struct sentry_extension *sentry = sentry_extension(profile);
    json_begin_object_member(json, "transaction");
    string_write_json(json, profile, "id", sentry->transaction.id);
    string_write_json(json, profile, "name", sentry->transaction.name);
    string_write_json(json, profile, "trace_id", sentry->transaction.trace_id);
    string_write_json(json, profile, "thread_id", profile->active_thread);
    json_end_object(json);
    json_begin_object_member(json, "device");
    string_write_json(json, profile, "architecture", sentry->device.architecture);
    string_write_json(json, profile, "model", sentry->device.model);
    json_end_object(json);
    json_begin_object_member(json, "os");
    string_write_json(json, profile, "name", sentry->os.name);
    string_write_json(json, profile, "version", sentry->os.version);
    json_end_object(json);
    json_begin_object_member(json, "runtime");
    string_write_json(json, profile, "name", sentry->runtime.name);
    string_write_json(json, profile, "version", sentry->runtime.version);
    json_end_object(json);
}

static void write_item(struct json_writer *json, const struct profile *profile, const struct info_item *item)
{
    json_begin_object(json);
    string_write_json(json, profile, "type", item->type);
    json_member_u64(json, "size", item->size_bytes);
    for (size_t i = 0; i < item->fact_count; i++) {
        const struct info_item_fact *fact = &item->facts[i];
        json_write_key_slice(json, profile_slice(profile, fact->key));
        if (fact->kind == INFO_TEXT) {
            json_write_string(json, profile_slice(profile, fact->text));
        } else {
            json_write_u64(json, fact->number);
        }
    }
    json_end_object(json);
}

static void write_counts(struct json_writer *json, const struct summary *summary)
{
    json_member_u64(json, "samples", summary->sample_count);
    json_member_u64(json, "entries", summary->entry_count);
    json_member_u64(json, "stacks", summary->stack_count);
    json_member_u64(json, "deepest_stack", summary->deepest_stack);
    json_member_u64(json, "frames", summary->frame_count);
    json_member_u64(json, "frames_without_name", summary->nameless_count);
    json_begin_object_member(json, "frame_kinds");
    for (enum frame_kind kind = FRAME_UNKNOWN; kind < FRAME_KINDS; kind++) {
        if (summary->kinds[kind] > 0) json_member_u64(json, frame_kind_name(kind), summary->kinds[kind]);
    }
    json_end_object(json);
}

static void write_processes(struct json_writer *json, const struct profile *profile)
{
    json_begin_array_member(json, "processes");
    for (uint32_t i = 1; i < profile->processes.count; i++) {
        const struct process *process = profile_process(profile, (struct process_id){i});
        json_begin_object(json);
        json_member_i64(json, "pid", process->pid);
        string_write_json(json, profile, "name", process->name);
        string_write_json(json, profile, "profiler_id", process->profiler_id);
        string_write_json(json, profile, "host", process->host);
        string_write_json(json, profile, "container", process->container);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_threads(struct json_writer *json, const struct profile *profile, const struct summary *summary)
{
    json_begin_object_member(json, "threads");
    for (size_t i = 0; i < summary->thread_table_count; i++) {
        if (summary->thread_samples[i] == 0) continue;
        json_write_key_slice(json, profile_slice(profile, profile->threads.items[i].id));
        json_begin_object(json);
        string_write_json(json, profile, "name", profile->threads.items[i].name);
        json_member_u64(json, "samples", summary->thread_samples[i]);
        json_end_object(json);
    }
    json_end_object(json);
}

static void write_images(struct json_writer *json, const struct profile *profile)
{
    json_begin_array_member(json, "images");
    for (size_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        json_begin_object(json);
        string_write_json(json, profile, "file", mapping->file_name);
        string_write_json(json, profile, "build_id", mapping_build_text(mapping));
        string_write_json(json, profile, "debug_id", mapping->debug_id);
        json_member_u64(json, "address", mapping->image_start ? mapping->image_start : mapping->start);
        json_member_u64(json, "size", mapping->image_size ? mapping->image_size : mapping->limit - mapping->start);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_metadata(struct json_writer *json, const struct profile *profile)
{
    json_begin_object_member(json, "recorder");
    for (size_t i = 0; i < profile->metadata.count; i++) {
        const struct metadata_entry *fact = &profile->metadata.items[i];
        json_write_key_slice(json, profile_slice(profile, fact->key));
        if (fact->is_number) {
            json_write_i64(json, fact->number);
        } else {
            json_write_string(json, profile_slice(profile, fact->text));
        }
    }
    json_end_object(json);
}

/* Writes the number of values of each measurement and their range (FMT-12). */
static void write_measurements(struct json_writer *json, const struct profile *profile)
{
    json_begin_object_member(json, "measurements");
    for (size_t i = 0; i < profile->measurements.count; i++) {
        const struct measurement *measurement = &profile->measurements.items[i];
        struct measurement_extent extent = measurement_extent(measurement);
        json_write_key_slice(json, profile_slice(profile, measurement->name));
        json_begin_object(json);
        string_write_json(json, profile, "unit", measurement->unit);
        json_member_u64(json, "values", measurement->count);
        const double numbers[] = {extent.least, extent.greatest, extent.mean};
        static const char *const names[] = {"least", "greatest", "mean"};
        for (size_t k = 0; k < 3; k++) {
            json_write_key(json, names[k]);
            json_write_double(json, numbers[k]);
        }
        json_end_object(json);
    }
    json_end_object(json);
}

void info_write_json(const struct info_file *file, const struct profile *profile, const struct summary *summary,
                     struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    json_member_text(&json, "file", file->path);
    json_member_text(&json, "format", file->format);
    json_member_text(&json, "version", file->version);
    json_member_u64(&json, "size", file->size_bytes);
    json_begin_array_member(&json, "items");
    for (size_t i = 0; i < file->item_count; i++) write_item(&json, profile, &file->items[i]);
    json_end_array(&json);
    write_identity(&json, profile);
    write_origin(&json, profile);
    json_member_i64(&json, "start", profile->time_ns);
    json_member_u64(&json, "duration", profile->duration_ns);
    json_member_u64(&json, "first_sample", summary->first_ns);
    json_member_u64(&json, "last_sample", summary->last_ns);
    value_types_write_json(&json, profile);
    value_type_write_json(&json, profile, "period_type", &profile->period_type);
    json_member_i64(&json, "period", profile->period);
    write_counts(&json, summary);
    json_member_u64(&json, "samples_incomplete", (uint64_t)file->completeness.incomplete);
    json_member_u64(&json, "samples_lost", (uint64_t)file->completeness.lost);
    write_processes(&json, profile);
    write_threads(&json, profile, summary);
    write_images(&json, profile);
    write_measurements(&json, profile);
    json_member_u64(&json, "markers", profile->markers.count);
    write_metadata(&json, profile);
    string_write_json(&json, profile, "default_sample_type", profile->default_value_type);
    string_write_json(&json, profile, "drop_frames", profile->drop_frames);
    string_write_json(&json, profile, "keep_frames", profile->keep_frames);
    string_write_json(&json, profile, "doc_url", profile->doc_url);
    comments_write_json(&json, profile);
    omissions_write_json(&json, profile);
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
