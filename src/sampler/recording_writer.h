/* Writes a recording (format/recording/recording_layout.h): records gather in a buffer, a batch is one write(2).
 * Belongs to the sampler thread. When a batch cannot be written (disk full) the recording breaks off there, because
 * later values are written as differences; what is lost is counted, and only the last batch is tried
 * again. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RECORDING_WRITER_H
#define OFFBEAT_SAMPLER_RECORDING_WRITER_H

#include "format/recording/recording_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recording_writer {
    char path[4096];
    int descriptor; /* -1: opened for each batch, because the program could close it or take its number */
    bool keeps_descriptor;
    bool is_created, is_broken_off;
    uint64_t bytes_lost;
    struct recording_followers followers;
    size_t size, batch_start; /* of what the buffer holds; where its last batch begins */
    uint8_t buffer[RECORDING_BATCH_MAX];
};

/* The file appears with the first flush. */
void recording_writer_init(struct recording_writer *writer, const char *path, bool keeps_descriptor);
void recording_writer_flush(struct recording_writer *writer);
/* The records so far are their own batch; a later flush writes it. If the process is killed during that write, the
 * kernel keeps only the first pages, and a reader keeps only whole batches. */
void recording_writer_end_batch(struct recording_writer *writer);
/* Flushes and closes the file, which a later flush opens again by its path; or DESCRIPTOR, if it is not negative, is
 * the file from now on. */
void recording_writer_release(struct recording_writer *writer);
void recording_writer_resume(struct recording_writer *writer, int descriptor, bool keeps_descriptor);
/* Writes what was begun since the last flush, even of a recording that broke off: let it be only what needs nothing
 * that came before. */
void recording_writer_close(struct recording_writer *writer);

/* Starts a record, flushing first if less than ROOM bytes are left. */
void recording_begin(struct recording_writer *writer, enum recording_kind kind, size_t room);
void recording_number(struct recording_writer *writer, uint64_t number);
void recording_signed(struct recording_writer *writer, int64_t number);
void recording_bytes(struct recording_writer *writer, const void *bytes, size_t size); /* without their length */
void recording_text(struct recording_writer *writer, const void *text, size_t size);

/* The thread's last sample, to write the next one as a difference. */
struct recording_stack {
    uint32_t count;
    uint64_t addresses[RECORDING_FRAMES_MAX];
};
/* Adds RECORDING_SAMPLE. LAST is brought up to date. */
void recording_sample(struct recording_writer *writer, uint32_t thread, struct recording_time time, uint32_t flags,
                      const uint64_t *addresses, size_t count, struct recording_stack *last);
void recording_time(struct recording_writer *writer, struct recording_time time);

#endif
