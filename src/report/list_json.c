/* Source lines with their costs, for programs.  SPDX-License-Identifier: MIT */
#include "report/code_report.h"

static void write_number(struct json_writer *json, const char *key, int64_t number)
{
    json_write_key(json, key);
    json_write_i64(json, number);
}

static void write_string(struct json_writer *json, const char *key, const char *text)
{
    json_write_key(json, key);
    json_write_text(json, text);
}

static void write_line(struct code_report *all, const struct listed_function *function, const struct listed_line *line)
{
    struct slice text;
    json_begin_object(&all->json);
    write_number(&all->json, "line", line->number);
    write_number(&all->json, "self", line->flat);
    write_number(&all->json, "total", line->cum);
    if (function->file[0] != '\0' && all->source->line(all->source->context, function->file, line->number, &text)) {
        json_write_key(&all->json, "source");
        json_write_string(&all->json, text);
    }
    json_end_object(&all->json);
}

static void write_function(struct code_report *all, const struct line_listing *listing,
                           const struct listed_function *function)
{
    json_begin_object(&all->json);
    write_string(&all->json, "name", function->name);
    write_string(&all->json, "file", function->file);
    write_number(&all->json, "self", function->flat);
    write_number(&all->json, "total", function->cum);
    json_write_key(&all->json, "lines");
    json_begin_array(&all->json);
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
