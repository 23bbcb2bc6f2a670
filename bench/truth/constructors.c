/* Work before main and after it: constructors and destructors of the program and of a library that it needs.
 * SPDX-License-Identifier: MIT */
#include "truth.h"

void use_library(void);

static struct spent constructor, in_main, at_end, destructor;

FUNCTION static void exe_ctor(void)
{
    calibrate();
    spin_us(300000);
}

FUNCTION static void exe_main(void)
{
    spin_us(300000);
}

FUNCTION static void exe_atexit(void)
{
    spin_us(300000);
}

FUNCTION static void exe_dtor(void)
{
    spin_us(300000);
}

__attribute__((constructor)) static void construct(void)
{
    MEASURE(constructor, exe_ctor());
    PRINT_TRUTH(exe_ctor, constructor);
}

__attribute__((destructor)) static void destruct(void)
{
    MEASURE(destructor, exe_dtor());
    PRINT_TRUTH(exe_dtor, destructor);
}

static void run_at_exit(void)
{
    MEASURE(at_end, exe_atexit());
    PRINT_TRUTH(exe_atexit, at_end);
}

int main(void)
{
    use_library();
    atexit(run_at_exit);
    MEASURE(in_main, exe_main());
    PRINT_TRUTH(exe_main, in_main);
}
