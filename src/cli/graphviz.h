/* Draws DOT through the Graphviz library, which is loaded when it is needed (doc/decisions/graphviz.md).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_GRAPHVIZ_H
#define OFFBEAT_CLI_GRAPHVIZ_H

#include "base/buffer.h"
#include "base/status.h"

/* The time that Graphviz takes grows faster than the number of lines: more are rejected. */
enum { GRAPHVIZ_NODES_MAX = 500, GRAPHVIZ_EDGES_MAX = 2000, GRAPHVIZ_CPU_SECONDS_MAX = 30 };

/* Replaces the DOT in DRAWING by a picture in FORMAT. Names in the DOT may come from anywhere. Graphviz runs in a child
 * process with limits of time and memory. STATUS_UNSUPPORTED if the library is not installed. */
enum status graphviz_draw(struct buffer *drawing, const char *format, struct error *error);

#endif
