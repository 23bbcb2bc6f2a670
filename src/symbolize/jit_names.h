/* Names of code that a program made while it ran (a JIT compiler's), from the file that it wrote for profilers:
 * /tmp/perf-PID.map, a line a function: START SIZE NAME, the numbers in hex. Or a jitdump, which a recorder from
 * outside finds by its mapping jit-PID.dump: a header, and a record a function, with its code. SPDX-License-Identifier:
 * MIT */
#ifndef OFFBEAT_SYMBOLIZE_JIT_NAMES_H
#define OFFBEAT_SYMBOLIZE_JIT_NAMES_H

#include "base/buffer.h"

enum {
    JIT_MAP_BYTES_MAX = 512 << 20,
    JIT_NAME_BYTES_MAX = 4096,
    JIT_MATCHES_MAX = 1 << 28, /* pairs of a function and an address in it; later ones are ignored */
};

/* {0} is valid and empty. */
struct jit_names {
    struct buffer bytes;     /* bytes of the file */
    const char **by_address; /* a name for each address that was asked for, or NULL */
    size_t matches;
};

/* Finds the functions that hold COUNT ascending ADDRESSES. JIT compilers move and delete code: if several functions
 * have the same address, the last one in the file counts. A file that is not regular, belongs to neither us nor root,
 * is larger than the maximum, or was last written before NOT_BEFORE (seconds since 1970: an earlier process had that
 * number) gives no names; nor do lines that are broken. Names end at JIT_NAME_BYTES_MAX; control characters in them
 * become '?'. False if memory is short. */
bool jit_names_find(struct jit_names *names, const char *path, int64_t not_before, const uint64_t *addresses,
                    size_t count);

/* The same for the file at PATH in a folder of ours, or a link there: the recorder has checked its owner and its time.
 * Returns false, with nothing to free, if it cannot be opened or memory is short. */
bool jit_names_find_kept(struct jit_names *names, const char *path, const uint64_t *addresses, size_t count);

/* A place at the end of NAME, as V8 writes it: "JS:*name /path/to/file.js:12:3". False if there is none. */
bool jit_name_place(const char *name, struct slice *ret_file, int64_t *ret_line);

void jit_names_fini(struct jit_names *names);

#endif
