/* Short user code between system calls. Arguments: microseconds of user code, bytes that each call fills.
 * SPDX-License-Identifier: MIT */
#include "truth.h"
#include <fcntl.h>

static char buffer[65536];
static int zeroes;

FUNCTION static void u_part(double us)
{
    spin_us(us);
}

FUNCTION static void k_part(size_t size)
{
    ssize_t done = pread(zeroes, buffer, size, 0);
    (void)done;
    KEEP_FRAME();
}

struct part {
    double all, ran;
};

/* Adds PIECE to PART, unless it is over half a millisecond: the thread had no processor for a part of it. */
static INLINED void add(struct part *part, uint64_t piece)
{
    double seconds = (double)piece / ticks_a_second;
    part->all += seconds;
    if (seconds < 0.0005) part->ran += seconds;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    double us = atof(argv[1]);
    struct part user = {0}, kernel = {0};
    size_t size = (size_t)atoi(argv[2]);
    zeroes = open("/dev/zero", O_RDONLY);
    calibrate();
    double before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    uint64_t at = ticks();
    for (double end = end_after(1); now() < end;) {
        for (int i = 0; i < 100; i++) {
            u_part(us);
            uint64_t entry = ticks();
            k_part(size);
            add(&user, entry - at);
            at = ticks();
            add(&kernel, at - entry);
        }
    }
    /* A clock of CPU time around each part would itself be longer than the part: shares of the thread's time instead.
     */
    double cpu = (clock_seconds(CLOCK_THREAD_CPUTIME_ID) - before) / (user.ran + kernel.ran);
    PRINT_TRUTH(u_part, ((struct spent){user.all, user.ran * cpu}));
    PRINT_TRUTH(k_part, ((struct spent){kernel.all, kernel.ran * cpu}));
}
