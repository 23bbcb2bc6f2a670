/* SPDX-License-Identifier: MIT */
#include "serve/symbol_answer.h"

#include "base/array.h"
#include "base/hex.h"
#include "base/leb128.h"

#include <stdlib.h>

/* --- Requests ----------------------------------------------------------------------------------------------------- */

void symbol_request_write(const uint64_t *keys, size_t count, struct buffer *out)
{
    leb128_append(out, count);
    for (size_t i = 0; i < count; i++) leb128_append(out, keys[i] - (i ? keys[i - 1] : 0));
}

uint64_t *symbol_request_read(struct slice bytes, size_t *ret_count)
{
    struct cursor cursor = cursor_of(bytes);
    uint64_t count = cursor_uleb128(&cursor), before = 0;
    if (cursor.failed || count > SYMBOL_KEYS_MAX || count > cursor_left(&cursor)) return NULL;
    uint64_t *keys = calloc((size_t)count + 1, sizeof(*keys));
    for (uint64_t i = 0; keys && i < count; i++) before = keys[i] = before + cursor_uleb128(&cursor);
    *ret_count = (size_t)count;
    if (!cursor.failed && cursor_at_end(&cursor)) return keys;
    free(keys);
    return NULL;
}

/* --- Answers ------------------------------------------------------------------------------------------------------ */

static struct slice take_text(struct symbol_answer *answer)
{
    struct cursor *cursor = &answer->cursor;
    uint64_t number = cursor_uleb128(cursor);
    if (number == 0) return slice_of(NULL, 0);
    if (number <= answer->text_count) return answer->texts[number - 1];
    if (number > answer->text_count + 1 ||
        !array_reserve(&answer->texts, &answer->text_capacity, answer->text_count + 1, sizeof(*answer->texts),
                       SYMBOL_TEXTS_MAX)) {
        cursor->failed = true;
        return slice_of(NULL, 0);
    }
    struct slice text = cursor_take(cursor, cursor_uleb128(cursor));
    if (text.size > SYMBOL_TEXT_BYTES_MAX) cursor->failed = true;
    answer->texts[answer->text_count++] = text;
    return text;
}

enum status symbol_answer_open(struct symbol_answer *answer, struct slice bytes, struct error *error)
{
    *answer = (struct symbol_answer){.cursor = cursor_of(bytes)};
    struct cursor *cursor = &answer->cursor;
    uint64_t status = cursor_uleb128(cursor);
    if (!cursor->failed && status != STATUS_OK && status <= STATUS_NOT_FOUND) {
        struct slice text = cursor_take(cursor, cursor_uleb128(cursor));
        return error_set(error, (enum status)status, 0, "%.*s", SLICE_ARGUMENTS(text));
    }
    struct slice build_id = take_text(answer);
    answer->file.machine = cursor_uleb128(cursor);
    answer->file.contents = cursor_uleb128(cursor);
    if (cursor->failed || status != STATUS_OK || build_id.size >= SYMBOL_BUILD_ID_SIZE || !hex_is_lower(build_id))
        return error_set(error, STATUS_MALFORMED, 0, "the answer of the reader of debug files is damaged");
    if (build_id.size) memcpy(answer->file.build_id, build_id.data, build_id.size);
    return STATUS_OK;
}

void symbol_answer_close(struct symbol_answer *answer)
{
    free(answer->texts);
    *answer = (struct symbol_answer){0};
}

/* Lines are below 2^32, wherever they come from. */
static int64_t take_line(struct cursor *cursor)
{
    uint64_t line = cursor_uleb128(cursor);
    if (line > UINT32_MAX) cursor->failed = true;
    return (int64_t)line;
}

bool symbol_answer_next(struct symbol_answer *answer, struct symbol_frame frames[SYMBOL_FRAMES_MAX], size_t *ret_count)
{
    struct cursor *cursor = &answer->cursor;
    uint64_t count = cursor_uleb128(cursor);
    if (count > SYMBOL_FRAMES_MAX) return false;
    for (size_t i = 0; i < count; i++) {
        frames[i].name = take_text(answer);
        frames[i].system_name = take_text(answer);
        frames[i].file = take_text(answer);
        frames[i].line = take_line(cursor);
        frames[i].column = take_line(cursor);
        frames[i].start_line = take_line(cursor);
    }
    *ret_count = (size_t)count;
    return !cursor->failed;
}
