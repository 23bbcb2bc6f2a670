/* A pull reader for JSON. Strings are scanned eight bytes at a time for the three things that matter in them (quote,
 * backslash, control characters) and for bytes above 0x7F, which are checked as UTF-8. Numbers of up to 19 digits, that
 * is nearly all, are converted with integer arithmetic; the rest with strtod in the C locale. SPDX-License-Identifier:
 * MIT */
#include "base/json_reader.h"

#include "base/utf8.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    EXACT_DIGITS_MAX = 19,   /* so many always fit a uint64_t */
    DOUBLE_DIGITS_MAX = 800, /* of later ones it only matters for the nearest double whether all are 0 */
    DOUBLE_EXPONENT_MAX = 9999,
};
#define EXPONENT_LIMIT 1000000000000 /* no input has so many digits that a larger one could be made up for */

void json_reader_init(struct json_reader *reader, struct slice bytes)
{
    *reader = (struct json_reader){
        .start = bytes.data,
        .position = bytes.data,
        .end = bytes.size ? bytes.data + bytes.size : bytes.data,
    };
}

void json_reader_fini(struct json_reader *reader)
{
    free(reader->unescaped);
    *reader = (struct json_reader){0};
}

/* Leaves nothing to read, so that no function has to ask whether an earlier one failed. */
static void fail_at(struct json_reader *reader, const uint8_t *place, enum status status, const char *message)
{
    if (reader->failed) return;
    reader->failed = true;
    reader->status = status;
    reader->message = message;
    reader->failed_offset = (uint64_t)(place - reader->start);
    reader->position = reader->end;
    reader->at_first = false;
}

static void fail(struct json_reader *reader, const char *message)
{
    fail_at(reader, reader->position, STATUS_MALFORMED, reader->position == reader->end ? "input ends early" : message);
}

void json_reader_refuse(struct json_reader *reader, enum status status, const char *message)
{
    fail_at(reader, reader->position, status, message);
}

static inline bool is_white(uint8_t byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static inline void skip_white(struct json_reader *reader)
{
    while (reader->position < reader->end && is_white(*reader->position)) reader->position++;
}

/* The next byte that is not white space, or 0 at the end. */
static inline uint8_t next_byte(struct json_reader *reader)
{
    skip_white(reader);
    return reader->position < reader->end ? *reader->position : 0;
}

enum status json_reader_status(const struct json_reader *reader, struct error *error)
{
    if (!reader->failed) return STATUS_OK;
    return error_set(error, reader->status, reader->failed_offset, "%s", reader->message);
}

enum status json_reader_finish(struct json_reader *reader, struct error *error)
{
    skip_white(reader);
    if (reader->position != reader->end)
        json_reader_refuse(reader, STATUS_MALFORMED, "more bytes after the end of the value");
    return json_reader_status(reader, error);
}

enum json_kind json_peek(struct json_reader *reader)
{
    switch (next_byte(reader)) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'n':
        return JSON_NULL;
    case '-':
    case '0' ... '9':
        return JSON_NUMBER;
    default:
        return JSON_NOTHING;
    }
}

/* --- Containers --------------------------------------------------------------------------------------------------- */

static void begin(struct json_reader *reader, uint8_t bracket, const char *message)
{
    if (next_byte(reader) != bracket) {
        fail(reader, message);
        return;
    }
    if (reader->depth == JSON_DEPTH_MAX) {
        fail_at(reader, reader->position, STATUS_TOO_LARGE, "nested too deeply");
        return;
    }
    reader->depth++;
    reader->position++;
    reader->at_first = true;
}

/* True if another item follows in the container that BRACKET ends; takes the comma before it, or BRACKET. */
static inline bool next(struct json_reader *reader, uint8_t bracket)
{
    bool at_first = reader->at_first;
    uint8_t byte = next_byte(reader);
    reader->at_first = false;
    if (byte == bracket) {
        reader->position++;
        reader->depth--;
        return false;
    }
    if (at_first) return !reader->failed;
    if (byte != ',') {
        fail(reader, bracket == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        return false;
    }
    reader->position++;
    return true;
}

void json_object_begin(struct json_reader *reader)
{
    begin(reader, '{', "expected an object");
}

void json_array_begin(struct json_reader *reader)
{
    begin(reader, '[', "expected an array");
}

bool json_object_next(struct json_reader *reader, struct slice *ret_key)
{
    if (!next(reader, '}')) return false;
    struct slice key = json_string(reader);
    if (next_byte(reader) != ':') {
        fail(reader, "expected ':' after a key");
        return false;
    }
    reader->position++;
    *ret_key = key;
    return true;
}

bool json_array_next(struct json_reader *reader)
{
    return next(reader, ']');
}

/* --- Strings ------------------------------------------------------------------------------------------------------ */

#define EACH_BYTE(value) (0x0101010101010101u * (uint64_t)(value))

/* The high bit of each byte that is 0; bits above the lowest one set may be wrong. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return (word - EACH_BYTE(1)) & ~word & EACH_BYTE(0x80);
}

/* The first byte from POSITION on that is not plain ASCII text inside a string, or END. */
static inline const uint8_t *plain_text_end(const uint8_t *position, const uint8_t *end)
{
    while (end - position >= 8) {
        uint64_t word;
        memcpy(&word, position, sizeof(word));
        uint64_t control = (word - EACH_BYTE(0x20)) & ~word & EACH_BYTE(0x80);
        uint64_t stops =
            control | (word & EACH_BYTE(0x80)) | zero_bytes(word ^ EACH_BYTE('"')) | zero_bytes(word ^ EACH_BYTE('\\'));
        if (stops) return position + (__builtin_ctzll(stops) >> 3); /* little-endian: lowest byte first */
        position += 8;
    }
    while (position < end && *position >= 0x20 && *position < 0x80 && *position != '"' && *position != '\\') position++;
    return position;
}

/* The quote or backslash that POSITION's text runs up to; NULL, with the reader failed, if it is broken before. */
static const uint8_t *text_end(struct json_reader *reader, const uint8_t *position)
{
    for (;;) {
        position = plain_text_end(position, reader->end);
        if (position == reader->end) {
            fail_at(reader, position, STATUS_MALFORMED, "string without an end");
            return NULL;
        }
        if (*position == '"' || *position == '\\') return position;
        if (*position < 0x20) {
            fail_at(reader, position, STATUS_MALFORMED, "control character in a string");
            return NULL;
        }
        size_t size = utf8_sequence_size(position, reader->end);
        if (size == 0) {
            fail_at(reader, position, STATUS_MALFORMED, "string is not UTF-8");
            return NULL;
        }
        position += size;
    }
}

/* The four hex digits at POSITION, or -1. */
static int32_t hex4(const uint8_t *position, const uint8_t *end)
{
    if (end - position < 4) return -1;
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t byte = position[i], letter = byte | 0x20;
        int digit = byte >= '0' && byte <= '9' ? byte - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Takes the four digits after \u, and the second half of a surrogate pair where one follows. Negative: no digits. */
static int32_t unicode_escape(const uint8_t **position, const uint8_t *end)
{
    int32_t first = hex4(*position, end);
    if (first < 0) return -1;
    *position += 4;
    if (first < 0xD800 || first > 0xDFFF) return first;
    if (first < 0xDC00 && end - *position >= 6 && (*position)[0] == '\\' && (*position)[1] == 'u') {
        int32_t second = hex4(*position + 2, end);
        if (second >= 0xDC00 && second <= 0xDFFF) {
            *position += 6;
            return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        }
    }
    return 0xFFFD;
}

/* Reads the escape whose backslash is at *POSITION and appends what it means to *OUT. */
static bool unescape(struct json_reader *reader, const uint8_t **position, uint8_t **out)
{
    static const uint8_t simple[256] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    const uint8_t *place = *position + 1;
    if (place < reader->end && simple[*place]) {
        *(*out)++ = simple[*place];
        *position = place + 1;
        return true;
    }
    const uint8_t *digits = place + 1;
    int32_t code_point = place < reader->end && *place == 'u' ? unicode_escape(&digits, reader->end) : -1;
    if (code_point < 0) {
        fail_at(reader, *position, STATUS_MALFORMED, "unknown escape in a string");
        return false;
    }
    *out += utf8_write((uint32_t)code_point, *out);
    *position = digits;
    return true;
}

/* Makes UNESCAPED hold SIZE bytes at least, keeping the first USED. */
static bool reserve_unescaped(struct json_reader *reader, size_t used, size_t size)
{
    if (size <= reader->unescaped_capacity) return true;
    size_t capacity = size + size / 2 + 256;
    uint8_t *grown = malloc(capacity);
    if (!grown) {
        fail_at(reader, reader->position, STATUS_NO_MEMORY, "no memory for a string");
        return false;
    }
    if (used) memcpy(grown, reader->unescaped, used);
    free(reader->unescaped);
    reader->unescaped = grown;
    reader->unescaped_capacity = capacity;
    return true;
}

/* The string that begins at FIRST and has its first escape at BACKSLASH. */
static struct slice string_with_escapes(struct json_reader *reader, const uint8_t *first, const uint8_t *backslash)
{
    size_t used = 0;
    for (const uint8_t *run = first, *stop = backslash;;) {
        size_t run_size = (size_t)(stop - run);
        if (!reserve_unescaped(reader, used, used + run_size + 4)) break;
        memcpy(reader->unescaped + used, run, run_size);
        used += run_size;
        if (*stop == '"') {
            reader->position = stop + 1;
            return slice_of(reader->unescaped, used);
        }
        uint8_t *out = reader->unescaped + used;
        if (!unescape(reader, &stop, &out)) break;
        used = (size_t)(out - reader->unescaped);
        run = stop;
        stop = text_end(reader, run);
        if (!stop) break;
    }
    return slice_of(NULL, 0);
}

struct slice json_string(struct json_reader *reader)
{
    if (next_byte(reader) != '"') {
        fail(reader, "expected a string");
        return slice_of(NULL, 0);
    }
    const uint8_t *first = reader->position + 1;
    const uint8_t *stop = text_end(reader, first);
    if (!stop) return slice_of(NULL, 0);
    if (*stop == '\\') return string_with_escapes(reader, first, stop);
    reader->position = stop + 1;
    return slice_of(first, (size_t)(stop - first));
}

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

static inline bool is_digit(const uint8_t *position, const uint8_t *end)
{
    return position < end && (uint8_t)(*position - '0') < 10;
}

/* Takes digits; false if there is none. DIGITS wraps when they are too many, which their count tells. */
static inline bool take_digits(const uint8_t **position, const uint8_t *end, uint64_t *digits)
{
    const uint8_t *place = *position;
    uint64_t value = *digits;
    while (is_digit(place, end)) value = value * 10 + (uint64_t)(*place++ - '0');
    bool any = place != *position;
    *position = place;
    *digits = value;
    return any;
}

static bool take_exponent(const uint8_t **position, const uint8_t *end, int64_t *exponent)
{
    bool is_negative = *position < end && **position == '-';
    if (is_negative || (*position < end && **position == '+')) (*position)++;
    if (!is_digit(*position, end)) return false;
    int64_t value = 0;
    for (; is_digit(*position, end); (*position)++) {
        if (value < EXPONENT_LIMIT) value = value * 10 + (**position - '0');
    }
    *exponent += is_negative ? -value : value;
    return true;
}

/* Takes one number at *POSITION; false, with *POSITION where it is broken, if there is none. */
static bool scan_number(const uint8_t **position, const uint8_t *end, struct json_number *number)
{
    const uint8_t *first = *position;
    *number = (struct json_number){.is_integer = true};
    if (*position < end && **position == '-') {
        number->is_negative = true;
        (*position)++;
    }
    const uint8_t *integer = *position;
    if (!take_digits(position, end, &number->digits)) return false;
    size_t digit_count = (size_t)(*position - integer);
    if (*integer == '0' && digit_count > 1) {
        *position = integer + 1;
        return false;
    }
    if (*position < end && **position == '.') {
        number->is_integer = false;
        const uint8_t *fraction = ++*position;
        if (!take_digits(position, end, &number->digits)) return false;
        size_t fraction_count = (size_t)(*position - fraction);
        digit_count += fraction_count;
        number->exponent = -(int64_t)fraction_count;
    }
    if (*position < end && (**position | 0x20) == 'e') {
        number->is_integer = false;
        (*position)++;
        if (!take_exponent(position, end, &number->exponent)) return false;
    }
    number->is_exact = digit_count <= EXACT_DIGITS_MAX;
    number->text = slice_of(first, (size_t)(*position - first));
    return true;
}

struct json_number json_number(struct json_reader *reader)
{
    struct json_number number;
    (void)next_byte(reader);
    const uint8_t *position = reader->position;
    bool is_number = position < reader->end && (*position == '-' || is_digit(position, reader->end));
    if (!is_number || !scan_number(&position, reader->end, &number)) {
        if (is_number) reader->position = position;
        fail(reader, is_number ? "broken number" : "expected a number");
        return (struct json_number){0};
    }
    reader->position = position;
    return number;
}

bool json_number_of_text(struct slice text, struct json_number *ret_number)
{
    if (text.size == 0) return false;
    const uint8_t *position = text.data, *end = position + text.size;
    struct json_number number;
    if (!scan_number(&position, end, &number) || position != end) return false;
    *ret_number = number;
    return true;
}

/* clang-format off */
static const uint64_t powers_of_ten[20] = {
    1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u, 100000000000u,
    1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u, 100000000000000000u,
    1000000000000000000u, 10000000000000000000u,
};
/* clang-format on */

/* 2^EXPONENT, for exponents well inside a double's range. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* DIGITS / 10^PLACES, rounded to nearest, ties to even. DIGITS is not 0; PLACES at most 19. The quotient is made to
 * have 64 bits or one less, so that a double's 53 and the decision how to round are all in it and in the remainder. */
static double divide_by_power_of_ten(uint64_t digits, unsigned places)
{
    uint64_t divisor = powers_of_ten[places];
    if (digits >> 53 == 0) return (double)digits / (double)divisor; /* both exact: rounds once */
    int shift = 63 + __builtin_clzll(digits) - __builtin_clzll(divisor);
    __uint128_t dividend = (__uint128_t)digits << shift;
    uint64_t quotient = (uint64_t)(dividend / divisor);
    if ((__uint128_t)quotient * divisor != dividend)
        quotient |= 1; /* a bit far below the last one kept, that breaks ties upwards */
    int drop = 11 - __builtin_clzll(quotient);
    uint64_t kept = quotient >> drop, rest = quotient & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    return (double)kept * power_of_two(drop - shift);
}

/* Copies NUMBER's digits, without sign, point and leading zeros, and at most DOUBLE_DIGITS_MAX of them, to TEXT.
 * Returns how many, 0 for a zero; the number is TEXT × 10^*RET_EXPONENT. */
static size_t significant_digits(const struct json_number *number, char text[DOUBLE_DIGITS_MAX], int64_t *ret_exponent)
{
    const uint8_t *place = number->text.data + number->is_negative, *end = number->text.data + number->text.size;
    size_t count = 0;
    int64_t exponent = 0;
    bool in_fraction = false;
    for (; place < end && (*place | 0x20) != 'e'; place++) {
        if (*place == '.') {
            in_fraction = true;
            continue;
        }
        bool is_kept = count < DOUBLE_DIGITS_MAX && (count || *place != '0');
        bool is_cut_off = count == DOUBLE_DIGITS_MAX;
        if (is_kept) text[count++] = (char)*place;
        if (is_cut_off && *place != '0') text[DOUBLE_DIGITS_MAX - 1] = '1'; /* not 0, whatever it was */
        exponent += is_cut_off - in_fraction;
    }
    if (place++ < end) (void)take_exponent(&place, end, &exponent);
    *ret_exponent = exponent;
    return count;
}

/* Any number, by strtod in the C locale, whatever the program's is. */
static double slow_double(const struct json_number *number)
{
    char text[DOUBLE_DIGITS_MAX + 32];
    int64_t exponent;
    size_t count = significant_digits(number, text, &exponent);
    if (count == 0) return 0;
    if (exponent > DOUBLE_EXPONENT_MAX) exponent = DOUBLE_EXPONENT_MAX;
    if (exponent < -DOUBLE_EXPONENT_MAX) exponent = -DOUBLE_EXPONENT_MAX;
    (void)snprintf(text + count, sizeof(text) - count, "e%d", (int)exponent);
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", NULL); /* glibc gives out a static one */
    double value = c_locale ? strtod_l(text, NULL, c_locale) : strtod(text, NULL);
    if (c_locale) freelocale(c_locale);
    return value;
}

double json_number_to_double(const struct json_number *number)
{
    double value = 0;
    if (number->text.size == 0) return 0; /* none: reading it failed */
    if (!number->is_exact || number->exponent < -19 || number->exponent > 0)
        value = slow_double(number);
    else if (number->digits)
        value = divide_by_power_of_ten(number->digits, (unsigned)-number->exponent);
    return number->is_negative ? -value : value;
}

/* NUMBER without its sign, if it is an integer that fits. */
static bool number_magnitude(const struct json_number *number, uint64_t *ret_magnitude)
{
    if (!number->is_integer) return false;
    uint64_t magnitude = 0;
    if (number->is_exact) {
        magnitude = number->digits;
    } else {
        for (size_t i = number->is_negative; i < number->text.size; i++) {
            if (__builtin_mul_overflow(magnitude, 10, &magnitude) ||
                __builtin_add_overflow(magnitude, (uint64_t)(number->text.data[i] - '0'), &magnitude))
                return false;
        }
    }
    *ret_magnitude = magnitude;
    return true;
}

/* Fails at the place of NUMBER, which was just taken. */
static void refuse_number(struct json_reader *reader, const struct json_number *number, const char *message)
{
    if (!reader->failed) fail_at(reader, number->text.data, STATUS_MALFORMED, message);
}

uint64_t json_u64(struct json_reader *reader)
{
    struct json_number number = json_number(reader);
    uint64_t magnitude = 0;
    if (!number_magnitude(&number, &magnitude) || (number.is_negative && magnitude)) {
        refuse_number(reader, &number, "expected an integer from 0 to 2^64 - 1");
        return 0;
    }
    return magnitude;
}

int64_t json_i64(struct json_reader *reader)
{
    struct json_number number = json_number(reader);
    uint64_t magnitude = 0;
    if (!number_magnitude(&number, &magnitude) || magnitude > (uint64_t)INT64_MAX + number.is_negative) {
        refuse_number(reader, &number, "expected an integer of 64 bits");
        return 0;
    }
    return number.is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
}

double json_double(struct json_reader *reader)
{
    struct json_number number = json_number(reader);
    if (reader->failed) return 0;
    double value = json_number_to_double(&number);
    if (isfinite(value)) return value;
    refuse_number(reader, &number, "number is too large");
    return 0;
}

/* --- The rest ----------------------------------------------------------------------------------------------------- */

/* Takes WORD if it comes next. */
static bool take_word(struct json_reader *reader, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(reader->end - reader->position) < size || memcmp(reader->position, word, size) != 0) return false;
    reader->position += size;
    return true;
}

bool json_bool(struct json_reader *reader)
{
    (void)next_byte(reader);
    if (take_word(reader, "true")) return true;
    if (!take_word(reader, "false")) fail(reader, "expected true or false");
    return false;
}

bool json_null(struct json_reader *reader)
{
    return next_byte(reader) == 'n' && take_word(reader, "null");
}

static void skip_object(struct json_reader *reader)
{
    json_object_begin(reader);
    for (struct slice key; json_object_next(reader, &key);) json_skip(reader);
}

static void skip_array(struct json_reader *reader)
{
    json_array_begin(reader);
    while (json_array_next(reader)) json_skip(reader);
}

/* Recursion ends at JSON_DEPTH_MAX, where begin fails. */
void json_skip(struct json_reader *reader)
{
    switch (json_peek(reader)) {
    case JSON_OBJECT:
        skip_object(reader);
        break;
    case JSON_ARRAY:
        skip_array(reader);
        break;
    case JSON_STRING:
        (void)json_string(reader);
        break;
    case JSON_NUMBER:
        (void)json_number(reader);
        break;
    case JSON_BOOL:
        (void)json_bool(reader);
        break;
    case JSON_NULL:
        if (!json_null(reader)) fail(reader, "expected a value");
        break;
    case JSON_NOTHING:
        fail(reader, "expected a value");
        break;
    }
}
