/* The stacks of spaces. What a space has never changes, it only gets more: so dictionaries that were read are kept.
 * SPDX-License-Identifier: MIT */
#include "cluster/cluster_private.h"
#include "store/payload.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SQL_BYTES_MAX = 4096 };

static bool take_segment(void *context, const struct row *row)
{
    struct dictionary_reading *reading = context;
    uint64_t number = row_number(row, 0);
    if (number < reading->next) return true;
    buffer_clear(&reading->bytes);
    if (number > reading->next) return false;
    reading->is_damaged = payload_unpack(row->cells[2], row_number(row, 1), &reading->bytes, NULL) != STATUS_OK ||
                          !stack_dictionary_read(&reading->dictionary, buffer_slice(&reading->bytes), false);
    reading->next++;
    return !reading->is_damaged;
}

void dictionary_reading_fini(struct dictionary_reading *reading)
{
    stack_dictionary_fini(&reading->dictionary);
    buffer_fini(&reading->bytes);
}

/* Reads what READING lacks of the segments. */
static enum status read_segments(struct cluster *cluster, const struct space_place *place,
                                 struct dictionary_reading *reading, struct error *error)
{
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    struct topology *topology = &cluster->topology;
    uint32_t shards = topology_shards_of(topology, placement_of(place->project, place->service));
    enum status status = STATUS_OK;
    buffer_append_format(
        &sql, "SELECT number, size, bytes FROM dict WHERE project = %" PRIu64 " AND service = ", place->project);
    sql_append_literal(&sql, place->service);
    buffer_append_text(&sql, " AND space = ");
    sql_append_bytes(&sql, slice_of(place->space, ROW_ID_BYTES));
    buffer_append_format(&sql, " AND number >= %" PRIu64 " ORDER BY number FORMAT RowBinary", reading->next);
    for (int shard = 0; shard < SHARDS_MAX; shard++) {
        size_t known = reading->dictionary.node_count;
        if (!(shards >> shard & 1) || known >= place->nodes) continue;
        for (int attempt = 0; attempt < 3 && status == STATUS_OK && !reading->is_damaged &&
                              reading->dictionary.node_count < place->nodes;
             attempt++)
            status = topology_each_row(topology, shard, buffer_slice(&sql), "qqs", take_segment, reading, error);
    }
    buffer_fini(&sql);
    if (status == STATUS_OK && reading->is_damaged)
        return error_set(error, STATUS_MALFORMED, 0, "the stacks of sums are damaged");
    return status;
}

enum status dictionary_read(struct cluster *cluster, const struct space_place *place,
                            struct dictionary_reading *reading, struct error *error)
{
    struct kept_dictionaries *kept = &cluster->dictionaries;
    (void)pthread_mutex_lock(&kept->lock);
    for (size_t i = 0; i < kept->count; i++) {
        struct kept_dictionary *known = &kept->items[i];
        if (memcmp(known->space, place->space, ROW_ID_BYTES) != 0) continue;
        kept->bytes -= stack_dictionary_bytes(&known->stacks);
        reading->dictionary = known->stacks;
        reading->next = known->next;
        *known = kept->items[--kept->count];
        break;
    }
    (void)pthread_mutex_unlock(&kept->lock);
    return reading->dictionary.node_count < place->nodes ? read_segments(cluster, place, reading, error) : STATUS_OK;
}

/* --- Keeping ------------------------------------------------------------------------------------------------------ */

static void drop_oldest(struct kept_dictionaries *kept)
{
    size_t oldest = 0;
    for (size_t i = 1; i < kept->count; i++) {
        if (kept->items[i].used < kept->items[oldest].used) oldest = i;
    }
    kept->bytes -= stack_dictionary_bytes(&kept->items[oldest].stacks);
    stack_dictionary_fini(&kept->items[oldest].stacks);
    kept->items[oldest] = kept->items[--kept->count];
}

void dictionary_keep(struct cluster *cluster, const uint8_t *space, struct dictionary_reading *reading)
{
    struct kept_dictionaries *kept = &cluster->dictionaries;
    struct kept_dictionary added = {.stacks = reading->dictionary, .next = reading->next};
    size_t bytes = stack_dictionary_bytes(&added.stacks);
    buffer_fini(&reading->bytes);
    (void)memcpy(added.space, space, ROW_ID_BYTES);
    (void)pthread_mutex_lock(&kept->lock);
    bool is_there = bytes > KEPT_DICTIONARY_BYTES_MAX; /* whether it is too large, or another query kept one */
    for (size_t i = 0; i < kept->count && !is_there; i++)
        is_there = memcmp(kept->items[i].space, space, ROW_ID_BYTES) == 0;
    while (!is_there && (kept->count == KEPT_DICTIONARIES_MAX ||
                         (kept->count > 0 && kept->bytes + bytes > KEPT_DICTIONARIES_BYTES_MAX)))
        drop_oldest(kept);
    added.used = ++kept->uses;
    if (!is_there) {
        kept->items[kept->count++] = added;
        kept->bytes += bytes;
    }
    (void)pthread_mutex_unlock(&kept->lock);
    if (is_there) stack_dictionary_fini(&added.stacks);
}

void dictionaries_init(struct kept_dictionaries *kept)
{
    (void)pthread_mutex_init(&kept->lock, NULL);
}

void dictionaries_fini(struct kept_dictionaries *kept)
{
    while (kept->count > 0) drop_oldest(kept);
    (void)pthread_mutex_destroy(&kept->lock);
}
