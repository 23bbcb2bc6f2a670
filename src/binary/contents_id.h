/* An id for ELF files without a build id (facts §3.5).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BINARY_CONTENTS_ID_H
#define OFFBEAT_BINARY_CONTENTS_ID_H

#include "binary/debug_id.h"
#include "binary/elf_file.h"

/* 32 hex digits computed from the file's code, and a NUL. False if FILE has a build id, or no code. */
bool contents_id_of(const struct elf_file *file, char ret_hex[BUILD_ID_START_SIZE]);

#endif
