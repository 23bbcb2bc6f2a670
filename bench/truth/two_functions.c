/* Two functions of a fixed length, one of which sleeps.  SPDX-License-Identifier: MIT */
#include "truth.h"

static struct spent first, second;

FUNCTION static void fa(void)
{
    spin_us(3000);
}

FUNCTION static void fb(void)
{
    spin_us(1000);
    sleep_us(1000);
    KEEP_FRAME();
}

int main(void)
{
    calibrate();
    for (double end = end_after(1); now() < end;) {
        MEASURE(first, fa());
        MEASURE(second, fb());
    }
    PRINT_TRUTH(fa, first);
    PRINT_TRUTH(fb, second);
}
