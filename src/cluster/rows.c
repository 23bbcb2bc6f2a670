/* SPDX-License-Identifier: MIT */
#include "cluster/rows.h"

#include "base/cursor.h"
#include "base/leb128.h"

#include <string.h>

void row_u8(struct buffer *row, uint8_t value)
{
    buffer_append_byte(row, value);
}

void row_u16(struct buffer *row, uint16_t value)
{
    buffer_append(row, &value, sizeof(value));
}

void row_u64(struct buffer *row, uint64_t value)
{
    buffer_append(row, &value, sizeof(value));
}

void row_id(struct buffer *row, const uint8_t id[ROW_ID_BYTES])
{
    buffer_append(row, id, ROW_ID_BYTES);
}

void row_text(struct buffer *row, struct slice text)
{
    leb128_append(row, text.size);
    buffer_append(row, text.data, text.size);
}

/* Takes a value of the type LETTER off CURSOR; the slice has no size of a text. */
static struct slice take_cell(struct cursor *cursor, char letter)
{
    switch (letter) {
    case TYPE_U8:
        return cursor_take(cursor, 1);
    case TYPE_U16:
    case TYPE_DATE:
        return cursor_take(cursor, 2);
    case TYPE_U64:
        return cursor_take(cursor, 8);
    case TYPE_ID:
        return cursor_take(cursor, ROW_ID_BYTES);
    default:
        return cursor_take(cursor, cursor_uleb128(cursor));
    }
}

bool row_take(const char *types, struct slice *bytes, struct row *ret_row)
{
    struct cursor cursor = cursor_of(*bytes);
    for (size_t i = 0; types[i]; i++) ret_row->cells[i] = take_cell(&cursor, types[i]);
    if (cursor.failed) return false;
    *bytes = text_from(*bytes, cursor_offset(&cursor));
    return true;
}

uint64_t row_number(const struct row *row, size_t column)
{
    uint64_t number = 0;
    struct slice cell = row->cells[column];
    (void)memcpy(&number, cell.data, cell.size < sizeof(number) ? cell.size : sizeof(number));
    return number;
}

/* Takes a value of a row that is wholly there. An older version may have put it in the spool: numbers that it did not
 * have at the end of a row are 0. */
static struct slice take_stored_cell(struct cursor *cursor, char letter)
{
    static const uint8_t zero[8];
    bool is_missing = letter == TYPE_U64 && !cursor->failed && cursor_at_end(cursor);
    return is_missing ? slice_of(zero, sizeof(zero)) : take_cell(cursor, letter);
}

bool row_read(enum cluster_table table, struct slice bytes, struct row *ret_row)
{
    const char *types = cluster_tables[table].types;
    struct cursor cursor = cursor_of(bytes);
    for (size_t i = 0; types[i]; i++) ret_row->cells[i] = take_stored_cell(&cursor, types[i]);
    return !cursor.failed;
}

/* Appends the cells of COLUMN of ROWS. */
static bool write_column(const char *types, size_t column, const struct slice *rows, size_t count, struct buffer *out)
{
    for (size_t i = 0; i < count; i++) {
        struct cursor cursor = cursor_of(rows[i]);
        for (size_t before = 0; before < column; before++) (void)take_stored_cell(&cursor, types[before]);
        struct slice cell = take_stored_cell(&cursor, types[column]);
        if (cursor.failed) return false;
        if (types[column] == TYPE_TEXT)
            row_text(out, cell);
        else
            buffer_append(out, cell.data, cell.size);
    }
    return true;
}

enum status rows_write_block(enum cluster_table table, const struct slice *rows, size_t count, struct buffer *out,
                             struct error *error)
{
    const struct table *into = &cluster_tables[table];
    struct slice names = slice_of_text(into->columns);
    leb128_append(out, strlen(into->types));
    leb128_append(out, count);
    for (size_t column = 0; into->types[column]; column++) {
        row_text(out, text_take_until(&names, ','));
        row_text(out, slice_of_text(type_name(into->types[column])));
        if (!write_column(into->types, column, rows, count, out))
            return error_set(error, STATUS_MALFORMED, 0, "a row for the table %s is damaged", into->name);
    }
    return out->failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for a block of rows") : STATUS_OK;
}
