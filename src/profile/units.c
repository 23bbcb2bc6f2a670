/* A table of units; those of one kind are told in the smallest.  SPDX-License-Identifier: MIT */
#include "profile/units.h"

#include <stdlib.h>
#include <strings.h>

enum kind { TIME, BYTES, COMPUTE };

static const struct {
    const char *name; /* without the s of many */
    enum kind kind;
    double size;
} units[] = {
    {"ns", TIME, 1},
    {"nanosecond", TIME, 1},
    {"us", TIME, 1e3},
    {"\u00b5s", TIME, 1e3},
    {"microsecond", TIME, 1e3},
    {"ms", TIME, 1e6},
    {"millisecond", TIME, 1e6},
    {"s", TIME, 1e9},
    {"sec", TIME, 1e9},
    {"second", TIME, 1e9},
    {"min", TIME, 6e10},
    {"minute", TIME, 6e10},
    {"hr", TIME, 3.6e12},
    {"hour", TIME, 3.6e12},
    {"day", TIME, 8.64e13},
    {"week", TIME, 6.048e14},
    {"b", BYTES, 1},
    {"byte", BYTES, 1},
    {"kb", BYTES, 0x1p10},
    {"kbyte", BYTES, 0x1p10},
    {"kilobyte", BYTES, 0x1p10},
    {"mb", BYTES, 0x1p20},
    {"mbyte", BYTES, 0x1p20},
    {"megabyte", BYTES, 0x1p20},
    {"gb", BYTES, 0x1p30},
    {"gbyte", BYTES, 0x1p30},
    {"gigabyte", BYTES, 0x1p30},
    {"tb", BYTES, 0x1p40},
    {"tbyte", BYTES, 0x1p40},
    {"terabyte", BYTES, 0x1p40},
    {"pb", BYTES, 0x1p50},
    {"pbyte", BYTES, 0x1p50},
    {"petabyte", BYTES, 0x1p50},
    {"ngcu", COMPUTE, 1},
    {"nanogcu", COMPUTE, 1},
    {"ugcu", COMPUTE, 1e3},
    {"microgcu", COMPUTE, 1e3},
    {"mgcu", COMPUTE, 1e6},
    {"milligcu", COMPUTE, 1e6},
    {"gcu", COMPUTE, 1e9},
    {"kgcu", COMPUTE, 1e12},
    {"kilogcu", COMPUTE, 1e12},
};

enum { UNITS = sizeof(units) / sizeof(units[0]) };

/* UNITS if nobody knows it. */
static size_t find_unit(const char *name)
{
    size_t size = strlen(name);
    for (int many = 0; many < 2; many++) {
        for (size_t i = 0; i < UNITS; i++) {
            if (strlen(units[i].name) == size && strncasecmp(units[i].name, name, size) == 0) return i;
        }
        if (size == 0 || (name[size - 1] | 0x20) != 's') return UNITS;
        size--;
    }
    return UNITS;
}

double unit_ratio(const char *from, const char *to)
{
    if (strcmp(from, to) == 0) return 1;
    size_t a = find_unit(from), b = find_unit(to);
    if (a == UNITS || b == UNITS || units[a].kind != units[b].kind) return 0;
    return units[a].size / units[b].size;
}

const char *profile_label_unit(const struct profile *profile, struct string_id key)
{
    for (size_t i = 0; i < profile->labels.count; i++) {
        const struct label *label = &profile->labels.items[i];
        if (label->is_number && label->key.index == key.index && label->unit.index != 0)
            return profile_c_string(profile, label->unit);
    }
    const char *name = profile_c_string(profile, key);
    return strcmp(name, "alignment") == 0 || strcmp(name, "request") == 0 ? "bytes" : name;
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
    struct string_id *first = calloc(profile->strings.count + 1, sizeof(*first)); /* by string: the unit of that key */
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
