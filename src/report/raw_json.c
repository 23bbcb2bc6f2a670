/* All that is in a profile, for programs: the object described in doc/man/offbeat-raw.1.
 * SPDX-License-Identifier: MIT */
#include "report/profile_json.h"
#include "report/raw_report.h"
#include "profile/build_id.h"

static void write_sample(struct json_writer *json, const struct profile *profile, struct sample_labels *labels,
                         size_t sample)
{
    const int64_t *values = profile_sample_values(profile, sample);
    uint32_t stack = profile->samples.stack[sample].index;
    json_begin_object(json);
    json_begin_array_member(json, "values");
    for (size_t i = 0; i < profile->value_type_count; i++) json_write_i64(json, values[i]);
    json_end_array(json);
    json_begin_array_member(json, "locations");
    for (; stack != 0; stack = profile_parent_at(profile, stack))
        json_write_u64(json, profile_stack_location(profile, stack));
    json_end_array(json);
    sample_labels_collect(labels, profile, profile->samples.labels[sample], profile->samples.thread[sample]);
    labels_write_json(json, labels);
    json_end_object(json);
}

static void write_line(struct json_writer *json, const struct profile *profile, const struct line *line)
{
    const struct function *function = profile_function(profile, line->function);
    json_begin_object(json);
    string_write_json(json, profile, "function", function->name);
    string_write_json(json, profile, "system_name", function->system_name);
    string_write_json(json, profile, "file", function->file_name);
    json_member_i64(json, "line", line->line);
    json_member_i64(json, "column", line->column);
    json_member_i64(json, "start_line", function->start_line);
    json_end_object(json);
}

static void write_locations(struct json_writer *json, const struct profile *profile, const struct buffer *out)
{
    json_begin_array_member(json, "locations");
    for (uint32_t i = 1; i < profile->locations.count && !out->failed; i++) {
        const struct location *location = &profile->locations.items[i];
        const struct line *lines = profile_lines(profile, location);
        json_begin_object(json);
        json_member_i64(json, "id", i);
        json_member_hex(json, "address", location->address);
        json_member_i64(json, "mapping", location->mapping.index);
        json_member_bool(json, "folded", location->is_folded);
        json_begin_array_member(json, "lines");
        for (uint32_t line = 0; line < location->line_count; line++) write_line(json, profile, &lines[line]);
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_mappings(struct json_writer *json, const struct profile *profile)
{
    json_begin_array_member(json, "mappings");
    for (uint32_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        json_begin_object(json);
        json_member_i64(json, "id", i);
        json_member_hex(json, "start", mapping->start);
        json_member_hex(json, "limit", mapping->limit);
        json_member_hex(json, "offset", mapping->file_offset);
        string_write_json(json, profile, "file", mapping->file_name);
        string_write_json(json, profile, "build_id", mapping_build_text(mapping));
        json_end_object(json);
    }
    json_end_array(json);
}

void raw_write_json(const struct profile *profile, struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    value_type_write_json(&json, profile, "period_type", &profile->period_type);
    json_member_i64(&json, "period", profile->period);
    json_member_i64(&json, "start", profile->time_ns);
    json_member_u64(&json, "duration", profile->duration_ns);
    comments_write_json(&json, profile);
    value_types_write_json(&json, profile);
    struct sample_labels labels;
    out->failed |= !sample_labels_init(&labels, profile);
    json_begin_array_member(&json, "samples");
    for (size_t i = 0; i < profile->samples.count && !out->failed; i++) write_sample(&json, profile, &labels, i);
    json_end_array(&json);
    sample_labels_fini(&labels);
    write_locations(&json, profile, out);
    write_mappings(&json, profile);
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
