/* Sums by stack: of each chunk, and of 10 minutes, hours and days.
 *
 * A data file has a dictionary for each service, and a group for each kind of chunk in it (environment, release, host,
 * platform, kinds, header, labels). A rollup belongs to a group and a level; its entries are (distance to the stack
 * before, values), in LEB128. A chunk belongs to the 10 minutes, the hour and the day of its start. The writer of a
 * chunk drops the rollups that it belongs to and notes them as stale, in the same transaction, so that a rollup that is
 * there is right. SPDX-License-Identifier: MIT */
#include "base/cursor.h"
#include "base/leb128.h"
#include "store/store_private.h"

#include <stdlib.h>
#include <string.h>

/* --- Spaces that the writer knows --------------------------------------------------------------------------------- */

static void forget_dictionary(struct known_dictionaries *dictionaries, size_t place)
{
    struct known_dictionary *known = dictionaries->items[place];
    dictionaries->bytes -= stack_dictionary_bytes(&known->dictionary);
    stack_dictionary_fini(&known->dictionary);
    free(known);
    dictionaries->items[place] = dictionaries->items[--dictionaries->count];
}

void known_dictionaries_clear(struct known_dictionaries *dictionaries)
{
    while (dictionaries->count) forget_dictionary(dictionaries, dictionaries->count - 1);
}

static void make_room(struct known_dictionaries *dictionaries)
{
    while (dictionaries->count == KNOWN_DICTIONARIES_MAX ||
           (dictionaries->count && dictionaries->bytes > KNOWN_DICTIONARIES_BYTES_MAX)) {
        size_t oldest = 0;
        for (size_t i = 1; i < dictionaries->count; i++) {
            if (dictionaries->items[i]->used < dictionaries->items[oldest]->used) oldest = i;
        }
        forget_dictionary(dictionaries, oldest);
    }
}

enum status rollup_read_dictionary(sqlite3 *db, int64_t id, bool is_indexed, struct stack_dictionary *dictionary,
                                   uint64_t *ret_segments, struct error *error)
{
    sqlite3_stmt *row = NULL;
    struct buffer bytes;
    enum status status = STATUS_OK;
    buffer_init(&bytes, PAYLOAD_ROOM);
    *ret_segments = 0;
    int code = sqlite3_prepare_v2(db, "SELECT size,bytes FROM segment WHERE space=? ORDER BY number", -1, &row, NULL);
    if (code == SQLITE_OK) (void)sqlite3_bind_int64(row, 1, id);
    while (status == STATUS_OK && code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        buffer_clear(&bytes);
        status = payload_unpack(sql_text(row, 1), sql_u64(row, 0), &bytes, error);
        if (status == STATUS_OK && !stack_dictionary_read(dictionary, buffer_slice(&bytes), is_indexed))
            status = error_set(error, STATUS_MALFORMED, 0, "the stacks of a service are damaged");
        ++*ret_segments;
        code = SQLITE_OK;
    }
    if (status == STATUS_OK && code != SQLITE_DONE) status = sql_failed(db, error, "cannot read stacks");
    (void)sqlite3_finalize(row);
    buffer_fini(&bytes);
    return status;
}

static struct known_dictionary *find_known(struct known_dictionaries *dictionaries, const struct day *day,
                                           const struct store_chunk *chunk)
{
    for (size_t i = 0; i < dictionaries->count; i++) {
        struct known_dictionary *known = dictionaries->items[i];
        if (known->project != chunk->project || !slice_equals_text(chunk->service, known->service) ||
            strcmp(known->day, day->name) != 0)
            continue;
        known->used = ++dictionaries->uses;
        return known;
    }
    return NULL;
}

/* Sets RET_ID to the number in the row that STATEMENT finds; 0 if there is none. */
static enum status find_row(struct day *day, sqlite3_stmt *statement, int64_t *ret_id, struct error *error)
{
    int code = sqlite3_step(statement);
    *ret_id = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    enum status status = code == SQLITE_ROW || code == SQLITE_DONE ? STATUS_OK : sql_failed(day->db, error, day->name);
    (void)sqlite3_reset(statement);
    return status;
}

static enum status open_dictionary(struct day *day, const struct store_chunk *chunk, struct known_dictionary *known,
                                   struct error *error)
{
    sqlite3_stmt *find = day->statements[FIND_DICTIONARY], *add = day->statements[ADD_DICTIONARY];
    sql_bind_u64(find, 1, chunk->project);
    sql_bind_slice(find, 2, chunk->service);
    enum status status = find_row(day, find, &known->id, error);
    if (status != STATUS_OK) return status;
    if (known->id) return rollup_read_dictionary(day->db, known->id, true, &known->dictionary, &known->segments, error);
    sql_bind_u64(add, 1, chunk->project);
    sql_bind_slice(add, 2, chunk->service);
    status = day_run(day, add, error);
    known->id = sqlite3_last_insert_rowid(day->db);
    return status;
}

static enum status take_dictionary(struct known_dictionaries *dictionaries, struct day *day,
                                   const struct store_chunk *chunk, struct known_dictionary **ret_known,
                                   struct error *error)
{
    *ret_known = find_known(dictionaries, day, chunk);
    if (*ret_known) return STATUS_OK;
    make_room(dictionaries);
    struct known_dictionary *known = calloc(1, sizeof(*known));
    if (!known || chunk->service.size > STORE_NAME_BYTES_MAX) {
        free(known);
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to store a sum");
    }
    (void)memcpy(known->day, day->name, sizeof(known->day));
    if (chunk->service.size) (void)memcpy(known->service, chunk->service.data, chunk->service.size);
    known->project = chunk->project;
    known->used = ++dictionaries->uses;
    enum status status = open_dictionary(day, chunk, known, error);
    dictionaries->items[dictionaries->count++] = known;
    dictionaries->bytes += stack_dictionary_bytes(&known->dictionary);
    if (status != STATUS_OK) forget_dictionary(dictionaries, dictionaries->count - 1);
    *ret_known = status == STATUS_OK ? known : NULL;
    return status;
}

/* --- Adding a chunk ----------------------------------------------------------------------------------------------- */

static enum status store_segment(struct day *day, struct known_dictionary *known, size_t frames, size_t nodes,
                                 struct error *error)
{
    struct buffer bytes, packed;
    sqlite3_stmt *add = day->statements[ADD_SEGMENT];
    buffer_init(&bytes, DICTIONARY_TEXT_MAX + DICTIONARY_NODES_MAX * 2 * LEB128_BYTES_MAX);
    buffer_init(&packed, 2 * (size_t)bytes.maximum);
    stack_dictionary_write(&known->dictionary, frames, nodes, &bytes);
    enum status status = bytes.failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to store a sum")
                                      : payload_pack(buffer_slice(&bytes), &packed, error);
    (void)sqlite3_bind_int64(add, 1, known->id);
    sql_bind_u64(add, 2, known->segments++);
    sql_bind_u64(add, 3, bytes.size);
    (void)sqlite3_bind_blob64(add, 4, packed.data, packed.size, SQLITE_STATIC);
    if (status == STATUS_OK) status = day_run(day, add, error);
    buffer_fini(&bytes);
    buffer_fini(&packed);
    return status;
}

static void bind_group(sqlite3_stmt *statement, int64_t dictionary, const struct store_chunk *chunk)
{
    struct slice header = chunk->rollup->header, labels = chunk->rollup->labels;
    (void)sqlite3_bind_int64(statement, 1, dictionary);
    sql_bind_slice(statement, 2, chunk->environment);
    sql_bind_slice(statement, 3, chunk->release);
    sql_bind_slice(statement, 4, chunk->host);
    sql_bind_slice(statement, 5, chunk->platform);
    sql_bind_slice(statement, 6, chunk->kinds);
    (void)sqlite3_bind_blob64(statement, 7, header.size ? (const void *)header.data : "", header.size, SQLITE_STATIC);
    (void)sqlite3_bind_blob64(statement, 8, labels.size ? (const void *)labels.data : "", labels.size, SQLITE_STATIC);
}

static enum status take_group(struct day *day, int64_t dictionary, const struct store_chunk *chunk, int64_t *ret_group,
                              struct error *error)
{
    sqlite3_stmt *find = day->statements[FIND_GROUP], *add = day->statements[ADD_GROUP];
    bind_group(find, dictionary, chunk);
    enum status status = find_row(day, find, ret_group, error);
    if (status != STATUS_OK || *ret_group) return status;
    bind_group(add, dictionary, chunk);
    status = day_run(day, add, error);
    *ret_group = sqlite3_last_insert_rowid(day->db);
    return status;
}

static enum status drop_rolled_up(struct day *day, int64_t group, uint64_t start_ns, struct error *error)
{
    static const int statements[] = {DROP_ROLLUPS, ADD_STALE};
    enum status status = STATUS_OK;
    for (int level = LEVEL_10_MINUTES; level < LEVELS; level++) {
        for (size_t i = 0; i < 2 && status == STATUS_OK; i++) {
            sqlite3_stmt *statement = day->statements[statements[i]];
            (void)sqlite3_bind_int64(statement, 1, group);
            (void)sqlite3_bind_int(statement, 2, level);
            sql_bind_u64(statement, 3, rollup_level_start(level, start_ns));
            status = day_run(day, statement, error);
        }
    }
    return status;
}

static enum status insert_rollup(sqlite3 *db, sqlite3_stmt *add, const struct rollup_row *row, struct slice entries,
                                 struct error *error)
{
    (void)sqlite3_bind_int64(add, 1, row->group);
    (void)sqlite3_bind_int(add, 2, row->level);
    sql_bind_u64(add, 3, row->start_ns);
    (void)sqlite3_bind_int64(add, 4, row->chunk);
    sql_bind_u64(add, 5, row->first_ns);
    sql_bind_u64(add, 6, row->last_ns);
    (void)sqlite3_bind_blob64(add, 7, entries.data, entries.size, SQLITE_STATIC);
    enum status status = sqlite3_step(add) == SQLITE_DONE ? STATUS_OK : sql_failed(db, error, "cannot store a sum");
    (void)sqlite3_reset(add);
    return status;
}

static enum status store_numbered(struct day *day, const struct store_chunk *chunk, int64_t row, int64_t group,
                                  struct slice entries, struct error *error)
{
    const struct rollup_row rollup = {.group = group,
                                      .start_ns = chunk->start_ns,
                                      .chunk = row,
                                      .first_ns = chunk->start_ns,
                                      .last_ns = chunk->end_ns};
    sqlite3_stmt *mark = day->statements[MARK_ROLLED_UP];
    enum status status = insert_rollup(day->db, day->statements[ADD_ROLLUP], &rollup, entries, error);
    if (status == STATUS_OK) status = drop_rolled_up(day, group, chunk->start_ns, error);
    (void)sqlite3_bind_int64(mark, 1, row);
    return status == STATUS_OK ? day_run(day, mark, error) : status;
}

enum status rollup_store(struct known_dictionaries *dictionaries, struct day *day, const struct store_chunk *chunk,
                         int64_t row, struct error *error)
{
    const struct store_rollup *rollup = chunk->rollup;
    struct known_dictionary *known;
    struct buffer entries;
    int64_t group;
    enum status status = take_dictionary(dictionaries, day, chunk, &known, error);
    if (status == STATUS_MALFORMED) return STATUS_OK; /* without a rollup, queries decode the payload */
    if (status != STATUS_OK) return status;
    buffer_init(&entries, PAYLOAD_ROOM);
    uint32_t *nodes = calloc(rollup->node_count + 1, sizeof(*nodes));
    size_t frames = known->dictionary.frame_count, count = known->dictionary.node_count;
    dictionaries->bytes -= stack_dictionary_bytes(&known->dictionary);
    bool has_room = nodes && stack_dictionary_number(&known->dictionary, rollup, nodes) &&
                    rollup_encode_entries(rollup, nodes, &entries);
    dictionaries->bytes += stack_dictionary_bytes(&known->dictionary);
    if (known->dictionary.frame_count > frames || known->dictionary.node_count > count)
        status = store_segment(day, known, frames, count, error);
    if (has_room && status == STATUS_OK) status = take_group(day, known->id, chunk, &group, error);
    if (has_room && status == STATUS_OK) status = store_numbered(day, chunk, row, group, buffer_slice(&entries), error);
    buffer_fini(&entries);
    free(nodes);
    return status;
}

/* --- Rolling up --------------------------------------------------------------------------------------------------- */

enum { ROLLUPS_AT_ONCE = 64, QUIET_SECONDS = 120 };

struct rollup_update {
    struct day *day;
    sqlite3_stmt *parts, *add, *fresh;
    uint64_t count;
};

/* Adds up the rollups of the level below. Without any, there is nothing to write. */
static enum status update_rollup(struct rollup_update *update, struct rollup_row row, struct error *error)
{
    struct rollup_values values = {0};
    sqlite3_stmt *parts = update->parts;
    enum status status = STATUS_OK;
    row.first_ns = UINT64_MAX;
    (void)sqlite3_bind_int64(parts, 1, row.group);
    (void)sqlite3_bind_int(parts, 2, row.level - 1);
    sql_bind_u64(parts, 3, row.start_ns);
    sql_bind_u64(parts, 4, rollup_level_end(row.level, row.start_ns));
    int code;
    while (status == STATUS_OK && (code = sqlite3_step(parts)) == SQLITE_ROW) {
        uint64_t first_ns = sql_u64(parts, 0), last_ns = sql_u64(parts, 1);
        if (first_ns < row.first_ns) row.first_ns = first_ns;
        if (last_ns > row.last_ns) row.last_ns = last_ns;
        if (!rollup_add_entries(&values, sql_text(parts, 2)))
            status = error_set(error, STATUS_MALFORMED, 0, "%s: a sum is damaged", update->day->name);
    }
    if (status == STATUS_OK && code != SQLITE_DONE) status = sql_failed(update->day->db, error, "cannot read sums");
    (void)sqlite3_reset(parts);
    if (status == STATUS_OK && row.last_ns >= row.first_ns) {
        struct buffer entries;
        buffer_init(&entries, PAYLOAD_ROOM);
        rollup_encode_values(&values, &entries);
        status = entries.failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to store a sum")
                                : insert_rollup(update->day->db, update->add, &row, buffer_slice(&entries), error);
        buffer_fini(&entries);
        update->count++;
    }
    rollup_values_fini(&values);
    if (status != STATUS_OK) return status;
    (void)sqlite3_bind_int(update->fresh, 1, row.level);
    sql_bind_u64(update->fresh, 2, row.start_ns);
    (void)sqlite3_bind_int64(update->fresh, 3, row.group);
    return day_run(update->day, update->fresh, error);
}

/* The next stale rollups of LEVEL whose time is over and whose parts are not stale. */
static enum status list_stale(struct day *day, int level, uint64_t now_ns, struct rollup_row rows[ROLLUPS_AT_ONCE],
                              size_t *ret_count, struct error *error)
{
    sqlite3_stmt *stale = NULL;
    *ret_count = 0;
    static const char sql[] =
        "SELECT start_ns,sum_group FROM stale AS whole WHERE level=?1 AND start_ns<=?2 AND NOT EXISTS(SELECT 1 FROM "
        "stale WHERE level=?1-1 AND start_ns>=whole.start_ns AND start_ns<whole.start_ns+?4 AND "
        "sum_group=whole.sum_group) LIMIT ?3";
    int code = sqlite3_prepare_v2(day->db, sql, -1, &stale, NULL);
    uint64_t length_ns = rollup_level_end(level, 0), quiet_ns = length_ns + QUIET_SECONDS * SECOND_NS;
    if (code == SQLITE_OK && now_ns > quiet_ns) {
        (void)sqlite3_bind_int(stale, 1, level);
        sql_bind_u64(stale, 2, now_ns - quiet_ns);
        (void)sqlite3_bind_int(stale, 3, ROLLUPS_AT_ONCE);
        sql_bind_u64(stale, 4, length_ns);
        while ((code = sqlite3_step(stale)) == SQLITE_ROW && *ret_count < ROLLUPS_AT_ONCE)
            rows[(*ret_count)++] = (struct rollup_row){
                .group = sqlite3_column_int64(stale, 1), .level = level, .start_ns = sql_u64(stale, 0)};
        if (code == SQLITE_DONE) code = SQLITE_OK;
    }
    enum status status = code == SQLITE_OK || code == SQLITE_ROW ? STATUS_OK : sql_failed(day->db, error, day->name);
    (void)sqlite3_finalize(stale);
    return status;
}

/* Updates up to ROLLUPS_AT_ONCE rollups of LEVEL in one transaction. Levels have an order: an hour is over after all
 * of its 10 minutes. */
static enum status update_some_rollups(struct rollup_update *update, int level, uint64_t now_ns, bool *ret_is_done,
                                       struct error *error)
{
    struct rollup_row rows[ROLLUPS_AT_ONCE];
    size_t count = 0;
    sqlite3 *db = update->day->db;
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return sql_failed(db, error, update->day->name);
    enum status status = list_stale(update->day, level, now_ns, rows, &count, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) status = update_rollup(update, rows[i], error);
    if (status == STATUS_OK && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = sql_failed(db, error, update->day->name);
    if (status != STATUS_OK) (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    *ret_is_done = count < ROLLUPS_AT_ONCE;
    return status;
}

static enum status update_day(struct store *store, struct day *day, uint64_t now_ns, uint64_t *count,
                              struct error *error)
{
    struct rollup_update update = {.day = day, .add = day->statements[ADD_ROLLUP]};
    enum status status = STATUS_OK;
    if (sqlite3_prepare_v2(day->db,
                           "SELECT first_ns,last_ns,entries FROM sum WHERE sum_group=? AND level=? AND start_ns>=? AND "
                           "start_ns<? ORDER BY start_ns,chunk",
                           -1, &update.parts, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(day->db, "DELETE FROM stale WHERE level=? AND start_ns=? AND sum_group=?", -1, &update.fresh,
                           NULL) != SQLITE_OK)
        status = sql_failed(day->db, error, day->name);
    for (int level = LEVEL_10_MINUTES; level < LEVELS && status == STATUS_OK; level++) {
        for (bool is_done = false; !is_done && status == STATUS_OK;) {
            (void)pthread_mutex_lock(&store->writer_lock);
            status = update_some_rollups(&update, level, now_ns, &is_done, error);
            (void)pthread_mutex_unlock(&store->writer_lock);
        }
    }
    (void)sqlite3_finalize(update.parts);
    (void)sqlite3_finalize(update.fresh);
    *count += update.count;
    return status;
}

enum status days_update_rollups(struct store *store, uint64_t now_ns, uint64_t *ret_count, struct error *error)
{
    char(*names)[DAY_NAME_SIZE];
    size_t count;
    uint64_t made = 0;
    enum status status = list_days(store->folder, &names, &count, error);
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct day day;
        struct error problem = {0};
        status = day_open(&day, store->folder, names[i], true, &problem);
        if (status == STATUS_OK) status = update_day(store, &day, now_ns, &made, &problem);
        day_close(&day);
        if (status == STATUS_MALFORMED)
            status = STATUS_OK; /* queries report the damage */
        else if (status != STATUS_OK && error)
            *error = problem;
    }
    free(names);
    if (ret_count) *ret_count = made;
    return status;
}
