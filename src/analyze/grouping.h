/* The frames of a profile that are one row or node: the places of the code, as coarse as a report wants them.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_GROUPING_H
#define OFFBEAT_ANALYZE_GROUPING_H

#include "analyze/names.h"

enum granularity {
    GRANULARITY_FUNCTIONS, /* functions by name alone */
    GRANULARITY_FILE_FUNCTIONS,
    GRANULARITY_FILES,
    GRANULARITY_LINES,
    GRANULARITY_ADDRESSES,
};

struct grouping_options {
    enum granularity granularity;
    bool no_inlines;         /* an inlined frame counts as the function that it was inlined into */
    bool has_columns;        /* columns, with lines and addresses */
    bool keeps_objects;      /* the same function of two mappings, or with two start lines, is two */
    bool names_unsymbolized; /* a frame without a name is called by its place, unless there are addresses */
    /* Rule of pprof: frames without a function name are one only with the same mapping and start line, also of one
     * file. */
    bool splits_nameless;
};

/* The common properties of the frames of a group. A field that the granularity does not distinguish is "" or 0. Name
 * ids belong to the grouping. */
struct group {
    struct name_id printable; /* the group's name in a report */
    struct name_id name, file;
    struct string_id object;
    uint64_t address;
    int64_t line, column, start_line;
    struct function_id function; /* mapping and function of the first frame, which reports print beside the name */
    struct mapping_id mapping;
};

struct grouping {
    struct group *items;
    size_t count, capacity;
    uint32_t *at;    /* group of each location, or the place of its groups in LISTS, marked */
    uint32_t *lists; /* groups of locations with several: their number, then the groups, innermost first */
    size_t list_size;
    struct index_table index;
    struct names names; /* strings beside the profile's: clean paths, names of locations, printable names */
};

/* PROFILE must stay as it is. STATUS_NO_MEMORY, or what names_failed says. */
enum status grouping_init(struct grouping *grouping, const struct profile *profile,
                          const struct grouping_options *options, struct error *error);
void grouping_fini(struct grouping *grouping); /* accepts {0} */

#define GROUPING_SEVERAL 0x80000000u

/* The groups of LOCATION's frames, innermost first; at least one. */
static inline const uint32_t *grouping_frames(const struct grouping *grouping, uint32_t location, uint32_t *ret_count)
{
    const uint32_t *at = &grouping->at[location];
    *ret_count = 1;
    if (!(*at & GROUPING_SEVERAL)) return at;
    at = &grouping->lists[*at & ~GROUPING_SEVERAL];
    *ret_count = at[0];
    return at + 1;
}

/* Returns the printable name of GROUP; NUL-terminated. */
static inline const char *group_name(const struct grouping *grouping, const struct group *group)
{
    return names_text(&grouping->names, group->printable);
}

#endif
