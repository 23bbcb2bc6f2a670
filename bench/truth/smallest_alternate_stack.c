/* An alternate stack as small as the kernel allows, in memory with a pattern below it, which nobody may overwrite.
 * SPDX-License-Identifier: MIT */
#include "truth.h"
#include <sys/auxv.h>

enum { BELOW = 32768, PATTERN = 0xA5 };

static struct spent worked;

FUNCTION static void work(void)
{
    spin_us(1000);
}

static int overwritten(const unsigned char *memory)
{
    int count = 0;
    for (int i = 0; i < BELOW; i++) count += memory[i] != PATTERN;
    return count;
}

int main(void)
{
    size_t size = getauxval(AT_MINSIGSTKSZ);
    if (size < 2048) size = 2048;
    unsigned char *memory = malloc(size + BELOW);
    if (!memory) return 1;
    memset(memory, PATTERN, size + BELOW);
    stack_t alternate = {.ss_sp = memory + BELOW, .ss_size = size};
    if (sigaltstack(&alternate, NULL) != 0) return 1;
    calibrate();
    for (double end = end_after(1); now() < end;) MEASURE(worked, work());
    PRINT_TRUTH(work, worked);
    fprintf(stderr, "NEVER overwritten %d %d\n", overwritten(memory), BELOW);
}
