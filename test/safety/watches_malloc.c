/* A malloc of the program's own that ends the process with status 97 if a thread of liboffbeat calls it, after printing
 * which function did. SPDX-License-Identifier: MIT */
#include <execinfo.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

static void check(const char *function)
{
    static __thread int is_inside;
    char name[16] = "";
    if (is_inside) return;
    if (prctl(PR_GET_NAME, name) == 0 && strncmp(name, "offbeat", 7) != 0) return;
    is_inside = 1;
    void *stack[32];
    write(2, function, strlen(function));
    write(2, " was called by ", 15);
    write(2, name, strlen(name));
    write(2, "\n", 1);
    backtrace_symbols_fd(stack, backtrace(stack, 32), 2);
    _exit(97);
}

void *malloc(size_t size)
{
    check("malloc");
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    check("calloc");
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    check("realloc");
    return __libc_realloc(memory, size);
}

void free(void *memory)
{
    if (memory) check("free");
    __libc_free(memory);
}
