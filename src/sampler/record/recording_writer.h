/* Writes a recording (format/recording/recording_layout.h): records gather in a buffer, and a batch is one write(2).
 * The sampler inside a process uses it, and a recorder outside of the process can (test/unit/test_recording.c has one).
 *
 * The order: recording_process() once; recording_module() and recording_thread() before a sample needs them; for each
 * tick recording_tick() and the samples; at the end recording_stop() and recording_writer_close().
 *
 * One thread at a time uses a writer. No function allocates or calls libc. When a batch cannot be written (disk full)
 * the recording breaks off there, because later values are written as differences; lost bytes are counted, and only
 * the last batch is tried again. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RECORDING_WRITER_H
#define OFFBEAT_SAMPLER_RECORDING_WRITER_H

#include "format/recording/recording_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct recording_writer {
    char path[4096];
    int descriptor; /* -1: opened for each batch, because the program could close it or take its number */
    bool keeps_descriptor;
    bool is_created, is_broken_off;
    uint64_t bytes_lost;
    struct recording_followers followers;
    size_t size, batch_start; /* bytes in the buffer, and the offset of its last batch */
    uint8_t buffer[RECORDING_BATCH_MAX];
};

/* Prepares a file that appears with the first flush. */
void recording_writer_init(struct recording_writer *writer, const char *path, bool keeps_descriptor);
void recording_writer_flush(struct recording_writer *writer);
/* Flushes and closes the file, which a later flush opens again by its path. */
void recording_writer_release(struct recording_writer *writer);
/* Continues with DESCRIPTOR, if it is not negative, as the file. */
void recording_writer_resume(struct recording_writer *writer, int descriptor, bool keeps_descriptor);
/* Writes all records since the last flush, even of a recording that broke off: they must not depend on earlier ones. */
void recording_writer_close(struct recording_writer *writer);

/* --- Processes, modules, threads and ticks ------------------------------------------------------------------------ */

struct recording_process {
    pid_t pid, parent_pid;
    enum recording_mode mode;
    uint64_t period_ns;
    int64_t wall_offset_ns;     /* wall clock minus CLOCK_MONOTONIC */
    uint64_t start_ns;          /* CLOCK_MONOTONIC */
    const uint8_t *profiler_id; /* RECORDING_PROFILER_ID_SIZE bytes */
    const char *name, *path;    /* name of the process, path of the program */
};
/* Writes the first record. A recording without it cannot be read, so it is a batch of its own: if the process is killed
 * during a write, the kernel keeps only the first pages, and a reader keeps only whole batches. */
void recording_process(struct recording_writer *writer, const struct recording_process *process);

/* An executable segment of a file in memory. Numbers count up from 0 and are not used again. */
struct recording_module {
    uint32_t number;
    uint64_t start, end, file_offset;
    uint64_t image_start, image_size, image_vmaddr; /* range from the first loaded byte of the file to the last one */
    const uint8_t *build_id;
    size_t build_id_size; /* bytes, at most RECORDING_BUILD_ID_MAX; 0: it has none */
    const char *path;
};
void recording_module(struct recording_writer *writer, const struct recording_module *module);
void recording_module_gone(struct recording_writer *writer, uint32_t number);

/* Writes a thread, and again when its name changes. Numbers count up from 0 and are not used again. */
void recording_thread(struct recording_writer *writer, uint32_t number, pid_t tid, const char *name);
void recording_thread_gone(struct recording_writer *writer, uint32_t number);

/* Writes what is known of the process. KEY is a name of metadata; at most 64 of them. */
void recording_label(struct recording_writer *writer, const char *key, const char *value);

/* A function that an interpreter runs, and a line of one. Numbers count up from 0. */
void recording_interpreter(struct recording_writer *writer, enum recording_interpreter state, const char *name);
void recording_function(struct recording_writer *writer, uint32_t number, uint32_t first_line, const char *name,
                        const char *file);
void recording_line(struct recording_writer *writer, uint32_t number, uint32_t function, uint32_t line);

/* Begins a tick, ELAPSED_NS after the previous one or the start. */
void recording_tick(struct recording_writer *writer, uint64_t elapsed_ns);
/* Writes the counters (enum recording_counter), all since the start. */
void recording_counters(struct recording_writer *writer, const uint64_t counters[RECORDING_COUNTER_COUNT]);
/* Writes the CPU time of the process since it began, and how much of its memory is resident, bytes. */
void recording_usage(struct recording_writer *writer, uint64_t cpu_ns, uint64_t resident_bytes);
/* Marks the recording as complete. */
void recording_stop(struct recording_writer *writer);

/* --- Other records, field by field -------------------------------------------------------------------------------- */

/* Starts a record, flushing first if less than ROOM bytes are left. */
void recording_begin(struct recording_writer *writer, enum recording_kind kind, size_t room);
void recording_number(struct recording_writer *writer, uint64_t number);
void recording_signed(struct recording_writer *writer, int64_t number);
void recording_bytes(struct recording_writer *writer, const void *bytes, size_t size); /* without their length */
void recording_text(struct recording_writer *writer, const void *text, size_t size);

/* --- Samples ------------------------------------------------------------------------------------------------------ */

/* The thread's last sample, to write the next one as a difference. */
struct recording_stack {
    uint32_t count;
    uint64_t addresses[RECORDING_FRAMES_MAX];
};
/* Adds the stack ADDRESSES, the innermost first, to the open tick: THREAD spent TIME since its last record there.
 * FLAGS: see RECORDING_SAMPLE. LAST, zeros before the first sample of THREAD, is updated. */
void recording_sample(struct recording_writer *writer, uint32_t thread, struct recording_time time, uint32_t flags,
                      const uint64_t *addresses, size_t count, struct recording_stack *last);
void recording_time(struct recording_writer *writer, struct recording_time time);

#endif
