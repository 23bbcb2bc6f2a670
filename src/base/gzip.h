/* gzip (RFC 1952) and zlib (RFC 1950) of whole buffers.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_GZIP_H
#define OFFBEAT_BASE_GZIP_H

#include "base/buffer.h"
#include "base/slice.h"
#include "base/status.h"

enum { GZIP_LEVEL_DEFAULT = 6 };

/* True if BYTES begin as gzip does. */
static inline bool gzip_detect(struct slice bytes)
{
    return bytes.size >= 2 && bytes.data[0] == 0x1f && bytes.data[1] == 0x8b;
}

/* Appends to OUT what BYTES hold, all members one after the other. STATUS_TOO_LARGE if OUT's maximum would be passed,
 * STATUS_MALFORMED if the bytes are damaged, cut short, or followed by something else; OUT is then as it was. */
enum status gzip_decompress(struct slice bytes, struct buffer *out, struct error *error);

/* True if BYTES may begin a zlib stream, which is a matter of two bytes: method 8, a window of at most 32 KiB, no
 * preset dictionary, and a remainder. */
static inline bool zlib_detect(struct slice bytes)
{
    return bytes.size >= 2 && (bytes.data[0] & 0x8f) == 0x08 && (bytes.data[1] & 0x20) == 0 &&
           (bytes.data[0] << 8 | bytes.data[1]) % 31 == 0;
}

/* Does the same as gzip_decompress for one stream. */
enum status zlib_decompress(struct slice bytes, struct buffer *out, struct error *error);

/* Append to OUT what can be read of BYTES, which the functions above have rejected. True if they are cut short, false
 * if they are damaged, or without memory or room: what OUT has got then is of no use. */
bool gzip_decompress_cut(struct slice bytes, struct buffer *out);
bool zlib_decompress_cut(struct slice bytes, struct buffer *out);

/* Appends BYTES as one gzip member without name and time: equal bytes give equal output. LEVEL: 1 to 12. */
enum status gzip_compress(struct slice bytes, int level, struct buffer *out, struct error *error);

#endif
