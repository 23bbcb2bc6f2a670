/* Names from uploaded debug files (doc/decisions/symbolication.md).
 *
 * One lock protects the names in memory and the list of files that are read now. It is held only to look into memory:
 * never while a process reads a debug file, nor over a call of the store. Queries that need the same file wait for one
 * process; what is in memory is found meanwhile.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_SYMBOLICATION_H
#define OFFBEAT_SERVE_SYMBOLICATION_H

#include "profile/profile.h"
#include "serve/symbol_answer.h"
#include "serve/symbol_reader.h"
#include "store/debug_files.h"

/* Processes that read debug files for queries at the same time, in all and of one project. One more reads for uploads.
 */
enum { SYMBOLS_READERS_MAX = 3, SYMBOLS_PROJECT_READERS_MAX = 2 };

struct symbols; /* for all threads */

struct symbol_counts {
    uint64_t named, asked, failed; /* places that were named; processes that were started, and of these that failed */
};

typedef void symbols_log(void *context, const char *text);

/* PROGRAM: of the process that reads debug files. NULL without memory. IS_ENDING: ends it when it becomes true. */
struct symbols *symbols_new(struct store *store, const char *program, const atomic_bool *is_ending, symbols_log *log,
                            void *context);
void symbols_free(struct symbols *symbols); /* accepts NULL */

/* Waiting for a slow debug file (SYMBOL_READER_PATIENCE_MS): WAIT is called again and again, and anything but
 * STATUS_OK ends symbols_name with it. IS_READER: others may wait for the file, which is read for this query; its
 * process is ended then. */
struct symbols_waiter {
    enum status (*wait)(void *context, bool is_reader, struct error *error);
    void *context;
};

/* Names the locations of PROFILE that have no functions, as far as PROJECT has the debug files of their images. A file
 * that cannot be read leaves them as they are. Fails only without memory, if WAITER ends it, and
 * with STATUS_IO if the server ends meanwhile. SYMBOLS and WAITER may
 * be NULL. */
enum status symbols_name(struct symbols *symbols, uint64_t project, struct profile *profile,
                         const struct symbols_waiter *waiter, struct error *error);

/* Reads a debug file that was not added yet, and leaves its symbol index at the path INDEX. */
enum status symbols_check(struct symbols *symbols, int file, const char *index, struct symbol_file *ret_file,
                          struct error *error);

void symbols_count(const struct symbols *symbols, struct symbol_counts *ret_counts);

#endif
