/* MemorySanitizer in the program: it sees no write of this library, which it has not compiled, and would report as not
 * initialised what the library reads by functions of libc, and what it gives the program. The library turns these
 * checks off in its functions and threads, and declares what it gives. In other programs nothing of this is there.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_MEMORY_SANITIZER_H
#define OFFBEAT_SDK_MEMORY_SANITIZER_H

#include <stddef.h>

extern void __msan_scoped_disable_interceptor_checks(void) __attribute__((weak));
extern void __msan_scoped_enable_interceptor_checks(void) __attribute__((weak));
extern void __msan_unpoison(const volatile void *memory, size_t size) __attribute__((weak));
extern void __msan_unpoison_string(const volatile char *text) __attribute__((weak));
extern void __msan_unpoison_param(size_t count) __attribute__((weak));

/* Begins a part of the library in this thread. Parts may be nested. */
static inline void memory_sanitizer_enter(void)
{
    if (__msan_scoped_disable_interceptor_checks) __msan_scoped_disable_interceptor_checks();
}

static inline void memory_sanitizer_leave(void)
{
    if (__msan_scoped_enable_interceptor_checks) __msan_scoped_enable_interceptor_checks();
}

/* Declares SIZE bytes of MEMORY as written. */
static inline void memory_sanitizer_written(const void *memory, size_t size)
{
    if (__msan_unpoison) __msan_unpoison(memory, size);
}

/* Declares TEXT, which may be NULL, as written, and returns it. */
static inline const char *memory_sanitizer_text(const char *text)
{
    if (__msan_unpoison_string && text) __msan_unpoison_string(text);
    return text;
}

/* Declares the arguments of the next call as written, which is one of a function of the program. */
static inline void memory_sanitizer_arguments(void)
{
    enum { ARGUMENTS_MAX = 6 };
    if (__msan_unpoison_param) __msan_unpoison_param(ARGUMENTS_MAX);
}

#endif
