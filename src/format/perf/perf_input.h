/* The records of a perf.data file one after the other, decompressed. A window moves over the file: a file of any size
 * takes the same memory.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_INPUT_H
#define OFFBEAT_FORMAT_PERF_PERF_INPUT_H

#include "base/compression.h"
#include "base/status.h"
#include "format/perf/perf_record.h"

/* READ copies SIZE bytes at OFFSET; false if they cannot be read. */
struct perf_source {
    bool (*read)(void *context, uint64_t offset, void *bytes, size_t size);
    void *context;
    uint64_t size;
};

enum {
    PERF_INPUT_WINDOW_BYTES = 1 << 18,
    PERF_RECORD_BYTES_MAX = 1 << 16,
    PERF_DECOMPRESSED_RATIO_MAX = 256, /* as base/compression.h has it for whole files */
    PERF_DECOMPRESSED_BYTES_FREE = 16 << 20,
};

struct perf_input {
    const struct perf_source *source;
    uint64_t position, end; /* offsets in the file */
    bool may_be_cut;        /* perf was killed: the last record need not be whole */
    struct {
        uint8_t *bytes;
        uint64_t start; /* offset in the file */
        size_t size;
    } window;
    struct {
        struct zstd_stream *stream;
        struct slice compressed; /* rest of the record, in the window */
        bool is_full;            /* the output was full, so the stream may hold more */
        uint8_t *bytes;
        size_t size, taken;
        uint64_t total;
    } unpacked;
    uint64_t record_offset; /* offset of the last record, or of the one that it was compressed in */
    bool is_unpacked;       /* the last record was compressed */
};

/* Records from START to END of SOURCE. STATUS_NO_MEMORY. Finish it in every case. */
enum status perf_input_init(struct perf_input *input, const struct perf_source *source, uint64_t start, uint64_t end);
void perf_input_fini(struct perf_input *input); /* accepts {0} */

/* The next record, valid until the next call; it has no bytes at the end. */
enum status perf_input_next(struct perf_input *input, struct perf_record *ret_record, struct error *error);

/* Copies the start of the record that was at OFFSET, SIZE bytes. */
enum status perf_input_read_again(const struct perf_input *input, uint64_t offset, size_t size, uint8_t *bytes,
                                  struct error *error);

/* Passes over SIZE bytes that follow the last record and are not part of it. */
enum status perf_input_skip(struct perf_input *input, uint64_t size, struct error *error);

#endif
