/* Filters by the names of frames.
 *
 * What the expressions say of a location is found once for each location. Everything else follows from the way of a
 * stack to its root, so one pass over the table of stacks, in which parents come before children, is enough.
 * SPDX-License-Identifier: MIT */
#include "analyze/filter.h"
#include "analyze/name_match.h"
#include "profile/stated_costs.h"

#include <stdlib.h>

enum frame_flag {
    FOCUSED = 1,
    IGNORED = 2,
    SHOWN_FROM = 4, /* show_from matches here; of a stack: here or nearer to the root */
    PRUNED = 8,     /* prune_from matches here */
};

/* A location after the filters. */
struct rest_of_location {
    struct location_id location; /* 0: hidden */
    uint8_t flags;
};

/* A stack after the filters. */
struct rest_of_stack {
    uint32_t stack;
    uint32_t pruned; /* the stack down to the innermost match of prune_from; 0: nothing matches */
    uint8_t flags;
};

enum matcher { FOCUS, IGNORE, HIDE, SHOW, SHOW_FROM, PRUNE_FROM, MATCHERS };

static const char *const option_names[MATCHERS] = {"focus", "ignore", "hide", "show", "show_from", "prune_from"};

struct frame_filter {
    struct profile *profile;
    struct name_match matches[MATCHERS];
    bool has_matched[MATCHERS];
    struct line *lines; /* frames of the location at hand */
    uint32_t line_count, line_capacity;
    struct rest_of_location *locations;
    struct rest_of_stack *stacks;
    bool hides; /* some location is hidden */
};

/* --- Locations ---------------------------------------------------------------------------------------------------- */

static bool line_matches(struct frame_filter *filter, enum matcher which, const struct line *line)
{
    if (line->function.index == 0) return false;
    const struct function *function = profile_function(filter->profile, line->function);
    return name_matches(&filter->matches[which], function->name) ||
           name_matches(&filter->matches[which], function->file_name);
}

static bool mapping_matches(struct frame_filter *filter, enum matcher which, const struct location *location)
{
    if (location->mapping.index == 0) return false;
    return name_matches(&filter->matches[which], profile_mapping(filter->profile, location->mapping)->file_name);
}

static bool location_matches(struct frame_filter *filter, enum matcher which, const struct location *location)
{
    if (!filter->matches[which].is_set) return false;
    for (uint32_t i = 0; i < filter->line_count; i++) {
        if (line_matches(filter, which, &filter->lines[i])) return true;
    }
    return mapping_matches(filter, which, location);
}

/* Keeps the lines that match, or those that do not. False if none is left. */
static bool keep_lines(struct frame_filter *filter, enum matcher which, bool keeps_matches,
                       const struct location *location)
{
    if (mapping_matches(filter, which, location)) {
        if (!keeps_matches) filter->line_count = 0;
        return filter->line_count > 0;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < filter->line_count; i++) {
        struct line line = filter->lines[i];
        bool stays = line.function.index == 0 || line_matches(filter, which, &line) == keeps_matches;
        if (stays) filter->lines[kept++] = line;
    }
    filter->line_count = kept;
    return kept > 0;
}

/* Removes the lines outside of the outermost match. */
static bool show_from(struct frame_filter *filter, const struct location *location)
{
    if (!filter->matches[SHOW_FROM].is_set) return false;
    if (mapping_matches(filter, SHOW_FROM, location)) return true;
    for (uint32_t i = filter->line_count; i-- > 0;) {
        if (!line_matches(filter, SHOW_FROM, &filter->lines[i])) continue;
        filter->line_count = i + 1;
        return true;
    }
    return false;
}

/* Removes the lines inside of the innermost match. */
static bool prune_from(struct frame_filter *filter)
{
    for (uint32_t i = 0; i < filter->line_count; i++) {
        if (filter->lines[i].function.index == 0) continue;
        struct string_id name = profile_function(filter->profile, filter->lines[i].function)->name;
        if (name.index == 0 || !name_matches(&filter->matches[PRUNE_FROM], name)) continue;
        filter->line_count -= i;
        memmove(filter->lines, filter->lines + i, filter->line_count * sizeof(*filter->lines));
        return true;
    }
    return false;
}

static bool take_lines(struct frame_filter *filter, const struct location *location)
{
    uint32_t count = location->line_count;
    if (count > filter->line_capacity) {
        struct line *grown = realloc(filter->lines, count * sizeof(*grown));
        if (!grown) return false;
        filter->lines = grown;
        filter->line_capacity = count;
    }
    if (count > 0) memcpy(filter->lines, profile_lines(filter->profile, location), count * sizeof(*filter->lines));
    filter->line_count = count;
    return true;
}

static bool filter_location(struct frame_filter *filter, struct location_id id)
{
    struct rest_of_location *rest = &filter->locations[id.index];
    struct location location = *profile_location(filter->profile, id);
    bool is_hidden = false;
    if (!take_lines(filter, &location)) return false;
    if (location_matches(filter, IGNORE, &location)) {
        rest->flags = IGNORED;
        filter->has_matched[IGNORE] = true;
    } else if (!filter->matches[FOCUS].is_set || location_matches(filter, FOCUS, &location)) {
        rest->flags = FOCUSED;
        filter->has_matched[FOCUS] = true;
    }
    if (location_matches(filter, HIDE, &location)) {
        filter->has_matched[HIDE] = true;
        is_hidden |= !keep_lines(filter, HIDE, false, &location);
    }
    if (filter->matches[SHOW].is_set) {
        bool is_shown = keep_lines(filter, SHOW, true, &location);
        filter->has_matched[SHOW] |= is_shown;
        is_hidden |= !is_shown;
    }
    if (show_from(filter, &location)) {
        filter->has_matched[SHOW_FROM] = true;
        if (!is_hidden) rest->flags |= SHOWN_FROM;
    }
    if (filter->matches[PRUNE_FROM].is_set && prune_from(filter)) {
        filter->has_matched[PRUNE_FROM] = true;
        rest->flags |= PRUNED;
    }
    filter->hides |= is_hidden;
    if (is_hidden) return true;
    bool is_same = filter->line_count == location.line_count;
    rest->location = is_same ? id : profile_add_location(filter->profile, &location, filter->lines, filter->line_count);
    return true;
}

/* --- Stacks and samples ------------------------------------------------------------------------------------------- */

static void filter_stack(struct frame_filter *filter, uint32_t index)
{
    struct stack stack = profile_stack_at(filter->profile, index);
    const struct rest_of_location *location = &filter->locations[stack.location.index];
    const struct rest_of_stack *parent = &filter->stacks[stack.parent.index];
    struct rest_of_stack rest = *parent;
    rest.flags |= location->flags;
    bool is_outside = filter->matches[SHOW_FROM].is_set && !(rest.flags & SHOWN_FROM);
    if (location->location.index != 0 && !is_outside) {
        bool is_same = parent->stack == stack.parent.index && location->location.index == stack.location.index;
        rest.stack =
            is_same ? index
                    : profile_add_stack(filter->profile, (struct stack_id){parent->stack}, location->location).index;
        if (location->flags & PRUNED) rest.pruned = rest.stack;
    }
    filter->stacks[index] = rest;
}

static bool selects_samples(const struct frame_filter *filter)
{
    return filter->matches[FOCUS].is_set || filter->matches[IGNORE].is_set || filter->matches[HIDE].is_set ||
           filter->matches[SHOW].is_set;
}

static bool is_kept(const struct frame_filter *filter, const struct rest_of_stack *rest)
{
    if (selects_samples(filter) && (!(rest->flags & FOCUSED) || rest->flags & IGNORED)) return false;
    if (filter->hides && rest->stack == 0) return false;
    return !filter->matches[SHOW_FROM].is_set || rest->flags & SHOWN_FROM;
}

static bool move_samples(struct frame_filter *filter)
{
    struct profile *profile = filter->profile;
    bool *kept = calloc(profile->samples.count + 1, sizeof(*kept));
    if (!kept) return false;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const struct rest_of_stack *rest = &filter->stacks[profile->samples.stack[i].index];
        kept[i] = is_kept(filter, rest);
        profile_set_stack(profile, i, (struct stack_id){rest->pruned ? rest->pruned : rest->stack});
    }
    profile_keep_samples(profile, kept);
    free(kept);
    return true;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static bool apply_to_profile(struct frame_filter *filter)
{
    struct profile *profile = filter->profile;
    uint32_t location_count = (uint32_t)profile->locations.count, stack_count = profile_stack_limit(profile);
    filter->locations = calloc(location_count, sizeof(*filter->locations));
    filter->stacks = calloc(stack_count, sizeof(*filter->stacks));
    if (!filter->locations || !filter->stacks) return false;
    for (uint32_t i = 1; i < location_count; i++) {
        if (!filter_location(filter, (struct location_id){i})) return false;
    }
    for (uint32_t i = 1; i < stack_count && profile->failed == STATUS_OK; i++) {
        if (profile_is_stack(profile, i)) filter_stack(filter, i);
    }
    return profile->failed == STATUS_OK && move_samples(filter);
}

static enum status compile(struct frame_filter *filter, const struct filter_options *options, struct error *error)
{
    const char *const patterns[MATCHERS] = {options->focus, options->ignore,    options->hide,
                                            options->show,  options->show_from, options->prune_from};
    for (unsigned i = 0; i < MATCHERS; i++) {
        enum status status = name_match_init(&filter->matches[i], filter->profile, option_names[i], patterns[i], error);
        if (status != STATUS_OK) return status;
    }
    filter->matches[PRUNE_FROM].simplifies = true;
    return STATUS_OK;
}

enum status filter_frames(struct profile *profile, const struct filter_options *options, struct filter_outcome *outcome,
                          struct error *error)
{
    struct frame_filter filter = {.profile = profile};
    enum status status = compile(&filter, options, error);
    bool is_set = false;
    for (unsigned i = 0; i < MATCHERS; i++) is_set |= filter.matches[i].is_set;
    if (status == STATUS_OK && is_set && !apply_to_profile(&filter)) {
        status = profile_failed(profile, error);
        if (status == STATUS_OK) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to filter");
    }
    for (unsigned i = 0; i < MATCHERS && status == STATUS_OK; i++)
        status = check_steps(&filter.matches[i].regexp, option_names[i], error);
    for (unsigned i = 0; i < MATCHERS && status == STATUS_OK; i++) {
        if (filter.matches[i].is_set && !filter.has_matched[i]) filter_note_unmatched(outcome, option_names[i]);
    }
    for (unsigned i = 0; i < MATCHERS; i++) name_match_fini(&filter.matches[i]);
    free(filter.lines);
    free(filter.locations);
    free(filter.stacks);
    return status;
}
