/* The chunks that a query selects, and the profile that they are merged into.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_SELECTION_H
#define OFFBEAT_QUERY_SELECTION_H

#include "base/clocks.h"
#include "query/query.h"
#include "query/span_choice.h"

struct selection {
    struct store_query query;
    struct slice thread; /* id; empty: all */
    struct span_choice spans;
    bool has_spans; /* chunks are cut to SPANS */
    bool only_last; /* the answer has the last snapshot of each series, no mean */
};

/* Reads the parameters PREFIX + "service", …; those that are not there with a PREFIX are read without it. */
enum status selection_read(struct query *query, const char *prefix, struct selection *ret_selection,
                           struct error *error);
/* Merges the chunks of SELECTION into PROFILE, which is initialised and empty. KEEPS_TIMES: samples stay apart, and a
 * thread's last sample of a chunk lasts until its first one of the next, if that one follows soon. */
enum status selection_merge(struct query *query, const struct selection *selection, bool keeps_times,
                            struct profile *profile, struct error *error);

/* The year 2000. Times of files before it count from the start of a machine, as those of perf do. */
#define CHUNK_UPTIMES_END_NS (946684800 * SECOND_NS)

struct time_range {
    uint64_t start_ns, end_ns;
};

/* Returns the times of the first and the last sample of PROFILE; START_NS is larger if no sample has a time. If a
 * sample has a date, those without one are passed over: their time is unknown. */
struct time_range chunk_times(const struct profile *profile);

/* Decodes what the store has. A file with such times begins at the start of CHUNK. */
enum status chunk_decode(const struct store_chunk *chunk, struct profile *profile, struct error *error);

#endif
