/* Passes what is asked about data on to the engine of the store.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

/* The data are in a file for each day. */
const struct store_engine days_engine = {
    .add = days_add,
    .each_chunk = days_each_chunk,
    .each_rollup = days_each_rollup,
    .each_span = days_each_span,
    .each_rejected = days_each_rejected,
    .each_outcome = days_each_outcome,
    .each_value = days_each_value,
    .each_usage = days_each_usage,
    .delete = days_delete,
    .expire = days_expire,
    .update_rollups = days_update_rollups,
    .close = days_close,
};

void *store_engine_data(const struct store *store)
{
    return store->engine_data;
}

enum status store_add(struct store *store, const struct store_batch *batch, uint64_t *ret_duplicates,
                      struct error *error)
{
    return store->engine->add(store, batch, ret_duplicates, error);
}

enum status store_each_chunk(struct store *store, const struct store_query *query, store_visit_chunk *visit,
                             void *context, struct error *error)
{
    return store->engine->each_chunk(store, query, visit, context, error);
}

enum status store_each_rollup(struct store *store, const struct store_query *query,
                              const struct store_rollup_visitor *visitor, struct error *error)
{
    return store->engine->each_rollup(store, query, visitor, error);
}

enum status store_each_span(struct store *store, const struct store_query *query, store_visit_span *visit,
                            void *context, struct error *error)
{
    return store->engine->each_span(store, query, visit, context, error);
}

enum status store_each_rejected(struct store *store, const struct store_query *query, store_visit_rejected *visit,
                                void *context, struct error *error)
{
    return store->engine->each_rejected(store, query, visit, context, error);
}

enum status store_each_outcome(struct store *store, const struct store_query *query, store_visit_outcome *visit,
                               void *context, struct error *error)
{
    return store->engine->each_outcome(store, query, visit, context, error);
}

enum status store_each_value(struct store *store, const struct store_query *query, enum store_column column,
                             store_visit_value *visit, void *context, struct error *error)
{
    return store->engine->each_value(store, query, column, visit, context, error);
}

enum status store_each_usage(struct store *store, uint64_t project, store_visit_usage *visit, void *context,
                             struct error *error)
{
    return store->engine->each_usage(store, project, visit, context, error);
}

enum status store_delete(struct store *store, const struct store_query *query, uint64_t *ret_chunks,
                         struct error *error)
{
    return store->engine->delete (store, query, ret_chunks, error);
}

enum status store_expire(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                         uint64_t *ret_removed, struct error *error)
{
    return store->engine->expire(store, now_ns, age_ns, bytes_max, ret_removed, error);
}

enum status store_update_rollups(struct store *store, uint64_t now_ns, uint64_t *ret_count, struct error *error)
{
    return store->engine->update_rollups(store, now_ns, ret_count, error);
}

void store_hurry(struct store *store)
{
    if (store->engine->hurry) store->engine->hurry(store);
}
