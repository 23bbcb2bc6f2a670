/* Writes JSON into a buffer. The writer puts the commas; the caller keeps begin and end in pairs and writes a key
 * before each value of an object. What is written is always valid: bytes of a string that are not UTF-8 become U+FFFD,
 * and a double that is not finite becomes null. Failure (memory, the buffer's maximum) is the buffer's: ask it at the
 * end. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_JSON_WRITER_H
#define OFFBEAT_BASE_JSON_WRITER_H

#include "base/buffer.h"

struct json_writer {
    struct buffer *out;
    bool needs_comma;
};

static inline struct json_writer json_writer_of(struct buffer *out)
{
    return (struct json_writer){.out = out};
}

void json_begin_object(struct json_writer *writer);
void json_end_object(struct json_writer *writer);
void json_begin_array(struct json_writer *writer);
void json_end_array(struct json_writer *writer);

/* Takes the end off the object with members that OUT ends with. RET_WRITER adds members; json_end_object ends it again.
 * False if OUT ends with none. */
bool json_reopen_object(struct buffer *out, struct json_writer *ret_writer);

/* KEY is written as it is: constant text that needs no escapes. json_write_key_slice takes any. */
void json_write_key(struct json_writer *writer, const char *key);
void json_write_key_slice(struct json_writer *writer, struct slice key);

void json_write_string(struct json_writer *writer, struct slice text);
void json_write_text(struct json_writer *writer, const char *text); /* NULL = "" */
void json_write_u64(struct json_writer *writer, uint64_t value);
void json_write_i64(struct json_writer *writer, int64_t value);
void json_write_hex(struct json_writer *writer, uint64_t value); /* the string "0x1f" */
/* Writes the fewest digits that read back as the same double. */
void json_write_double(struct json_writer *writer, double value);
/* VALUE / 10^PLACES with exactly PLACES (0 to 19) digits after the point. */
void json_write_fixed(struct json_writer *writer, uint64_t value, unsigned places);
void json_write_bool(struct json_writer *writer, bool value);
void json_write_null(struct json_writer *writer);
/* JSON that is already there. */
void json_write_raw(struct json_writer *writer, struct slice json);

/* Write the member KEY of an object: the key, and the value as the function json_write_… of that name writes it. */
void json_member_string(struct json_writer *writer, const char *key, struct slice text);
void json_member_text(struct json_writer *writer, const char *key, const char *text);
void json_member_u64(struct json_writer *writer, const char *key, uint64_t value);
void json_member_i64(struct json_writer *writer, const char *key, int64_t value);
void json_member_hex(struct json_writer *writer, const char *key, uint64_t value);
void json_member_bool(struct json_writer *writer, const char *key, bool value);
/* TIME_NS since 1970 as a string of RFC 3339 in UTC. */
void json_member_time(struct json_writer *writer, const char *key, uint64_t time_ns);
/* Nothing if TEXT is empty. */
void json_member_string_if_any(struct json_writer *writer, const char *key, struct slice text);
void json_begin_object_member(struct json_writer *writer, const char *key);
void json_begin_array_member(struct json_writer *writer, const char *key);

#endif
