/* SPDX-License-Identifier: MIT */
#include "symbolize/capstone_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define AS_TEXT_OF(value) #value
#define AS_TEXT(value) AS_TEXT_OF(value)
/* The layout of an instruction differs between major versions, which are part of the name. */
#define LIBRARY_NAME "libcapstone.so." AS_TEXT(CS_API_MAJOR)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct capstone_library library;
static bool is_loaded;

static void load(void)
{
    void *handle = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
    is_loaded = handle != NULL;
    if (!handle) return;
#define CAPSTONE_LOOK_UP(name)                                                                                         \
    library.name = (__typeof__(library.name))dlsym(handle, "cs_" #name);                                               \
    is_loaded = is_loaded && library.name;
    CAPSTONE_FUNCTIONS(CAPSTONE_LOOK_UP)
#undef CAPSTONE_LOOK_UP
}

const struct capstone_library *capstone_library_get(struct error *error)
{
    (void)pthread_once(&once, load);
    if (is_loaded) return &library;
    (void)error_set(error, STATUS_UNSUPPORTED, 0,
                    LIBRARY_NAME " is not installed (Debian: libcapstone" AS_TEXT(CS_API_MAJOR) ")");
    return NULL;
}
