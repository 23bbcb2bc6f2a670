/* A module to be loaded and unloaded; each of its copies computes something else. SPDX-License-Identifier: MIT */
#include <stdint.h>

__attribute__((noinline)) static uint64_t descend(unsigned depth, uint64_t value)
{
    for (unsigned i = 0; i < 300; i++) value = value * 6364136223846793005u + NUMBER;
    return depth == 0 ? value : descend(depth - 1, value) + depth;
}

uint64_t plugin_work(void);
unsigned plugin_number(void);

__attribute__((visibility("default"))) uint64_t plugin_work(void)
{
    return descend(20, NUMBER);
}

__attribute__((visibility("default"))) unsigned plugin_number(void)
{
    return NUMBER;
}
