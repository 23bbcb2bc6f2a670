/* Instructions with their costs, for programs.  SPDX-License-Identifier: MIT */
#include "report/code_report.h"

#include <inttypes.h>
#include <stdio.h>

static void write_number(struct json_writer *json, const char *key, int64_t number)
{
    json_write_key(json, key);
    json_write_i64(json, number);
}

static void write_string(const struct code_report *all, struct json_writer *json, const char *key,
                         struct string_id text)
{
    json_write_key(json, key);
    json_write_string(json, profile_slice(all->report->profile, text));
}

/* A text: many programs read numbers as doubles, which would round it. */
static void write_address(struct json_writer *json, uint64_t address)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "0x%" PRIx64, address);
    json_write_key(json, "address");
    json_write_text(json, text);
}

static void write_instruction(struct code_report *all, const struct costed_instruction *at)
{
    json_begin_object(&all->json);
    write_address(&all->json, at->address);
    json_write_key(&all->json, "text");
    json_write_text(&all->json, at->text);
    write_number(&all->json, "self", at->flat);
    write_number(&all->json, "total", at->cum);
    write_string(all, &all->json, "function", at->function);
    write_string(all, &all->json, "file", at->file);
    write_number(&all->json, "line", at->line);
    if (at->target.index != 0) write_string(all, &all->json, "target", at->target);
    json_end_object(&all->json);
}

void disasm_begin(struct code_report *all, bool is_json)
{
    if (is_json) {
        code_begin_json(all);
        return;
    }
    buffer_append_text(all->out, "Total: ");
    report_append_value(all->report, all->out, 0, all->report->total);
    buffer_append_text(all->out, "\n");
}

void disasm_write_json(struct code_report *all, const struct costed_code *code)
{
    json_begin_object(&all->json);
    write_string(all, &all->json, "name", code->name);
    write_string(all, &all->json, "package", code->binary);
    write_number(&all->json, "self", code->flat);
    write_number(&all->json, "total", code->cum);
    json_write_key(&all->json, "instructions");
    json_begin_array(&all->json);
    for (size_t i = 0; i < code->count; i++) write_instruction(all, &code->items[i]);
    json_end_array(&all->json);
    json_end_object(&all->json);
}

void disasm_end(struct code_report *all, bool is_json)
{
    if (!is_json) return;
    json_end_array(&all->json);
    json_end_object(&all->json);
    buffer_append_text(all->out, "\n");
}
