/* An engine: the part of a store that keeps what arrives. Projects, keys, tokens and debug files are in the store's
 * folder, whatever the engine is. The functions are those of store.h that have the same names.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_STORE_ENGINE_H
#define OFFBEAT_STORE_STORE_ENGINE_H

#include "store/store.h"

struct store_engine {
    enum status (*add)(struct store *store, const struct store_batch *batch, uint64_t *ret_duplicates,
                       struct error *error);
    enum status (*each_chunk)(struct store *store, const struct store_query *query, store_visit_chunk *visit,
                              void *context, struct error *error);
    enum status (*each_rollup)(struct store *store, const struct store_query *query,
                               const struct store_rollup_visitor *visitor, struct error *error);
    enum status (*each_span)(struct store *store, const struct store_query *query, store_visit_span *visit,
                             void *context, struct error *error);
    enum status (*each_rejected)(struct store *store, const struct store_query *query, store_visit_rejected *visit,
                                 void *context, struct error *error);
    enum status (*each_outcome)(struct store *store, const struct store_query *query, store_visit_outcome *visit,
                                void *context, struct error *error);
    enum status (*each_value)(struct store *store, const struct store_query *query, enum store_column column,
                              store_visit_value *visit, void *context, struct error *error);
    enum status (*each_usage)(struct store *store, uint64_t project, store_visit_usage *visit, void *context,
                              struct error *error);
    enum status (*delete)(struct store *store, const struct store_query *query, uint64_t *ret_chunks,
                          struct error *error);
    enum status (*expire)(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                          uint64_t *ret_removed, struct error *error);
    enum status (*update_rollups)(struct store *store, uint64_t now_ns, uint64_t *ret_count, struct error *error);
    /* Adds what the engine has of its own; NULL: nothing. */
    void (*add_usage)(struct store *store, struct store_usage *usage);
    /* Ends the waits of EXPIRE and UPDATE_ROLLUPS for another machine; NULL: there are none. */
    void (*hurry)(struct store *store);
    /* Waits until everything that was added is on disk, and frees DATA. */
    void (*close)(void *data);
};

/* Opens the store in the folder PATH, whose data ENGINE keeps with the help of DATA. ENGINE->close frees DATA, also if
 * this fails. */
enum status store_open_with(const char *path, const struct store_engine *engine, void *data, store_report *report,
                            void *context, struct store **ret_store, struct error *error);
/* The file in the store's folder that says where the data are, if that is not there: store_open rejects such a folder.
 */
#define STORE_ELSEWHERE_FILE "cluster"
void *store_engine_data(const struct store *store);

#endif
