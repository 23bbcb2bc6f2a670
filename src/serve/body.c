/* Bodies as they were before the client compressed them, and how much is decoded at the same time.
 *
 * Decoding a body takes up to 40 bytes for each byte of it (doc/formats/limits.md), far more than the body itself. So
 * small bodies that are decoded at the same time have SERVE_DECODE_BUDGET_BYTES together, and of larger ones there is
 * one at a time: a bomb costs its own sender's time, and not everybody's memory.  SPDX-License-Identifier: MIT */
#include "base/compression.h"
#include "format/format.h"
#include "serve/serve_private.h"

/* Waits until BYTES more of REQUEST may be decoded; STATUS_IO if too many wait. */
static enum status decode_budget_acquire(struct request *request, size_t bytes, struct error *error)
{
    struct server *server = request->server;
    struct decode_budget *budget = &server->decode_budget;
    if (request->is_large) return STATUS_OK;
    (void)pthread_mutex_lock(&budget->lock);
    /* A waiting request holds no budget: two requests that need more never wait for each other. */
    budget->bytes -= request->budget_bytes;
    if (request->budget_bytes) (void)pthread_cond_broadcast(&budget->has_room);
    bytes += request->budget_bytes;
    request->budget_bytes = 0;
    if (bytes <= SERVE_SMALL_BYTES_MAX) {
        while (budget->bytes + bytes > SERVE_DECODE_BUDGET_BYTES)
            (void)pthread_cond_wait(&budget->has_room, &budget->lock);
        budget->bytes += bytes;
        request->budget_bytes = bytes;
    } else if (!budget->has_large || budget->waiting_large < server->workers.worker_count / 2) {
        /* Half of the workers may wait for the large body before them: the others stay free for small ones. */
        budget->waiting_large++;
        while (budget->has_large) (void)pthread_cond_wait(&budget->has_room, &budget->lock);
        budget->waiting_large--;
        budget->has_large = request->is_large = true;
    }
    (void)pthread_mutex_unlock(&budget->lock);
    if (request->is_large || bytes <= SERVE_SMALL_BYTES_MAX) return STATUS_OK;
    return error_set(error, STATUS_IO, 0, "too many large bodies wait; try again");
}

void decode_budget_release(struct request *request)
{
    struct decode_budget *budget = &request->server->decode_budget;
    if (!request->is_large && request->budget_bytes == 0) return;
    (void)pthread_mutex_lock(&budget->lock);
    budget->bytes -= request->budget_bytes;
    if (request->is_large) budget->has_large = false;
    request->budget_bytes = 0;
    request->is_large = false;
    (void)pthread_cond_broadcast(&budget->has_room);
    (void)pthread_mutex_unlock(&budget->lock);
}

/* --- Bodies ------------------------------------------------------------------------------------------------------- */

/* A body that is larger than SERVE_SMALL_BYTES_MAX starts again when it has its turn. */
static enum status decompress_body(struct request *request, enum compression compression, size_t bytes_max,
                                   struct buffer *out, struct error *error)
{
    struct slice body = buffer_slice(&request->body);
    size_t most = compression == COMPRESSION_NONE ? bytes_max : decompressed_bytes_max(body.size, bytes_max);
    buffer_init(out, most < SERVE_SMALL_BYTES_MAX ? most : SERVE_SMALL_BYTES_MAX);
    enum status status = decompress(compression, body, out, error);
    if (status == STATUS_OK) return decode_budget_acquire(request, out->size, error);
    if (status != STATUS_TOO_LARGE || most <= SERVE_SMALL_BYTES_MAX) return status;
    if (!request->has_key)
        return error_set(error, STATUS_TOO_LARGE, 0, "a body of this size needs its key in the header or the query");
    buffer_fini(out);
    buffer_init(out, most);
    status = decode_budget_acquire(request, most, error);
    return status == STATUS_OK ? decompress(compression, body, out, error) : status;
}

/* Adds BYTES to the rate; without a key yet, access_may_write does it when the key is known. Readers take nothing from
 * the rate of those that send. */
static void count_decoded(struct request *request, size_t bytes)
{
    request->decoded_bytes += bytes;
    if (request->has_key && !request->is_query) rates_add_bytes(request->server, request->project, bytes);
}

bool body_decompress(struct request *request, size_t bytes_max, struct buffer *out)
{
    enum compression compression;
    struct error error = {0};
    enum status status;
    size_t size = request->body.size;
    buffer_init(out, 0);
    if (!compression_of_encoding(slice_of_text(request->encoding), &compression)) {
        answer_error(request, 400, "the Content-Encoding is not one of gzip, deflate, br, zstd, identity");
        return false;
    }
    if (compression == COMPRESSION_NONE && size <= bytes_max && size <= SERVE_SMALL_BYTES_MAX) {
        *out = request->body; /* taken: a copy of each body costs more than reading its envelope */
        buffer_init(&request->body, 0);
        status = decode_budget_acquire(request, size, &error);
    } else {
        status = decompress_body(request, compression, bytes_max, out, &error);
    }
    count_decoded(request, status == STATUS_OK ? out->size : size);
    if (status == STATUS_OK) return true;
    answer_failure(request, &error);
    buffer_fini(out);
    return false;
}

enum status body_open_file(struct request *request, struct slice bytes, struct buffer *storage, struct slice *ret_raw,
                           struct error *error)
{
    enum status status = format_decompress(bytes, SERVE_SMALL_BYTES_MAX, storage, ret_raw, error);
    if (status == STATUS_TOO_LARGE) {
        buffer_fini(storage);
        status = decode_budget_acquire(request, SERVE_FILE_BYTES_MAX, error);
        if (status != STATUS_OK) buffer_init(storage, 0);
        if (status == STATUS_OK) status = format_decompress(bytes, SERVE_FILE_BYTES_MAX, storage, ret_raw, error);
    }
    /* An uncompressed file was counted with the body. */
    count_decoded(request, storage->size);
    return status == STATUS_OK ? decode_budget_acquire(request, storage->size, error) : status;
}
