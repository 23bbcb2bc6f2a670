/* The one place with state of the whole process: libcurl has such state itself.  SPDX-License-Identifier: MIT */
#include "transport/curl_library.h"

#include "base/environment.h"
#include "transport/transport.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct curl_library library;
static bool is_loaded;
static void (*when_loaded)(void);

static void *open_library(void)
{
    /* With OpenSSL or GnuTLS, whatever is there; the names of functions and options are the same. */
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *handle = NULL;
    for (size_t i = 0; !handle && i < sizeof(names) / sizeof(names[0]); i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

/* An OpenSSL that came with libcurl registers no cleaning up at exit: where a process ends while libcurl is being
 * begun, that would run before WHEN_LOADED was called, and take away what this thread is just setting up. */
static void begin_openssl(void *handle)
{
    static const uint64_t no_atexit = 0x00080000; /* OPENSSL_INIT_NO_ATEXIT */
    int (*begin)(uint64_t options, const void *settings) = (__typeof__(begin))dlsym(handle, "OPENSSL_init_crypto");
    if (begin) (void)begin(no_atexit, NULL);
}

typedef int openssl_begin(uint64_t options, const void *settings);

/* The program's own OpenSSL cleans up in an exit handler, which runs before our destructor. libcurl's first call of it
 * would crash then; OPENSSL_init_crypto(3) refuses. */
static bool is_openssl_gone(openssl_begin *begin)
{
    static const uint64_t base_only = 0x00040000; /* OPENSSL_INIT_BASE_ONLY: nothing is set up */
    return begin && begin(base_only, NULL) == 0;
}

static void load(void)
{
    openssl_begin *openssl = (__typeof__(openssl))dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto"); /* the program's own */
    if (is_openssl_gone(openssl)) return;
    void *handle = open_library();
    bool has_all = handle != NULL;
    if (!handle) return;
#define CURL_LOOK_UP(name)                                                                                             \
    library.name = (__typeof__(library.name))dlsym(handle, "curl_" #name);                                             \
    has_all = has_all && library.name;
    CURL_FUNCTIONS(CURL_LOOK_UP)
#undef CURL_LOOK_UP
    if (!openssl) begin_openssl(handle);
    is_loaded = has_all && library.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (when_loaded) when_loaded();
}

void transport_when_loaded(void (*function)(void))
{
    when_loaded = function;
}

const struct curl_library *curl_library_get(struct error *error)
{
    /* libcurl appends the keys of TLS to that file with the rights of the program, and asks nobody. */
    if (!environment_is_trusted() && environment_has("SSLKEYLOGFILE")) {
        (void)error_set(error, STATUS_UNSUPPORTED, 0,
                        "SSLKEYLOGFILE is set in a program with AT_SECURE: nothing is sent");
        return NULL;
    }
    (void)pthread_once(&once, load);
    if (is_loaded) return &library;
    (void)error_set(error, STATUS_UNSUPPORTED, 0, "libcurl.so.4 is not installed: nothing can be sent");
    return NULL;
}
