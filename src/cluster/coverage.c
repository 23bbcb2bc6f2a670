/* Finds out which roll-ups are right, and keeps that for a while.  SPDX-License-Identifier: MIT */
#include "cluster/coverage.h"

#include "base/clocks.h"
#include "base/partition_point.h"
#include "cluster/cluster_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SQL_BYTES_MAX = 16 << 10,
    CHECK_SECONDS = 60,      /* days near today are looked at again after so long */
    OLD_CHECK_SECONDS = 600, /* older days are */
    QUIET_SECONDS = 300,     /* chunks that started later are not in roll-ups */
    SERVICES_MAX = 1 << 14,
    BUCKETS_MAX = 1 << 20,
    SETS_MAX = 1 << 19,
    DAYS_BYTES_MAX = 512 << 20,
};

static const uint64_t BUCKET_NS = DAY_NS / BUCKETS_PER_DAY;

static void free_day(struct coverage_day *day)
{
    free(day->services.items);
    free(day->buckets.items);
    free(day->sets.items);
    free(day);
}

void coverage_init(struct coverage *coverage)
{
    (void)pthread_mutex_init(&coverage->lock, NULL);
}

void coverage_fini(struct coverage *coverage)
{
    for (size_t i = 0; i < coverage->day_count; i++) free_day(coverage->days[i]);
    free(coverage->longest.items);
    (void)pthread_mutex_destroy(&coverage->lock);
}

/* --- Days that are kept ------------------------------------------------------------------------------------------- */

static void drop_day(struct coverage *coverage, size_t place)
{
    struct coverage_day *day = coverage->days[place];
    coverage->days[place] = coverage->days[--coverage->day_count];
    day->is_kept = false;
    if (day->users == 0) free_day(day);
}

void coverage_forget(struct coverage *coverage)
{
    (void)pthread_mutex_lock(&coverage->lock);
    while (coverage->day_count > 0) drop_day(coverage, coverage->day_count - 1);
    coverage->forgotten++;
    (void)pthread_mutex_unlock(&coverage->lock);
}

void coverage_doubt(struct coverage *coverage, struct coverage_day *day)
{
    (void)pthread_mutex_lock(&coverage->lock);
    day->is_doubtful = true;
    (void)pthread_mutex_unlock(&coverage->lock);
}

void coverage_release(struct coverage *coverage, struct coverage_day *day)
{
    (void)pthread_mutex_lock(&coverage->lock);
    if (--day->users == 0 && !day->is_kept) free_day(day);
    (void)pthread_mutex_unlock(&coverage->lock);
}

/* Returns the place of a day, or the number of days. Under the lock. */
static size_t find_day(const struct coverage *coverage, int shard, uint64_t project, uint64_t start_ns)
{
    size_t place = 0;
    while (place < coverage->day_count &&
           (coverage->days[place]->shard != shard || coverage->days[place]->project != project ||
            coverage->days[place]->start_ns != start_ns))
        place++;
    return place;
}

static bool is_fresh(const struct coverage_day *day, uint64_t now_ns)
{
    bool is_old = day->start_ns + 2 * DAY_NS < clock_utc_ns();
    return !day->is_doubtful && now_ns - day->checked_ns < (is_old ? OLD_CHECK_SECONDS : CHECK_SECONDS) * SECOND_NS;
}

static size_t bytes_of_day(const struct coverage_day *day)
{
    return day->services.capacity * sizeof(*day->services.items) + day->buckets.capacity * sizeof(*day->buckets.items) +
           day->sets.capacity * sizeof(*day->sets.items);
}

/* Drops the days that were looked at the longest ago, until there is room for one with BYTES. Under the lock. */
static void make_room(struct coverage *coverage, size_t bytes)
{
    for (size_t i = 0; i < coverage->day_count; i++) bytes += bytes_of_day(coverage->days[i]);
    while (coverage->day_count > 0 && (coverage->day_count == COVERAGE_DAYS_MAX || bytes > DAYS_BYTES_MAX)) {
        size_t oldest = 0;
        for (size_t i = 1; i < coverage->day_count; i++) {
            if (coverage->days[i]->checked_ns < coverage->days[oldest]->checked_ns) oldest = i;
        }
        bytes -= bytes_of_day(coverage->days[oldest]);
        drop_day(coverage, oldest);
    }
}

/* FORGOTTEN: that of COVERAGE before DAY was looked at. */
static void keep_day(struct coverage *coverage, struct coverage_day *day, uint64_t forgotten)
{
    (void)pthread_mutex_lock(&coverage->lock);
    day->is_doubtful = forgotten != coverage->forgotten;
    size_t place = find_day(coverage, day->shard, day->project, day->start_ns);
    if (place < coverage->day_count) drop_day(coverage, place);
    make_room(coverage, bytes_of_day(day));
    day->is_kept = true;
    day->users = 1;
    coverage->days[coverage->day_count++] = day;
    (void)pthread_mutex_unlock(&coverage->lock);
}

/* --- Late chunks of this server ----------------------------------------------------------------------------------- */

static void note_longest(struct coverage *coverage, const struct store_chunk *chunk)
{
    uint64_t length_ns = chunk->end_ns > chunk->start_ns ? chunk->end_ns - chunk->start_ns : 0;
    for (size_t i = 0; i < coverage->longest.count; i++) {
        struct coverage_longest *longest = &coverage->longest.items[i];
        if (longest->project == chunk->project && length_ns > longest->longest_ns) longest->longest_ns = length_ns;
    }
}

void coverage_note(struct coverage *coverage, const struct store_chunk *chunk)
{
    uint64_t now_ns = clock_monotonic_ns();
    bool is_late = chunk->start_ns + (QUIET_SECONDS - COVERAGE_NOTE_SECONDS) * SECOND_NS < clock_utc_ns();
    struct coverage_note note = {
        .project = chunk->project, .bucket_ns = chunk->start_ns - chunk->start_ns % BUCKET_NS, .noted_ns = now_ns};
    row_id_of(&chunk->service, 1, note.service);
    (void)pthread_mutex_lock(&coverage->lock);
    note_longest(coverage, chunk);
    struct coverage_note *place = &coverage->notes[0];
    for (size_t i = 0; is_late && i < COVERAGE_NOTES_MAX; i++) {
        struct coverage_note *known = &coverage->notes[i];
        if (known->noted_ns < place->noted_ns) place = known;
        if (known->project != note.project || known->bucket_ns != note.bucket_ns ||
            memcmp(known->service, note.service, ROW_ID_BYTES) != 0)
            continue;
        place = known;
        break;
    }
    bool is_other = place->project != note.project || place->bucket_ns != note.bucket_ns ||
                    memcmp(place->service, note.service, ROW_ID_BYTES) != 0;
    if (is_late && is_other && place->noted_ns > coverage->lost_notes_ns) coverage->lost_notes_ns = place->noted_ns;
    if (is_late) *place = note;
    if (is_late) coverage->newest_note_ns = now_ns;
    (void)pthread_mutex_unlock(&coverage->lock);
}

/* --- Looking at a day --------------------------------------------------------------------------------------------- */

/* Returns the index of the service NAME; UINT32_MAX without room. Services come in the order of their names, and later
 * questions about the same day may have further ones at the end: so the search begins where the last one ended. */
static uint32_t take_service(struct coverage_day *day, struct slice name)
{
    for (size_t i = 0; i < day->services.count; i++) {
        size_t place = (day->last_service + i) % day->services.count;
        if (!slice_equals_text(name, day->services.items[place].name)) continue;
        day->last_service = (uint32_t)place;
        return (uint32_t)place;
    }
    struct coverage_service *service =
        name.size <= STORE_NAME_BYTES_MAX ? ARRAY_ADD(&day->services, SERVICES_MAX) : NULL;
    if (!service) {
        day->is_too_large = true;
        return UINT32_MAX;
    }
    *service = (struct coverage_service){.name = ""};
    if (name.size > 0) (void)memcpy(service->name, name.data, name.size);
    row_id_of(&name, 1, service->id);
    day->last_service = (uint32_t)day->services.count - 1;
    return day->last_service;
}

static bool take_bucket(void *context, const struct row *row)
{
    struct coverage_day *day = context;
    const struct coverage_bucket bucket = {.service = take_service(day, row->cells[0]),
                                           .number = (uint32_t)row_number(row, 1) % BUCKETS_PER_DAY,
                                           .inputs = row_number(row, 2),
                                           .inputs_xor = row_number(row, 3)};
    if (bucket.service != UINT32_MAX && !ARRAY_PUSH(&day->buckets, BUCKETS_MAX, bucket)) day->is_too_large = true;
    return !day->is_too_large;
}

static bool take_void(void *context, const struct row *row)
{
    struct coverage_day *day = context;
    const struct coverage_bucket bucket = {.service = take_service(day, row->cells[0]),
                                           .number = (uint32_t)row_number(row, 1) % BUCKETS_PER_DAY,
                                           .is_void = true};
    if (bucket.service != UINT32_MAX && !ARRAY_PUSH(&day->buckets, BUCKETS_MAX, bucket)) day->is_too_large = true;
    return !day->is_too_large;
}

static bool take_set(void *context, const struct row *row)
{
    struct coverage_day *day = context;
    const struct coverage_set set = {.service = take_service(day, row->cells[0]),
                                     .level = (int)row_number(row, 1),
                                     .start_ns = row_number(row, 2),
                                     .inputs = row_number(row, 3),
                                     .inputs_xor = row_number(row, 4),
                                     .rows = row_number(row, 5),
                                     .first_ns = row_number(row, 6),
                                     .last_ns = row_number(row, 7)};
    if (set.level <= LEVEL_CHUNK || set.level >= LEVELS) return true;
    if (set.service != UINT32_MAX && !ARRAY_PUSH(&day->sets, SETS_MAX, set)) day->is_too_large = true;
    return !day->is_too_large;
}

static enum status ask(struct cluster *cluster, const struct coverage_day *day, const char *columns, const char *table,
                       const char *rest, const char *types, row_visit *visit, struct error *error)
{
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    buffer_append_format(&sql,
                         "SELECT %s FROM %s WHERE project = %" PRIu64 " AND start_ns >= %" PRIu64
                         " AND start_ns < %" PRIu64 " AND %s FORMAT RowBinary",
                         columns, table, day->project, day->start_ns, day->until_ns, rest);
    enum status status = topology_each_sum(&cluster->topology, day->shard, buffer_slice(&sql), types, visit,
                                           (void *)(uintptr_t)day, error);
    buffer_fini(&sql);
    return status;
}

static int compare_buckets(const void *a, const void *b)
{
    const struct coverage_bucket *left = a, *right = b;
    if (left->service != right->service) return left->service < right->service ? -1 : 1;
    return (left->number > right->number) - (left->number < right->number);
}

static int compare_sets(const void *a, const void *b)
{
    const struct coverage_set *left = a, *right = b;
    if (left->service != right->service) return left->service < right->service ? -1 : 1;
    if (left->level != right->level) return left->level - right->level;
    return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

/* The buckets of one service from START_NS to END_NS. */
static struct coverage_bucket sum_buckets(const struct coverage_day *day, uint32_t service, uint64_t start_ns,
                                          uint64_t end_ns)
{
    const struct coverage_bucket *items = day->buckets.items;
    uint32_t first = (uint32_t)((start_ns - day->start_ns) / BUCKET_NS);
    uint32_t end = (uint32_t)((end_ns - day->start_ns) / BUCKET_NS);
    struct coverage_bucket sum = {.service = service};
    size_t place = PARTITION_POINT(
        day->buckets.count, i, items[i].service < service || (items[i].service == service && items[i].number < first));
    for (; place < day->buckets.count && items[place].service == service && items[place].number < end; place++) {
        sum.inputs += items[place].inputs;
        sum.inputs_xor ^= items[place].inputs_xor;
        sum.is_void |= items[place].is_void;
    }
    return sum;
}

/* Leaves the roll-ups that are right. */
static void check_sets(struct coverage_day *day)
{
    size_t kept = 0;
    if (day->buckets.count > 0)
        qsort(day->buckets.items, day->buckets.count, sizeof(*day->buckets.items), compare_buckets);
    for (size_t i = 0; i < day->sets.count; i++) {
        const struct coverage_set *set = &day->sets.items[i];
        uint64_t end_ns = rollup_level_end(set->level, set->start_ns);
        if (set->start_ns % (end_ns - set->start_ns) != 0 || end_ns > day->until_ns) continue;
        const struct coverage_bucket sum = sum_buckets(day, set->service, set->start_ns, end_ns);
        if (sum.is_void || sum.inputs != set->inputs || sum.inputs_xor != set->inputs_xor) continue;
        day->sets.items[kept++] = *set;
    }
    day->sets.count = kept;
    if (kept > 0) qsort(day->sets.items, kept, sizeof(*day->sets.items), compare_sets);
}

static enum status look_at_day(struct cluster *cluster, struct coverage_day *day, struct error *error)
{
    enum status status = ask(cluster, day,
                             "service, toUInt64(intDiv(start_ns, 600000000000) % 144) AS b, count(), "
                             "groupBitXor(reinterpretAsUInt64(substring(toString(id), 1, 8)))",
                             "sum", "level = 0 GROUP BY service, b ORDER BY service, b", "sqqq", take_bucket, error);
    if (status == STATUS_OK)
        status = ask(cluster, day, "service, toUInt64(intDiv(start_ns, 600000000000) % 144) AS b, count()", "chunk",
                     "summed = 0 GROUP BY service, b ORDER BY service, b", "sqq", take_void, error);
    if (status == STATUS_OK)
        status = ask(
            cluster, day, "service, level, start_ns, inputs, inputs_xor, set_rows, min(first_ns), max(last_ns)", "sum",
            "level > 0 GROUP BY service, level, start_ns, inputs, inputs_xor, set_rows HAVING uniqExact(id) = set_rows "
            "ORDER BY service, level, start_ns",
            "sbqqqqqq", take_set, error);
    check_sets(day);
    return status;
}

enum status coverage_take(struct cluster *cluster, int shard, uint64_t project, uint64_t time_ns,
                          struct coverage_day **ret_day, struct error *error)
{
    struct coverage *coverage = &cluster->coverage;
    uint64_t now_ns = clock_monotonic_ns(), start_ns = time_ns - time_ns % DAY_NS;
    struct coverage_day *known = NULL;
    (void)pthread_mutex_lock(&coverage->lock);
    size_t place = find_day(coverage, shard, project, start_ns);
    if (place < coverage->day_count && is_fresh(coverage->days[place], now_ns)) known = coverage->days[place];
    if (known) known->users++;
    uint64_t forgotten = coverage->forgotten;
    (void)pthread_mutex_unlock(&coverage->lock);
    *ret_day = known;
    if (known) return STATUS_OK;
    struct coverage_day *day = calloc(1, sizeof(*day));
    if (!day) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    uint64_t quiet_ns = clock_utc_ns() - QUIET_SECONDS * SECOND_NS, end_ns = start_ns + DAY_NS;
    *day = (struct coverage_day){.project = project, .start_ns = start_ns, .shard = shard, .checked_ns = now_ns};
    day->until_ns = quiet_ns < end_ns ? quiet_ns - quiet_ns % BUCKET_NS : end_ns;
    if (day->until_ns < start_ns) day->until_ns = start_ns;
    enum status status = day->until_ns > start_ns ? look_at_day(cluster, day, error) : STATUS_OK;
    if (status != STATUS_OK) {
        free_day(day);
        return status;
    }
    keep_day(coverage, day, forgotten);
    *ret_day = day;
    return STATUS_OK;
}

/* --- Answers ------------------------------------------------------------------------------------------------------ */

bool coverage_has_lost(const struct coverage *coverage, const struct coverage_day *day)
{
    return coverage->lost_notes_ns + COVERAGE_NOTE_SECONDS * SECOND_NS > day->checked_ns && coverage->lost_notes_ns > 0;
}

/* Returns whether this server may have a chunk there that was not seen when DAY was looked at. */
static bool has_note(struct coverage *coverage, const struct coverage_day *day, uint32_t service, uint64_t start_ns,
                     uint64_t end_ns)
{
    uint64_t since_ns =
        day->checked_ns > COVERAGE_NOTE_SECONDS * SECOND_NS ? day->checked_ns - COVERAGE_NOTE_SECONDS * SECOND_NS : 0;
    const uint8_t *id = day->services.items[service].id;
    (void)pthread_mutex_lock(&coverage->lock);
    bool is_noted = coverage_has_lost(coverage, day);
    size_t count = coverage->newest_note_ns > since_ns ? COVERAGE_NOTES_MAX : 0;
    for (size_t i = 0; i < count && !is_noted; i++) {
        const struct coverage_note *note = &coverage->notes[i];
        is_noted = note->noted_ns > since_ns && note->project == day->project && note->bucket_ns >= start_ns &&
                   note->bucket_ns < end_ns && memcmp(note->service, id, ROW_ID_BYTES) == 0;
    }
    (void)pthread_mutex_unlock(&coverage->lock);
    return is_noted;
}

struct coverage_bucket coverage_sum(struct coverage *coverage, const struct coverage_day *day, uint32_t service,
                                    int level, uint64_t start_ns)
{
    uint64_t end_ns = rollup_level_end(level, start_ns);
    struct coverage_bucket sum = sum_buckets(day, service, start_ns, end_ns);
    sum.is_void |= has_note(coverage, day, service, start_ns, end_ns);
    return sum;
}

const struct coverage_set *coverage_find_set(const struct coverage_day *day, uint32_t service, int level,
                                             uint64_t start_ns)
{
    const struct coverage_set wanted = {.service = service, .level = level, .start_ns = start_ns};
    return day->sets.count > 0 ? bsearch(&wanted, day->sets.items, day->sets.count, sizeof(wanted), compare_sets)
                               : NULL;
}
