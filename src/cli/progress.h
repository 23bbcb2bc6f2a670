/* A line that shows how far a long work is.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PROGRESS_H
#define OFFBEAT_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* On standard error: on a terminal a line that is written over, from the first second on; elsewhere one line if the
 * work lasts over five seconds. */
struct progress {
    const char *what; /* "naming functions" */
    uint64_t started_ns, shown_ns;
    size_t part, part_count; /* steps done so far, and all; 0 of 0 for work of one step */
    bool is_terminal, is_shown, is_quiet;
};

struct progress progress_begin(const char *what);
/* PROGRESS is a struct progress: fits where a callback wants a context. DONE of ALL is within the current part. */
void progress_step(void *progress, size_t done, size_t all);
/* Begins part PART of COUNT. */
void progress_part(struct progress *progress, size_t part, size_t count);
/* Takes the line away. */
void progress_end(struct progress *progress);

#endif
