/* Many short bursts, rare long ones, and sleep between them. Arguments: microseconds of a short burst and of a sleep,
 * how many short bursts there are for each long one, and microseconds of that.  SPDX-License-Identifier: MIT */
#include "truth.h"

static struct spent in_short, in_long, asleep;

FUNCTION static void short_fn(double us)
{
    spin_us(us);
}

FUNCTION static void long_fn(double us)
{
    spin_us(us);
}

FUNCTION static void sleeper(double us)
{
    sleep_us(us);
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    if (argc < 5) return 2;
    double short_us = atof(argv[1]), sleep = atof(argv[2]), long_us = atof(argv[4]);
    int every = atoi(argv[3]), i = 0;
    calibrate();
    for (double end = end_after(1); now() < end;) {
        MEASURE(in_short, short_fn(short_us));
        if (++i % every == 0) MEASURE(in_long, long_fn(long_us));
        MEASURE(asleep, sleeper(about(sleep)));
    }
    PRINT_TRUTH(short_fn, in_short);
    PRINT_TRUTH(long_fn, in_long);
    PRINT_TRUTH(sleeper, asleep);
}
