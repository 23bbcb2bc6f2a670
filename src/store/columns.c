/* The samples of a Sentry chunk are records that differ in their numbers only:
 *     {"timestamp":1795191837.9695966,"thread_id":"140454185129664","stack_id":0},
 * The first record gives the pattern: its bytes between the numbers. The records that follow with the same pattern are
 * stored as one column for each number: its difference from the record before. All other bytes are stored as they are,
 * so the text comes back byte for byte, whatever it is.
 *
 * Layout, in LEB128 where no size is given: size of the head, bytes of the head; number of columns C; C + 2 pieces
 * (size, bytes): the C + 1 of a record, and the separator; number of records N; for each column the digits of its
 * fractions, N differences (zigzag), N forms; the tail, up to the end.
 *
 * A number has an integer part without leading zeros, and may have a fraction. Its form is 0 if the fraction is as
 * short as its value allows, else 1 + the digits of the fraction. SPDX-License-Identifier: MIT */
#include "store/columns.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/digits.h"
#include "base/leb128.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS_MAX = 8,
    PIECE_BYTES_MAX = 256,
    FRACTION_MAX = 9,
    DIGITS_MAX = 18,
    NUMBER_TEXT_MAX = 24,  /* 20 digits, a point, a zero before it */
    NUMBERS_MAX = 1 << 20, /* 16 MiB of them; the records after that stay in the tail */
};

struct number {
    uint64_t digits; /* digits of the integer part and the fraction together */
    uint8_t integer_digits, fraction_digits;
};

struct records {
    struct slice pieces[COLUMNS_MAX + 2];
    size_t column_count, record_count;
    struct number *numbers; /* record by record */
    size_t capacity;
    uint8_t integer_max[COLUMNS_MAX], fraction_max[COLUMNS_MAX]; /* digits */
};

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* --- Encoding ----------------------------------------------------------------------------------------------------- */

/* A point without a digit after it is no part of the number. */
static inline bool take_number(struct cursor *text, struct number *ret_number)
{
    uint64_t digits = 0;
    const uint8_t *start = text->position, *at = take_digits(start, text->end, &digits);
    ptrdiff_t integer_digits = at - start, fraction_digits = 0;
    if (integer_digits == 0 || (*start == '0' && integer_digits > 1)) return false;
    if (text->end - at > 1 && *at == '.' && is_digit(at[1])) {
        const uint8_t *point = at;
        at = take_digits(point + 1, text->end, &digits);
        fraction_digits = at - point - 1;
    }
    if (fraction_digits > FRACTION_MAX || integer_digits + fraction_digits > DIGITS_MAX) return false;
    text->position = at;
    *ret_number = (struct number){digits, (uint8_t)integer_digits, (uint8_t)fraction_digits};
    return true;
}

/* The bytes up to the next digit, or up to and with a '}'. */
static struct slice take_piece(struct cursor *text, bool *ret_is_last)
{
    const uint8_t *start = text->position, *at = start;
    *ret_is_last = false;
    while (at < text->end && at - start < PIECE_BYTES_MAX && !is_digit(*at) && !*ret_is_last)
        *ret_is_last = *at++ == '}';
    text->position = at;
    return slice_of(start, (size_t)(at - start));
}

/* The pattern of the record at the front of TEXT, and what separates it from the next. */
static bool find_pattern(struct cursor text, struct records *records)
{
    bool is_last = false;
    struct number ignored;
    for (;;) {
        records->pieces[records->column_count] = take_piece(&text, &is_last);
        if (is_last) break;
        if (records->column_count == COLUMNS_MAX || !take_number(&text, &ignored)) return false;
        records->column_count++;
    }
    const uint8_t *start = text.position;
    while (text.position < text.end && *text.position != '{' && text.position - start < PIECE_BYTES_MAX)
        text.position++;
    records->pieces[records->column_count + 1] = slice_of(start, (size_t)(text.position - start));
    return records->column_count > 0 && text.position < text.end && *text.position == '{';
}

static inline bool take_bytes(struct cursor *text, struct slice bytes)
{
    if ((size_t)(text->end - text->position) < bytes.size || !bytes_equal(text->position, bytes.data, bytes.size))
        return false;
    text->position += bytes.size;
    return true;
}

/* Takes the number if it is written as TEXT, that of the record before: all threads of a tick have one timestamp. */
static inline bool take_same(struct cursor *text, struct slice before)
{
    const uint8_t *end = text->position + before.size;
    if ((size_t)(text->end - text->position) <= before.size || *end == '.' || is_digit(*end) ||
        !bytes_equal(text->position, before.data, before.size))
        return false;
    text->position = end;
    return true;
}

/* Takes one record into RET_NUMBERS. BEFORE: the texts of the record before. RET_IS_WIDER: a number has more digits
 * than those of its column so far. */
static bool take_record(struct cursor *text, const struct records *records, struct slice *before,
                        struct number *ret_numbers, bool *ret_is_wider)
{
    *ret_is_wider = false;
    for (size_t i = 0; i < records->column_count; i++) {
        if (!take_bytes(text, records->pieces[i])) return false;
        if (before[i].size && take_same(text, before[i])) {
            ret_numbers[i] = (ret_numbers - records->column_count)[i];
            continue;
        }
        const uint8_t *start = text->position;
        if (!take_number(text, &ret_numbers[i])) return false;
        before[i] = slice_of(start, (size_t)(text->position - start));
        *ret_is_wider |= ret_numbers[i].integer_digits > records->integer_max[i] ||
                         ret_numbers[i].fraction_digits > records->fraction_max[i];
    }
    return take_bytes(text, records->pieces[records->column_count]);
}

/* The numbers of a record begin at FIRST. False, with RECORDS as they were, if 64 bits would not hold all numbers of a
 * column with the same fraction digits. */
static bool widen_columns(struct records *records, size_t first)
{
    const struct number *numbers = records->numbers + first;
    uint8_t integer_max[COLUMNS_MAX], fraction_max[COLUMNS_MAX];
    (void)memcpy(integer_max, records->integer_max, sizeof(integer_max));
    (void)memcpy(fraction_max, records->fraction_max, sizeof(fraction_max));
    for (size_t i = 0; i < records->column_count; i++) {
        if (numbers[i].integer_digits > integer_max[i]) integer_max[i] = numbers[i].integer_digits;
        if (numbers[i].fraction_digits > fraction_max[i]) fraction_max[i] = numbers[i].fraction_digits;
        if (integer_max[i] + fraction_max[i] > DIGITS_MAX) return false;
    }
    (void)memcpy(records->integer_max, integer_max, sizeof(integer_max));
    (void)memcpy(records->fraction_max, fraction_max, sizeof(fraction_max));
    return true;
}

/* Records have about the same size. A hint: without memory, the numbers grow as they come. */
static void expect_records(struct records *records, size_t left, size_t record_size)
{
    size_t count = (left / record_size + 1) * records->column_count;
    (void)array_reserve(&records->numbers, &records->capacity, count < NUMBERS_MAX ? count : NUMBERS_MAX,
                        sizeof(*records->numbers), NUMBERS_MAX);
}

/* Takes the records at the front of TEXT that have the pattern. */
static bool take_records(struct cursor *text, struct records *records)
{
    struct slice separator = records->pieces[records->column_count + 1], before[COLUMNS_MAX] = {{0}};
    size_t offset = cursor_offset(text);
    for (struct cursor next = *text;; records->record_count++) {
        size_t count = records->record_count * records->column_count;
        if (count + records->column_count > NUMBERS_MAX) break;
        if (!array_reserve(&records->numbers, &records->capacity, count + records->column_count,
                           sizeof(*records->numbers), NUMBERS_MAX))
            return false;
        if (records->record_count && !take_bytes(&next, separator)) break;
        bool is_wider;
        if (!take_record(&next, records, before, records->numbers + count, &is_wider)) break;
        if (is_wider && !widen_columns(records, count)) break;
        if (records->record_count == 1) expect_records(records, cursor_left(&next), cursor_offset(&next) - offset);
        offset = cursor_offset(&next);
        *text = next;
    }
    return records->record_count > 1;
}

static uint8_t shortest_fraction(uint64_t value, uint8_t digits)
{
    while (digits > 0 && value % 10 == 0) {
        value /= 10;
        digits--;
    }
    return digits;
}

static void append_bytes(struct buffer *out, struct slice bytes)
{
    leb128_append(out, bytes.size);
    buffer_append(out, bytes.data, bytes.size);
}

static void append_column(const struct records *records, size_t column, struct buffer *out)
{
    uint8_t fraction_max = records->fraction_max[column];
    buffer_append_byte(out, fraction_max);
    uint8_t *at = buffer_reserve(out, records->record_count * 11);
    if (!at) return;
    uint8_t *start = at;
    uint64_t before = 0;
    for (size_t i = 0; i < records->record_count; i++) {
        const struct number *number = &records->numbers[i * records->column_count + column];
        uint64_t value = number->digits * powers_of_ten[fraction_max - number->fraction_digits];
        uint64_t difference = value - before;
        at = leb128_put(at, (difference << 1) ^ (difference >> 63 ? UINT64_MAX : 0));
        before = value;
    }
    if (fraction_max == 0) at = (uint8_t *)memset(at, 0, records->record_count) + records->record_count;
    for (size_t i = 0; i < records->record_count && fraction_max > 0; i++) {
        const struct number *number = &records->numbers[i * records->column_count + column];
        bool is_shortest = number->fraction_digits == 0 || number->digits % 10 != 0;
        *at++ = is_shortest ? 0 : (uint8_t)(1 + number->fraction_digits);
    }
    buffer_grow(out, (size_t)(at - start));
}

bool columns_encode(struct slice text, struct buffer *out)
{
    static const char name[] = "\"samples\"";
    const uint8_t *found = text.size ? memmem(text.data, text.size, name, sizeof(name) - 1) : NULL;
    struct cursor cursor = cursor_of(text);
    const uint8_t *first = found ? memchr(found, '{', (size_t)(cursor.end - found)) : NULL;
    struct records records = {0};
    if (!first) return false;
    cursor.position = first;
    bool is_encoded = find_pattern(cursor, &records) && take_records(&cursor, &records);
    if (is_encoded) {
        append_bytes(out, slice_of(text.data, (size_t)(first - text.data)));
        leb128_append(out, records.column_count);
        for (size_t i = 0; i < records.column_count + 2; i++) append_bytes(out, records.pieces[i]);
        leb128_append(out, records.record_count);
        for (size_t i = 0; i < records.column_count; i++) append_column(&records, i, out);
        buffer_append(out, cursor.position, cursor_left(&cursor));
    }
    free(records.numbers);
    return is_encoded && !out->failed;
}

/* --- Decoding ----------------------------------------------------------------------------------------------------- */

/* Where the next difference and the next form of a column are. */
struct column {
    struct cursor differences, forms;
    uint64_t value;
    uint8_t fraction_max;
};

static bool read_column(struct cursor *bytes, uint64_t record_count, struct column *column)
{
    column->fraction_max = cursor_u8(bytes);
    column->differences = *bytes;
    for (uint64_t i = 0; i < record_count && !bytes->failed; i++) (void)cursor_uleb128(bytes);
    column->forms = cursor_of(cursor_take(bytes, record_count));
    return !bytes->failed && column->fraction_max <= FRACTION_MAX;
}

/* Writes at most NUMBER_TEXT_MAX bytes; returns the place after them. */
static uint8_t *put_number(uint8_t *at, uint64_t digits, uint8_t fraction_digits)
{
    uint8_t text[NUMBER_TEXT_MAX], *start = text + sizeof(text);
    for (uint8_t i = 0; i < fraction_digits; i++, digits /= 10) *--start = (uint8_t)('0' + digits % 10);
    if (fraction_digits) *--start = '.';
    do {
        *--start = (uint8_t)('0' + digits % 10);
        digits /= 10;
    } while (digits);
    return mempcpy(at, start, (size_t)(text + sizeof(text) - start));
}

static bool put_value(struct column *column, uint8_t **at)
{
    uint64_t zigzag = cursor_uleb128(&column->differences);
    uint8_t form = cursor_u8(&column->forms);
    column->value += (zigzag >> 1) ^ (zigzag & 1 ? UINT64_MAX : 0);
    uint8_t shortest = shortest_fraction(column->value, column->fraction_max);
    uint8_t fraction = form ? (uint8_t)(form - 1) : shortest;
    if (fraction < shortest || fraction > column->fraction_max) return false;
    *at = put_number(*at, column->value / powers_of_ten[column->fraction_max - fraction], fraction);
    return true;
}

/* The bytes of a record with numbers as long as they can be. */
static size_t record_size_max(const struct slice *pieces, size_t column_count)
{
    size_t size = column_count * NUMBER_TEXT_MAX;
    for (size_t i = 0; i < column_count + 2; i++) size += pieces[i].size;
    return size;
}

static bool decode_records(const struct slice *pieces, size_t column_count, uint64_t record_count,
                           struct column *columns, size_t end_max, struct buffer *out)
{
    size_t size_max = record_size_max(pieces, column_count);
    for (uint64_t i = 0; i < record_count; i++) {
        uint8_t *start = buffer_reserve(out, size_max), *at = start;
        if (!at) return false;
        if (i) at = mempcpy(at, pieces[column_count + 1].data, pieces[column_count + 1].size);
        for (size_t column = 0; column < column_count; column++) {
            at = mempcpy(at, pieces[column].data, pieces[column].size);
            if (!put_value(&columns[column], &at)) return false;
        }
        at = mempcpy(at, pieces[column_count].data, pieces[column_count].size);
        buffer_grow(out, (size_t)(at - start));
        if (out->size > end_max) return false;
    }
    return true;
}

bool columns_decode(struct slice bytes, size_t size, struct buffer *out)
{
    struct cursor cursor = cursor_of(bytes);
    struct slice pieces[COLUMNS_MAX + 2];
    struct column columns[COLUMNS_MAX] = {0};
    size_t end_max = out->size + size;
    struct slice head = cursor_take(&cursor, cursor_uleb128(&cursor));
    uint64_t column_count = cursor_uleb128(&cursor);
    if (column_count == 0 || column_count > COLUMNS_MAX) return false;
    for (size_t i = 0; i < column_count + 2; i++) {
        pieces[i] = cursor_take(&cursor, cursor_uleb128(&cursor));
        if (!pieces[i].data) return false;
    }
    uint64_t record_count = cursor_uleb128(&cursor);
    if (cursor.failed || record_count > NUMBERS_MAX) return false;
    for (size_t i = 0; i < column_count; i++) {
        if (!read_column(&cursor, record_count, &columns[i])) return false;
    }
    if (!buffer_reserve(out, size + record_size_max(pieces, column_count))) return false;
    buffer_append(out, head.data, head.size);
    if (!decode_records(pieces, (size_t)column_count, record_count, columns, end_max, out)) return false;
    buffer_append(out, cursor.position, cursor_left(&cursor));
    return !out->failed;
}
