/* Facts about the processor that the sampler runs on: the files processor_… are the variants.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PROCESSOR_H
#define OFFBEAT_SAMPLER_PROCESSOR_H

#if defined(__aarch64__)
#include "sampler/kernel/processor_aarch64.h"
#else
#include "sampler/kernel/processor_x86_64.h"
#endif

#endif
