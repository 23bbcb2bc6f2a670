/* Finds the unit in which a value is easy to read.  SPDX-License-Identifier: MIT */
#include "report/quantity.h"

#include "profile/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A unit; SIZE is in the first unit of the family. */
struct known_unit {
    const char *name;
    const char *long_name;
    double size;
};

static const struct known_unit times[] = {
    {"ns", "nanosecond", 1}, {"us", "microsecond", 1e3}, {"ms", "millisecond", 1e6},
    {"s", "second", 1e9},    {"hrs", "hour", 3.6e12},
};

static const struct known_unit sizes[] = {
    {"B", "byte", 1},
    {"kB", "kilobyte", 1024.0},
    {"MB", "megabyte", 1024.0 * 1024},
    {"GB", "gigabyte", 1024.0 * 1024 * 1024},
    {"TB", "terabyte", 1024.0 * 1024 * 1024 * 1024},
};

struct family {
    const struct known_unit *units;
    size_t count;
};

static const struct family families[] = {
    {times, sizeof(times) / sizeof(times[0])},
    {sizes, sizeof(sizes) / sizeof(sizes[0])},
};

/* "nanoseconds", "nanosecond" and "ns" are one. */
static bool is_unit(const struct known_unit *known, const char *name)
{
    size_t length = strlen(known->long_name);
    if (strcmp(name, known->name) == 0) return true;
    return strncmp(name, known->long_name, length) == 0 && (!name[length] || strcmp(name + length, "s") == 0);
}

static const struct known_unit *find_unit(const char *name, const struct family **ret_family)
{
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        for (size_t u = 0; u < families[f].count; u++) {
            *ret_family = &families[f];
            if (is_unit(&families[f].units[u], name)) return &families[f].units[u];
        }
    }
    return NULL;
}

/* Returns the largest unit that is not above VALUE, which is in the family's first unit. */
static const struct known_unit *largest_within(const struct family *family, double value)
{
    size_t u = family->count - 1;
    while (u > 0 && family->units[u].size > value) u--;
    return &family->units[u];
}

struct quantity_unit quantity_unit_for(const char *unit, int64_t smallest, int64_t largest)
{
    const struct family *family;
    const struct known_unit *own = find_unit(unit, &family);
    if (!own) return (struct quantity_unit){.name = "", .size = 1};
    double low = fabs((double)smallest) * own->size, high = fabs((double)largest) * own->size;
    const struct known_unit *shown = largest_within(family, low);
    if (shown != largest_within(family, high) && low * 100 < high) shown = largest_within(family, low * 100);
    return (struct quantity_unit){.name = shown->name, .size = shown->size / own->size};
}

struct quantity_unit quantity_unit_wanted(const char *unit, const char *wanted, int64_t smallest, int64_t largest)
{
    bool is_free = !wanted || strcmp(wanted, "minimum") == 0 || strcmp(wanted, "auto") == 0;
    if (is_free) return quantity_unit_for(unit, smallest, largest);
    struct scaled_value one = unit_scale(1, unit, wanted);
    return (struct quantity_unit){.name = one.unit, .size = 1 / one.value};
}

struct quantity_text quantity_in(struct quantity_unit unit, int64_t value)
{
    struct quantity_text result;
    if (value == 0) return (struct quantity_text){"0"};
    int length = snprintf(result.text, sizeof(result.text), "%.2f", (double)value / unit.size);
    if (length > 3 && strcmp(result.text + length - 3, ".00") == 0) length -= 3;
    (void)snprintf(result.text + length, sizeof(result.text) - (size_t)length, "%s", unit.name);
    return result;
}

struct quantity_text quantity_of(const char *unit, int64_t value)
{
    return quantity_in(quantity_unit_for(unit, value, value), value);
}

static struct quantity_text percent_text(double percent)
{
    struct quantity_text result;
    if (fabs(percent) >= 99.95 && fabs(percent) <= 100.05) percent = percent > 0 ? 100 : -100;
    int decimals = fabs(percent) == 100 ? 0 : 2;
    if (fabs(percent) >= 1) {
        (void)snprintf(result.text, sizeof(result.text), "%5.*f%%", decimals, percent);
    } else {
        (void)snprintf(result.text, sizeof(result.text), "%5.2g%%", percent);
    }
    return result;
}

struct quantity_text quantity_percent(int64_t value, int64_t whole)
{
    return percent_text(whole ? 100 * (double)value / (double)whole : 0);
}

struct quantity_text quantity_share(int64_t value, int64_t whole)
{
    return percent_text(whole ? fabs((double)value / (double)whole) * 100 : 0);
}

double quantity_nanoseconds(const char *unit)
{
    const struct family *family;
    const struct known_unit *known = find_unit(unit, &family);
    return known && family->units == times ? known->size : 0;
}
