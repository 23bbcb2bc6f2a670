/* Reads JSON front to back, without building a tree: the caller asks for what must come next.
 *
 *     json_reader_init(&reader, bytes);
 *     json_object_begin(&reader);
 *     for (struct slice key; json_object_next(&reader, &key);) {
 *         if (slice_equals_text(key, "name")) name = json_string(&reader);
 *         else json_skip(&reader);
 *     }
 *     status = json_reader_finish(&reader, error);
 *
 * Accepts exactly RFC 8259, in UTF-8 and without a byte order mark. Bytes in a string that are not UTF-8 are rejected;
 * an escaped lone surrogate (\ud800), which the RFC's grammar allows, becomes U+FFFD. Duplicate keys are the caller's
 * affair. Nesting deeper than JSON_DEPTH_MAX is rejected, or than DEPTH_MAX if the caller sets that after init.
 *
 * The first thing that is broken, or not what was asked for, is remembered with its place; from then on every call
 * gives nothing (false, 0, an empty slice), so that a decoder checks once, at the end. Not for several threads.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_JSON_READER_H
#define OFFBEAT_BASE_JSON_READER_H

#include "base/slice.h"
#include "base/status.h"

enum { JSON_DEPTH_MAX = 128 };

enum json_kind {
    JSON_NOTHING, /* the end of a container or of the input, or something broken */
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_BOOL,
    JSON_NULL,
};

/* All members are private, save FAILED. */
struct json_reader {
    const uint8_t *start;
    const uint8_t *position;
    const uint8_t *end;
    uint32_t depth, depth_max; /* DEPTH_MAX: JSON_DEPTH_MAX unless a decoder that needs more sets it */
    bool at_first;             /* a container was just opened: no comma before its first item */
    bool failed;
    enum status status;
    const char *message; /* constant text */
    uint64_t failed_offset;
    uint8_t *unescaped; /* the last string that held escapes */
    size_t unescaped_capacity;
};

/* BYTES stay the caller's and must live as long as the reader and the slices that it gives. */
void json_reader_init(struct json_reader *reader, struct slice bytes);
void json_reader_fini(struct json_reader *reader); /* accepts {0} */

/* Demands that nothing but white space is left. STATUS_OK, or what went wrong first, described in ERROR (may be NULL).
 */
enum status json_reader_finish(struct json_reader *reader, struct error *error);

/* The same, whatever is left: what went wrong so far. */
enum status json_reader_status(const struct json_reader *reader, struct error *error);

/* Makes the reader fail for the caller's own reason (constant text) unless it has failed already. */
void json_reader_reject(struct json_reader *reader, enum status status, const char *message);

/* Returns how many bytes were taken: the offset right after the last thing that was read. */
static inline size_t json_reader_taken(const struct json_reader *reader)
{
    return (size_t)(reader->position - reader->start);
}

/* The next byte that is not white space, or 0 at the end; takes the white space. */
static inline uint8_t json_next_byte(struct json_reader *reader)
{
    while (reader->position < reader->end && *reader->position <= ' ') {
        uint8_t byte = *reader->position;
        if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') break;
        reader->position++;
    }
    return reader->position < reader->end ? *reader->position : 0;
}

/* The kind of the value that comes next; takes nothing. */
static inline enum json_kind json_peek(struct json_reader *reader)
{
    switch (json_next_byte(reader)) {
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

/* Fails READER: the next value is not a container that BRACKET opens, or it is nested too deeply. */
void json_reader_reject_begin(struct json_reader *reader, uint8_t bracket);
/* Fails READER: neither a comma nor BRACKET, which closes the container, is next. */
void json_reader_reject_item(struct json_reader *reader, uint8_t bracket);

static inline void json_begin(struct json_reader *reader, uint8_t bracket)
{
    if (json_next_byte(reader) != bracket || reader->depth == reader->depth_max) {
        json_reader_reject_begin(reader, bracket);
        return;
    }
    reader->depth++;
    reader->position++;
    reader->at_first = true;
}

/* True if another item follows in the container that BRACKET ends; takes the comma before it, or BRACKET. */
static inline bool json_next(struct json_reader *reader, uint8_t bracket)
{
    bool at_first = reader->at_first;
    uint8_t byte = json_next_byte(reader);
    reader->at_first = false;
    if (byte == bracket) {
        reader->position++;
        reader->depth--;
        return false;
    }
    if (at_first) return !reader->failed;
    if (byte != ',') {
        json_reader_reject_item(reader, bracket);
        return false;
    }
    reader->position++;
    return true;
}

/* Walks a container: begin once, then next until it gives false; each true must be followed by taking one value. */
static inline void json_object_begin(struct json_reader *reader)
{
    json_begin(reader, '{');
}
bool json_object_next(struct json_reader *reader, struct slice *ret_key);
static inline void json_array_begin(struct json_reader *reader)
{
    json_begin(reader, '[');
}
static inline bool json_array_next(struct json_reader *reader)
{
    return json_next(reader, ']');
}

/* Takes the next key of an object if it is IN_QUOTES ("\"key\":", of SIZE bytes), has no white space around it, and a
 * value other than null follows at once. False takes nothing; json_object_next then returns the key. A guess of 8 to 16
 * bytes, as most are, is compared as two words, which may overlap. */
static inline bool json_object_next_is(struct json_reader *reader, const char *in_quotes, size_t size)
{
    size_t comma = !reader->at_first;
    const uint8_t *key = reader->position + comma;
    if ((size_t)(reader->end - reader->position) <= comma + size || (comma && *reader->position != ',')) return false;
    if (size < 8 || size > 16) {
        if (memcmp(key, in_quotes, size) != 0) return false;
    } else {
        uint64_t found[2], guessed[2];
        memcpy(&found[0], key, 8);
        memcpy(&found[1], key + size - 8, 8);
        memcpy(&guessed[0], in_quotes, 8);
        memcpy(&guessed[1], in_quotes + size - 8, 8);
        if (((found[0] ^ guessed[0]) | (found[1] ^ guessed[1])) != 0) return false;
    }
    if (key[size] == 'n' || key[size] <= ' ') return false;
    reader->position = key + size;
    reader->at_first = false;
    return true;
}

/* Takes the end of an object if that follows without white space; else nothing. */
static inline bool json_object_ends(struct json_reader *reader)
{
    if (reader->position == reader->end || *reader->position != '}') return false;
    reader->position++;
    reader->depth--;
    reader->at_first = false;
    return true;
}

/* Strings and keys are views of the input, or, where they hold escapes, of memory that the next string or key with
 * escapes overwrites. They may hold U+0000. */
struct slice json_string(struct json_reader *reader);
bool json_bool(struct json_reader *reader);
/* Takes a null if that comes next, else takes nothing and gives false. */
static inline bool json_null(struct json_reader *reader)
{
    if (json_next_byte(reader) != 'n' || reader->end - reader->position < 4) return false;
    if (memcmp(reader->position, "null", 4) != 0) return false;
    reader->position += 4;
    return true;
}
/* Checks the next value, whatever it is, and passes over it. */
void json_skip(struct json_reader *reader);

struct json_number {
    struct slice text; /* the number as it is in the input */
    uint64_t digits;   /* all digits in a row, if IS_EXACT: the value is ±digits × 10^exponent */
    int64_t exponent;
    bool is_negative;
    bool is_integer; /* neither fraction nor exponent */
    bool is_exact;   /* value of at most 19 digits */
};

/* All zero on failure. */
struct json_number json_number(struct json_reader *reader);
/* The nearest double, ties to even; infinite where the number is too large for one. */
double json_number_to_double(const struct json_number *number);
/* A number that is in its own text: exactly one JSON number and nothing else. */
bool json_number_of_text(struct slice text, struct json_number *ret_number);

/* A fraction, an exponent or a value that does not fit is a failure. */
uint64_t json_u64(struct json_reader *reader);
int64_t json_i64(struct json_reader *reader);
/* A number too large for a finite double is a failure, or infinite. */
double json_double(struct json_reader *reader);
double json_double_or_infinity(struct json_reader *reader);

#endif
