/* A library for LD_PRELOAD that interposes functions of libc which a sampler might call. It traps when one of them runs
 * on a thread that libc did not make: such a thread has no thread-local storage of this library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread volatile int is_thread_of_libc __attribute__((tls_model("initial-exec"))) = 1;

static inline void check(void)
{
    if (!is_thread_of_libc) __builtin_trap();
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int clock_gettime(clockid_t clock, struct timespec *now)
{
    check();
    return (int)syscall(SYS_clock_gettime, clock, now);
}
int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    check();
    return (int)syscall(SYS_nanosleep, wanted, left);
}
pid_t getpid(void)
{
    check();
    return (pid_t)syscall(SYS_getpid);
}
pid_t getppid(void)
{
    check();
    return (pid_t)syscall(SYS_getppid);
}
uid_t getuid(void)
{
    check();
    return (uid_t)syscall(SYS_getuid);
}
long sysconf(int name)
{
    check();
    return NEXT(sysconf)(name);
}

void *memmove(void *to, const void *from, size_t size)
{
    check();
    volatile char *a = to;
    const volatile char *b = from;
    if (a < b)
        for (size_t i = 0; i < size; i++) a[i] = b[i];
    else
        while (size-- > 0) a[size] = b[size];
    return to;
}
void *memcpy(void *to, const void *from, size_t size)
{
    return memmove(to, from, size);
}
void *memset(void *to, int value, size_t size)
{
    check();
    for (volatile char *a = to; size > 0; size--) *a++ = (char)value;
    return to;
}
int memcmp(const void *left, const void *right, size_t size)
{
    check();
    const volatile unsigned char *a = left, *b = right;
    for (; size > 0; size--, a++, b++)
        if (*a != *b) return *a - *b;
    return 0;
}
void *memchr(const void *bytes, int wanted, size_t size)
{
    check();
    for (const volatile unsigned char *a = bytes; size > 0; size--, a++)
        if (*a == (unsigned char)wanted) return (void *)a;
    return NULL;
}
size_t strlen(const char *text)
{
    check();
    const volatile char *a = text;
    while (*a) a++;
    return (size_t)(a - text);
}
int strncmp(const char *left, const char *right, size_t size)
{
    check();
    for (; size > 0; left++, right++, size--) {
        unsigned char a = *(const volatile unsigned char *)left, b = *(const volatile unsigned char *)right;
        if (a != b || !a) return a - b;
    }
    return 0;
}
int strcmp(const char *left, const char *right)
{
    return strncmp(left, right, (size_t)-1);
}
char *strchr(const char *text, int wanted)
{
    check();
    for (;; text++) {
        char at = *(const volatile char *)text;
        if (at == (char)wanted) return (char *)text;
        if (!at) return NULL;
    }
}
char *strrchr(const char *text, int wanted)
{
    check();
    char *found = NULL;
    for (;; text++) {
        char at = *(const volatile char *)text;
        if (at == (char)wanted) found = (char *)text;
        if (!at) return found;
    }
}
