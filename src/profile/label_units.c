/* SPDX-License-Identifier: MIT */
#include "profile/label_units.h"

#include <stdlib.h>

bool label_units_init(struct label_units *units, const struct profile *profile)
{
    size_t count = profile->strings.count;
    *units = (struct label_units){
        .profile = profile, .count = count, .unit_of_key = calloc(count, sizeof(*units->unit_of_key))};
    if (!units->unit_of_key) return false;
    for (size_t i = 0; i < profile->labels.count; i++) {
        const struct label *label = &profile->labels.items[i];
        struct string_id *unit = &units->unit_of_key[label->key.index];
        if (label->is_number && unit->index == 0) *unit = label->unit;
    }
    return true;
}

void label_units_fini(struct label_units *units)
{
    free(units->unit_of_key);
    *units = (struct label_units){0};
}

const char *label_unit(const struct label_units *units, const struct sample_label *label)
{
    struct string_id unit =
        label->key_id.index < units->count ? units->unit_of_key[label->key_id.index] : (struct string_id){0};
    if (unit.index != 0) return profile_c_string(units->profile, unit);
    bool is_bytes = strcmp(label->key, "alignment") == 0 || strcmp(label->key, "request") == 0;
    return is_bytes ? "bytes" : label->key;
}

static bool is_listed(const struct other_unit *listed, size_t count, const struct label *label)
{
    for (size_t i = 0; i < count; i++) {
        if (listed[i].key.index == label->key.index && listed[i].other.index == label->unit.index) return true;
    }
    return false;
}

size_t profile_other_units(const struct profile *profile, struct other_unit *ret_units, size_t max)
{
    size_t count = 0;
    struct string_id *first = calloc(profile->strings.count + 1, sizeof(*first)); /* the unit of each key, by string */
    for (size_t i = 0; first && i < profile->labels.count && count < max; i++) {
        const struct label *label = &profile->labels.items[i];
        if (!label->is_number || label->unit.index == 0) continue;
        struct string_id *known = &first[label->key.index];
        if (known->index == 0) *known = label->unit;
        if (known->index == label->unit.index || is_listed(ret_units, count, label)) continue;
        ret_units[count++] = (struct other_unit){.key = label->key, .first = *known, .other = label->unit};
    }
    free(first);
    return count;
}
