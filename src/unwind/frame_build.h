/* Builds a frame table in steps of at most some 100 µs, for a thread that has something else to do in between.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_FRAME_BUILD_H
#define OFFBEAT_UNWIND_FRAME_BUILD_H

#include "unwind/frame_table.h"

enum frame_build_failure {
    FRAME_BUILD_SUCCEEDED,
    FRAME_BUILD_NOTHING,   /* no function is described */
    FRAME_BUILD_TOO_LARGE, /* more functions or rows than the limits of frame_table.h */
    FRAME_BUILD_NO_MEMORY,
};

struct frame_build;

/* Copies SOURCE; the sections that it refers to must stay until frame_build_free. Returns NULL without memory. */
struct frame_build *frame_build_begin(const struct frame_table_source *source);

/* Does one step. Returns true if there is more to do. Sorting the list of functions of a module whose linker has not
 * sorted it is one step, too. */
bool frame_build_step(struct frame_build *build);

/* Moves the table to *RET_TABLE after the last step, or returns the reason why there is none. */
enum frame_build_failure frame_build_take(struct frame_build *build, struct frame_table *ret_table);

/* Frees BUILD, which may be NULL, or in the middle of its work. */
void frame_build_free(struct frame_build *build);

#endif
