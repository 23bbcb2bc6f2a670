/* Payloads on disk: zstd, so that they decompress fast; of the columns where a payload can be split into columns.
 *
 * A packed payload is a zstd frame, or the byte PACKED_COLUMNS and the frame of the columns.
 * SPDX-License-Identifier: MIT */
#include "store/payload.h"

#include "store/columns.h"

#include <zstd.h>

enum { PAYLOAD_LEVEL = 1, PACKED_COLUMNS = 1, COLUMNS_BYTES_MAX = STORE_PAYLOAD_BYTES_MAX + (16 << 20) };

enum status payload_pack(struct slice payload, struct buffer *out, struct error *error)
{
    struct buffer columns;
    buffer_init(&columns, COLUMNS_BYTES_MAX);
    bool has_columns = columns_encode(payload, &columns) && columns.size < payload.size;
    if (has_columns) {
        buffer_append_byte(out, PACKED_COLUMNS);
        payload = buffer_slice(&columns);
    }
    size_t bound = ZSTD_compressBound(payload.size);
    uint8_t *room = buffer_reserve(out, bound);
    size_t size = room ? ZSTD_compress(room, bound, payload.data, payload.size, PAYLOAD_LEVEL) : 0;
    enum status status = STATUS_OK;
    if (!room)
        status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to store a payload");
    else if (ZSTD_isError(size))
        status = error_set(error, STATUS_NO_MEMORY, 0, "zstd: %s", ZSTD_getErrorName(size));
    else
        buffer_grow(out, size);
    buffer_fini(&columns);
    return status;
}

static enum status is_damaged(struct error *error)
{
    return error_set(error, STATUS_MALFORMED, 0, "a stored payload is damaged");
}

static enum status decompress_frame(struct slice frame, uint64_t size, struct buffer *out, struct error *error)
{
    uint8_t *room = buffer_reserve(out, size ? size : 1);
    if (!room) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to read a payload");
    size_t read = ZSTD_decompress(room, size, frame.data, frame.size);
    if (ZSTD_isError(read) || read != size) return is_damaged(error);
    buffer_grow(out, size);
    return STATUS_OK;
}

static enum status unpack_columns(struct slice frame, uint64_t size, struct buffer *out, struct error *error)
{
    unsigned long long columns_size = ZSTD_getFrameContentSize(frame.data, frame.size);
    if (columns_size >= size) return is_damaged(error); /* an unknown size is the largest number */
    struct buffer columns;
    buffer_init(&columns, COLUMNS_BYTES_MAX);
    size_t before = out->size;
    enum status status = decompress_frame(frame, columns_size, &columns, error);
    if (status == STATUS_OK && (!columns_decode(buffer_slice(&columns), size, out) || out->size - before != size))
        status = is_damaged(error);
    if (status != STATUS_OK) out->size = before;
    buffer_fini(&columns);
    return status;
}

enum status payload_unpack(struct slice packed, uint64_t size, struct buffer *out, struct error *error)
{
    if (size > STORE_PAYLOAD_BYTES_MAX) return error_set(error, STATUS_MALFORMED, 0, "a stored payload is too large");
    if (packed.size && packed.data[0] == PACKED_COLUMNS)
        return unpack_columns(slice_of(packed.data + 1, packed.size - 1), size, out, error);
    return decompress_frame(packed, size, out, error);
}
