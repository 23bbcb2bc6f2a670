/* Registers of an interrupted thread, as a signal handler receives them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_CONTEXT_H
#define OFFBEAT_UNWIND_CONTEXT_H

#if defined(__aarch64__)
#include "unwind/aarch64_context.h"
#else
#include "unwind/x86_64_context.h"
#endif

#endif
