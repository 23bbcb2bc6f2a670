/* The groups that match are sorted by function, file and line; neighbours are one row.  SPDX-License-Identifier: MIT */
#include "analyze/line_listing.h"

#include "analyze/name_match.h"

#include <stdlib.h>

struct builder {
    const struct profile *profile;
    const struct grouping *grouping;
    struct value_choice choice;
    uint32_t *matches; /* groups, sorted */
    size_t match_count;
    uint32_t *row_of_group;
    struct row_cost *costs; /* costs by row; row 0 is for groups that do not match */
};

static bool group_matches(struct name_match *match, const struct names *names, struct name_id name)
{
    struct string_id string;
    if (name_is_string(names, name, &string)) return name_matches(match, string);
    return name_matches_text(match, names_slice(names, name));
}

static bool match_groups(struct builder *builder, struct name_match *match)
{
    size_t count = builder->grouping->count;
    builder->matches = calloc(count + 1, sizeof(*builder->matches));
    builder->row_of_group = calloc(count + 1, sizeof(*builder->row_of_group));
    builder->costs = calloc(count + 1, sizeof(*builder->costs));
    if (!builder->matches || !builder->row_of_group || !builder->costs) return false;
    for (uint32_t i = 0; i < count; i++) {
        bool is_match = group_matches(match, &builder->grouping->names, builder->grouping->items[i].name);
        if (is_match) builder->matches[builder->match_count++] = i;
    }
    return true;
}

static int compare_names(const struct names *names, struct name_id a, struct name_id b)
{
    return a.index == b.index ? 0 : strcmp(names_text(names, a), names_text(names, b));
}

static int compare_groups(const void *left, const void *right, void *context)
{
    const struct builder *builder = context;
    const struct group *a = &builder->grouping->items[*(const uint32_t *)left],
                       *b = &builder->grouping->items[*(const uint32_t *)right];
    const struct names *names = &builder->grouping->names;
    int order = compare_names(names, a->name, b->name);
    if (order == 0) order = compare_names(names, a->file, b->file);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

static bool is_one_function(const struct group *a, const struct group *b)
{
    return a->name.index == b->name.index && a->file.index == b->file.index;
}

static const struct group *match_at(const struct builder *builder, size_t place)
{
    return &builder->grouping->items[builder->matches[place]];
}

/* Gives the matches rows, by function and line or by function alone, and sums up what they cost. */
static bool compute_rows(struct builder *builder, bool by_line)
{
    uint32_t row = 0;
    for (size_t i = 0; i < builder->match_count; i++) {
        const struct group *group = match_at(builder, i), *before = i > 0 ? match_at(builder, i - 1) : NULL;
        bool is_same = before && is_one_function(group, before) && (!by_line || group->line == before->line);
        if (!is_same) row++;
        builder->row_of_group[builder->matches[i]] = row;
    }
    return row_costs_compute(builder->profile, builder->grouping, builder->row_of_group, row + 1, builder->choice,
                             builder->costs);
}

static void extend(struct listed_function *function, const struct group *group)
{
    if (group->line <= 0 || group->line > INT64_MAX - LISTING_MARGIN) return;
    int64_t first =
        group->start_line > 0 && group->start_line <= group->line ? group->start_line : group->line - LISTING_MARGIN;
    if (first < 1) first = 1;
    if (function->first == 0 || first < function->first) function->first = first;
    if (group->line + LISTING_MARGIN > function->last) function->last = group->line + LISTING_MARGIN;
}

static void list_lines(const struct builder *builder, struct line_listing *listing)
{
    struct listed_function *function = NULL;
    uint32_t row = 0;
    for (size_t i = 0; i < builder->match_count; i++) {
        const struct group *group = match_at(builder, i);
        if (i == 0 || !is_one_function(group, match_at(builder, i - 1))) {
            function = &listing->functions[listing->function_count++];
            *function = (struct listed_function){.name = names_text(&builder->grouping->names, group->name),
                                                 .file = names_text(&builder->grouping->names, group->file),
                                                 .line_first = listing->line_count};
        }
        extend(function, group);
        if (builder->row_of_group[builder->matches[i]] == row) continue;
        row = builder->row_of_group[builder->matches[i]];
        const struct row_cost *cost = &builder->costs[row];
        listing->lines[listing->line_count++] =
            (struct listed_line){.number = group->line > 0 ? group->line : 0, .flat = cost->flat, .cum = cost->cum};
        function->line_count++;
        function->cum_of_lines = profile_add_values(function->cum_of_lines, cost->cum);
    }
}

static bool build(struct builder *builder, struct line_listing *listing)
{
    qsort_r(builder->matches, builder->match_count, sizeof(*builder->matches), compare_groups, builder);
    if (!compute_rows(builder, true)) return false;
    size_t kept = 0;
    for (size_t i = 0; i < builder->match_count; i++) {
        uint32_t group = builder->matches[i];
        if (builder->costs[builder->row_of_group[group]].is_used)
            builder->matches[kept++] = group;
        else
            builder->row_of_group[group] = 0;
    }
    builder->match_count = kept;
    listing->functions = calloc(builder->match_count + 1, sizeof(*listing->functions));
    listing->lines = calloc(builder->match_count + 1, sizeof(*listing->lines));
    if (!listing->functions || !listing->lines) return false;
    list_lines(builder, listing);
    if (!compute_rows(builder, false)) return false;
    for (size_t i = 0; i < listing->function_count; i++) {
        listing->functions[i].flat = builder->costs[i + 1].flat;
        listing->functions[i].cum = builder->costs[i + 1].cum;
    }
    return true;
}

enum status line_listing_init(struct line_listing *listing, const struct profile *profile,
                              const struct grouping *grouping, const char *pattern, struct value_choice choice,
                              struct error *error)
{
    struct builder builder = {.profile = profile, .grouping = grouping, .choice = choice};
    struct name_match match;
    *listing = (struct line_listing){0};
    enum status status = name_match_init(&match, profile, "REGEX", pattern, error);
    if (status == STATUS_OK) {
        bool has_memory = match_groups(&builder, &match);
        if (has_memory) status = check_steps(&match.regexp, "REGEX", error);
        if (!has_memory || (status == STATUS_OK && !build(&builder, listing)))
            status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the lines of the functions");
    }
    name_match_fini(&match);
    free(builder.matches);
    free(builder.row_of_group);
    free(builder.costs);
    if (status != STATUS_OK) line_listing_fini(listing);
    return status;
}

void line_listing_fini(struct line_listing *listing)
{
    free(listing->functions);
    free(listing->lines);
    *listing = (struct line_listing){0};
}

bool line_listing_has_file(const struct line_listing *listing)
{
    for (size_t i = 0; i < listing->function_count; i++) {
        if (listing->functions[i].file[0] != '\0') return true;
    }
    return false;
}
