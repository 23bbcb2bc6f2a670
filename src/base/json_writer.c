/* SPDX-License-Identifier: MIT */
#include "base/json_writer.h"

#include "base/hex.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "base/utf8.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void before_value(struct json_writer *writer)
{
    if (writer->needs_comma) buffer_append_byte(writer->out, ',');
    writer->needs_comma = true;
}

static void begin(struct json_writer *writer, uint8_t bracket)
{
    before_value(writer);
    buffer_append_byte(writer->out, bracket);
    writer->needs_comma = false;
}

static void end(struct json_writer *writer, uint8_t bracket)
{
    buffer_append_byte(writer->out, bracket);
    writer->needs_comma = true;
}

void json_begin_object(struct json_writer *writer)
{
    begin(writer, '{');
}

void json_end_object(struct json_writer *writer)
{
    end(writer, '}');
}

void json_begin_array(struct json_writer *writer)
{
    begin(writer, '[');
}

void json_end_array(struct json_writer *writer)
{
    end(writer, ']');
}

bool json_reopen_object(struct buffer *out, struct json_writer *ret_writer)
{
    size_t size = out->size;
    while (size > 0 && out->data[size - 1] == '\n') size--;
    if (out->failed || size < 3 || out->data[size - 1] != '}') return false; /* {} */
    out->size = size - 1;
    *ret_writer = (struct json_writer){.out = out, .needs_comma = true};
    return true;
}

static void append_ascii_escape(struct buffer *out, uint8_t byte)
{
    static const char letters[256] = {
        ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (letters[byte]) {
        buffer_append_byte(out, '\\');
        buffer_append_byte(out, (uint8_t)letters[byte]);
    } else {
        char escape[] = "\\u00xx";
        (void)hex_write(escape + 4, slice_of(&byte, 1));
        buffer_append_text(out, escape);
    }
}

static void append_unit(struct buffer *out, uint32_t unit)
{
    char escape[] = "\\uxxxx";
    uint8_t bytes[] = {(uint8_t)(unit >> 8), (uint8_t)unit};
    (void)hex_write(escape + 2, slice_of(bytes, sizeof(bytes)));
    buffer_append_text(out, escape);
}

/* Appends an escape of the character of SIZE bytes at PLACE: of UTF-16, as JSON has it. */
static void append_escape(struct buffer *out, const uint8_t *place, size_t size)
{
    uint32_t code = utf8_code_point(place, size);
    if (size == 1) {
        append_ascii_escape(out, place[0]);
    } else if (code <= 0xFFFF) {
        append_unit(out, code);
    } else {
        append_unit(out, 0xD800 + ((code - 0x10000) >> 10));
        append_unit(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
    }
}

static void append_string(struct buffer *out, struct slice text)
{
    if (text.size == 0) {
        buffer_append_text(out, "\"\"");
        return;
    }
    const uint8_t *run = text.data, *stop = run + text.size, *place = run;
    buffer_append_byte(out, '"');
    while (place < stop) {
        bool is_special = *place == '"' || *place == '\\';
        if (*place >= 0x20 && *place < 0x7F && !is_special) { /* nearly all */
            place++;
            continue;
        }
        size_t skip, size = utf8_sequence_size(place, stop);
        if (!is_special && printable_size(slice_of(place, (size_t)(stop - place)), &skip) > 0) {
            place += skip;
            continue;
        }
        buffer_append(out, run, (size_t)(place - run));
        if (size)
            append_escape(out, place, size);
        else
            buffer_append_text(out, "\xEF\xBF\xBD"); /* U+FFFD */
        place += size ? size : 1;
        run = place;
    }
    if (run < stop) buffer_append(out, run, (size_t)(stop - run));
    buffer_append_byte(out, '"');
}

void json_write_key(struct json_writer *writer, const char *key)
{
    before_value(writer);
    buffer_append_byte(writer->out, '"');
    buffer_append_text(writer->out, key);
    buffer_append(writer->out, "\":", 2);
    writer->needs_comma = false;
}

void json_write_key_slice(struct json_writer *writer, struct slice key)
{
    before_value(writer);
    append_string(writer->out, key);
    buffer_append_byte(writer->out, ':');
    writer->needs_comma = false;
}

void json_write_string(struct json_writer *writer, struct slice text)
{
    before_value(writer);
    append_string(writer->out, text);
}

void json_write_text(struct json_writer *writer, const char *text)
{
    json_write_string(writer, slice_of_text(text));
}

/* Appends VALUE in decimal with at least WIDTH digits (at most 20). */
static void append_decimal(struct buffer *out, uint64_t value, unsigned width)
{
    char digits[20];
    unsigned first = sizeof(digits);
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value || sizeof(digits) - first < width);
    buffer_append(out, digits + first, sizeof(digits) - first);
}

void json_write_u64(struct json_writer *writer, uint64_t value)
{
    before_value(writer);
    append_decimal(writer->out, value, 1);
}

void json_write_i64(struct json_writer *writer, int64_t value)
{
    before_value(writer);
    if (value < 0) buffer_append_byte(writer->out, '-');
    append_decimal(writer->out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
}

void json_write_hex(struct json_writer *writer, uint64_t value)
{
    before_value(writer);
    buffer_append_format(writer->out, "\"0x%llx\"", (unsigned long long)value);
}

void json_write_fixed(struct json_writer *writer, uint64_t value, unsigned places)
{
    uint64_t unit = 1;
    for (unsigned i = 0; i < places; i++) unit *= 10;
    before_value(writer);
    append_decimal(writer->out, value / unit, 1);
    if (places == 0) return;
    buffer_append_byte(writer->out, '.');
    append_decimal(writer->out, value % unit, places);
}

void json_write_double(struct json_writer *writer, double value)
{
    if (!isfinite(value)) {
        json_write_null(writer);
        return;
    }
    char text[32];
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", NULL); /* another one may write a comma for the point */
    locale_t previous = uselocale(c_locale);
    for (int precision = 15; precision <= 17; precision++) {
        (void)snprintf(text, sizeof(text), "%.*g", precision, value);
        if (strtod(text, NULL) == value) break;
    }
    (void)uselocale(previous);
    if (c_locale) freelocale(c_locale);
    before_value(writer);
    buffer_append_text(writer->out, text);
}

void json_write_bool(struct json_writer *writer, bool value)
{
    before_value(writer);
    buffer_append_text(writer->out, value ? "true" : "false");
}

void json_write_null(struct json_writer *writer)
{
    before_value(writer);
    buffer_append_text(writer->out, "null");
}

void json_write_raw(struct json_writer *writer, struct slice json)
{
    before_value(writer);
    buffer_append(writer->out, json.data, json.size);
}

void json_member_string(struct json_writer *writer, const char *key, struct slice text)
{
    json_write_key(writer, key);
    json_write_string(writer, text);
}

void json_member_text(struct json_writer *writer, const char *key, const char *text)
{
    json_write_key(writer, key);
    json_write_text(writer, text);
}

void json_member_u64(struct json_writer *writer, const char *key, uint64_t value)
{
    json_write_key(writer, key);
    json_write_u64(writer, value);
}

void json_member_i64(struct json_writer *writer, const char *key, int64_t value)
{
    json_write_key(writer, key);
    json_write_i64(writer, value);
}

void json_member_hex(struct json_writer *writer, const char *key, uint64_t value)
{
    json_write_key(writer, key);
    json_write_hex(writer, value);
}

void json_member_bool(struct json_writer *writer, const char *key, bool value)
{
    json_write_key(writer, key);
    json_write_bool(writer, value);
}

void json_member_time(struct json_writer *writer, const char *key, uint64_t time_ns)
{
    char text[RFC3339_TEXT_SIZE];
    rfc3339_format(time_ns, text);
    json_member_text(writer, key, text);
}

void json_member_string_if_any(struct json_writer *writer, const char *key, struct slice text)
{
    if (text.size > 0) json_member_string(writer, key, text);
}

void json_begin_object_member(struct json_writer *writer, const char *key)
{
    json_write_key(writer, key);
    json_begin_object(writer);
}

void json_begin_array_member(struct json_writer *writer, const char *key)
{
    json_write_key(writer, key);
    json_begin_array(writer);
}
