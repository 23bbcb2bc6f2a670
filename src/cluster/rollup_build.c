/* Makes roll-ups: the sums of a service in 10 minutes, an hour or a day, of what is below. Hosts are added up. Each
 * server does that without a word to the others: two of them make equal rows, with one id. Stacks get the numbers of
 * this process, so that a query over days reads few dictionaries.  SPDX-License-Identifier: MIT */
#include "base/clocks.h"
#include "base/hash.h"
#include "cluster/cluster_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SQL_BYTES_MAX = 4096,
    DAYS_MAX = 256,    /* days of all projects, in one turn */
    RECEIPT_DAYS = 3,  /* older days of receipt were looked at on their time */
    TURN_SECONDS = 20, /* the next turn goes on */
    SHIP_SECONDS = 20,
    QUIET_SECONDS = 120, /* after the end of its time */
    SPREAD_SECONDS = 60, /* servers begin at different times, so that mostly one makes a roll-up */
    GROUPS_MAX = 4096,
    SPACES_PER_ROLLUP_MAX = 64,
    NAMES_BYTES_MAX = 8192, /* names of a group with its header */
    ROLLUP_BYTES_MAX = 64 << 20,
};

/* --- Adding up ---------------------------------------------------------------------------------------------------- */

/* A row to be: names are kinds, environment, release, platform and header, as in a row. */
struct built_group {
    struct buffer names;
    uint64_t first_ns, last_ns;
    struct rollup_values values; /* values by the numbers of this process */
};

/* The part of a group that one space has. */
struct built_part {
    uint8_t space[ROW_ID_BYTES];
    uint32_t group;
    uint64_t nodes;
    struct rollup_values values; /* values by the numbers of SPACE */
    const struct dictionary_reading *stacks;
};

struct building {
    struct cluster *cluster;
    int shard, level;
    uint64_t project, start_ns;
    struct slice service;
    struct coverage_bucket inputs; /* ids of what it is to be made of */
    uint64_t rollup_rows;          /* rows of shorter roll-ups that were read */
    INDEXED_ARRAY_OF(struct built_group) groups;
    INDEXED_ARRAY_OF(struct built_part) parts;
    struct dictionary_reading stacks[SPACES_PER_ROLLUP_MAX]; /* stacks of the spaces of PARTS */
    size_t stacks_count;
    struct record record;
    struct space *space; /* space of this process */
    bool failed;
};

static bool group_equals(const void *context, uint32_t index, const void *key)
{
    const struct building *building = context;
    return slice_equal(buffer_slice(&building->groups.items[index].names), *(const struct slice *)key);
}

static uint32_t take_group(struct building *building, const struct row *row)
{
    struct built_group group = {.names = {.maximum = NAMES_BYTES_MAX}, .first_ns = UINT64_MAX};
    for (int column = SUM_KINDS; column <= SUM_PLATFORM; column++) row_text(&group.names, row->cells[column]);
    row_text(&group.names, row->cells[SUM_HEADER]);
    struct slice names = buffer_slice(&group.names);
    uint64_t hash = hash_bytes(names.data, names.size);
    uint32_t index = index_table_find(&building->groups.index, hash, group_equals, building, &names);
    if (index == INDEX_NONE && !group.names.failed && INDEXED_ARRAY_PUSH(&building->groups, GROUPS_MAX, hash, group))
        return (uint32_t)building->groups.count - 1;
    if (index == INDEX_NONE) building->failed = true;
    buffer_fini(&group.names);
    return index;
}

static bool part_equals(const void *context, uint32_t index, const void *key)
{
    const struct building *building = context;
    const struct built_part *part = &building->parts.items[index], *wanted = key;
    return part->group == wanted->group && memcmp(part->space, wanted->space, ROW_ID_BYTES) == 0;
}

static struct built_part *take_part(struct building *building, uint32_t group, const struct row *row)
{
    struct built_part part = {.group = group};
    (void)memcpy(part.space, row->cells[SUM_SPACE].data, ROW_ID_BYTES);
    uint64_t hash = hash_mix(hash_bytes(part.space, ROW_ID_BYTES), group);
    uint32_t index = index_table_find(&building->parts.index, hash, part_equals, building, &part);
    if (index != INDEX_NONE) return &building->parts.items[index];
    if (INDEXED_ARRAY_PUSH(&building->parts, GROUPS_MAX, hash, part))
        return &building->parts.items[building->parts.count - 1];
    building->failed = true;
    return NULL;
}

static bool take_input(void *context, const struct row *row)
{
    struct building *building = context;
    uint32_t index = take_group(building, row);
    struct built_part *part = building->failed ? NULL : take_part(building, index, row);
    if (!part) return false;
    struct built_group *group = &building->groups.items[index];
    uint64_t first_ns = row_number(row, SUM_FIRST), last_ns = row_number(row, SUM_LAST);
    uint64_t nodes = row_number(row, SUM_NODES);
    if (row_number(row, SUM_LEVEL) > LEVEL_CHUNK) building->rollup_rows++;
    uint16_t keep = (uint16_t)row_number(row, SUM_KEEP), day = (uint16_t)row_number(row, SUM_DAY);
    if (first_ns < group->first_ns) group->first_ns = first_ns;
    if (last_ns > group->last_ns) group->last_ns = last_ns;
    if (nodes > part->nodes) part->nodes = nodes;
    if (day > building->record.day) building->record.day = day;
    if (keep > building->record.keep) building->record.keep = keep;
    if (!rollup_add_entries(&part->values, row->cells[SUM_ENTRIES])) building->failed = true;
    return !building->failed;
}

/* Reads what the roll-up is made of. False if that is not what was looked at: the next turn will do. */
static bool read_inputs(struct building *building, const struct cover *cover, enum status *status, struct error *error)
{
    const struct store_query query = {.project = building->project, .service = building->service};
    struct coverage_bucket count = {.inputs = 0};
    struct id_set seen = {0};
    uint64_t rows = 0;
    const struct sum_rows_request request = {.query = &query,
                                             .cover = cover,
                                             .seen = &seen,
                                             .with_names = true,
                                             .count = &count,
                                             .visit = take_input,
                                             .context = building};
    *status = sum_rows_each(building->cluster, building->shard, &request, NULL, error);
    for (size_t i = 0; i < cover->sets.count; i++) {
        count.inputs += cover->sets.items[i].inputs;
        count.inputs_xor ^= cover->sets.items[i].inputs_xor;
        rows += cover->sets.items[i].rows;
    }
    id_set_fini(&seen);
    return *status == STATUS_OK && !building->failed && building->rollup_rows == rows &&
           count.inputs == building->inputs.inputs && count.inputs_xor == building->inputs.inputs_xor;
}

/* --- Numbers of this process -------------------------------------------------------------------------------------- */

struct numbering {
    struct building *building;
    struct built_group *group;
};

/* Adds a part to its group by the numbers of this process. Values since the start of a process have no order here: no
 * query is given them. */
static bool number_part(void *context, const struct store_rollup *rollup)
{
    const struct numbering *numbering = context;
    struct building *building = numbering->building;
    struct buffer entries = {.maximum = ROLLUP_BYTES_MAX};
    uint32_t *nodes = calloc(rollup->node_count + 1, sizeof(*nodes));
    bool is_fine = nodes && stack_dictionary_number(&building->space->dictionary, rollup, nodes) &&
                   rollup_encode_entries(rollup, nodes, &entries) &&
                   rollup_add_entries(&numbering->group->values, buffer_slice(&entries));
    if (!is_fine) building->failed = true;
    buffer_fini(&entries);
    free(nodes);
    return is_fine;
}

static bool is_same_space(const struct built_part *left, const struct built_part *right)
{
    return memcmp(left->space, right->space, ROW_ID_BYTES) == 0;
}

/* Reads the stacks of each space once. */
static enum status read_stacks(struct building *building, struct error *error)
{
    struct built_part *parts = building->parts.items;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < building->parts.count && status == STATUS_OK; i++) {
        struct space_place place = {building->project, 0, building->service, parts[i].space};
        if (parts[i].stacks) continue;
        if (building->stacks_count == SPACES_PER_ROLLUP_MAX) {
            building->failed = true;
            break;
        }
        struct dictionary_reading *stacks = &building->stacks[building->stacks_count++];
        stacks->bytes.maximum = ROLLUP_BYTES_MAX;
        for (size_t k = i; k < building->parts.count; k++) {
            if (!is_same_space(&parts[k], &parts[i])) continue;
            parts[k].stacks = stacks;
            if (parts[k].nodes > place.nodes) place.nodes = parts[k].nodes;
        }
        status = dictionary_read(building->cluster, &place, stacks, error);
    }
    return status;
}

static enum status number_all(struct building *building, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < building->parts.count && status == STATUS_OK && !building->failed; i++) {
        const struct built_part *part = &building->parts.items[i];
        struct numbering numbering = {building, &building->groups.items[part->group]};
        const struct store_rollup whole = {.first_ns = 0};
        struct rollup_receiver receiver = {number_part, &numbering, true};
        status = rollup_give(&part->stacks->dictionary, &part->values, &whole, &receiver, error);
    }
    return status;
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static struct slice take_name(struct slice *names)
{
    struct row row;
    return row_take("s", names, &row) ? row.cells[0] : slice_of(NULL, 0);
}

/* Equal for all servers that make this roll-up of the same chunks. */
static void id_of_row(const struct building *building, const struct built_group *group, uint8_t ret_id[ROW_ID_BYTES])
{
    const uint64_t numbers[] = {building->project, (uint64_t)building->level, building->start_ns,
                                building->inputs.inputs, building->inputs.inputs_xor};
    const struct slice parts[] = {slice_of(numbers, sizeof(numbers)), building->service, buffer_slice(&group->names)};
    row_id_of(parts, 3, ret_id);
}

static void write_group(struct building *building, const struct built_group *group)
{
    struct buffer *row = record_begin_row(&building->record);
    struct buffer entries = {.maximum = ROLLUP_BYTES_MAX};
    struct slice names = buffer_slice(&group->names);
    uint8_t id[ROW_ID_BYTES];
    id_of_row(building, group, id);
    row_text(row, building->service);
    row_u8(row, (uint8_t)building->level);
    row_u64(row, building->start_ns);
    row_id(row, id);
    row_id(row, building->space->id);
    row_u64(row, building->space->dictionary.node_count);
    for (int i = 0; i < 3; i++) row_text(row, take_name(&names)); /* kinds, environment, release */
    row_text(row, slice_of(NULL, 0));                             /* host */
    for (int i = 0; i < 2; i++) row_text(row, take_name(&names)); /* platform, header */
    row_u64(row, group->first_ns);
    row_u64(row, group->last_ns);
    row_u64(row, building->inputs.inputs);
    row_u64(row, building->inputs.inputs_xor);
    rollup_encode_values(&group->values, &entries);
    if (entries.failed) building->failed = true;
    row_text(row, buffer_slice(&entries));
    row_u64(row, building->groups.count);
    record_end_row(&building->record, TABLE_SUM, building->service);
    buffer_fini(&entries);
}

/* Writes the stacks that are new and the rows into RECORD. Under the order of the spool. */
static enum status write_rows(struct building *building, struct error *error)
{
    building->space = space_take(building->cluster, &building->record, building->service);
    if (!building->space) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to add up sums");
    struct stack_dictionary *dictionary = &building->space->dictionary;
    size_t frames = dictionary->frame_count, nodes = dictionary->node_count;
    building->cluster->space_bytes -= stack_dictionary_bytes(dictionary);
    enum status status = number_all(building, error);
    building->cluster->space_bytes += stack_dictionary_bytes(dictionary);
    if (dictionary->frame_count > frames || dictionary->node_count > nodes) {
        enum status added = space_add_segment(&building->record, building->space, frames, nodes, error);
        if (status == STATUS_OK) status = added;
    }
    for (size_t i = 0; i < building->groups.count && status == STATUS_OK && !building->failed; i++)
        write_group(building, &building->groups.items[i]);
    if (status == STATUS_OK && (building->failed || building->record.bytes.failed))
        status = error_set(error, STATUS_TOO_LARGE, 0, "the sums of a service are too large to be added up");
    return status;
}

static enum status put_in_spool(struct building *building, struct error *error)
{
    struct insert_spool *spool = building->cluster->spool;
    bool has_lost;
    uint64_t file;
    insert_spool_begin(spool, &has_lost);
    if (has_lost) cluster_forget_spaces(building->cluster);
    enum status status = write_rows(building, error);
    if (status != STATUS_OK) {
        cluster_forget_spaces(building->cluster); /* their stacks are not in the spool */
        insert_spool_abandon(spool);
        return status;
    }
    return insert_spool_add(spool, buffer_slice(&building->record.bytes), &file, error);
}

static void forget(struct building *building)
{
    for (size_t i = 0; i < building->groups.count; i++) {
        buffer_fini(&building->groups.items[i].names);
        rollup_values_fini(&building->groups.items[i].values);
    }
    for (size_t i = 0; i < building->parts.count; i++) rollup_values_fini(&building->parts.items[i].values);
    for (size_t i = 0; i < building->stacks_count; i++) dictionary_reading_fini(&building->stacks[i]);
    free(building->groups.items);
    free(building->parts.items);
    index_table_fini(&building->groups.index);
    index_table_fini(&building->parts.index);
    buffer_fini(&building->record.bytes);
    buffer_fini(&building->record.row);
}

/* A roll-up that is too large or has damaged parts is left out: queries read what is below it. */
static enum status build(struct cluster *cluster, struct coverage_day *day, const struct coverage_bucket *inputs,
                         int level, uint64_t start_ns, uint64_t *made, struct error *error)
{
    struct cover cover = {.longest_ns = 0};
    struct building building = {.cluster = cluster,
                                .shard = day->shard,
                                .level = level,
                                .project = day->project,
                                .start_ns = start_ns,
                                .service = slice_of_text(day->services.items[inputs->service].name),
                                .inputs = *inputs,
                                .record = {.bytes = {.maximum = SPOOL_RECORD_BYTES_MAX},
                                           .row = {.maximum = ROLLUP_BYTES_MAX},
                                           .project = day->project}};
    enum status status = STATUS_OK;
    cover_inputs(&cluster->coverage, day, inputs->service, level, start_ns, &cover);
    if (!cover.failed && read_inputs(&building, &cover, &status, error)) {
        status = read_stacks(&building, error);
        if (status == STATUS_OK && !building.failed) {
            status = put_in_spool(&building, error);
            if (status == STATUS_OK) ++*made;
        }
        if (building.failed || status == STATUS_MALFORMED) status = STATUS_OK;
    } else {
        coverage_doubt(&cluster->coverage, day);
    }
    cover_fini(&cover);
    forget(&building);
    return status;
}

/* --- What is missing ---------------------------------------------------------------------------------------------- */

struct turn {
    struct cluster *cluster;
    uint64_t now_ns;
    uint64_t end_ns; /* monotonic */
    int level;
    uint64_t made;
};

/* Returns whether the roll-up may be made now, and by this server before others. */
static bool is_time(const struct turn *turn, const struct coverage_day *day, uint32_t service, uint64_t start_ns)
{
    const struct slice parts[] = {slice_of(turn->cluster->writer, ROW_ID_BYTES),
                                  slice_of(day->services.items[service].id, ROW_ID_BYTES),
                                  slice_of(&start_ns, sizeof(start_ns))};
    uint8_t random[ROW_ID_BYTES];
    row_id_of(parts, 3, random);
    uint64_t wait_ns = (QUIET_SECONDS + (uint64_t)random[0] * SPREAD_SECONDS / 256) * SECOND_NS;
    return rollup_level_end(turn->level, start_ns) + wait_ns <= turn->now_ns;
}

static enum status build_day(struct turn *turn, struct coverage_day *day, struct error *error)
{
    enum status status = STATUS_OK;
    uint64_t step_ns = rollup_level_end(turn->level, 0);
    uint32_t service = UINT32_MAX;
    uint64_t before_ns = 0;
    for (size_t i = 0; i < day->buckets.count && status == STATUS_OK && clock_monotonic_ns() < turn->end_ns; i++) {
        const struct coverage_bucket *bucket = &day->buckets.items[i];
        uint64_t at_ns = day->start_ns + bucket->number * (DAY_NS / BUCKETS_PER_DAY),
                 start_ns = at_ns - at_ns % step_ns;
        if (bucket->service == service && start_ns == before_ns) continue;
        service = bucket->service;
        before_ns = start_ns;
        if (start_ns + step_ns > day->until_ns || !is_time(turn, day, service, start_ns) ||
            coverage_find_set(day, service, turn->level, start_ns))
            continue;
        const struct coverage_bucket sum = coverage_sum(&turn->cluster->coverage, day, service, turn->level, start_ns);
        if (sum.inputs > 0 && !sum.is_void)
            status = build(turn->cluster, day, &sum, turn->level, start_ns, &turn->made, error);
    }
    return status;
}

struct recent_days {
    struct {
        uint64_t project, start_ns;
    } items[DAYS_MAX];
    size_t count;
};

static bool take_recent(void *context, const struct row *row)
{
    struct recent_days *days = context;
    days->items[days->count].project = row_number(row, 0);
    days->items[days->count++].start_ns = row_number(row, 1) * DAY_NS;
    return days->count < DAYS_MAX;
}

/* The days on which the chunks started that were received lately. */
static enum status list_recent(struct cluster *cluster, int shard, uint64_t now_ns, struct recent_days *days,
                               struct error *error)
{
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    buffer_append_format(
        &sql,
        "SELECT project, intDiv(start_ns, %llu) AS d FROM sum WHERE level = 0 AND day >= toDate(%" PRIu64
        ") GROUP BY project, d ORDER BY d DESC, project LIMIT %d FORMAT RowBinary",
        (unsigned long long)DAY_NS, now_ns / DAY_NS - RECEIPT_DAYS, DAYS_MAX);
    enum status status =
        topology_each_sum(&cluster->topology, shard, buffer_slice(&sql), "qq", take_recent, days, error);
    buffer_fini(&sql);
    return status;
}

static enum status build_shard(struct turn *turn, int shard, struct error *error)
{
    struct recent_days *days = calloc(1, sizeof(*days));
    if (!days) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    enum status status = list_recent(turn->cluster, shard, turn->now_ns, days, error);
    for (size_t i = 0; i < days->count && status == STATUS_OK; i++) {
        struct coverage_day *day;
        status = coverage_take(turn->cluster, shard, days->items[i].project, days->items[i].start_ns, &day, error);
        if (status != STATUS_OK) break;
        if (!day->is_too_large) status = build_day(turn, day, error);
        coverage_release(&turn->cluster->coverage, day);
    }
    free(days);
    return status;
}

/* A level is made of the one below, which the cluster must have. */
enum status cluster_update_rollups(struct store *store, uint64_t now_ns, uint64_t *ret_count, struct error *error)
{
    struct cluster *cluster = store_engine_data(store);
    struct turn turn = {.cluster = cluster,
                        .now_ns = now_ns,
                        .end_ns = clock_monotonic_ns() + TURN_SECONDS * SECOND_NS,
                        .level = LEVEL_10_MINUTES};
    uint32_t shards = topology_all_shards(&cluster->topology);
    enum status status = STATUS_OK;
    uint64_t left = insert_spool_left(cluster->spool);
    if (ret_count) *ret_count = 0;
    if (left > 0 && !insert_spool_wait(cluster->spool, left, SHIP_SECONDS * SECOND_NS)) return STATUS_OK;
    for (; turn.level < LEVELS && status == STATUS_OK; turn.level++) {
        uint64_t before = turn.made;
        for (int shard = 0; shard < SHARDS_MAX; shard++) {
            struct error problem;
            enum status of_shard = shards >> shard & 1 ? build_shard(&turn, shard, &problem) : STATUS_OK;
            if (of_shard == STATUS_OK || of_shard == STATUS_IO) continue; /* it is away: its roll-ups can wait */
            status = of_shard;
            if (error) *error = problem;
        }
        if (turn.made == before) continue;
        uint64_t file = insert_spool_flush(cluster->spool);
        if (!insert_spool_wait(cluster->spool, file, SHIP_SECONDS * SECOND_NS)) break;
        coverage_forget(&cluster->coverage);
    }
    if (ret_count) *ret_count = turn.made;
    return status;
}
