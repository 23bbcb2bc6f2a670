/* Decompression of whole buffers, whatever the bytes were compressed with: what HTTP calls Content-Encoding, and files
 * on disk. Compression is in base/gzip.h.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_COMPRESSION_H
#define OFFBEAT_BASE_COMPRESSION_H

#include "base/buffer.h"
#include "base/slice.h"
#include "base/status.h"

enum compression {
    COMPRESSION_NONE,
    COMPRESSION_GZIP,   /* RFC 1952, any number of members */
    COMPRESSION_ZLIB,   /* RFC 1950; HTTP's "deflate" */
    COMPRESSION_BROTLI, /* RFC 7932 */
    COMPRESSION_ZSTD,   /* RFC 8878, any number of frames */
};

/* The value of a Content-Encoding header: gzip, x-gzip, deflate, br, zstd, identity in any case. "" and "UTF-8", which
 * clients are known to send, mean none too (facts §2.3). False if there is no such encoding, or a list of several. */
bool compression_of_encoding(struct slice encoding, enum compression *ret_compression);

/* Returns the compression that the front of BYTES shows. gzip and zstd have a magic number. zlib has two bytes that a
 * text can have by chance ("x^"). Brotli has none: COMPRESSION_NONE may be brotli. */
enum compression compression_detect(struct slice bytes);

/* A small file must not cost what a large one does: a file may hold DECOMPRESSION_RATIO_MAX times its size, or
 * DECOMPRESSION_BYTES_FREE if that is more. Real profiles reach 75 with gzip (doc/formats/limits.md). */
enum { DECOMPRESSION_RATIO_MAX = 256, DECOMPRESSION_BYTES_FREE = 16 << 20 };

/* The most that COMPRESSED_SIZE bytes may hold, and never more than LIMIT. */
static inline size_t decompressed_bytes_max(size_t compressed_size, size_t limit)
{
    size_t most = compressed_size < limit / DECOMPRESSION_RATIO_MAX ? compressed_size * DECOMPRESSION_RATIO_MAX : limit;
    if (most < DECOMPRESSION_BYTES_FREE) most = DECOMPRESSION_BYTES_FREE;
    return most < limit ? most : limit;
}

/* Appends the decompressed BYTES to OUT. STATUS_TOO_LARGE if OUT would exceed its maximum, STATUS_MALFORMED if the
 * bytes are damaged, cut short, or followed by something else; OUT is unchanged then. Needs at most 128 MiB in addition
 * to OUT: the largest window of zstd that is accepted. */
enum status decompress(enum compression compression, struct slice bytes, struct buffer *out, struct error *error);
/* The same, but OUT keeps the decompressed beginning of data that are cut short, and *RET_IS_CUT is then set beside
 * STATUS_MALFORMED. Of damaged brotli OUT keeps the beginning, too. */
enum status decompress_front(enum compression compression, struct slice bytes, struct buffer *out, bool *ret_is_cut,
                             struct error *error);

/* --- Zstandard data that arrive in pieces ------------------------------------------------------------------------- */

struct zstd_stream;

/* NULL without memory. The window of the data may be at most 128 MiB. */
struct zstd_stream *zstd_stream_new(void);
void zstd_stream_free(struct zstd_stream *stream); /* accepts NULL */

/* Takes bytes from the front of INPUT and writes at most SIZE bytes to OUT. INPUT is exhausted only when INPUT is empty
 * and *RET_PRODUCED is below SIZE. False if the data are damaged. */
bool zstd_stream_step(struct zstd_stream *stream, struct slice *input, uint8_t *out, size_t size, size_t *ret_produced);

#endif
