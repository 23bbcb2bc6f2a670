/* SPDX-License-Identifier: MIT */
#include "cli/report_page.h"

#include "analyze/line_listing.h"
#include "cli/browser_page.h"
#include "cli/code_source.h"
#include "cli/message.h"
#include "page/page.h"

#include <ctype.h>

static enum status encode(const struct report_request *request, const struct report *report, struct buffer *data,
                          struct error *error)
{
    struct grouping grouping;
    const struct grouping_options grouping_options = {.granularity = (enum granularity)request->granularity,
                                                      .no_inlines = request->no_inlines,
                                                      .has_columns = request->columns,
                                                      .names_places = true};
    const struct page_options options = {.title = report->title, .column = report->choice.index};
    enum status status = grouping_init(&grouping, report->profile, &grouping_options, error);
    if (status == STATUS_OK) status = page_data_encode(report->profile, &grouping, &options, data, error);
    grouping_fini(&grouping);
    return status;
}

static enum exit_status finish(enum status status, const struct error *error)
{
    if (status == STATUS_OK) return EXIT_DONE;
    message("%s", error->message);
    return EXIT_FAILED;
}

enum exit_status report_page_write(const struct report_request *request, const struct report *report,
                                   struct buffer *out)
{
    struct buffer data;
    struct error error = {0};
    buffer_init(&data, PAGE_DATA_BYTES_MAX);
    enum status status = encode(request, report, &data, &error);
    if (status == STATUS_OK) status = page_file_write(buffer_slice(&data), out, &error);
    buffer_fini(&data);
    return finish(status, &error);
}

/* --- Source lines ------------------------------------------------------------------------------------------------- */

struct shown {
    const struct report_request *request;
    const struct report *report;
};

/* An expression that only NAME matches. */
static void append_expression(const char *name, struct buffer *out)
{
    buffer_append_byte(out, '^');
    for (const char *letter = name; *letter; letter++) {
        if (isascii((unsigned char)*letter) && ispunct((unsigned char)*letter)) buffer_append_byte(out, '\\');
        buffer_append_byte(out, (uint8_t)*letter);
    }
    buffer_append(out, "$", sizeof("$"));
}

static bool has_file(const struct line_listing *listing)
{
    bool found = false;
    for (size_t i = 0; i < listing->function_count; i++) found |= listing->functions[i].file[0] != '\0';
    return found;
}

static bool write_lines(const struct shown *shown, struct report *report, const char *expression, struct buffer *out)
{
    struct error error = {0};
    struct grouping grouping;
    struct line_listing listing = {0};
    const struct grouping_options options = {.granularity = GRANULARITY_LINES,
                                             .no_inlines = shown->request->no_inlines,
                                             .keeps_objects = true,
                                             .names_places = true};
    enum status status = grouping_init(&grouping, report->profile, &options, &error);
    if (status == STATUS_OK)
        status = line_listing_init(&listing, report->profile, &grouping, expression, report->choice, &error);
    bool has_lines = status == STATUS_OK && has_file(&listing);
    if (has_lines) {
        struct code_source source;
        code_source_init(&source, shown->request, report->profile);
        struct code_report all = code_report_of(shown->request, report, &source, out);
        list_write_json(&all, &listing);
        code_source_fini(&source);
    }
    line_listing_fini(&listing);
    grouping_fini(&grouping);
    return has_lines;
}

/* As offbeat list: what each line of the function cost, and its text if the file is on this machine. */
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
    else if (request->base.count + request->diff_base.count > 0)
        message(
            "this page does not compare profiles; offbeat flame --diff-base BASE NEW -o OUT.svg draws a comparison");
    else
        return true;
    return false;
}

enum exit_status report_page_serve(const struct report_request *request, const struct report *report)
{
    const struct browser_page_options options = {.port = request->port, .opens_browser = !request->no_browser};
    struct browser_page *page = request->page;
    struct buffer data;
    struct error error = {0};
    buffer_init(&data, PAGE_DATA_BYTES_MAX);
    enum status status = encode(request, report, &data, &error);
    if (status == STATUS_OK && !page) status = browser_page_open(&options, &page, &error);
    if (status == STATUS_OK) {
        browser_page_publish(page, &data, !request->is_update);
        if (!request->is_update) show_until_end(request, report, page);
    }
    buffer_fini(&data);
    return finish(status, &error);
}
