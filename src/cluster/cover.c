/* Chooses the rows of a query: roll-ups that are wholly in its range, from days down to 10 minutes, and the sums of
 * chunks in between.  SPDX-License-Identifier: MIT */
#include "base/clocks.h"
#include "base/hash.h"
#include "cluster/cluster_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANGES_MAX = 64, /* in a statement */
    ALL_RANGES_MAX = 1 << 16,
    SETS_MAX = 1 << 18,
    DAYS_MAX = 128,
    SQL_BYTES_MAX = 4096,
};
static const uint64_t SHORTEST_NS = 1200 * SECOND_NS; /* shorter queries have no use for roll-ups */

void cover_fini(struct cover *cover)
{
    for (int level = 0; level < LEVELS; level++) free(cover->ranges[level].items);
    free(cover->sets.items);
    index_table_fini(&cover->sets.index);
}

/* --- Ranges ------------------------------------------------------------------------------------------------------- */

static int compare_ranges(const void *a, const void *b)
{
    const struct cover_range *left = a, *right = b;
    return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

/* Joins ranges that touch, and neighbours until there are few. */
static void tidy_ranges(struct cover *cover, int level)
{
    struct cover_range *ranges = cover->ranges[level].items;
    size_t count = 0;
    if (cover->ranges[level].count > 0) qsort(ranges, cover->ranges[level].count, sizeof(*ranges), compare_ranges);
    for (size_t i = 0; i < cover->ranges[level].count; i++) {
        if (count > 0 && ranges[i].start_ns <= ranges[count - 1].end_ns) {
            if (ranges[i].end_ns > ranges[count - 1].end_ns) ranges[count - 1].end_ns = ranges[i].end_ns;
        } else {
            ranges[count++] = ranges[i];
        }
    }
    for (; count > RANGES_MAX; count = (count + 1) / 2) {
        for (size_t i = 0; i < count; i += 2)
            ranges[i / 2] = (struct cover_range){ranges[i].start_ns, ranges[i + 1 < count ? i + 1 : i].end_ns};
    }
    cover->ranges[level].count = count;
}

static void add_range(struct cover *cover, int level, uint64_t start_ns, uint64_t end_ns)
{
    if (start_ns >= end_ns) return;
    if (cover->ranges[level].count == ALL_RANGES_MAX) tidy_ranges(cover, level);
    if (!ARRAY_PUSH(&cover->ranges[level], ALL_RANGES_MAX, (struct cover_range){start_ns, end_ns}))
        cover->failed = true;
}

/* --- Roll-ups that were chosen ------------------------------------------------------------------------------------ */

static uint64_t hash_of(const uint8_t *service, int level, uint64_t start_ns)
{
    return hash_mix(hash_bytes(service, ROW_ID_BYTES), start_ns + (uint64_t)level);
}

static bool set_equals(const void *context, uint32_t index, const void *key)
{
    const struct cover *cover = context;
    const struct cover_set *set = &cover->sets.items[index], *wanted = key;
    return set->level == wanted->level && set->start_ns == wanted->start_ns &&
           memcmp(set->service, wanted->service, ROW_ID_BYTES) == 0;
}

static const struct cover_set *find_set(const struct cover *cover, const uint8_t *service, int level, uint64_t start_ns)
{
    struct cover_set wanted = {.level = level, .start_ns = start_ns};
    (void)memcpy(wanted.service, service, ROW_ID_BYTES);
    uint32_t index =
        index_table_find(&cover->sets.index, hash_of(service, level, start_ns), set_equals, cover, &wanted);
    return index == INDEX_NONE ? NULL : &cover->sets.items[index];
}

static void choose_set(struct cover *cover, const uint8_t *service, const struct coverage_set *set)
{
    struct cover_set chosen = {.level = set->level,
                               .start_ns = set->start_ns,
                               .inputs = set->inputs,
                               .inputs_xor = set->inputs_xor,
                               .rows = set->rows};
    (void)memcpy(chosen.service, service, ROW_ID_BYTES);
    /* Where there is no room, the chunks are read. */
    bool has_room = INDEXED_ARRAY_PUSH(&cover->sets, SETS_MAX, hash_of(service, set->level, set->start_ns), chosen);
    add_range(cover, has_room ? set->level : LEVEL_CHUNK, set->start_ns, rollup_level_end(set->level, set->start_ns));
}

bool cover_takes(const struct cover *cover, const uint8_t *service, int level, uint64_t start_ns, uint64_t inputs,
                 uint64_t inputs_xor)
{
    if (cover->sets.count == 0) return level == LEVEL_CHUNK;
    if (level > LEVEL_CHUNK) {
        const struct cover_set *set = find_set(cover, service, level, start_ns);
        return set && set->inputs == inputs && set->inputs_xor == inputs_xor;
    }
    for (int above = LEVEL_10_MINUTES; above < LEVELS; above++) {
        if (find_set(cover, service, above, rollup_level_start(above, start_ns))) return false;
    }
    return true;
}

/* --- Choosing ----------------------------------------------------------------------------------------------------- */

struct choosing {
    struct cover *cover;
    struct coverage *coverage;
    const struct coverage_day *day;
    uint64_t from_ns, to_ns; /* roll-ups must be in this range */
};

/* Chooses what has the chunks of SERVICE that start in the time of LEVEL from START_NS on. */
static void choose(const struct choosing *choosing, uint32_t service, int level, uint64_t start_ns)
{
    uint64_t end_ns = rollup_level_end(level, start_ns);
    if (start_ns >= choosing->day->until_ns || start_ns >= choosing->to_ns || end_ns <= choosing->from_ns) return;
    const struct coverage_bucket sum = coverage_sum(choosing->coverage, choosing->day, service, level, start_ns);
    if (sum.inputs == 0 && !sum.is_void) return;
    const struct coverage_set *set = coverage_find_set(choosing->day, service, level, start_ns);
    if (set && !sum.is_void && set->first_ns >= choosing->from_ns && set->last_ns < choosing->to_ns) {
        choose_set(choosing->cover, choosing->day->services.items[service].id, set);
    } else if (level == LEVEL_10_MINUTES) {
        add_range(choosing->cover, LEVEL_CHUNK, start_ns, end_ns);
    } else {
        uint64_t step_ns = rollup_level_end(level - 1, 0);
        for (uint64_t at_ns = start_ns; at_ns < end_ns; at_ns += step_ns) choose(choosing, service, level - 1, at_ns);
    }
}

void cover_inputs(struct coverage *coverage, const struct coverage_day *day, uint32_t service, int level,
                  uint64_t start_ns, struct cover *cover)
{
    const struct choosing choosing = {
        .cover = cover, .coverage = coverage, .day = day, .from_ns = 0, .to_ns = UINT64_MAX};
    uint64_t end_ns = rollup_level_end(level, start_ns);
    if (level == LEVEL_10_MINUTES) {
        add_range(cover, LEVEL_CHUNK, start_ns, end_ns);
        return;
    }
    uint64_t step_ns = rollup_level_end(level - 1, 0);
    for (uint64_t at_ns = start_ns; at_ns < end_ns; at_ns += step_ns) choose(&choosing, service, level - 1, at_ns);
}

/* A service of which nothing was known may have a late chunk of this server. */
static void add_notes(const struct choosing *choosing)
{
    struct coverage *coverage = choosing->coverage;
    const struct coverage_day *day = choosing->day;
    (void)pthread_mutex_lock(&coverage->lock);
    for (size_t i = 0; i < COVERAGE_NOTES_MAX; i++) {
        const struct coverage_note *note = &coverage->notes[i];
        if (note->noted_ns && note->project == day->project && note->bucket_ns >= day->start_ns &&
            note->bucket_ns < day->until_ns)
            add_range(choosing->cover, LEVEL_CHUNK, note->bucket_ns,
                      rollup_level_end(LEVEL_10_MINUTES, note->bucket_ns));
    }
    bool has_lost = coverage_has_lost(coverage, day);
    (void)pthread_mutex_unlock(&coverage->lock);
    if (has_lost) add_range(choosing->cover, LEVEL_CHUNK, day->start_ns, day->until_ns);
}

static enum status cover_day(struct cluster *cluster, int shard, const struct store_query *query, uint64_t to_ns,
                             uint64_t day_ns, struct cover *cover, struct error *error)
{
    struct coverage_day *day;
    enum status status = coverage_take(cluster, shard, query->project, day_ns, &day, error);
    if (status != STATUS_OK) return status;
    const struct choosing choosing = {
        .cover = cover, .coverage = &cluster->coverage, .day = day, .from_ns = query->from_ns, .to_ns = to_ns};
    if (day->is_too_large) {
        add_range(cover, LEVEL_CHUNK, day->start_ns, day->start_ns + DAY_NS);
    } else {
        for (uint32_t service = 0; service < day->services.count; service++) {
            if (query->service.size == 0 || slice_equals_text(query->service, day->services.items[service].name))
                choose(&choosing, service, LEVEL_DAY, day->start_ns);
        }
        add_notes(&choosing);
        add_range(cover, LEVEL_CHUNK, day->until_ns, day->start_ns + DAY_NS);
    }
    coverage_release(&cluster->coverage, day);
    return STATUS_OK;
}

/* --- Days --------------------------------------------------------------------------------------------------------- */

struct day_list {
    uint64_t starts[DAYS_MAX];
    size_t count;
};

static bool take_day(void *context, const struct row *row)
{
    struct day_list *list = context;
    list->starts[list->count++] = row_number(row, 0) * DAY_NS;
    return list->count < DAYS_MAX;
}

/* The days of the range that have sums, from the last one back. */
static enum status list_days(struct cluster *cluster, int shard, const struct store_query *query, uint64_t to_ns,
                             struct day_list *list, struct error *error)
{
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    buffer_append_format(&sql,
                         "SELECT intDiv(start_ns, %llu) AS d FROM sum WHERE project = %" PRIu64
                         " AND level = 0 AND start_ns >= %" PRIu64 " AND start_ns < %" PRIu64
                         " GROUP BY d ORDER BY d DESC LIMIT %d FORMAT RowBinary",
                         (unsigned long long)DAY_NS, query->project, query->from_ns, to_ns, DAYS_MAX);
    enum status status = topology_each_sum(&cluster->topology, shard, buffer_slice(&sql), "q", take_day, list, error);
    buffer_fini(&sql);
    return status;
}

static enum status cover_days(struct cluster *cluster, int shard, const struct store_query *query, uint64_t to_ns,
                              struct cover *cover, struct error *error)
{
    struct day_list list = {.count = 0};
    uint64_t first_ns = query->from_ns - query->from_ns % DAY_NS;
    uint64_t end_ns = to_ns < clock_utc_ns() ? to_ns : clock_utc_ns(), at_ns = to_ns;
    enum status status = STATUS_OK;
    if (end_ns > first_ns && (end_ns - first_ns) / DAY_NS < DAYS_MAX / 4) {
        for (uint64_t days = (end_ns - first_ns) / DAY_NS + 1; days-- > 0;)
            list.starts[list.count++] = first_ns + days * DAY_NS;
    } else {
        status = list_days(cluster, shard, query, to_ns, &list, error);
    }
    for (size_t i = 0; i < list.count && status == STATUS_OK; i++) {
        add_range(cover, LEVEL_CHUNK, list.starts[i] + DAY_NS, at_ns); /* the days between: late chunks alone */
        status = cover_day(cluster, shard, query, to_ns, list.starts[i], cover, error);
        at_ns = list.starts[i];
    }
    if (at_ns > first_ns) add_range(cover, LEVEL_CHUNK, first_ns, at_ns);
    return status;
}

/* --- The longest chunk -------------------------------------------------------------------------------------------- */

static bool take_longest(void *context, const struct row *row)
{
    *(uint64_t *)context = row_number(row, 0);
    return false;
}

/* Returns NULL without memory. Under the lock. */
static struct coverage_longest *find_longest(struct coverage *coverage, int shard, uint64_t project)
{
    for (size_t i = 0; i < coverage->longest.count; i++) {
        struct coverage_longest *longest = &coverage->longest.items[i];
        if (longest->shard == shard && longest->project == project) return longest;
    }
    struct coverage_longest *added = ARRAY_ADD(&coverage->longest, SETS_MAX);
    if (added) *added = (struct coverage_longest){.project = project, .shard = shard};
    return added;
}

/* Looks at the days of receipt that may have become longer since the last time. */
static enum status find_out_longest(struct cluster *cluster, int shard, uint64_t project, uint64_t *ret_ns,
                                    struct error *error)
{
    enum { CHECK_SECONDS = 60 };
    struct coverage *coverage = &cluster->coverage;
    uint64_t now_ns = clock_monotonic_ns(), today = clock_utc_ns() / DAY_NS, found = 0;
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    (void)pthread_mutex_lock(&coverage->lock);
    struct coverage_longest *longest = find_longest(coverage, shard, project);
    const struct coverage_longest known = longest ? *longest : (struct coverage_longest){.shard = shard};
    (void)pthread_mutex_unlock(&coverage->lock);
    *ret_ns = known.longest_ns;
    if (known.checked_ns && now_ns - known.checked_ns < CHECK_SECONDS * SECOND_NS) return STATUS_OK;
    buffer_append_format(&sql,
                         "SELECT max(if(end_ns > start_ns, end_ns - start_ns, 0)) FROM chunk WHERE project = %" PRIu64
                         " AND day >= toDate(%" PRIu64 ") FORMAT RowBinary",
                         project, known.day);
    enum status status =
        topology_each_sum(&cluster->topology, shard, buffer_slice(&sql), "q", take_longest, &found, error);
    buffer_fini(&sql);
    if (status != STATUS_OK) return status;
    (void)pthread_mutex_lock(&coverage->lock);
    longest = find_longest(coverage, shard, project);
    if (longest) {
        longest->checked_ns = now_ns;
        longest->day = today - 1;
        if (found > longest->longest_ns) longest->longest_ns = found;
        found = longest->longest_ns;
    }
    (void)pthread_mutex_unlock(&coverage->lock);
    *ret_ns = found;
    return STATUS_OK;
}

/* --- A query ------------------------------------------------------------------------------------------------------ */

enum status cover_query(struct cluster *cluster, int shard, const struct store_query *query, struct cover *cover,
                        struct error *error)
{
    uint64_t to_ns = query->to_ns ? query->to_ns : UINT64_MAX;
    bool is_long = query->host.size == 0 && to_ns > query->from_ns && to_ns - query->from_ns >= SHORTEST_NS;
    enum status status = find_out_longest(cluster, shard, query->project, &cover->longest_ns, error);
    if (status == STATUS_OK && is_long) status = cover_days(cluster, shard, query, to_ns, cover, error);
    if (status == STATUS_OK && !is_long) add_range(cover, LEVEL_CHUNK, query->from_ns, to_ns);
    if (status == STATUS_OK && cover->failed) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    for (int level = 0; level < LEVELS; level++) tidy_ranges(cover, level);
    return status;
}

static void write_ranges(const struct cover *cover, int level, struct buffer *sql)
{
    for (size_t i = 0; i < cover->ranges[level].count; i++) {
        const struct cover_range *range = &cover->ranges[level].items[i];
        buffer_append_format(sql, "%s(start_ns >= %" PRIu64 " AND start_ns < %" PRIu64 ")", i == 0 ? " AND (" : " OR ",
                             range->start_ns, range->end_ns);
    }
    if (cover->ranges[level].count > 0) buffer_append_text(sql, ")");
}

bool cover_has_levels(const struct cover *cover, int first)
{
    bool has_ranges = false;
    for (int level = first; level < LEVELS; level++) has_ranges |= cover->ranges[level].count > 0;
    return has_ranges;
}

void cover_write_levels(const struct cover *cover, int first, const struct store_query *query, struct buffer *sql)
{
    const char *before = " AND (";
    for (int level = first; level < LEVELS; level++) {
        if (cover->ranges[level].count == 0) continue;
        buffer_append_format(sql, "%s(level = %d", before, level);
        if (level == LEVEL_CHUNK)
            buffer_append_format(sql, " AND first_ns >= %" PRIu64 " AND last_ns < %" PRIu64, query->from_ns,
                                 query->to_ns ? query->to_ns : UINT64_MAX);
        write_ranges(cover, level, sql);
        buffer_append_text(sql, ")");
        before = " OR ";
    }
    if (cover_has_levels(cover, first)) buffer_append_text(sql, ")");
}

void cover_write_chunks(const struct cover *cover, const struct store_query *query, const char *condition,
                        struct buffer *sql)
{
    uint64_t to_ns = query->to_ns ? query->to_ns : UINT64_MAX, longest_ns = cover->longest_ns;
    bool has_ranges = cover->ranges[LEVEL_CHUNK].count > 0;
    buffer_append_format(sql,
                         " AND ((start_ns >= %" PRIu64 " AND start_ns < %" PRIu64 ") OR (end_ns >= %" PRIu64
                         " AND start_ns >= %" PRIu64 ") OR (%s",
                         query->from_ns > longest_ns ? query->from_ns - longest_ns : 0, query->from_ns, to_ns,
                         to_ns > longest_ns ? to_ns - longest_ns : 0, has_ranges ? condition : "0");
    write_ranges(cover, LEVEL_CHUNK, sql);
    buffer_append_text(sql, "))");
}
