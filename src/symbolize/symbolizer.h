/* Gives names to the places of a profile.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_SYMBOLIZER_H
#define OFFBEAT_SYMBOLIZE_SYMBOLIZER_H

#include "profile/profile.h"
#include "symbolize/kernel_names.h"
#include "symbolize/symbol_module_cache.h"

enum { SYMBOLIZER_DEBUG_DIRECTORIES_MAX = 16 };

/* Where names may come from. The caller allows each of them: a server opens no path that a profile names. */
enum symbol_sources {
    SYMBOLS_NONE = 0,             /* nothing is opened */
    SYMBOLS_FILES = 1 << 0,       /* the ELF files that the profile names, and what these name */
    SYMBOLS_DEBUG_FILES = 1 << 1, /* files by build id, in the debug directories */
    SYMBOLS_PERF_MAPS = 1 << 2,   /* maps of JIT compilers */
    SYMBOLS_KERNEL = 1 << 3,      /* /proc/kallsyms, ~/.debug */
    SYMBOLS_DEBUGINFOD = 1 << 4,  /* the servers of DEBUGINFOD_URLS, if it is set (debug_server.h) */
    SYMBOLS_OF_THIS_MACHINE = SYMBOLS_FILES | SYMBOLS_DEBUG_FILES | SYMBOLS_PERF_MAPS | SYMBOLS_KERNEL,
};

struct symbolizer_options {
    unsigned sources;                                                /* bits of enum symbol_sources */
    const char *debug_directories[SYMBOLIZER_DEBUG_DIRECTORIES_MAX]; /* directories before /usr/lib/debug */
    size_t debug_directory_count;
    const char *map_directory; /* folder of ours with maps of JIT compilers, maps/perf-PID.map; NULL: there is none */
    /* The profile was recorded on this machine: a file that it names without a build id is used, too. Without that only
     * a matching build id lets a file in, because anybody can write a path into a profile. */
    bool trusts_paths;
    struct symbol_module_cache *modules; /* modules kept for the next profile; NULL: none are kept */
    struct kernel_symbols *kernel;       /* symbols that a thread reads already; may be NULL */
    void (*progress)(void *context, size_t done, size_t all); /* progress in locations; may be NULL */
    debug_server_progress fetch_progress; /* progress in bytes of a file from a server; may be NULL */
    void *context;
};

struct symbolizer_result {
    size_t locations;                    /* locations without lines */
    size_t named;                        /* locations named by DWARF, a symbol table, or a JIT compiler */
    size_t by_boundary;                  /* locations named by the start of their function: "libx.so.1+0x1234" */
    size_t files_missing, files_changed; /* mappings whose file is gone, or has another build id than was recorded */
    size_t files_unproven;               /* mappings without a build id, whose file was not used */
};

/* Adds lines to each location without lines, if it is in a mapping or if /tmp/perf-PID.map names its code (of a JIT
 * compiler). PID is the process of the mapping, or else the fact "pid" of PROFILE. Files with another build id than the
 * mapping's are not used; see trusts_paths. The names of large files are cached (doc/formats/symbol-index.md).
 * RET_RESULT may be NULL. OPTIONS may be NULL, which allows the sources of this machine. Fails only if there is no
 * memory: unknown addresses remain unnamed.
 */
enum status symbolize_profile(struct profile *profile, const struct symbolizer_options *options,
                              struct symbolizer_result *ret_result, struct error *error);

/* Gives each mapping without build id and debug id the debug id that Sentry's SDKs make of the file's code, so that its
 * frames are in an image (FMT-9, facts §3.5). A file that cannot be read has none. Reads files that PROFILE names: for
 * recordings of this machine. */
void contents_ids_give(struct profile *profile);

#endif
