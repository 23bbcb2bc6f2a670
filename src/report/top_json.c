/* The hottest functions for programs: the object described in doc/man/offbeat-top.1.  SPDX-License-Identifier: MIT */
#include "report/profile_json.h"
#include "report/top_report.h"

static void write_value(struct json_writer *json, const char *key, const struct top_report_options *options,
                        int64_t value)
{
    json_member_i64(json, key, top_report_value(options, value));
}

static void write_functions(struct json_writer *json, const struct profile *profile, const struct top *top,
                            const struct top_group *thread, const struct top_report_options *options, bool has_place)
{
    size_t count = thread->function_count;
    if (options->function_max && options->function_max < count) count = options->function_max;
    json_begin_array_member(json, "functions");
    for (size_t i = 0; i < count; i++) {
        const struct top_function *function = &thread->functions[i];
        json_begin_object(json);
        json_member_string(json, "name", names_slice(&top->names, function->name));
        if (has_place) string_write_json(json, profile, "file", function->file);
        if (has_place) string_write_json(json, profile, "package", function->package);
        write_value(json, "self", options, function->self);
        write_value(json, "total", options, function->total);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_threads(struct json_writer *json, const struct profile *profile, const struct top *top,
                          const struct top_report_options *options)
{
    json_begin_object_member(json, "threads");
    for (size_t i = 0; i < top->group_count; i++) {
        const struct thread *thread = profile_thread(profile, top->groups[i].thread);
        json_write_key_slice(json, profile_slice(profile, thread->id));
        json_begin_object(json);
        string_write_json(json, profile, "name", thread->name);
        json_member_u64(json, "duration", top->groups[i].duration_ns);
        write_functions(json, profile, top, &top->groups[i], options, false);
        json_end_object(json);
    }
    json_end_object(json);
}

static void write_processes(struct json_writer *json, const struct profile *profile, const struct top *top,
                            const struct top_report_options *options)
{
    json_begin_array_member(json, "processes");
    for (size_t i = 0; i < top->group_count; i++) {
        const struct top_group *group = &top->groups[i];
        json_begin_object(json);
        json_member_i64(json, "pid", group->process.pid);
        string_write_json(json, profile, "name", group->process.name);
        write_value(json, "total", options, group->total);
        json_member_u64(json, "duration", group->duration_ns);
        write_functions(json, profile, top, group, options, false);
        json_end_object(json);
    }
    json_end_array(json);
}

void top_write_json(const struct profile *profile, const struct top *top, const struct top_report_options *options,
                    struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    value_type_write_json(&json, profile, "sample_type", &profile->value_types[top->value_index]);
    if (top->grouping == TOP_BY_THREAD) {
        write_threads(&json, profile, top, options);
    } else if (top->grouping == TOP_BY_PROCESS) {
        write_processes(&json, profile, top, options);
    } else {
        write_value(&json, "total", options, top->total);
        write_functions(&json, profile, top, &top->groups[0], options, true);
    }
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
