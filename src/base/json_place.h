/* Where a byte of a JSON document is, written as people write it: "profile.samples[17].stack_id". Decoders remember
 * only an offset, which costs nothing; the place is found by walking the document again, for the one that went wrong.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_JSON_PLACE_H
#define OFFBEAT_BASE_JSON_PLACE_H

#include "base/json_reader.h"

/* Writes where the byte at OFFSET is: the path of the innermost value or key of BYTES that contains it, or of the next
 * one after it, and a NUL. A path that does not fit is cut at its end; "" is the entire document. If BYTES are broken
 * before OFFSET, the path leads to the broken value. RET_VALUE gets the bytes from that value on; it may be NULL. */
void json_place(struct slice bytes, uint64_t offset, char *ret_text, size_t size, struct slice *ret_value);

/* "object", "array", "string", "number", "boolean", "null", or "nothing". */
const char *json_kind_name(enum json_kind kind);

/* Writes a description of the value at the front of VALUE for people: the value itself if it is short and has no parts,
 * else its kind. A description that does not fit is cut. */
void json_describe(struct slice value, char *ret_text, size_t size);

#endif
