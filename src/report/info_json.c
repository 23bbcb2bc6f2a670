/* What is in a file, for programs: the object described in doc/man/offbeat-info.1.  SPDX-License-Identifier: MIT */
#include "base/json_writer.h"
#include "format/sentry/sentry_extension.h"
#include "profile/frame_kind.h"
#include "report/info_report.h"

static void write_string(struct json_writer *json, const struct profile *profile, const char *key,
                         struct string_id text)
{
    json_write_key(json, key);
    json_write_string(json, profile_slice(profile, text));
}

static void write_number(struct json_writer *json, const char *key, uint64_t number)
{
    json_write_key(json, key);
    json_write_u64(json, number);
}

static void write_file(struct json_writer *json, const struct info_file *file)
{
    json_write_key(json, "file");
    json_write_text(json, file->path);
    json_write_key(json, "format");
    json_write_text(json, file->format);
    json_write_key(json, "version");
    json_write_text(json, file->version);
    write_number(json, "size", file->size_bytes);
}

static void write_identity(struct json_writer *json, const struct profile *profile)
{
    write_string(json, profile, "platform", profile->platform);
    write_string(json, profile, "release", profile->release);
    write_string(json, profile, "environment", profile->environment);
    write_string(json, profile, "profiler_id", profile->profiler_id);
    write_string(json, profile, "chunk_id", profile->chunk_id);
    json_write_key(json, "sdk");
    json_begin_object(json);
    write_string(json, profile, "name", profile->sdk_name);
    write_string(json, profile, "version", profile->sdk_version);
    json_end_object(json);
}

static void write_origin(struct json_writer *json, const struct profile *profile)
{
    json_write_key(json, "transaction");
    json_begin_object(json);
    write_string(json, profile, "id", sentry_extension(profile)->transaction.id);
    write_string(json, profile, "name", sentry_extension(profile)->transaction.name);
    write_string(json, profile, "trace_id", sentry_extension(profile)->transaction.trace_id);
    write_string(json, profile, "thread_id", profile->active_thread);
    json_end_object(json);
    json_write_key(json, "device");
    json_begin_object(json);
    write_string(json, profile, "architecture", sentry_extension(profile)->device.architecture);
    write_string(json, profile, "model", sentry_extension(profile)->device.model);
    json_end_object(json);
    json_write_key(json, "os");
    json_begin_object(json);
    write_string(json, profile, "name", sentry_extension(profile)->os.name);
    write_string(json, profile, "version", sentry_extension(profile)->os.version);
    json_end_object(json);
    json_write_key(json, "runtime");
    json_begin_object(json);
    write_string(json, profile, "name", sentry_extension(profile)->runtime.name);
    write_string(json, profile, "version", sentry_extension(profile)->runtime.version);
    json_end_object(json);
}

static void write_item(struct json_writer *json, const struct profile *profile, const struct info_item *item)
{
    json_begin_object(json);
    write_string(json, profile, "type", item->type);
    write_number(json, "size", item->size_bytes);
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

static void write_items(struct json_writer *json, const struct profile *profile, const struct info_file *file)
{
    json_write_key(json, "items");
    json_begin_array(json);
    for (size_t i = 0; i < file->item_count; i++) write_item(json, profile, &file->items[i]);
    json_end_array(json);
}

static void write_value_type(struct json_writer *json, const struct profile *profile, struct value_type type)
{
    json_begin_object(json);
    write_string(json, profile, "type", type.type);
    write_string(json, profile, "unit", type.unit);
    json_end_object(json);
}

static void write_values(struct json_writer *json, const struct profile *profile)
{
    json_write_key(json, "sample_types");
    json_begin_array(json);
    for (size_t i = 0; i < profile->value_type_count; i++) write_value_type(json, profile, profile->value_types[i]);
    json_end_array(json);
    json_write_key(json, "period_type");
    write_value_type(json, profile, profile->period_type);
    json_write_key(json, "period");
    json_write_i64(json, profile->period);
}

static void write_times(struct json_writer *json, const struct profile *profile, const struct summary *summary)
{
    json_write_key(json, "start");
    json_write_i64(json, profile->time_ns);
    write_number(json, "duration", profile->duration_ns);
    write_number(json, "first_sample", summary->first_ns);
    write_number(json, "last_sample", summary->last_ns);
}

static void write_counts(struct json_writer *json, const struct summary *summary)
{
    write_number(json, "samples", summary->sample_count);
    write_number(json, "entries", summary->entry_count);
    write_number(json, "stacks", summary->stack_count);
    write_number(json, "deepest_stack", summary->deepest_stack);
    write_number(json, "frames", summary->frame_count);
    write_number(json, "frames_without_name", summary->nameless_count);
    json_write_key(json, "frame_kinds");
    json_begin_object(json);
    for (enum frame_kind kind = FRAME_UNKNOWN; kind < FRAME_KINDS; kind++) {
        if (summary->kinds[kind] > 0) write_number(json, frame_kind_name(kind), summary->kinds[kind]);
    }
    json_end_object(json);
}

static void write_completeness(struct json_writer *json, const struct completeness *completeness)
{
    write_number(json, "samples_incomplete", (uint64_t)completeness->incomplete);
    write_number(json, "samples_lost", (uint64_t)completeness->lost);
}

static void write_processes(struct json_writer *json, const struct profile *profile)
{
    json_write_key(json, "processes");
    json_begin_array(json);
    for (uint32_t i = 1; i < profile->processes.count; i++) {
        const struct process *process = profile_process(profile, (struct process_id){i});
        json_begin_object(json);
        json_write_key(json, "pid");
        json_write_i64(json, process->pid);
        write_string(json, profile, "name", process->name);
        write_string(json, profile, "profiler_id", process->profiler_id);
        write_string(json, profile, "host", process->host);
        write_string(json, profile, "container", process->container);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_threads(struct json_writer *json, const struct profile *profile, const struct summary *summary)
{
    json_write_key(json, "threads");
    json_begin_object(json);
    for (size_t i = 0; i < summary->thread_table_count; i++) {
        if (summary->thread_samples[i] == 0) continue;
        json_write_key_slice(json, profile_slice(profile, profile->threads.items[i].id));
        json_begin_object(json);
        write_string(json, profile, "name", profile->threads.items[i].name);
        write_number(json, "samples", summary->thread_samples[i]);
        json_end_object(json);
    }
    json_end_object(json);
}

static void write_images(struct json_writer *json, const struct profile *profile)
{
    json_write_key(json, "images");
    json_begin_array(json);
    for (size_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        json_begin_object(json);
        write_string(json, profile, "file", mapping->file_name);
        write_string(json, profile, "build_id", mapping->build_id);
        write_string(json, profile, "debug_id", mapping->debug_id);
        write_number(json, "address", mapping->image_start ? mapping->image_start : mapping->start);
        write_number(json, "size", mapping->image_size ? mapping->image_size : mapping->limit - mapping->start);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_facts(struct json_writer *json, const struct profile *profile)
{
    json_write_key(json, "recorder");
    json_begin_object(json);
    for (size_t i = 0; i < profile->facts.count; i++) {
        const struct fact *fact = &profile->facts.items[i];
        json_write_key_slice(json, profile_slice(profile, fact->key));
        if (fact->is_number) {
            json_write_i64(json, fact->number);
        } else {
            json_write_string(json, profile_slice(profile, fact->text));
        }
    }
    json_end_object(json);
}

/* FMT-12: for each measurement, the number of its values and their range. */
static void write_measurements(struct json_writer *json, const struct profile *profile)
{
    json_write_key(json, "measurements");
    json_begin_object(json);
    for (size_t i = 0; i < profile->measurements.count; i++) {
        const struct measurement *measurement = &profile->measurements.items[i];
        struct measurement_extent extent = measurement_extent(measurement);
        json_write_key_slice(json, profile_slice(profile, measurement->name));
        json_begin_object(json);
        write_string(json, profile, "unit", measurement->unit);
        write_number(json, "values", measurement->count);
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

/* pprof's */
static void write_report_options(struct json_writer *json, const struct profile *profile)
{
    write_string(json, profile, "default_sample_type", profile->default_value_type);
    write_string(json, profile, "drop_frames", profile->drop_frames);
    write_string(json, profile, "keep_frames", profile->keep_frames);
    write_string(json, profile, "doc_url", profile->doc_url);
}

static void write_comments(struct json_writer *json, const struct profile *profile)
{
    json_write_key(json, "comments");
    json_begin_array(json);
    for (size_t i = 0; i < profile->comments.count; i++) {
        json_write_string(json, profile_slice(profile, profile->comments.items[i]));
    }
    json_end_array(json);
}

void info_write_json(const struct info_file *file, const struct profile *profile, const struct summary *summary,
                     struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    write_file(&json, file);
    write_items(&json, profile, file);
    write_identity(&json, profile);
    write_origin(&json, profile);
    write_times(&json, profile, summary);
    write_values(&json, profile);
    write_counts(&json, summary);
    write_completeness(&json, &file->completeness);
    write_processes(&json, profile);
    write_threads(&json, profile, summary);
    write_images(&json, profile);
    write_measurements(&json, profile);
    write_number(&json, "markers", profile->markers.count);
    write_facts(&json, profile);
    write_report_options(&json, profile);
    write_comments(&json, profile);
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
