/* Chooses the layout, the boxes that are kept, and the form.  SPDX-License-Identifier: MIT */
#include "cli/report_flame.h"

#include "analyze/flame_fit.h"
#include "base/environment.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/file_extension.h"
#include "cli/report_page.h"
#include "cli/thread_text.h"
#include "format/common/text_line.h"
#include "page/page.h"
#include "report/flame_report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct flame {
    const struct report_request *request;
    struct report report;
    struct grouping grouping;
    struct flame_fit fit;
    struct flame_report drawing;
    struct buffer thread_name;
    size_t boxes_max; /* 0: all */
};

/* --- Forms -------------------------------------------------------------------------------------------------------- */

static bool is_standard_output(const struct report_request *request)
{
    return !request->output.path || strcmp(request->output.path, "-") == 0;
}

bool report_flame_is_text(const struct report_request *request)
{
    if (request->output.json) return false;
    if (request->flame.form != FLAME_FORM_AUTO) return request->flame.form == FLAME_FORM_TEXT;
    return is_standard_output(request) ? isatty(STDOUT_FILENO)
                                       : text_ends_with(slice_of_text(request->output.path), ".txt");
}

bool report_flame_is_page(const struct report_request *request)
{
    if (request->output.json) return false;
    if (request->flame.form != FLAME_FORM_AUTO) return request->flame.form == FLAME_FORM_HTML;
    return !is_standard_output(request) && (text_ends_with(slice_of_text(request->output.path), ".html") ||
                                            text_ends_with(slice_of_text(request->output.path), ".htm"));
}

/* Rejects options whose work the page does itself, or cannot do. */
static bool check_page(const struct report_request *request)
{
    if (!page_is_built())
        message("this offbeat was built without its web page, because esbuild was missing; -o OUT.svg draws");
    else if (request->flame.time_order || request->flame.inverted)
        message("the page has both orders: leave out --time-order and --inverted, or use -o OUT.svg");
    else
        return true;
    return false;
}

bool report_flame_check(const struct report_request *request)
{
    bool is_page = report_flame_is_page(request);
    bool is_drawing = !request->output.json && !report_flame_is_text(request);
    if (is_page && !check_page(request)) return false;
    if (request->flame.time_order && request->flame.inverted) {
        message("--time-order and --inverted exclude each other");
    } else if (request->flame.time_order && request->inputs.diff_base.count > 0) {
        message("--time-order and --diff-base exclude each other");
    } else if (request->flame.form == FLAME_FORM_AUTO && is_drawing && !is_page &&
               !file_extension_is_promised(request->output.path, "svg")) {
        message("%s: offbeat flame does not write %s; the endings that it knows are .svg, .html and .txt",
                request->output.path, file_extension_of_picture(request->output.path));
    } else if (is_drawing && is_standard_output(request) && isatty(STDOUT_FILENO)) {
        message("a drawing is not written to a terminal; use -o OUT.svg or OUT.html, or --to text");
    } else {
        return true;
    }
    return false;
}

/* Returns the width of the terminal; COLUMNS is for text that goes elsewhere. */
static size_t text_width(void)
{
    enum { COLUMNS_MAX = 10000 };
    size_t width = output_width();
    const char *columns = environment_get("COLUMNS");
    if (width > 0 || !columns) return width;
    unsigned long number = strtoul(columns, NULL, 10);
    return number <= COLUMNS_MAX ? number : 0;
}

/* --- Layout ------------------------------------------------------------------------------------------------------- */

static void choose_options(struct flame *flame)
{
    const struct report_request *request = flame->request;
    bool is_text = report_flame_is_text(request);
    size_t usual = request->output.json ? 0 : is_text ? FLAME_TEXT_ROWS_MAX : FLAME_BOXES_MAX;
    flame->boxes_max = request->trim.node_count != UINT64_MAX ? (size_t)request->trim.node_count : usual;
    flame->fit.profile = flame->report.profile;
    flame->fit.grouping = &flame->grouping;
    flame->fit.is_chart = request->flame.time_order;
    flame->fit.options = (struct flame_options){
        .column = flame->report.choice.index,
        .is_inverted = request->flame.inverted,
        .is_diff = request->inputs.diff_base.count > 0,
        .parts = request->output.json   ? 0
                 : is_text              ? FLAME_TEXT_PARTS
                 : flame->boxes_max > 0 ? FLAME_PARTS
                                        : 0,
        .depth_max = FLAME_DEPTH_MAX,
    };
}

/* --- Flamecharts -------------------------------------------------------------------------------------------------- */

/* Chooses the only thread that the filters left, or of several the default thread, with a message. */
static enum exit_status choose_thread(struct flame *flame)
{
    const struct profile *profile = flame->report.profile;
    if (!profile->has_times) {
        message(
            "--time-order needs the times of samples, and the profile has none; a recording, a chunk, a V1 profile and "
            "perf script's text have them");
        return EXIT_WRONG_USE;
    }
    if (profile->samples.count == 0) {
        const char *thread = flame->request->filter.thread;
        if (!thread || !thread[0]) message("no samples are left to draw");
        return EXIT_NO; /* the filter has printed a line about the thread */
    }
    flame->fit.thread = profile_thread_with_samples(profile, profile_default_thread(profile));
    append_thread_name(profile, flame->fit.thread, &flame->thread_name);
    size_t count = count_threads(profile);
    if (count > 1)
        message("the flamechart is of thread %.*s, one of %zu; --thread %s chooses another: offbeat info lists them",
                SLICE_ARGUMENTS(buffer_slice(&flame->thread_name)), count,
                has_several_processes(profile) ? "PID/TID" : "NAME");
    buffer_append_byte(&flame->thread_name, '\0');
    flame->drawing.thread = (const char *)flame->thread_name.data;
    return flame->thread_name.failed ? EXIT_FAILED : EXIT_DONE;
}

/* Counts times as --from does, and percentages of the thread. */
static void place_chart(struct flame *flame)
{
    flame->drawing.start_ns = flame->fit.start_ns - flame->report.start_ns;
    flame->report.total = flame->fit.layout.boxes[0].cum;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static void write_flame(struct flame *flame, struct buffer *out)
{
    const struct report_request *request = flame->request;
    struct flame_report *drawing = &flame->drawing;
    drawing->report = &flame->report;
    drawing->grouping = &flame->grouping;
    drawing->layout = &flame->fit.layout;
    drawing->options = &flame->fit.options;
    drawing->kind = request->flame.time_order ? FLAME_CHART : flame->fit.options.is_diff ? FLAME_DIFF : FLAME_GRAPH;
    drawing->colours = (enum flame_colours)request->flame.colour_by;
    drawing->width = is_standard_output(request) ? text_width() : 0;
    drawing->has_colour = is_standard_output(request) && output_has_colour();
    if (request->output.json)
        flame_write_json(drawing, out);
    else if (report_flame_is_text(request))
        flame_write_text(drawing, out);
    else
        flame_write_svg(drawing, out);
}

static enum exit_status draw(struct flame *flame, struct buffer *out)
{
    const struct report_request *request = flame->request;
    struct error error = {0};
    const struct grouping_options grouping = report_grouping(request);
    enum status status = grouping_init(&flame->grouping, flame->report.profile, &grouping, &error);
    if (status == STATUS_OK) status = flame_fit_init(&flame->fit, flame->boxes_max, &error);
    if (status != STATUS_OK) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    if (request->flame.time_order) place_chart(flame);
    write_flame(flame, out);
    return EXIT_DONE;
}

enum exit_status report_flame(const struct report_request *request, const struct report *report, struct buffer *out)
{
    if (report_flame_is_page(request)) return report_page_write(request, report, out);
    struct flame flame = {.request = request, .report = *report, .thread_name = {.maximum = SIZE_MAX}};
    enum exit_status status = EXIT_DONE;
    choose_options(&flame);
    if (request->flame.time_order) status = choose_thread(&flame);
    if (status == EXIT_DONE) status = draw(&flame, out);
    flame_layout_fini(&flame.fit.layout);
    grouping_fini(&flame.grouping);
    buffer_fini(&flame.thread_name);
    return status;
}
