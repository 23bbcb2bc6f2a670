/* Source files, found by the paths in debug information, which are paths of the machine that built the program.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_SOURCE_FILE_H
#define OFFBEAT_SYMBOLIZE_SOURCE_FILE_H

#include "base/buffer.h"
#include "base/index_table.h"
#include "base/status.h"

enum {
    SOURCE_BYTES_MAX = 64 << 20,   /* bytes of one file */
    SOURCE_LINES_MAX = 4 << 20,    /* lines of one file */
    SOURCES_BYTES_MAX = 512 << 20, /* bytes of all files of a report */
    SOURCES_MAX = 1 << 16,         /* files of a report */
};

/* Where to look. Both are lists separated by ":", as in $PATH; NULL or "": none. */
struct source_search {
    const char *folders;
    const char *trimmed; /* prefixes that are removed from a path before it is looked for */
    /* Look only where pprof does. Else a file is looked for in FOLDERS by each shorter end of its path, too:
     * /build/x/src/a.c in DIR as DIR/build/x/src/a.c, DIR/x/src/a.c, DIR/src/a.c, DIR/a.c. */
    bool is_pprof;
    /* Returns whether the file at PATH may be opened wherever it is. NULL: only files below FOLDERS and below the
     * current folder are opened, because a profile may name any file. */
    bool (*is_proven)(void *context, const char *path);
    void *context;
};

struct source_file {
    char *path; /* path as debug information has it */
    enum status status;
    struct error error; /* reason why it was not read */
    struct buffer bytes;
    ARRAY_OF(uint32_t) line_starts;
};

/* Files that were read or looked for in vain. {.search = …} is valid and empty. */
struct source_files {
    struct source_search search;
    struct source_file **items;
    size_t count, capacity;
    struct index_table index; /* table of the items by path */
    size_t bytes_read;
};

/* The file that debug information calls PATH, valid until source_files_fini. Only regular files without NUL bytes are
 * read, and only from where SEARCH allows it: links are followed before that is checked. The current folder "/" allows
 * nothing. NULL without memory. */
const struct source_file *source_files_find(struct source_files *files, const char *path);
void source_files_fini(struct source_files *files);

/* Line NUMBER, from 1 on, without its end. False if there is none. */
bool source_line(const struct source_file *file, int64_t number, struct slice *ret_line);

/* PATH without the first of TRIMMED or of pprof's own prefixes that it begins with. */
const char *source_path_trimmed(const struct source_search *search, const char *path);

#endif
