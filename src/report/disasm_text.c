/* Instructions with their costs. `pprof -disasm` prints the source location after each instruction; we print a separate
 * line with the source text before the instructions.  SPDX-License-Identifier: MIT */
#include "report/code_report.h"
#include "report/text.h"

#include <inttypes.h>

enum { PPROF_SHORT_INSTRUCTION = 40, SOURCE_COLUMN = 33 };

static bool is_same_place(const struct costed_instruction *a, const struct costed_instruction *b)
{
    return a->function.index == b->function.index && a->file.index == b->file.index && a->line == b->line;
}

static void append_string(const struct code_report *all, struct string_id string)
{
    append_printable(all->out, profile_c_string(all->report->profile, string));
}

/* "work /src/a.c:12" */
static void append_place(const struct code_report *all, const struct costed_instruction *at)
{
    if (at->function.index != 0) {
        append_string(all, at->function);
        buffer_append_text(all->out, " ");
    }
    if (at->file.index == 0) return;
    append_string(all, at->file);
    if (at->line != 0) buffer_append_format(all->out, ":%" PRId64, at->line);
}

static void append_source(const struct code_report *all, const struct costed_instruction *at)
{
    struct slice line;
    buffer_append_format(all->out, "%*s; ", SOURCE_COLUMN, "");
    if (at->function.index == 0 && at->file.index == 0)
        buffer_append_text(all->out, "(line not known)");
    else
        append_place(all, at);
    if (at->file.index != 0 &&
        all->source->line(all->source->context, profile_c_string(all->report->profile, at->file), at->line, &line)) {
        buffer_append_text(all->out, ": ");
        while (line.size > 0 && (line.data[0] == ' ' || line.data[0] == '\t'))
            line = slice_of(line.data + 1, line.size - 1);
        code_append_source(all, line);
    }
    buffer_append_text(all->out, "\n");
}

static void append_as_pprof(const struct code_report *all, const struct costed_instruction *at, bool has_place)
{
    bool is_short = strlen(at->text) < PPROF_SHORT_INSTRUCTION;
    has_place = has_place && (at->function.index != 0 || at->file.index != 0);
    if (has_place && !is_short) {
        buffer_append_format(all->out, "%74s;", "");
        append_place(all, at);
        buffer_append_text(all->out, "\n");
    }
    bool is_bold = code_append_costs(all, at->flat, at->cum);
    buffer_append_format(all->out, "%10" PRIx64 ": ", at->address);
    if (has_place && is_short) {
        buffer_append_format(all->out, "%-*s;", PPROF_SHORT_INSTRUCTION, at->text);
        append_place(all, at);
    } else {
        buffer_append_text(all->out, at->text);
    }
    code_append_end(all, is_bold);
}

void disasm_write_text(const struct code_report *all, const struct costed_code *code)
{
    static const struct costed_instruction nowhere;
    buffer_append_text(all->out, "ROUTINE ======================== ");
    append_string(all, code->name);
    if (!all->is_pprof) {
        buffer_append_text(all->out, " in ");
        append_string(all, code->binary);
    }
    buffer_append_text(all->out, "\n");
    code_append_sums(all, code->flat, all->is_pprof ? code->cum_of_rows : code->cum);
    for (size_t i = 0; i < code->count && !all->out->failed; i++) {
        const struct costed_instruction *at = &code->items[i];
        bool is_new = !is_same_place(at, i > 0 ? &code->items[i - 1] : &nowhere);
        if (all->is_pprof) {
            append_as_pprof(all, at, is_new);
            continue;
        }
        if (is_new) append_source(all, at);
        bool is_bold = code_append_costs(all, at->flat, at->cum);
        buffer_append_format(all->out, "%10" PRIx64 ": %s", at->address, at->text);
        if (at->target.index != 0) {
            buffer_append_text(all->out, " <");
            append_string(all, at->target);
            buffer_append_text(all->out, ">");
        }
        code_append_end(all, is_bold);
    }
}
