/* What the library asks of the helper program, as a file.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CHUNK_REQUEST_H
#define OFFBEAT_CHUNK_REQUEST_H

#include "chunk/chunk.h"

enum { REQUEST_BYTES_MAX = 16 << 20 };

/* A request as it was read, and the memory of its texts. */
struct request_file {
    struct chunk_request request;
    struct buffer texts; /* NUL between them */
    struct chunk_measurement *measurements;
};

/* Appends REQUEST as a JSON object. */
void chunk_request_write(const struct chunk_request *request, struct buffer *out);
/* RET_FILE is set on success; then chunk_request_fini. */
enum status chunk_request_read(struct slice bytes, struct request_file *ret_file, struct error *error);
void chunk_request_fini(struct request_file *file);

#endif
