/* Adds up the rollups of a query: of each group the rollups of the longest times that are wholly in its range.
 * SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_PER_QUESTION = 256 }; /* CONTINUES is asked */

struct adding {
    const struct store_query *query;
    const struct store_rollup_visitor *visitor;
    uint64_t from_ns, to_ns;
    struct day *day;
    sqlite3_stmt *levels[LEVELS];
    bool continues;
    uint64_t rows;
    struct rollup_values values; /* sums of the current DICTIONARY and HEADER */
    uint64_t first_ns, last_ns;  /* first start and last end of the chunks in VALUES */
    int64_t dictionary;
    struct buffer header, labels;
    struct stack_dictionary stacks; /* dictionary STACKS_ID of the day, read once for all its rollups */
    int64_t stacks_id;
};

static bool asks_on(struct adding *adding)
{
    if (adding->continues && ++adding->rows % ROWS_PER_QUESTION == 0)
        adding->continues = adding->visitor->continues(adding->visitor->context);
    return adding->continues;
}

/* The rollups of GROUP at LEVEL and below that start in [START_NS, END_NS). */
static enum status add_level(struct adding *adding, int64_t group, int level, uint64_t start_ns, uint64_t end_ns,
                             struct error *error)
{
    sqlite3_stmt *rows = adding->levels[level];
    uint64_t first_ns = level == LEVEL_CHUNK ? adding->from_ns : rollup_level_start(level, adding->from_ns);
    uint64_t at_ns = start_ns > first_ns ? start_ns : first_ns;
    enum status status = STATUS_OK;
    if (at_ns >= end_ns) return STATUS_OK;
    (void)sqlite3_bind_int64(rows, 1, group);
    sql_bind_u64(rows, 2, at_ns);
    sql_bind_u64(rows, 3, end_ns);
    int code = SQLITE_DONE;
    while (status == STATUS_OK && asks_on(adding) && (code = sqlite3_step(rows)) == SQLITE_ROW) {
        uint64_t row_ns = sql_u64(rows, 0), row_first_ns = sql_u64(rows, 1), row_last_ns = sql_u64(rows, 2);
        bool ends_inside = row_last_ns < adding->to_ns || (level == LEVEL_CHUNK && adding->visitor->has_increases);
        bool is_inside = row_first_ns >= adding->from_ns && ends_inside;
        if (!is_inside) continue;
        if (level > LEVEL_CHUNK) {
            status = add_level(adding, group, level - 1, at_ns, row_ns, error);
            at_ns = rollup_level_end(level, row_ns);
        }
        if (row_first_ns < adding->first_ns || adding->values.node_count == 0) adding->first_ns = row_first_ns;
        if (row_last_ns > adding->last_ns || adding->values.node_count == 0) adding->last_ns = row_last_ns;
        if (status == STATUS_OK && !rollup_add_entries(&adding->values, sql_text(rows, 3)))
            status = error_set(error, STATUS_MALFORMED, 0, "%s: a sum is damaged", adding->day->name);
    }
    if (status == STATUS_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = sql_failed(adding->day->db, error, adding->day->name);
    (void)sqlite3_reset(rows);
    if (status == STATUS_OK && level > LEVEL_CHUNK) status = add_level(adding, group, level - 1, at_ns, end_ns, error);
    return status;
}

/* --- What was added ----------------------------------------------------------------------------------------------- */

static void forget_stacks(struct adding *adding)
{
    stack_dictionary_fini(&adding->stacks);
    adding->stacks_id = 0;
}

static enum status read_stacks(struct adding *adding, struct error *error)
{
    uint64_t segments;
    if (adding->stacks_id == adding->dictionary) return STATUS_OK;
    forget_stacks(adding);
    enum status status =
        rollup_read_dictionary(adding->day->db, adding->dictionary, false, &adding->stacks, &segments, error);
    if (status == STATUS_OK) adding->stacks_id = adding->dictionary;
    return status;
}

static enum status give_rollup(struct adding *adding, struct error *error)
{
    if (!adding->continues || adding->values.node_count == 0) return STATUS_OK;
    enum status status = read_stacks(adding, error);
    const struct store_rollup whole = {.header = buffer_slice(&adding->header),
                                       .labels = buffer_slice(&adding->labels),
                                       .first_ns = adding->first_ns,
                                       .last_ns = adding->last_ns};
    struct rollup_receiver receiver = {adding->visitor->add, adding->visitor->context, true};
    if (status == STATUS_OK) status = rollup_give(&adding->stacks, &adding->values, &whole, &receiver, error);
    adding->continues = receiver.continues;
    rollup_values_fini(&adding->values);
    return status;
}

/* --- A day -------------------------------------------------------------------------------------------------------- */

static enum status add_groups(struct adding *adding, sqlite3_stmt *groups, struct error *error)
{
    enum status status = STATUS_OK;
    int code = SQLITE_DONE;
    while (status == STATUS_OK && asks_on(adding) && (code = sqlite3_step(groups)) == SQLITE_ROW) {
        int64_t dictionary = sqlite3_column_int64(groups, 1);
        struct slice header = sql_text(groups, 2);
        struct slice labels = adding->visitor->separates_labels ? sql_text(groups, 3) : slice_of(NULL, 0);
        bool is_of_one_process = adding->values.running != NULL; /* rows of groups are not in the order of time */
        if (is_of_one_process || dictionary != adding->dictionary ||
            !slice_equal(header, buffer_slice(&adding->header)) ||
            !slice_equal(labels, buffer_slice(&adding->labels))) {
            status = give_rollup(adding, error);
            adding->dictionary = dictionary;
            buffer_clear(&adding->header);
            buffer_append(&adding->header, header.data, header.size);
            buffer_clear(&adding->labels);
            buffer_append(&adding->labels, labels.data, labels.size);
        }
        if (status == STATUS_OK && adding->continues)
            status = add_level(adding, sqlite3_column_int64(groups, 0), LEVEL_DAY, 0, adding->to_ns, error);
    }
    if (status == STATUS_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = sql_failed(adding->day->db, error, adding->day->name);
    return status == STATUS_OK ? give_rollup(adding, error) : status;
}

static enum status prepare(struct adding *adding, sqlite3_stmt **ret_groups, struct error *error)
{
    static const char groups[] =
        "SELECT sum_group.id,space,header,labels FROM sum_group JOIN space ON space.id=space WHERE "
        "project=?1" WHERE_NAMES " AND (?7 IS NULL OR host=?7) AND (?8 IS NULL OR platform=?8)" WHERE_KINDS
        " ORDER BY space,header,labels";
    static const char rollups[] =
        "SELECT start_ns,first_ns,last_ns,entries FROM sum WHERE sum_group=?1 AND level=%d AND "
        "start_ns>=?2 AND start_ns<?3 ORDER BY start_ns,chunk";
    sqlite3 *db = adding->day->db;
    bool is_fine = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
                   sqlite3_prepare_v2(db, groups, -1, ret_groups, NULL) == SQLITE_OK;
    for (int level = 0; level < LEVELS && is_fine; level++) {
        char sql[sizeof(rollups) + 8];
        (void)snprintf(sql, sizeof(sql), rollups, level);
        is_fine = sqlite3_prepare_v2(db, sql, -1, &adding->levels[level], NULL) == SQLITE_OK;
    }
    if (!is_fine) return sql_failed(db, error, adding->day->name);
    query_bind(*ret_groups, adding->query);
    return STATUS_OK;
}

/* Reads in one transaction, so that everything is of one moment. */
static enum status read_day(void *context, struct store *store, struct day *day, bool *continues, struct error *error)
{
    struct adding *adding = context;
    sqlite3_stmt *groups = NULL;
    adding->day = day;
    adding->dictionary = 0;
    enum status status = prepare(adding, &groups, error);
    if (status == STATUS_OK) status = add_groups(adding, groups, error);
    if (status == STATUS_OK && adding->continues)
        status = query_chunks_without_rollup(store, day, adding->query, adding->visitor, &adding->continues, error);
    (void)sqlite3_finalize(groups);
    for (int level = 0; level < LEVELS; level++) {
        (void)sqlite3_finalize(adding->levels[level]);
        adding->levels[level] = NULL;
    }
    rollup_values_fini(&adding->values);
    forget_stacks(adding);
    *continues = adding->continues;
    /* The visitor cannot give rollups back: the caller starts again without rollups. */
    return status == STATUS_MALFORMED ? error_set(error, STATUS_UNSUPPORTED, 0, "%s: sums are damaged", day->name)
                                      : status;
}

enum status days_each_rollup(struct store *store, const struct store_query *query,
                             const struct store_rollup_visitor *visitor, struct error *error)
{
    struct adding adding = {.query = query,
                            .visitor = visitor,
                            .from_ns = query->from_ns,
                            .to_ns = query->to_ns ? query->to_ns : UINT64_MAX,
                            .continues = true};
    buffer_init(&adding.header, STORE_ROLLUP_HEADER_MAX);
    buffer_init(&adding.labels, STORE_ROLLUP_LABELS_MAX);
    enum status status = query_each_day(store, query, read_day, &adding, error);
    buffer_fini(&adding.header);
    buffer_fini(&adding.labels);
    return status;
}
