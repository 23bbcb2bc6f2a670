/* Installs a filter that allows everything, for itself only, by the instruction and not by libc. Prints which threads
 * are left 300 ms later. */
#define _GNU_SOURCE
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long raw(long number, long a, long b, long c)
{
    long result;
    register long d __asm__("r10") = 0, e __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e)
                     : "rcx", "r11", "memory");
    return result;
}
int main(void)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = 1, .filter = &all};
    struct timespec wait = {0, 300000000};
    nanosleep(&wait, NULL);
    if (raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0) || raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program))
        return 2;
    nanosleep(&wait, NULL);
    DIR *tasks = opendir("/proc/self/task");
    int others = -1;
    for (struct dirent *entry; (entry = readdir(tasks));) others += entry->d_name[0] != '.';
    puts(others ? "another thread" : "no other thread");
    return 0;
}
