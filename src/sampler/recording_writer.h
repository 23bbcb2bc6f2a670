/* Writes a recording (format/recording_layout.h): records gather in a buffer, a batch is one write(2). Belongs to the
 * sampler thread. A batch that cannot be written (disk full) is dropped, counted, and tried no more until the next.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RECORDING_WRITER_H
#define OFFBEAT_SAMPLER_RECORDING_WRITER_H

#include "format/recording_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recording_writer {
    char path[4096];
    int descriptor; /* -1: opened for each batch, because the program could close it or take its number */
    bool keeps_descriptor;
    bool created;
    uint64_t bytes_written;
    uint64_t bytes_lost;
    size_t size;
    uint8_t buffer[RECORDING_BATCH_MAX];
};

/* The file appears with the first flush. */
void recording_writer_init(struct recording_writer *writer, const char *path, bool keeps_descriptor);
void recording_writer_flush(struct recording_writer *writer);
void recording_writer_close(struct recording_writer *writer); /* flushes */

/* Starts a record, flushing first if less than ROOM bytes are left. */
void recording_begin(struct recording_writer *writer, enum recording_kind kind, size_t room);
void recording_number(struct recording_writer *writer, uint64_t number);
void recording_signed(struct recording_writer *writer, int64_t number);
void recording_bytes(struct recording_writer *writer, const void *bytes, size_t size); /* without their length */
void recording_text(struct recording_writer *writer, const void *text, size_t size);

/* The thread's last sample, to tell the next one by its difference. */
struct recording_stack {
    uint32_t count;
    uint64_t addresses[RECORDING_FRAMES_MAX];
};
/* Adds RECORDING_SAMPLE or RECORDING_CPU_SAMPLE; WEIGHT is ticks or nanoseconds. LAST is brought up to date. */
void recording_sample(struct recording_writer *writer, enum recording_kind kind, uint32_t thread, uint64_t weight,
                      uint32_t flags, const uint64_t *addresses, size_t count, struct recording_stack *last);

#endif
