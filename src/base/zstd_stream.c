/* SPDX-License-Identifier: MIT */
#include "base/zstd_stream.h"

#include <zstd.h>

enum { WINDOW_LOG_MAX = 27 };

struct zstd_stream *zstd_stream_new(void)
{
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    if (decoder) (void)ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    return (struct zstd_stream *)decoder;
}

void zstd_stream_free(struct zstd_stream *stream)
{
    (void)ZSTD_freeDCtx((ZSTD_DCtx *)stream);
}

bool zstd_stream_step(struct zstd_stream *stream, struct slice *input, uint8_t *out, size_t size, size_t *ret_produced)
{
    ZSTD_inBuffer in = {.src = input->data, .size = input->size};
    ZSTD_outBuffer produced = {.dst = out, .size = size};
    size_t result = ZSTD_decompressStream((ZSTD_DCtx *)stream, &produced, &in);
    *input = slice_of(input->data + in.pos, input->size - in.pos);
    *ret_produced = produced.pos;
    return !ZSTD_isError(result) && (in.pos > 0 || produced.pos > 0 || input->size == 0);
}
