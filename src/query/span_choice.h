/* The spans that a query chooses, and the time and thread of each (REL-4).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_SPAN_CHOICE_H
#define OFFBEAT_QUERY_SPAN_CHOICE_H

#include "store/store.h"

/* Empty slices choose all. */
struct span_choice {
    struct slice trace, span; /* ids */
    struct slice transaction; /* a name: only transactions that have it */
};

bool span_is_chosen(const struct span_choice *choice, const struct store_span *span);

/* The part of a thread that a span is. */
struct window {
    char profiler[64], chunk[64]; /* ids; one of them is "" */
    char thread[STORE_NAME_BYTES_MAX + 1];
    uint64_t start_ns, end_ns;
};
struct window_list {
    const struct span_choice *choice;
    struct window *items;
    size_t count, span_count;
    bool is_full;
};
/* Finds the spans of QUERY that CHOICE has; at least one. LIST->items are to be freed in every case. */
enum status windows_find(struct store *store, const struct store_query *query, const struct span_choice *choice,
                         struct window_list *list, struct error *error);

#endif
