/* Finds the debug information that a distribution keeps apart from the program.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DEBUG_FILE_H
#define OFFBEAT_SYMBOLIZE_DEBUG_FILE_H

#include "binary/elf_file.h"
#include "symbolize/debug_server.h"

/* Where debug files may come from: directories, in this order, and then the servers of DEBUGINFOD_URLS. */
struct debug_sources {
    const char *const *items;
    size_t count;
    struct debug_server *server; /* NULL: no server is asked */
    bool opens_no_path;          /* no path that a profile or an ELF file names is opened; it may be anybody's */
};

/* Opens DIRECTORY/.build-id/ab/cdef….debug for a build id in hex. The file found bears that build id. */
bool debug_file_open_by_build_id(struct elf_file *file, const char *build_id, const struct debug_sources *sources);

/* Opens the debug file of a build id in hex that a server has. */
bool debug_file_open_from_server(struct elf_file *file, const char *build_id, const struct debug_sources *sources);

/* Opens what STRIPPED, which was opened at PATH, names in .gnu_debuglink: beside it, in .debug beside it, or under one
 * of DIRECTORIES. The file found bears the build id of STRIPPED or, where that has none, the checksum of the link. */
bool debug_file_open_by_link(struct elf_file *file, const struct elf_file *stripped, const char *path,
                             const struct debug_sources *sources);

/* Opens what DEBUG names in .gnu_debugaltlink, by its build id under one of the directories of SOURCES or by its name,
 * which is absolute or relative to where DEBUG is. dwz puts there what several debug files share. The file found bears
 * the build id named. False if there is none. */
bool debug_file_open_alternate(struct elf_file *file, const struct elf_file *debug,
                               const struct debug_sources *sources);

#endif
