/* A function with a large array on the stack.  SPDX-License-Identifier: MIT */
#include "truth.h"

static struct spent big, small;

FUNCTION static void big_frame(void)
{
    volatile char array[70000];
    array[0] = array[sizeof(array) - 1] = 1;
    spin_us(about(5000));
}

FUNCTION static void small_frame(void)
{
    spin_us(about(5000));
}

int main(void)
{
    calibrate();
    for (double end = end_after(1); now() < end;) {
        MEASURE(big, big_frame());
        MEASURE(small, small_frame());
    }
    PRINT_TRUTH(big_frame, big);
    PRINT_TRUTH(small_frame, small);
}
