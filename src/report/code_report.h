/* Reports of the costs of source lines and instructions.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_CODE_REPORT_H
#define OFFBEAT_REPORT_CODE_REPORT_H

#include "analyze/line_listing.h"
#include "base/json_writer.h"
#include "report/report.h"

/* The text of source lines. The report reads no file itself. */
struct source_text {
    void *context;
    /* The reason why no line of FILE can be shown; NULL if there is none. Valid until the next call. */
    const char *(*problem)(void *context, const char *file);
    /* Finds the line. False if FILE has no line NUMBER. */
    bool (*line)(void *context, const char *file, int64_t number, struct slice *ret_line);
};

struct code_report {
    const struct report *report;
    const struct source_text *source;
    struct buffer *out;
    bool is_pprof;   /* layout of pprof, and nothing more */
    bool has_colour; /* hot rows are bold */
    struct json_writer json;
};

/* Write the listing as `pprof -list` prints it, as a page for a browser, and as the object described in
 * doc/man/offbeat-list.1. */
void list_write_html(const struct code_report *all, const struct line_listing *listing);
void list_write_text(const struct code_report *all, const struct line_listing *listing);
void list_write_json(struct code_report *all, const struct line_listing *listing);

struct costed_instruction {
    uint64_t address; /* address in the file */
    const char *text;
    struct string_id function, file; /* names of the innermost inlined function; "": not known */
    int64_t line;
    struct string_id target; /* the function that is called or jumped to; "": none */
    int64_t flat, cum;
};

struct costed_code {
    struct string_id name, binary;
    int64_t flat, cum;
    int64_t cum_of_rows; /* the sum of the instructions' cum, which counts recursion again */
    const struct costed_instruction *items;
    size_t count;
};

/* Write instructions as `pprof -disasm` does: begin, each function, end. */
void disasm_begin(struct code_report *all, bool is_json);
void disasm_write_text(const struct code_report *all, const struct costed_code *code);
void disasm_write_json(struct code_report *all, const struct costed_code *code);
void disasm_end(struct code_report *all, bool is_json);

/* Append parts of the text. */
void code_append_source(const struct code_report *all, struct slice line);
/* Appends "(flat, cum) 12% of Total". */
void code_append_sums(const struct code_report *all, int64_t flat, int64_t cum);
/* Appends the two columns, a 0 as "."; returns whether the row is bold, which code_append_end ends. */
bool code_append_costs(const struct code_report *all, int64_t flat, int64_t cum);
void code_append_end(const struct code_report *all, bool is_bold);
void code_begin_json(struct code_report *all);

#endif
