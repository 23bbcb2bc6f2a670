/* Names out of symbol tables alone: for want of the helper, in the watched process itself.  SPDX-License-Identifier:
 * MIT */
#ifndef OFFBEAT_CHUNK_SYMBOL_NAMES_H
#define OFFBEAT_CHUNK_SYMBOL_NAMES_H

#include "profile/profile.h"

/* Names every location without lines that lies in a file with symbols, as the linker knows them (C++ stays mangled). A
 * file whose build id is not the mapping's is not used. */
void symbol_names_add(struct profile *profile);

#endif
