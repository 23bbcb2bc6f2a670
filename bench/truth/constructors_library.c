/* Needed by constructors.c. It begins before the program's own constructors and ends after its destructors.
 * SPDX-License-Identifier: MIT */
#define TRUTH_IS_LIBRARY
#include "truth.h"

void use_library(void);

static struct spent constructor, destructor;

FUNCTION static void lib_ctor_work(void)
{
    calibrate();
    spin_us(300000);
}

FUNCTION static void lib_dtor_work(void)
{
    spin_us(300000);
}

__attribute__((constructor)) static void construct(void)
{
    MEASURE(constructor, lib_ctor_work());
    PRINT_TRUTH(lib_ctor_work, constructor);
    print_spent("TRUTH", "(all)",
                (struct spent){.wall = constructor.wall}); /* its CPU time is in that of the program */
}

__attribute__((destructor)) static void destruct(void)
{
    MEASURE(destructor, lib_dtor_work());
    PRINT_TRUTH(lib_dtor_work, destructor);
    print_spent("TRUTH", "(all)", destructor);
}

void use_library(void)
{
}
