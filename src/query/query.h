/* A question about what the store has, on its way to an answer: the chunks that it selects, of one kind, are merged and
 * get names; filters leave a part, and numbers of that are written.
 *
 * The functions below answer one route each of doc/serve.md. They write into OUT, which holds a part of an answer if
 * they fail. A query is for one thread at a time.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_QUERY_H
#define OFFBEAT_QUERY_QUERY_H

#include "query/kind_choice.h"
#include "query/profile_rollup.h"

enum {
    QUERY_PARAMETERS_MAX = 32,
    QUERY_CHUNKS_MAX = 1000000,     /* chunks that one answer decodes and adds up */
    QUERY_TIMED_CHUNKS_MAX = 50000, /* chunks whose samples one answer has in the order of time */
    QUERY_WINDOWS_MAX = 1000,       /* spans whose parts one answer merges */
    QUERY_BUCKETS_MAX = 200,        /* parts of a trend */
};

/* A parameter of a URL or command, decoded. */
struct parameter {
    char *name, *value;
};

/* The functions that a query calls; CONTEXT is that of the query. */
struct query_calls {
    /* Called from time to time; anything but STATUS_OK ends the query with it. */
    enum status (*check)(void *context, struct error *error);
    /* Names the locations of PROFILE that have no functions. */
    enum status (*name_places)(void *context, struct profile *profile, struct error *error);
};

struct query {
    struct store *store;
    const struct query_calls *calls;
    void *context;
    uint64_t project, now_ns; /* NOW_NS: UTC */
    struct parameter parameters[QUERY_PARAMETERS_MAX];
    size_t parameter_count;

    enum detail detail;      /* the parts of samples that the answer needs */
    struct kind_choice kind; /* kind of profiles that the answer is about */
    bool is_damaged;         /* the answer lacks data that are damaged */
    bool has_chosen_tags;    /* the merged samples are those that the parameters choose by tags */
    uint32_t missing_shards; /* bit N: the answer lacks data of shard N + 1 of a cluster */
};

/* NULL if QUERY has no such parameter. */
const char *query_text(const struct query *query, const char *name);
struct slice query_slice(const struct query *query, const char *name); /* empty: not there */
/* Reads the parameter NAME as a number; OTHERWISE if it is not there. */
size_t query_number(const struct query *query, const char *name, size_t otherwise);

typedef enum status query_answer(struct query *query, struct buffer *out, struct error *error);
query_answer query_pprof, query_export, query_top, query_flame, query_diff, query_flamechart, query_flame_diff,
    query_regressions, query_function, query_trend, query_page, query_types, query_tags;

#endif
