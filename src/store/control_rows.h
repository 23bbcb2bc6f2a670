/* Projects and keys that several servers share: changes of this store's control file on their way to the others, and
 * theirs on their way here. A row is one project or key; of two versions of it the greater one counts.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_CONTROL_ROWS_H
#define OFFBEAT_STORE_CONTROL_ROWS_H

#include "store/store.h"

struct control_row {
    struct slice sort; /* "project" or "key" */
    uint64_t id, version;
    struct slice body; /* columns as JSON; empty: the row was removed */
};

/* Notes changes from here on; rows that are there count as changed. New rows get random numbers, because nobody counts
 * for all servers. */
enum status control_rows_begin(struct store *store, struct error *error);

typedef bool control_visit_row(void *context, const struct control_row *row);
/* Visits the rows that were changed and not yet sent, at most MAXIMUM. */
enum status control_rows_each_change(struct store *store, size_t maximum, control_visit_row *visit, void *context,
                                     struct error *error);
/* Notes that ROW was sent, unless it was changed again. */
enum status control_rows_mark_sent(struct store *store, const struct control_row *row, struct error *error);
/* Makes ROW, which another server has sent, the one here if it is newer. */
enum status control_rows_apply(struct store *store, const struct control_row *row, struct error *error);

#endif
