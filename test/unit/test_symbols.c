/* Requests of the server to the reader of debug files, and failures of the reader.  SPDX-License-Identifier: MIT */
#include "base/leb128.h"
#include "base/sha1.h"
#include "serve/symbol_answer.h"
#include "serve/symbol_reader.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

TEST(hashes_the_examples_of_the_standard)
{
    char text[SHA1_TEXT_SIZE];
    static const char *const examples[][2] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
    };
    for (size_t i = 0; i < 3; i++) {
        sha1_of(slice_of_text(examples[i][0]), text);
        CHECK_TEXT(text, examples[i][1]);
    }
    struct sha1 sha1;
    sha1_init(&sha1);
    for (int i = 0; i < 1000000; i++) sha1_add(&sha1, slice_of_text("a"));
    sha1_finish(&sha1, text);
    CHECK_TEXT(text, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(reads_the_keys_that_were_written)
{
    const uint64_t keys[] = {0, 5, 5, 1000, UINT64_MAX};
    struct buffer bytes = {.maximum = 1000};
    size_t count;
    symbol_request_write(keys, 5, &bytes);
    uint64_t *read = symbol_request_read(buffer_slice(&bytes), &count);
    CHECK_UINT(count, 5);
    for (size_t i = 0; i < 5; i++) CHECK_UINT(read[i], keys[i]);
    free(read);
    CHECK(!symbol_request_read(slice_of(bytes.data, bytes.size - 1), &count));
    buffer_append_byte(&bytes, 0);
    CHECK(!symbol_request_read(buffer_slice(&bytes), &count));
    buffer_fini(&bytes);
}

static void append_text(struct buffer *out, uint64_t number, const char *text)
{
    leb128_append(out, number);
    leb128_append(out, strlen(text));
    buffer_append_text(out, text);
}

/* Build id 0a0b; one key with a frame "f", "f", "x.c", line 3. */
static void write_answer(struct buffer *out)
{
    leb128_append(out, STATUS_OK);
    append_text(out, 1, "0a0b");
    leb128_append(out, 62);
    leb128_append(out, SYMBOL_FILE_DWARF);
    leb128_append(out, 1);
    append_text(out, 2, "f");
    leb128_append(out, 2);
    append_text(out, 3, "x.c");
    for (unsigned i = 3; i < 6; i++) leb128_append(out, i);
}

/* Whether all of an answer with one key can be read. */
static bool is_read(struct slice bytes)
{
    static struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    struct symbol_answer answer;
    size_t count = 0;
    bool is_fine = symbol_answer_open(&answer, bytes, NULL) == STATUS_OK && symbol_answer_next(&answer, frames, &count);
    symbol_answer_close(&answer);
    return is_fine;
}

TEST(reads_an_answer_and_rejects_each_damage)
{
    static struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    struct buffer bytes = {.maximum = 1000};
    struct symbol_answer answer;
    size_t count;
    write_answer(&bytes);
    CHECK_UINT(symbol_answer_open(&answer, buffer_slice(&bytes), NULL), STATUS_OK);
    CHECK_TEXT(answer.file.build_id, "0a0b");
    CHECK(symbol_answer_next(&answer, frames, &count));
    CHECK_UINT(count, 1);
    CHECK(slice_equals_text(frames[0].system_name, "f") && slice_equals_text(frames[0].file, "x.c"));
    CHECK_UINT((uint64_t)frames[0].line, 3);
    symbol_answer_close(&answer);
    for (size_t size = 0; size < bytes.size; size++) CHECK(!is_read(slice_of(bytes.data, size)));
    bytes.data[1] = 2; /* a text with a number too high */
    CHECK(!is_read(buffer_slice(&bytes)));
    bytes.data[1] = 1;
    bytes.data[3] = 'x'; /* a build id that is not hex: it becomes part of a path */
    CHECK(!is_read(buffer_slice(&bytes)));
    buffer_fini(&bytes);
}

/* --- The process ----------------------------------------------------------------------------------------------------
 */

static atomic_bool is_ending;

/* Runs SCRIPT as the reader and returns how it ends. */
static enum status ask(const char *script, const char *request, struct buffer *answer, struct error *error)
{
    char path[] = "/tmp/offbeat-reader-XXXXXX";
    int file = mkstemp(path), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dprintf(file, "#!/bin/sh\n%s\n", script);
    (void)fchmod(file, 0700);
    (void)close(file);
    const struct symbol_reader reader = {
        .program = path, .is_ending = &is_ending, .file = null, .kept = null, .into = null};
    enum status status = symbol_reader_ask(&reader, slice_of_text(request), answer, error);
    (void)close(null);
    (void)unlink(path);
    return status;
}

TEST(a_process_that_crashes_hangs_or_floods_is_a_failed_answer)
{
    struct buffer answer = {.maximum = 1 << 20};
    struct error error;
    CHECK_UINT(ask("cat; for i in 0 1 2 3 4 5; do [ -e /proc/$$/fd/$i ] && printf \"$i \"; done; echo", "request ",
                   &answer, &error),
               STATUS_OK);
    buffer_append_byte(&answer, 0);
    CHECK_TEXT((char *)answer.data, "request 0 1 2 3 4 5 \n");
    buffer_clear(&answer);
    CHECK_UINT(ask("kill -SEGV $$", "", &answer, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "signal 11"));
    CHECK_UINT(ask("kill -XCPU $$", "", &answer, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "processor time"));
    CHECK_UINT(ask("exit 3", "", &answer, &error), STATUS_IO);
    buffer_clear(&answer);
    CHECK_UINT(ask("exec cat /dev/zero", "", &answer, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "too long"));
    buffer_clear(&answer);
    CHECK_UINT(ask("exec >&-; exec sleep 100", "", &answer, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "did not end"));
    const struct symbol_reader none = {.program = "/none", .is_ending = &is_ending, .file = 0, .kept = 0, .into = 0};
    CHECK_UINT(symbol_reader_ask(&none, slice_of(NULL, 0), &answer, &error), STATUS_IO);
    buffer_fini(&answer);
}

static void *end_soon(void *context)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    atomic_store(&is_ending, true);
    return context;
}

TEST(a_server_that_stops_ends_the_process)
{
    struct buffer answer = {.maximum = 1 << 20};
    struct error error;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, end_soon, NULL) == 0);
    CHECK_UINT(ask("exec sleep 100", "", &answer, &error), STATUS_IO);
    CHECK(strstr(error.message, "stopping"));
    (void)pthread_join(thread, NULL);
    buffer_fini(&answer);
}

TEST_MAIN()
