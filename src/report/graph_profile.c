/* The rows of a call graph as a profile: each node is a sample of one frame.  SPDX-License-Identifier: MIT */
#include "report/report.h"

void graph_write_profile(const struct graph_report *all, struct profile *profile)
{
    const struct profile *from = all->report->profile;
    const struct call_graph *graph = &all->trimmed->graph;
    profile_add_value_type(profile, "cum", all->report->unit);
    profile_add_value_type(profile, "flat", all->report->unit);
    profile->time_ns = from->time_ns;
    profile->duration_ns = from->duration_ns;
    profile->period = from->period;
    profile->period_type.type = profile_string(profile, profile_slice(from, from->period_type.type));
    profile->period_type.unit = profile_string(profile, profile_slice(from, from->period_type.unit));
    for (size_t i = 0; i < graph->listed_count; i++) {
        const struct call_node *node = &graph->nodes[graph->listed[i]];
        const struct names *names = &all->source->grouping->names;
        const struct group *group = group_of_node(&all->trimmed->graph, all->source, graph->listed[i]);
        struct function function = {.name = profile_string(profile, names_slice(names, group->name)),
                                    .file_name = profile_string(profile, names_slice(names, group->file)),
                                    .start_line = group->start_line};
        struct line line = {
            .function = profile_add_function(profile, &function), .line = group->line, .column = group->column};
        struct location_id place =
            profile_add_location(profile, &(struct location){.address = group->address}, &line, 1);
        int64_t values[] = {report_scale(all->report, node_cum(node)), report_scale(all->report, node_flat(node))};
        struct sample sample = {.stack = profile_add_stack(profile, (struct stack_id){0}, place)};
        profile_add_sample(profile, &sample, values);
    }
}
