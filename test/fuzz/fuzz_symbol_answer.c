/* The messages between the server and the process that reads debug files: neither trusts the other's bytes. Every
 * input is read as an answer and as a request; what was read of a request is written and read again.
 * SPDX-License-Identifier: MIT */
#include "serve/symbol_answer.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds) __builtin_trap();
}

/* Reads every byte, for a sanitizer. */
static void check_text(struct slice text)
{
    static volatile uint8_t sum;
    demand(text.size <= SYMBOL_TEXT_BYTES_MAX);
    for (size_t i = 0; i < text.size; i++) sum ^= text.data[i];
}

static void check_line(int64_t line)
{
    demand(line >= 0 && line <= UINT32_MAX);
}

static void read_answer(struct slice bytes)
{
    static struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    struct symbol_answer answer;
    struct error error = {0};
    size_t count;
    enum status status = symbol_answer_open(&answer, bytes, &error);
    demand(status == error.status);
    demand(strlen(answer.file.build_id) < SYMBOL_BUILD_ID_SIZE);
    for (size_t key = 0; key < KEYS_MAX && status == STATUS_OK && symbol_answer_next(&answer, frames, &count); key++) {
        demand(count <= SYMBOL_FRAMES_MAX);
        for (size_t i = 0; i < count; i++) {
            check_text(frames[i].name);
            check_text(frames[i].system_name);
            check_text(frames[i].file);
            check_line(frames[i].line);
            check_line(frames[i].column);
            check_line(frames[i].start_line);
        }
    }
    symbol_answer_close(&answer);
}

/* The distances of keys that do not ascend wrap, and come back. */
static void read_request(struct slice bytes)
{
    struct buffer out;
    size_t count = 0, count_again = 0;
    uint64_t *keys = symbol_request_read(bytes, &count);
    if (!keys) return;
    buffer_init(&out, SYMBOL_REQUEST_BYTES_MAX);
    symbol_request_write(keys, count, &out);
    uint64_t *again = symbol_request_read(buffer_slice(&out), &count_again);
    demand(again && count_again == count && memcmp(again, keys, count * sizeof(*keys)) == 0);
    free(again);
    free(keys);
    buffer_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_answer(slice_of(data, size));
    read_request(slice_of(data, size));
    return 0;
}
