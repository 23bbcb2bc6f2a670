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
    double size;
};

static const struct known_unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"hrs", 3.6e12}};
static const struct known_unit sizes[] = {{"B", 1}, {"kB", 0x1p10}, {"MB", 0x1p20}, {"GB", 0x1p30}, {"TB", 0x1p40}};

struct family {
    const struct known_unit *units;
    size_t count;
};

static const struct family families[] = {
    {times, sizeof(times) / sizeof(times[0])},
    {sizes, sizeof(sizes) / sizeof(sizes[0])},
};

/* Returns the family of the unit NAME, and its size in the first unit of it; NULL if the family is not known. */
static const struct family *find_family(const char *name, double *ret_size)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        *ret_size = unit_ratio(name, families[i].units[0].name);
        if (*ret_size != 0) return &families[i];
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

/* Returns the unit NAME as it stands behind values; "" for counts, and for a name that is no word in ASCII. */
static const char *shown_name(const char *name)
{
    size_t size = 0;
    while (name[size] > ' ' && name[size] < 0x7f && size < QUANTITY_UNIT_BYTES_MAX) size++;
    return name[size] ? "" : unit_scale(1, name, name).unit;
}

struct quantity_unit quantity_unit_for(const char *unit, int64_t smallest, int64_t largest)
{
    double own_size;
    const struct family *family = find_family(unit, &own_size);
    if (!family) return (struct quantity_unit){.name = shown_name(unit), .size = 1};
    double low = fabs((double)smallest) * own_size, high = fabs((double)largest) * own_size;
    const struct known_unit *shown = largest_within(family, low);
    if (shown != largest_within(family, high) && low * 100 < high) shown = largest_within(family, low * 100);
    return (struct quantity_unit){.name = shown->name, .size = shown->size / own_size};
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
    return unit_ratio(unit, "nanoseconds");
}
