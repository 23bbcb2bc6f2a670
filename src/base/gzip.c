/* gzip and zlib by libdeflate (doc/decisions/libdeflate.md), which wants the entire output at once: we guess how large
 * it is, and guess higher where that was too little.  SPDX-License-Identifier: MIT */
#include "base/gzip.h"

#include <libdeflate.h>
#include <stdlib.h>

enum {
    MEMBER_BYTES_MIN = 18, /* gzip: header and trailer */
    GZIP_TRAILER_BYTES = 8,
    ZLIB_BYTES_MIN = 6,
    DEFLATE_RATIO_MAX = 1032, /* no deflate stream expands further */
    OUTPUT_BYTES_MIN = 4096,
    PADDING_BYTES = 64,     /* in place of what a cut stream has no more */
    TABLES_BYTES_MAX = 384, /* more than the tables of a block have */
    TABLES_STEP = 128,
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

/* --- Data that are cut short -------------------------------------------------------------------------------------- */

/* Returns the size of the header of the gzip member at the front of BYTES; that of BYTES if they end within it. */
static size_t gzip_header_size(struct slice bytes)
{
    enum { FIXED_BYTES = 10, HAS_CHECKSUM = 2, HAS_EXTRA = 4, HAS_NAME = 8, HAS_COMMENT = 16 };
    size_t at = FIXED_BYTES;
    if (bytes.size < FIXED_BYTES + 2) return bytes.size;
    unsigned flags = bytes.data[3];
    if (flags & HAS_EXTRA) at += 2 + (bytes.data[at] | (size_t)bytes.data[at + 1] << 8);
    for (unsigned text = HAS_NAME; text <= HAS_COMMENT; text *= 2) {
        if (!(flags & text) || at >= bytes.size) continue;
        const uint8_t *end = memchr(bytes.data + at, '\0', bytes.size - at);
        at = end ? (size_t)(end + 1 - bytes.data) : bytes.size;
    }
    if (flags & HAS_CHECKSUM) at += 2;
    return at < bytes.size ? at : bytes.size;
}

/* One decompression of raw deflate data with padding behind them. */
struct inflation {
    enum libdeflate_result result;
    size_t taken, produced; /* sizes of a stream that ends */
};

static struct inflation inflate_padded(struct libdeflate_decompressor *decompressor, uint8_t *bytes, size_t size,
                                       int padding, uint8_t *out, size_t room)
{
    struct inflation inflation = {.taken = 0};
    uint8_t kept[PADDING_BYTES];
    memset(out, 0, room);
    memcpy(kept, bytes + size, PADDING_BYTES);
    memset(bytes + size, padding, PADDING_BYTES);
    inflation.result = libdeflate_deflate_decompress_ex(decompressor, bytes, size + PADDING_BYTES, out, room,
                                                        &inflation.taken, &inflation.produced);
    memcpy(bytes + size, kept, PADDING_BYTES);
    return inflation;
}

/* Appends to OUT what STREAM, raw deflate data and a trailer of TRAILER_SIZE, holds up to its end. Returns true if the
 * end of the data or of the trailer is missing, false if the data are damaged further in front.
 *
 * libdeflate does not say how far it came. The output with zeros behind the stream differs from the one with other bits
 * from the first byte on that the missing part decides; a few bytes later where all of them happen to repeat the same.
 * If none differs, the stream itself is damaged, or it ends in the tables at the front of a block: then a shorter one
 * is tried. */
static bool inflate_cut(struct libdeflate_decompressor *decompressor, struct slice stream, size_t trailer_size,
                        struct buffer *out)
{
    enum { PADDINGS = 6 };
    static const int paddings[PADDINGS] = {0xff, 0x55, 0xaa, 0x33, 0x66, 0x99};
    size_t room_max = out->maximum - out->size, room = stream.size * 4 + OUTPUT_BYTES_MIN;
    size_t size = stream.size, tables_left = TABLES_BYTES_MAX;
    uint8_t *padded = malloc(stream.size + PADDING_BYTES), *other = NULL;
    bool is_cut = false;
    if (room > room_max) room = room_max;
    if (padded) memcpy(padded, stream.data, stream.size);
    for (bool has_more = padded != NULL; has_more;) {
        uint8_t *place = buffer_reserve(out, room);
        free(other);
        other = malloc(room + 1);
        if (!place || !other) break;
        struct inflation zeros = inflate_padded(decompressor, padded, size, 0, place, room);
        size_t common = zeros.result == LIBDEFLATE_SUCCESS ? zeros.produced : room;
        bool is_whole = zeros.result == LIBDEFLATE_SUCCESS && zeros.taken <= size;
        is_cut = is_whole ? stream.size - zeros.taken < trailer_size : common < room;
        for (int i = 0; i < PADDINGS && !is_whole; i++) {
            struct inflation others = inflate_padded(decompressor, padded, size, paddings[i], other, room);
            size_t same = 0;
            while (same < common && place[same] == other[same]) same++;
            if (others.result == LIBDEFLATE_SUCCESS && others.produced < same) same = others.produced;
            is_cut |= same < common || others.result == LIBDEFLATE_SUCCESS;
            common = same;
        }
        has_more = false;
        if (is_cut || is_whole) {
            if (is_cut) buffer_grow(out, common);
        } else if (zeros.result == LIBDEFLATE_INSUFFICIENT_SPACE) {
            has_more = room < room_max;
            room = room < room_max / 2 ? room * 2 : room_max;
        } else if (size > TABLES_STEP && tables_left > 0) {
            has_more = true;
            size -= TABLES_STEP;
            tables_left -= TABLES_STEP;
        }
    }
    free(padded);
    free(other);
    return is_cut;
}

bool gzip_decompress_cut(struct slice bytes, struct buffer *out)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    bool is_cut = false;
    for (size_t offset = 0, consumed = 0; decompressor && offset < bytes.size; offset += consumed) {
        struct slice left = slice_of(bytes.data + offset, bytes.size - offset);
        if (!gzip_detect(left)) break;
        if (left.size >= MEMBER_BYTES_MIN &&
            decompress_one(decompressor, libdeflate_gzip_decompress_ex, left, out, &consumed) == STATUS_OK)
            continue;
        size_t header_size = gzip_header_size(left);
        struct slice stream = slice_of(left.data + header_size, left.size - header_size);
        is_cut = stream.size == 0;
        if (!is_cut) is_cut = inflate_cut(decompressor, stream, GZIP_TRAILER_BYTES, out);
        break;
    }
    libdeflate_free_decompressor(decompressor);
    return is_cut;
}

bool zlib_decompress_cut(struct slice bytes, struct buffer *out)
{
    enum { HEADER_BYTES = 2, TRAILER_BYTES = 4 };
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    bool is_cut = false;
    if (decompressor && bytes.size > HEADER_BYTES)
        is_cut = inflate_cut(decompressor, slice_of(bytes.data + HEADER_BYTES, bytes.size - HEADER_BYTES),
                             TRAILER_BYTES, out);
    libdeflate_free_decompressor(decompressor);
    return is_cut;
}

/* --- Compression -------------------------------------------------------------------------------------------------- */

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
