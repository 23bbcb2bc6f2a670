/* Only the programs offbeat and offbeat-helper load libcurl, never a program that is profiled. SPDX-License-Identifier:
 * MIT */
#include "transport/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct curl_library library;
static bool is_loaded;

static void load(void)
{
    /* With OpenSSL or GnuTLS, whatever is there; the names of functions and options are the same. */
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *handle = NULL;
    for (size_t i = 0; !handle && i < sizeof(names) / sizeof(names[0]); i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    bool has_all = handle != NULL;
    if (!handle) return;
#define CURL_LOOK_UP(name)                                                                                             \
    library.name = (__typeof__(library.name))dlsym(handle, "curl_" #name);                                             \
    has_all = has_all && library.name;
    CURL_FUNCTIONS(CURL_LOOK_UP)
#undef CURL_LOOK_UP
    is_loaded = has_all && library.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

const struct curl_library *curl_library_get(struct error *error)
{
    (void)pthread_once(&once, load);
    if (is_loaded) return &library;
    (void)error_set(error, STATUS_UNSUPPORTED, 0, "libcurl.so.4 is not installed: nothing can be sent");
    return NULL;
}
