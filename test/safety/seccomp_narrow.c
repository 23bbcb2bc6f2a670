/* A program that confines itself as narrow sandboxes do: after its start, all but a few system calls kill it.
 * Arguments: "tsync" or another word, how long it lives (ms), 1 to allow rt_sigprocmask, and "deep" for a deep stack
 * under the filter. SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static const int narrow[] = {SYS_read, SYS_write,  SYS_exit_group,   SYS_exit,  SYS_brk,
                             SYS_mmap, SYS_munmap, SYS_rt_sigreturn, SYS_futex, SYS_clock_gettime};
static __attribute__((noinline)) double deep(int n, volatile double *s)
{
    volatile char pad[600];
    pad[0] = n;
    double r;
    if (n == 0) {
        for (int i = 1; i < 100000; i++) *s += 1.0 / i;
        r = *s;
    } else
        r = deep(n - 1, s) + pad[0];
    __asm__ volatile("" ::: "memory");
    return r;
}
int main(int c, char **v)
{
    int tsync = c > 1 && !strcmp(v[1], "tsync");
    int ms = c > 2 ? atoi(v[2]) : 3000;
    int extra = c > 3 ? atoi(v[3]) : 0;
    int is_deep = c > 4 && !strcmp(v[4], "deep");
    int n = sizeof narrow / sizeof *narrow;
    struct sock_filter f[40];
    int l = 0;
    int list[20];
    memcpy(list, narrow, sizeof narrow);
    if (extra) list[n++] = SYS_rt_sigprocmask;
    f[l++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < n; i++) f[l++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, list[i], n - i, 0);
    f[l++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[l++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog p = {.len = l, .filter = f};
    volatile double s = 0;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        for (int i = 1; i < 100000; i++) s += 1.0 / i;
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 200);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, tsync ? SECCOMP_FILTER_FLAG_TSYNC : 0, &p)) {
        perror("seccomp");
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        deep(is_deep ? 40 : 0, &s);
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
    (void)!write(1, "lived\n", 6);
    syscall(SYS_exit_group, 0);
}
