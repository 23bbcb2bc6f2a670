/* To be preloaded: a wall clock that somebody sets back, by an hour each time that it is asked.
 * SPDX-License-Identifier: MIT */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int asked;
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec -= 3600L * __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    return (int)failed;
}
