/* SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "base/kernel.h"
#include "sampler/sampler.h"
#include "sdk/aside.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

static struct next_functions next;
static atomic_bool is_found;

/* Makes a system call as libc's syscall does. */
static long make_system_call(long number, long a, long b, long c, long d, long e, long f)
{
    enum { ERRORS_FROM = -4095 };
    long result = kernel_call6(number, a, b, c, d, e, f);
    if (result >= 0 || result < ERRORS_FROM) return result;
    errno = (int)-result;
    return -1;
}

syscall_function interpose_next_syscall = make_system_call;

/* The function syscall of syscall_….S. */
extern const char interpose_syscall_entry[] __attribute__((visibility("hidden")));

#define FIND(name) next.name = (__typeof__(next.name))(uintptr_t)dlsym(RTLD_NEXT, #name)

static const char *const exec_names[EXEC_FUNCTIONS] = {
    "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat",
};

/* Runs early, so that no call finds the loader's lock held by another thread. */
__attribute__((constructor(101))) static void find_all(void)
{
    int kept_errno = errno;
    FIND(unshare);
    FIND(setns);
    FIND(setuid);
    FIND(setgid);
    FIND(seteuid);
    FIND(setegid);
    FIND(setreuid);
    FIND(setregid);
    FIND(setresuid);
    FIND(setresgid);
    FIND(setfsuid);
    FIND(setfsgid);
    FIND(setgroups);
    FIND(initgroups);
    FIND(capset);
    FIND(chroot);
    FIND(pivot_root);
    FIND(prctl);
    FIND(dlclose);
    FIND(_exit);
    FIND(pthread_setname_np);
    FIND(pthread_create);
    FIND(sigaltstack);
    FIND(sigaction);
    FIND(signal);
    FIND(mlockall);
    for (unsigned i = 0; i < EXEC_FUNCTIONS; i++) next.exec[i] = dlsym(RTLD_NEXT, exec_names[i]);
    next.makecontext = dlsym(RTLD_NEXT, "makecontext");
    syscall_function of_libc = (syscall_function)(uintptr_t)dlsym(RTLD_NEXT, "syscall");
    if (of_libc) interpose_next_syscall = of_libc;
    sampler_note_jump((uintptr_t)interpose_syscall_entry, (uintptr_t)of_libc);
    atomic_store(&is_found, true);
    errno = kept_errno;
}

const struct next_functions *next_functions(void)
{
    if (!atomic_load(&is_found)) find_all();
    return &next;
}

bool interpose_is_watched(void)
{
    return sampler_is_present() || sdk_has_threads();
}

bool interpose_is_leader(void)
{
    return kernel_call3(SYS_gettid, 0, 0, 0) == kernel_call3(SYS_getpid, 0, 0, 0);
}
