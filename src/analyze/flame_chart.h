/* The boxes of a flamechart: what one thread did, from left to right in the order of time.
 *
 * A box is a function under one chain of callers for as long as the thread stays in it without a gap. A sample lasts
 * from its time on for as long as its value, if that is a time, but at most until the thread's next sample. If the
 * value is no time, the sample lasts until the next one; where that is much later than usual, for the usual interval.
 * The layout is linear in the number of samples and their frames; its memory is linear in the boxes that it keeps.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_FLAME_CHART_H
#define OFFBEAT_ANALYZE_FLAME_CHART_H

#include "analyze/flame_layout.h"

/* PARTS and NARROWEST of OPTIONS are about time; boxes that they leave out become boxes FLAME_MERGED where several
 * neighbours together are wide enough. A parent is before its children, which are in the order of time. START and
 * WIDTH are nanoseconds since *RET_START_NS, which is a time as samples have it. PROFILE must have times; samples of
 * other threads than THREAD are passed over. Errors as flame_layout_init. Free LAYOUT with flame_layout_fini. */
enum status flame_chart_init(struct flame_layout *layout, const struct profile *profile,
                             const struct grouping *grouping, struct thread_id thread,
                             const struct flame_options *options, uint64_t *ret_start_ns, struct error *error);

#endif
