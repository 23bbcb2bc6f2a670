/* Computes without a pause, in two parts of a round that takes the same time each time. Argument: rounds a second.
 * SPDX-License-Identifier: MIT */
#include "truth.h"

static struct spent first, second;

FUNCTION static void first_work(uint64_t end)
{
    while (ticks() < end) continue;
    KEEP_FRAME();
}

FUNCTION static void second_work(uint64_t end)
{
    while (ticks() < end) continue;
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    calibrate();
    uint64_t round = (uint64_t)(ticks_a_second / atof(argv[1])), start = ticks();
    for (double end = end_after(1); now() < end; start += round) {
        MEASURE(first, first_work(start + round / 10 * 6));
        MEASURE(second, second_work(start + round));
    }
    PRINT_TRUTH(first_work, first);
    PRINT_TRUTH(second_work, second);
}
