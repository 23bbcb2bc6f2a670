/* One line, written over itself ten times a second at most.  SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS ((uint64_t)1000000000)
#define BETWEEN_NS ((uint64_t)100000000)

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct progress progress_begin(const char *what)
{
    return (struct progress){.what = what, .started_ns = now_ns(), .is_terminal = isatty(STDERR_FILENO)};
}

void progress_step(void *context, size_t done, size_t all)
{
    struct progress *progress = context;
    if (!progress->is_terminal || all == 0) return;
    uint64_t now = now_ns();
    if (now - progress->started_ns < PATIENCE_NS || now - progress->shown_ns < BETWEEN_NS) return;
    (void)fprintf(stderr, "\r%s: %3.0f %%", progress->what, 100 * (double)done / (double)all);
    progress->shown_ns = now;
    progress->is_shown = true;
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown) (void)fputs("\r\033[K", stderr);
    progress->is_shown = false;
}
