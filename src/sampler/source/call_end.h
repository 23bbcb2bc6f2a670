/* The end of a system call that may have installed a seccomp filter. Signal-safe.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_CALL_END_H
#define OFFBEAT_SAMPLER_CALL_END_H

#if defined(__aarch64__)
#include "sampler/source/call_end_aarch64.h"
#else
#include "sampler/source/call_end_x86_64.h"
#endif

#endif
