/* The store in SQLite: a control file, and a data file for each day.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_STORE_PRIVATE_H
#define OFFBEAT_STORE_STORE_PRIVATE_H

#include "base/clocks.h"
#include "store/checked_file.h"
#include "store/debug_files.h"
#include "store/payload.h"
#include "store/rollup_values.h"
#include "store/stack_dictionary.h"
#include "store/store.h"
#include "store/store_engine.h"
#include "store/value_list.h"

#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>

enum {
    SCHEMA_VERSION = 5,
    STORE_DAYS_MAX = 4096,
    STORE_PATH_SIZE = 4096,
    DAY_NAME_SIZE = 20, /* "2026-11-23.db" */
    DATE_SIZE = 10,     /* "2026-11-23" */
    DAYS_BEFORE = 3,
    FILES_BEFORE_MAX = 32,
    DISK_PARTS = 20, /* a data file has at most such a part of the disk's limit */
    FILE_BYTES_MIN = 1 << 20,
    BUSY_MS = 10000,
    REPORTED_MAX = 16,
};

/* --- Statements --------------------------------------------------------------------------------------------------- */

enum status sql_failed(sqlite3 *db, struct error *error, const char *what);
void sql_bind_slice(sqlite3_stmt *statement, int index, struct slice text);
void sql_bind_u64(sqlite3_stmt *statement, int index, uint64_t value); /* cut to 63 bits */
struct slice sql_text(sqlite3_stmt *statement, int column);
/* Copies the text of COLUMN, cut to SIZE - 1 bytes. */
void sql_copy_text(sqlite3_stmt *statement, int column, char *into, size_t size);
uint64_t sql_u64(sqlite3_stmt *statement, int column);
/* Returns the schema version of a file: 0 if it is new, -1 if it cannot be read. */
int sql_version(sqlite3 *db);
/* Sets ERROR: the file NAME has the schema VERSION instead of the EXPECTED one. */
enum status sql_wrong_version(const char *name, int version, int expected, struct error *error);

/* --- One data file ------------------------------------------------------------------------------------------------ */

enum { DAY_STATEMENTS = 15 };

struct day {
    char name[DAY_NAME_SIZE];
    sqlite3 *db;
    sqlite3_stmt *statements[DAY_STATEMENTS];
};

/* STATUS_MALFORMED if the file is damaged, STATUS_UNSUPPORTED if it has another schema version. */
enum status day_open(struct day *day, const char *folder, const char *name, bool is_written, struct error *error);
void day_close(struct day *day);
/* A damaged file has no chunk. */
enum status day_find_chunk(struct day *day, const struct store_chunk *chunk, bool *ret_is_found, struct error *error);

/* Ready to be run again, whether that worked or not. */
enum status day_run(struct day *day, sqlite3_stmt *statement, struct error *error);

/* RET_ROW: of the chunk, if it is new. */
enum status day_add_chunk(struct day *day, const struct store_chunk *chunk, struct slice packed, bool *ret_is_new,
                          int64_t *ret_row, struct error *error);
enum status day_add_span(struct day *day, uint64_t project, const struct store_span *span, struct error *error);
enum status day_add_rejected(struct day *day, uint64_t project, const struct store_rejected *rejected,
                             struct slice packed, struct error *error);
enum status day_add_outcome(struct day *day, uint64_t project, const struct store_outcome *outcome,
                            struct error *error);

/* --- Sums --------------------------------------------------------------------------------------------------------- */

enum {
    KNOWN_DICTIONARIES_MAX = 256,
    KNOWN_DICTIONARIES_BYTES_MAX = 64 << 20, /* bytes of memory of the dictionaries that the writer knows */
};

/* The dictionaries of the writer's days, so that it need not read them for each chunk. */
struct known_dictionary {
    char day[DAY_NAME_SIZE];
    int64_t id;
    uint64_t project, used, segments;
    char service[STORE_NAME_BYTES_MAX + 1];
    struct stack_dictionary dictionary;
};
struct known_dictionaries {
    struct known_dictionary *items[KNOWN_DICTIONARIES_MAX];
    size_t count, bytes;
    uint64_t uses;
};
/* Forgets the dictionaries; needed after a rollback, because they may know what is not stored. */
void known_dictionaries_clear(struct known_dictionaries *dictionaries);

/* Adds CHUNK->rollup, of the chunk in ROW, if there is room for it. */
enum status rollup_store(struct known_dictionaries *dictionaries, struct day *day, const struct store_chunk *chunk,
                         int64_t row, struct error *error);
/* The statements of a day that rollup.c uses, in that order. */
enum {
    FIND_DICTIONARY = DAY_STATEMENTS - 9,
    ADD_DICTIONARY,
    ADD_SEGMENT,
    FIND_GROUP,
    ADD_GROUP,
    ADD_ROLLUP,
    DROP_ROLLUPS,
    ADD_STALE,
    MARK_ROLLED_UP,
};

/* The key of a rollup, and the time range that it covers. CHUNK: its row, or 0 above LEVEL_CHUNK. */
struct rollup_row {
    int64_t group;
    int level;
    uint64_t start_ns;
    int64_t chunk;
    uint64_t first_ns, last_ns;
};

enum status rollup_read_dictionary(sqlite3 *db, int64_t id, bool is_indexed, struct stack_dictionary *dictionary,
                                   uint64_t *ret_segments, struct error *error);

/* --- All of it ---------------------------------------------------------------------------------------------------- */

/* A batch that waits for its commit; the thread that added it owns the memory and waits. */
struct waiting {
    const struct store_batch *batch;
    struct buffer *packed; /* payloads of the chunks, then of the rejected items */
    struct waiting *next;
    bool is_done;
    uint64_t duplicates;
    enum status status;
    struct error error;
};

struct store {
    const struct store_engine *engine;
    void *engine_data;       /* the store itself, for that of the days */
    uint64_t disk_bytes_max; /* 0: no limit; under WRITER_LOCK */
    char folder[STORE_PATH_SIZE];
    int lock;
    store_report *report;
    void *report_context;

    pthread_mutex_t control_lock; /* lock of CONTROL */
    sqlite3 *control;

    pthread_mutex_t debug_lock; /* lock of debug files with their rows; taken before CONTROL_LOCK */

    pthread_mutex_t queue_lock; /* lock of the queue and its numbers */
    pthread_cond_t has_work, has_done;
    struct waiting *first, **end;
    size_t waiting_count;
    bool is_closing;
    uint64_t commits, batches;
    uint64_t failed_ns;                         /* monotonic time when batches were not stored; 0: the last ones were */
    char reported[REPORTED_MAX][DAY_NAME_SIZE]; /* damaged files that queries met, each reported once */
    size_t reported_count;

    pthread_mutex_t writer_lock; /* lock of the open days, for the writer's thread or store_expire */
    struct day today;
    struct day before[FILES_BEFORE_MAX]; /* written before it: they may have a chunk that a client sends again */
    struct known_dictionaries dictionaries;
    pthread_t writer;
    bool has_writer;
};

void store_print(store_report *report, void *context, const char *format, ...) __attribute__((format(printf, 3, 4)));
void *store_write(void *store); /* the writer's thread */

/* A data file is up to three files on disk: SQLite's log and shared memory are beside it. */
enum { DAY_FILES = 3 };
extern const char *const day_file_endings[DAY_FILES];

/* Sets RET_NAME to that of the first file of a day, "2026-11-23.db"; the next ones are "2026-11-23.1.db", … */
void day_name(uint64_t time_ns, char ret_name[DAY_NAME_SIZE]);
bool is_day_name(const char *name);
/* The names of the data files in FOLDER, the earliest first; to be freed. */
enum status list_days(const char *folder, char (**ret_names)[DAY_NAME_SIZE], size_t *ret_count, struct error *error);
/* Returns whether a file in FOLDER was moved aside: answers lack its data. */
bool folder_has_damaged(const char *folder);
/* Sets RET_NAME to that of the file after NAME on its day: "2026-11-23.1.db" after "2026-11-23.db". */
void day_next_name(const char *name, char ret_name[DAY_NAME_SIZE]);
/* Returns whether the day of file NAME is before that of OTHER. */
bool day_is_before(const char *name, const char *other);
uint64_t day_bytes(const char *folder, const char *name);
/* Removes the oldest files but the last one until NEEDED bytes more are within the limit. Under the writer's lock. */
void make_disk_room(struct store *store, uint64_t needed);
/* Renames a damaged file to a name that is_day_name rejects, and reports that or why it failed. */
bool move_aside(const char *folder, const char *name, store_report *report, void *context);

enum status control_open(struct store *store, struct error *error);
/* Locks the control file and prepares SQL. control_end must follow, also after NULL. */
sqlite3_stmt *control_begin(struct store *store, const char *sql);
/* Finalizes STATEMENT and unlocks. CODE is the result of its last step; WHAT begins the message of a failure. */
enum status control_end(struct store *store, sqlite3_stmt *statement, int code, const char *what, struct error *error);
/* Adds NAME to the days, in the order in which the writer changed to them; a new one is the last. Times of files do
 * not have that order: rollups write earlier days, too. */
enum status control_know_day(struct store *store, const char *name, struct error *error);
/* Makes NAME the last day; called before the first chunk is stored there. */
enum status control_write_day(struct store *store, const char *name, struct error *error);
void control_forget_day(struct store *store, const char *name);
/* Lists the days, the last one first; to be freed. Retention may have removed the file of a day. */
enum status control_list_days(struct store *store, char (**ret_names)[DAY_NAME_SIZE], size_t *ret_count,
                              struct error *error);
/* The number of a new row in the control file: random where several servers add rows (control_rows.h), else the next
 * one. */
#define NEW_ID                                                                                                         \
    "(SELECT CASE WHEN EXISTS(SELECT 1 FROM sqlite_master WHERE name='changed') THEN "                                 \
    "abs(random()%1000000000000)+1000 "                                                                                \
    "END)"
enum status lock_folder(const char *folder, int *ret_lock, struct error *error);
/* The first columns of a row that chunk_of_row reads. */
#define CHUNK_COLUMNS                                                                                                  \
    "project,kind,profiler_id,chunk_id,service,environment,release,host,platform,kinds,series,start_ns,end_ns,"        \
    "received_ns,samples,size"

/* The chunk of ROW, with the size of its payload and without its bytes. Its slices live as long as the row. */
struct store_chunk chunk_of_row(sqlite3_stmt *row);
/* Returns whether SQLite finds the file undamaged; RET_PROBLEM is "ok" or the damage. */
bool day_is_whole(struct day *day, char *ret_problem, size_t size);

/* --- Debug files -------------------------------------------------------------------------------------------------- */

/* Makes the tables that are missing, and removes what a killed server left. */
enum status debug_open(struct store *store, struct error *error);
void debug_sweep_chunks(struct store *store);
void debug_expire_chunks(struct store *store, uint64_t now_ns);
void debug_remove_chunks(struct store *store, const struct store_debug_parts *parts);

/* --- Limits of projects ------------------------------------------------------------------------------------------- */

struct project_limit {
    uint64_t project, age_ns, bytes_max; /* 0: the store's, none */
};
struct project_limits {
    struct project_limit *items; /* array; to be freed */
    size_t count;
};
enum status limits_read(struct store *store, struct project_limits *ret_limits, struct error *error);
/* Returns the longest of AGE_NS and the projects' own; 0: some project keeps its data forever. */
uint64_t limits_longest_age(const struct project_limits *limits, uint64_t age_ns);
/* Removes what projects keep for a shorter time than the files. Takes the writer's lock for moments. */
enum status limits_apply(struct store *store, const struct project_limits *limits, uint64_t now_ns, uint64_t age_ns,
                         uint64_t *removed, struct error *error);

/* --- The engine of a file for each day ---------------------------------------------------------------------------- */

extern const struct store_engine days_engine;
enum status days_add(struct store *store, const struct store_batch *batch, uint64_t *ret_duplicates,
                     struct error *error);
enum status days_each_chunk(struct store *store, const struct store_query *query, store_visit_chunk *visit,
                            void *context, struct error *error);
enum status days_each_rollup(struct store *store, const struct store_query *query,
                             const struct store_rollup_visitor *visitor, struct error *error);
enum status days_each_span(struct store *store, const struct store_query *query, store_visit_span *visit, void *context,
                           struct error *error);
enum status days_each_rejected(struct store *store, const struct store_query *query, store_visit_rejected *visit,
                               void *context, struct error *error);
enum status days_each_outcome(struct store *store, const struct store_query *query, store_visit_outcome *visit,
                              void *context, struct error *error);
enum status days_each_value(struct store *store, const struct store_query *query, enum store_column column,
                            store_visit_value *visit, void *context, struct error *error);
enum status days_each_usage(struct store *store, uint64_t project, store_visit_usage *visit, void *context,
                            struct error *error);
enum status days_delete(struct store *store, const struct store_query *query, uint64_t *ret_chunks,
                        struct error *error);
enum status days_expire(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                        uint64_t *ret_removed, struct error *error);
enum status days_update_rollups(struct store *store, uint64_t now_ns, uint64_t *ret_count, struct error *error);
void days_close(void *store);

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* The parameters of each WHERE below, in this order. */
void query_bind(sqlite3_stmt *statement, const struct store_query *query);

#define WHERE_TIME " WHERE project=?1 AND start_ns<?3 AND end_ns>=?2"
#define WHERE_NAMES " AND (?4 IS NULL OR service=?4) AND (?5 IS NULL OR environment=?5) AND (?6 IS NULL OR release=?6)"
#define WHERE_KINDS " AND (?12 IS NULL OR instr(char(10)||?12,char(10)||kinds||char(10)))"
#define WHERE_CHUNK                                                                                                    \
    WHERE_TIME WHERE_NAMES " AND (?7 IS NULL OR host=?7) AND (?8 IS NULL OR platform=?8)"                              \
                           " AND (?9 IS NULL OR profiler_id=?9) AND (?10 IS NULL OR chunk_id=?10)" WHERE_KINDS

/* In DAY; CONTINUES is false when the visitor wants no more. */
typedef enum status query_read_day(void *context, struct store *store, struct day *day, bool *continues,
                                   struct error *error);
enum status query_each_day(struct store *store, const struct store_query *query, query_read_day *read, void *context,
                           struct error *error);

/* Deletes the rows of QUERY in the file NAME, and adds the number of chunks to CHUNKS. Takes the writer's lock. */
enum status delete_in_day(struct store *store, const char *name, const struct store_query *query, uint64_t *chunks,
                          struct error *error);

/* The chunks of QUERY that no rollup has in its time range, with their payloads. */
enum status query_chunks_without_rollup(struct store *store, struct day *day, const struct store_query *query,
                                        const struct store_rollup_visitor *visitor, bool *continues,
                                        struct error *error);

#endif
