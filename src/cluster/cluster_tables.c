/* Makes and compares the tables of a cluster, replica by replica. A statement for all at once (ON CLUSTER) would wait
 * for those that are away.  SPDX-License-Identifier: MIT */
#include "base/clocks.h"
#include "cluster/cluster_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SQL_BYTES_MAX = 64 << 10, CLOCK_SECONDS_MAX = 30, NAMES_BYTES_MAX = 1 << 20 };

/* One replica that is looked at. */
struct looking {
    struct cluster cluster; /* options and topology alone */
    size_t index;
    uint64_t problems;
};

static const char *place_of(const struct looking *looking)
{
    return looking->cluster.topology.replicas[looking->index].place;
}

static enum status ask(struct looking *looking, const struct buffer *sql, const char *types, row_visit *visit,
                       void *context, struct error *error)
{
    return replica_each_row(&looking->cluster.topology, looking->index, buffer_slice(sql), types, visit, context,
                            error);
}

static enum status run(struct looking *looking, const struct buffer *sql, struct error *error)
{
    const struct clickhouse_request request = {
        .place = place_of(looking), .statement = buffer_slice(sql), .ping_ms = 5000, .is_without_database = true};
    return clickhouse_run(&looking->cluster.topology.clickhouse, &request, error);
}

static bool take_number(void *context, const struct row *row)
{
    *(uint64_t *)context = row_number(row, 0);
    return false;
}

/* --- What a server is --------------------------------------------------------------------------------------------- */

/* Sets RET_IS_REPLICATED: whether the server has ZooKeeper or Keeper. Several servers need it, and names. */
static enum status look_at_server(struct looking *looking, bool *ret_is_replicated, struct error *error)
{
    struct topology *topology = &looking->cluster.topology;
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    uint64_t tables = 0, seconds = 0;
    enum status status = topology_ask_name(topology, looking->index, error);
    const struct replica *replica = &topology->replicas[looking->index];
    buffer_append_text(&sql,
                       "SELECT count() FROM system.tables WHERE database = 'system' AND name = 'zookeeper' FORMAT "
                       "RowBinary");
    if (status == STATUS_OK) status = ask(looking, &sql, "q", take_number, &tables, error);
    *ret_is_replicated = tables > 0 && replica->name[0];
    if (status == STATUS_OK && topology->replica_count > 1 && !*ret_is_replicated)
        status = error_set(error, STATUS_UNSUPPORTED, 0, "%s: several servers need %s in the configuration of each",
                           replica->place, tables > 0 ? "the macro \"replica\"" : "ZooKeeper or Keeper");
    buffer_clear(&sql);
    buffer_append_text(&sql, "SELECT toUInt64(toUInt32(now())) FORMAT RowBinary");
    if (status == STATUS_OK) status = ask(looking, &sql, "q", take_number, &seconds, error);
    int64_t difference = (int64_t)seconds - (int64_t)(clock_utc_ns() / SECOND_NS);
    if (status == STATUS_OK && llabs(difference) > CLOCK_SECONDS_MAX)
        status = error_set(error, STATUS_UNSUPPORTED, 0, "%s: its clock differs from this machine's by %lld seconds",
                           replica->place, (long long)llabs(difference));
    buffer_fini(&sql);
    return status;
}

/* --- Making ------------------------------------------------------------------------------------------------------- */

static bool append_name(void *context, const struct row *row)
{
    struct buffer *names = context;
    buffer_append_format(names, "%s%.*s", names->size > 0 ? "," : "", SLICE_ARGUMENTS(row->cells[0]));
    return true;
}

/* Sets OUT to the answer to SQL, a list of texts, joined by commas. */
static enum status ask_names(struct looking *looking, const struct buffer *sql, struct buffer *out, struct error *error)
{
    buffer_clear(out);
    enum status status = ask(looking, sql, "s", append_name, out, error);
    buffer_append(out, "", 1);
    return status;
}

/* --- Columns ------------------------------------------------------------------------------------------------------ */

/* Sets OUT to "name type,name type,…" of a table; empty: it is not there. */
static enum status list_columns(struct looking *looking, enum cluster_table table, struct buffer *out,
                                struct error *error)
{
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    buffer_append_text(&sql, "SELECT concat(name, ' ', type) FROM system.columns WHERE database = ");
    sql_append_literal(&sql, slice_of_text(looking->cluster.topology.clickhouse.database));
    buffer_append_format(&sql, " AND table = '%s' FORMAT RowBinary", cluster_tables[table].name);
    enum status status = ask_names(looking, &sql, out, error);
    buffer_fini(&sql);
    return status;
}

typedef enum status visit_column(struct looking *looking, enum cluster_table table, const char *column,
                                 struct error *error);

/* Visits the columns of TABLE that are not among FOUND. */
static enum status each_missing(struct looking *looking, enum cluster_table table, const struct buffer *found,
                                visit_column *visit, struct error *error)
{
    const struct table *wanted = &cluster_tables[table];
    struct slice names = slice_of_text(wanted->columns);
    enum status status = STATUS_OK;
    for (const char *type = wanted->types; *type && status == STATUS_OK; type++) {
        struct slice name = text_take_until(&names, ','), rest = slice_of(found->data, found->size - 1);
        char what[160];
        bool is_there = false;
        (void)snprintf(what, sizeof(what), "%.*s %s", SLICE_ARGUMENTS(name), type_name(*type));
        while (rest.size > 0 && !is_there) is_there = slice_equals_text(text_take_until(&rest, ','), what);
        if (!is_there) status = visit(looking, table, what, error);
    }
    return status;
}

static enum status add_column(struct looking *looking, enum cluster_table table, const char *column,
                              struct error *error)
{
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    buffer_append_format(&sql, "ALTER TABLE %s.%s ADD COLUMN %s", looking->cluster.topology.clickhouse.database,
                         cluster_tables[table].name, column);
    enum status status = run(looking, &sql, error);
    buffer_fini(&sql);
    return status;
}

/* A table that an older version made lacks columns; its twin may have added them for both, or is about to. */
static enum status add_columns(struct looking *looking, enum cluster_table table, struct error *error)
{
    enum { TRIES = 5 };
    const struct timespec pause = {.tv_sec = 1};
    struct buffer found = {.maximum = NAMES_BYTES_MAX};
    enum status status = STATUS_IO;
    for (int i = 0; i < TRIES && status != STATUS_OK; i++) {
        if (i > 0) (void)nanosleep(&pause, NULL);
        status = list_columns(looking, table, &found, error);
        if (status == STATUS_OK && found.size > 1) status = each_missing(looking, table, &found, add_column, error);
    }
    buffer_fini(&found);
    return status;
}

static enum status create_on(struct looking *looking, bool is_replicated, struct error *error)
{
    const char *database = looking->cluster.topology.clickhouse.database;
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    buffer_append_format(&sql, "CREATE DATABASE IF NOT EXISTS %s", database);
    enum status status = run(looking, &sql, error);
    for (enum cluster_table table = 0; table < TABLES && status == STATUS_OK; table++) {
        buffer_clear(&sql);
        schema_write_create(table, database, is_replicated, &sql);
        status = run(looking, &sql, error);
        if (status == STATUS_OK) status = add_columns(looking, table, error);
    }
    buffer_fini(&sql);
    if (status == STATUS_OK)
        cluster_report(&looking->cluster, "%s has the tables of the database %s, %s", place_of(looking), database,
                       is_replicated ? "replicated" : "on this server alone");
    return status;
}

/* Adds the row of the version, and that of the shards if they are others: from tomorrow on, so that what has arrived
 * today stays together. The first list is valid from the beginning. */
static enum status note_shards(struct looking *looking, struct error *error)
{
    struct topology *topology = &looking->cluster.topology;
    const char *database = topology->clickhouse.database;
    struct buffer sql = {.maximum = SQL_BYTES_MAX}, last = {.maximum = NAMES_BYTES_MAX}, names = {.maximum = 4096};
    uint64_t versions = 0;
    for (size_t i = 0; i < topology->replica_count; i++) {
        bool is_new = true;
        for (size_t k = 0; k < i; k++) is_new &= strcmp(topology->replicas[k].shard, topology->replicas[i].shard) != 0;
        if (is_new) buffer_append_format(&names, "%s%s", names.size > 0 ? "," : "", topology->replicas[i].shard);
    }
    buffer_append(&names, "", 1);
    buffer_append_format(&sql,
                         "SELECT body FROM %s.control WHERE sort = 'shards' ORDER BY version DESC LIMIT 1 FORMAT "
                         "RowBinary",
                         database);
    enum status status = ask_names(looking, &sql, &last, error);
    if (status == STATUS_OK && strcmp((const char *)last.data, (const char *)names.data) != 0) {
        uint64_t day = last.size > 1 ? clock_utc_ns() / DAY_NS + 1 : 0;
        buffer_clear(&sql);
        buffer_append_format(&sql, "INSERT INTO %s.control (sort, version, body) VALUES ('shards', %" PRIu64 ", ",
                             database, day);
        sql_append_literal(&sql, slice_of_text((const char *)names.data));
        buffer_append_text(&sql, ")");
        status = run(looking, &sql, error);
        if (status == STATUS_OK && day)
            cluster_report(&looking->cluster, "the shards are %s from tomorrow on (UTC)", (const char *)names.data);
    }
    buffer_clear(&sql);
    buffer_append_format(&sql, "SELECT count() FROM %s.schema WHERE version = %d FORMAT RowBinary", database,
                         CLUSTER_VERSION);
    if (status == STATUS_OK) status = ask(looking, &sql, "q", take_number, &versions, error);
    buffer_clear(&sql);
    buffer_append_format(&sql, "INSERT INTO %s.schema (version, oldest_reader) VALUES (%d, %d)", database,
                         CLUSTER_VERSION, CLUSTER_READER_OLDEST);
    if (status == STATUS_OK && versions == 0) status = run(looking, &sql, error);
    buffer_fini(&sql);
    buffer_fini(&last);
    buffer_fini(&names);
    return status;
}

/* Looks at all servers first: nothing is made on some of them if one is not as it must be. */
enum status cluster_create(const struct cluster_options *options, struct error *error)
{
    struct looking *looking = calloc(1, sizeof(*looking));
    bool is_replicated[REPLICAS_MAX];
    if (!looking) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    struct topology *topology = &looking->cluster.topology;
    looking->cluster.options = *options;
    enum status status = topology_init(topology, options, error);
    for (looking->index = 0; looking->index < topology->replica_count && status == STATUS_OK; looking->index++)
        status = look_at_server(looking, &is_replicated[looking->index], error);
    for (looking->index = 0; looking->index < topology->replica_count && status == STATUS_OK; looking->index++)
        status = create_on(looking, is_replicated[looking->index], error);
    looking->index = 0;
    if (status == STATUS_OK) status = note_shards(looking, error);
    topology_fini(topology);
    free(looking);
    return status;
}

/* --- Deleting ----------------------------------------------------------------------------------------------------- */

static enum status drop_on(struct looking *looking, struct error *error)
{
    const char *database = looking->cluster.topology.clickhouse.database;
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    uint64_t databases = 0, others = 0;
    buffer_append_format(&sql, "SELECT count() FROM system.databases WHERE name = '%s' FORMAT RowBinary", database);
    enum status status = ask(looking, &sql, "q", take_number, &databases, error);
    for (enum cluster_table table = 0; table < TABLES && status == STATUS_OK && databases > 0; table++) {
        buffer_clear(&sql);
        buffer_append_format(&sql, "DROP TABLE IF EXISTS %s.%s", database, cluster_tables[table].name);
        status = run(looking, &sql, error);
    }
    buffer_clear(&sql);
    buffer_append_format(&sql, "SELECT count() FROM system.tables WHERE database = '%s' FORMAT RowBinary", database);
    if (status == STATUS_OK) status = ask(looking, &sql, "q", take_number, &others, error);
    buffer_clear(&sql);
    buffer_append_format(&sql, "DROP DATABASE IF EXISTS %s", database);
    if (status == STATUS_OK && others == 0) status = run(looking, &sql, error);
    buffer_fini(&sql);
    if (status == STATUS_OK)
        cluster_report(&looking->cluster, "%s: the database %s %s", place_of(looking), database,
                       databases == 0 ? "was not there"
                       : others > 0   ? "has tables of others only"
                                      : "is deleted");
    return status;
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

static void complain(struct looking *looking, const char *text, const char *name)
{
    cluster_report(&looking->cluster, "%s: %s%s", place_of(looking), text, name);
    looking->problems++;
}

static enum status complain_of_column(struct looking *looking, enum cluster_table table, const char *column,
                                      struct error *error)
{
    char lacks[96];
    (void)error;
    (void)snprintf(lacks, sizeof(lacks), "the table %s lacks the column ", cluster_tables[table].name);
    complain(looking, lacks, column);
    return STATUS_OK;
}

static enum status compare_table(struct looking *looking, enum cluster_table table, struct error *error)
{
    struct buffer found = {.maximum = NAMES_BYTES_MAX};
    enum status status = list_columns(looking, table, &found, error);
    if (status == STATUS_OK && found.size <= 1)
        complain(looking, "offbeat store create must make the table ", cluster_tables[table].name);
    else if (status == STATUS_OK)
        status = each_missing(looking, table, &found, complain_of_column, error);
    buffer_fini(&found);
    return status;
}

/* Reports what is in the way of nobody but takes room: tables of others, and parts that were set aside. */
static enum status list_others(struct looking *looking, struct error *error)
{
    struct buffer sql = {.maximum = SQL_BYTES_MAX}, found = {.maximum = NAMES_BYTES_MAX};
    const char *database = looking->cluster.topology.clickhouse.database;
    buffer_append_text(&sql, "SELECT concat(database, '.', table, ' (', toString(intDiv(sum(bytes_on_disk), 1048576)), "
                             "' MB)') FROM system.parts WHERE active AND NOT (database = ");
    sql_append_literal(&sql, slice_of_text(database));
    for (enum cluster_table table = 0; table < TABLES; table++)
        buffer_append_format(&sql, "%s'%s'", table == 0 ? " AND table IN (" : ", ", cluster_tables[table].name);
    buffer_append_text(&sql, ")) GROUP BY database, table HAVING sum(bytes_on_disk) > 1048576 ORDER BY "
                             "sum(bytes_on_disk) DESC LIMIT 20 FORMAT RowBinary");
    enum status status = ask_names(looking, &sql, &found, error);
    if (status == STATUS_OK && found.size > 1)
        cluster_report(&looking->cluster, "%s: other tables take room: %.300s", place_of(looking),
                       (const char *)found.data);
    buffer_clear(&sql);
    buffer_append_text(&sql, "SELECT table FROM system.replicas WHERE is_readonly AND database = ");
    sql_append_literal(&sql, slice_of_text(database));
    buffer_append_text(&sql, " FORMAT RowBinary");
    if (status == STATUS_OK) status = ask_names(looking, &sql, &found, error);
    if (status == STATUS_OK && found.size > 1)
        complain(looking, "takes no rows, because it has lost ZooKeeper: ", (const char *)found.data);
    buffer_fini(&sql);
    buffer_fini(&found);
    return status;
}

static enum status check_server(struct looking *looking, struct error *error)
{
    bool is_replicated;
    enum status status = look_at_server(looking, &is_replicated, error);
    for (enum cluster_table table = 0; table < TABLES && status == STATUS_OK; table++)
        status = compare_table(looking, table, error);
    if (status == STATUS_OK) status = list_others(looking, error);
    return status;
}

/* Runs ACT with each server, also if it fails with one. */
static enum status each_server(const struct cluster_options *options,
                               enum status (*act)(struct looking *looking, struct error *error), uint64_t *ret_problems,
                               struct error *error)
{
    struct looking *looking = calloc(1, sizeof(*looking));
    if (!looking) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    struct topology *topology = &looking->cluster.topology;
    looking->cluster.options = *options;
    enum status status = topology_init(topology, options, error);
    for (looking->index = 0; looking->index < topology->replica_count && status == STATUS_OK; looking->index++) {
        struct error problem;
        if (act(looking, &problem) != STATUS_OK) {
            cluster_report(&looking->cluster, "%s", problem.message);
            looking->problems++;
        }
    }
    *ret_problems = looking->problems;
    topology_fini(topology);
    free(looking);
    return status;
}

enum status cluster_check(const struct cluster_options *options, uint64_t *ret_problems, struct error *error)
{
    return each_server(options, check_server, ret_problems, error);
}

enum status cluster_drop(const struct cluster_options *options, uint64_t *ret_problems, struct error *error)
{
    return each_server(options, drop_on, ret_problems, error);
}
