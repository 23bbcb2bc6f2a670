/* drop_frames and keep_frames. In the table of stacks a parent comes before its children, so one pass over the table
 * computes the pruned stack of each. SPDX-License-Identifier: MIT */
#include "profile/profile_prune.h"

#include "base/regexp.h"
#include "profile/profile_private.h"
#include "profile/simple_name.h"

#include <stdlib.h>

/* Steps of matching, at most: some for any profile, and so many for each byte of its names. A step takes some
 * nanoseconds, so a megabyte of names takes under a second. */
enum { PRUNE_STEPS_FREE = 1 << 25, PRUNE_STEPS_OF_BYTE = 32 };

enum match { NOT_MATCHED_YET, IS_KEPT, IS_DROPPED };

/* The rest of a stack. */
struct rest {
    uint32_t stack;
    bool has_user; /* a place where nothing matches */
    bool is_cut;   /* nothing below it stays */
};

struct pruning {
    struct profile *profile;
    struct regexp drop, keep;
    bool has_keep;
    uint8_t *matches;   /* enum match, by string: of functions with this name */
    struct rest *rests; /* rest of each stack, by stack index */
    struct line *lines; /* scratch of outer_lines */
    uint32_t line_capacity;
};

/* --- Names -------------------------------------------------------------------------------------------------------- */

static bool is_dropped(struct pruning *pruning, struct function_id id)
{
    if (id.index == 0) return false;
    struct string_id name_id = profile_function(pruning->profile, id)->name;
    uint8_t *match = &pruning->matches[name_id.index];
    if (*match == NOT_MATCHED_YET) {
        struct slice name = profile_slice(pruning->profile, name_id);
        bool drops = name.size > 0 && regexp_matches_whole(&pruning->drop, simple_name(name));
        if (drops && pruning->has_keep) drops = !regexp_matches_whole(&pruning->keep, simple_name(name));
        *match = drops ? IS_DROPPED : IS_KEPT;
    }
    return *match == IS_DROPPED;
}

/* --- Stacks ------------------------------------------------------------------------------------------------------- */

/* LOCATION with its outermost COUNT lines only. */
static struct location_id outer_lines(struct pruning *pruning, struct location_id id, uint32_t count)
{
    struct profile *profile = pruning->profile;
    struct location location = *profile_location(profile, id);
    if (count > pruning->line_capacity) {
        struct line *grown = realloc(pruning->lines, count * sizeof(*grown));
        if (!grown) {
            profile_fail(profile, STATUS_NO_MEMORY);
            return (struct location_id){0};
        }
        pruning->lines = grown;
        pruning->line_capacity = count;
    }
    memcpy(pruning->lines, profile_lines(profile, &location) + location.line_count - count,
           count * sizeof(*pruning->lines));
    return profile_add_location(profile, &location, pruning->lines, count);
}

/* The number of lines outside of the outermost dropped one; all lines if none is dropped. */
static uint32_t unmatched_lines(struct pruning *pruning, struct location_id id)
{
    const struct location *location = profile_location(pruning->profile, id);
    const struct line *lines = profile_lines(pruning->profile, location);
    uint32_t kept = 0;
    while (kept < location->line_count && !is_dropped(pruning, lines[location->line_count - 1 - kept].function)) kept++;
    return kept;
}

/* Returns the rest of stack INDEX, whose parent has been pruned. */
static struct rest prune_stack(struct pruning *pruning, uint32_t index)
{
    struct profile *profile = pruning->profile;
    struct stack stack = profile_stack_at(profile, index);
    struct rest rest = pruning->rests[stack.parent.index];
    if (rest.is_cut) return rest;
    uint32_t line_count = profile_location(profile, stack.location)->line_count;
    uint32_t kept = unmatched_lines(pruning, stack.location);
    bool has_match = kept < line_count;
    rest.is_cut = has_match && rest.has_user;
    rest.has_user |= !has_match;
    if (rest.is_cut && kept == 0) return rest;
    struct stack_id parent = {rest.stack};
    struct location_id place = has_match && kept > 0 ? outer_lines(pruning, stack.location, kept) : stack.location;
    bool is_same = parent.index == stack.parent.index && place.index == stack.location.index;
    rest.stack = is_same ? index : profile_add_stack(profile, parent, place).index;
    return rest;
}

static bool is_exhausted(const struct pruning *pruning)
{
    return pruning->drop.is_exhausted || pruning->keep.is_exhausted;
}

static void prune(struct pruning *pruning)
{
    struct profile *profile = pruning->profile;
    size_t stack_count = profile->stack_words.count;
    for (uint32_t i = 1; i < stack_count && profile->failed == STATUS_OK && !is_exhausted(pruning); i++) {
        if (profile_is_stack(profile, i)) pruning->rests[i] = prune_stack(pruning, i);
    }
    if (profile->failed != STATUS_OK || is_exhausted(pruning)) return;
    for (size_t i = 0; i < profile->samples.count; i++) {
        profile_set_stack(profile, i, (struct stack_id){pruning->rests[profile->samples.stack[i].index].stack});
    }
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static enum status compile(struct regexp *regexp, const struct profile *profile, struct string_id id, const char *what,
                           struct error *error)
{
    struct error reason = {0};
    enum status status = regexp_compile(regexp, profile_slice(profile, id), &reason);
    if (status == STATUS_OK) return status;
    return error_set(error, status, reason.offset, "%s is %s", what, reason.message);
}

enum status profile_prune(struct profile *profile, struct error *error)
{
    if (profile->drop_frames.index == 0) return STATUS_OK;
    struct pruning pruning = {.profile = profile, .has_keep = profile->keep_frames.index != 0};
    enum status status = compile(&pruning.drop, profile, profile->drop_frames, "drop_frames", error);
    if (status == STATUS_OK && pruning.has_keep)
        status = compile(&pruning.keep, profile, profile->keep_frames, "keep_frames", error);
    if (status == STATUS_OK) {
        uint64_t bytes = 0;
        for (size_t i = 1; i < profile->strings.count; i++) bytes += profile->strings.items[i].size;
        pruning.drop.steps_left = pruning.keep.steps_left = PRUNE_STEPS_FREE + bytes * PRUNE_STEPS_OF_BYTE;
        pruning.matches = calloc(profile->strings.count, sizeof(*pruning.matches));
        pruning.rests = calloc(profile->stack_words.count, sizeof(*pruning.rests));
        if (pruning.matches && pruning.rests) {
            prune(&pruning);
        } else {
            profile_fail(profile, STATUS_NO_MEMORY);
        }
        status = profile_failed(profile, error);
        if (status == STATUS_OK && is_exhausted(&pruning)) {
            status =
                error_set(error, STATUS_TOO_LARGE, 0, "drop_frames and keep_frames take too long for so many names");
        }
    }
    regexp_fini(&pruning.drop);
    regexp_fini(&pruning.keep);
    free(pruning.matches);
    free(pruning.rests);
    free(pruning.lines);
    return status;
}
