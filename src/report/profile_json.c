/* SPDX-License-Identifier: MIT */
#include "report/profile_json.h"

void string_write_json(struct json_writer *json, const struct profile *profile, const char *key, struct string_id text)
{
    json_member_string(json, key, profile_slice(profile, text));
}

void value_type_write_json(struct json_writer *json, const struct profile *profile, const char *key,
                           const struct value_type *type)
{
    if (key) json_write_key(json, key);
    json_begin_object(json);
    string_write_json(json, profile, "type", type->type);
    string_write_json(json, profile, "unit", type->unit);
    json_end_object(json);
}

void value_types_write_json(struct json_writer *json, const struct profile *profile)
{
    json_begin_array_member(json, "sample_types");
    for (size_t i = 0; i < profile->value_type_count; i++)
        value_type_write_json(json, profile, NULL, &profile->value_types[i]);
    json_end_array(json);
}

void comments_write_json(struct json_writer *json, const struct profile *profile)
{
    json_begin_array_member(json, "comments");
    for (size_t i = 0; i < profile->comments.count; i++)
        json_write_string(json, profile_slice(profile, profile->comments.items[i]));
    json_end_array(json);
}

void omissions_write_json(struct json_writer *json, const struct profile *profile)
{
    if (profile->omissions.count == 0) return;
    json_begin_array_member(json, "omissions");
    for (size_t i = 0; i < profile->omissions.count; i++)
        json_write_string(json, profile_slice(profile, profile->omissions.items[i]));
    json_end_array(json);
}

void labels_write_json(struct json_writer *json, struct sample_labels *labels)
{
    sample_labels_sort(labels);
    json_begin_array_member(json, "labels");
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct sample_label *label = &labels->items[i];
        json_begin_object(json);
        json_member_text(json, "key", label->key);
        if (label->is_number) json_member_i64(json, "number", label->number);
        json_member_text(json, label->is_number ? "unit" : "text", label->is_number ? label->unit : label->text);
        json_end_object(json);
    }
    json_end_array(json);
}
