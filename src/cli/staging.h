/* Holds the bytes of several files until all of them can be written.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_STAGING_H
#define OFFBEAT_CLI_STAGING_H

#include "base/buffer.h"
#include "base/status.h"

/* It keeps STAGING_MEMORY_BYTES_MAX bytes in memory and further ones in an unnamed file. All members are private,
 * except count. */
struct staging {
    struct buffer memory;
    int descriptor; /* -1 = none yet */
    uint64_t file_size;
    struct staged {
        bool is_in_file;
        uint64_t offset, size;
    } * items;
    size_t count, capacity;
};

enum { STAGING_MEMORY_BYTES_MAX = 16 << 20, STAGING_ITEMS_MAX = 10000 };

void staging_init(struct staging *staging);
void staging_fini(struct staging *staging);
/* FOLDER is where the file without a name is created; a file system that has none of these gives memory instead. */
enum status staging_add(struct staging *staging, const char *folder, struct slice bytes, struct error *error);
/* The bytes of item NUMBER, which are STAGING's, or else in SCRATCH. */
enum status staging_get(const struct staging *staging, size_t number, struct buffer *scratch, struct slice *ret_bytes,
                        struct error *error);

#endif
