/* Makes system calls that end, and have the arguments, as a call that adds a seccomp filter: for a second of CPU time.
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static __attribute__((noinline)) void change_descriptor(void)
{
    for (int i = 0; i < 1000; i++) fcntl(PR_SET_SECCOMP, F_SETFD, FD_CLOEXEC);
}

static __attribute__((noinline)) void change_interest(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    for (int i = 0; i < 1000; i++) epoll_ctl(PR_SET_SECCOMP, EPOLL_CTL_MOD, STDIN_FILENO, &event);
}

int main(void)
{
    int ends[2];
    struct epoll_event event = {.events = EPOLLIN};
    struct timespec used = {0};
    if (pipe(ends) != 0 || dup2(ends[0], STDIN_FILENO) != STDIN_FILENO) return 1;
    if (dup2(epoll_create1(0), PR_SET_SECCOMP) != PR_SET_SECCOMP) return 1;
    if (epoll_ctl(PR_SET_SECCOMP, EPOLL_CTL_ADD, STDIN_FILENO, &event) != 0) return 1;
    while (used.tv_sec == 0) {
        change_descriptor();
        change_interest();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    }
    return 0;
}
