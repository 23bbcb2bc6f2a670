/* A batch becomes rows, which are in the spool when it is acknowledged. Sums name stacks by numbers of a space: the
 * dictionary that this process keeps for a service and day. What it adds there is in the same record or in an earlier
 * one, because records keep their order.  SPDX-License-Identifier: MIT */
#include "base/clocks.h"
#include "base/leb128.h"
#include "cluster/cluster_private.h"
#include "store/payload.h"
#include "store/rollup_values.h"

#include <stdio.h>
#include <string.h>

enum { ACK_SECONDS = 25 };

void record_end_row(struct record *record, enum cluster_table table, struct slice service)
{
    row_u8(&record->bytes, (uint8_t)table);
    row_u64(&record->bytes, placement_of(record->project, service));
    row_text(&record->bytes, buffer_slice(&record->row));
    if (record->row.failed) record->bytes.failed = true;
    buffer_clear(&record->row);
}

struct buffer *record_begin_row(struct record *record)
{
    row_u16(&record->row, record->keep);
    row_u16(&record->row, record->day);
    row_u64(&record->row, record->project);
    return &record->row;
}

static uint64_t cut_time(uint64_t time_ns)
{
    return time_ns > INT64_MAX ? INT64_MAX : time_ns; /* as SQLite stores it */
}

/* --- Spaces ------------------------------------------------------------------------------------------------------- */

static void forget_space(struct cluster *cluster, size_t place)
{
    struct space *space = cluster->spaces[place];
    cluster->space_bytes -= stack_dictionary_bytes(&space->dictionary);
    stack_dictionary_fini(&space->dictionary);
    free(space);
    cluster->spaces[place] = cluster->spaces[--cluster->space_count];
}

void cluster_forget_spaces(struct cluster *cluster)
{
    while (cluster->space_count > 0) forget_space(cluster, cluster->space_count - 1);
}

static void make_room(struct cluster *cluster)
{
    while (cluster->space_count == SPACES_MAX ||
           (cluster->space_count > 0 && cluster->space_bytes > SPACES_BYTES_MAX)) {
        size_t oldest = 0;
        for (size_t i = 1; i < cluster->space_count; i++) {
            if (cluster->spaces[i]->used < cluster->spaces[oldest]->used) oldest = i;
        }
        forget_space(cluster, oldest);
    }
}

struct space *space_take(struct cluster *cluster, const struct record *record, struct slice service)
{
    for (size_t i = 0; i < cluster->space_count; i++) {
        struct space *space = cluster->spaces[i];
        if (space->project != record->project || space->day != record->day ||
            !slice_equals_text(service, space->service))
            continue;
        space->used = ++cluster->space_uses;
        return space;
    }
    make_room(cluster);
    struct space *space = calloc(1, sizeof(*space));
    if (!space || service.size > STORE_NAME_BYTES_MAX || !row_id_new(space->id)) {
        free(space);
        return NULL;
    }
    if (service.size > 0) (void)memcpy(space->service, service.data, service.size);
    space->project = record->project;
    space->day = record->day;
    space->used = ++cluster->space_uses;
    cluster->spaces[cluster->space_count++] = space;
    return space;
}

enum status space_add_segment(struct record *record, struct space *space, size_t frame, size_t node,
                              struct error *error)
{
    struct buffer bytes = {.maximum = DICTIONARY_TEXT_MAX + DICTIONARY_NODES_MAX * 2 * LEB128_BYTES_MAX};
    struct buffer packed = {.maximum = 2 * bytes.maximum};
    stack_dictionary_write(&space->dictionary, frame, node, &bytes);
    enum status status = bytes.failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to store a sum")
                                      : payload_pack(buffer_slice(&bytes), &packed, error);
    if (status == STATUS_OK) {
        struct slice service = slice_of_text(space->service);
        struct buffer *row = record_begin_row(record);
        row_text(row, service);
        row_id(row, space->id);
        row_u64(row, space->segments++);
        row_u64(row, bytes.size);
        row_text(row, buffer_slice(&packed));
        record_end_row(record, TABLE_DICT, service);
    }
    buffer_fini(&bytes);
    buffer_fini(&packed);
    return status;
}

static void add_sum(struct record *record, const struct space *space, const struct store_chunk *chunk,
                    const uint8_t id[ROW_ID_BYTES], struct slice entries)
{
    struct buffer *row = record_begin_row(record);
    row_text(row, chunk->service);
    row_u8(row, LEVEL_CHUNK);
    row_u64(row, cut_time(chunk->start_ns));
    row_id(row, id);
    row_id(row, space->id);
    row_u64(row, space->dictionary.node_count);
    const struct slice texts[] = {chunk->kinds, chunk->environment, chunk->release,
                                  chunk->host,  chunk->platform,    chunk->rollup->header};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) row_text(row, texts[i]);
    row_u64(row, cut_time(chunk->start_ns));
    row_u64(row, cut_time(chunk->end_ns));
    row_u64(row, 1);
    row_u64(row, 0);
    row_text(row, entries);
    row_u64(row, 1);
    record_end_row(record, TABLE_SUM, chunk->service);
}

/* Adds the sum of CHUNK. *RET_IS_SUMMED is false if a dictionary has no room: queries decode the payload then. */
static enum status sum_chunk(struct cluster *cluster, struct record *record, const struct store_chunk *chunk,
                             const uint8_t id[ROW_ID_BYTES], bool *ret_is_summed, struct error *error)
{
    const struct store_rollup *rollup = chunk->rollup;
    struct space *space = space_take(cluster, record, chunk->service);
    uint32_t *nodes = calloc(rollup->node_count + 1, sizeof(*nodes));
    struct buffer entries = {.maximum = PAYLOAD_ROOM};
    enum status status = STATUS_OK;
    *ret_is_summed = false;
    if (space && nodes) {
        size_t frames = space->dictionary.frame_count, count = space->dictionary.node_count;
        cluster->space_bytes -= stack_dictionary_bytes(&space->dictionary);
        *ret_is_summed = stack_dictionary_number(&space->dictionary, rollup, nodes) &&
                         rollup_encode_entries(rollup, nodes, &entries);
        cluster->space_bytes += stack_dictionary_bytes(&space->dictionary);
        if (space->dictionary.frame_count > frames || space->dictionary.node_count > count)
            status = space_add_segment(record, space, frames, count, error);
    }
    if (*ret_is_summed && status == STATUS_OK) add_sum(record, space, chunk, id, buffer_slice(&entries));
    buffer_fini(&entries);
    free(nodes);
    return status;
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static void write_chunk(struct buffer *row, const struct store_chunk *chunk, const uint8_t id[ROW_ID_BYTES],
                        size_t packed_size, bool is_summed)
{
    row_text(row, chunk->service);
    row_u64(row, cut_time(chunk->start_ns));
    row_id(row, id);
    row_u64(row, cut_time(chunk->end_ns));
    row_u8(row, (uint8_t)chunk->kind);
    const struct slice texts[] = {chunk->profiler_id, chunk->chunk_id, chunk->environment, chunk->release,
                                  chunk->host,        chunk->platform, chunk->kinds,       chunk->series};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) row_text(row, texts[i]);
    row_u64(row, cut_time(chunk->received_ns));
    row_u64(row, chunk->sample_count);
    row_u64(row, chunk->payload.size);
    row_u64(row, packed_size);
    row_u8(row, is_summed);
}

static enum status add_chunk(struct cluster *cluster, struct record *record, const struct store_chunk *chunk,
                             struct slice packed, struct error *error)
{
    const struct slice key[] = {slice_of(&chunk->project, sizeof(chunk->project)), chunk->profiler_id, chunk->chunk_id};
    uint8_t id[ROW_ID_BYTES];
    bool is_summed = false;
    enum status status = STATUS_OK;
    row_id_of(key, 3, id);
    if (chunk->rollup) status = sum_chunk(cluster, record, chunk, id, &is_summed, error);
    write_chunk(record_begin_row(record), chunk, id, packed.size, is_summed);
    row_text(&record->row, packed);
    record_end_row(record, TABLE_RAW, chunk->service);
    write_chunk(record_begin_row(record), chunk, id, packed.size, is_summed);
    record_end_row(record, TABLE_CHUNK, chunk->service);
    return status;
}

static void add_span(struct record *record, const struct store_span *span)
{
    uint64_t start_ns = cut_time(span->start_ns);
    const struct slice key[] = {span->trace_id, span->span_id, slice_of(&start_ns, sizeof(start_ns))};
    uint8_t id[ROW_ID_BYTES];
    struct buffer *row = record_begin_row(record);
    row_id_of(key, 3, id);
    row_u64(row, start_ns);
    row_id(row, id);
    const struct slice texts[] = {span->trace_id,   span->span_id,     span->name,    span->op,
                                  span->service,    span->environment, span->release, span->profiler_id,
                                  span->profile_id, span->thread_id};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) row_text(row, texts[i]);
    row_u64(row, cut_time(span->end_ns));
    row_u8(row, span->is_transaction);
    record_end_row(record, TABLE_SPAN, span->service);
}

static bool add_rejected(struct record *record, const struct store_rejected *rejected, struct slice packed)
{
    uint8_t id[ROW_ID_BYTES];
    if (!row_id_new(id)) return false;
    uint16_t keep = record->keep;
    record->keep = 1;
    struct buffer *row = record_begin_row(record);
    record->keep = keep;
    row_u64(row, cut_time(rejected->received_ns));
    row_id(row, id);
    const struct slice texts[] = {rejected->type,     rejected->reason, rejected->place, rejected->found,
                                  rejected->expected, rejected->sdk,    rejected->header};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) row_text(row, texts[i]);
    row_u64(row, rejected->payload.size);
    row_text(row, packed);
    record_end_row(record, TABLE_REJECTED, slice_of(NULL, 0));
    return true;
}

static bool add_outcome(struct record *record, const struct store_outcome *outcome)
{
    uint8_t id[ROW_ID_BYTES];
    if (!row_id_new(id)) return false;
    struct buffer *row = record_begin_row(record);
    row_id(row, id);
    row_text(row, outcome->outcome);
    row_text(row, outcome->category);
    row_text(row, outcome->reason);
    row_u64(row, outcome->quantity);
    record_end_row(record, TABLE_OUTCOME, slice_of(NULL, 0));
    return true;
}

/* --- A batch ------------------------------------------------------------------------------------------------------ */

/* Returns the packed payloads of the chunks, then of the rejected items; to be freed. */
static struct buffer *pack_all(const struct store_batch *batch, enum status *status, struct error *error)
{
    size_t count = batch->chunk_count + batch->rejected_count;
    struct buffer *packed = calloc(count + 1, sizeof(*packed));
    if (!packed) *status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to store a payload");
    for (size_t i = 0; packed && i < count && *status == STATUS_OK; i++) {
        bool is_chunk = i < batch->chunk_count;
        struct slice payload = is_chunk ? batch->chunks[i].payload : batch->rejected[i - batch->chunk_count].payload;
        if (!is_chunk && payload.size > STORE_REJECTED_BYTES_MAX) continue;
        buffer_init(&packed[i], STORE_PAYLOAD_BYTES_MAX + (STORE_PAYLOAD_BYTES_MAX >> 7));
        *status = payload_pack(payload, &packed[i], error);
    }
    return packed;
}

static enum status write_rows(struct cluster *cluster, struct record *record, const struct store_batch *batch,
                              const struct buffer *packed, struct error *error)
{
    enum status status = STATUS_OK;
    bool has_ids = true;
    for (size_t i = 0; i < batch->chunk_count && status == STATUS_OK; i++)
        status = add_chunk(cluster, record, &batch->chunks[i], buffer_slice(&packed[i]), error);
    for (size_t i = 0; i < batch->span_count; i++) add_span(record, &batch->spans[i]);
    for (size_t i = 0; i < batch->rejected_count && has_ids; i++)
        has_ids = add_rejected(record, &batch->rejected[i], buffer_slice(&packed[batch->chunk_count + i]));
    for (size_t i = 0; i < batch->outcome_count && has_ids; i++) has_ids = add_outcome(record, &batch->outcomes[i]);
    if (status == STATUS_OK && !has_ids) status = error_set(error, STATUS_IO, 0, "the system has no random bytes");
    if (status == STATUS_OK && record->bytes.failed)
        status = error_set(error, STATUS_TOO_LARGE, 0, "not enough memory for the rows of a request");
    return status;
}

static enum status add_record(struct cluster *cluster, struct record *record, const struct store_batch *batch,
                              const struct buffer *packed, struct error *error)
{
    bool has_lost;
    uint64_t file;
    insert_spool_begin(cluster->spool, &has_lost);
    if (has_lost) cluster_forget_spaces(cluster);
    enum status status = write_rows(cluster, record, batch, packed, error);
    if (status != STATUS_OK) {
        cluster_forget_spaces(cluster); /* their stacks are not in the spool */
        insert_spool_abandon(cluster->spool);
        return status;
    }
    for (size_t i = 0; i < batch->chunk_count; i++) coverage_note(&cluster->coverage, &batch->chunks[i]);
    status = insert_spool_add(cluster->spool, buffer_slice(&record->bytes), &file, error);
    if (status != STATUS_OK || !cluster->options.waits_for_cluster) return status;
    (void)insert_spool_flush(cluster->spool);
    return insert_spool_wait(cluster->spool, file, ACK_SECONDS * SECOND_NS)
               ? STATUS_OK
               : error_set(error, STATUS_IO, 0, "the cluster has not taken it yet; it is kept, and may be sent again");
}

enum status cluster_add(struct store *store, const struct store_batch *batch, uint64_t *ret_duplicates,
                        struct error *error)
{
    struct cluster *cluster = store_engine_data(store);
    uint64_t age_ns = store_age_of_project(store, batch->project, 1);
    uint64_t days = (age_ns + DAY_NS - 1) / DAY_NS;
    struct record record = {.bytes = {.maximum = SPOOL_RECORD_BYTES_MAX},
                            .row = {.maximum = SPOOL_RECORD_BYTES_MAX},
                            .keep = age_ns == 1                          ? 0
                                    : age_ns == 0 || days > KEEP_FOREVER ? KEEP_FOREVER
                                                                         : (uint16_t)days,
                            .day = (uint16_t)(batch->received_ns / DAY_NS),
                            .project = batch->project};
    enum status status = STATUS_OK;
    struct buffer *packed = pack_all(batch, &status, error);
    if (status == STATUS_OK) status = add_record(cluster, &record, batch, packed, error);
    for (size_t i = 0; packed && i < batch->chunk_count + batch->rejected_count; i++) buffer_fini(&packed[i]);
    free(packed);
    buffer_fini(&record.bytes);
    buffer_fini(&record.row);
    if (status == STATUS_OK && ret_duplicates) *ret_duplicates = 0; /* only a reader sees them */
    return status;
}
