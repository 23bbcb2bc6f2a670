/* Frames that stand for the labels of a sample: --tag-root and --tag-leaf.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_TAG_FRAMES_H
#define OFFBEAT_ANALYZE_TAG_FRAMES_H

#include "profile/profile.h"

enum { TAG_FRAMES_MAX = 64 };

/* Lists of label keys, separated by commas; NULL or "" for no keys. */
struct tag_frames {
    const char *root; /* frames outside of each stack, the first key outermost */
    const char *leaf; /* frames inside of each stack, the last key innermost */
    const char *unit; /* unit of numbers; NULL: as they are stored */
};

/* Gives every sample a frame for each key, as pprof does: its name is the values of the label, joined by commas, and
 * its file is the key. The name is "" if the sample has no such label. RET_HAS_ROOT and RET_HAS_LEAF: some sample has
 * one of the labels. STATUS_TOO_LARGE for more keys than TAG_FRAMES_MAX. Adds stacks to PROFILE; samples refer to
 * those. */
enum status tag_frames_add(struct profile *profile, const struct tag_frames *frames, bool *ret_has_root,
                           bool *ret_has_leaf, struct error *error);

#endif
