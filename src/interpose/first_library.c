/* liboffbeat-first.so: lets `offbeat record` see constructors of the libraries that a program needs.
 *
 * The loader runs the constructor of a preloaded library last, because it runs a library before those that were loaded
 * earlier. This library is linked with -z initfirst, so its constructor runs before all others, libc's too.
 * liboffbeat.so is not, because its other tasks must not run before libc is ready. Without this file recordings begin a
 * little later. SPDX-License-Identifier: MIT */
#include <stddef.h>

/* A function of liboffbeat.so, which LD_PRELOAD names as well. */
extern void liboffbeat_record_first(char **environment) __attribute__((weak));

/* Functions of sanitizers, whose replacements of libc's functions are not ready before their own constructors have run.
 */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));
extern void __hwasan_init(void) __attribute__((weak));

__attribute__((constructor)) static void begin(int count, char **arguments, char **environment)
{
    (void)count;
    (void)arguments;
    if (!liboffbeat_record_first || __asan_init || __tsan_init || __msan_init || __hwasan_init) return;
    liboffbeat_record_first(environment);
}
