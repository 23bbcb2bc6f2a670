/* Differences as a table.  SPDX-License-Identifier: MIT */
#include "analyze/totals.h"
#include "report/diff_report.h"
#include "report/quantity.h"
#include "report/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS_WIDTH = 63 }; /* characters of a row in front of the name */

struct table {
    const struct profile *profile;
    const struct diff *diff;
    const struct diff_report_options *options;
    const char *unit_name;
    struct quantity_unit unit;
    bool has_own_units; /* each number has its own unit */
    struct buffer *out;
};

static struct quantity_text value_text(const struct table *table, int64_t value)
{
    return table->has_own_units ? quantity_of(table->unit_name, value) : quantity_in(table->unit, value);
}

static struct quantity_text signed_text(const struct table *table, int64_t value)
{
    struct quantity_text text = value_text(table, value), result = {"+"};
    if (value <= 0) return text;
    (void)snprintf(result.text + 1, sizeof(result.text) - 1, "%.*s", (int)sizeof(result.text) - 2, text.text);
    return result;
}

/* Returns "+12.50%" of WHOLE; "" without a whole. */
static struct quantity_text change_text(int64_t difference, int64_t whole)
{
    struct quantity_text result = {""};
    if (whole == 0) return result;
    double percent = 100 * (double)difference / fabs((double)whole);
    (void)snprintf(result.text, sizeof(result.text), fabs(percent) < 1000 ? "%+.2f%%" : "%+.0f%%", percent);
    return result;
}

static int64_t compared(const struct table *table, const struct diff_side *side)
{
    return table->diff->by_cumulative ? side->total : side->self;
}

static size_t shown_count(const struct table *table)
{
    size_t count = 0, maximum = table->options->function_max ? table->options->function_max : SIZE_MAX;
    while (count < table->diff->count && count < maximum && table->diff->functions[count].difference != 0) count++;
    return count;
}

static struct quantity_unit unit_of_table(const struct table *table, size_t shown)
{
    int64_t smallest = 0, largest = magnitude_of(table->diff->all.base.total);
    if (magnitude_of(table->diff->all.new.total) > largest) largest = magnitude_of(table->diff->all.new.total);
    for (size_t i = 0; i < shown; i++) {
        int64_t value = magnitude_of(table->diff->functions[i].difference);
        if (smallest == 0 || value < smallest) smallest = value;
    }
    return quantity_unit_wanted(table->unit_name, table->options->unit, smallest ? smallest : largest, largest);
}

/* --- Header ------------------------------------------------------------------------------------------------------- */

static void append_side(const struct table *table, const char *heading, const char *name, const struct diff_side *side)
{
    buffer_append_format(table->out, "%s %s", heading, value_text(table, side->total).text);
    if (table->diff->all.noise != DIFF_NOISE_UNKNOWN)
        buffer_append_format(table->out, ", %" PRIu64 " sample%s", side->total_samples,
                             side->total_samples == 1 ? "" : "s");
    buffer_append_text(table->out, "  ");
    append_printable(table->out, name);
    buffer_append_text(table->out, "\n");
}

static void append_header(const struct table *table)
{
    buffer_append_text(table->out, "Type: ");
    append_printable(table->out,
                     profile_c_string(table->profile, table->profile->value_types[table->diff->value_index].type));
    buffer_append_text(table->out, "\n");
    append_filters(table->out, table->options->filters);
    append_side(table, "Base:", table->options->base_name, &table->diff->all.base);
    append_side(table, "New: ", table->options->new_name, &table->diff->all.new);
    static const char *const noise[] = {"sampling noise unknown: the profiles do not count samples",
                                        "within sampling noise", "exceeds sampling noise"};
    const struct diff_function *all = &table->diff->all;
    struct quantity_text percent = change_text(all->difference, all->base.total);
    buffer_append_format(table->out, "Difference: %s%s%s%s, %s\n", signed_text(table, all->difference).text,
                         percent.text[0] ? " (" : "", percent.text, percent.text[0] ? ")" : "", noise[all->noise]);
    const size_t *counts = table->diff->change_counts;
    buffer_append_format(table->out, "Functions: %zu added, %zu removed, %zu grown, %zu shrunk", counts[DIFF_ADDED],
                         counts[DIFF_REMOVED], counts[DIFF_GROWN], counts[DIFF_SHRUNK]);
    size_t count = table->diff->exceeding_count;
    if (table->diff->all.noise != DIFF_NOISE_UNKNOWN)
        buffer_append_format(table->out, "; %zu exceed%s sampling noise", count, count == 1 ? "s" : "");
    buffer_append_text(table->out, "\n");
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static struct quantity_text relative_text(const struct table *table, const struct diff_function *function)
{
    if (function->change == DIFF_ADDED) return (struct quantity_text){"added"};
    if (function->change == DIFF_REMOVED) return (struct quantity_text){"removed"};
    return change_text(function->difference, compared(table, &function->base));
}

static const char *colour_of(const struct table *table, const struct diff_function *function)
{
    if (!table->options->has_colour || function->noise != DIFF_EXCEEDS_NOISE) return "";
    return function->difference > 0 ? "\033[31m" : "\033[32m";
}

static void append_row(const struct table *table, const struct diff_function *function)
{
    static const char *const noise[] = {"unknown", "within", "exceeds"};
    const char *colour = colour_of(table, function);
    buffer_append_format(table->out, "%s%10s %8s %10s %10s %8s %8s  ", colour,
                         signed_text(table, function->difference).text,
                         change_text(function->difference, table->diff->all.base.total).text,
                         value_text(table, compared(table, &function->base)).text,
                         value_text(table, compared(table, &function->new)).text, relative_text(table, function).text,
                         noise[function->noise]);
    append_shortened(table->out, function->name.index ? names_text(&table->diff->names, function->name) : "(unknown)",
                     name_width(table->options->width, NUMBERS_WIDTH));
    buffer_append_text(table->out, colour[0] ? "\033[0m\n" : "\n");
}

/* Appends a line about the functions after the first SHOWN ones. With self, the rows and this line sum up to the
 * difference of all samples. */
static void append_cut(const struct table *table, size_t shown)
{
    const struct diff *diff = table->diff;
    int64_t rest = 0;
    size_t count = 0;
    for (size_t i = shown; i < diff->count && diff->functions[i].difference != 0; i++, count++)
        rest = profile_add_values(rest, diff->functions[i].difference);
    if (count == 0) return;
    buffer_append_format(table->out, "%zu more function%s", count, count == 1 ? "" : "s");
    if (!diff->by_cumulative) buffer_append_format(table->out, " with %s", signed_text(table, rest).text);
    buffer_append_text(table->out, " not shown; --nodecount=0 shows all\n");
}

void diff_write_table(const struct profile *profile, const struct diff *diff, const struct diff_report_options *options,
                      struct buffer *out)
{
    struct table table = {.profile = profile, .diff = diff, .options = options, .out = out};
    size_t shown = shown_count(&table);
    table.unit_name = profile_c_string(profile, profile->value_types[diff->value_index].unit);
    table.unit = unit_of_table(&table, shown);
    table.has_own_units = options->unit && strcmp(options->unit, "auto") == 0;
    append_header(&table);
    if (shown == 0) return;
    buffer_append_format(out, "%10s %8s %10s %10s %8s %8s\n", "diff", "diff%", "base", "new", "change", "noise");
    for (size_t i = 0; i < shown; i++) append_row(&table, &diff->functions[i]);
    append_cut(&table, shown);
}
