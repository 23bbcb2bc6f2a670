/* Shared parts of debug_files.c and debug_chunks.c.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_DEBUG_PRIVATE_H
#define OFFBEAT_STORE_DEBUG_PRIVATE_H

#include "store/debug_files.h"
#include "store/store_private.h"

#include <stdlib.h>

enum { DEBUG_PATH_SIZE = STORE_DEBUG_PATH_SIZE };

/* Makes the tables that are missing, and removes what a killed server left. */
enum status debug_open(struct store *store, struct error *error);

/* Copies the debug files of the store in FOLDER to the new one in TARGET; not their symbol indexes. */
enum status debug_back_up(const char *folder, const char *target, struct error *error);

void debug_sweep_chunks(struct store *store);
void debug_expire_chunks(struct store *store, uint64_t now_ns);
void debug_remove_chunks(struct store *store, const struct store_debug_parts *parts);

#endif
