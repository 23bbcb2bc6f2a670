/* All that is in a profile, for programs: the object described in doc/man/offbeat-raw.1.  SPDX-License-Identifier: MIT
 */
#include "report/labels_json.h"
#include "report/raw_report.h"

static void write_number(struct json_writer *json, const char *key, int64_t number)
{
    json_write_key(json, key);
    json_write_i64(json, number);
}

static void write_hex(struct json_writer *json, const char *key, uint64_t number)
{
    json_write_key(json, key);
    json_write_hex(json, number);
}

static void write_string(struct json_writer *json, const struct profile *profile, const char *key,
                         struct string_id text)
{
    json_write_key(json, key);
    json_write_string(json, profile_slice(profile, text));
}

static void write_header(struct json_writer *json, const struct profile *profile)
{
    value_type_write_json(json, profile, "period_type", &profile->period_type);
    write_number(json, "period", profile->period);
    json_write_key(json, "start");
    json_write_i64(json, profile->time_ns);
    json_write_key(json, "duration");
    json_write_u64(json, profile->duration_ns);
    json_write_key(json, "comments");
    json_begin_array(json);
    for (size_t i = 0; i < profile->comments.count; i++)
        json_write_string(json, profile_slice(profile, profile->comments.items[i]));
    json_end_array(json);
    json_write_key(json, "sample_types");
    json_begin_array(json);
    for (size_t i = 0; i < profile->value_type_count; i++)
        value_type_write_json(json, profile, NULL, &profile->value_types[i]);
    json_end_array(json);
}

static void write_sample(struct json_writer *json, const struct profile *profile, struct sample_labels *labels,
                         size_t sample)
{
    const int64_t *values = profile_sample_values(profile, sample);
    uint32_t stack = profile->samples.stack[sample].index;
    json_begin_object(json);
    json_write_key(json, "values");
    json_begin_array(json);
    for (size_t i = 0; i < profile->value_type_count; i++) json_write_i64(json, values[i]);
    json_end_array(json);
    json_write_key(json, "locations");
    json_begin_array(json);
    for (; stack != 0; stack = profile_parent_at(profile, stack))
        json_write_u64(json, profile_stack_location(profile, stack));
    json_end_array(json);
    json_write_key(json, "labels");
    sample_labels_collect(labels, profile, profile->samples.labels[sample], profile->samples.thread[sample]);
    labels_write_json(json, labels);
    json_end_object(json);
}

static void write_samples(struct json_writer *json, const struct profile *profile, struct buffer *out)
{
    struct sample_labels labels;
    out->failed |= !sample_labels_init(&labels, profile);
    json_write_key(json, "samples");
    json_begin_array(json);
    for (size_t i = 0; i < profile->samples.count && !out->failed; i++) write_sample(json, profile, &labels, i);
    json_end_array(json);
    sample_labels_fini(&labels);
}

static void write_line(struct json_writer *json, const struct profile *profile, const struct line *line)
{
    const struct function *function = profile_function(profile, line->function);
    json_begin_object(json);
    write_string(json, profile, "function", function->name);
    write_string(json, profile, "system_name", function->system_name);
    write_string(json, profile, "file", function->file_name);
    write_number(json, "line", line->line);
    write_number(json, "column", line->column);
    write_number(json, "start_line", function->start_line);
    json_end_object(json);
}

static void write_locations(struct json_writer *json, const struct profile *profile, const struct buffer *out)
{
    json_write_key(json, "locations");
    json_begin_array(json);
    for (uint32_t i = 1; i < profile->locations.count && !out->failed; i++) {
        const struct location *location = &profile->locations.items[i];
        const struct line *lines = profile_lines(profile, location);
        json_begin_object(json);
        write_number(json, "id", i);
        write_hex(json, "address", location->address);
        write_number(json, "mapping", location->mapping.index);
        json_write_key(json, "folded");
        json_write_bool(json, location->is_folded);
        json_write_key(json, "lines");
        json_begin_array(json);
        for (uint32_t line = 0; line < location->line_count; line++) write_line(json, profile, &lines[line]);
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_mappings(struct json_writer *json, const struct profile *profile)
{
    json_write_key(json, "mappings");
    json_begin_array(json);
    for (uint32_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        json_begin_object(json);
        write_number(json, "id", i);
        write_hex(json, "start", mapping->start);
        write_hex(json, "limit", mapping->limit);
        write_hex(json, "offset", mapping->file_offset);
        write_string(json, profile, "file", mapping->file_name);
        write_string(json, profile, "build_id", mapping->build_id);
        json_end_object(json);
    }
    json_end_array(json);
}

void raw_write_json(const struct profile *profile, struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    write_header(&json, profile);
    write_samples(&json, profile, out);
    write_locations(&json, profile, out);
    write_mappings(&json, profile);
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
