/* gzip by libdeflate (doc/decisions/libdeflate.md), which wants the whole output at once: we guess how large it is, and
 * guess higher where that was too little.  SPDX-License-Identifier: MIT */
#include "base/gzip.h"

#include <libdeflate.h>

enum {
    MEMBER_BYTES_MIN = 18,    /* header and trailer */
    DEFLATE_RATIO_MAX = 1032, /* no deflate stream expands further */
    OUTPUT_BYTES_MIN = 4096,
};

/* A first guess at the output. The last four bytes tell the size of the last member, modulo 2^32, if the file is
 * honest: believed as far as the input can expand to it. */
static size_t guess_output_size(struct slice bytes, size_t maximum)
{
    uint32_t stated;
    memcpy(&stated, bytes.data + bytes.size - sizeof(stated), sizeof(stated));
    size_t guess = bytes.size * 3;
    if (stated / DEFLATE_RATIO_MAX <= bytes.size) guess = stated;
    if (guess < OUTPUT_BYTES_MIN) guess = OUTPUT_BYTES_MIN;
    return guess < maximum ? guess : maximum;
}

/* Decompresses the member at the front of BYTES to the end of OUT. */
static enum status decompress_member(struct libdeflate_decompressor *decompressor, struct slice bytes,
                                     struct buffer *out, size_t *ret_consumed)
{
    size_t room_max = out->maximum - out->size;
    for (size_t room = guess_output_size(bytes, room_max);; room = room < room_max / 2 ? room * 2 : room_max) {
        uint8_t *place = buffer_reserve(out, room);
        if (!place) return STATUS_NO_MEMORY;
        size_t produced = 0;
        enum libdeflate_result result =
            libdeflate_gzip_decompress_ex(decompressor, bytes.data, bytes.size, place, room, ret_consumed, &produced);
        if (result == LIBDEFLATE_SUCCESS) {
            buffer_grow(out, produced);
            return STATUS_OK;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE) return STATUS_MALFORMED;
        if (room == room_max) return STATUS_TOO_LARGE;
    }
}

static enum status explain(enum status status, uint64_t offset, const struct buffer *out, struct error *error)
{
    switch ((int)status) {
    case STATUS_MALFORMED:
        return error_set(error, status, offset, "the gzip data are damaged or cut short");
    case STATUS_TOO_LARGE:
        return error_set(error, status, offset, "the gzip data hold more than %zu bytes", out->maximum);
    default:
        return error_set(error, STATUS_NO_MEMORY, offset, "not enough memory to decompress");
    }
}

enum status gzip_decompress(struct slice bytes, struct buffer *out, struct error *error)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (!decompressor) return explain(STATUS_NO_MEMORY, 0, out, error);
    size_t size_before = out->size;
    size_t offset = 0;
    enum status status = STATUS_OK;
    do {
        struct slice left = slice_of(bytes.data + offset, bytes.size - offset);
        size_t consumed = 0;
        status =
            left.size < MEMBER_BYTES_MIN ? STATUS_MALFORMED : decompress_member(decompressor, left, out, &consumed);
        offset += consumed;
    } while (status == STATUS_OK && offset < bytes.size);
    libdeflate_free_decompressor(decompressor);
    if (status == STATUS_OK) return STATUS_OK;
    out->size = size_before;
    return explain(status, offset, out, error);
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
