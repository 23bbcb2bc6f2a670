/* The processor for which this folder is compiled: the one that the program runs on, or in the second copy of the
 * library, UNWIND_OTHER, the other one (meson.build). Each choice is made by the compiler, so that nothing on the way
 * of a sample depends on the number of supported processors. Tools choose between the copies by unwind/unwinder.h.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_CHOSEN_MACHINE_H
#define OFFBEAT_UNWIND_CHOSEN_MACHINE_H

#if defined(__aarch64__) != defined(UNWIND_OTHER)
#include "unwind/aarch64_machine.h"
#else
#include "unwind/x86_64_machine.h"
#endif

#endif
