/* Payloads as they are stored: zstd, of columns where that is smaller.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_PAYLOAD_H
#define OFFBEAT_STORE_PAYLOAD_H

#include "base/buffer.h"
#include "base/status.h"
#include "store/store.h"

enum { PAYLOAD_ROOM = STORE_PAYLOAD_BYTES_MAX + 4096 }; /* unpacking needs a record more than the payload has */

enum status payload_pack(struct slice payload, struct buffer *out, struct error *error);
enum status payload_unpack(struct slice packed, uint64_t size, struct buffer *out, struct error *error);

#endif
