/* Each sample with its labels and frames, for programs: the object described in doc/man/offbeat-traces.1.
 * SPDX-License-Identifier: MIT */
#include "report/profile_json.h"
#include "report/report.h"

static void write_sample(struct json_writer *json, const struct report *report, const struct grouping *grouping,
                         struct sample_labels *labels, size_t sample)
{
    const struct profile *profile = report->profile;
    const int64_t *values = profile_sample_values(profile, sample);
    struct value_choice choice = report->choice;
    json_begin_object(json);
    json_member_i64(json, "value", mean_of(values[choice.index], choice.is_mean ? values[0] : 0));
    json_begin_array_member(json, "stack");
    for (uint32_t stack = profile->samples.stack[sample].index; stack != 0; stack = profile_parent_at(profile, stack)) {
        uint32_t count;
        const uint32_t *groups = grouping_frames(grouping, profile_stack_location(profile, stack), &count);
        for (uint32_t i = 0; i < count; i++) json_write_text(json, group_name(grouping, &grouping->items[groups[i]]));
    }
    json_end_array(json);
    sample_labels_collect(labels, profile, profile->samples.labels[sample], profile->samples.thread[sample]);
    labels_write_json(json, labels);
    json_end_object(json);
}

void traces_write_json(const struct report *report, const struct grouping *grouping, struct buffer *out)
{
    const struct profile *profile = report->profile;
    struct sample_labels labels;
    struct json_writer json = json_writer_of(out);
    out->failed |= !sample_labels_init(&labels, profile);
    json_begin_object(&json);
    value_type_write_json(&json, profile, "sample_type", &profile->value_types[report->choice.index]);
    json_member_i64(&json, "total", report->total);
    json_begin_array_member(&json, "samples");
    for (size_t i = 0; i < profile->samples.count && !out->failed; i++)
        write_sample(&json, report, grouping, &labels, i);
    json_end_array(&json);
    json_end_object(&json);
    buffer_append_text(out, "\n");
    sample_labels_fini(&labels);
}
