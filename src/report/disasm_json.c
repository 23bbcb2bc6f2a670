/* Instructions with their costs, for programs.  SPDX-License-Identifier: MIT */
#include "report/code_report.h"
#include "report/profile_json.h"

static void write_instruction(struct code_report *all, const struct costed_instruction *at)
{
    json_begin_object(&all->json);
    json_member_hex(&all->json, "address", at->address); /* a string: many programs read numbers as doubles */
    json_member_text(&all->json, "text", at->text);
    json_member_i64(&all->json, "self", at->flat);
    json_member_i64(&all->json, "total", at->cum);
    string_write_json(&all->json, all->report->profile, "function", at->function);
    string_write_json(&all->json, all->report->profile, "file", at->file);
    json_member_i64(&all->json, "line", at->line);
    if (at->target.index != 0) string_write_json(&all->json, all->report->profile, "target", at->target);
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
    string_write_json(&all->json, all->report->profile, "name", code->name);
    string_write_json(&all->json, all->report->profile, "package", code->binary);
    json_member_i64(&all->json, "self", code->flat);
    json_member_i64(&all->json, "total", code->cum);
    json_begin_array_member(&all->json, "instructions");
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
