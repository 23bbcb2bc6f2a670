/* A table of units. Units of one kind are converted to the smallest one.  SPDX-License-Identifier: MIT */
#include "profile/units.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum kind { TIME, BYTES, COMPUTE };

static const struct {
    const char *name; /* singular */
    enum kind kind;
    double size;
} units[] = {
    {"ns", TIME, 1},
    {"nanosecond", TIME, 1},
    {"us", TIME, 1e3},
    {"\u00b5s", TIME, 1e3}, /* the micro sign */
    {"\u03bcs", TIME, 1e3}, /* the Greek letter */
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
    {"megagcu", COMPUTE, 1e15},
    {"gigagcu", COMPUTE, 1e18},
    {"teragcu", COMPUTE, 1e21},
    {"petagcu", COMPUTE, 1e24},
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

/* --- For reports -------------------------------------------------------------------------------------------------- */

/* Ascending; the default of each kind is used for a value below the smallest unit, and for a unit of another kind. */
static const struct {
    const char *name;
    enum kind kind;
    double size;
    bool is_default;
} shown_units[] = {
    {"ns", TIME, 1, false},          {"us", TIME, 1e3, false},        {"ms", TIME, 1e6, false},
    {"s", TIME, 1e9, true},          {"hrs", TIME, 3.6e12, false},    {"B", BYTES, 1, true},
    {"kB", BYTES, 0x1p10, false},    {"MB", BYTES, 0x1p20, false},    {"GB", BYTES, 0x1p30, false},
    {"TB", BYTES, 0x1p40, false},    {"PB", BYTES, 0x1p50, false},    {"n*GCU", COMPUTE, 1, false},
    {"u*GCU", COMPUTE, 1e3, false},  {"m*GCU", COMPUTE, 1e6, false},  {"GCU", COMPUTE, 1e9, true},
    {"k*GCU", COMPUTE, 1e12, false}, {"M*GCU", COMPUTE, 1e15, false}, {"G*GCU", COMPUTE, 1e18, false},
    {"T*GCU", COMPUTE, 1e21, false}, {"P*GCU", COMPUTE, 1e24, false},
};

enum { SHOWN_UNITS = sizeof(shown_units) / sizeof(shown_units[0]) };

static size_t default_unit(enum kind kind)
{
    size_t i = 0;
    while (shown_units[i].kind != kind || !shown_units[i].is_default) i++;
    return i;
}

/* VALUE is not negative. */
static size_t largest_unit(enum kind kind, double value)
{
    size_t found = default_unit(kind);
    for (size_t i = 0; i < SHOWN_UNITS; i++) {
        if (shown_units[i].kind == kind && value / shown_units[i].size >= 1) found = i;
    }
    return found;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

static struct scaled_value in_unit(double value, enum kind kind, const char *to)
{
    size_t shown, wanted = find_unit(to);
    if (is_one_of(to, (const char *[]){"minimum", "auto", NULL})) {
        shown = largest_unit(kind, value);
    } else if (wanted == UNITS || units[wanted].kind != kind) {
        shown = default_unit(kind);
    } else {
        for (shown = 0; shown < SHOWN_UNITS; shown++) {
            if (shown_units[shown].kind == kind && shown_units[shown].size == units[wanted].size) break;
        }
        if (shown == SHOWN_UNITS) return (struct scaled_value){value / units[wanted].size, to};
    }
    return (struct scaled_value){value / shown_units[shown].size, shown_units[shown].name};
}

struct scaled_value unit_scale(int64_t value, const char *from, const char *to)
{
    size_t unit = find_unit(from);
    if (unit == UNITS) {
        bool has_no_name = is_one_of(to, (const char *[]){"count", "sample", "unit", "minimum", "auto", NULL});
        return (struct scaled_value){(double)value, has_no_name ? "" : to};
    }
    double magnitude = value < 0 ? -(double)value : (double)value;
    struct scaled_value scaled = in_unit(magnitude * units[unit].size, units[unit].kind, to);
    if (value < 0) scaled.value = -scaled.value;
    return scaled;
}

void unit_append(struct buffer *out, int64_t value, const char *from, const char *to)
{
    struct scaled_value scaled = unit_scale(value, from, to);
    char text[512]; /* no double has more digits */
    int length = snprintf(text, sizeof(text), "%.2f", scaled.value);
    if (length > 3 && strcmp(text + length - 3, ".00") == 0) text[length - 3] = '\0';
    bool is_zero = strcmp(text, "0") == 0 || strcmp(text, "-0") == 0;
    buffer_append_text(out, is_zero ? "0" : text);
    if (!is_zero) buffer_append_text(out, scaled.unit);
}
