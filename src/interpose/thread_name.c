/* pthread_setname_np: the sampler reads names seldom, unless a new one is announced. prctl announces it as well
 * (confinement.c).  SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/sampler.h"

int pthread_setname_np(pthread_t thread, const char *name);

INTERPOSED int pthread_setname_np(pthread_t thread, const char *name)
{
    int result = next_functions()->pthread_setname_np(thread, name);
    sampler_note_name();
    return result;
}
