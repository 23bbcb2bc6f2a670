/* SPDX-License-Identifier: MIT */
#include "cli/report_page.h"

#include "analyze/line_listing.h"
#include "base/json_writer.h"
#include "cli/browser_page.h"
#include "cli/code_source.h"
#include "cli/message.h"
#include "cli/report_flame.h"
#include "page/page.h"

#include <ctype.h>
#include <string.h>

static enum status encode_page(const struct report_request *request, const struct report *report, struct buffer *data,
                               struct error *error)
{
    const struct page_options options = {
        .title = report->title, .column = report->choice.index, .grouping = report_grouping(request)};
    return page_data_encode(report->profile, &options, data, error);
}

bool report_is_page(const struct report_request *request)
{
    return request->kind == REPORT_VIEW || (request->kind == REPORT_FLAME && report_flame_is_page(request));
}

/* Encodes the base with the filters and names of the profile. BASE stays empty without one. */
static enum exit_status encode_base(const struct report_request *request, struct buffer *base)
{
    struct report_request of_base = *request;
    char *paths[OPTION_TEXTS_MAX];
    if (request->inputs.diff_base.count == 0) return EXIT_DONE;
    of_base.kind = REPORT_VIEW;
    of_base.browser.page_data = base;
    of_base.inputs.diff_base.count = 0;
    memcpy(paths, request->inputs.diff_base.items, sizeof(paths)); /* nobody writes to the words */
    return report_run(&of_base, paths, request->inputs.diff_base.count);
}

static enum exit_status exit_after(enum status status, const struct error *error)
{
    if (status == STATUS_OK) return EXIT_DONE;
    message("%s", error->message);
    return EXIT_FAILED;
}

enum exit_status report_page_write(const struct report_request *request, const struct report *report,
                                   struct buffer *out)
{
    struct buffer data, base;
    struct error error = {0};
    buffer_init(&data, PAGE_DATA_BYTES_MAX);
    buffer_init(&base, PAGE_DATA_BYTES_MAX);
    enum exit_status exit_status = encode_base(request, &base);
    if (exit_status == EXIT_DONE) {
        enum status status = encode_page(request, report, &data, &error);
        if (status == STATUS_OK) status = page_file_write(buffer_slice(&data), buffer_slice(&base), out, &error);
        exit_status = exit_after(status, &error);
    }
    buffer_fini(&base);
    buffer_fini(&data);
    return exit_status;
}

/* --- Source lines ------------------------------------------------------------------------------------------------- */

struct shown {
    const struct report_request *request;
    const struct report *report;
};

/* Appends an expression that only NAME matches. */
static void append_expression(const char *name, struct buffer *out)
{
    buffer_append_byte(out, '^');
    for (const char *letter = name; *letter; letter++) {
        if (isascii((unsigned char)*letter) && ispunct((unsigned char)*letter)) buffer_append_byte(out, '\\');
        buffer_append_byte(out, (uint8_t)*letter);
    }
    buffer_append(out, "$", sizeof("$"));
}

static void write_line(struct json_writer *json, const struct source_text *text, const char *file,
                       const struct listed_line *line)
{
    struct slice source;
    json_begin_object(json);
    json_member_i64(json, "line", line->number);
    json_member_i64(json, "self", line->flat);
    json_member_i64(json, "total", line->cum);
    if (text->line(text->context, file, line->number, &source)) {
        json_member_string(json, "source", source);
    }
    json_end_object(json);
}

/* Writes also the lines without a cost, which list_write_json leaves out: people read code as a whole. */
static void write_function(struct json_writer *json, const struct source_text *text, const struct line_listing *listing,
                           const struct listed_function *function)
{
    const struct listed_line *line = &listing->lines[function->line_first], *end = line + function->line_count;
    json_begin_object(json);
    json_member_text(json, "file", function->file);
    json_begin_array_member(json, "lines");
    for (; line < end && line->number == 0; line++) write_line(json, text, "", line); /* the line is not known */
    for (int64_t number = function->first; number > 0 && number <= function->last; number++) {
        const struct listed_line free = {.number = number};
        struct slice ignored;
        if (line < end && line->number == number)
            write_line(json, text, function->file, line++);
        else if (text->line(text->context, function->file, number, &ignored))
            write_line(json, text, function->file, &free);
    }
    json_end_array(json);
    json_end_object(json);
}

static void write_listing(const struct source_text *text, const struct line_listing *listing, struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    json_begin_array(&json);
    for (size_t i = 0; i < listing->function_count; i++) write_function(&json, text, listing, &listing->functions[i]);
    json_end_array(&json);
}

static bool write_lines(const struct shown *shown, const struct report *report, const char *expression,
                        struct buffer *out)
{
    struct error error = {0};
    struct grouping grouping;
    struct line_listing listing = {0};
    const struct grouping_options options = {.granularity = GRANULARITY_LINES,
                                             .no_inlines = shown->request->frames.no_inlines,
                                             .keeps_objects = true,
                                             .names_unsymbolized = true};
    enum status status = grouping_init(&grouping, report->profile, &options, &error);
    if (status == STATUS_OK)
        status = line_listing_init(&listing, report->profile, &grouping, expression, report->choice, &error);
    bool has_lines = status == STATUS_OK && line_listing_has_file(&listing);
    if (has_lines) {
        struct code_source source;
        code_source_init(&source, shown->request, report->profile);
        write_listing(&source.text, &listing, out);
        code_source_fini(&source);
    }
    line_listing_fini(&listing);
    grouping_fini(&grouping);
    return has_lines;
}

/* Writes the cost of each line of the function, as offbeat list does, and its text if the file is on this machine. */
static bool write_source(void *context, const char *name, size_t type, struct buffer *out)
{
    enum { EXPRESSION_BYTES_MAX = 1 << 16 };
    const struct shown *shown = context;
    struct report report = *shown->report;
    struct buffer expression;
    if (type >= report.profile->value_type_count) return false;
    report.choice = (struct value_choice){.index = type};
    buffer_init(&expression, EXPRESSION_BYTES_MAX);
    append_expression(name, &expression);
    bool has_lines = !expression.failed && write_lines(shown, &report, (const char *)expression.data, out);
    buffer_fini(&expression);
    return has_lines;
}

/* --- Showing ------------------------------------------------------------------------------------------------------ */

static void show_until_end(const struct report_request *request, const struct report *report, struct browser_page *page)
{
    struct shown shown = {.request = request, .report = report};
    browser_page_give_source(page, write_source, &shown);
    browser_page_wait(page);
    browser_page_give_source(page, NULL, NULL);
    browser_page_close(page);
}

bool report_page_check(const struct report_request *request)
{
    if (!page_is_built())
        message("this offbeat was built without its web page, because esbuild was missing; offbeat flame draws SVG");
    else if (request->inputs.base.count > 0)
        message("this page shows no negative values, which subtracting a base may give; --diff-base compares");
    else
        return true;
    return false;
}

static enum exit_status show_page(const struct report_request *request, const struct report *report,
                                  struct buffer *data, struct buffer *base)
{
    const struct browser_page_options options = {.port = request->browser.port,
                                                 .opens_browser = !request->browser.no_browser};
    struct browser_page *page = request->browser.page;
    struct error error = {0};
    enum status status = page ? STATUS_OK : browser_page_open(&options, &page, &error);
    if (status != STATUS_OK) return exit_after(status, &error);
    browser_page_compare(page, base);
    browser_page_publish(page, data, !request->browser.is_update);
    if (!request->browser.is_update) show_until_end(request, report, page);
    return EXIT_DONE;
}

enum exit_status report_page_serve(const struct report_request *request, const struct report *report)
{
    struct buffer data, base;
    struct error error = {0};
    if (request->browser.page_data)
        return exit_after(encode_page(request, report, request->browser.page_data, &error), &error);
    buffer_init(&data, PAGE_DATA_BYTES_MAX);
    buffer_init(&base, PAGE_DATA_BYTES_MAX);
    enum exit_status status = encode_base(request, &base);
    if (status == EXIT_DONE) status = exit_after(encode_page(request, report, &data, &error), &error);
    if (status == EXIT_DONE) status = show_page(request, report, &data, &base);
    buffer_fini(&base);
    buffer_fini(&data);
    return status;
}
