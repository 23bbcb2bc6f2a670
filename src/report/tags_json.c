/* The sums of each value of each label, for programs: the object described in doc/man/offbeat-tags.1.
 * SPDX-License-Identifier: MIT */
#include "report/profile_json.h"
#include "report/report.h"

static void write_values(struct json_writer *json, const struct tag_sums *sums, size_t first, size_t end)
{
    json_begin_array(json);
    for (size_t i = first; i < end; i++) {
        json_begin_object(json);
        json_member_string(json, "value", profile_slice(&sums->strings, sums->items[i].value));
        json_member_i64(json, "sum", sums->items[i].sum);
        json_end_object(json);
    }
    json_end_array(json);
}

void tags_write_json(const struct report *report, const struct tag_sums *sums, struct buffer *out)
{
    const struct profile *profile = report->profile;
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    value_type_write_json(&json, profile, "sample_type", &profile->value_types[report->choice.index]);
    json_member_i64(&json, "total", report->total);
    json_begin_object_member(&json, "tags");
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
