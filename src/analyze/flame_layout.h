/* The boxes of a flame graph: each is a function under one chain of callers, as wide as what was spent in it.
 * analyze/flame_chart.h lays out the same boxes in the order of time.
 *
 * The layout splits the samples below a box by the next function of their stacks, and splits only boxes that are wide
 * enough to be drawn. So its memory is linear in the number of stacks, however many ways through the code there are;
 * it does not recurse.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_FLAME_LAYOUT_H
#define OFFBEAT_ANALYZE_FLAME_LAYOUT_H

#include "analyze/grouping.h"

#define FLAME_NO_GROUP UINT32_MAX
#define FLAME_MERGED (UINT32_MAX - 1) /* neighbouring boxes of a flamechart that are too narrow */

struct flame_options {
    size_t column;      /* the value that is the width */
    bool is_diff;       /* samples with the label DIFF_BASE_LABEL "true" are the base: they have no width */
    bool is_inverted;   /* the leaf of each stack is the outermost box, its callers are inside */
    uint64_t parts;     /* boxes below one of so many equal parts of the total are left out; 0: none is */
    int64_t narrowest;  /* boxes whose WIDTH is below are left out too */
    uint32_t tie_depth; /* depth below which boxes as wide as NARROWEST are left out too; 0: none is */
    uint32_t depth_max; /* boxes below this depth are left out; 0: none is. Inverted, the work grows with it */
};

/* A box. The CUM of a parent includes boxes that are left out, no FLAT does. */
struct flame_box {
    uint32_t group;        /* FLAME_NO_GROUP: the root, which is all samples */
    uint32_t parent;       /* an earlier box; the root's is itself */
    uint32_t depth;        /* 0: the root */
    uint32_t hidden_count; /* children that are left out; of FLAME_MERGED: the boxes that it stands for */
    uint64_t start, width; /* offset from the left and width in the profile's unit; in a flamechart in nanoseconds */
    int64_t cum;           /* the value: the width, except in a flamechart */
    int64_t flat;          /* value of the stacks that end in this box */
    int64_t base;          /* CUM in the base of a comparison */
};

struct flame_layout {
    struct flame_box *boxes; /* [0] is the root; the children of a box are in order of their names from left to right */
    size_t count, capacity;
    size_t narrow_count; /* left out: too narrow, without the boxes inside them */
    int64_t narrow_sum;
    size_t deep_count; /* left out: below the maximum depth, without the boxes inside them */
    int64_t deep_sum;
    size_t removed_count; /* left out: only in the base, without the boxes inside them */
    int64_t removed_sum;  /* sum in the base */
};

/* The sum of all FLAT, NARROW_SUM and DEEP_SUM is the root's CUM: each sample is in exactly one of them.
 * STATUS_UNSUPPORTED if a value is negative, STATUS_TOO_LARGE if their sum is no 64-bit number. PROFILE and GROUPING
 * must not change meanwhile. */
enum status flame_layout_init(struct flame_layout *layout, const struct profile *profile,
                              const struct grouping *grouping, const struct flame_options *options,
                              struct error *error);
/* The value of NARROWEST that limits the same layout to its COUNT_MAX (not 0) widest boxes. 0 if it has no more boxes.
 * RET_TIE_DEPTH: of many boxes of one width as many rows as there is room for are kept; NULL: all or none of them.
 * False without memory. */
bool flame_layout_narrowest(const struct flame_layout *layout, size_t count_max, int64_t *ret_narrowest,
                            uint32_t *ret_tie_depth);
void flame_layout_fini(struct flame_layout *layout); /* accepts {0} */

#endif
