/* SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_FOUND_STACK_H
#define OFFBEAT_SAMPLER_FOUND_STACK_H

#include <stddef.h>
#include <stdint.h>

struct found_stack {
    const uint64_t *addresses;
    size_t count;
    uint32_t flags; /* enum unwind_outcome | RECORDING_WITHOUT_SIGNAL */
};

#endif
