/* Payloads on disk: zstd, so that they decompress fast.  SPDX-License-Identifier: MIT */
#include "base/compression.h"
#include "store/store_private.h"

#include <zstd.h>

enum { PAYLOAD_LEVEL = 3 };

enum status payload_pack(struct slice payload, struct buffer *out, struct error *error)
{
    size_t bound = ZSTD_compressBound(payload.size);
    uint8_t *room = buffer_reserve(out, bound);
    if (!room) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to store a payload");
    size_t size = ZSTD_compress(room, bound, payload.data, payload.size, PAYLOAD_LEVEL);
    if (ZSTD_isError(size)) return error_set(error, STATUS_NO_MEMORY, 0, "zstd: %s", ZSTD_getErrorName(size));
    buffer_grow(out, size);
    return STATUS_OK;
}

enum status payload_unpack(struct slice packed, uint64_t size, struct buffer *out, struct error *error)
{
    if (size > STORE_PAYLOAD_BYTES_MAX) return error_set(error, STATUS_MALFORMED, 0, "a stored payload is too large");
    uint8_t *room = buffer_reserve(out, size ? size : 1);
    if (!room) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to read a payload");
    size_t read = ZSTD_decompress(room, size, packed.data, packed.size);
    if (ZSTD_isError(read) || read != size) return error_set(error, STATUS_MALFORMED, 0, "a stored payload is damaged");
    buffer_grow(out, size);
    return STATUS_OK;
}
