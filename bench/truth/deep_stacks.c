/* Recursions whose stack is larger than the kernel copies, and which return before anybody can read it. Argument: the
 * kilobytes, if less than 100.  SPDX-License-Identifier: MIT */
#include "truth.h"

enum { DEPTH = 100 };

static int depth = DEPTH;
static struct spent deep, shallow;

FUNCTION static void recurse(int levels)
{
    volatile char array[1024];
    array[0] = 1;
    if (levels > 0) recurse(levels - 1);
    spin_us(levels > 0 ? 1 : about(100));
    KEEP_FRAME();
}

FUNCTION static void deep_stack(void)
{
    recurse(depth);
    KEEP_FRAME();
}

/* Overwrites the stack that the deep recursion has left. */
FUNCTION static void shallow_stack(void)
{
    volatile char array[depth * 1024];
    for (size_t i = 0; i < sizeof(array); i += 8) array[i] = 1;
    spin_us(about(200));
}

int main(int argc, char **argv)
{
    if (argc > 1) depth = atoi(argv[1]);
    calibrate();
    for (double end = end_after(1); now() < end;) {
        MEASURE(deep, deep_stack());
        MEASURE(shallow, shallow_stack());
    }
    PRINT_TRUTH(deep_stack, deep);
    PRINT_TRUTH(shallow_stack, shallow);
}
