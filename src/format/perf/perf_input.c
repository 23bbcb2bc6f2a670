/* SPDX-License-Identifier: MIT */
#include "format/perf/perf_input.h"

#include <stdlib.h>

enum { UNPACKED_BYTES = 4 * PERF_RECORD_BYTES_MAX };

static size_t window_size(uint64_t left)
{
    return left > 0 && left < PERF_INPUT_WINDOW_BYTES ? (size_t)left : PERF_INPUT_WINDOW_BYTES;
}

enum status perf_input_init(struct perf_input *input, const struct perf_source *source, uint64_t start, uint64_t end)
{
    *input = (struct perf_input){.source = source, .position = start, .end = end};
    input->window.bytes = malloc(window_size(end - start));
    return input->window.bytes ? STATUS_OK : STATUS_NO_MEMORY;
}

void perf_input_fini(struct perf_input *input)
{
    free(input->window.bytes);
    free(input->unpacked.bytes);
    zstd_stream_free(input->unpacked.stream);
    *input = (struct perf_input){0};
}

static enum status fail(const struct perf_input *input, enum status status, const char *message, struct error *error)
{
    return error_set(error, status, input->record_offset, "%s", message);
}

/* Makes SIZE bytes at the position readable. */
static enum status fill_window(struct perf_input *input, size_t size, struct error *error)
{
    uint64_t ready = input->window.start + input->window.size - input->position;
    bool is_inside =
        input->position >= input->window.start && input->position <= input->window.start + input->window.size;
    if (is_inside && ready >= size) return STATUS_OK;
    uint64_t left = input->end - input->position;
    size_t wanted = left < PERF_INPUT_WINDOW_BYTES ? (size_t)left : PERF_INPUT_WINDOW_BYTES;
    if (!input->source->read(input->source->context, input->position, input->window.bytes, wanted))
        return fail(input, STATUS_IO, "the file cannot be read to its end", error);
    input->window.start = input->position;
    input->window.size = wanted;
    return STATUS_OK;
}

static struct perf_record record_at(const uint8_t *bytes, size_t *ret_size)
{
    struct cursor cursor = cursor_of(slice_of(bytes, PERF_RECORD_HEADER_SIZE));
    struct perf_record record = {.type = cursor_u32(&cursor), .misc = cursor_u16(&cursor)};
    *ret_size = cursor_u16(&cursor);
    record.bytes = slice_of(bytes, *ret_size);
    return record;
}

/* Ends the reading of a file that ends within a record. */
static enum status end_early(struct perf_input *input, struct error *error)
{
    if (!input->may_be_cut) return fail(input, STATUS_MALFORMED, "the file ends within a record", error);
    input->position = input->end;
    return STATUS_OK;
}

/* The next record of the file itself. */
static enum status next_stored(struct perf_input *input, struct perf_record *ret_record, struct error *error)
{
    size_t size;
    *ret_record = (struct perf_record){0};
    input->record_offset = input->position;
    if (input->position == input->end) return STATUS_OK;
    if (input->end - input->position < PERF_RECORD_HEADER_SIZE) return end_early(input, error);
    enum status status = fill_window(input, PERF_RECORD_HEADER_SIZE, error);
    if (status != STATUS_OK) return status;
    (void)record_at(input->window.bytes + (input->position - input->window.start), &size);
    if (size < PERF_RECORD_HEADER_SIZE) return fail(input, STATUS_MALFORMED, "a record without a size", error);
    if (input->end - input->position < size) return end_early(input, error);
    status = fill_window(input, size, error);
    if (status != STATUS_OK) return status;
    *ret_record = record_at(input->window.bytes + (input->position - input->window.start), &size);
    input->position += size;
    return STATUS_OK;
}

/* --- Compressed records ------------------------------------------------------------------------------------------- */

static enum status begin_unpacking(struct perf_input *input, const struct perf_record *record, struct error *error)
{
    struct cursor cursor = perf_record_body(record);
    input->unpacked.compressed = slice_of(cursor.position, cursor_left(&cursor));
    if (record->type == PERF_RECORD_COMPRESSED2) {
        uint64_t size = cursor_u64(&cursor); /* the record is padded */
        input->unpacked.compressed = cursor_take(&cursor, size);
        if (cursor.failed) return fail(input, STATUS_MALFORMED, "a compressed record is broken", error);
    }
    input->unpacked.is_full = true;
    if (!input->unpacked.stream) input->unpacked.stream = zstd_stream_new();
    if (!input->unpacked.bytes) input->unpacked.bytes = malloc(UNPACKED_BYTES);
    bool has_memory = input->unpacked.stream && input->unpacked.bytes;
    return has_memory ? STATUS_OK : fail(input, STATUS_NO_MEMORY, "not enough memory to decompress", error);
}

static uint64_t unpacked_max(const struct perf_input *input)
{
    uint64_t size = input->source->size;
    uint64_t most = size < UINT64_MAX / PERF_DECOMPRESSED_RATIO_MAX ? size * PERF_DECOMPRESSED_RATIO_MAX : UINT64_MAX;
    return most > PERF_DECOMPRESSED_BYTES_FREE ? most : PERF_DECOMPRESSED_BYTES_FREE;
}

/* Moves what is left to the front and decompresses as much as there is room for. */
static enum status unpack_more(struct perf_input *input, struct error *error)
{
    size_t left = input->unpacked.size - input->unpacked.taken, produced;
    memmove(input->unpacked.bytes, input->unpacked.bytes + input->unpacked.taken, left);
    input->unpacked.size = left;
    input->unpacked.taken = 0;
    size_t room = UNPACKED_BYTES - left;
    if (!zstd_stream_step(input->unpacked.stream, &input->unpacked.compressed, input->unpacked.bytes + left, room,
                          &produced))
        return fail(input, STATUS_MALFORMED, "a compressed record is damaged", error);
    input->unpacked.size += produced;
    input->unpacked.total += produced;
    input->unpacked.is_full = produced == room;
    if (input->unpacked.total > unpacked_max(input))
        return fail(input, STATUS_TOO_LARGE, "the compressed records hold over 256 times the size of the file", error);
    return STATUS_OK;
}

/* The next whole record among the unpacked bytes; of no bytes: there is none. The rest of one may be in the next
 * compressed record. */
static enum status next_unpacked(struct perf_input *input, struct perf_record *ret_record, struct error *error)
{
    for (;;) {
        size_t left = input->unpacked.size - input->unpacked.taken, size = 0;
        struct perf_record record = {0};
        if (left >= PERF_RECORD_HEADER_SIZE) record = record_at(input->unpacked.bytes + input->unpacked.taken, &size);
        if (size > 0 && size < PERF_RECORD_HEADER_SIZE)
            return fail(input, STATUS_MALFORMED, "a record without a size", error);
        if (size > 0 && size <= left) {
            input->unpacked.taken += size;
            *ret_record = record;
            return STATUS_OK;
        }
        if (left >= PERF_RECORD_HEADER_SIZE && size == 0)
            return fail(input, STATUS_MALFORMED, "a record without a size", error);
        *ret_record = (struct perf_record){0};
        if (input->unpacked.compressed.size == 0 && !input->unpacked.is_full) return STATUS_OK;
        enum status status = unpack_more(input, error);
        if (status != STATUS_OK) return status;
    }
}

enum status perf_input_next(struct perf_input *input, struct perf_record *ret_record, struct error *error)
{
    for (;;) {
        enum status status = input->unpacked.stream ? next_unpacked(input, ret_record, error) : STATUS_OK;
        input->is_unpacked = status == STATUS_OK && input->unpacked.stream && ret_record->bytes.size > 0;
        if (status != STATUS_OK || input->is_unpacked) return status;
        status = next_stored(input, ret_record, error);
        bool is_compressed = ret_record->type == PERF_RECORD_COMPRESSED || ret_record->type == PERF_RECORD_COMPRESSED2;
        if (status != STATUS_OK || !is_compressed) return status;
        status = begin_unpacking(input, ret_record, error);
        if (status != STATUS_OK) return status;
    }
}

enum status perf_input_read_again(const struct perf_input *input, uint64_t offset, size_t size, uint8_t *bytes,
                                  struct error *error)
{
    bool is_read = offset <= input->end && size <= input->end - offset &&
                   input->source->read(input->source->context, offset, bytes, size);
    return is_read ? STATUS_OK : error_set(error, STATUS_IO, offset, "the file cannot be read a second time");
}

enum status perf_input_skip(struct perf_input *input, uint64_t size, struct error *error)
{
    if (size > input->end - input->position) return end_early(input, error);
    input->position += size;
    return STATUS_OK;
}
