/* Names for places in the kernel.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_KERNEL_NAMES_H
#define OFFBEAT_SYMBOLIZE_KERNEL_NAMES_H

#include "profile/profile.h"

#define KERNEL_MAPPING "[kernel.kallsyms]" /* the kernel without its modules, as perf calls it */

enum { KERNEL_SYMBOLS_BYTES_MAX = 256 << 20, KERNEL_BUILD_ID_SIZE = 129 /* 64 bytes in hex, and a NUL */ };

/* Finds the build id of the running kernel, in hex. False if the kernel does not say it. */
bool kernel_build_id(char ret_hex[KERNEL_BUILD_ID_SIZE]);

/* The symbols of one kernel. */
struct kernel_symbols;

/* Begins to read them on a thread: the kernel takes its time to write them. NULL without memory or thread. */
struct kernel_symbols *kernel_symbols_begin(const char *build_id);
void kernel_symbols_end(struct kernel_symbols *symbols); /* accepts NULL */

/* Names the places without lines in the kernel that PROFILE was recorded on, if that is the kernel of this machine (its
 * build id is the mapping's; TRUSTS_IT: or the mapping has none), or if perf stored its symbols in ~/.debug. A kernel
 * that was started again since is at another address, which is taken into account; its modules are not named then.
 * BEGUN may be NULL; it is used if it has the symbols of that kernel. *RET_NAMED is how many places have a name now.
 * Fails only for want of memory. */
enum status kernel_names_give(struct profile *profile, struct kernel_symbols *begun, bool trusts_it, size_t *ret_named,
                              struct error *error);

#endif
