/* SPDX-License-Identifier: MIT */
#include "format/common/facts.h"

bool facts_is_repeated(const struct profile *profile, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (profile->facts.items[i].key.index == profile->facts.items[index].key.index) return true;
    }
    return false;
}

void facts_write(struct json_writer *writer, const struct profile *profile)
{
    json_begin_object(writer);
    for (size_t i = 0; i < profile->facts.count; i++) {
        const struct fact *fact = &profile->facts.items[i];
        if (facts_is_repeated(profile, i)) continue;
        json_write_key_slice(writer, profile_slice(profile, fact->key));
        if (fact->is_number)
            json_write_i64(writer, fact->number);
        else
            json_write_string(writer, profile_slice(profile, fact->text));
    }
    json_end_object(writer);
}

void facts_read(struct json_reader *reader, struct profile *profile)
{
    struct slice key;
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        const char *name = profile_c_string(profile, profile_string(profile, key));
        if (json_peek(reader) == JSON_NUMBER) {
            profile_add_fact_number(profile, name, json_i64(reader));
        } else if (json_peek(reader) == JSON_STRING) {
            profile_add_fact_text(profile, name,
                                  profile_c_string(profile, profile_string(profile, json_string(reader))));
        } else {
            json_skip(reader);
        }
    }
}
