/* Limits of the kernel for resources, and a seccomp filter for system calls: a list of those that are allowed.
 * SPDX-License-Identifier: MIT */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* No call that takes a path, not even to ask whether it exists; none that makes a descriptor, a thread or a process. */
static const unsigned allowed[] = {
    SYS_read,         SYS_write,         SYS_pread64,   SYS_pwrite64, SYS_lseek,      SYS_ftruncate,
    SYS_close,        SYS_brk,           SYS_munmap,    SYS_mremap,   SYS_madvise,    SYS_futex,
    SYS_rt_sigreturn, SYS_clock_gettime, SYS_getrandom, SYS_exit,     SYS_exit_group, SYS_restart_syscall,
};
/* With memory that holds no code. */
static const unsigned without_code[] = {SYS_mmap, SYS_mprotect};

enum {
    ALLOWED = sizeof(allowed) / sizeof(allowed[0]),
    WITHOUT_CODE = sizeof(without_code) / sizeof(without_code[0]),
    FILTER_MAX = 8 + 2 * ALLOWED + 5 * WITHOUT_CODE,
};

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short size;
};

static void add(struct filter *filter, struct sock_filter instruction)
{
    filter->code[filter->size++] = instruction;
}

static void load(struct filter *filter, size_t offset)
{
    add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void give(struct filter *filter, unsigned action)
{
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* The next SIZE instructions are for the value KEY only. */
static void only_for(struct filter *filter, unsigned key, unsigned char size)
{
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, key, 0, size));
}

/* Numbers of the x32 interface are other numbers: they are on no list. */
static void build(struct filter *filter)
{
    enum { PROTECTION = 2 /* the argument of mmap and mprotect */ };
    load(filter, offsetof(struct seccomp_data, arch));
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    give(filter, SECCOMP_RET_KILL_PROCESS);
    load(filter, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ALLOWED; i++) {
        only_for(filter, allowed[i], 1);
        give(filter, SECCOMP_RET_ALLOW);
    }
    for (size_t i = 0; i < WITHOUT_CODE; i++) {
        only_for(filter, without_code[i], 4);
        load(filter, offsetof(struct seccomp_data, args) + PROTECTION * sizeof(uint64_t));
        add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0));
        give(filter, SECCOMP_RET_ALLOW);
        give(filter, SECCOMP_RET_ERRNO | EPERM);
    }
    give(filter, SECCOMP_RET_ERRNO | EPERM);
}

static bool limit(int resource, uint64_t value)
{
    const struct rlimit limit = {.rlim_cur = value, .rlim_max = value};
    return setrlimit((__rlimit_resource_t)resource, &limit) == 0;
}

/* A sanitizer reserves more address space than any limit allows. */
static bool limit_memory(uint64_t bytes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)bytes;
    return true;
#else
    return limit(RLIMIT_AS, bytes);
#endif
}

/* Asks the kernel to end this process and not its parent where memory is short. Where that is denied, nothing is lost.
 */
static void offer_for_oom(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    (void)!write(file, "1000", 4);
    (void)close(file);
}

enum status sandbox_enter(const struct sandbox_limits *limits, struct error *error)
{
    struct filter filter = {.size = 0};
    build(&filter);
    offer_for_oom();
    const struct sock_fprog program = {.len = filter.size, .filter = filter.code};
    bool is_limited = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0 &&
                      syscall(SYS_close_range, (unsigned)limits->descriptors, ~0U, 0) == 0 && limit(RLIMIT_CORE, 0) &&
                      limit(RLIMIT_NOFILE, 0) && limit(RLIMIT_FSIZE, limits->file_bytes) &&
                      limit(RLIMIT_CPU, limits->cpu_seconds) && limit_memory(limits->memory_bytes);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write that is too long fails */
    bool is_closed = is_limited && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    return is_closed ? STATUS_OK : error_set_errno(error, "the kernel does not restrict this process");
}
