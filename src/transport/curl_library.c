/* The one place with state of the entire process: libcurl has such state itself.  SPDX-License-Identifier: MIT */
#include "transport/curl_library.h"

#include "base/environment.h"
#include "transport/transport.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct curl_library library;
static bool is_loaded, is_too_late, is_torn;
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

/* --- OpenSSL ------------------------------------------------------------------------------------------------------
 *
 * The program's first use of OpenSSL registers OPENSSL_cleanup with atexit. After it has run, or while it runs, any use
 * of OpenSSL crashes, and so does loading libcurl: its libssh2 uses OpenSSL in curl_global_init. WHEN_LOADED registers
 * the function that ends this thread; exit calls the function that was registered last first. */

typedef int (*openssl_begin_function)(uint64_t options, const void *settings); /* OPENSSL_init_crypto */

/* Returns the function of the OpenSSL that is loaded, even if only one library of the program can see it; NULL: there
 * is none. */
static openssl_begin_function find_openssl(void)
{
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1"};
    void *function = dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto");
    for (size_t i = 0; !function && i < sizeof(names) / sizeof(names[0]); i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (handle) function = dlsym(handle, "OPENSSL_init_crypto");
    }
    return (openssl_begin_function)(uintptr_t)function;
}

static bool openssl_has_ended(openssl_begin_function begin)
{
    static const uint64_t base_only = 0x00040000; /* OPENSSL_INIT_BASE_ONLY: records no error of the thread */
    return begin(base_only, NULL) == 0;
}

/* Registers OpenSSL's cleanup, if it was not, and then our end. OpenSSL does nothing at all when it is asked for no
 * option that is new to it, so it gets one that changes nothing. Asks OpenSSL afterwards: if exit has passed its
 * cleanup by then, that has begun. False: OpenSSL must not be used. */
static bool end_before_openssl(openssl_begin_function begin)
{
    static const uint64_t fork_handlers = 0x00020000; /* OPENSSL_INIT_ATFORK */
    if (openssl_has_ended(begin)) return false;
    (void)begin(fork_handlers, NULL);
    if (when_loaded) when_loaded();
    return !openssl_has_ended(begin);
}

/* An OpenSSL that came with libcurl registers no cleanup at exit: if the process ends during curl_global_init, the
 * cleanup would run before WHEN_LOADED is called, and destroy what this thread sets up. */
static void begin_own_openssl(void *handle)
{
    static const uint64_t no_atexit = 0x00080000; /* OPENSSL_INIT_NO_ATEXIT */
    openssl_begin_function begin = (openssl_begin_function)(uintptr_t)dlsym(handle, "OPENSSL_init_crypto");
    if (begin) (void)begin(no_atexit, NULL);
}

/* --- Forks --------------------------------------------------------------------------------------------------------
 *
 * A child that is forked while another thread is inside dlopen gets a loader in the middle of a change: its next dlopen
 * fails, or crashes, also where the program itself calls it. A child that is forked while another thread is inside
 * OpenSSL gets locks that nobody gives back, and the program's own use of OpenSSL there waits forever. So a fork waits
 * until this library is loaded, which takes 20 ms once in a process, and until the step of a transfer is done, which
 * takes milliseconds at the beginning of a connection. It does not wait without end, because the thread that forks
 * may hold the loader's lock: in a constructor. Then the child sends nothing. */

enum { FORK_WAITS_SECONDS = 2 };

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;
static __thread bool has_lock __attribute__((tls_model("initial-exec")));

#pragma weak pthread_mutex_clocklock // see sdk/other_libc.c

static void before_fork(void)
{
    int kept_errno = errno;
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FORK_WAITS_SECONDS;
    has_lock = pthread_mutex_clocklock(&in_use, CLOCK_MONOTONIC, &until) == 0;
    errno = kept_errno;
}

static void after_fork_in_parent(void)
{
    if (has_lock) (void)pthread_mutex_unlock(&in_use);
}

static void after_fork_in_child(void)
{
    is_torn = is_torn || !has_lock;
    in_use = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

void transport_guard_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void curl_library_hold_forks(void)
{
    (void)pthread_mutex_lock(&in_use);
}

void curl_library_let_fork(void)
{
    (void)pthread_mutex_unlock(&in_use);
}

/* --- Loading ------------------------------------------------------------------------------------------------------ */

static void load_and_begin(void)
{
    openssl_begin_function begin_openssl = find_openssl(); /* the program's own */
    is_too_late = begin_openssl && !end_before_openssl(begin_openssl);
    void *handle = is_too_late ? NULL : open_library();
    bool has_all = handle != NULL;
    if (!handle) return;
#define CURL_LOOK_UP(name)                                                                                             \
    library.name = (__typeof__(library.name))dlsym(handle, "curl_" #name);                                             \
    has_all = has_all && library.name;
    CURL_FUNCTIONS(CURL_LOOK_UP)
#undef CURL_LOOK_UP
    if (!begin_openssl) begin_own_openssl(handle);
    is_loaded = has_all && library.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (when_loaded) when_loaded();
}

static void load(void)
{
    curl_library_hold_forks();
    if (!is_torn) load_and_begin();
    curl_library_let_fork();
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
    if (is_loaded && !is_torn) return &library;
    if (is_too_late)
        (void)error_set(error, STATUS_UNSUPPORTED, 0,
                        "the program has ended OpenSSL: envelopes stay in the spool for the next launch");
    else if (is_torn)
        (void)error_set(error, STATUS_UNSUPPORTED, 0,
                        "the process was forked while libcurl was in use: envelopes stay in the spool");
    else
        (void)error_set(error, STATUS_UNSUPPORTED, 0, "libcurl.so.4 is not installed: nothing can be sent");
    return NULL;
}
