/* SPDX-License-Identifier: MIT */
#include "query/span_choice.h"

#include "query/query.h"

#include <stdio.h>
#include <stdlib.h>

bool span_is_chosen(const struct span_choice *choice, const struct store_span *span)
{
    if (choice->trace.size && !slice_equal(choice->trace, span->trace_id)) return false;
    if (choice->span.size && !slice_equal(choice->span, span->span_id)) return false;
    if (!choice->transaction.size) return true;
    return span->is_transaction && slice_equal(choice->transaction, span->name);
}

static bool copy_id(char *target, size_t size, struct slice id)
{
    return snprintf(target, size, "%.*s", SLICE_ARGUMENTS(id)) < (int)size;
}

static bool add_window(void *context, const struct store_span *span)
{
    struct window_list *list = context;
    struct window window = {.start_ns = span->start_ns, .end_ns = span->end_ns};
    if (!span_is_chosen(list->choice, span)) return true;
    list->span_count++;
    bool has_profile = span->profiler_id.size + span->profile_id.size > 0;
    /* An id that does not fit is no chunk's. */
    bool fits = copy_id(window.profiler, sizeof(window.profiler), span->profiler_id) &&
                copy_id(window.chunk, sizeof(window.chunk), span->profile_id) &&
                copy_id(window.thread, sizeof(window.thread), span->thread_id);
    if (!has_profile || !fits || window.end_ns <= window.start_ns) return true;
    if (window.profiler[0]) window.chunk[0] = '\0';
    list->is_full = list->count == QUERY_WINDOWS_MAX;
    if (!list->is_full) list->items[list->count++] = window;
    return !list->is_full;
}

enum status windows_find(struct store *store, const struct store_query *query, const struct span_choice *choice,
                         struct window_list *list, struct error *error)
{
    struct store_query of_spans = *query;
    of_spans.chunk_id = slice_of(NULL, 0); /* the id of a chunk does not choose spans */
    *list = (struct window_list){.choice = choice, .items = calloc(QUERY_WINDOWS_MAX, sizeof(*list->items))};
    if (!list->items) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    enum status status = store_each_span(store, &of_spans, add_window, list, error);
    if (status != STATUS_OK) return status;
    if (list->is_full)
        return error_set(error, STATUS_TOO_LARGE, 0, "more than %d spans match; narrow the time range",
                         QUERY_WINDOWS_MAX);
    if (list->span_count == 0) return error_set(error, STATUS_NOT_FOUND, 0, "no span matches");
    if (list->count == 0) return error_set(error, STATUS_NOT_FOUND, 0, "no span that matches has a profile");
    return STATUS_OK;
}
