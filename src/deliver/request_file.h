/* The request of the library to the helper, as a file.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DELIVER_REQUEST_FILE_H
#define OFFBEAT_DELIVER_REQUEST_FILE_H

#include "deliver/recordings.h"

enum { REQUEST_BYTES_MAX = 16 << 20 };

/* A request that was read, and the memory of its strings. */
struct request_file {
    struct chunk_request request;
    struct buffer texts; /* NUL between them */
    struct chunk_measurement *measurements;
};

/* Appends REQUEST as a JSON object. */
void chunk_request_write(const struct chunk_request *request, struct buffer *out);
/* Sets RET_FILE on success only; chunk_request_fini frees it. */
enum status chunk_request_read(struct slice bytes, struct request_file *ret_file, struct error *error);
void chunk_request_fini(struct request_file *file);

#endif
