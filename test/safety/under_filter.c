/* Runs a program under a seccomp filter, as container managers do:
 *
 *   under_filter allow|enosys|kill PROGRAM [ARGUMENT]…
 *
 * allow: of all system calls; enosys: close_range is unknown, as to old container managers; kill: calls that are out of
 * the ordinary end the process. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

int main(int count, char **words)
{
    if (count < 3) return 2;
    unsigned action = strcmp(words[1], "allow") == 0    ? SECCOMP_RET_ALLOW
                      : strcmp(words[1], "enosys") == 0 ? SECCOMP_RET_ERRNO | ENOSYS
                                                        : SECCOMP_RET_KILL_PROCESS;
    static const unsigned calls[] = {SYS_close_range,     SYS_unshare,          SYS_timer_create,
                                     SYS_clock_getres,    SYS_process_vm_readv, SYS_process_vm_writev,
                                     SYS_perf_event_open, SYS_sched_setattr,    SYS_sendfile};
    unsigned calls_count = action == SECCOMP_RET_KILL_PROCESS ? sizeof(calls) / sizeof(calls[0]) : 1, size = 1;
    struct sock_filter filter[2 + 2 * sizeof(calls) / sizeof(calls[0])] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    for (unsigned i = 0; i < calls_count; i++) {
        filter[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        filter[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    filter[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {size, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 3;
    (void)execv(words[2], words + 2);
    return 4;
}
