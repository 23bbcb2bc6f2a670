/* Storms under seccomp: what is not on the list kills the process, the sampler's calls like any.
 * SPDX-License-Identifier: MIT */
#include "storm.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* The calls that services are usually allowed. Missing: perf_event_open, process_vm_readv, ptrace, kcmp, bpf,
 * userfaultfd, io_uring_setup, membarrier, close_range, unshare. */
static const uint16_t allowed[] = {
    SYS_read,
    SYS_write,
    SYS_open,
    SYS_close,
    SYS_stat,
    SYS_fstat,
    SYS_lstat,
    SYS_poll,
    SYS_lseek,
    SYS_mmap,
    SYS_mprotect,
    SYS_munmap,
    SYS_brk,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_ioctl,
    SYS_pread64,
    SYS_pwrite64,
    SYS_readv,
    SYS_writev,
    SYS_access,
    SYS_pipe,
    SYS_select,
    SYS_sched_yield,
    SYS_mremap,
    SYS_madvise,
    SYS_dup,
    SYS_dup2,
    SYS_nanosleep,
    SYS_getpid,
    SYS_socket,
    SYS_connect,
    SYS_accept,
    SYS_clone,
    SYS_clone3,
    SYS_fork,
    SYS_vfork,
    SYS_execve,
    SYS_exit,
    SYS_wait4,
    SYS_kill,
    SYS_uname,
    SYS_fcntl,
    SYS_fsync,
    SYS_ftruncate,
    SYS_getdents,
    SYS_getcwd,
    SYS_readlink,
    SYS_umask,
    SYS_gettimeofday,
    SYS_getrlimit,
    SYS_getuid,
    SYS_getgid,
    SYS_geteuid,
    SYS_getegid,
    SYS_getppid,
    SYS_rt_sigqueueinfo,
    SYS_sigaltstack,
    SYS_prctl,
    SYS_arch_prctl,
    SYS_gettid,
    SYS_futex,
    SYS_sched_getaffinity,
    SYS_getdents64,
    SYS_set_tid_address,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_exit_group,
    SYS_tgkill,
    SYS_openat,
    SYS_newfstatat,
    SYS_unlink,
    SYS_unlinkat,
    SYS_readlinkat,
    SYS_set_robust_list,
    SYS_dup3,
    SYS_pipe2,
    SYS_rt_tgsigqueueinfo,
    SYS_prlimit64,
    SYS_getrandom,
    SYS_statx,
    SYS_rseq,
    SYS_waitid,
    SYS_faccessat,
};

enum { ALLOWED = sizeof(allowed) / sizeof(allowed[0]) };

/* Installs the filter for all threads, the sampler's included. */
static void confine(void)
{
    struct sock_filter filter[ALLOWED + 3];
    unsigned short length = 0;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < ALLOWED; i++) {
        filter[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (uint8_t)(ALLOWED - i), 0);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = length, .filter = filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

static void live_confined(void)
{
    storm_crowd(3);
    for (unsigned i = 0; storm_continues(); i++) {
        storm_work(i);
        if (i % 50 == 0) sleep_ns(30000000);
    }
    storm_crowd_join();
}

static void storm_seccomp(void)
{
    storm_crowd(2);
    sleep_ns(100000000); /* the sampler has its pages by now */
    confine();
    live_confined();
}

static void storm_seccomp_from_the_start(void)
{
    confine();
    pid_t child = fork();
    if (child == 0) {
        live_confined();
        exit(8);
    }
    storm_expect_exit(child, 8);
    char until[32];
    snprintf(until, sizeof(until), "%llu", (unsigned long long)(now_ns() + 300000000));
    child = fork();
    if (child == 0) {
        execl(storm_program, storm_program, "process", "exec", until, (char *)NULL);
        _exit(98);
    }
    storm_expect_exit(child, 9);
}

/* --- Strict mode: read, write, exit and sigreturn are all that is left -------------------------------------------- */

static volatile uint32_t strict_end; /* such a thread may not even ask for the time where there is no vdso */

static void *run_strict(void *argument)
{
    int end = (int)(intptr_t)argument;
    uint32_t value = 1;
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    while (!strict_end) value = value * 5 + 1;
    bool is_reported = write(end, &value, sizeof(value)) == sizeof(value);
    (void)syscall(SYS_exit, is_reported ? 0 : 1);
    return NULL;
}

static void storm_seccomp_strict(void)
{
    int ends[2];
    if (prctl(PR_GET_SECCOMP) != 0) return; /* a process under a filter cannot become strict */
    uint32_t value = 0;
    CHECK(pipe(ends) == 0);
    storm_crowd(1);
    (void)storm_thread(run_strict, (void *)(intptr_t)ends[1]);
    while (storm_continues()) storm_work(1);
    strict_end = 1;
    alarm(5);
    CHECK(read(ends[0], &value, sizeof(value)) == sizeof(value) && value != 0);
    storm_crowd_join();
}

const struct storm storms_of_seccomp[] = {
    {"seccomp", storm_seccomp},
    {"seccomp_from_the_start", storm_seccomp_from_the_start},
    {"seccomp_strict", storm_seccomp_strict},
    {0},
};
