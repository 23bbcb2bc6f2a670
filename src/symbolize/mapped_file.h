/* The file of a mapping of a profile, and the place of its addresses in the file.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_MAPPED_FILE_H
#define OFFBEAT_SYMBOLIZE_MAPPED_FILE_H

#include "profile/profile.h"
#include "symbolize/symbol_module.h"

/* False for anonymous memory and for what the kernel names in brackets, except the vdso, which is a file in memory. */
bool mapping_has_file(const struct profile *profile, const struct mapping *mapping);

/* Whether the profile says where the file was in memory. The text of perf has only the file's name. */
bool mapping_has_place(const struct mapping *mapping);

/* The build id that the file must have; of a mapping with only a debug id, the start of it. May add a string. */
struct string_id mapping_build_id(struct profile *profile, const struct mapping *mapping);

/* The address that the file itself gives to ADDRESS in MAPPING. Without the loaded file, whose segments say it, only a
 * profile that says where the image began can be followed. False if the address is not in the file. */
bool mapping_file_address(const struct symbol_module *module, const struct mapping *mapping, uint64_t address,
                          uint64_t *ret_address);

#endif
