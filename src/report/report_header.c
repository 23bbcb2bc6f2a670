/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include "base/timespec.h"
#include "profile/build_id.h"
#include "profile/processes.h"
#include "profile/units.h"
#include "report/quantity.h"
#include "report/text.h"

#include <time.h>

static void append_time(const struct report *report, struct buffer *out)
{
    time_t seconds = (time_t)(report->profile->time_ns / (int64_t)SECOND_NS);
    struct tm parts;
    char text[64];
    if (report->profile->time_ns == 0 || !localtime_r(&seconds, &parts)) return;
    if (strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &parts) > 0) buffer_append_format(out, "Time: %s\n", text);
}

static void append_duration(const struct report *report, struct buffer *out)
{
    uint64_t duration = report->profile->duration_ns;
    if (duration == 0 || duration > INT64_MAX) return;
    buffer_append_text(out, "Duration: ");
    unit_append(out, (int64_t)duration, "nanoseconds", "auto");
    buffer_append_text(out, ", Total samples = ");
    report_append_value(report, out, 0, report->total);
    buffer_append_text(out, " ");
    struct scaled_value total = unit_scale(report->total, report_value_unit(report), "nanoseconds");
    if (strcmp(total.unit, "ns") == 0 && total.value != 0 && total.value < 0x1p63)
        buffer_append_format(out, "(%s)", quantity_share((int64_t)total.value, (int64_t)duration).text);
    buffer_append_text(out, "\n");
}

static void append_line(struct buffer *out, const char *title, const char *text)
{
    if (text[0] != '\0') buffer_append_format(out, "%s%s\n", title, text);
}

void report_append_metadata(const struct report *report, struct buffer *out)
{
    const struct profile *profile = report->profile;
    const char *script = profile_script(profile);
    append_line(out, "File: ", script);
    if (!script[0] && profile->mappings.count > 1) {
        const struct mapping *program = &profile->mappings.items[1];
        append_line(out, "File: ", base_name(profile_c_string(profile, program->file_name)));
        append_line(out, "Build ID: ", profile_c_string(profile, mapping_build_text(program)));
    }
    for (size_t i = 0; i < profile->comments.count; i++) {
        const char *comment = profile_c_string(profile, profile->comments.items[i]);
        if (comment[0] != '#') buffer_append_format(out, "%s\n", comment);
    }
    const char *type = profile_c_string(profile, profile->value_types[report->choice.index].type);
    append_line(out, report->choice.is_mean ? "Type: mean_" : "Type: ", type);
    append_line(out, "Doc: ", profile_c_string(profile, profile->doc_url));
    append_time(report, out);
    append_duration(report, out);
}

/* Appends the filters; long expressions are cut. */
static void append_cut_filters(const struct report *report, struct buffer *out)
{
    enum { FILTER_BYTES_SHOWN = 80 };
    if (!report->filters || !report->filters[0]) return;
    buffer_append_text(out, "Active filters:\n");
    for (size_t i = 0; report->filters[i]; i++) {
        size_t length = strlen(report->filters[i]);
        bool is_long = length > FILTER_BYTES_SHOWN;
        buffer_append_format(out, "   %.*s%s\n", is_long ? FILTER_BYTES_SHOWN : (int)length, report->filters[i],
                             is_long ? "…" : "");
    }
}

static void append_dropped(const struct report *report, size_t count, const char *what, const char *measure,
                           double fraction, struct buffer *out)
{
    if (count == 0) return;
    double cutoff = (double)report->total * fraction;
    int64_t shown = cutoff < 0x1p62 ? magnitude_of((int64_t)cutoff) : INT64_MAX;
    buffer_append_format(out, "Dropped %zu %s%s (%s <= ", count, what, count > 1 ? "s" : "", measure);
    report_append_value(report, out, 0, shown);
    buffer_append_text(out, ")\n");
}

void report_append_header(const struct report *report, const struct trimmed_graph *trimmed, bool is_drawing,
                          struct buffer *out)
{
    const struct call_graph *graph = &trimmed->graph;
    int64_t shown = 0;
    for (size_t i = 0; i < graph->listed_count; i++)
        shown = profile_add_values(shown, node_flat(&graph->nodes[graph->listed[i]]));
    if (is_drawing || !report->is_compact) report_append_metadata(report, out);
    append_cut_filters(report, out);
    struct quantity_text share = quantity_share(shown, report->total);
    buffer_append_text(out, "Showing nodes accounting for ");
    report_append_value(report, out, 0, shown);
    buffer_append_format(out, ", %s of ", share.text + strspn(share.text, " "));
    report_append_value(report, out, 0, report->total);
    buffer_append_text(out, " total\n");
    if (report->total != 0) {
        append_dropped(report, trimmed->dropped_nodes, "node", "cum", report->trim->node_fraction, out);
        if (is_drawing)
            append_dropped(report, trimmed->dropped_edges, "edge", "freq", report->trim->edge_fraction, out);
        if (graph->listed_count > 0 && graph->listed_count < trimmed->original_count) {
            buffer_append_format(out, "Showing top %zu nodes out of %zu\n", graph->listed_count,
                                 trimmed->original_count);
        }
    }
    if (is_drawing) buffer_append_text(out, "\nSee https://git.io/JfYMW for how to read the graph\n");
}
