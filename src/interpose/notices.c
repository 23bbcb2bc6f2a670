/* dlclose, pthread_setname_np, and the first call of liboffbeat-first.so: the library only takes notice of them.
 *
 * The next library that is loaded may get the addresses of the one that is unloaded here, and the memory in which the
 * loader describes it. The sampler reads the names of threads seldom, unless a new one is announced; prctl announces
 * it, too (confinement.c). SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/modules/modules.h"
#include "sampler/sampler.h"
#include "sdk/aside.h"

#include <dlfcn.h>

int pthread_setname_np(pthread_t thread, const char *name);
void liboffbeat_record_first(char **environment);

INTERPOSED int dlclose(void *handle)
{
    int result = next_functions()->dlclose(handle);
    modules_note_unload();
    return result;
}

INTERPOSED int pthread_setname_np(pthread_t thread, const char *name)
{
    int result = next_functions()->pthread_setname_np(thread, name);
    sampler_note_name();
    return result;
}

INTERPOSED void liboffbeat_record_first(char **environment)
{
    sdk_record_first(environment);
}
