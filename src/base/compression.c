/* One function for every compression: libdeflate, libbrotlidec and libzstd (doc/decisions) after it. Those that stream
 * are given room at the end of the output, again and again.  SPDX-License-Identifier: MIT */
#include "base/compression.h"

#include "base/gzip.h"

#include <brotli/decode.h>
#include <strings.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    ROOM_BYTES = 64 << 10, /* at least, for one call of a library that streams */
    ROOM_RATIO = 4,        /* output that we expect of an input */
    ZSTD_WINDOW_LOG_MAX = 27,
};

bool compression_of_encoding(struct slice encoding, enum compression *ret_compression)
{
    static const struct {
        const char *name;
        enum compression compression;
    } known[] = {
        {"", COMPRESSION_NONE},     {"identity", COMPRESSION_NONE}, {"utf-8", COMPRESSION_NONE},
        {"gzip", COMPRESSION_GZIP}, {"x-gzip", COMPRESSION_GZIP},   {"deflate", COMPRESSION_ZLIB},
        {"br", COMPRESSION_BROTLI}, {"zstd", COMPRESSION_ZSTD},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strlen(known[i].name) != encoding.size) continue;
        if (encoding.size && strncasecmp(known[i].name, (const char *)encoding.data, encoding.size) != 0) continue;
        *ret_compression = known[i].compression;
        return true;
    }
    return false;
}

enum compression compression_detect(struct slice bytes)
{
    static const uint8_t zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (gzip_detect(bytes)) return COMPRESSION_GZIP;
    if (bytes.size >= 4 && memcmp(bytes.data, zstd_magic, sizeof(zstd_magic)) == 0) return COMPRESSION_ZSTD;
    if (zlib_detect(bytes)) return COMPRESSION_ZLIB;
    return COMPRESSION_NONE;
}

/* Room at the end of OUT for what COMPRESSED_SIZE more bytes may hold. At the maximum there is still one byte, so that
 * a stream that ends right there can say so. */
static uint8_t *find_room(struct buffer *out, size_t compressed_size, size_t *ret_room, uint8_t *spare)
{
    size_t left = out->maximum - out->size;
    size_t room = compressed_size < SIZE_MAX / ROOM_RATIO ? compressed_size * ROOM_RATIO : compressed_size;
    if (room < ROOM_BYTES) room = ROOM_BYTES;
    *ret_room = room < left ? room : left;
    if (left > 0) return buffer_reserve(out, *ret_room);
    *ret_room = 1;
    return spare;
}

/* Counts PRODUCED bytes that were written to PLACE. False if they were more than OUT may hold. */
static bool take_produced(struct buffer *out, const uint8_t *place, size_t produced, const uint8_t *spare)
{
    if (place == spare) return produced == 0;
    buffer_grow(out, produced);
    return true;
}

static enum status brotli_decompress(struct slice bytes, struct buffer *out, bool *ret_is_cut)
{
    BrotliDecoderState *decoder = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (!decoder) return STATUS_NO_MEMORY;
    const uint8_t *input = bytes.data;
    size_t input_left = bytes.size;
    enum status status = STATUS_NO_MEMORY;
    for (;;) {
        size_t room;
        uint8_t spare, *place = find_room(out, input_left, &room, &spare), *end = place;
        if (!place) break;
        BrotliDecoderResult result = BrotliDecoderDecompressStream(decoder, &input_left, &input, &room, &end, NULL);
        status = STATUS_TOO_LARGE;
        if (!take_produced(out, place, (size_t)(end - place), &spare)) break;
        if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) continue;
        bool is_whole = result == BROTLI_DECODER_RESULT_SUCCESS && input_left == 0;
        status = is_whole ? STATUS_OK : STATUS_MALFORMED;
        *ret_is_cut = result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT;
        break;
    }
    BrotliDecoderDestroyInstance(decoder);
    return status;
}

static enum status status_of_zstd(size_t result)
{
    return ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge ? STATUS_UNSUPPORTED
                                                                                 : STATUS_MALFORMED;
}

static enum status zstd_decompress(struct slice bytes, struct buffer *out, bool *ret_is_cut)
{
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    if (!decoder) return STATUS_NO_MEMORY;
    (void)ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
    ZSTD_inBuffer input = {.src = bytes.data, .size = bytes.size};
    enum status status = STATUS_NO_MEMORY;
    for (;;) {
        size_t room;
        uint8_t spare, *place = find_room(out, input.size - input.pos, &room, &spare);
        if (!place) break;
        ZSTD_outBuffer output = {.dst = place, .size = room};
        size_t taken_before = input.pos;
        size_t result = ZSTD_decompressStream(decoder, &output, &input);
        status = STATUS_TOO_LARGE;
        if (!take_produced(out, place, output.pos, &spare)) break;
        status = ZSTD_isError(result) ? status_of_zstd(result) : STATUS_OK;
        if (status != STATUS_OK || (result == 0 && input.pos == input.size)) break;
        /* If neither a byte was taken nor one given, the frame is cut short. */
        status = STATUS_MALFORMED;
        *ret_is_cut = input.pos == taken_before && output.pos == 0;
        if (*ret_is_cut) break;
    }
    (void)ZSTD_freeDCtx(decoder);
    return status;
}

static enum status explain(enum status status, const char *name, const struct buffer *out, struct error *error)
{
    if (status == STATUS_OK) return STATUS_OK;
    if (status == STATUS_NO_MEMORY) return error_set(error, status, 0, "not enough memory to decompress");
    if (status == STATUS_TOO_LARGE) {
        return error_set(error, status, 0, "the %s data hold more than %zu bytes", name, out->maximum);
    }
    if (status == STATUS_UNSUPPORTED) {
        return error_set(error, status, 0, "the %s data need a window of more than 128 MiB; decompress them first",
                         name);
    }
    return error_set(error, status, 0, "the %s data are damaged or cut short", name);
}

/* Appends to OUT, also what is before the place where the data are damaged. RET_IS_CUT: NULL, or set if the data are
 * good, but not whole; of gzip and zlib that takes time. */
static enum status decompress_any(enum compression compression, struct slice bytes, struct buffer *out,
                                  bool *ret_is_cut, struct error *error)
{
    bool is_cut = false;
    enum status status = STATUS_UNSUPPORTED;
    switch (compression) {
    case COMPRESSION_NONE:
        if (bytes.size > out->maximum - out->size) {
            return error_set(error, STATUS_TOO_LARGE, 0, "more than %zu bytes", out->maximum);
        }
        buffer_append(out, bytes.data, bytes.size);
        return out->failed ? explain(STATUS_NO_MEMORY, "", out, error) : STATUS_OK;
    case COMPRESSION_GZIP:
        status = gzip_decompress(bytes, out, error);
        if (status == STATUS_MALFORMED && ret_is_cut) is_cut = gzip_decompress_cut(bytes, out);
        break;
    case COMPRESSION_ZLIB:
        status = zlib_decompress(bytes, out, error);
        if (status == STATUS_MALFORMED && ret_is_cut) is_cut = zlib_decompress_cut(bytes, out);
        break;
    case COMPRESSION_BROTLI:
        status = explain(brotli_decompress(bytes, out, &is_cut), "brotli", out, error);
        break;
    case COMPRESSION_ZSTD:
        status = explain(zstd_decompress(bytes, out, &is_cut), "zstd", out, error);
        break;
    }
    if (ret_is_cut) *ret_is_cut = is_cut;
    return status;
}

enum status decompress_front(enum compression compression, struct slice bytes, struct buffer *out, bool *ret_is_cut,
                             struct error *error)
{
    size_t size_before = out->size;
    *ret_is_cut = false;
    enum status status = decompress_any(compression, bytes, out, ret_is_cut, error);
    if (status != STATUS_OK && !*ret_is_cut && compression != COMPRESSION_BROTLI) out->size = size_before;
    return status;
}

enum status decompress(enum compression compression, struct slice bytes, struct buffer *out, struct error *error)
{
    size_t size_before = out->size;
    enum status status = decompress_any(compression, bytes, out, NULL, error);
    if (status != STATUS_OK) out->size = size_before;
    return status;
}

/* --- Zstandard data that arrive in pieces ------------------------------------------------------------------------- */

struct zstd_stream *zstd_stream_new(void)
{
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    if (decoder) (void)ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
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
