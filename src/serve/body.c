/* Bodies as they were before the client compressed them.  SPDX-License-Identifier: MIT */
#include "base/compression.h"
#include "serve/serve_private.h"

void body_release(struct request *request, struct buffer *bytes, bool is_large)
{
    buffer_fini(bytes);
    if (is_large) (void)pthread_mutex_unlock(&request->server->large);
}

/* A body that is larger than SERVE_SMALL_BYTES_MAX starts again, when no other one does the same: so that a bomb costs
 * its own sender's time, and not everybody's memory. */
bool body_decompress(struct request *request, size_t bytes_max, struct buffer *out, bool *ret_is_large)
{
    enum compression compression;
    struct slice body = buffer_slice(&request->body);
    struct error error = {0};
    *ret_is_large = false;
    buffer_init(out, 0);
    if (!compression_of_encoding(slice_of_text(request->encoding), &compression)) {
        answer_error(request, 400, "the Content-Encoding is not one of gzip, deflate, br, zstd, identity");
        return false;
    }
    if (compression == COMPRESSION_NONE && body.size <= bytes_max && body.size <= SERVE_SMALL_BYTES_MAX) {
        *out = request->body; /* taken: a copy of each body costs more than reading its envelope */
        buffer_init(&request->body, 0);
        return true;
    }
    size_t most = compression == COMPRESSION_NONE ? bytes_max : decompressed_bytes_max(body.size, bytes_max);
    buffer_init(out, most < SERVE_SMALL_BYTES_MAX ? most : SERVE_SMALL_BYTES_MAX);
    enum status status = decompress(compression, body, out, &error);
    if (status == STATUS_TOO_LARGE && most > SERVE_SMALL_BYTES_MAX && !request->has_key) {
        (void)error_set(&error, STATUS_TOO_LARGE, 0, "a body of this size needs its key in the header or the query");
    } else if (status == STATUS_TOO_LARGE && most > SERVE_SMALL_BYTES_MAX) {
        buffer_fini(out);
        (void)pthread_mutex_lock(&request->server->large);
        *ret_is_large = true;
        buffer_init(out, most);
        status = decompress(compression, body, out, &error);
    }
    if (status == STATUS_OK) return true;
    answer_failure(request, &error);
    body_release(request, out, *ret_is_large);
    *ret_is_large = false;
    return false;
}
