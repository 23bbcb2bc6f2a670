/* What was spent under each value of each label, for programs: the object described in doc/man/offbeat-tags.1.
 * SPDX-License-Identifier: MIT */
#include "base/json_writer.h"
#include "report/report.h"

static void write_values(struct json_writer *json, const struct tag_sums *sums, size_t first, size_t end)
{
    json_begin_array(json);
    for (size_t i = first; i < end; i++) {
        json_begin_object(json);
        json_write_key(json, "value");
        json_write_string(json, profile_slice(&sums->strings, sums->items[i].value));
        json_write_key(json, "sum");
        json_write_i64(json, sums->items[i].sum);
        json_end_object(json);
    }
    json_end_array(json);
}

void tags_write_json(const struct report *report, const struct tag_sums *sums, struct buffer *out)
{
    const struct profile *profile = report->profile;
    const struct value_type *type = &profile->value_types[report->choice.index];
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    json_write_key(&json, "sample_type");
    json_begin_object(&json);
    json_write_key(&json, "type");
    json_write_string(&json, profile_slice(profile, type->type));
    json_write_key(&json, "unit");
    json_write_string(&json, profile_slice(profile, type->unit));
    json_end_object(&json);
    json_write_key(&json, "total");
    json_write_i64(&json, report->total);
    json_write_key(&json, "tags");
    json_begin_object(&json);
    for (size_t first = 0, end; first < sums->count; first = end) {
        int64_t sum;
        end = tag_sums_key_end(sums, first, &sum);
        json_write_key_slice(&json, profile_slice(&sums->strings, sums->items[first].key));
        write_values(&json, sums, first, end);
    }
    json_end_object(&json);
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
