/* Calls without_tables.c, and is compiled as it is.  SPDX-License-Identifier: MIT */
#include <stdint.h>

uint64_t calls_without_tables(uint64_t duration_ns);

static volatile uint64_t result;

int main(void)
{
    result = calls_without_tables(1000000000);
    return 0;
}
