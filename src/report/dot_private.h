/* Functions that the files that write DOT share.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_DOT_PRIVATE_H
#define OFFBEAT_REPORT_DOT_PRIVATE_H

#include "report/report.h"

/* Appends TEXT as part of a quoted string: lines are aligned to the left. */
void dot_append_escaped(struct buffer *out, const char *text);

/* Appends boxes for the labels of NODE; ID is its number in the drawing. False if there are none. */
bool dot_append_tags(const struct graph_report *all, uint32_t node, size_t id, struct buffer *out);

#endif
