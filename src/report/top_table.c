/* The hottest functions as a table, in the columns that users of pprof know.  SPDX-License-Identifier: MIT */
#include "analyze/totals.h"
#include "profile/processes.h"
#include "report/moment.h"
#include "report/quantity.h"
#include "report/text.h"
#include "report/top_report.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { NUMBERS_WIDTH = 44 }; /* characters of a row in front of the name */

struct table {
    const struct profile *profile;
    const struct top *top;
    const struct top_report_options *options;
    const char *unit_name; /* unit of the values */
    struct quantity_unit unit;
    bool has_own_units; /* each number has its own unit */
    struct buffer *out;
};

/* Returns VALUE in the unit of the column, or in its own. */
static struct quantity_text value_text(const struct table *table, int64_t value)
{
    if (table->has_own_units) return quantity_of(table->unit_name, top_report_value(table->options, value));
    return quantity_in(table->unit, value);
}

/* Returns the unit for a column of values from SMALLEST to LARGEST: the chosen one, or the one that suits them. */
static struct quantity_unit choose_unit(const struct table *table, int64_t smallest, int64_t largest)
{
    double ratio = table->options->ratio == 0 ? 1 : table->options->ratio;
    struct quantity_unit unit =
        quantity_unit_wanted(table->unit_name, table->options->unit, top_report_value(table->options, smallest),
                             top_report_value(table->options, largest));
    unit.size /= ratio;
    return unit;
}

static void append_start(const struct table *table)
{
    time_t seconds = (time_t)moment_seconds(table->profile->time_ns);
    struct tm broken_down;
    char text[64];
    if (seconds == 0 || !localtime_r(&seconds, &broken_down)) return;
    if (strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &broken_down) == 0) return;
    buffer_append_format(table->out, "Time: %s\n", text);
}

static void append_duration(const struct table *table, uint64_t duration_ns, int64_t total)
{
    if (duration_ns == 0 || duration_ns > INT64_MAX) return;
    total = top_report_value(table->options, total);
    buffer_append_format(table->out, "Duration: %s, Total samples = %s", quantity_of("ns", (int64_t)duration_ns).text,
                         quantity_of(table->unit_name, total).text);
    double total_ns = (double)total * quantity_nanoseconds(table->unit_name);
    if (total_ns > 0) buffer_append_format(table->out, " (%.1f%%)", 100 * total_ns / (double)duration_ns);
    buffer_append_text(table->out, "\n");
}

static void append_header(const struct table *table, const struct top *top)
{
    const struct profile *profile = table->profile;
    const char *file = profile_script(profile);
    if (!file[0] && profile->mappings.count > 1)
        file = base_name(profile_c_string(profile, profile->mappings.items[1].file_name));
    if (file[0]) {
        buffer_append_text(table->out, "File: ");
        append_printable(table->out, file);
        buffer_append_text(table->out, "\n");
    }
    buffer_append_text(table->out, "Type: ");
    append_printable(table->out, profile_c_string(profile, profile->value_types[top->value_index].type));
    buffer_append_text(table->out, "\n");
    append_start(table);
    append_duration(table, profile->duration_ns, top->total);
    append_filters(table->out, table->options->filters);
}

static size_t shown_count(const struct table *table, const struct top_group *thread)
{
    size_t maximum = table->options->function_max;
    return maximum && maximum < thread->function_count ? maximum : thread->function_count;
}

/* Chooses the unit by the smallest number that the table shows. */
static struct quantity_unit unit_of_table(const struct table *table, const struct top_group *thread)
{
    int64_t smallest = 0;
    for (size_t i = 0; i < shown_count(table, thread); i++) {
        const struct top_function *function = &thread->functions[i];
        int64_t value = magnitude_of(function->self ? function->self : function->total);
        if (smallest == 0 || value < smallest) smallest = value;
    }
    return choose_unit(table, smallest ? smallest : thread->total, thread->total);
}

static void append_row(const struct table *table, const struct top_group *thread, const struct top_function *function,
                       int64_t running)
{
    bool is_bold = table->options->has_colour && is_hot(function->self, thread->total);
    if (is_bold) append_bold(table->out);
    buffer_append_format(table->out, "%10s %s %s %10s %s  ", value_text(table, function->self).text,
                         quantity_percent(function->self, thread->total).text,
                         quantity_percent(running, thread->total).text, value_text(table, function->total).text,
                         quantity_percent(function->total, thread->total).text);
    append_shortened(table->out, function->name.index ? names_text(&table->top->names, function->name) : "(unknown)",
                     name_width(table->options->width, NUMBERS_WIDTH));
    if (is_bold) append_normal(table->out);
    buffer_append_text(table->out, "\n");
}

static int64_t sum_of_self(const struct top_function *functions, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (__builtin_add_overflow(sum, functions[i].self, &sum)) return INT64_MAX;
    }
    return sum;
}

static void append_cut(const struct table *table, const struct top_group *thread, size_t shown)
{
    size_t count = thread->function_count - shown;
    if (count == 0) return;
    int64_t self = sum_of_self(thread->functions + shown, count);
    buffer_append_format(table->out, "%zu more function%s with %s (%.2f%%) not shown; --nodecount=0 shows all\n", count,
                         count == 1 ? "" : "s", value_text(table, self).text,
                         thread->total ? 100 * (double)self / (double)thread->total : 0);
}

static void append_functions(struct table *table, const struct top_group *thread)
{
    size_t shown = shown_count(table, thread);
    table->unit = unit_of_table(table, thread);
    int64_t accounted = sum_of_self(thread->functions, shown);
    struct quantity_text percent = quantity_percent(accounted, thread->total);
    buffer_append_format(table->out, "Showing nodes accounting for %s, %s of %s total\n",
                         value_text(table, accounted).text, percent.text + strspn(percent.text, " "),
                         value_text(table, thread->total).text);
    buffer_append_format(table->out, "%10s %6s %6s %10s %6s\n", "flat", "flat%", "sum%", "cum", "cum%");
    int64_t running = 0;
    for (size_t i = 0; i < shown; i++) {
        const struct top_function *function = &thread->functions[i];
        if (__builtin_add_overflow(running, function->self, &running)) running = INT64_MAX;
        append_row(table, thread, function, running);
    }
    append_cut(table, thread, shown);
}

static void append_thread_name(const struct table *table, struct thread_id id)
{
    const struct thread *thread = profile_thread(table->profile, id);
    buffer_append_text(table->out, "Thread ");
    append_printable(table->out, thread->id.index ? profile_c_string(table->profile, thread->id) : "(unknown)");
    if (thread->name.index == 0) return;
    buffer_append_text(table->out, " ");
    append_printable(table->out, profile_c_string(table->profile, thread->name));
}

static void append_process_name(const struct table *table, const struct process_key *process)
{
    if (process->pid)
        buffer_append_format(table->out, "%" PRId64, process->pid);
    else if (process->name.index == 0)
        buffer_append_text(table->out, "(unknown)");
    if (process->name.index == 0) return;
    if (process->pid) buffer_append_text(table->out, " ");
    append_printable(table->out, profile_c_string(table->profile, process->name));
}

static void append_heading(const struct table *table, const struct top *top, const struct top_group *group)
{
    buffer_append_text(table->out, "\n");
    if (top->grouping == TOP_BY_PROCESS) {
        buffer_append_text(table->out, "Process ");
        append_process_name(table, &group->process);
    } else {
        append_thread_name(table, group->thread);
    }
    buffer_append_text(table->out, "\n");
    append_duration(table, group->duration_ns, group->total);
}

/* Appends a table of the processes, before the functions of each. */
static void append_processes(struct table *table, const struct top *top, size_t shown)
{
    int64_t smallest = shown ? top->groups[shown - 1].total : 0, running = 0;
    table->unit = choose_unit(table, smallest ? smallest : top->total, top->total);
    buffer_append_format(table->out, "%10s %6s %6s  process\n", "total", "total%", "sum%");
    for (size_t i = 0; i < shown; i++) {
        const struct top_group *group = &top->groups[i];
        if (__builtin_add_overflow(running, group->total, &running)) running = INT64_MAX;
        buffer_append_format(table->out, "%10s %s %s  ", value_text(table, group->total).text,
                             quantity_percent(group->total, top->total).text,
                             quantity_percent(running, top->total).text);
        append_process_name(table, &group->process);
        buffer_append_text(table->out, "\n");
    }
    size_t count = top->group_count - shown;
    if (count > 0)
        buffer_append_format(table->out, "%zu more process%s not shown; --nodecount=0 shows all\n", count,
                             count == 1 ? "" : "es");
}

void top_write_table(const struct profile *profile, const struct top *top, const struct top_report_options *options,
                     struct buffer *out)
{
    struct table table = {.profile = profile, .top = top, .options = options, .out = out};
    table.has_own_units = options->unit && strcmp(options->unit, "auto") == 0;
    size_t shown = top->group_count;
    table.unit_name = profile_c_string(profile, profile->value_types[top->value_index].unit);
    append_header(&table, top);
    if (top->grouping == TOP_BY_PROCESS) {
        if (options->function_max && options->function_max < shown) shown = options->function_max;
        append_processes(&table, top, shown);
    }
    for (size_t i = 0; i < shown; i++) {
        if (top->grouping != TOP_OF_ALL) append_heading(&table, top, &top->groups[i]);
        append_functions(&table, &top->groups[i]);
    }
}
