/* SPDX-License-Identifier: MIT */
#include "serve/http_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct http_library library;
static bool is_loaded;

static void load(void)
{
    void *handle = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    is_loaded = handle != NULL;
    if (!handle) return;
#define HTTP_LOOK_UP(name)                                                                                             \
    library.name = (__typeof__(library.name))dlsym(handle, "MHD_" #name);                                              \
    is_loaded = is_loaded && library.name;
    HTTP_FUNCTIONS(HTTP_LOOK_UP)
#undef HTTP_LOOK_UP
}

const struct http_library *http_library_get(struct error *error)
{
    (void)pthread_once(&once, load);
    if (is_loaded) return &library;
    (void)error_set(error, STATUS_UNSUPPORTED, 0, "libmicrohttpd.so.12 is not installed (Debian: libmicrohttpd12)");
    return NULL;
}
