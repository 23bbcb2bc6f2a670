/* Forks all the time while the library sends, for at least some seconds (the argument) and until it has sent enough.
 * Each child uses OpenSSL, which libcurl has loaded, and ends. The last line counts the children that did not.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <offbeat.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SENT_MIN = 20, SECONDS_MAX = 90, CHILD_SECONDS_MAX = 30 };

static atomic_bool is_over;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *trace(void *unused)
{
    while (!is_over) {
        offbeat_span_finish(offbeat_transaction_start("GET /", "http.server"));
        usleep(2000);
    }
    return unused;
}

static int use_openssl(void)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 1;
    const void *(*method)(void) = (const void *(*)(void))dlsym(library, "TLS_client_method");
    void *(*new_context)(const void *) = (void *(*)(const void *))dlsym(library, "SSL_CTX_new");
    alarm(CHILD_SECONDS_MAX);
    return new_context(method()) ? 0 : 1;
}

int main(int count, char **arguments)
{
    double begin = now(), end = begin + (count > 1 ? atof(arguments[1]) : 3);
    unsigned children = 0, failed = 0;
    pthread_t tracer;
    struct offbeat_options options = {
        .size = sizeof(options), .traces_sample_rate = 1, .profile_session_sample_rate = 0};
    if (!offbeat_init(&options) || pthread_create(&tracer, NULL, trace, NULL) != 0) return 2;
    while (now() < end || (offbeat_counts().sent < SENT_MIN && now() < begin + SECONDS_MAX)) {
        pid_t child = fork();
        if (child == 0) _exit(use_openssl());
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) return 2;
        children++;
        failed += status != 0;
    }
    is_over = true;
    pthread_join(tracer, NULL);
    printf("%u children, %u failed\n", children, failed);
    return 0;
}
