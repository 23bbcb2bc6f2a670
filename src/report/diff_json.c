/* Differences for programs: the object described in doc/man/offbeat-diff.1.  SPDX-License-Identifier: MIT */
#include "base/json_writer.h"
#include "report/diff_report.h"

#include <stdio.h>
#include <stdlib.h>

static void write_text(struct json_writer *json, const char *key, const char *text)
{
    json_write_key(json, key);
    json_write_text(json, text);
}

static void write_string(struct json_writer *json, const struct profile *profile, const char *key,
                         struct string_id text)
{
    json_write_key(json, key);
    json_write_string(json, profile_slice(profile, text));
}

static void write_number(struct json_writer *json, const char *key, int64_t number)
{
    json_write_key(json, key);
    json_write_i64(json, number);
}

static void write_count(struct json_writer *json, const char *key, uint64_t count)
{
    json_write_key(json, key);
    json_write_u64(json, count);
}

static void write_total(struct json_writer *json, const char *key, const struct diff_side *side)
{
    json_write_key(json, key);
    json_begin_object(json);
    write_number(json, "total", side->total);
    write_count(json, "samples", side->total_samples);
    json_end_object(json);
}

static void write_side(struct json_writer *json, const char *key, const struct diff_side *side)
{
    json_write_key(json, key);
    json_begin_object(json);
    write_number(json, "self", side->self);
    write_number(json, "total", side->total);
    write_count(json, "self_samples", side->self_samples);
    write_count(json, "total_samples", side->total_samples);
    json_end_object(json);
}

/* To three digits: the others depend on the mathematical library. */
static double rounded(double probability)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%.3g", probability);
    return strtod(text, NULL);
}

/* The difference and what chance has to do with it. */
static void write_judgement(struct json_writer *json, const struct diff_function *function)
{
    static const char *const noise[] = {"unknown", "within", "exceeds"};
    write_number(json, "difference", function->difference);
    write_text(json, "noise", noise[function->noise]);
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
    json_write_key(json, "name");
    json_write_string(json, names_slice(&diff->names, function->name));
    write_string(json, profile, "file", function->file);
    write_string(json, profile, "package", function->package);
    write_text(json, "change", changes[function->change]);
    write_judgement(json, function);
    write_side(json, "base", &function->base);
    write_side(json, "new", &function->new);
    json_end_object(json);
}

static void write_functions(struct json_writer *json, const struct profile *profile, const struct diff *diff,
                            const struct diff_report_options *options)
{
    size_t count = diff->count;
    if (options->function_max && options->function_max < count) count = options->function_max;
    json_write_key(json, "functions");
    json_begin_array(json);
    for (size_t i = 0; i < count && diff->functions[i].difference != 0; i++)
        write_function(json, profile, diff, &diff->functions[i]);
    json_end_array(json);
}

void diff_write_json(const struct profile *profile, const struct diff *diff, const struct diff_report_options *options,
                     struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    json_write_key(&json, "sample_type");
    json_begin_object(&json);
    write_string(&json, profile, "type", profile->value_types[diff->value_index].type);
    write_string(&json, profile, "unit", profile->value_types[diff->value_index].unit);
    json_end_object(&json);
    write_text(&json, "compares", diff->by_cumulative ? "total" : "self");
    write_total(&json, "base", &diff->all.base);
    write_total(&json, "new", &diff->all.new);
    write_judgement(&json, &diff->all);
    write_count(&json, "added", diff->change_counts[DIFF_ADDED]);
    write_count(&json, "removed", diff->change_counts[DIFF_REMOVED]);
    write_count(&json, "grown", diff->change_counts[DIFF_GROWN]);
    write_count(&json, "shrunk", diff->change_counts[DIFF_SHRUNK]);
    write_count(&json, "exceeding_noise", diff->exceeding_count);
    json_write_key(&json, "failed");
    json_write_bool(&json, options->has_failed);
    write_functions(&json, profile, diff, options);
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
