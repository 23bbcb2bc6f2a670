/* The hottest functions as a table, in the columns that users of pprof know.  SPDX-License-Identifier: MIT */
#include "report/quantity.h"
#include "report/text.h"
#include "report/top_report.h"

#include <time.h>

/* A function that is at least so much of all is shown bold. */
enum { HOT_PERCENT = 10 };

struct table {
    const struct profile *profile;
    const struct top_report_options *options;
    const char *unit_name; /* of the values */
    struct quantity_unit unit;
    struct buffer *out;
};

static void append_start(const struct table *table)
{
    time_t seconds = (time_t)(table->profile->time_ns / 1000000000);
    struct tm broken_down;
    char text[64];
    if (seconds == 0 || !localtime_r(&seconds, &broken_down)) return;
    if (strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &broken_down) == 0) return;
    buffer_append_format(table->out, "Time: %s\n", text);
}

static void append_duration(const struct table *table, uint64_t duration_ns, int64_t total)
{
    if (duration_ns == 0 || duration_ns > INT64_MAX) return;
    buffer_append_format(table->out, "Duration: %s, Total samples = %s", quantity_of("ns", (int64_t)duration_ns).text,
                         quantity_of(table->unit_name, total).text);
    double total_ns = (double)total * quantity_nanoseconds(table->unit_name);
    if (total_ns > 0) buffer_append_format(table->out, " (%.1f%%)", 100 * total_ns / (double)duration_ns);
    buffer_append_text(table->out, "\n");
}

static void append_header(const struct table *table, const struct top *top)
{
    const struct profile *profile = table->profile;
    if (profile->mappings.count > 1 && profile->mappings.items[1].file_name.index) {
        buffer_append_text(table->out, "File: ");
        append_printable(table->out, base_name(profile_c_string(profile, profile->mappings.items[1].file_name)));
        buffer_append_text(table->out, "\n");
    }
    buffer_append_text(table->out, "Type: ");
    append_printable(table->out, profile_c_string(profile, profile->value_types[top->value_index].type));
    buffer_append_text(table->out, "\n");
    append_start(table);
    append_duration(table, profile->duration_ns, top->total);
}

static size_t shown_count(const struct table *table, const struct top_thread *thread)
{
    size_t maximum = table->options->function_max;
    return maximum && maximum < thread->function_count ? maximum : thread->function_count;
}

static int64_t without_sign(int64_t value)
{
    return value == INT64_MIN ? INT64_MAX : value < 0 ? -value : value;
}

/* Chosen from the smallest number that the table will show. */
static struct quantity_unit unit_of_table(const struct table *table, const struct top_thread *thread)
{
    int64_t smallest = 0;
    for (size_t i = 0; i < shown_count(table, thread); i++) {
        const struct top_function *function = &thread->functions[i];
        int64_t value = without_sign(function->self ? function->self : function->total);
        if (smallest == 0 || value < smallest) smallest = value;
    }
    return quantity_unit_for(table->unit_name, smallest ? smallest : thread->total, thread->total);
}

static void append_row(const struct table *table, const struct top_thread *thread, const struct top_function *function,
                       int64_t running)
{
    bool is_hot = table->options->has_colour && thread->total > 0 &&
                  (double)without_sign(function->self) * 100 >= (double)thread->total * HOT_PERCENT;
    buffer_append_format(
        table->out, "%s%10s %s %s %10s %s  ", is_hot ? "\033[1m" : "", quantity_in(table->unit, function->self).text,
        quantity_percent(function->self, thread->total).text, quantity_percent(running, thread->total).text,
        quantity_in(table->unit, function->total).text, quantity_percent(function->total, thread->total).text);
    append_printable(table->out, function->name.index ? profile_c_string(table->profile, function->name) : "(unknown)");
    buffer_append_text(table->out, is_hot ? "\033[0m\n" : "\n");
}

static int64_t sum_of_self(const struct top_function *functions, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (__builtin_add_overflow(sum, functions[i].self, &sum)) return INT64_MAX;
    }
    return sum;
}

static void append_cut(const struct table *table, const struct top_thread *thread, size_t shown)
{
    size_t count = thread->function_count - shown;
    if (count == 0) return;
    int64_t self = sum_of_self(thread->functions + shown, count);
    buffer_append_format(table->out, "%zu more function%s with %s (%.2f%%) not shown; --nodecount=0 shows all\n", count,
                         count == 1 ? "" : "s", quantity_in(table->unit, self).text,
                         thread->total ? 100 * (double)self / (double)thread->total : 0);
}

static void append_functions(struct table *table, const struct top_thread *thread)
{
    size_t shown = shown_count(table, thread);
    table->unit = unit_of_table(table, thread);
    int64_t accounted = sum_of_self(thread->functions, shown);
    struct quantity_text percent = quantity_percent(accounted, thread->total);
    buffer_append_format(table->out, "Showing nodes accounting for %s, %s of %s total\n",
                         quantity_in(table->unit, accounted).text, percent.text + strspn(percent.text, " "),
                         quantity_in(table->unit, thread->total).text);
    buffer_append_format(table->out, "%10s %6s %6s %10s %6s\n", "flat", "flat%", "sum%", "cum", "cum%");
    int64_t running = 0;
    for (size_t i = 0; i < shown; i++) {
        const struct top_function *function = &thread->functions[i];
        if (__builtin_add_overflow(running, function->self, &running)) running = INT64_MAX;
        append_row(table, thread, function, running);
    }
    append_cut(table, thread, shown);
}

static void append_thread_heading(const struct table *table, const struct top_thread *thread)
{
    const struct thread *facts = profile_thread(table->profile, thread->thread);
    buffer_append_text(table->out, "\nThread ");
    append_printable(table->out, facts->id.index ? profile_c_string(table->profile, facts->id) : "(unknown)");
    if (facts->name.index) {
        buffer_append_text(table->out, " ");
        append_printable(table->out, profile_c_string(table->profile, facts->name));
    }
    buffer_append_text(table->out, "\n");
    append_duration(table, thread->duration_ns, thread->total);
}

void top_write_table(const struct profile *profile, const struct top *top, const struct top_report_options *options,
                     struct buffer *out)
{
    struct table table = {.profile = profile, .options = options, .out = out};
    table.unit_name = profile_c_string(profile, profile->value_types[top->value_index].unit);
    append_header(&table, top);
    for (size_t i = 0; i < top->thread_count; i++) {
        if (top->by_thread) append_thread_heading(&table, &top->threads[i]);
        append_functions(&table, &top->threads[i]);
    }
}
