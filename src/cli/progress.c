/* One line, written over itself ten times a second at most.  SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include "base/clocks.h"
#include "cli/message.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS SECOND_NS
#define BETWEEN_NS ((uint64_t)100000000)
#define LONG_NS (5 * SECOND_NS)

struct progress progress_begin(const char *what)
{
    return (struct progress){.what = what, .started_ns = clock_monotonic_ns(), .is_terminal = isatty(STDERR_FILENO)};
}

static bool is_due(const struct progress *progress, uint64_t now)
{
    if (progress->is_quiet) return false;
    if (!progress->is_terminal) return progress->shown_ns == 0 && now - progress->started_ns >= LONG_NS;
    return now - progress->started_ns >= PATIENCE_NS && now - progress->shown_ns >= BETWEEN_NS;
}

void progress_step(void *context, size_t done, size_t all)
{
    struct progress *progress = context;
    uint64_t now = clock_monotonic_ns();
    if (all == 0 || !is_due(progress, now)) return;
    double within = (double)done / (double)all;
    double share = progress->part_count ? ((double)progress->part + within) / (double)progress->part_count : within;
    if (progress->is_terminal)
        (void)fprintf(stderr, "\r\033[K%s: %3.0f %%", progress->what, 100 * share);
    else
        message("%s: %.0f %% after %.0f s", progress->what, 100 * share, (double)(now - progress->started_ns) / 1e9);
    progress->shown_ns = now;
    progress->is_shown = progress->is_terminal;
    message_set_progress_shown(progress->is_shown);
}

void progress_part(struct progress *progress, size_t part, size_t count)
{
    progress->part = part;
    progress->part_count = count;
    progress_step(progress, 0, 1);
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown) (void)fputs("\r\033[K", stderr);
    progress->is_shown = false;
    message_set_progress_shown(false);
}
