/* The kind of profiles that the answer of a request is about.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_KIND_CHOICE_H
#define OFFBEAT_SERVE_KIND_CHOICE_H

#include "base/json_writer.h"
#include "serve/kinds.h"
#include "store/store.h"

struct request;

/* {0}: nothing is chosen. */
struct kind_choice {
    bool is_chosen;
    bool needs_series; /* some chunks do not add up */
    enum kind_rule rule;
    char name[STORE_NAME_BYTES_MAX + 1], type[STORE_NAME_BYTES_MAX + 1], unit[STORE_NAME_BYTES_MAX + 1];
    struct buffer combinations; /* kinds of the chunks that have it, as store_query.kinds */
    /* The answer's profiles of series, the series, and the starts of processes that were recognized in them. */
    uint64_t profile_count, series_count, restart_count;
};

/* Limits QUERY to the chunks of one kind: that which REQUEST chose earlier, its parameter "type" names, or is the first
 * one of what QUERY finds. The slice in QUERY lives until the next call. STATUS_NOT_FOUND if QUERY finds no chunk,
 * STATUS_UNSUPPORTED if the parameter names no kind, or several. */
enum status kind_choose(struct request *request, struct store_query *query, struct error *error);
/* Does the same if REQUEST has the parameter "type", else leaves QUERY as it is: lists are of all kinds then. False:
 * answered. */
bool kind_limit_list(struct request *request, struct store_query *query);
/* Writes the object that describes the kind. */
void kind_write_json(const struct kind_choice *choice, struct json_writer *json);
/* Appends the same object as the value of a header: every byte that is no letter or digit as %XX. */
void kind_append_header(const struct kind_choice *choice, struct buffer *out);
void kind_choice_fini(struct kind_choice *choice);

#endif
