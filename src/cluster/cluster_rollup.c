/* Adds up the sums of a query: of each space and header, in memory, while the rows arrive in any order. Then the
 * dictionaries of the spaces say which stacks the numbers are.  SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "base/index_table.h"
#include "cluster/cluster_private.h"
#include "store/payload.h"
#include "store/rollup_values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SQL_BYTES_MAX = 200 << 10,
    GROUPS_MAX = 4096,       /* spaces with a header */
    ROWS_PER_QUESTION = 256, /* CONTINUES is asked */
};

/* The sum of one space and header. */
struct sum_group {
    uint64_t project;
    struct slice service, header; /* memory of the group */
    uint8_t space[ROW_ID_BYTES];
    uint64_t nodes; /* nodes that the dictionary must have */
    uint64_t first_ns, last_ns;
    struct rollup_values values;
    bool is_given;
};

struct summing {
    const struct store_query *query;
    const struct store_rollup_visitor *visitor;
    struct cluster *cluster;
    struct cover covers[SHARDS_MAX];
    struct id_set seen;
    INDEXED_ARRAY_OF(struct sum_group) groups;
    uint64_t rows;
    bool continues, failed; /* FAILED: no memory */
    bool is_damaged;
};

static bool group_equals(const void *context, uint32_t index, const void *key)
{
    const struct summing *summing = context;
    const struct row *row = key;
    const struct sum_group *group = &summing->groups.items[index];
    return memcmp(group->space, row->cells[SUM_SPACE].data, ROW_ID_BYTES) == 0 &&
           slice_equal(group->header, row->cells[SUM_HEADER]);
}

static struct slice copy_slice(struct slice from)
{
    uint8_t *copy = malloc(from.size + 1);
    if (copy && from.size > 0) (void)memcpy(copy, from.data, from.size);
    return slice_of(copy, copy ? from.size : 0);
}

/* Returns the group of ROW, which is made if it is new; NULL without memory. */
static struct sum_group *take_group(struct summing *summing, const struct row *row)
{
    struct slice space = row->cells[SUM_SPACE], header = row->cells[SUM_HEADER];
    uint64_t hash = hash_mix(hash_bytes(space.data, space.size), hash_bytes(header.data, header.size));
    uint32_t index = index_table_find(&summing->groups.index, hash, group_equals, summing, row);
    if (index != INDEX_NONE) return &summing->groups.items[index];
    struct sum_group group = {.project = row_number(row, SUM_PROJECT),
                              .service = copy_slice(row->cells[SUM_SERVICE]),
                              .header = copy_slice(header),
                              .first_ns = UINT64_MAX};
    (void)memcpy(group.space, space.data, ROW_ID_BYTES);
    if (!group.service.data || !group.header.data || !INDEXED_ARRAY_PUSH(&summing->groups, GROUPS_MAX, hash, group)) {
        free((void *)(uintptr_t)group.service.data);
        free((void *)(uintptr_t)group.header.data);
        return NULL;
    }
    return &summing->groups.items[summing->groups.count - 1];
}

static void forget_groups(struct summing *summing)
{
    for (size_t i = 0; i < summing->groups.count; i++) {
        struct sum_group *group = &summing->groups.items[i];
        free((void *)(uintptr_t)group->service.data);
        free((void *)(uintptr_t)group->header.data);
        rollup_values_fini(&group->values);
    }
    free(summing->groups.items);
    index_table_fini(&summing->groups.index);
    summing->groups.items = NULL;
    summing->groups.count = summing->groups.capacity = 0;
}

static bool take_sum(void *context, const struct row *row)
{
    struct summing *summing = context;
    if (++summing->rows % ROWS_PER_QUESTION == 0)
        summing->continues = summing->visitor->continues(summing->visitor->context);
    struct sum_group *group = take_group(summing, row);
    if (!group) {
        summing->failed = true;
        return false;
    }
    uint64_t first_ns = row_number(row, SUM_FIRST), last_ns = row_number(row, SUM_LAST);
    uint64_t nodes = row_number(row, SUM_NODES);
    if (first_ns < group->first_ns) group->first_ns = first_ns;
    if (last_ns > group->last_ns) group->last_ns = last_ns;
    if (nodes > group->nodes) group->nodes = nodes;
    if (!rollup_add_entries(&group->values, row->cells[SUM_ENTRIES])) summing->is_damaged = true;
    return summing->continues;
}

static enum status read_sums(void *context, struct cluster *cluster, int shard, struct error *error)
{
    struct summing *summing = context;
    if (!summing->continues) return STATUS_OK;
    enum status status = cover_query(cluster, shard, summing->query, &summing->covers[shard], error);
    const struct sum_rows_request request = {.query = summing->query,
                                             .cover = &summing->covers[shard],
                                             .seen = &summing->seen,
                                             .visit = take_sum,
                                             .context = summing};
    if (status == STATUS_OK) status = sum_rows_each(cluster, shard, &request, NULL, error);
    return summing->failed ? error_set(error, STATUS_TOO_LARGE, 0, "too many sums match; narrow the time range")
                           : status;
}

/* --- Giving them to the caller ------------------------------------------------------------------------------------ */

static enum status give_group(struct summing *summing, const struct dictionary_reading *reading,
                              const struct sum_group *group, struct error *error)
{
    const struct store_rollup whole = {.header = group->header, .first_ns = group->first_ns, .last_ns = group->last_ns};
    struct rollup_receiver receiver = {summing->visitor->add, summing->visitor->context, true};
    enum status status = rollup_give(&reading->dictionary, &group->values, &whole, &receiver, error);
    summing->continues = receiver.continues;
    return status;
}

/* Gives the groups to the caller: all of one space together, so that its dictionary is read once. */
static enum status give_groups(struct summing *summing, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < summing->groups.count && status == STATUS_OK && summing->continues; i++) {
        struct sum_group *first = &summing->groups.items[i];
        struct dictionary_reading reading = {.bytes = {.maximum = PAYLOAD_ROOM}};
        if (first->is_given) continue;
        for (size_t k = i + 1; k < summing->groups.count; k++) {
            const struct sum_group *other = &summing->groups.items[k];
            if (memcmp(other->space, first->space, ROW_ID_BYTES) == 0 && other->nodes > first->nodes)
                first->nodes = other->nodes;
        }
        const struct space_place place = {first->project, first->nodes, first->service, first->space};
        status = dictionary_read(summing->cluster, &place, &reading, error);
        for (size_t k = i; k < summing->groups.count && status == STATUS_OK && summing->continues; k++) {
            struct sum_group *group = &summing->groups.items[k];
            if (memcmp(group->space, first->space, ROW_ID_BYTES) != 0) continue;
            group->is_given = true;
            status = give_group(summing, &reading, group, error);
        }
        if (status == STATUS_OK && reading.dictionary.node_count >= first->nodes)
            dictionary_keep(summing->cluster, first->space, &reading);
        else
            dictionary_reading_fini(&reading);
    }
    return status;
}

/* --- A query ------------------------------------------------------------------------------------------------------ */

enum status cluster_each_rollup(struct store *store, const struct store_query *query,
                                const struct store_rollup_visitor *visitor, struct error *error)
{
    if (visitor->separates_labels) return error_set(error, STATUS_UNSUPPORTED, 0, "sums in the cluster have no labels");
    if (visitor->has_increases) return error_set(error, STATUS_UNSUPPORTED, 0, "sums in the cluster have no order");
    struct summing summing = {
        .query = query, .visitor = visitor, .cluster = store_engine_data(store), .continues = true};
    enum status status = cluster_each_shard(summing.cluster, query, read_sums, &summing, error);
    if (status == STATUS_OK) status = give_groups(&summing, error);
    if (status == STATUS_OK && summing.is_damaged) status = STATUS_MALFORMED;
    if (status == STATUS_OK && summing.continues)
        status = cluster_each_unsummed(summing.cluster, query, summing.covers, &summing.seen, visitor->visit,
                                       visitor->context, error);
    for (int shard = 0; shard < SHARDS_MAX; shard++) cover_fini(&summing.covers[shard]);
    forget_groups(&summing);
    id_set_fini(&summing.seen);
    /* The visitor cannot give sums back: the caller starts again without them. */
    return status == STATUS_MALFORMED ? error_set(error, STATUS_UNSUPPORTED, 0, "sums in the cluster are damaged")
                                      : status;
}
