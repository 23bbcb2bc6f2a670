/* The process that reads a debug file: one for each request, without a file system, a network or much time.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_SYMBOL_READER_H
#define OFFBEAT_SERVE_SYMBOL_READER_H

#include "base/buffer.h"
#include "base/clocks.h"
#include "base/status.h"

#include <stdatomic.h>

/* Its maxima. */
#define SYMBOL_READER_MEMORY_MAX ((uint64_t)2 << 30)
#define SYMBOL_READER_INDEX_MAX ((uint64_t)2 << 30)
enum { SYMBOL_READER_CPU_SECONDS = 120, SYMBOL_READER_SECONDS = 240 };
/* After this time, reading a debug file is slow. */
enum { SYMBOL_READER_PATIENCE_MS = 1000, SYMBOL_READER_POLL_MS = 200 };

/* Descriptors of the process after the standard ones. */
enum { SYMBOL_READER_FILE = 3, SYMBOL_READER_KEPT, SYMBOL_READER_INTO };

/* The argument that makes `offbeat` this process. */
#define SYMBOL_READER_ARGUMENT "--read-symbols"

struct symbol_reader {
    const char *program;          /* the path of offbeat */
    const atomic_bool *is_ending; /* true: the process is ended */
    int file, kept, into;         /* open files: the debug file; its symbol index for reading and for writing */
    /* Called again and again while the process is slow; anything but STATUS_OK ends it. May be NULL. */
    enum status (*wait)(void *context, struct error *error);
    void *context;
};

/* Appends the answer to REQUEST (serve/symbol_answer.h) to ANSWER. STATUS_MALFORMED if the process crashed or needed
 * more than its maxima; STATUS_IO if it could not be started or was ended with the server; what WAIT returned. */
enum status symbol_reader_ask(const struct symbol_reader *reader, struct slice request, struct buffer *answer,
                              struct error *error);

static inline uint64_t monotonic_ms(void)
{
    return clock_monotonic_ns() / MILLISECOND_NS;
}

#endif
