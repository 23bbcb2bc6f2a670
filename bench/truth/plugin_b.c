/* Loaded by dlopen_same_layout.c; the two plugins differ in the name of one function.  SPDX-License-Identifier: MIT */
#define TRUTH_IS_LIBRARY
#include "truth.h"

void enter(double frequency);

FUNCTION static void plug_gamma(void)
{
    spin_us(6000);
}

void enter(double frequency)
{
    ticks_a_second = frequency;
    plug_gamma();
    KEEP_FRAME();
}
