/* The kind of profiles that an answer is about.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_KIND_CHOICE_H
#define OFFBEAT_QUERY_KIND_CHOICE_H

#include "base/json_writer.h"
#include "query/kinds.h"
#include "store/store.h"

/* {0}: nothing is chosen. */
struct kind_choice {
    struct slice wanted; /* name of the kind that is asked for; empty: any */
    bool is_chosen;
    bool needs_series; /* some chunks do not add up */
    enum kind_rule rule;
    char name[STORE_NAME_BYTES_MAX + 1], type[STORE_NAME_BYTES_MAX + 1], unit[STORE_NAME_BYTES_MAX + 1];
    struct buffer combinations; /* kinds of the chunks that have it, as store_query.kinds */
    /* The answer's profiles of series, the series, and the starts of processes that were recognized in them. */
    uint64_t profile_count, series_count, restart_count;
};

/* Limits CHUNKS to the chunks of one kind: that which CHOICE has, its WANTED names, or is the first one of what CHUNKS
 * finds. The slice in CHUNKS lives until the next call. STATUS_NOT_FOUND if CHUNKS finds none, STATUS_UNSUPPORTED if
 * WANTED names no kind, or several. */
enum status kind_choose(struct kind_choice *choice, struct store *store, struct store_query *chunks,
                        struct error *error);
/* Writes the object that lists the kinds of the chunks that CHUNKS finds. */
enum status kinds_write_json(struct store *store, const struct store_query *chunks, struct buffer *out,
                             struct error *error);
/* Writes the object that describes the kind. */
void kind_write_json(const struct kind_choice *choice, struct json_writer *json);
/* Appends the same object as the value of a header: as text of a URL. */
void kind_append_header(const struct kind_choice *choice, struct buffer *out);
void kind_choice_fini(struct kind_choice *choice);

#endif
