/* To be preloaded: a machine without libcurl.  SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlopen(const char *name, int flags)
{
    void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return name && strncmp(name, "libcurl", strlen("libcurl")) == 0 ? NULL : next(name, flags);
}
