/* Names for many queries at the same time. The process that reads debug files is a shell script here: the first line of
 * a debug file is a command, and what follows is the answer.  SPDX-License-Identifier: MIT */
#include "serve/symbolication.h"

#include "base/leb128.h"
#include "serve/symbol_images.h"
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 3, FOLDERS_OPEN_MAX = 8, THREADS_MAX = 8 };

static atomic_bool is_ending;

/* --- Debug files ----------------------------------------------------------------------------------------------------
 */

/* PLACES functions whose names are NAME, the number of the place and SIZE letters. */
static void write_answer(struct buffer *out, const char *name, size_t size)
{
    leb128_append(out, STATUS_OK);
    leb128_append(out, 0); /* no build id */
    leb128_append(out, 62);
    leb128_append(out, SYMBOL_FILE_DWARF);
    for (uint64_t i = 0; i < PLACES; i++) {
        leb128_append(out, 1);
        leb128_append(out, i + 1);
        leb128_append(out, strlen(name) + 1 + size);
        buffer_append_text(out, name);
        buffer_append_byte(out, (uint8_t)('1' + i));
        for (size_t k = 0; k < size; k++) buffer_append_byte(out, 'x');
        for (size_t k = 0; k < 5; k++) leb128_append(out, 0); /* no other facts of the frame */
    }
}

static void write_build_id(unsigned image, char ret_text[STORE_IMAGE_SIZE])
{
    (void)snprintf(ret_text, STORE_IMAGE_SIZE, "%032x", image + 1);
}

static void add_file(struct store *store, uint64_t project, unsigned image, struct slice bytes)
{
    struct store_debug_file file = {.project = project, .contents = SYMBOL_FILE_DWARF, .size = bytes.size};
    struct store_debug_joined joined;
    sha1_of(bytes, file.checksum);
    write_build_id(image, file.image);
    (void)memcpy(file.build_id, file.image, sizeof(file.image));
    char sums[1][SHA1_TEXT_SIZE];
    (void)memcpy(sums[0], file.checksum, SHA1_TEXT_SIZE);
    const struct store_debug_parts parts = {
        .checksums = (const char(*)[SHA1_TEXT_SIZE])sums, .count = 1, .bytes_max = 1 << 22};
    CHECK_UINT(store_debug_add_chunk(store, 0, file.checksum, bytes, NULL), STATUS_OK);
    CHECK_UINT(store_debug_join(store, &parts, file.checksum, &joined, NULL), STATUS_OK);
    CHECK_UINT(store_debug_add(store, &parts, &joined, "", &file, NULL), STATUS_OK);
    store_debug_drop(&joined);
}

static void add_image(struct store *store, uint64_t project, unsigned image, const char *command, const char *name)
{
    struct buffer bytes;
    buffer_init(&bytes, 1 << 16);
    buffer_append_format(&bytes, "%s # of %u\n", command, image); /* a file of another image has another checksum */
    write_answer(&bytes, name, 0);
    add_file(store, project, image, buffer_slice(&bytes));
    buffer_fini(&bytes);
}

/* --- The scene ------------------------------------------------------------------------------------------------------
 */

struct scene {
    char folder[32], program[64];
    struct store *store;
    struct symbols *symbols;
};

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void open_scene(struct scene *scene)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as the server has it */
    *scene = (struct scene){.folder = "/tmp/offbeat-names-XXXXXX"};
    CHECK(mkdtemp(scene->folder) != NULL);
    (void)snprintf(scene->program, sizeof(scene->program), "%s/reader", scene->folder);
    int file = open(scene->program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    (void)dprintf(file, "#!/bin/sh\nread -r command <&3\neval \"$command\"\nexec cat <&3\n");
    (void)close(file);
    char data[64];
    (void)snprintf(data, sizeof(data), "%s/data", scene->folder);
    CHECK_UINT(store_open(data, NULL, NULL, &scene->store, NULL), STATUS_OK);
    scene->symbols = symbols_new(scene->store, scene->program, &is_ending, NULL, NULL);
    CHECK(scene->symbols != NULL);
}

static void close_scene(struct scene *scene)
{
    symbols_free(scene->symbols);
    store_close(scene->store);
    (void)nftw(scene->folder, remove_one, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS);
}

/* A file whose reading waits for let_go. */
static const char WAITS[] = "until [ -e $0.go ]; do sleep 0.01; done";

static void let_go(const struct scene *scene)
{
    char path[96];
    (void)snprintf(path, sizeof(path), "%s.go", scene->program);
    (void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static uint64_t count_processes(const struct scene *scene)
{
    struct symbol_counts counts;
    symbols_count(scene->symbols, &counts);
    return counts.asked;
}

/* Returns the first letter of the names that a query finds, if all places have the same; '-' if none has a name; '?'
 * otherwise. */
struct query {
    struct scene *scene;
    uint64_t project;
    unsigned image;
    const struct symbols_waiter *waiter;
    enum status status;
    char found;
    pthread_t thread;
};

static char letter_of(const struct profile *profile, uint32_t place)
{
    const struct location *location = profile_location(profile, (struct location_id){place});
    if (location->line_count != 1) return location->line_count ? '?' : '-';
    const char *name =
        profile_c_string(profile, profile_function(profile, profile_lines(profile, location)->function)->name);
    return name[1] == (char)('0' + place) ? name[0] : '?';
}

static void *run_query(void *context)
{
    struct query *query = context;
    struct profile profile;
    char build_id[STORE_IMAGE_SIZE];
    write_build_id(query->image, build_id);
    profile_init(&profile);
    const struct mapping mapping = {.file_name = profile_text(&profile, "program"),
                                    .build_id = profile_text(&profile, build_id)};
    struct location location = {.mapping = profile_add_mapping(&profile, &mapping)};
    for (location.address = 1; location.address <= PLACES; location.address++)
        (void)profile_add_location(&profile, &location, NULL, 0);
    query->status = symbols_name(query->scene->symbols, query->project, &profile, query->waiter, NULL);
    query->found = letter_of(&profile, 1);
    for (uint32_t i = 2; i <= PLACES; i++)
        if (letter_of(&profile, i) != query->found) query->found = '?';
    profile_fini(&profile);
    return NULL;
}

static void start_query(struct query *query)
{
    CHECK(pthread_create(&query->thread, NULL, run_query, query) == 0);
}

static void finish_query(struct query *query)
{
    (void)pthread_join(query->thread, NULL);
}

static void wait_for_processes(const struct scene *scene, uint64_t count)
{
    for (int i = 0; i < 10000 && count_processes(scene) < count; i++) (void)usleep(1000);
    CHECK_UINT(count_processes(scene), count);
}

/* --- Queries at the same time ---------------------------------------------------------------------------------------
 */

TEST(queries_of_one_image_wait_for_one_process)
{
    struct scene scene;
    struct query queries[THREADS_MAX];
    open_scene(&scene);
    add_image(scene.store, 1, 0, WAITS, "a");
    for (size_t i = 0; i < THREADS_MAX; i++) {
        queries[i] = (struct query){.scene = &scene, .project = 1};
        start_query(&queries[i]);
    }
    wait_for_processes(&scene, 1);
    (void)usleep(50000);
    let_go(&scene);
    for (size_t i = 0; i < THREADS_MAX; i++) {
        finish_query(&queries[i]);
        CHECK_UINT(queries[i].status, STATUS_OK);
        CHECK_UINT(queries[i].found, 'a');
    }
    CHECK_UINT(count_processes(&scene), 1);
    close_scene(&scene);
}

struct patience {
    bool is_reader; /* the last query that waited */
    unsigned calls;
};

static enum status give_up(void *context, bool is_reader, struct error *error)
{
    struct patience *patience = context;
    patience->is_reader = is_reader;
    patience->calls++;
    return error_set(error, STATUS_IO, 0, "no patience");
}

TEST(slow_files_of_a_project_leave_a_process_for_others)
{
    struct scene scene;
    open_scene(&scene);
    for (unsigned i = 0; i < 3; i++) add_image(scene.store, 1, i, WAITS, "s");
    add_image(scene.store, 1, 3, "", "k");
    add_image(scene.store, 2, 4, "", "o");
    struct query known = {.scene = &scene, .project = 1, .image = 3},
                 other = {.scene = &scene, .project = 2, .image = 4};
    struct query slow[3];
    struct patience patience = {.calls = 0};
    const struct symbols_waiter waiter = {give_up, &patience};
    (void)run_query(&known);
    known.waiter = other.waiter = &waiter;
    for (unsigned i = 0; i < 3; i++) {
        slow[i] = (struct query){.scene = &scene, .project = 1, .image = i};
        start_query(&slow[i]);
    }
    wait_for_processes(&scene, 3); /* two of the slow ones */
    (void)run_query(&known);
    (void)run_query(&other);
    CHECK_UINT(known.found, 'k');
    CHECK_UINT(other.found, 'o');
    CHECK_UINT(count_processes(&scene), 4);
    let_go(&scene);
    for (unsigned i = 0; i < 3; i++) {
        finish_query(&slow[i]);
        CHECK_UINT(slow[i].found, 's');
    }
    CHECK_UINT(count_processes(&scene), 5);
    close_scene(&scene);
}

TEST(a_query_without_patience_ends_only_its_own_process)
{
    struct scene scene;
    struct patience of_reader = {.calls = 0}, of_other = {.calls = 0};
    const struct symbols_waiter reader = {give_up, &of_reader}, other = {give_up, &of_other};
    open_scene(&scene);
    add_image(scene.store, 1, 0, WAITS, "a");
    add_image(scene.store, 1, 1, "mkdir $0.once && exec sleep 9", "b");
    struct query patient = {.scene = &scene, .project = 1}, waits = {.scene = &scene, .project = 1, .waiter = &other},
                 reads = {.scene = &scene, .project = 1, .image = 1, .waiter = &reader};
    start_query(&patient);
    start_query(&reads);
    wait_for_processes(&scene, 2);
    start_query(&waits);
    finish_query(&reads);
    finish_query(&waits);
    let_go(&scene);
    finish_query(&patient);
    CHECK(reads.status == STATUS_IO && of_reader.calls == 1 && of_reader.is_reader);
    CHECK(waits.status == STATUS_IO && of_other.calls == 1 && !of_other.is_reader);
    CHECK(patient.status == STATUS_OK && patient.found == 'a');
    reads.waiter = NULL;
    (void)run_query(&reads);
    CHECK(reads.status == STATUS_OK && reads.found == 'b');
    close_scene(&scene);
}

TEST(a_file_that_fails_names_nothing_and_is_not_read_again)
{
    struct scene scene;
    open_scene(&scene);
    add_image(scene.store, 1, 0, "kill -SEGV $$", "a");
    for (int i = 0; i < 2; i++) {
        struct query query = {.scene = &scene, .project = 1};
        (void)run_query(&query);
        CHECK_UINT(query.status, STATUS_OK);
        CHECK_UINT(query.found, '-');
    }
    CHECK_UINT(count_processes(&scene), 1);
    close_scene(&scene);
}

TEST(a_server_that_stops_ends_queries_that_wait)
{
    struct scene scene;
    struct query queries[2];
    open_scene(&scene);
    add_image(scene.store, 1, 0, "exec sleep 100", "a");
    for (size_t i = 0; i < 2; i++) {
        queries[i] = (struct query){.scene = &scene, .project = 1};
        start_query(&queries[i]);
    }
    wait_for_processes(&scene, 1);
    atomic_store(&is_ending, true);
    for (size_t i = 0; i < 2; i++) {
        finish_query(&queries[i]);
        CHECK_UINT(queries[i].status, STATUS_IO);
    }
    atomic_store(&is_ending, false);
    close_scene(&scene);
}

/* --- The names in memory --------------------------------------------------------------------------------------------
 */

static struct store_debug_file file_of(unsigned image)
{
    struct store_debug_file file = {.project = 1, .checksum = "c"};
    write_build_id(image, file.image);
    return file;
}

static struct symbol_image *take(struct symbol_images *images, unsigned number, struct slice answer)
{
    static const uint64_t keys[PLACES] = {1, 2, 3};
    const struct store_debug_file file = file_of(number);
    struct symbol_image *image = symbol_images_take(images, &file);
    CHECK(image != NULL);
    if (image->place_count == 0) CHECK_UINT(symbol_images_add(images, image, answer, keys, PLACES, NULL), STATUS_OK);
    return image;
}

TEST(images_in_use_stay_while_others_make_room)
{
    struct symbol_images *images = calloc(1, sizeof(*images));
    struct buffer small, large;
    buffer_init(&small, 1 << 10);
    buffer_init(&large, 4 << 20);
    write_answer(&small, "a", 0);
    write_answer(&large, "b", 60000);
    struct symbol_image *used = take(images, 0, buffer_slice(&small));
    for (unsigned i = 1; i < SYMBOL_IMAGES_MAX + 10; i++)
        symbol_images_release(images, take(images, i, buffer_slice(&small)));
    CHECK_UINT(images->count, SYMBOL_IMAGES_MAX);
    CHECK(take(images, 0, buffer_slice(&small)) == used && used->place_count == PLACES);
    symbol_images_release(images, used);
    for (unsigned i = 1; i < 1000; i++) {
        symbol_images_release(images, take(images, 1000000 + i, buffer_slice(&large)));
        CHECK(images->bytes <= SYMBOL_IMAGES_BYTES_MAX);
    }
    CHECK(images->count > 100 && images->count < 500);
    CHECK(symbol_image_find(used, 2)->count == 1);
    symbol_images_release(images, used);
    symbol_images_fini(images);
    CHECK_UINT(images->bytes, 0);
    free(images);
    buffer_fini(&small);
    buffer_fini(&large);
}

/* --- Many queries, few images, files that are replaced --------------------------------------------------------------
 */

enum { STRESS_IMAGES = 6, STRESS_ROUNDS = 10 };

static void *query_often(void *context)
{
    struct query *query = context;
    for (unsigned i = 0; i < STRESS_ROUNDS; i++) {
        query->image = (query->image * 5 + i) % STRESS_IMAGES;
        (void)run_query(query);
        if (query->status != STATUS_OK || !strchr("ab-", query->found)) break;
    }
    return NULL;
}

static bool copy_file(void *context, const struct store_debug_file *file)
{
    *(struct store_debug_file *)context = *file;
    return false;
}

TEST(queries_find_names_of_one_file_while_files_are_replaced)
{
    struct scene scene;
    struct query queries[THREADS_MAX];
    open_scene(&scene);
    for (unsigned i = 0; i < STRESS_IMAGES; i++) add_image(scene.store, 1, i, "", "a");
    for (size_t i = 0; i < THREADS_MAX; i++) {
        queries[i] = (struct query){.scene = &scene, .project = 1, .image = (unsigned)i};
        CHECK(pthread_create(&queries[i].thread, NULL, query_often, &queries[i]) == 0);
    }
    for (unsigned i = 0; i < 2 * STRESS_ROUNDS; i++) {
        char command[32];
        struct store_debug_file oldest;
        (void)snprintf(command, sizeof(command), ": %u", i);
        add_image(scene.store, 1, i % STRESS_IMAGES, command, i % 2 ? "a" : "b");
        CHECK_UINT(store_each_debug_file(scene.store, 1, copy_file, &oldest, NULL), STATUS_OK);
        if (i % 2) store_debug_remove(scene.store, &oldest);
    }
    for (size_t i = 0; i < THREADS_MAX; i++) {
        finish_query(&queries[i]);
        CHECK_UINT(queries[i].status, STATUS_OK);
        CHECK(strchr("ab-", queries[i].found) != NULL);
    }
    close_scene(&scene);
}

TEST_MAIN()
