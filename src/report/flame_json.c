/* The boxes of a flame graph for programs: the object described in doc/man/offbeat-flame.1.
 * SPDX-License-Identifier: MIT */
#include "report/flame_report.h"
#include "report/profile_json.h"

#include <math.h>

struct listing {
    const struct flame_report *flame;
    struct json_writer json;
};

/* Writes VALUE, divided by --divide-by. */
static void write_value(struct listing *listing, const char *key, int64_t value)
{
    double ratio = listing->flame->report->ratio;
    json_member_i64(&listing->json, key, ratio == 1 ? value : (int64_t)llround((double)value * ratio));
}

static void write_box(struct listing *listing, const struct flame_box *box)
{
    const struct flame_report *flame = listing->flame;
    json_begin_object(&listing->json);
    json_member_string(&listing->json, "name", flame_name(flame, box));
    json_member_u64(&listing->json, "parent", box->parent);
    json_member_u64(&listing->json, "depth", box->depth);
    if (flame->kind == FLAME_CHART) {
        json_member_u64(&listing->json, "start_ns", flame->start_ns + box->start);
        json_member_u64(&listing->json, "duration_ns", box->width);
    }
    write_value(listing, "self", box->flat);
    write_value(listing, "total", box->cum);
    if (flame->kind == FLAME_DIFF) write_value(listing, "base", box->base);
    if (box->hidden_count > 0) json_member_u64(&listing->json, "left_out", box->hidden_count);
    json_end_object(&listing->json);
}

static void write_left_out(struct listing *listing)
{
    const struct flame_layout *layout = listing->flame->layout;
    json_begin_object_member(&listing->json, "left_out");
    json_member_u64(&listing->json, "boxes", layout->narrow_count + layout->deep_count);
    write_value(listing, "total", layout->narrow_sum + layout->deep_sum);
    if (listing->flame->kind == FLAME_DIFF) {
        json_member_u64(&listing->json, "removed_boxes", layout->removed_count);
        write_value(listing, "removed_base", layout->removed_sum);
    }
    json_end_object(&listing->json);
}

void flame_write_json(const struct flame_report *flame, struct buffer *out)
{
    struct listing listing = {.flame = flame, .json = json_writer_of(out)};
    json_begin_object(&listing.json);
    value_type_write_json(&listing.json, flame->report->profile, "sample_type",
                          &flame->report->profile->value_types[flame->report->choice.index]);
    write_value(&listing, "total", flame->layout->boxes[0].cum);
    if (flame->kind == FLAME_DIFF) write_value(&listing, "base_total", flame->layout->boxes[0].base);
    if (flame->kind == FLAME_CHART) {
        json_member_text(&listing.json, "thread", flame->thread);
    }
    write_left_out(&listing);
    json_begin_array_member(&listing.json, "boxes");
    for (size_t i = 0; i < flame->layout->count && !out->failed; i++) write_box(&listing, &flame->layout->boxes[i]);
    json_end_array(&listing.json);
    json_end_object(&listing.json);
    buffer_append_text(out, "\n");
}
