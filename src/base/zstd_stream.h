/* Zstandard data that arrive in pieces.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_ZSTD_STREAM_H
#define OFFBEAT_BASE_ZSTD_STREAM_H

#include "base/slice.h"

struct zstd_stream;

/* NULL without memory. The window of the data may be at most 128 MiB. */
struct zstd_stream *zstd_stream_new(void);
void zstd_stream_free(struct zstd_stream *stream); /* accepts NULL */

/* Takes bytes from the front of INPUT and writes at most SIZE bytes to OUT. INPUT is exhausted only when INPUT is empty
 * and *RET_PRODUCED is below SIZE. False if the data are damaged. */
bool zstd_stream_step(struct zstd_stream *stream, struct slice *input, uint8_t *out, size_t size, size_t *ret_produced);

#endif
