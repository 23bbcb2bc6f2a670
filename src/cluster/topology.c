/* Each server says by its macros which shard and replica it is. A single server without macros is the only shard. The
 * lists of shards are in the table "control", because a shard may be away when a server starts.
 * SPDX-License-Identifier: MIT */
#include "cluster/topology.h"

#include "base/clocks.h"
#include "cluster/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROW_BYTES_MAX = 1 << 30,
    FAILED_SECONDS = 10, /* a replica that failed is asked last for so long */
    FIRST_MS = 500,      /* time in which a replica that has a twin must answer something small */
    ALL_MS = 2200,       /* time in which one of all replicas of a shard must */
    LAST_PING_MS = 1100, /* the same after a second of silence in an exchange */
    SILENT_MS = 2000,    /* a silent replica of which nothing else answers is asked so often */
    CHECKED_MS = 1000,   /* a replica is asked so often whether it lacks rows */
    BEHIND_SECONDS = 3,
    CLOCK_SECONDS_MAX = 30,
};

/* --- The address -------------------------------------------------------------------------------------------------- */

static const char scheme[] = "clickhouse://", scheme_tls[] = "clickhouses://";

bool topology_is_address(const char *address)
{
    return text_begins_with(slice_of_text(address), scheme) || text_begins_with(slice_of_text(address), scheme_tls);
}

static bool is_name(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
        if (!is_letter && (i == 0 || byte < '0' || byte > '9')) return false;
    }
    return text.size > 0 && text.size < DATABASE_SIZE;
}

static bool is_place(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] <= ' ' || text.data[i] >= 127 || strchr("/?#@\\'\"", text.data[i])) return false;
    }
    return text.size > 0 && text.size + sizeof(":8123") < PLACE_SIZE;
}

static bool has_port(struct slice place)
{
    for (size_t i = place.size; i-- > 0 && place.data[i] != ']';) {
        if (place.data[i] == ':') return true;
    }
    return false;
}

static enum status read_address(struct topology *topology, const char *address, struct error *error)
{
    bool has_tls = text_begins_with(slice_of_text(address), scheme_tls);
    struct slice rest = text_from(slice_of_text(address), strlen(has_tls ? scheme_tls : scheme));
    struct slice places = text_take_until(&rest, '/');
    topology->clickhouse.scheme = has_tls ? "https" : "http";
    if (!is_name(rest))
        return error_set(error, STATUS_MALFORMED, 0,
                         "a database is needed behind the servers, as in clickhouse://ch1:8123,ch2:8123/offbeat");
    (void)snprintf(topology->clickhouse.database, DATABASE_SIZE, "%.*s", SLICE_ARGUMENTS(rest));
    while (places.size > 0) {
        struct slice place = text_take_until(&places, ',');
        if (!is_place(place) || topology->replica_count == REPLICAS_MAX)
            return error_set(error, STATUS_MALFORMED, 0, "%d servers at most are needed, each as HOST:PORT",
                             REPLICAS_MAX);
        struct replica *replica = &topology->replicas[topology->replica_count++];
        (void)snprintf(replica->place, PLACE_SIZE, "%.*s%s", SLICE_ARGUMENTS(place),
                       has_port(place) ? ""
                       : has_tls       ? ":8443"
                                       : ":8123");
    }
    return topology->replica_count > 0 ? STATUS_OK
                                       : error_set(error, STATUS_MALFORMED, 0, "a server is needed, as HOST:PORT");
}

enum status topology_init(struct topology *topology, const struct cluster_options *options, struct error *error)
{
    *topology = (struct topology){0};
    clickhouse_init(&topology->clickhouse);
    topology->clickhouse.authority = options->authority;
    (void)pthread_mutex_init(&topology->lock, NULL);
    enum status status = read_address(topology, options->address, error);
    if (status == STATUS_OK && options->login_path) {
        struct error problem;
        status = clickhouse_read_login(&topology->clickhouse, options->login_path, &problem);
        if (status != STATUS_OK)
            (void)error_set(error, status, 0, "%.100s: %.110s", options->login_path, problem.message);
    }
    return status;
}

void topology_fini(struct topology *topology)
{
    clickhouse_fini(&topology->clickhouse);
    (void)pthread_mutex_destroy(&topology->lock);
}

/* --- Rows of an answer -------------------------------------------------------------------------------------------- */

struct row_reader {
    const char *types;
    struct buffer partial; /* bytes of a row that has not wholly arrived */
    row_visit *visit;
    void *context;
};

static bool take_rows(void *context, struct slice bytes)
{
    struct row_reader *reader = context;
    buffer_append(&reader->partial, bytes.data, bytes.size);
    struct slice rest = buffer_slice(&reader->partial);
    struct row row;
    bool continues = !reader->partial.failed;
    while (continues && rest.size > 0 && row_take(reader->types, &rest, &row))
        continues = reader->visit(reader->context, &row);
    if (rest.size > 0 && rest.size < reader->partial.size) (void)memmove(reader->partial.data, rest.data, rest.size);
    reader->partial.size = rest.size;
    return continues;
}

/* A row without memory ends the request as if no more were wanted. */
static enum status finish_rows(const struct row_reader *reader, enum status status, struct error *error)
{
    bool is_cut = status == STATUS_OK && reader->partial.failed;
    return is_cut ? error_set(error, STATUS_TOO_LARGE, 0, "a row of the answer is too large") : status;
}

static void forget_rows(void *context)
{
    struct row_reader *reader = context;
    buffer_clear(&reader->partial);
}

enum status replica_each_row(struct topology *topology, size_t index, struct slice statement, const char *types,
                             row_visit *visit, void *context, struct error *error)
{
    struct row_reader reader = {types, {.maximum = ROW_BYTES_MAX}, visit, context};
    const struct clickhouse_request request = {.place = topology->replicas[index].place,
                                               .statement = statement,
                                               .receive = take_rows,
                                               .context = &reader,
                                               .is_without_database = true,
                                               .ping_ms = ALL_MS};
    enum status status = finish_rows(&reader, clickhouse_run(&topology->clickhouse, &request, error), error);
    buffer_fini(&reader.partial);
    return status;
}

enum status topology_each_row(struct topology *topology, int shard, struct slice statement, const char *types,
                              row_visit *visit, void *context, struct error *error)
{
    struct row_reader reader = {types, {.maximum = ROW_BYTES_MAX}, visit, context};
    const struct shard_request request = {
        .shard = shard, .statement = statement, .receive = take_rows, .restart = forget_rows, .context = &reader};
    enum status status = finish_rows(&reader, topology_run(topology, &request, error), error);
    buffer_fini(&reader.partial);
    return status;
}

static bool collect_bytes(void *context, struct slice bytes)
{
    struct buffer *answer = context;
    buffer_append(answer, bytes.data, bytes.size);
    return !answer->failed;
}

static void forget_bytes(void *context)
{
    buffer_clear(context);
}

enum status topology_each_sum(struct topology *topology, int shard, struct slice statement, const char *types,
                              row_visit *visit, void *context, struct error *error)
{
    struct buffer answer = {.maximum = ROW_BYTES_MAX};
    const struct shard_request request = {
        .shard = shard, .statement = statement, .receive = collect_bytes, .restart = forget_bytes, .context = &answer};
    enum status status = topology_run(topology, &request, error);
    if (status == STATUS_OK && answer.failed) status = error_set(error, STATUS_TOO_LARGE, 0, "the answer is too large");
    struct slice rest = buffer_slice(&answer);
    struct row row;
    while (status == STATUS_OK && rest.size > 0 && row_take(types, &rest, &row) && visit(context, &row)) continue;
    buffer_fini(&answer);
    return status;
}

/* --- Which shards there are --------------------------------------------------------------------------------------- */

struct macros {
    char shard[SHARD_NAME_SIZE], replica[SHARD_NAME_SIZE];
};

static bool take_macro(void *context, const struct row *row)
{
    struct macros *macros = context;
    char *into = slice_equals_text(row->cells[0], "shard") ? macros->shard : macros->replica;
    (void)snprintf(into, SHARD_NAME_SIZE, "%.*s", SLICE_ARGUMENTS(row->cells[1]));
    return true;
}

enum status topology_ask_name(struct topology *topology, size_t index, struct error *error)
{
    static const char statement[] =
        "SELECT macro, substitution FROM system.macros WHERE macro IN ('shard', 'replica') FORMAT RowBinary";
    struct replica *replica = &topology->replicas[index];
    struct macros macros = {.shard = ""};
    enum status status = replica_each_row(topology, index, slice_of_text(statement), "ss", take_macro, &macros, error);
    if (status != STATUS_OK) return status;
    if (!macros.shard[0] && topology->replica_count > 1)
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "%s has no macro \"shard\" in its configuration, which each of several servers needs",
                         replica->place);
    if (!macros.shard[0]) (void)snprintf(macros.shard, SHARD_NAME_SIZE, "1");
    (void)pthread_mutex_lock(&topology->lock);
    (void)memcpy(replica->shard, macros.shard, SHARD_NAME_SIZE);
    (void)memcpy(replica->name, macros.replica, SHARD_NAME_SIZE);
    replica->is_known = true;
    (void)pthread_mutex_unlock(&topology->lock);
    return STATUS_OK;
}

/* Returns the index of the shard NAME, which is added; -1 if there is no room. Under the lock. */
static int index_of_shard(struct topology *topology, struct slice name)
{
    for (size_t i = 0; i < topology->shard_count; i++) {
        if (slice_equals_text(name, topology->shards[i])) return (int)i;
    }
    if (topology->shard_count == SHARDS_MAX || name.size >= SHARD_NAME_SIZE) return -1;
    (void)snprintf(topology->shards[topology->shard_count], SHARD_NAME_SIZE, "%.*s", SLICE_ARGUMENTS(name));
    return (int)topology->shard_count++;
}

/* Takes "1,2" as the shards from a day on. A repeated row of that day takes the place of the one before. */
static bool take_list(void *context, const struct row *row)
{
    struct topology *topology = context;
    struct slice names = row->cells[1];
    struct shard_list list = {.first_day = row_number(row, 0)};
    (void)pthread_mutex_lock(&topology->lock);
    while (names.size > 0) {
        int index = index_of_shard(topology, text_take_until(&names, ','));
        if (index >= 0) list.shards |= 1u << index;
    }
    size_t place = 0;
    while (place < topology->list_count && topology->lists[place].first_day < list.first_day) place++;
    bool is_known = place < topology->list_count && topology->lists[place].first_day == list.first_day;
    bool is_same = is_known && topology->lists[place].shards == list.shards;
    if (list.shards && !is_same && place < SHARD_LISTS_MAX) {
        topology->lists[place] = list;
        topology->placement++;
        if (!is_known) topology->list_count = place + 1;
    }
    (void)pthread_mutex_unlock(&topology->lock);
    return true;
}

/* The version of the tables and the time of one server. */
struct server_facts {
    uint64_t version, oldest_reader, seconds;
};

static bool take_facts(void *context, const struct row *row)
{
    *(struct server_facts *)context = (struct server_facts){row_number(row, 0), row_number(row, 1), row_number(row, 2)};
    return false;
}

/* Looks whether the tables are for this program, and whether the clocks agree: days are those of the server. */
static enum status check_facts(const struct topology *topology, size_t index, const struct server_facts *facts,
                               struct error *error)
{
    const char *place = topology->replicas[index].place, *database = topology->clickhouse.database;
    int64_t apart = (int64_t)(clock_utc_ns() / SECOND_NS) - (int64_t)facts->seconds;
    if (facts->version == 0)
        return error_set(error, STATUS_NOT_FOUND, 0,
                         "the tables in the database %s are not complete; offbeat store create makes them", database);
    if (facts->oldest_reader > CLUSTER_VERSION)
        return error_set(
            error, STATUS_UNSUPPORTED, 0,
            "the tables in the database %s are of a newer version (%llu); this offbeat is too old for them", database,
            (unsigned long long)facts->version);
    if (facts->version < CLUSTER_VERSION)
        return error_set(
            error, STATUS_UNSUPPORTED, 0,
            "the tables in the database %s are of an older version (%llu); offbeat store create adds to them", database,
            (unsigned long long)facts->version);
    if (apart > CLOCK_SECONDS_MAX || apart < -CLOCK_SECONDS_MAX)
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "the clock of %s differs from this machine's by more than %d seconds; set one of them", place,
                         CLOCK_SECONDS_MAX);
    return STATUS_OK;
}

/* Asks replica INDEX for the version of the tables and the lists of shards. */
static enum status read_lists(struct topology *topology, size_t index, struct error *error)
{
    struct buffer sql = {.maximum = 1024};
    struct server_facts facts = {.version = 0};
    const char *database = topology->clickhouse.database;
    buffer_append_format(&sql,
                         "SELECT max(version), max(oldest_reader), toUInt64(toUInt32(now())) FROM %s.schema FORMAT "
                         "RowBinary",
                         database);
    enum status status = replica_each_row(topology, index, buffer_slice(&sql), "qqq", take_facts, &facts, error);
    if (status == STATUS_OK) status = check_facts(topology, index, &facts, error);
    buffer_clear(&sql);
    buffer_append_format(
        &sql, "SELECT version, body FROM %s.control WHERE sort = 'shards' ORDER BY version, writer FORMAT RowBinary",
        database);
    if (status == STATUS_OK)
        status = replica_each_row(topology, index, buffer_slice(&sql), "qs", take_list, topology, error);
    buffer_fini(&sql);
    return status;
}

enum status topology_update(struct topology *topology, struct error *error)
{
    enum status status = STATUS_IO, problem_status = STATUS_OK;
    struct error problem = {0};
    for (size_t i = 0; i < topology->replica_count; i++) {
        enum status asked = STATUS_OK;
        if (!topology->replicas[i].is_known) asked = topology_ask_name(topology, i, &problem);
        if (asked == STATUS_OK && status != STATUS_OK) status = asked = read_lists(topology, i, &problem);
        /* A lasting problem says more than a server that is away. */
        bool says_more = asked != STATUS_OK && (problem_status == STATUS_OK || problem_status == STATUS_IO);
        if (says_more && error) *error = problem;
        if (says_more) problem_status = asked;
    }
    if (status != STATUS_OK) return problem_status;
    (void)pthread_mutex_lock(&topology->lock);
    bool has_list = topology->list_count > 0;
    (void)pthread_mutex_unlock(&topology->lock);
    return has_list ? STATUS_OK
                    : error_set(error, STATUS_NOT_FOUND, 0,
                                "the tables in the database %s are not complete; offbeat store create makes them",
                                topology->clickhouse.database);
}

/* --- Placement: the greatest hash of a service and a shard wins --------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, struct slice text)
{
    for (size_t i = 0; i < text.size; i++) hash = (hash ^ text.data[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/* Mixes all bits (the end of MurmurHash3). */
static uint64_t finish_hash(uint64_t hash)
{
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

uint64_t placement_of(uint64_t project, struct slice service)
{
    return finish_hash(hash_text(hash_text(0xcbf29ce484222325u, slice_of(&project, sizeof(project))), service));
}

/* Returns the shard among SHARDS that PLACEMENT belongs to; -1 without shards. Under the lock. */
static int best_shard(const struct topology *topology, uint32_t shards, uint64_t placement)
{
    int best = -1;
    uint64_t best_hash = 0;
    for (size_t i = 0; i < topology->shard_count; i++) {
        if (!(shards >> i & 1)) continue;
        uint64_t hash = finish_hash(hash_text(placement, slice_of_text(topology->shards[i])));
        if (best < 0 || hash > best_hash) {
            best = (int)i;
            best_hash = hash;
        }
    }
    return best;
}

int topology_shard_of(struct topology *topology, uint64_t placement, uint64_t day)
{
    int shard = -1;
    (void)pthread_mutex_lock(&topology->lock);
    for (size_t i = topology->list_count; i-- > 0 && shard < 0;) {
        if (topology->lists[i].first_day <= day || i == 0)
            shard = best_shard(topology, topology->lists[i].shards, placement);
    }
    (void)pthread_mutex_unlock(&topology->lock);
    return shard;
}

uint64_t topology_placement(struct topology *topology)
{
    (void)pthread_mutex_lock(&topology->lock);
    uint64_t placement = topology->placement;
    (void)pthread_mutex_unlock(&topology->lock);
    return placement;
}

uint32_t topology_shards_of(struct topology *topology, uint64_t placement)
{
    uint32_t shards = 0;
    (void)pthread_mutex_lock(&topology->lock);
    for (size_t i = 0; i < topology->list_count; i++) {
        int shard = best_shard(topology, topology->lists[i].shards, placement);
        if (shard >= 0) shards |= 1u << shard;
    }
    (void)pthread_mutex_unlock(&topology->lock);
    return shards;
}

uint32_t topology_all_shards(struct topology *topology)
{
    uint32_t shards = 0;
    (void)pthread_mutex_lock(&topology->lock);
    for (size_t i = 0; i < topology->list_count; i++) shards |= topology->lists[i].shards;
    (void)pthread_mutex_unlock(&topology->lock);
    return shards;
}

/* --- Statements to a shard ---------------------------------------------------------------------------------------- */

/* Returns whether REPLICA is of SHARD. Under the lock. */
static bool is_of_shard(const struct topology *topology, const struct replica *replica, int shard)
{
    return replica->is_known && strcmp(replica->shard, topology->shards[shard]) == 0;
}

static bool has_failed(const struct replica *replica, uint64_t now_ns)
{
    return replica->failed_ns && now_ns - replica->failed_ns < FAILED_SECONDS * SECOND_NS;
}

static bool take_flag(void *context, const struct row *row)
{
    *(bool *)context = row_number(row, 0) != 0;
    return false;
}

/* Returns how long the next replica of a shard may take that is asked since BEGUN_NS. */
static uint32_t left_ms(uint64_t begun_ns, bool is_last)
{
    uint64_t spent_ms = (clock_monotonic_ns() - begun_ns) / 1000000;
    return is_last && spent_ms + FIRST_MS < ALL_MS ? ALL_MS - (uint32_t)spent_ms : FIRST_MS;
}

/* Asks replica INDEX whether it lacks rows: one that has just been started does not take part for seconds. Returns
 * whether it answers within ANSWER_MS. */
static bool look_at_replica(struct topology *topology, size_t index, uint32_t answer_ms)
{
    bool is_behind = true, is_silent = false;
    struct replica *replica = &topology->replicas[index];
    struct buffer sql = {.maximum = 1024};
    struct row_reader reader = {"q", {.maximum = ROW_BYTES_MAX}, take_flag, &is_behind};
    struct error ignored;
    buffer_append_format(&sql,
                         "SELECT toUInt64(max(is_readonly OR is_session_expired OR (inserts_in_queue > 0 AND "
                         "absolute_delay > %d))) FROM system.replicas WHERE database = '%s' FORMAT RowBinary",
                         BEHIND_SECONDS, topology->clickhouse.database);
    const struct clickhouse_request request = {.place = replica->place,
                                               .statement = buffer_slice(&sql),
                                               .receive = take_rows,
                                               .context = &reader,
                                               .answer_ms = answer_ms,
                                               .is_silent = &is_silent,
                                               .is_without_database = true};
    enum status status = clickhouse_run(&topology->clickhouse, &request, &ignored);
    buffer_fini(&reader.partial);
    buffer_fini(&sql);
    (void)pthread_mutex_lock(&topology->lock);
    replica->is_behind = is_behind;
    replica->is_silent = is_silent;
    replica->checked_ns = clock_monotonic_ns();
    if (status == STATUS_IO) replica->failed_ns = clock_monotonic_ns();
    (void)pthread_mutex_unlock(&topology->lock);
    return status != STATUS_IO;
}

/* Finds out which replicas of SHARD lack rows or are away. */
static void look_at_replicas(struct topology *topology, int shard, uint64_t begun_ns)
{
    size_t asked[REPLICAS_MAX], count = 0, others = 0;
    (void)pthread_mutex_lock(&topology->lock);
    for (size_t i = 0; i < topology->replica_count; i++) {
        const struct replica *replica = &topology->replicas[i];
        if (!is_of_shard(topology, replica, shard) || replica->is_silent || has_failed(replica, begun_ns)) continue;
        bool is_old = begun_ns - replica->checked_ns > CHECKED_MS * 1000000ull || !replica->checked_ns;
        if (is_old)
            asked[count++] = i;
        else
            others++;
    }
    (void)pthread_mutex_unlock(&topology->lock);
    for (size_t i = 0; i < count; i++)
        others += look_at_replica(topology, asked[i], left_ms(begun_ns, i + 1 == count && others == 0));
}

void topology_look_at_silent(struct topology *topology)
{
    for (size_t i = 0; i < topology->replica_count; i++) {
        (void)pthread_mutex_lock(&topology->lock);
        bool is_silent = topology->replicas[i].is_silent;
        (void)pthread_mutex_unlock(&topology->lock);
        if (!is_silent || !look_at_replica(topology, i, ALL_MS)) continue;
        (void)pthread_mutex_lock(&topology->lock);
        topology->replicas[i].failed_ns = 0;
        (void)pthread_mutex_unlock(&topology->lock);
    }
}

bool topology_is_away(struct topology *topology)
{
    bool is_away = true;
    uint64_t now_ns = clock_monotonic_ns();
    (void)pthread_mutex_lock(&topology->lock);
    for (size_t i = 0; i < topology->replica_count; i++) {
        const struct replica *replica = &topology->replicas[i];
        is_away &= !replica->is_known || replica->is_silent || has_failed(replica, now_ns);
    }
    (void)pthread_mutex_unlock(&topology->lock);
    return is_away;
}

bool topology_is_behind(struct topology *topology, int shard)
{
    bool is_behind = true;
    uint64_t now_ns = clock_monotonic_ns();
    (void)pthread_mutex_lock(&topology->lock);
    for (size_t i = 0; i < topology->replica_count; i++) {
        const struct replica *replica = &topology->replicas[i];
        if (is_of_shard(topology, replica, shard) && !has_failed(replica, now_ns) && !replica->is_silent)
            is_behind &= replica->is_behind;
    }
    (void)pthread_mutex_unlock(&topology->lock);
    return is_behind;
}

/* Sets ORDER to the replicas of SHARD: from the preferred one on, those that lack rows behind the others, and behind
 * these RET_SOUND those that failed lately, and the silent ones. */
static size_t choose_replicas(struct topology *topology, int shard, size_t order[REPLICAS_MAX], size_t *ret_sound)
{
    enum { FAILED = 2, SILENT = 3 };
    size_t count = 0;
    uint64_t now_ns = clock_monotonic_ns();
    (void)pthread_mutex_lock(&topology->lock);
    for (int wanted = 0; wanted <= SILENT; wanted++) {
        if (wanted == FAILED) *ret_sound = count;
        for (size_t i = 0; i < topology->replica_count; i++) {
            size_t index = (i + topology->preferred[shard]) % topology->replica_count;
            const struct replica *replica = &topology->replicas[index];
            int rank = replica->is_silent ? SILENT : has_failed(replica, now_ns) ? FAILED : replica->is_behind;
            if (rank == wanted && is_of_shard(topology, replica, shard)) order[count++] = index;
        }
    }
    (void)pthread_mutex_unlock(&topology->lock);
    return count;
}

/* Returns whether a replica that is silent was found so just now. */
static bool was_silent_lately(struct topology *topology, size_t index)
{
    uint64_t now_ns = clock_monotonic_ns();
    (void)pthread_mutex_lock(&topology->lock);
    const struct replica *replica = &topology->replicas[index];
    bool is_silent = replica->is_silent && now_ns - replica->checked_ns < SILENT_MS * 1000000ull;
    (void)pthread_mutex_unlock(&topology->lock);
    return is_silent;
}

static void note_result(struct topology *topology, int shard, size_t index, enum status status, bool is_silent)
{
    (void)pthread_mutex_lock(&topology->lock);
    topology->replicas[index].failed_ns = status == STATUS_IO ? clock_monotonic_ns() : 0;
    topology->replicas[index].is_silent = is_silent;
    if (is_silent) topology->replicas[index].checked_ns = clock_monotonic_ns();
    if (status == STATUS_OK) topology->preferred[shard] = index;
    (void)pthread_mutex_unlock(&topology->lock);
}

/* Says that no replica of SHARD answers, with the name of one that was silent if there is one. */
static enum status nobody_answers(struct topology *topology, int shard, struct error *error)
{
    enum status status = error_set(error, STATUS_IO, 0, "no server of shard %s answers", topology->shards[shard]);
    (void)pthread_mutex_lock(&topology->lock);
    for (size_t i = topology->replica_count; i-- > 0;) {
        const struct replica *replica = &topology->replicas[i];
        if (is_of_shard(topology, replica, shard) && replica->is_silent)
            (void)error_set(error, STATUS_IO, 0, "%s does not answer in time", replica->place);
    }
    (void)pthread_mutex_unlock(&topology->lock);
    return status;
}

enum status topology_run(struct topology *topology, const struct shard_request *request, struct error *error)
{
    size_t order[REPLICAS_MAX];
    uint64_t begun_ns = clock_monotonic_ns();
    look_at_replicas(topology, request->shard, begun_ns);
    size_t sound = 0, count = choose_replicas(topology, request->shard, order, &sound);
    enum status status = STATUS_IO;
    bool was_silent = false, was_asked = false;
    for (size_t i = 0; i < count && status == STATUS_IO; i++) {
        bool is_silent = false, is_last = i + 1 == (sound > 0 ? sound : count);
        /* One that failed or was silent may have come back since, without the rows of the meantime. */
        if (i >= sound && clock_monotonic_ns() - begun_ns > (ALL_MS + FIRST_MS) * 1000000ull) break;
        if (i >= sound && was_silent_lately(topology, order[i])) continue;
        if ((was_silent || i >= sound) && !look_at_replica(topology, order[i], left_ms(begun_ns, is_last))) continue;
        was_asked = true;
        const struct clickhouse_request one = {
            .place = topology->replicas[order[i]].place,
            .statement = request->statement,
            .body = request->body,
            .receive = request->receive,
            .context = request->context,
            .ping_ms = is_last ? LAST_PING_MS : FIRST_MS,
            .is_silent = &is_silent,
        };
        if (i > 0 && request->restart) request->restart(request->context);
        status = clickhouse_run(&topology->clickhouse, &one, error);
        note_result(topology, request->shard, order[i], status, is_silent);
        was_silent |= is_silent;
    }
    return was_asked ? status : nobody_answers(topology, request->shard, error);
}
