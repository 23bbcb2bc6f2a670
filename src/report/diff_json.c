/* Differences for programs: the object described in doc/man/offbeat-diff.1.  SPDX-License-Identifier: MIT */
#include "report/diff_report.h"
#include "report/profile_json.h"

#include <stdio.h>
#include <stdlib.h>

static void write_total(struct json_writer *json, const char *key, const struct diff_side *side)
{
    json_begin_object_member(json, key);
    json_member_i64(json, "total", side->total);
    json_member_u64(json, "samples", side->total_samples);
    json_end_object(json);
}

static void write_side(struct json_writer *json, const char *key, const struct diff_side *side)
{
    json_begin_object_member(json, key);
    json_member_i64(json, "self", side->self);
    json_member_i64(json, "total", side->total);
    json_member_u64(json, "self_samples", side->self_samples);
    json_member_u64(json, "total_samples", side->total_samples);
    json_end_object(json);
}

/* Rounds PROBABILITY to three digits: the others depend on the mathematical library. */
static double rounded(double probability)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%.3g", probability);
    return strtod(text, NULL);
}

/* Writes the difference and what chance has to do with it. */
static void write_judgement(struct json_writer *json, const struct diff_function *function)
{
    static const char *const noise[] = {"unknown", "within", "exceeds"};
    json_member_i64(json, "difference", function->difference);
    json_member_text(json, "noise", noise[function->noise]);
    json_write_key(json, "probability");
    if (function->noise == DIFF_NOISE_UNKNOWN)
        json_write_null(json);
    else
        json_write_double(json, rounded(function->probability));
}

static void write_function(struct json_writer *json, const struct profile *profile, const struct diff *diff,
                           const struct diff_function *function)
{
    static const char *const changes[DIFF_CHANGES] = {"same", "added", "removed", "grown", "shrunk"};
    json_begin_object(json);
    json_member_string(json, "name", names_slice(&diff->names, function->name));
    string_write_json(json, profile, "file", function->file);
    string_write_json(json, profile, "package", function->package);
    json_member_text(json, "change", changes[function->change]);
    write_judgement(json, function);
    write_side(json, "base", &function->base);
    write_side(json, "new", &function->new);
    json_end_object(json);
}

void diff_write_json(const struct profile *profile, const struct diff *diff, const struct diff_report_options *options,
                     struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    value_type_write_json(&json, profile, "sample_type", &profile->value_types[diff->value_index]);
    json_member_text(&json, "compares", diff->by_cumulative ? "total" : "self");
    write_total(&json, "base", &diff->all.base);
    write_total(&json, "new", &diff->all.new);
    write_judgement(&json, &diff->all);
    json_member_u64(&json, "added", diff->change_counts[DIFF_ADDED]);
    json_member_u64(&json, "removed", diff->change_counts[DIFF_REMOVED]);
    json_member_u64(&json, "grown", diff->change_counts[DIFF_GROWN]);
    json_member_u64(&json, "shrunk", diff->change_counts[DIFF_SHRUNK]);
    json_member_u64(&json, "exceeding_noise", diff->exceeding_count);
    json_member_bool(&json, "failed", options->has_failed);
    size_t count = diff->count;
    if (options->function_max && options->function_max < count) count = options->function_max;
    json_begin_array_member(&json, "functions");
    for (size_t i = 0; i < count && diff->functions[i].difference != 0; i++)
        write_function(&json, profile, diff, &diff->functions[i]);
    json_end_array(&json);
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
