/* The way of a profile to a report in the form of pprof: total, filters, groups, graph, text.
 * SPDX-License-Identifier: MIT */
#include "cli/report_command.h"

#include "analyze/name_match.h"
#include "analyze/time_cut.h"
#include "base/file.h"
#include "base/regexp.h"
#include "cli/code_source.h"
#include "cli/graphviz.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/file_extension.h"
#include "cli/reports.h"
#include "cli/report_flame.h"
#include "cli/report_page.h"
#include "cli/report_sources.h"
#include "cli/secrets.h"
#include "cli/thread_text.h"
#include "cli/value_types.h"
#include "cli/write_profile.h"
#include "profile/escape_strings.h"
#include "profile/profile_scale.h"
#include "profile/units.h"
#include "report/profile_json.h"
#include "report/raw_report.h"
#include "report/report.h"
#include "report/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_NODES = 80, FILTER_LINES = 14 };

struct run {
    const struct report_request *request;
    struct profile *profile;
    const char *file; /* the first one */
    struct report report;
    struct trim_options trim;
    struct completeness completeness; /* REPORT_TOP */
    struct buffer filter_text;
    const char *filters[FILTER_LINES + 1];
};

static enum exit_status report_failure(const struct error *error)
{
    message("%s", error->message);
    return EXIT_FAILED;
}

/* --- Filters ------------------------------------------------------------------------------------------------------ */

static void warn_range(const char *option, const char *value)
{
    const char *equals = strchr(value, '=');
    message("%s: %s is a range of numbers, not a regular expression", option, equals ? equals + 1 : value);
}

static void message_unmatched(const struct run *run, const char *option)
{
    if (strcmp(option, "thread") == 0)
        message_unknown_thread(run->profile, run->request->filter.thread);
    else if (strcmp(option, "process") == 0)
        message("the expression of process matches nothing; offbeat info lists the processes");
    else if (strncmp(option, "tag", 3) == 0)
        message("the expression of %s matches nothing; offbeat tags lists the labels", option);
    else if (strncmp(option, "from", 4) == 0)
        message("no sample is between from and to-time; offbeat info prints the times of the first and the last one");
    else
        message("the expression of %s matches nothing; offbeat top --nodecount 0 lists all functions", option);
}

static enum exit_status filter(struct run *run)
{
    struct filter_outcome outcome;
    struct error error = {0};
    struct filter_options with_unit = run->request->filter, *options = &with_unit;
    with_unit.tag_unit = run->request->values.unit;
    enum status status = filter_apply(run->profile, options, &outcome, &error);
    if (status != STATUS_OK) {
        bool is_wrong_use = status == STATUS_MALFORMED || status == STATUS_UNSUPPORTED || status == STATUS_TOO_LARGE;
        (void)report_failure(&error);
        return is_wrong_use ? EXIT_WRONG_USE : EXIT_FAILED;
    }
    if (outcome.tag_focus_is_range) warn_range("tagfocus", options->tag_focus);
    if (outcome.tag_ignore_is_range) warn_range("tagignore", options->tag_ignore);
    for (size_t i = 0; i < outcome.unmatched_count && !run->request->browser.is_update; i++)
        message_unmatched(run, outcome.unmatched[i]);
    return EXIT_DONE;
}

/* "focus=main", for the header. */
static void list_filters(struct run *run)
{
    char times[2][32] = {"", ""};
    const struct filter_options *options = &run->request->filter;
    if (options->from_ns) (void)snprintf(times[0], sizeof(times[0]), "%gs", (double)options->from_ns / 1e9);
    if (options->to_ns) (void)snprintf(times[1], sizeof(times[1]), "%gs", (double)options->to_ns / 1e9);
    const char *const all[FILTER_LINES][2] = {
        {"focus", options->focus},
        {"ignore", options->ignore},
        {"hide", options->hide},
        {"show", options->show},
        {"show_from", options->show_from},
        {"tagfocus", options->tag_focus},
        {"tagignore", options->tag_ignore},
        {"tagshow", options->tag_show},
        {"taghide", options->tag_hide},
        {"thread", options->thread},
        {"process", options->process},
        {"from", times[0]},
        {"to-time", times[1]},
        {"span", run->request->inputs.span},
    };
    size_t places[FILTER_LINES], count = 0;
    for (size_t i = 0; i < FILTER_LINES; i++) {
        if (!all[i][1] || all[i][1][0] == '\0') continue;
        places[count++] = run->filter_text.size;
        buffer_append_format(&run->filter_text, "%s=%s", all[i][0], all[i][1]);
        buffer_append_byte(&run->filter_text, '\0');
    }
    for (size_t i = 0; i < count && !run->filter_text.failed; i++)
        run->filters[i] = (const char *)run->filter_text.data + places[i];
}

/* --- Graphs ------------------------------------------------------------------------------------------------------- */

static bool is_drawing(const struct run *run)
{
    return run->request->kind == REPORT_DOT;
}

static bool is_complete(const struct run *run)
{
    return run->request->trim.no_trim || run->request->kind == REPORT_PEEK || run->request->kind == REPORT_CALLGRIND;
}

static void choose_trim(struct run *run)
{
    const struct report_request *request = run->request;
    bool is_table = request->kind == REPORT_TABLE || request->kind == REPORT_TOPPROTO;
    size_t node_count = request->trim.node_count != UINT64_MAX ? (size_t)request->trim.node_count
                        : is_table                             ? 0
                                                               : DEFAULT_NODES;
    run->trim = (struct trim_options){
        .node_count = is_complete(run) ? 0 : node_count,
        .node_fraction = is_complete(run) ? 0 : request->trim.node_fraction,
        .edge_fraction = is_complete(run) ? 0 : request->trim.edge_fraction,
        .order = is_drawing(run)               ? ORDER_ENTROPY
                 : request->trim.by_cumulative ? ORDER_CUM
                                               : ORDER_FLAT,
        .keeps_edge_order = is_table,
        .drops_negative = request->trim.drop_negative,
        .tag_unit = request->values.unit,
    };
}

static struct grouping_options choose_grouping(const struct run *run)
{
    const struct report_request *request = run->request;
    bool by_address = request->kind == REPORT_CALLGRIND || request->frames.granularity == GRANULARITY_ADDRESSES;
    return (struct grouping_options){
        .granularity = by_address ? GRANULARITY_ADDRESSES : (enum granularity)request->frames.granularity,
        .no_inlines = request->frames.no_inlines,
        .has_columns = request->frames.columns || (by_address && !request->frames.no_inlines),
        .keeps_objects = request->kind == REPORT_CALLGRIND,
        .names_unsymbolized = !request->is_pprof,
        .splits_nameless = request->is_pprof,
    };
}

/* Returns for each listed node whether its name matches. NULL after a line on standard error. */
static bool *match_names(const struct graph_report *graph, const char *pattern, enum exit_status *ret_status)
{
    struct regexp regexp = {0};
    struct error error = {0};
    const struct call_graph *nodes = &graph->trimmed->graph;
    bool *matches = calloc(nodes->listed_count + 1, sizeof(*matches)), has_match = false;
    *ret_status = EXIT_FAILED;
    if (!matches) return NULL;
    bool is_expression = regexp_compile(&regexp, slice_of_text(pattern), &error) == STATUS_OK;
    if (!is_expression) {
        message("%s: %s", pattern, error.message);
        *ret_status = EXIT_WRONG_USE;
    }
    regexp.steps_left = EXPRESSION_STEPS_MAX;
    for (size_t i = 0; is_expression && i < nodes->listed_count; i++) {
        matches[i] = regexp_matches_within(&regexp, slice_of_text(node_name(graph, nodes->listed[i])));
        has_match |= matches[i];
    }
    if (is_expression && check_steps(&regexp, pattern, &error) != STATUS_OK) {
        message("%s", error.message);
        has_match = false;
        *ret_status = EXIT_WRONG_USE;
    } else if (is_expression && !has_match) {
        message("no function matches \"%s\"; offbeat top --nodecount 0 lists them all", pattern);
        *ret_status = EXIT_NO;
    }
    regexp_fini(&regexp);
    if (has_match) return matches;
    free(matches);
    return NULL;
}

static enum exit_status write_tree(const struct run *run, const struct graph_report *graph, struct buffer *out)
{
    enum exit_status status = EXIT_DONE;
    bool *peek = NULL;
    if (run->request->kind == REPORT_PEEK && !(peek = match_names(graph, run->request->peek, &status))) return status;
    if (run->request->output.json)
        graph_write_json(graph, peek, out);
    else
        graph_write_tree(graph, peek, out);
    free(peek);
    return EXIT_DONE;
}

static enum exit_status write_profile_to(const struct report_request *request, struct profile *profile)
{
    unsigned number = 1;
    const char *path = request->output.path ? request->output.path : "-";
    struct error error = {0};
    if (profile_failed(profile, &error) != STATUS_OK) return report_failure(&error);
    if (strcmp(path, "-") == 0 && isatty(STDOUT_FILENO)) {
        message("a profile is binary data and is not written to a terminal; use -output=FILE");
        return EXIT_WRONG_USE;
    }
    return write_profile(profile, path, &format_pprof, &number) ? EXIT_DONE : EXIT_FAILED;
}

static enum exit_status write_top_profile(const struct run *run, const struct graph_report *graph)
{
    struct profile profile;
    profile_init(&profile);
    graph_write_profile(graph, &profile);
    enum exit_status status = write_profile_to(run->request, &profile);
    profile_fini(&profile);
    return status;
}

/* DOT, or the picture that Graphviz makes of it. */
static enum exit_status write_drawing(const struct run *run, const struct graph_report *graph, struct buffer *out)
{
    const struct call_graph *nodes = &graph->trimmed->graph;
    struct error error = {0};
    const char *format = run->request->output.picture;
    if (format && (nodes->listed_count > GRAPHVIZ_NODES_MAX || nodes->sorted_count > GRAPHVIZ_EDGES_MAX)) {
        message("%zu functions and %zu calls are too many for a picture (at most %d and %d); --nodecount draws fewer, "
                "and DOT has no limit",
                nodes->listed_count, nodes->sorted_count, GRAPHVIZ_NODES_MAX, GRAPHVIZ_EDGES_MAX);
        return EXIT_FAILED;
    }
    if (run->request->output.json) {
        graph_write_json(graph, NULL, out);
        return EXIT_DONE;
    }
    graph_write_dot(graph, out);
    if (!format || out->failed || graphviz_draw(out, format, &error) == STATUS_OK) return EXIT_DONE;
    return report_failure(&error);
}

static enum exit_status write_graph_report(struct run *run, const struct graph_report *graph, struct buffer *out)
{
    bool is_integer = run->request->kind == REPORT_CALLGRIND;
    report_choose_unit(&run->report, &graph->trimmed->graph, is_integer);
    if (graph->trimmed->tags.left_out > 0)
        message("labels that appear %zu times are not in the drawing: there are too many",
                graph->trimmed->tags.left_out);
    switch (run->request->kind) {
    case REPORT_TREE:
    case REPORT_PEEK:
        return write_tree(run, graph, out);
    case REPORT_DOT:
        return write_drawing(run, graph, out);
    case REPORT_CALLGRIND:
        graph_write_callgrind(graph, out);
        return EXIT_DONE;
    case REPORT_TOPPROTO:
        return write_top_profile(run, graph);
    case REPORT_TOP:
    case REPORT_DIFF:
    case REPORT_TABLE:
    case REPORT_FLAME:
    case REPORT_VIEW:
    case REPORT_LIST:
    case REPORT_DISASM:
    case REPORT_TRACES:
    case REPORT_TAGS:
    case REPORT_COMMENTS:
    case REPORT_RAW:
    case REPORT_PROTO:
        break;
    }
    graph_write_table(graph, out);
    return EXIT_DONE;
}

static enum exit_status report_graph(struct run *run, struct buffer *out)
{
    struct error error = {0};
    struct grouping grouping;
    struct graph_source source = {0};
    struct trimmed_graph trimmed = {0};
    struct grouping_options options = choose_grouping(run);
    bool is_tree = run->request->trim.call_tree && (is_drawing(run) || run->request->kind == REPORT_CALLGRIND);
    enum exit_status exit_status = EXIT_FAILED;
    enum status status = grouping_init(&grouping, run->profile, &options, &error);
    if (status == STATUS_OK && !graph_source_init(&source, run->profile, &grouping, run->report.choice, is_tree))
        status = error_set(&error, STATUS_NO_MEMORY, 0, "not enough memory for the call graph");
    if (status == STATUS_OK) status = trim_graph(&trimmed, &source, &run->trim, &error);
    if (status == STATUS_OK) {
        struct graph_report graph = {.report = &run->report, .source = &source, .trimmed = &trimmed};
        exit_status = write_graph_report(run, &graph, out);
    } else {
        (void)report_failure(&error);
    }
    trimmed_graph_fini(&trimmed);
    graph_source_fini(&source);
    grouping_fini(&grouping);
    return exit_status;
}

/* --- Other reports ------------------------------------------------------------------------------------------------ */

static enum exit_status report_traces(struct run *run, struct buffer *out)
{
    struct error error = {0};
    struct grouping grouping;
    struct grouping_options options = choose_grouping(run);
    enum status status = grouping_init(&grouping, run->profile, &options, &error);
    if (status == STATUS_OK && run->request->output.json)
        traces_write_json(&run->report, &grouping, out);
    else if (status == STATUS_OK)
        traces_write_text(&run->report, &grouping, out);
    grouping_fini(&grouping);
    return status == STATUS_OK ? EXIT_DONE : report_failure(&error);
}

static enum exit_status report_tags(struct run *run, struct buffer *out)
{
    struct error error = {0};
    struct tag_sums sums;
    if (tag_sums_init(&sums, run->profile, run->report.choice.index, run->report.unit, &error) != STATUS_OK)
        return report_failure(&error);
    if (run->request->output.json)
        tags_write_json(&run->report, &sums, out);
    else
        tags_write_text(&run->report, &sums, out);
    if (sums.count == 0) message("the samples have no labels");
    tag_sums_fini(&sums);
    return EXIT_DONE;
}

static enum exit_status report_profile(struct run *run)
{
    double ratios[PROFILE_VALUES_MAX];
    for (size_t i = 0; i < PROFILE_VALUES_MAX; i++) ratios[i] = run->report.ratio;
    if (run->report.ratio != 1) profile_scale(run->profile, ratios);
    return write_profile_to(run->request, run->profile);
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

/* Writes profile001.svg in this folder, with the first number that no file has, as pprof does. */
static enum exit_status write_new_file(const struct report_request *request, const struct buffer *out)
{
    enum { FILES_MAX = 1000 };
    struct error error = {0};
    char path[64];
    for (int i = 1; i < FILES_MAX; i++) {
        (void)snprintf(path, sizeof(path), "profile%03d.%s", i, request->output.new_file);
        int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno == EEXIST) continue;
        if (file < 0) {
            message("cannot write %s: %s; -output=FILE writes elsewhere", path, strerror(errno));
            return EXIT_FAILED;
        }
        (void)close(file);
        if (file_write(path, buffer_slice(out), &error) != STATUS_OK) {
            message_error(path, &error, true);
            return EXIT_FAILED;
        }
        message("the report is in %s", path);
        return EXIT_DONE;
    }
    message("profile001.%s to profile999.%s exist; -output=FILE writes another file", request->output.new_file,
            request->output.new_file);
    return EXIT_FAILED;
}

/* A report that was asked for by name is written, as pprof does, whatever the file is called: x.png may contain DOT. */
static void warn_wrong_ending(const struct report_request *request)
{
    bool is_svg = request->kind == REPORT_FLAME && !report_flame_is_text(request) && !request->output.json;
    const char *format = is_svg ? "svg" : request->output.picture;
    if (request->output.is_html || (request->kind == REPORT_FLAME && report_flame_is_page(request))) format = "html";
    if (file_extension_is_promised(request->output.path, format)) return;
    message("%s contains %s, not %s", request->output.path,
            format                        ? format
            : request->kind == REPORT_DOT ? "DOT"
                                          : "text",
            file_extension_of_picture(request->output.path));
}

static enum exit_status write_text(const struct report_request *request, struct buffer *out)
{
    struct error error = {0};
    const char *path = request->output.path ? request->output.path : "-";
    if (!request->output.path && request->output.new_file && isatty(STDOUT_FILENO) && !out->failed)
        return write_new_file(request, out);
    if (strcmp(path, "-") == 0 || out->failed) return output_report(out);
    if (file_write(path, buffer_slice(out), &error) == STATUS_OK) {
        warn_wrong_ending(request);
        return EXIT_DONE;
    }
    message_error(path, &error, true);
    return EXIT_FAILED;
}

/* Returns whether the report is for people's eyes. JSON has escapes, and a profile is written with the names it has. */
static bool shows_names(const struct report_request *request)
{
    bool is_page = request->kind == REPORT_VIEW || (request->kind == REPORT_FLAME && report_flame_is_page(request));
    return !request->output.json && !is_page && request->kind != REPORT_PROTO && request->kind != REPORT_TOPPROTO;
}

static enum exit_status dispatch(struct run *run, struct buffer *out)
{
    bool opens_paths = run->request->kind == REPORT_LIST || run->request->kind == REPORT_DISASM;
    if (shows_names(run->request)) profile_escape_strings(run->profile, opens_paths);
    /* -trim_path and -source_path change the names of files in each report of pprof that has nodes. */
    enum report_kind kind = run->request->kind;
    bool has_nodes = kind != REPORT_TRACES && kind != REPORT_TAGS && kind != REPORT_RAW && kind != REPORT_PROTO;
    if (run->request->is_pprof && has_nodes) code_source_trim_paths(run->request, run->profile);
    switch (run->request->kind) {
    case REPORT_TOP:
        return report_top(run->request, &run->report, &run->completeness, out);
    case REPORT_DIFF:
        return report_diff(run->request, &run->report, run->file, out);
    case REPORT_TRACES:
        return report_traces(run, out);
    case REPORT_FLAME:
        return report_flame(run->request, &run->report, out);
    case REPORT_VIEW:
        return report_page_serve(run->request, &run->report);
    case REPORT_LIST:
        return report_list(run->request, &run->report, out);
    case REPORT_DISASM:
        return report_disasm(run->request, &run->report, run->profile, out);
    case REPORT_TAGS:
        return report_tags(run, out);
    case REPORT_COMMENTS:
        comments_write_text(&run->report, out);
        return EXIT_DONE;
    case REPORT_RAW:
        if (run->request->output.json)
            raw_write_json(run->profile, out);
        else
            raw_write_text(run->profile, out);
        return EXIT_DONE;
    case REPORT_PROTO:
        return report_profile(run);
    case REPORT_TABLE:
    case REPORT_TREE:
    case REPORT_PEEK:
    case REPORT_DOT:
    case REPORT_CALLGRIND:
    case REPORT_TOPPROTO:
        break;
    }
    return report_graph(run, out);
}

static void begin_report(struct run *run, int column)
{
    const struct report_request *request = run->request;
    const struct profile *profile = run->profile;
    const char *program =
        profile->mappings.count > 1 ? profile_c_string(profile, profile->mappings.items[1].file_name) : "";
    list_filters(run);
    choose_trim(run);
    run->report = (struct report){.profile = run->profile,
                                  .choice = {.index = (size_t)column, .is_mean = request->values.mean},
                                  .ratio = 1 / request->values.divide_by,
                                  .unit = request->values.unit,
                                  .title = base_name(program),
                                  .is_compact = request->trim.compact,
                                  .filters = run->filters,
                                  .trim = &run->trim};
}

static bool find_total(struct run *run)
{
    bool *is_base;
    bool has_memory = find_base_sets(run->profile, &is_base);
    if (has_memory)
        run->report.total = total_of_samples(run->profile, run->report.choice, is_base);
    else
        message("not enough memory for the total");
    free(is_base);
    return has_memory;
}

/* pprof ignores a unit that it does not know. */
static bool check_unit(const struct run *run, size_t column)
{
    static const char *const known[] = {"minimum", "auto", "nanoseconds", "bytes", "gcu"};
    const char *wanted = run->request->values.unit;
    const char *own = profile_c_string(run->profile, run->profile->value_types[column].unit);
    bool is_known = run->request->is_pprof || unit_ratio(own, wanted) > 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) is_known |= unit_ratio(known[i], wanted) > 0;
    if (!is_known)
        message("--unit: no unit \"%s\"; there are ns us ms s hrs, B kB MB GB TB PB, minimum and auto", wanted);
    return is_known;
}

static bool shows_stacks(const struct report_request *request)
{
    bool is_tree = request->trim.call_tree && (request->kind == REPORT_DOT || request->kind == REPORT_CALLGRIND);
    return is_tree || request->kind == REPORT_TRACES || request->kind == REPORT_RAW || request->kind == REPORT_PROTO ||
           request->kind == REPORT_FLAME || request->kind == REPORT_VIEW;
}

/* Reports that show what a file states are exact. WAS_STATED: before the filters. */
static void warn_estimates(const struct run *run, bool was_stated)
{
    const struct profile *profile = run->profile;
    if (run->request->browser.is_update || !profile->has_estimated_stacks) return;
    if (shows_stacks(run->request))
        message("the stacks are estimated: the file states the costs of functions and calls, and has no stacks");
    else if (was_stated && !profile->stated)
        message("the costs are estimated: a filter needs stacks, and the file states only the costs of functions and "
                "calls");
}

/* Adds to the report what its sources lack; a person reads it on standard error. */
static void add_omissions(const struct run *run, struct buffer *out)
{
    struct json_writer json;
    if (run->profile->omissions.count == 0 || !json_reopen_object(out, &json)) return;
    omissions_write_json(&json, run->profile);
    json_end_object(&json);
    buffer_append_byte(out, '\n');
}

static enum exit_status run_report(struct run *run)
{
    enum report_kind kind = run->request->kind;
    bool has_own_output = kind == REPORT_PROTO || kind == REPORT_TOPPROTO || kind == REPORT_VIEW;
    int column =
        choose_value_type(run->profile, run->request->values.running ? "cpu" : run->request->values.value_type);
    if (column < 0 || !check_unit(run, (size_t)column)) return EXIT_WRONG_USE;
    begin_report(run, column);
    if (run->request->flame.time_order) run->report.start_ns = times_origin_ns(run->profile);
    if (!run->request->trim.relative && !find_total(run)) return EXIT_FAILED;
    bool was_stated = run->profile->stated;
    enum exit_status status = filter(run);
    if (status != EXIT_DONE) return status;
    if (run->request->trim.relative && !find_total(run)) return EXIT_FAILED;
    warn_estimates(run, was_stated);
    struct buffer out;
    buffer_init(&out, REPORT_BYTES_MAX);
    status = dispatch(run, &out);
    bool has_text = status == EXIT_DONE || (status == EXIT_NO && run->request->kind == REPORT_DIFF);
    if (has_text && run->request->output.json) add_omissions(run, &out);
    if (has_text && !has_own_output) {
        enum exit_status written = write_text(run->request, &out);
        if (written != EXIT_DONE) status = written;
    }
    buffer_fini(&out);
    return status;
}

static bool is_to_terminal(const struct report_request *request)
{
    return (!request->output.path || strcmp(request->output.path, "-") == 0) && isatty(STDOUT_FILENO);
}

static bool check(const struct report_request *request)
{
    if (request->inputs.base.count > 0 && request->inputs.diff_base.count > 0) {
        message("--base and --diff-base exclude each other");
    } else if (request->inputs.normalize && request->inputs.base.count + request->inputs.diff_base.count == 0) {
        message("--normalize needs a base: --base FILE or --diff-base FILE");
    } else if (request->inputs.base.count + request->inputs.diff_base.count > 0 &&
               (request->filter.from_ns || request->filter.to_ns)) {
        message("--from and --to-time are times of one profile, and cannot be used with a base");
    } else if (request->inputs.span_file && !request->inputs.span) {
        message("--span-file needs --span ID, or --span transaction");
    } else if (request->inputs.span && request->inputs.base.count + request->inputs.diff_base.count > 0) {
        message("--span is of one profile, and cannot be used with a base");
    } else if (request->output.picture && !request->output.new_file && is_to_terminal(request)) {
        message("a picture is not written to a terminal; use -o OUT.%s", request->output.picture);
    } else if (request->values.divide_by == 0) {
        message("cannot divide by 0");
    } else {
        return request->kind == REPORT_FLAME  ? report_flame_check(request)
               : request->kind == REPORT_VIEW ? report_page_check(request)
                                              : true;
    }
    return false;
}

/* Frames that the profile asks to drop may show that a stack is complete. */
static void find_completeness(struct run *run)
{
    struct error error = {0};
    if (completeness_compute(run->profile, &run->completeness, &error) != STATUS_OK)
        message("cannot compute how complete the profile is: %s", error.message);
}

enum exit_status report_run_opened(struct report_request *request, const char *file, struct profile *profile)
{
    if (!check(request)) return EXIT_WRONG_USE;
    struct run run = {.request = request, .profile = profile, .file = file, .filter_text = {.maximum = SIZE_MAX}};
    if (request->kind == REPORT_TOP && !request->output.json) find_completeness(&run);
    enum exit_status status = EXIT_FAILED;
    if (report_prepare(request, profile)) status = run_report(&run);
    buffer_fini(&run.filter_text);
    return status;
}

enum exit_status report_run(struct report_request *request, char *const *files, size_t count)
{
    if (!check(request)) return EXIT_WRONG_USE;
    request->names.compares |= count + request->inputs.base.count + request->inputs.diff_base.count > 1;
    struct profile profile;
    profile_init(&profile);
    enum exit_status status = EXIT_FAILED;
    if (report_open(request, files, count, &profile)) status = report_cut_to_span(request, files, count, &profile);
    if (status == EXIT_DONE) status = report_run_opened(request, without_secrets(files[0]), &profile);
    profile_fini(&profile);
    return status;
}
