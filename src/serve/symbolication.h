/* Names from uploaded debug files (doc/decisions/symbolication.md).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_SYMBOLICATION_H
#define OFFBEAT_SERVE_SYMBOLICATION_H

#include "profile/profile.h"
#include "serve/symbol_answer.h"
#include "serve/symbol_reader.h"
#include "store/debug_files.h"

enum {
    SYMBOLS_IMAGES_MAX = 4096,          /* whose names are in memory */
    SYMBOLS_CACHE_BYTES_MAX = 64 << 20, /* of them, about */
};

struct symbols; /* for all threads */

struct symbol_counts {
    uint64_t named, asked, failed; /* places that were named; processes that were started, and of these that failed */
};

typedef void symbols_log(void *context, const char *text);

/* PROGRAM: of the process that reads debug files. NULL without memory. IS_ENDING: ends it when it becomes true. */
struct symbols *symbols_new(struct store *store, const char *program, const atomic_bool *is_ending, symbols_log *log,
                            void *context);
void symbols_free(struct symbols *symbols); /* accepts NULL */

/* Names the locations of PROFILE that have no functions, as far as PROJECT has the debug files of their images. A file
 * that cannot be read leaves them as they are. Fails only without memory. SYMBOLS may be NULL. */
enum status symbols_name(struct symbols *symbols, uint64_t project, struct profile *profile, struct error *error);

/* Reads a debug file that was not added yet, and leaves its symbol index at the path INDEX. */
enum status symbols_check(struct symbols *symbols, int file, const char *index, struct symbol_file *ret_file,
                          struct error *error);

void symbols_count(const struct symbols *symbols, struct symbol_counts *ret_counts);

#endif
