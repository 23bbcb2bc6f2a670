/* Source lines with their costs as one HTML file, for `pprof -weblist`. It has no script and loads nothing.
 * SPDX-License-Identifier: MIT */
#include "report/code_report.h"
#include "report/quantity.h"
#include "report/text.h"
#include "report/xml_text.h"

#include <inttypes.h>

enum { LINE_CHARACTERS = 4096 };

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Source lines</title>\n"
    "<style>\n"
    ":root{color-scheme:light dark}\n"
    "body{font-family:sans-serif;margin:1em}\n"
    "h2{font-size:1em;margin:2em 0 .3em}\n"
    "table{border-collapse:collapse;font-family:monospace}\n"
    "th,td{padding:0 .8em;text-align:right;white-space:nowrap}\n"
    "th{border-bottom:1px solid}\n"
    "td.source,th.source{text-align:left;white-space:pre;tab-size:8}\n"
    "tr.idle{opacity:.6}\n"
    "tr.hot{font-weight:bold;background:rgba(255,80,0,.18)}\n"
    "</style></head><body>\n";

static void append_text(const struct code_report *all, const char *text)
{
    append_xml(all->out, slice_of_text(text), LINE_CHARACTERS);
}

/* Tabs indent source code: they stay. */
static void append_source(const struct code_report *all, struct slice line)
{
    while (line.size > 0) {
        const uint8_t *tab = memchr(line.data, '\t', line.size);
        size_t size = tab ? (size_t)(tab - line.data) : line.size;
        append_xml(all->out, slice_of(line.data, size), LINE_CHARACTERS);
        if (tab) buffer_append_byte(all->out, '\t');
        size += tab != NULL;
        line = slice_of(line.data + size, line.size - size);
    }
}

static void append_cost(const struct code_report *all, int64_t value)
{
    buffer_append_text(all->out, "<td>");
    if (value != 0)
        report_append_value(all->report, all->out, 0, value);
    else
        buffer_append_text(all->out, ".");
    buffer_append_text(all->out, "</td>");
}

static void append_row(const struct code_report *all, int64_t number, const struct listed_line *cost, struct slice text)
{
    const char *kind = !cost ? " class=\"idle\"" : is_hot(cost->flat, all->report->total) ? " class=\"hot\"" : "";
    buffer_append_format(all->out, "<tr%s>", kind);
    append_cost(all, cost ? cost->flat : 0);
    append_cost(all, cost ? cost->cum : 0);
    if (number > 0)
        buffer_append_format(all->out, "<td>%" PRId64 "</td><td class=\"source\">", number);
    else
        buffer_append_text(all->out, "<td>?</td><td class=\"source\">(line not known)");
    append_source(all, text);
    buffer_append_text(all->out, "</td></tr>\n");
}

/* The lines that the source has, then those with a cost that it does not have. */
static void append_lines(const struct code_report *all, const struct listed_function *function,
                         const struct listed_line *next, const struct listed_line *end, bool has_source)
{
    struct slice text, none = slice_of("", 0);
    for (; next < end && next->number == 0; next++) append_row(all, 0, next, none);
    for (int64_t number = function->first; has_source && number > 0 && number <= function->last; number++) {
        if (!all->source->line(all->source->context, function->file, number, &text) || all->out->failed) break;
        bool has_cost = next < end && next->number == number;
        append_row(all, number, has_cost ? next : NULL, text);
        next += has_cost;
    }
    for (; next < end; next++) append_row(all, next->number, next, none);
}

static void append_heading(const struct code_report *all, const struct listed_function *function)
{
    int64_t cum = all->is_pprof ? function->cum_of_lines : function->cum;
    buffer_append_text(all->out, "<h2>");
    append_text(all, function->name);
    buffer_append_text(all->out, "</h2>\n<p>");
    append_text(all, function->file[0] != '\0' ? function->file : "The profile has no file and line for this code.");
    buffer_append_text(all->out, "<br>flat ");
    report_append_value(all->report, all->out, 0, function->flat);
    buffer_append_text(all->out, ", cum ");
    report_append_value(all->report, all->out, 0, cum);
    struct quantity_text share = quantity_share(cum, all->report->total);
    buffer_append_format(all->out, ", %s of the total</p>\n", share.text + strspn(share.text, " "));
}

static void append_function(const struct code_report *all, const struct line_listing *listing,
                            const struct listed_function *function)
{
    const struct listed_line *lines = &listing->lines[function->line_first];
    const char *problem = NULL;
    bool has_file = function->file[0] != '\0';
    append_heading(all, function);
    if (has_file) problem = all->source->problem(all->source->context, function->file);
    if (problem) {
        buffer_append_text(all->out, "<p>No source: ");
        append_text(all, problem);
        buffer_append_text(all->out, "</p>\n");
    }
    buffer_append_text(all->out,
                       "<table>\n<tr><th>flat</th><th>cum</th><th>line</th><th class=\"source\">source</th></tr>\n");
    append_lines(all, function, lines, lines + function->line_count, has_file && !problem);
    buffer_append_text(all->out, "</table>\n");
}

void list_write_html(const struct code_report *all, const struct line_listing *listing)
{
    const struct report *report = all->report;
    const struct value_type *type = &report->profile->value_types[report->choice.index];
    buffer_append_text(all->out, head);
    buffer_append_text(all->out, "<h1>Source lines</h1>\n<p>");
    append_text(all, report->title);
    buffer_append_text(all->out, " ");
    append_text(all, profile_c_string(report->profile, type->type));
    buffer_append_text(all->out, ", total ");
    report_append_value(report, all->out, 0, report->total);
    for (const char *const *filter = report->filters; filter && *filter; filter++) {
        buffer_append_text(all->out, "<br>");
        append_text(all, *filter);
    }
    buffer_append_text(all->out, "</p>\n");
    for (size_t i = 0; i < listing->function_count && !all->out->failed; i++)
        append_function(all, listing, &listing->functions[i]);
    buffer_append_text(all->out, "</body></html>\n");
}
