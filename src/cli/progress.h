/* A line that shows how far a long work is.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PROGRESS_H
#define OFFBEAT_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* On standard error, if that is a terminal, once the work has lasted a second. */
struct progress {
    const char *what; /* "naming functions" */
    uint64_t started_ns, shown_ns;
    bool is_terminal, is_shown;
};

struct progress progress_begin(const char *what);
/* PROGRESS is a struct progress: fits where a callback wants a context. */
void progress_step(void *progress, size_t done, size_t all);
/* Takes the line away. */
void progress_end(struct progress *progress);

#endif
