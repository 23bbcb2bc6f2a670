/* Where indexes of names are kept from one run to the next: a file a build id, in a folder of the user's.
 *
 * The folder is $OFFBEAT_CACHE_DIRECTORY, else $XDG_CACHE_HOME/offbeat, else ~/.cache/offbeat; each only if it is
 * absolute. Where it cannot be made or belongs to somebody else, nothing is kept.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_INDEX_STORE_H
#define OFFBEAT_SYMBOLIZE_INDEX_STORE_H

#include "symbolize/symbol_index.h"

#include <limits.h>

enum {
    INDEX_STORE_FILES_MAX = 4096,
    /* Below that, to build an index is as fast as to read it: bytes of debug information and symbols. */
    INDEX_STORE_WORTH_BYTES = 1 << 20,
};

/* All indexes together; those that were not used for the longest time go first. */
#define INDEX_STORE_BYTES_MAX ((uint64_t)1 << 30)

/* The folder, made if it was not there. False if it cannot be made, or belongs to somebody else. */
bool index_store_folder(char ret_folder[PATH_MAX]);

/* Removes the files that were not used for the longest time, and frame tables of the sampler (*.frames). */
void index_store_make_room(void);

/* Opens the kept index of BUILD_ID (hex). False if there is none that was built from INPUTS. */
bool index_store_open(struct symbol_index *index, const char *build_id,
                      const struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS]);

/* Keeps INDEX, which was built, if it can be kept. */
void index_store_keep(const struct symbol_index *index, const char *build_id);

#endif
