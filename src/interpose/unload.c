/* dlclose. The next library that is loaded may get the addresses of the one that is unloaded here, and the memory in
 * which the loader describes it.  SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/sampler.h"

#include <dlfcn.h>

INTERPOSED int dlclose(void *handle)
{
    int result = next_functions()->dlclose(handle);
    sampler_note_unload();
    return result;
}
