/* Sums over tables, each in one pass: a parent is ahead of its children.  SPDX-License-Identifier: MIT */
#include "profile/profile_extent.h"

#include <inttypes.h>
#include <stdlib.h>

static uint64_t frames_max(uint64_t source_bytes)
{
    return EXTENT_FRAMES_FREE + source_bytes * EXTENT_FRAMES_OF_BYTE;
}

static enum status reject(uint64_t most, const char *what, struct error *error)
{
    return error_set(error, STATUS_TOO_LARGE, 0, "its stacks have more than %" PRIu64 " frames%s", most, what);
}

static uint32_t frames_at(const struct profile *profile, uint32_t stack)
{
    uint32_t lines = profile->locations.items[profile->stack_words.items[stack]].line_count;
    return lines > 1 ? lines : 1;
}

/* Most profiles have no location with many inlined functions, and then nothing is to be counted. */
static bool has_long_location(const struct profile *profile)
{
    for (size_t i = 0; i < profile->locations.count; i++) {
        if (profile->locations.items[i].line_count > EXTENT_LINES_FREE) return true;
    }
    return false;
}

enum status profile_check_inlined(const struct profile *profile, uint64_t source_bytes, struct error *error)
{
    uint64_t count = 0, most = frames_max(source_bytes);
    if (!has_long_location(profile)) return STATUS_OK;
    for (uint32_t i = 1; i < profile->stack_words.count && count <= most; i++) {
        if (profile_is_stack(profile, i)) count += frames_at(profile, i);
    }
    return count > most ? reject(most, ", inlined functions included", error) : STATUS_OK;
}

enum status profile_check_flat(const struct profile *profile, bool stacks_once, struct error *error)
{
    uint64_t count = 0, most = frames_max(profile->source_bytes);
    if (profile->source_bytes == 0) return STATUS_OK;
    uint32_t *depths = calloc(profile->stack_words.count, sizeof(*depths));
    if (!depths) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    for (uint32_t i = 1; i < profile->stack_words.count; i++) {
        if (!profile_is_stack(profile, i)) continue;
        if (__builtin_add_overflow(depths[profile_parent_at(profile, i)], frames_at(profile, i), &depths[i])) {
            depths[i] = UINT32_MAX;
        }
    }
    for (size_t i = 0; i < profile->samples.count && count <= most; i++) {
        uint32_t *depth = &depths[profile->samples.stack[i].index];
        count += *depth;
        if (stacks_once) *depth = 0;
    }
    free(depths);
    return count > most ? reject(most, " when they are written with all their callers", error) : STATUS_OK;
}
