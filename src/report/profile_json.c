/* SPDX-License-Identifier: MIT */
#include "report/profile_json.h"

void labels_write_json(struct json_writer *json, struct sample_labels *labels)
{
    sample_labels_sort(labels);
    json_begin_array(json);
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct sample_label *label = &labels->items[i];
        json_begin_object(json);
        json_member_text(json, "key", label->key);
        json_write_key(json, label->is_number ? "number" : "text");
        if (label->is_number) {
            json_write_i64(json, label->number);
            json_write_key(json, "unit");
        }
        json_write_text(json, label->is_number ? label->unit : label->text);
        json_end_object(json);
    }
    json_end_array(json);
}

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
