/* A flame graph as a drawing.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_FLAME_REPORT_H
#define OFFBEAT_REPORT_FLAME_REPORT_H

#include "analyze/flame_layout.h"
#include "report/report.h"

enum {
    FLAME_WIDTH = 1200,             /* of the root, in pixels */
    FLAME_PARTS = FLAME_WIDTH * 10, /* boxes narrower than 0.1 pixels are left out */
    FLAME_BOXES_MAX = 5000,         /* the file stays below 1 MB with names of ordinary length */
    FLAME_DEPTH_MAX = 1000,
};

/* One SVG file that needs no other: names and tooltips without scripts; zoom, search and keyboard with them. */
void flame_write_svg(const struct report *report, const struct grouping *grouping, const struct flame_layout *layout,
                     const struct flame_options *options, struct buffer *out);

#endif
