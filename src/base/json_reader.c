/* A pull reader for JSON. Strings are scanned sixteen or eight bytes at a time for the three things that matter in them
 * (quote, backslash, control characters) and for bytes above 0x7F, which are checked as UTF-8; digits are taken eight
 * at a time. Numbers of up to 19 digits, that is nearly all, are converted with integer arithmetic; the rest with
 * strtod in the C locale. SPDX-License-Identifier: MIT */
#include "base/json_reader.h"

#include "base/digits.h"
#include "base/hex.h"
#include "base/utf8.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    EXACT_DIGITS_MAX = 19,   /* digits that always fit a uint64_t */
    DOUBLE_DIGITS_MAX = 800, /* further digits matter only in whether all are 0 */
    DOUBLE_EXPONENT_MAX = 9999,
};
#define EXPONENT_LIMIT 1000000000000 /* no input has enough digits to compensate a larger one */

void json_reader_init(struct json_reader *reader, struct slice bytes)
{
    *reader = (struct json_reader){
        .start = bytes.data,
        .position = bytes.data,
        .end = bytes.size ? bytes.data + bytes.size : bytes.data,
        .depth_max = JSON_DEPTH_MAX,
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

void json_reader_reject(struct json_reader *reader, enum status status, const char *message)
{
    fail_at(reader, reader->position, status, message);
}

enum status json_reader_status(const struct json_reader *reader, struct error *error)
{
    if (!reader->failed) return STATUS_OK;
    return error_set(error, reader->status, reader->failed_offset, "%s", reader->message);
}

enum status json_reader_finish(struct json_reader *reader, struct error *error)
{
    (void)json_next_byte(reader);
    if (reader->position != reader->end)
        json_reader_reject(reader, STATUS_MALFORMED, "more bytes after the end of the value");
    return json_reader_status(reader, error);
}

/* --- Several bytes at once ---------------------------------------------------------------------------------------- */

/* The place of the first of the WIDE_BYTES at BYTES that is a quote, a backslash, a control character or not ASCII;
 * more if there is none. */
#ifdef __SSE2__
enum { WIDE_BYTES = 16 };

static inline unsigned first_stop(const uint8_t *bytes)
{
    __m128i text = _mm_loadu_si128((const __m128i *)bytes);
    __m128i stops = _mm_cmplt_epi8(text, _mm_set1_epi8(0x20)); /* signed: from 0x80 on too */
    stops = _mm_or_si128(stops, _mm_cmpeq_epi8(text, _mm_set1_epi8('"')));
    stops = _mm_or_si128(stops, _mm_cmpeq_epi8(text, _mm_set1_epi8('\\')));
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(stops) | 1u << WIDE_BYTES);
}
#else
enum { WIDE_BYTES = 8 };

/* The high bit of each byte that is 0; bits above the lowest one set may be wrong. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return (word - EACH_BYTE(1)) & ~word & EACH_BYTE(0x80);
}

static inline unsigned first_stop(const uint8_t *bytes)
{
    uint64_t word = load_word(bytes);
    uint64_t stops = ((word - EACH_BYTE(0x20)) & ~word & EACH_BYTE(0x80)) | (word & EACH_BYTE(0x80)) |
                     zero_bytes(word ^ EACH_BYTE('"')) | zero_bytes(word ^ EACH_BYTE('\\'));
    return stops ? lowest_byte(stops) : WIDE_BYTES;
}
#endif

/* --- Containers --------------------------------------------------------------------------------------------------- */

void json_reader_reject_begin(struct json_reader *reader, uint8_t bracket)
{
    if (json_next_byte(reader) != bracket)
        fail(reader, bracket == '{' ? "expected an object" : "expected an array");
    else
        fail_at(reader, reader->position, STATUS_TOO_LARGE, "nested too deeply");
}

void json_reader_reject_item(struct json_reader *reader, uint8_t bracket)
{
    fail(reader, bracket == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
}

bool json_object_next(struct json_reader *reader, struct slice *ret_key)
{
    if (!json_next(reader, '}')) return false;
    struct slice key = json_string(reader);
    if (json_next_byte(reader) != ':') {
        fail(reader, "expected ':' after a key");
        return false;
    }
    reader->position++;
    *ret_key = key;
    return true;
}

/* --- Strings ------------------------------------------------------------------------------------------------------ */

/* The first byte from POSITION on that is not plain ASCII text inside a string, or END. */
static inline const uint8_t *plain_text_end(const uint8_t *position, const uint8_t *end)
{
    for (; end - position >= WIDE_BYTES; position += WIDE_BYTES) {
        unsigned stop = first_stop(position);
        if (stop < WIDE_BYTES) return position + stop;
    }
    while (position < end && *position >= 0x20 && *position < 0x80 && *position != '"' && *position != '\\') position++;
    return position;
}

/* The quote or backslash that POSITION's text runs up to; NULL if the input before it is broken; the reader has then
 * failed. */
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
        int digit = hex_digit(position[i]);
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
    if (json_next_byte(reader) != '"') {
        fail(reader, "expected a string");
        return slice_of(NULL, 0);
    }
    const uint8_t *first = reader->position + 1;
    const uint8_t *stop = plain_text_end(first, reader->end);
    if (stop == reader->end || *stop != '"') stop = text_end(reader, stop);
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

/* Adds the exponent at PLACE to EXPONENT and returns its end; after no digit if there is none. */
static const uint8_t *take_exponent(const uint8_t *place, const uint8_t *end, int64_t *exponent)
{
    int64_t value = 0;
    bool is_negative = place < end && *place == '-';
    if (is_negative || (place < end && *place == '+')) place++;
    for (; is_digit(place, end); place++) {
        if (value < EXPONENT_LIMIT) value = value * 10 + (*place - '0');
    }
    *exponent += is_negative ? -value : value;
    return place;
}

/* Fails for the number that FIRST begins and PLACE breaks; where FIRST begins none, for that. */
static struct json_number reject_broken(struct json_reader *reader, const uint8_t *first, const uint8_t *place)
{
    bool is_number = first < reader->end && (*first == '-' || is_digit(first, reader->end));
    if (is_number) reader->position = place;
    fail(reader, is_number ? "broken number" : "expected a number");
    return (struct json_number){0};
}

static inline struct json_number read_number(struct json_reader *reader)
{
    bool is_negative = json_next_byte(reader) == '-', is_integer = true;
    const uint8_t *first = reader->position, *end = reader->end, *integer = is_negative ? first + 1 : first;
    uint64_t digits = 0;
    int64_t exponent = 0;
    const uint8_t *place = take_digits(integer, end, &digits);
    ptrdiff_t digit_count = place - integer;
    if (digit_count == 0) return reject_broken(reader, first, place);
    if (*integer == '0' && digit_count > 1) return reject_broken(reader, first, integer + 1);
    if (place < end && *place == '.') {
        const uint8_t *fraction = place + 1;
        place = take_digits(fraction, end, &digits);
        if (place == fraction) return reject_broken(reader, first, place);
        is_integer = false;
        exponent = fraction - place;
        digit_count -= exponent;
    }
    if (place < end && (*place | 0x20) == 'e') {
        place = take_exponent(place + 1, end, &exponent);
        if (!is_digit(place - 1, end)) return reject_broken(reader, first, place);
        is_integer = false;
    }
    reader->position = place;
    return (struct json_number){
        .text = slice_of(first, (size_t)(place - first)),
        .digits = digits,
        .exponent = exponent,
        .is_negative = is_negative,
        .is_integer = is_integer,
        .is_exact = digit_count <= EXACT_DIGITS_MAX,
    };
}

struct json_number json_number(struct json_reader *reader)
{
    return read_number(reader);
}

bool json_number_of_text(struct slice text, struct json_number *ret_number)
{
    struct json_reader reader;
    json_reader_init(&reader, text);
    *ret_number = json_number(&reader);
    return text.size > 0 && ret_number->text.size == text.size; /* no white space around it */
}

/* 2^EXPONENT, for exponents well inside a double's range. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* 2^127 / D, rounded down, where D is 10^PLACES shifted until its highest bit is set. */
/* clang-format off */
static const uint64_t reciprocals[20] = {
    0xffffffffffffffff, 0xcccccccccccccccc, 0xa3d70a3d70a3d70a, 0x83126e978d4fdf3b, 0xd1b71758e219652b,
    0xa7c5ac471b478423, 0x8637bd05af6c69b5, 0xd6bf94d5e57a42bc, 0xabcc77118461cefc, 0x89705f4136b4a597,
    0xdbe6fecebdedd5be, 0xafebff0bcb24aafe, 0x8cbccc096f5088cb, 0xe12e13424bb40e13, 0xb424dc35095cd80f,
    0x901d7cf73ab0acd9, 0xe69594bec44de15b, 0xb877aa3236a4b449, 0x9392ee8e921d5d07, 0xec1e4a7db69561a5,
};
/* clang-format on */
enum { RECIPROCAL_ERROR = 3 }; /* a quotient by them is less than so much below the true one */

/* DIGITS / 10^PLACES, rounded to nearest, ties to even. DIGITS is not 0; PLACES at most 19. The quotient has 64 bits or
 * one less, so that a double's 53 and the decision how to round are all in it. It is found by a multiplication, which
 * is several times faster than a division of 128 bits; the division decides where the error could matter. */
static double divide_by_power_of_ten(uint64_t digits, unsigned places)
{
    uint64_t divisor = powers_of_ten[places];
    if (digits >> 53 == 0) return (double)digits / (double)divisor; /* both exact: rounds once */
    int shift = 63 + __builtin_clzll(digits) - __builtin_clzll(divisor);
    uint64_t normalized = digits << __builtin_clzll(digits);
    uint64_t quotient = (uint64_t)((__uint128_t)normalized * reciprocals[places] >> 64);
    int drop = 11 - __builtin_clzll(quotient);
    uint64_t half = (uint64_t)1 << (drop - 1), rest = quotient & (2 * half - 1);
    if (rest <= half && rest + RECIPROCAL_ERROR > half) {
        __uint128_t dividend = (__uint128_t)digits << shift;
        quotient = (uint64_t)(dividend / divisor);
        if ((__uint128_t)quotient * divisor != dividend)
            quotient |= 1; /* a bit far below the last one kept, that breaks ties upwards */
        rest = quotient & (2 * half - 1);
    }
    uint64_t kept = quotient >> drop;
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
    if (place < end) (void)take_exponent(place + 1, end, &exponent);
    *ret_exponent = exponent;
    return count;
}

/* Converts any number by strtod, in the C locale whatever the program's locale is. */
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

static inline double number_to_double(const struct json_number *number)
{
    double value = 0;
    if (number->text.size == 0) return 0; /* none: reading it failed */
    if (!number->is_exact || number->exponent < -19 || number->exponent > 0)
        value = slow_double(number);
    else if (number->digits)
        value = divide_by_power_of_ten(number->digits, (unsigned)-number->exponent);
    return number->is_negative ? -value : value;
}

double json_number_to_double(const struct json_number *number)
{
    return number_to_double(number);
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
static void reject_number(struct json_reader *reader, const struct json_number *number, const char *message)
{
    if (!reader->failed) fail_at(reader, number->text.data, STATUS_MALFORMED, message);
}

/* Consumes an integer of up to seven digits if the input continues with one, without white space; otherwise nothing. */
static inline bool take_short_integer(struct json_reader *reader, uint64_t *ret_value)
{
    const uint8_t *position = reader->position;
    if (reader->end - position < 8) return false;
    uint64_t word = load_word(position) ^ EACH_BYTE('0'), others = other_than_digits(word);
    unsigned count = others ? lowest_byte(others) : 8;
    if (count == 0 || count == 8 || (count > 1 && *position == '0')) return false;
    if (position[count] == '.' || (position[count] | 0x20) == 'e') return false;
    *ret_value = number_of_digits(only_first(word, count));
    reader->position = position + count;
    return true;
}

/* Numbers that are not short integers: separate functions, so that the functions for short integers need no stack. */
static __attribute__((noinline)) uint64_t any_u64(struct json_reader *reader)
{
    struct json_number number = json_number(reader);
    uint64_t magnitude = 0;
    if (!number_magnitude(&number, &magnitude) || (number.is_negative && magnitude)) {
        reject_number(reader, &number, "expected an integer from 0 to 2^64 - 1");
        return 0;
    }
    return magnitude;
}

static __attribute__((noinline)) int64_t any_i64(struct json_reader *reader)
{
    struct json_number number = json_number(reader);
    uint64_t magnitude = 0;
    if (!number_magnitude(&number, &magnitude) || magnitude > (uint64_t)INT64_MAX + number.is_negative) {
        reject_number(reader, &number, "expected an integer of 64 bits");
        return 0;
    }
    return number.is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
}

uint64_t json_u64(struct json_reader *reader)
{
    uint64_t value;
    return take_short_integer(reader, &value) ? value : any_u64(reader);
}

int64_t json_i64(struct json_reader *reader)
{
    uint64_t value;
    return take_short_integer(reader, &value) ? (int64_t)value : any_i64(reader);
}

double json_double(struct json_reader *reader)
{
    struct json_number number = json_number(reader);
    if (reader->failed) return 0;
    double value = json_number_to_double(&number);
    if (isfinite(value)) return value;
    reject_number(reader, &number, "number is too large");
    return 0;
}

double json_double_or_infinity(struct json_reader *reader)
{
    struct json_number number = read_number(reader);
    return number_to_double(&number);
}

/* --- The rest ----------------------------------------------------------------------------------------------------- */

/* Consumes WORD if the input continues with it. */
static bool take_word(struct json_reader *reader, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(reader->end - reader->position) < size || memcmp(reader->position, word, size) != 0) return false;
    reader->position += size;
    return true;
}

bool json_bool(struct json_reader *reader)
{
    (void)json_next_byte(reader);
    if (take_word(reader, "true")) return true;
    if (!take_word(reader, "false")) fail(reader, "expected true or false");
    return false;
}

/* Recursion ends at JSON_DEPTH_MAX, where begin fails. */
void json_skip(struct json_reader *reader)
{
    switch (json_peek(reader)) {
    case JSON_OBJECT:
        json_object_begin(reader);
        for (struct slice key; json_object_next(reader, &key);) json_skip(reader);
        break;
    case JSON_ARRAY:
        json_array_begin(reader);
        while (json_array_next(reader)) json_skip(reader);
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
