/* Lets liboffbeat.so load into a program of another C library, where it does nothing.
 *
 * LD_PRELOAD is inherited: a program that `offbeat record` runs may start one that is linked with musl. musl's loader
 * knows the name libc.so.6 as its own, but ends the program if a symbol is missing. So the symbols that only the GNU
 * libc has are defined here and hidden, or weak where they are used (`#pragma weak`). musl also resolves all symbols at
 * the start, so a symbol that is never called counts as well; test/safety/record.py preloads the library into a program
 * of musl.
 *
 * meson.build compiles this file without _FORTIFY_SOURCE, whose functions it defines, and with the plain names of
 * system calls. preload.c asks which C library it is. SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Declared here: the headers of libc declare them only for its own use. */
void *__memcpy_chk(void *to, const void *from, size_t size, size_t room);
void *__memmove_chk(void *to, const void *from, size_t size, size_t room);
int __vsnprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, va_list arguments);
int __snprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, ...);
char *__realpath_chk(const char *path, char *resolved, size_t room);
int fcntl64(int descriptor, int command, ...);
int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
extern void *__dso_handle;

#pragma weak __register_atfork

/* --- Functions that _FORTIFY_SOURCE calls ------------------------------------------------------------------------- */

static void check_room(size_t size, size_t room)
{
    if (size > room) __builtin_trap();
}

void *__memcpy_chk(void *to, const void *from, size_t size, size_t room)
{
    check_room(size, room);
    return memcpy(to, from, size);
}

void *__memmove_chk(void *to, const void *from, size_t size, size_t room)
{
    check_room(size, room);
    return memmove(to, from, size);
}

int __vsnprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, va_list arguments)
{
    (void)flag;
    check_room(size, room);
    return vsnprintf(text, size, format, arguments);
}

int __snprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = __vsnprintf_chk(text, size, flag, room, format, arguments);
    va_end(arguments);
    return length;
}

char *__realpath_chk(const char *path, char *resolved, size_t room)
{
    enum { LONGEST = 4096 }; /* PATH_MAX */
    check_room(LONGEST, room);
    return realpath(path, resolved);
}

/* --- Names of the GNU libc ---------------------------------------------------------------------------------------- */

/* Replaces fcntl with _FILE_OFFSET_BITS=64; the two are the same on 64-bit machines. */
int fcntl64(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fcntl(descriptor, command, argument);
}

/* libc's own is in libc_nonshared.a, where it calls a function that is not weak. */
int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return __register_atfork ? __register_atfork(prepare, parent, child, __dso_handle) : -1;
}
