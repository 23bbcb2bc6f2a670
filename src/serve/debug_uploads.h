/* Debug files arrive: what sentry-cli and `offbeat upload-debug` send.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_DEBUG_UPLOADS_H
#define OFFBEAT_SERVE_DEBUG_UPLOADS_H

#include "serve/serve_private.h"
#include "serve/symbolication.h"
#include "store/debug_files.h"

enum {
    DEBUG_REQUEST_BYTES_MAX = 16 << 20, /* bytes of the chunks in a form */
    DEBUG_CHUNKS_PER_REQUEST = 32,
    DEBUG_CONCURRENCY = 4,
    DEBUG_ASSEMBLE_BYTES_MAX = 4 << 20, /* bytes of the JSON that asks for assembly */
    DEBUG_ASSEMBLE_FILES_MAX = 1000,
    DEBUG_JOBS_MAX = 1024, /* files that wait to be joined and read, and those that failed */
};
#define DEBUG_FILE_BYTES_MAX ((uint64_t)2 << 30)

/* A thread that joins files from their chunks and has them read once, before they are added. */
struct assembler;

/* NULL without memory or a thread. */
struct assembler *assembler_start(struct store *store, struct symbols *symbols);
void assembler_stop(
    struct assembler *assembler); /* files that wait are not lost: their chunks are on disk; accepts NULL */

struct assembly {
    struct store_debug_file file; /* PROJECT, CHECKSUM and NAME */
    uint64_t scope;
    char wanted_image[STORE_IMAGE_SIZE]; /* "": any */
    size_t chunk_count;
    char chunks[STORE_DEBUG_CHUNKS_MAX][SHA1_TEXT_SIZE];
};

enum assembly_state { ASSEMBLY_UNKNOWN, ASSEMBLY_WAITS, ASSEMBLY_FAILED };

/* Returns the state of the file. A failure is reported once: then the file may be sent again. */
enum assembly_state assembler_find(struct assembler *assembler, uint64_t project, const char *checksum,
                                   char *ret_detail, size_t detail_size);
/* False if too many wait, or without memory. */
bool assembler_add(struct assembler *assembler, const struct assembly *assembly);

#endif
