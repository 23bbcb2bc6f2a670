/* Works for three tenths of a fixed period and sleeps until the next one begins. Argument: periods a second.
 * SPDX-License-Identifier: MIT */
#include "truth.h"

static struct spent on, off;

FUNCTION static void on_part(double us)
{
    spin_us(us);
}

FUNCTION static void off_part(const struct timespec *until)
{
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, until, NULL);
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    double period = 1 / atof(argv[1]);
    calibrate();
    double start = now(), end = end_after(1);
    for (int i = 1; now() < end; i++) {
        double next = start + i * period;
        struct timespec until = {.tv_sec = (time_t)next, .tv_nsec = (long)((next - (double)(time_t)next) * 1e9)};
        MEASURE(on, on_part(period * 0.3e6));
        MEASURE(off, off_part(&until));
    }
    PRINT_TRUTH(on_part, on);
    PRINT_TRUTH(off_part, off);
}
