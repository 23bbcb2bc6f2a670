/* Finds the debug information that a distribution keeps apart from the program.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DEBUG_FILE_H
#define OFFBEAT_SYMBOLIZE_DEBUG_FILE_H

#include "binary/elf_file.h"

/* Where to look, in this order. */
struct debug_directories {
    const char *const *items;
    size_t count;
};

/* Opens DIRECTORY/.build-id/ab/cdef….debug for a build id in hex. The file found bears that build id. */
bool debug_file_open_by_build_id(struct elf_file *file, const char *build_id,
                                 const struct debug_directories *directories);

/* Opens what STRIPPED, which was opened at PATH, names in .gnu_debuglink: beside it, in .debug beside it, or under one
 * of DIRECTORIES. The file found bears the build id of STRIPPED or, where that has none, the checksum of the link. */
bool debug_file_open_by_link(struct elf_file *file, const struct elf_file *stripped, const char *path,
                             const struct debug_directories *directories);

/* Opens what DEBUG names in .gnu_debugaltlink, by its build id under one of DIRECTORIES or by its name, which is
 * absolute or relative to where DEBUG is. dwz puts there what several debug files share. The file found bears the
 * build id named. False if there is none. */
bool debug_file_open_alternate(struct elf_file *file, const struct elf_file *debug,
                               const struct debug_directories *directories);

#endif
