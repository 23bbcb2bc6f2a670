/* The process that reads debug files (cli/read_symbols.c), without its sandbox, in which no sanitizer works: it answers
 * or rejects whatever the file and its symbol index are.
 *
 *     damage_symbols COUNT FILE…
 *
 * Each file is read whole, cut at several lengths and with COUNT damages; then with COUNT damages of its index. They
 * are the same in every run. Every reading is a process. One TAP case a file. SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "cli/commands.h"
#include "sandbox/sandbox.h"
#include "serve/symbol_answer.h"
#include "serve/symbol_reader.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CUTS = 24, KEYS_MAX = 3000, KEY_STEP = 16, SECONDS_MAX = 20, HEAD_BYTES = 1024, FILE_BYTES_MAX = 16 << 20 };
enum { ABOVE = 16 }; /* the descriptors of this process, so that none is overwritten before it is copied */

static int request_file, answer_file, debug_file, index_file;
static size_t key_count;
static char complaint[400];

/* Linked instead of the real one. */
enum status sandbox_enter(const struct sandbox_limits *limits, struct error *error)
{
    (void)limits;
    (void)error;
    return STATUS_OK;
}

static void demand(bool holds)
{
    if (!holds) abort();
}

/* splitmix64 */
static uint64_t next_chance(uint64_t *state)
{
    uint64_t value = *state += 0x9E3779B97F4A7C15u;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

/* --- Files in memory ------------------------------------------------------------------------------------------------
 */

static int new_file(const char *name)
{
    int made = memfd_create(name, MFD_CLOEXEC), moved = fcntl(made, F_DUPFD_CLOEXEC, ABOVE);
    demand(moved >= 0);
    (void)close(made);
    return moved;
}

static void fill_file(int file, struct slice bytes)
{
    demand(ftruncate(file, 0) == 0 && pwrite(file, bytes.data, bytes.size, 0) == (ssize_t)bytes.size);
    (void)lseek(file, 0, SEEK_SET);
}

static void read_all(int file, struct buffer *out)
{
    off_t size = lseek(file, 0, SEEK_END);
    uint8_t *room = buffer_reserve(out, (size_t)size);
    demand(room && pread(file, room, (size_t)size, 0) == (ssize_t)size);
    buffer_grow(out, (size_t)size);
}

/* --- The process ----------------------------------------------------------------------------------------------------
 */

static void be_the_process(void)
{
    char index[64];
    (void)snprintf(index, sizeof(index), "/proc/self/fd/%d", index_file);
    int kept = open(index, O_RDONLY); /* copied before its number is used for another */
    demand(kept >= 0 && dup2(kept, SYMBOL_READER_KEPT) >= 0 && dup2(index_file, SYMBOL_READER_INTO) >= 0);
    demand(dup2(debug_file, SYMBOL_READER_FILE) >= 0 && dup2(request_file, STDIN_FILENO) >= 0);
    demand(dup2(answer_file, STDOUT_FILENO) >= 0);
    (void)alarm(SECONDS_MAX);
    (void)command_read_symbols(); /* ends */
    abort();
}

/* Reads what the process wrote. False, with a complaint, if that is no answer. */
static bool check_answer(struct slice bytes, const char *what, enum status *ret_status, size_t *ret_named)
{
    static struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    struct symbol_answer answer;
    struct error error = {0};
    size_t count = 0, read = 0;
    *ret_named = 0;
    *ret_status = symbol_answer_open(&answer, bytes, &error);
    for (; *ret_status == STATUS_OK && read < key_count && symbol_answer_next(&answer, frames, &count); read++)
        *ret_named += count > 0;
    bool is_read = *ret_status != STATUS_OK || (read == key_count && cursor_at_end(&answer.cursor));
    symbol_answer_close(&answer);
    if (!is_read) (void)snprintf(complaint, sizeof(complaint), "%s: the answer is damaged", what);
    if (*ret_status == STATUS_OK || (error.message[0] && !strstr(error.message, "answer of the reader")))
        return is_read;
    (void)snprintf(complaint, sizeof(complaint), "%s: no answer, or a rejection without a reason", what);
    return false;
}

/* False, with a complaint, if the process crashed or took too long. */
static bool ask(const char *what, struct buffer *answer, enum status *ret_status, size_t *ret_named)
{
    int status = 0;
    buffer_clear(answer);
    fill_file(answer_file, slice_of(NULL, 0));
    (void)lseek(request_file, 0, SEEK_SET);
    (void)lseek(index_file, 0, SEEK_SET);
    pid_t process = fork();
    if (process == 0) be_the_process();
    demand(process > 0 && waitpid(process, &status, 0) == process);
    if (WIFSIGNALED(status))
        (void)snprintf(complaint, sizeof(complaint), "%s: ended by signal %d", what, WTERMSIG(status));
    else if (WEXITSTATUS(status))
        (void)snprintf(complaint, sizeof(complaint), "%s: ended with status %d", what, WEXITSTATUS(status));
    if (status) return false;
    read_all(answer_file, answer);
    return check_answer(buffer_slice(answer), what, ret_status, ret_named);
}

/* --- What is asked --------------------------------------------------------------------------------------------------
 */

/* Every KEY_STEP bytes of the file a byte whose function is asked for, by all that a key may be. */
static void write_request(size_t size)
{
    static uint64_t keys[KEYS_MAX];
    struct buffer request;
    key_count = 0;
    for (uint64_t at = 0; at < size && key_count + SYMBOL_KEY_KINDS <= KEYS_MAX; at += KEY_STEP)
        for (unsigned kind = 0; kind < SYMBOL_KEY_KINDS; kind++)
            keys[key_count++] = symbol_key((enum symbol_key_kind)kind, at);
    buffer_init(&request, SYMBOL_REQUEST_BYTES_MAX);
    symbol_request_write(keys, key_count, &request);
    fill_file(request_file, buffer_slice(&request));
    buffer_fini(&request);
}

/* Half of all damages are in the headers at the front or the sections' at the end. */
static size_t place_of(uint64_t *chance, size_t size)
{
    size_t head = size < HEAD_BYTES ? size : HEAD_BYTES;
    switch (next_chance(chance) % 4) {
    case 0:
        return next_chance(chance) % head;
    case 1:
        return size - 1 - next_chance(chance) % head;
    default:
        return next_chance(chance) % size;
    }
}

/* One byte of FILE, which has BYTES, is another. */
static bool survives_damage(int file, struct slice bytes, uint64_t *chance, struct buffer *answer)
{
    char what[80];
    enum status status;
    size_t named, place = place_of(chance, bytes.size);
    uint8_t value = (uint8_t)next_chance(chance);
    (void)snprintf(what, sizeof(what), "%s: byte %zu is %u", file == index_file ? "index" : "file", place, value);
    demand(pwrite(file, &value, 1, (off_t)place) == 1);
    bool is_fine = ask(what, answer, &status, &named);
    fill_file(file, bytes);
    return is_fine;
}

static bool survives_damages(struct slice bytes, unsigned count)
{
    uint64_t chance = bytes.size;
    struct buffer answer;
    bool is_fine = true;
    buffer_init(&answer, SYMBOL_ANSWER_BYTES_MAX);
    for (unsigned i = 0; i < count && is_fine; i++) {
        fill_file(index_file, slice_of(NULL, 0));
        is_fine = survives_damage(debug_file, bytes, &chance, &answer);
    }
    buffer_fini(&answer);
    return is_fine;
}

/* A damaged index is made again: the answer is the same. */
static bool repairs_index(struct slice index, struct slice expected, unsigned count)
{
    uint64_t chance = index.size;
    struct buffer answer;
    bool is_fine = true;
    buffer_init(&answer, SYMBOL_ANSWER_BYTES_MAX);
    fill_file(index_file, index);
    for (unsigned i = 0; i < count && is_fine; i++) {
        is_fine = survives_damage(index_file, index, &chance, &answer);
        bool is_same = slice_equal(buffer_slice(&answer), expected);
        if (is_fine && !is_same) (void)snprintf(complaint, sizeof(complaint), "index: damage %u changes the answer", i);
        is_fine = is_fine && is_same;
    }
    buffer_fini(&answer);
    return is_fine;
}

static bool survives_cuts(struct slice bytes)
{
    struct buffer answer;
    bool is_fine = true;
    buffer_init(&answer, SYMBOL_ANSWER_BYTES_MAX);
    for (size_t i = 0; i < CUTS && is_fine; i++) {
        char what[80];
        enum status status;
        size_t named, size = bytes.size * i / CUTS;
        (void)snprintf(what, sizeof(what), "cut to %zu bytes", size);
        fill_file(debug_file, slice_of(bytes.data, size));
        fill_file(index_file, slice_of(NULL, 0));
        is_fine = ask(what, &answer, &status, &named);
    }
    fill_file(debug_file, bytes);
    fill_file(index_file, slice_of(NULL, 0));
    buffer_fini(&answer);
    return is_fine;
}

/* The second answer comes from the index that the first one made. */
static bool answers_twice_the_same(struct buffer *ret_answer, struct buffer *ret_index)
{
    struct buffer second;
    enum status statuses[2] = {STATUS_OK, STATUS_OK};
    size_t named[2] = {0, 0};
    buffer_init(&second, SYMBOL_ANSWER_BYTES_MAX);
    bool is_fine = ask("whole", ret_answer, &statuses[0], &named[0]);
    if (is_fine) read_all(index_file, ret_index);
    is_fine = is_fine && ask("by its index", &second, &statuses[1], &named[1]);
    bool is_right = statuses[0] == STATUS_OK && named[0] > 0 && ret_index->size > 0 &&
                    slice_equal(buffer_slice(ret_answer), buffer_slice(&second));
    if (is_fine && !is_right) (void)snprintf(complaint, sizeof(complaint), "whole: %zu places have names", named[0]);
    buffer_fini(&second);
    return is_fine && is_right;
}

static bool test_file(struct slice bytes, unsigned count)
{
    struct buffer index, answer;
    buffer_init(&index, (size_t)SYMBOL_READER_INDEX_MAX);
    buffer_init(&answer, SYMBOL_ANSWER_BYTES_MAX);
    write_request(bytes.size);
    fill_file(debug_file, bytes);
    fill_file(index_file, slice_of(NULL, 0));
    bool is_fine = answers_twice_the_same(&answer, &index) && survives_cuts(bytes) && survives_damages(bytes, count) &&
                   repairs_index(buffer_slice(&index), buffer_slice(&answer), count);
    buffer_fini(&index);
    buffer_fini(&answer);
    return is_fine;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0, failed = 0;
    request_file = new_file("request");
    answer_file = new_file("answer");
    debug_file = new_file("debug");
    index_file = new_file("index");
    for (int i = 2; i < argc; i++) {
        struct buffer bytes;
        const char *slash = strrchr(argv[i], '/');
        buffer_init(&bytes, FILE_BYTES_MAX);
        bool is_fine = file_read(argv[i], &bytes, NULL) == STATUS_OK && test_file(buffer_slice(&bytes), count);
        printf("%sok %d - names of %s, damaged\n", is_fine ? "" : "not ", i - 1, slash ? slash + 1 : argv[i]);
        if (!is_fine) printf("# %s\n", complaint);
        (void)fflush(stdout);
        failed += !is_fine;
        buffer_fini(&bytes);
    }
    printf("1..%d\n", argc - 2);
    return failed != 0;
}
