/* Eight threads compute reports on one profile and one grouping. ThreadSanitizer makes the program exit with 66 if it
 * has found a data race; the sizes of the profile's tables show whether a report has added something.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "analyze/call_graph.h"
#include "analyze/completeness.h"
#include "analyze/diff.h"
#include "analyze/flame_layout.h"
#include "analyze/line_listing.h"
#include "analyze/summary.h"
#include "analyze/tag_sums.h"
#include "analyze/top.h"
#include "analyze/totals.h"
#include "stacks.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 4, COLUMN = 1 };

static struct profile filled;
static struct grouping shared_grouping;
static pthread_barrier_t start;

typedef bool (*compute_report)(const struct profile *profile, const struct grouping *grouping);

static void begin(void)
{
    grouping_fini(&shared_grouping);
    profile_fini(&filled);
    stacks_begin(&filled);
    for (int i = 0; i < 200; i++) {
        char frames[STACK_TEXT_BYTES];
        (void)snprintf(frames, sizeof(frames), "main f%d<inlined%d ? g%d", i % 7, i % 3, i);
        struct label label = {.key = profile_text(&filled, i % 2 ? "request" : DIFF_BASE_LABEL),
                              .text = profile_text(&filled, i % 2 ? "a" : "true")};
        struct sample sample = {.stack = stacks_add(&filled, frames), .labels = profile_add_labels(&filled, &label, 1)};
        profile_add_sample(&filled, &sample, (const int64_t[]){1, i + 1});
    }
    CHECK_INT(profile_failed(&filled, NULL), STATUS_OK);
}

/* --- The reports -------------------------------------------------------------------------------------------------- */

static bool compute_graph(const struct profile *profile, const struct grouping *grouping, bool is_tree)
{
    struct graph_source source;
    struct call_graph graph = {0};
    const struct value_choice choice = {.index = COLUMN};
    bool is_done = graph_source_init(&source, profile, grouping, choice, is_tree) &&
                   call_graph_build(&graph, &source, NULL, false) && call_graph_link(&graph, &source, false) &&
                   graph.listed_count > 0;
    call_graph_fini(&graph);
    graph_source_fini(&source);
    return is_done;
}

static bool graph(const struct profile *profile, const struct grouping *grouping)
{
    return compute_graph(profile, grouping, false);
}

static bool tree(const struct profile *profile, const struct grouping *grouping)
{
    return compute_graph(profile, grouping, true);
}

static bool flame(const struct profile *profile, const struct grouping *grouping)
{
    struct flame_layout layout = {0};
    const struct flame_options options = {.column = COLUMN};
    bool is_done = flame_layout_init(&layout, profile, grouping, &options, NULL) == STATUS_OK && layout.count > 1;
    flame_layout_fini(&layout);
    return is_done;
}

static bool listing(const struct profile *profile, const struct grouping *grouping)
{
    struct line_listing lines = {0};
    const struct value_choice choice = {.index = COLUMN};
    bool is_done =
        line_listing_init(&lines, profile, grouping, "main", choice, NULL) == STATUS_OK && lines.function_count > 0;
    line_listing_fini(&lines);
    return is_done;
}

static bool tags(const struct profile *profile, const struct grouping *grouping)
{
    (void)grouping;
    struct tag_sums sums = {0};
    bool is_done = tag_sums_init(&sums, profile, COLUMN, "auto", NULL) == STATUS_OK && sums.count == 2;
    tag_sums_fini(&sums);
    return is_done;
}

static bool summary(const struct profile *profile, const struct grouping *grouping)
{
    (void)grouping;
    struct summary result = {0};
    struct completeness completeness;
    bool is_done = summary_compute(profile, &result, NULL) == STATUS_OK && result.entry_count == 200 &&
                   completeness_compute(profile, &completeness, NULL) == STATUS_OK;
    summary_fini(&result);
    return is_done;
}

/* Lines with the names of places, which the profile does not have. */
static bool top(const struct profile *profile, const struct grouping *grouping)
{
    (void)grouping;
    struct top result = {0};
    const struct top_options options = {.value_index = COLUMN, .granularity = GRANULARITY_LINES};
    bool is_done = top_compute(profile, &options, &result, NULL) == STATUS_OK && result.groups[0].function_count > 200;
    top_fini(&result);
    return is_done;
}

static bool diff(const struct profile *profile, const struct grouping *grouping)
{
    (void)grouping;
    struct diff result = {0};
    const struct diff_options options = {.value_index = COLUMN, .granularity = GRANULARITY_LINES, .level = 0.01};
    bool is_done = diff_compute(profile, &options, &result, NULL) == STATUS_OK && result.change_counts[DIFF_ADDED] > 0;
    diff_fini(&result);
    return is_done;
}

/* --- The threads -------------------------------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    const compute_report *reports;
    size_t report_count, first;
    bool has_failed;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    (void)pthread_barrier_wait(&start);
    for (size_t i = 0; i < ROUNDS * worker->report_count; i++) {
        compute_report report = worker->reports[(worker->first + i) % worker->report_count];
        if (!report(&filled, &shared_grouping)) worker->has_failed = true;
    }
    return NULL;
}

static void compute_in_threads(const compute_report *reports, size_t count)
{
    struct worker workers[THREADS];
    CHECK_INT(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.reports = reports, .report_count = count, .first = i};
        /* Without all threads the barrier never opens: the others cannot be joined. */
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) abort();
    }
    for (size_t i = 0; i < THREADS; i++) (void)pthread_join(workers[i].thread, NULL);
    (void)pthread_barrier_destroy(&start);
    for (size_t i = 0; i < THREADS; i++) CHECK(!workers[i].has_failed);
}

TEST(eight_threads_compute_reports_with_one_grouping)
{
    static const compute_report reports[] = {graph, tree, flame, listing, tags, summary, top, diff};
    const struct grouping_options options = {.granularity = GRANULARITY_LINES, .names_unsymbolized = true};
    begin();
    size_t string_count = filled.strings.count, stack_count = profile_stack_limit(&filled);
    CHECK_INT(grouping_init(&shared_grouping, &filled, &options, NULL), STATUS_OK);
    CHECK(shared_grouping.names.added.strings.count > 1); /* a child needs no further names */
    compute_in_threads(reports, sizeof(reports) / sizeof(reports[0]));
    CHECK_UINT(filled.strings.count, string_count);
    CHECK_UINT(profile_stack_limit(&filled), stack_count);
}

TEST_MAIN()
