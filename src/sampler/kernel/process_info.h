/* Questions of the sampler to the kernel about its own process.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PROCESS_INFO_H
#define OFFBEAT_SAMPLER_PROCESS_INFO_H

#include <stdint.h>

/* Random numbers; not for secrets. */
enum { RANDOM_BYTES = 16 };
void process_random_bytes(uint8_t ret_bytes[RANDOM_BYTES]);
uint64_t process_random_number(void);

/* Returns the number of processors that this process may use, at least 1. */
uint32_t process_processor_count(void);

#endif
