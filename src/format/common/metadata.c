/* SPDX-License-Identifier: MIT */
#include "format/common/metadata.h"

bool metadata_is_repeated(const struct profile *profile, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (profile->metadata.items[i].key.index == profile->metadata.items[index].key.index) return true;
    }
    return false;
}

void metadata_write(struct json_writer *writer, const struct profile *profile)
{
    json_begin_object(writer);
    for (size_t i = 0; i < profile->metadata.count; i++) {
        const struct metadata_entry *entry = &profile->metadata.items[i];
        if (metadata_is_repeated(profile, i)) continue;
        json_write_key_slice(writer, profile_slice(profile, entry->key));
        if (entry->is_number)
            json_write_i64(writer, entry->number);
        else
            json_write_string(writer, profile_slice(profile, entry->text));
    }
    json_end_object(writer);
}

void metadata_read(struct json_reader *reader, struct profile *profile)
{
    struct slice key;
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        const char *name = profile_c_string(profile, profile_string(profile, key));
        if (json_peek(reader) == JSON_NUMBER) {
            profile_add_metadata_number(profile, name, json_i64(reader));
        } else if (json_peek(reader) == JSON_STRING) {
            profile_add_metadata_text(profile, name,
                                      profile_c_string(profile, profile_string(profile, json_string(reader))));
        } else {
            json_skip(reader);
        }
    }
}
