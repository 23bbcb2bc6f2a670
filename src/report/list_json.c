/* Source lines with their costs, for programs.  SPDX-License-Identifier: MIT */
#include "report/code_report.h"

static void write_line(struct code_report *all, const struct listed_function *function, const struct listed_line *line)
{
    struct slice text;
    json_begin_object(&all->json);
    json_member_i64(&all->json, "line", line->number);
    json_member_i64(&all->json, "self", line->flat);
    json_member_i64(&all->json, "total", line->cum);
    if (function->file[0] != '\0' && all->source->line(all->source->context, function->file, line->number, &text)) {
        json_member_string(&all->json, "source", text);
    }
    json_end_object(&all->json);
}

static void write_function(struct code_report *all, const struct line_listing *listing,
                           const struct listed_function *function)
{
    json_begin_object(&all->json);
    json_member_text(&all->json, "name", function->name);
    json_member_text(&all->json, "file", function->file);
    json_member_i64(&all->json, "self", function->flat);
    json_member_i64(&all->json, "total", function->cum);
    json_begin_array_member(&all->json, "lines");
    for (size_t i = 0; i < function->line_count; i++)
        write_line(all, function, &listing->lines[function->line_first + i]);
    json_end_array(&all->json);
    json_end_object(&all->json);
}

void list_write_json(struct code_report *all, const struct line_listing *listing)
{
    code_begin_json(all);
    for (size_t i = 0; i < listing->function_count; i++) write_function(all, listing, &listing->functions[i]);
    json_end_array(&all->json);
    json_end_object(&all->json);
    buffer_append_text(all->out, "\n");
}
