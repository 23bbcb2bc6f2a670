/* The store: payloads in columns give back their bytes, and a folder survives duplicates, damage and clocks that
 * jump.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "store/columns.h"
#include "store/debug_files.h"
#include "store/store_private.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define DAY(n) ((n)*DAY_NS)

static char said[4096];

static void keep_report(void *context, const char *text)
{
    (void)strncat(said, text, sizeof(said) - strlen(said) - 1);
    (void)strncat(said, "\n", sizeof(said) - strlen(said) - 1);
}

/* --- Columns --------------------------------------------------------------------------------------------------------
 */

static bool comes_back(struct slice text, bool *ret_has_columns)
{
    struct buffer packed, out;
    struct error error;
    buffer_init(&packed, 1 << 24);
    buffer_init(&out, 1 << 24);
    buffer_append_text(&out, "before");
    bool is_same = payload_pack(text, &packed, &error) == STATUS_OK &&
                   payload_unpack(buffer_slice(&packed), text.size, &out, &error) == STATUS_OK &&
                   slice_equal(slice_of(out.data + 6, out.size - 6), text);
    *ret_has_columns = packed.size > 0 && packed.data[0] == 1;
    buffer_fini(&packed);
    buffer_fini(&out);
    return is_same;
}

TEST(a_payload_comes_back_byte_for_byte)
{
    static const struct {
        const char *text;
        bool has_columns;
    } payloads[] = {
        {"", false},
        {"\"samples\"", false},
        {"\"samples\":[{\"t\":1}]", false},
        {"\"samples\":[{\"t\":1},{\"t\":", false},
        {"{\"samples\":[{\"time\":1,\"id\":\"7\"},{\"time\":2,\"id\":\"7\"},{\"time\":3,\"id\":\"7\"},{\"time\":5,"
         "\"id\":\"7\"}],"
         "\"end\":true}",
         true},
        {"{\"samples\": [ {\"time\": 1.5, \"i\": 0},\n {\"time\": 1.50, \"i\": 10},\n {\"time\": 2, \"i\": 3},\n "
         "{\"time\": 2.0, "
         "\"i\": 9},\n {\"time\": 0.05, \"i\": 12},\n {\"time\": 0, \"i\": 1} ] }",
         true},
        {"{\"samples\":[{\"time\":-1.5,\"v\":123456789},{\"time\":-1.5,\"v\":123456789},{\"time\":-1.5,\"v\":123456789}"
         ","
         "{\"time\":1.5,\"v\":123456789}]}",
         true},
        {"{\"samples\":[{\"time\":1,\"value\":10},{\"time\":01,\"value\":10},{\"time\":1,\"value\":10}]}", false},
        {"\"samples\":[{\"time\":123456789012345678,\"more\":1},{\"time\":123456789012345678,\"more\":1},{\"time\":1.5,"
         "\"more\":1}]",
         true},
        {"\"samples\":[{\"a\":1e5,\"b\":1.},{\"a\":1e6,\"b\":1.},{\"a\":1e7,\"b\":1.},{\"a\":1e8,\"b\":1.},{\"a\":1e9,"
         "\"b\":1.}]",
         true},
    };
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        bool has_columns;
        CHECK(comes_back(slice_of_text(payloads[i].text), &has_columns));
        if (has_columns != payloads[i].has_columns) TEST_FAIL("payload %zu: columns %d", i, has_columns);
    }
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void append_random_samples(struct buffer *text, unsigned *state)
{
    unsigned count = next_random(state) % 60, form = next_random(state) % 4;
    buffer_append_text(text, "{\"version\":\"2\",\"samples\":[");
    for (unsigned i = 0; i < count; i++) {
        unsigned high = next_random(state), low = next_random(state) % 10000000;
        if (form == 0) buffer_append_format(text, "%s{\"t\":%u.%u,\"s\":%u}", i ? "," : "", high, low, low % 9);
        if (form == 1) buffer_append_format(text, "%s{\"t\": %u.%07u, \"id\": \"%u\"}", i ? ", " : "", high, low, low);
        if (form == 2) buffer_append_format(text, "%s{\"t\":%g,\"s\":%u}", i ? "," : "", low / 256.0, high);
        if (form == 3) buffer_append_format(text, "%s{\"t\":%u,\"s\":\"%x\"}", i ? "," : "", high, low % 30);
    }
    buffer_append_text(text, "],\"threads\":{\"1\":{}}}");
}

TEST(random_payloads_with_random_damage_come_back)
{
    unsigned state = 1, with_columns = 0;
    for (int round = 0; round < 20000; round++) {
        struct buffer text;
        bool has_columns;
        buffer_init(&text, 1 << 20);
        append_random_samples(&text, &state);
        for (unsigned hits = next_random(&state) % 3; hits > 0; hits--)
            text.data[next_random(&state) % text.size] = (uint8_t)next_random(&state);
        if (!comes_back(buffer_slice(&text), &has_columns))
            TEST_FAIL("round %d: %.*s", round, (int)text.size, text.data);
        with_columns += has_columns;
        buffer_fini(&text);
    }
    CHECK(with_columns > 5000);
}

TEST(damaged_columns_are_rejected_or_stay_within_their_size)
{
    unsigned state = 2;
    for (int round = 0; round < 2000; round++) {
        struct buffer text, columns;
        buffer_init(&text, 1 << 20);
        buffer_init(&columns, 1 << 20);
        append_random_samples(&text, &state);
        bool is_encoded = columns_encode(buffer_slice(&text), &columns);
        for (int hit = 0; hit < 20 && is_encoded; hit++) {
            struct buffer out;
            buffer_init(&out, 1 << 20);
            columns.data[next_random(&state) % columns.size] = (uint8_t)next_random(&state);
            size_t size = columns.size - next_random(&state) % 3;
            bool is_decoded = columns_decode(slice_of(columns.data, size), text.size, &out);
            CHECK(!is_decoded || out.size <= text.size + columns.size);
            buffer_fini(&out);
        }
        buffer_fini(&text);
        buffer_fini(&columns);
    }
}

/* --- A folder -------------------------------------------------------------------------------------------------------
 */

static char folder[64];

static struct store *open_store(void)
{
    struct store *store = NULL;
    struct error error = {0};
    said[0] = '\0';
    if (store_open(folder, keep_report, NULL, &store, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    return store;
}

static struct store *new_store(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/offbeat-store-XXXXXX");
    CHECK(mkdtemp(folder));
    return open_store();
}

static void remove_folder(void)
{
    char command[100];
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

static const char PAYLOAD[] =
    "{\"samples\":[{\"time\":1,\"id\":\"7\"},{\"time\":2,\"id\":\"7\"},{\"time\":3,\"id\":\"7\"},{\"time\":5,"
    "\"id\":\"7\"}]}";

static enum status try_chunk(struct store *store, unsigned number, uint64_t received_ns,
                             const struct store_rollup *rollup, uint64_t *ret_duplicates, struct error *error)
{
    char id[40];
    (void)snprintf(id, sizeof(id), "%032x", number);
    const struct store_chunk chunk = {.project = 1,
                                      .kind = STORE_CHUNK,
                                      .chunk_id = slice_of_text(id),
                                      .profiler_id = slice_of_text("p"),
                                      .start_ns = DAY(3) + number,
                                      .end_ns = DAY(3) + number,
                                      .received_ns = received_ns,
                                      .sample_count = 4,
                                      .payload = slice_of_text(PAYLOAD),
                                      .rollup = rollup};
    const struct store_batch batch = {.project = 1, .received_ns = received_ns, .chunks = &chunk, .chunk_count = 1};
    return store_add(store, &batch, ret_duplicates, error);
}

static uint64_t add_chunk_with_rollup(struct store *store, unsigned number, uint64_t received_ns,
                                      const struct store_rollup *rollup)
{
    uint64_t duplicates = 99;
    struct error error = {0};
    if (try_chunk(store, number, received_ns, rollup, &duplicates, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    return duplicates;
}

/* Returns the number of duplicates. */
static uint64_t add_chunk(struct store *store, unsigned number, uint64_t received_ns)
{
    return add_chunk_with_rollup(store, number, received_ns, NULL);
}

static bool count_chunk(void *context, const struct store_chunk *chunk)
{
    *(size_t *)context += slice_equals_text(chunk->payload, PAYLOAD);
    return true;
}

static size_t count_chunks(struct store *store)
{
    const struct store_query query = {.project = 1, .with_payload = true};
    struct error error = {0};
    size_t count = 0;
    if (store_each_chunk(store, &query, count_chunk, &count, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    return count;
}

static void run_sql(const char *name, const char *sql)
{
    char path[100];
    sqlite3 *db;
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    CHECK_INT(checked_file_open(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, INDEX_IN_FILE), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
}

static int64_t read_number(const char *name, const char *sql)
{
    char path[100];
    sqlite3 *db;
    sqlite3_stmt *row;
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    CHECK_INT(checked_file_open(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, INDEX_IN_FILE), SQLITE_OK);
    CHECK_INT(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_step(row), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(row, 0);
    (void)sqlite3_finalize(row);
    (void)sqlite3_close(db);
    return number;
}

TEST(stores_a_repeated_chunk_once_also_after_midnight_and_restart)
{
    struct store *store = new_store();
    CHECK_UINT(add_chunk(store, 1, DAY(10)), 0);
    CHECK_UINT(add_chunk(store, 1, DAY(10)), 1);
    CHECK_UINT(add_chunk(store, 1, DAY(11)), 1);
    store_close(store);
    store = open_store();
    CHECK_UINT(add_chunk(store, 1, DAY(11)), 1);
    CHECK_UINT(count_chunks(store), 1);
    store_close(store);
    remove_folder();
}

TEST(a_clock_that_jumps_loses_nothing)
{
    static const uint64_t days[] = {10, 4000, 2, 10, 0, 90000};
    struct store *store = new_store();
    for (unsigned i = 0; i < 6; i++) CHECK_UINT(add_chunk(store, i, DAY(days[i])), 0);
    CHECK_UINT(count_chunks(store), 6);
    store_close(store);
    remove_folder();
}

TEST(a_repeated_chunk_is_stored_once_after_roll_ups_of_earlier_days)
{
    static const uint64_t days[] = {10, 11, 12, 13, 14, 2}; /* the clock jumps back, and forward again */
    const struct slice frame = slice_of_text("main");
    static const struct store_node nodes[2];
    static const uint64_t values[] = {0, 4};
    const struct store_rollup rollup = {
        .frames = &frame, .nodes = nodes, .values = values, .frame_count = 1, .node_count = 2, .value_count = 1};
    struct store *store = new_store();
    uint64_t rolled_up;
    for (unsigned i = 0; i < 6; i++) CHECK_UINT(add_chunk_with_rollup(store, i, DAY(days[i]), &rollup), 0);
    store_close(store);
    store = open_store();
    CHECK_UINT(store_update_rollups(store, DAY(20), &rolled_up, NULL), STATUS_OK);
    CHECK_UINT(rolled_up, 6 * 3); /* day 2 is written first */
    CHECK_UINT(add_chunk(store, 5, DAY(20)), 1);
    CHECK_UINT(add_chunk(store, 5, DAY(1)), 1);
    CHECK_UINT(add_chunk(store, 5, DAY(20)), 1);
    CHECK_UINT(count_chunks(store), 6);
    store_close(store);
    remove_folder();
}

TEST(a_repeated_chunk_is_found_in_the_three_files_before_todays)
{
    static const uint64_t days[] = {30, 50, 20, 40};
    struct store *store = new_store();
    for (unsigned i = 0; i < 4; i++) CHECK_UINT(add_chunk(store, i, DAY(days[i])), 0);
    for (unsigned i = 0; i < 4; i++) CHECK_UINT(add_chunk(store, i, DAY(40)), 1);
    store_close(store);
    remove_folder();
}

/* A chunk that may be in there is not stored until that is known. */
TEST(a_file_of_the_day_before_that_cannot_be_opened_makes_storing_fail)
{
    char command[200];
    struct error error = {0};
    struct store *store = new_store();
    CHECK_UINT(add_chunk(store, 1, DAY(10)), 0);
    (void)snprintf(command, sizeof(command), "cd %s && mv 1970-01-11.db away && mkdir 1970-01-11.db", folder);
    CHECK_INT(system(command), 0);
    CHECK_UINT(try_chunk(store, 1, DAY(11), NULL, NULL, &error), STATUS_IO);
    CHECK_UINT(try_chunk(store, 2, DAY(11), NULL, NULL, &error), STATUS_IO);
    (void)snprintf(command, sizeof(command), "cd %s && rmdir 1970-01-11.db && mv away 1970-01-11.db", folder);
    CHECK_INT(system(command), 0);
    CHECK_UINT(add_chunk(store, 1, DAY(11)), 1);
    CHECK_UINT(add_chunk(store, 2, DAY(11)), 0);
    store_close(store);
    remove_folder();
}

TEST(a_second_server_on_the_folder_is_rejected)
{
    struct store *store = new_store(), *second = NULL;
    struct error error = {0};
    uint64_t damaged;
    CHECK_UINT(store_open(folder, NULL, NULL, &second, &error), STATUS_UNSUPPORTED);
    CHECK_UINT(store_check(folder, false, NULL, NULL, &damaged, &error), STATUS_UNSUPPORTED);
    store_close(store);
    remove_folder();
}

TEST(old_days_are_removed_by_age_and_by_size)
{
    struct store *store = new_store();
    uint64_t removed;
    for (unsigned i = 0; i < 6; i++) CHECK_UINT(add_chunk(store, i, DAY(10 + i)), 0);
    CHECK_UINT(store_expire(store, DAY(15), DAY(3), 0, &removed, NULL), STATUS_OK);
    CHECK_UINT(removed, 2);
    CHECK_UINT(count_chunks(store), 4);
    CHECK_UINT(store_expire(store, DAY(15), 0, 1, &removed, NULL), STATUS_OK);
    CHECK_UINT(removed, 3);
    CHECK_UINT(count_chunks(store), 1);
    CHECK_UINT(add_chunk(store, 9, DAY(15)), 0);
    CHECK_INT(read_number("control.db", "SELECT count(*) FROM day_written"), 1);
    store_close(store);
    remove_folder();
}

enum { LARGE_BYTES = 100000 };

static void add_large(struct store *store, uint64_t project, unsigned number)
{
    static uint8_t payload[LARGE_BYTES];
    unsigned state = number;
    char id[40];
    struct error error = {0};
    for (size_t i = 0; i < sizeof(payload); i++) {
        state = state * 1664525 + 1013904223;
        payload[i] = (uint8_t)(state >> 24);
    }
    (void)snprintf(id, sizeof(id), "%032x", number);
    const struct store_chunk chunk = {.project = project,
                                      .kind = STORE_FILE,
                                      .chunk_id = slice_of_text(id),
                                      .start_ns = DAY(3),
                                      .end_ns = DAY(3),
                                      .payload = slice_of(payload, sizeof(payload))};
    const struct store_batch batch = {
        .project = project, .received_ns = DAY(number), .chunks = &chunk, .chunk_count = 1};
    if (store_add(store, &batch, NULL, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
}

static bool count_any(void *context, const struct store_chunk *chunk)
{
    *(size_t *)context += chunk->payload.size == LARGE_BYTES;
    return true;
}

static size_t count_of_project(struct store *store, uint64_t project)
{
    const struct store_query query = {.project = project, .with_payload = true};
    size_t count = 0;
    CHECK_UINT(store_each_chunk(store, &query, count_any, &count, NULL), STATUS_OK);
    return count;
}

static uint64_t used_bytes(struct store *store)
{
    struct store_usage usage;
    store_usage(store, &usage);
    return usage.bytes;
}

TEST(projects_can_have_their_own_limits)
{
    struct store *store = new_store();
    struct store_project project;
    uint64_t removed;
    for (int i = 0; i < 3; i++) CHECK_UINT(store_add_project(store, "p", &project, NULL), STATUS_OK);
    for (unsigned day = 10; day < 16; day++) {
        for (uint64_t of = 1; of <= 3; of++) add_large(store, of, day);
    }
    uint64_t before = used_bytes(store);
    CHECK_UINT(store_limit_project(store, 2, DAY(1), 0, NULL), STATUS_OK);
    CHECK_UINT(store_limit_project(store, 3, STORE_FOREVER, 0, NULL), STATUS_OK);
    CHECK_UINT(store_limit_project(store, 4, DAY(1), 0, NULL), STATUS_NOT_FOUND);
    CHECK_UINT(store_expire(store, DAY(15), DAY(3), 0, &removed, NULL), STATUS_OK);
    CHECK_UINT(removed, 6); /* two days of project 1, four of project 2 */
    CHECK_UINT(count_of_project(store, 1), 4);
    CHECK_UINT(count_of_project(store, 2), 2);
    CHECK_UINT(count_of_project(store, 3), 6);
    CHECK(used_bytes(store) + 5 * LARGE_BYTES < before);
    CHECK_UINT(store_expire(store, DAY(15), DAY(3), 0, &removed, NULL), STATUS_OK);
    CHECK_UINT(removed, 0);

    CHECK_UINT(store_limit_project(store, 3, STORE_FOREVER, 5 * LARGE_BYTES / 2, NULL), STATUS_OK);
    CHECK_UINT(store_expire(store, DAY(15), DAY(3), 0, &removed, NULL), STATUS_OK);
    CHECK_UINT(count_of_project(store, 3), 2);
    CHECK_UINT(store_limit_project(store, 3, 0, 1, NULL), STATUS_OK);
    CHECK_UINT(store_expire(store, DAY(15), DAY(3), 0, &removed, NULL), STATUS_OK);
    CHECK_UINT(count_of_project(store, 3), 1);
    CHECK_UINT(count_of_project(store, 1), 4);
    CHECK_UINT(count_of_project(store, 2), 2);
    add_large(store, 2, 15);
    CHECK_UINT(count_of_project(store, 2), 2);
    store_close(store);
    uint64_t damaged = 99;
    CHECK_UINT(store_check(folder, false, NULL, NULL, &damaged, NULL), STATUS_OK);
    CHECK_UINT(damaged, 0);
    remove_folder();
}

static void fill_two_days(unsigned chunks_of_each)
{
    struct store *store = new_store();
    for (unsigned i = 0; i < chunks_of_each; i++) {
        CHECK_UINT(add_chunk(store, 2 * i, DAY(10)), 0);
        CHECK_UINT(add_chunk(store, 2 * i + 1, DAY(11)), 0);
    }
    store_close(store);
}

static bool count_rollup(void *context, const struct store_rollup *rollup)
{
    size_t *counts = context;
    counts[0]++;
    return true;
}

static bool count_payload(void *context, const struct store_chunk *chunk)
{
    size_t *counts = context;
    counts[1] += slice_equals_text(chunk->payload, PAYLOAD);
    return true;
}

static bool continue_always(void *context)
{
    return true;
}

static bool note_value(void *context, const struct store_value *value)
{
    uint64_t *notes = context; /* values; chunks; the first value that is wrong, + 1 */
    char expected[40];
    (void)snprintf(expected, sizeof(expected), "%05u", (unsigned)notes[0]);
    if (!slice_equals_text(value->value, expected) && notes[2] == 0) notes[2] = notes[0] + 1;
    notes[0]++;
    notes[1] += value->chunk_count;
    return true;
}

/* Three days with 12000 hosts each: more than a list may have, and more rows than are in memory at a time. */
TEST(a_list_of_values_has_the_first_ones_of_all_days)
{
    enum { HOSTS = 12000 };
    struct store *store = new_store();
    for (unsigned day = 0; day < 3; day++) CHECK_UINT(add_chunk(store, day, DAY(10 + day)), 0);
    store_close(store);
    for (unsigned day = 0; day < 3; day++) {
        char name[32], sql[600];
        (void)snprintf(name, sizeof(name), "1970-01-%02u.db", 11 + day);
        (void)snprintf(sql, sizeof(sql),
                       "DELETE FROM chunk; WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<%d) "
                       "INSERT INTO chunk(project,kind,profiler_id,chunk_id,service,environment,release,host,platform,"
                       "kinds,series,start_ns,end_ns,received_ns,samples,size) SELECT 1,1,'p',i,'','','',"
                       "printf('%%05d',i),'','','',5,6,7,1,0 FROM n",
                       HOSTS - 1);
        run_sql(name, sql);
    }
    store = open_store();
    uint64_t notes[3] = {0};
    const struct store_query query = {.project = 1};
    CHECK_UINT(store_each_value(store, &query, STORE_HOST, note_value, notes, NULL), STATUS_OK);
    CHECK_UINT(notes[0], STORE_VALUES_MAX);
    CHECK_UINT(notes[1], 3 * STORE_VALUES_MAX);
    CHECK_UINT(notes[2], 0);
    store_close(store);
    remove_folder();
}

TEST(a_query_for_rollups_gets_the_payloads_of_chunks_without_one)
{
    size_t counts[2] = {0};
    fill_two_days(1);
    struct store *store = open_store();
    const struct store_query query = {.project = 1};
    const struct store_rollup_visitor visitor = {
        .add = count_rollup, .visit = count_payload, .continues = continue_always, .context = counts};
    CHECK_UINT(store_each_rollup(store, &query, &visitor, NULL), STATUS_OK);
    CHECK_UINT(counts[0], 0);
    CHECK_UINT(counts[1], 2);
    store_close(store);
    remove_folder();
}

TEST(opens_only_the_current_schema_version_and_names_another_one)
{
    static const char *const files[] = {"1970-01-11.db", "control.db"};
    static const int own[] = {5, 5};
    for (size_t i = 0; i < 4; i++) {
        int version = own[i / 2] + (i % 2 ? 1 : -1);
        char sql[40], message[80];
        struct error error = {0};
        struct store *store;
        fill_two_days(1);
        (void)snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", version);
        (void)snprintf(message, sizeof(message), "%s has schema version %d; this offbeat opens only version %d",
                       files[i / 2], version, own[i / 2]);
        run_sql(files[i / 2], sql);
        CHECK_UINT(store_open(folder, NULL, NULL, &store, &error), STATUS_UNSUPPORTED);
        CHECK(strstr(error.message, message));
        remove_folder();
    }
}

TEST(the_check_names_a_file_of_another_schema_version_and_leaves_it)
{
    uint64_t damaged = 0;
    fill_two_days(1);
    run_sql("1970-01-11.db", "PRAGMA user_version=6");
    said[0] = '\0';
    CHECK_UINT(store_check(folder, true, keep_report, NULL, &damaged, NULL), STATUS_OK);
    CHECK_UINT(damaged, 1);
    CHECK(strstr(said, "1970-01-11.db has schema version 6; this offbeat opens only version 5"));
    CHECK_INT(read_number("1970-01-11.db", "SELECT count(*) FROM chunk"), 1);
    remove_folder();
}

TEST(a_damaged_payload_is_reported_once_and_the_others_are_served)
{
    fill_two_days(3);
    run_sql("1970-01-11.db", "UPDATE chunk_raw SET payload=x'0102' WHERE id=2");
    struct store *store = open_store();
    CHECK_UINT(count_chunks(store), 5);
    CHECK_UINT(count_chunks(store), 5);
    CHECK(strstr(said, "answers lack data of 1970-01-11.db: a stored payload is damaged"));
    CHECK(!strstr(strstr(said, "answers") + 1, "answers"));
    store_close(store);
    remove_folder();
}

TEST(the_repair_copies_all_tables_and_drops_only_what_is_damaged)
{
    fill_two_days(3);
    run_sql("1970-01-11.db", "UPDATE chunk_raw SET payload=x'0102' WHERE id=2;"
                             "INSERT INTO outcome VALUES(1,'accepted','profile','',7);"
                             "INSERT INTO span VALUES(1,1,'t','s','n','o','','','','','','',1,2,1)");
    uint64_t damaged = 0;
    struct error error = {0};
    said[0] = '\0';
    CHECK_UINT(store_check(folder, true, keep_report, NULL, &damaged, &error), STATUS_OK);
    CHECK_UINT(damaged, 1);
    CHECK(strstr(said, "3 chunks, 1 of them damaged") && strstr(said, "2 chunks were copied"));
    CHECK_UINT(store_check(folder, false, keep_report, NULL, &damaged, &error), STATUS_OK);
    CHECK_UINT(damaged, 0);
    CHECK_INT(read_number("1970-01-11.db", "SELECT quantity FROM outcome"), 7);
    CHECK_INT(read_number("1970-01-11.db", "SELECT count(*) FROM span"), 1);
    struct store *store = open_store();
    CHECK_UINT(count_chunks(store), 5);
    store_close(store);
    remove_folder();
}

TEST(a_repair_that_cannot_write_leaves_the_file_and_fails)
{
    char path[100];
    fill_two_days(2);
    run_sql("1970-01-11.db", "UPDATE chunk_raw SET payload=x'0102' WHERE id=2");
    (void)snprintf(path, sizeof(path), "%s/repair", folder);
    int blocker = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(blocker >= 0);
    (void)close(blocker);
    uint64_t damaged = 0;
    struct error error = {0};
    CHECK_UINT(store_check(folder, true, keep_report, NULL, &damaged, &error), STATUS_IO);
    (void)snprintf(path, sizeof(path), "%s/1970-01-11.db", folder);
    CHECK_INT(access(path, F_OK), 0);
    remove_folder();
}

/* --- Debug files ----------------------------------------------------------------------------------------------------
 */

static const char DEBUG_BYTES[] = "a debug file";

/* The same file each time. */
static enum status try_debug_file(struct store *store, uint64_t added_ns)
{
    char rollups[1][SHA1_TEXT_SIZE];
    struct store_debug_joined joined;
    struct store_debug_file file = {.project = 1, .image = "a1", .size = strlen(DEBUG_BYTES), .added_ns = added_ns};
    sha1_of(slice_of_text(DEBUG_BYTES), file.checksum);
    (void)memcpy(rollups[0], file.checksum, SHA1_TEXT_SIZE);
    const struct store_debug_parts parts = {
        .checksums = (const char(*)[SHA1_TEXT_SIZE])rollups, .count = 1, .bytes_max = 1 << 20};
    CHECK_UINT(store_debug_add_chunk(store, 0, file.checksum, slice_of_text(DEBUG_BYTES), NULL), STATUS_OK);
    CHECK_UINT(store_debug_join(store, &parts, file.checksum, &joined, NULL), STATUS_OK);
    enum status status = store_debug_add(store, &parts, &joined, "", &file, NULL);
    store_debug_drop(&joined);
    return status;
}

static bool find_debug_file(struct store *store, struct store_debug_file *ret_file)
{
    char checksum[SHA1_TEXT_SIZE];
    sha1_of(slice_of_text(DEBUG_BYTES), checksum);
    return store_debug_find(store, 1, checksum, ret_file);
}

/* A debug file has a row in the control file if, and only if, it is there. */
static bool has_debug_file(struct store *store)
{
    struct store_debug_file file;
    int files[3];
    if (!find_debug_file(store, &file)) return false;
    CHECK_UINT(store_debug_open(store, &file, files, NULL), STATUS_OK);
    for (size_t i = 0; i < 3; i++) (void)close(files[i]);
    return true;
}

TEST(a_debug_file_that_was_added_again_is_not_removed)
{
    struct store *store = new_store();
    struct store_debug_file earlier;
    CHECK_UINT(try_debug_file(store, 1), STATUS_OK);
    CHECK(find_debug_file(store, &earlier));
    store_debug_remove(store, &earlier);
    CHECK(!has_debug_file(store));
    CHECK_UINT(try_debug_file(store, 2), STATUS_OK); /* SQLite gives it the same id */
    store_debug_remove(store, &earlier);
    CHECK(has_debug_file(store));
    CHECK_UINT(try_debug_file(store, 3), STATUS_OK);
    store_debug_remove(store, &earlier);
    CHECK(has_debug_file(store));
    store_close(store);
    remove_folder();
}

TEST(a_debug_file_stays_if_its_row_cannot_be_replaced_or_deleted)
{
    struct store *store = new_store();
    uint64_t removed;
    CHECK_UINT(try_debug_file(store, 1), STATUS_OK);
    run_sql("control.db", "CREATE TRIGGER a BEFORE INSERT ON debug_file BEGIN SELECT RAISE(ABORT, 'no'); END;"
                          "CREATE TRIGGER b BEFORE DELETE ON debug_file BEGIN SELECT RAISE(ABORT, 'no'); END;");
    CHECK_UINT(try_debug_file(store, 2), STATUS_IO);
    CHECK(has_debug_file(store));
    CHECK_UINT(store_debug_expire(store, DAY(9), 1, 0, &removed, NULL), STATUS_OK);
    CHECK_UINT(removed, 0);
    CHECK(has_debug_file(store));
    run_sql("control.db", "DROP TRIGGER b");
    CHECK_UINT(store_debug_expire(store, DAY(9), 1, 0, &removed, NULL), STATUS_OK);
    CHECK_UINT(removed, 1);
    CHECK_UINT(try_debug_file(store, 2), STATUS_IO);
    CHECK(!has_debug_file(store));
    store_close(store);
    remove_folder();
}

enum { UPLOADS = 100 };

static void *remove_often(void *context)
{
    struct store *store = ((void **)context)[0];
    atomic_bool *is_over = ((void **)context)[1];
    struct store_debug_file file;
    while (!atomic_load(is_over)) {
        if (find_debug_file(store, &file)) store_debug_remove(store, &file);
    }
    return NULL;
}

TEST(a_debug_file_is_uploaded_while_others_remove_it)
{
    pthread_t threads[2];
    atomic_bool is_over = false;
    struct store *store = new_store();
    void *context[] = {store, &is_over};
    for (size_t i = 0; i < 2; i++) CHECK_INT(pthread_create(&threads[i], NULL, remove_often, context), 0);
    for (uint64_t i = 1; i <= UPLOADS; i++) CHECK_UINT(try_debug_file(store, i), STATUS_OK);
    atomic_store(&is_over, true);
    for (size_t i = 0; i < 2; i++) (void)pthread_join(threads[i], NULL);
    (void)has_debug_file(store);
    store_close(store);
    remove_folder();
}

TEST(files_of_a_day_have_names_in_sequence)
{
    static const char *const names[][2] = {{"2026-11-23.db", "2026-11-23.1.db"},
                                           {"2026-11-23.9.db", "2026-11-23.10.db"},
                                           {"2026-11-23.4095.db", "2026-11-23.4096.db"},
                                           {"2026-11-23.99999.db", "2026-11-23.99999.db"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char next[DAY_NAME_SIZE];
        day_next_name(names[i][0], next);
        CHECK_TEXT(next, names[i][1]);
        CHECK(is_day_name(next));
    }
}

/* --- Threads --------------------------------------------------------------------------------------------------------
 */

enum { OPENERS = 4, OPENED_DAYS = 40 };

static void *open_new_days(void *failures)
{
    for (int i = 0; i < OPENED_DAYS; i++) {
        char name[DAY_NAME_SIZE];
        struct day day;
        struct error error = {0};
        day_name(DAY((uint64_t)i), name);
        if (day_open(&day, folder, name, true, &error) == STATUS_OK)
            day_close(&day);
        else
            atomic_fetch_add((atomic_int *)failures, 1);
    }
    return NULL;
}

/* Acts as the writer and the rollup thread at midnight. */
TEST(threads_open_the_same_new_day)
{
    pthread_t threads[OPENERS];
    atomic_int failures = 0;
    store_close(new_store());
    for (size_t i = 0; i < OPENERS; i++) CHECK_INT(pthread_create(&threads[i], NULL, open_new_days, &failures), 0);
    for (size_t i = 0; i < OPENERS; i++) (void)pthread_join(threads[i], NULL);
    CHECK_INT(atomic_load(&failures), 0);
    remove_folder();
}

TEST_MAIN()
