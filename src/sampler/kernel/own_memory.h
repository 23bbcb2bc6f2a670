/* Memory of this process; own_descriptors.c keeps its file open. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_OWN_MEMORY_H
#define OFFBEAT_SAMPLER_OWN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Copies memory of this process, which may vanish at any time, and returns the number of bytes from ADDRESS on that
 * could be read. Uses /proc/self/mem, which needs no call that a filter could object to, or else process_vm_readv. */
size_t process_read_memory(uint64_t address, void *buffer, size_t size);

#endif
