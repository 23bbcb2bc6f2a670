/* Source lines with their costs, in the layout of `pprof -list`.  SPDX-License-Identifier: MIT */
#include "report/code_report.h"
#include "report/text.h"

#include <inttypes.h>

struct rows {
    const struct code_report *all;
    const struct listed_function *function;
    const struct listed_line *next, *end; /* lines whose cost is not yet printed */
};

static void append_row(const struct code_report *all, int64_t number, int64_t flat, int64_t cum, struct slice text)
{
    bool is_bold = code_append_costs(all, flat, cum);
    buffer_append_format(all->out, "%6" PRId64 ":", number);
    code_append_source(all, text);
    code_append_end(all, is_bold);
}

static void append_numberless(struct rows *rows)
{
    for (; rows->next < rows->end && rows->next->number == 0; rows->next++) {
        if (rows->all->is_pprof) continue;
        bool is_bold = code_append_costs(rows->all, rows->next->flat, rows->next->cum);
        buffer_append_text(rows->all->out, "     ?:(line not known)");
        code_append_end(rows->all, is_bold);
    }
}

/* Appends costs that no source line could be printed for. */
static void append_rest(struct rows *rows)
{
    for (; rows->next < rows->end && !rows->all->is_pprof; rows->next++)
        append_row(rows->all, rows->next->number, rows->next->flat, rows->next->cum, slice_of("", 0));
}

static void append_lines(struct rows *rows)
{
    const struct code_report *all = rows->all;
    struct slice text;
    append_numberless(rows);
    for (int64_t number = rows->function->first; number > 0 && number <= rows->function->last; number++) {
        int64_t flat = 0, cum = 0;
        if (!all->source->line(all->source->context, rows->function->file, number, &text) || all->out->failed) break;
        if (rows->next < rows->end && rows->next->number == number) {
            flat = rows->next->flat;
            cum = rows->next->cum;
            rows->next++;
        }
        append_row(all, number, flat, cum, text);
    }
    append_rest(rows);
}

static void append_function(const struct code_report *all, const struct line_listing *listing,
                            const struct listed_function *function)
{
    struct rows rows = {.all = all, .function = function, .next = &listing->lines[function->line_first]};
    rows.end = rows.next + function->line_count;
    const char *problem = all->source->problem(all->source->context, function->file);
    buffer_append_text(all->out, "ROUTINE ======================== ");
    append_printable(all->out, function->name);
    buffer_append_text(all->out, " in ");
    append_printable(all->out, function->file);
    buffer_append_text(all->out, "\n");
    code_append_sums(all, function->flat, all->is_pprof ? function->cum_of_lines : function->cum);
    if (problem) {
        buffer_append_text(all->out, all->is_pprof ? " Error: " : " No source: ");
        code_append_source(all, slice_of_text(problem));
        buffer_append_text(all->out, "\n");
        append_numberless(&rows);
        append_rest(&rows);
    } else {
        append_lines(&rows);
    }
}

/* Appends a function without a file. pprof does so only if none of its code has a file. */
static void append_fileless(const struct code_report *all, const struct line_listing *listing, size_t place)
{
    const struct listed_function *function = &listing->functions[place];
    bool has_file =
        place + 1 < listing->function_count && strcmp(listing->functions[place + 1].name, function->name) == 0;
    if (all->is_pprof && has_file) return;
    buffer_append_text(all->out, all->is_pprof ? "No source information for " : "ROUTINE ======================== ");
    append_printable(all->out, function->name);
    buffer_append_text(all->out, "\n");
    if (all->is_pprof) return;
    code_append_sums(all, function->flat, function->cum);
    buffer_append_text(all->out, " No source: the profile has no file and line for this code\n");
}

void list_write_text(const struct code_report *all, const struct line_listing *listing)
{
    buffer_append_text(all->out, "Total: ");
    report_append_value(all->report, all->out, 0, all->report->total);
    buffer_append_text(all->out, "\n");
    for (size_t i = 0; i < listing->function_count && !all->out->failed; i++) {
        if (listing->functions[i].file[0] != '\0')
            append_function(all, listing, &listing->functions[i]);
        else
            append_fileless(all, listing, i);
    }
}
