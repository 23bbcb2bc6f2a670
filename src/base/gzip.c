/* gzip and zlib by libdeflate (doc/decisions/libdeflate.md), which wants the entire output at once: we guess how large
 * it is, and guess higher where that was too little.  SPDX-License-Identifier: MIT */
#include "base/gzip.h"

#include <libdeflate.h>

enum {
    MEMBER_BYTES_MIN = 18, /* gzip: header and trailer */
    ZLIB_BYTES_MIN = 6,
    DEFLATE_RATIO_MAX = 1032, /* no deflate stream expands further */
    OUTPUT_BYTES_MIN = 4096,
};

/* A function of libdeflate that decompresses and returns how much input it took. */
typedef enum libdeflate_result decompress_call(struct libdeflate_decompressor *decompressor, const void *input,
                                               size_t input_size, void *output, size_t output_room, size_t *ret_taken,
                                               size_t *ret_produced);

/* A first guess at the output. The last four bytes of gzip state the size of the last member, modulo 2^32, if the file
 * is honest: believed as far as the input can expand to it. */
static size_t guess_output_size(struct slice bytes, bool is_gzip, size_t maximum)
{
    uint32_t stated;
    memcpy(&stated, bytes.data + bytes.size - sizeof(stated), sizeof(stated));
    size_t guess = bytes.size * 3;
    if (is_gzip && stated / DEFLATE_RATIO_MAX <= bytes.size) guess = stated;
    if (guess < OUTPUT_BYTES_MIN) guess = OUTPUT_BYTES_MIN;
    return guess < maximum ? guess : maximum;
}

/* Decompresses what is at the front of BYTES to the end of OUT. */
static enum status decompress_one(struct libdeflate_decompressor *decompressor, decompress_call *call,
                                  struct slice bytes, struct buffer *out, size_t *ret_consumed)
{
    size_t room_max = out->maximum - out->size;
    for (size_t room = guess_output_size(bytes, call == libdeflate_gzip_decompress_ex, room_max);;
         room = room < room_max / 2 ? room * 2 : room_max) {
        uint8_t *place = buffer_reserve(out, room);
        if (!place) return STATUS_NO_MEMORY;
        size_t produced = 0;
        enum libdeflate_result result =
            call(decompressor, bytes.data, bytes.size, place, room, ret_consumed, &produced);
        if (result == LIBDEFLATE_SUCCESS) {
            buffer_grow(out, produced);
            return STATUS_OK;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE) return STATUS_MALFORMED;
        if (room == room_max) return STATUS_TOO_LARGE;
    }
}

static enum status explain(enum status status, const char *name, uint64_t offset, const struct buffer *out,
                           struct error *error)
{
    switch ((int)status) {
    case STATUS_MALFORMED:
        return error_set(error, status, offset, "the %s data are damaged or cut short", name);
    case STATUS_TOO_LARGE:
        return error_set(error, status, offset, "the %s data hold more than %zu bytes", name, out->maximum);
    default:
        return error_set(error, STATUS_NO_MEMORY, offset, "not enough memory to decompress");
    }
}

enum status gzip_decompress(struct slice bytes, struct buffer *out, struct error *error)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (!decompressor) return explain(STATUS_NO_MEMORY, "gzip", 0, out, error);
    size_t size_before = out->size;
    size_t offset = 0;
    enum status status = STATUS_OK;
    do {
        struct slice left = slice_of(bytes.data + offset, bytes.size - offset);
        size_t consumed = 0;
        status = left.size < MEMBER_BYTES_MIN
                     ? STATUS_MALFORMED
                     : decompress_one(decompressor, libdeflate_gzip_decompress_ex, left, out, &consumed);
        offset += consumed;
    } while (status == STATUS_OK && offset < bytes.size);
    libdeflate_free_decompressor(decompressor);
    if (status == STATUS_OK) return STATUS_OK;
    out->size = size_before;
    return explain(status, "gzip", offset, out, error);
}

enum status zlib_decompress(struct slice bytes, struct buffer *out, struct error *error)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (!decompressor) return explain(STATUS_NO_MEMORY, "zlib", 0, out, error);
    size_t size_before = out->size, consumed = 0;
    enum status status = STATUS_MALFORMED;
    if (bytes.size >= ZLIB_BYTES_MIN) {
        status = decompress_one(decompressor, libdeflate_zlib_decompress_ex, bytes, out, &consumed);
    }
    libdeflate_free_decompressor(decompressor);
    if (status == STATUS_OK && consumed < bytes.size) status = STATUS_MALFORMED;
    if (status == STATUS_OK) return STATUS_OK;
    out->size = size_before;
    return explain(status, "zlib", consumed, out, error);
}

enum status gzip_compress(struct slice bytes, int level, struct buffer *out, struct error *error)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    if (!compressor) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to compress");
    size_t room = libdeflate_gzip_compress_bound(compressor, bytes.size);
    uint8_t *place = buffer_reserve(out, room);
    size_t produced = place ? libdeflate_gzip_compress(compressor, bytes.data, bytes.size, place, room) : 0;
    libdeflate_free_compressor(compressor);
    if (produced == 0) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to compress");
    buffer_grow(out, produced);
    return STATUS_OK;
}
