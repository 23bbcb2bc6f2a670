/* Shared by the interposed functions.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPOSE_INTERPOSE_PRIVATE_H
#define OFFBEAT_INTERPOSE_INTERPOSE_PRIVATE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <ucontext.h>

#define INTERPOSED __attribute__((visibility("default")))

enum { EXEC_FUNCTIONS = 9 };

typedef void (*signal_function)(int number);

/* The functions that a program would call without liboffbeat. */
struct next_functions {
    int (*unshare)(int flags);
    int (*setns)(int descriptor, int type);
    int (*setuid)(uid_t user);
    int (*setgid)(gid_t group);
    int (*seteuid)(uid_t user);
    int (*setegid)(gid_t group);
    int (*setreuid)(uid_t real, uid_t effective);
    int (*setregid)(gid_t real, gid_t effective);
    int (*setresuid)(uid_t real, uid_t effective, uid_t saved);
    int (*setresgid)(gid_t real, gid_t effective, gid_t saved);
    int (*setfsuid)(uid_t user);
    int (*setfsgid)(gid_t group);
    int (*setgroups)(size_t count, const gid_t *groups);
    int (*initgroups)(const char *user, gid_t group);
    int (*capset)(void *header, const void *data);
    int (*chroot)(const char *path);
    int (*pivot_root)(const char *root, const char *old_root);
    int (*dlclose)(void *handle);
    void (*_exit)(int status);
    int (*pthread_setname_np)(pthread_t thread, const char *name);
    int (*pthread_create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                          void *argument);
    int (*sigaltstack)(const stack_t *stack, stack_t *old);
    int (*sigaction)(int number, const struct sigaction *action, struct sigaction *old);
    signal_function (*signal)(int number, signal_function handler);
    int (*mlockall)(int flags);
    void *makecontext;          /* a function with a variable number of arguments, entered by a jump only */
    void *exec[EXEC_FUNCTIONS]; /* functions in the order of exec.S; entered by a jump only */
    int (*prctl)(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
};

/* Returns the functions, which the first call finds, in a constructor. */
const struct next_functions *next_functions(void);

/* libc's syscall; before the constructor has run, a function that makes the system call itself. */
typedef long (*syscall_function)(long number, long a, long b, long c, long d, long e, long f);
extern syscall_function interpose_next_syscall;

/* Returns true if the calling thread is the process's first: namespaces and file system roots belong to threads, and
 * the sampler shares the first thread's. */
bool interpose_is_leader(void);

/* Returns true if there is a sampler thread, or another thread of the library. */
bool interpose_is_watched(void);

/* --- Calls that concern the sampler; MAKE_CALL is the call itself, with its ARGUMENTS ----------------------------- */

typedef long (*interpose_call)(const long arguments[6]);

/* Makes the call while the sampler is away. NEEDS_ONE_THREAD: the kernel fails with EINVAL if another thread exists. */
long interpose_alone(interpose_call make_call, const long arguments[6], bool needs_one_thread);

/* Makes the call while the sampler is away, and ends it if the call succeeds. */
long interpose_confinement(interpose_call make_call, const long arguments[6]);

/* Makes the call and tells the sampler about the thread's alternate stack. */
long interpose_sigaltstack(interpose_call make_call, const long arguments[6]);

/* Notes the size of a coroutine's stack, and returns the address of libc's makecontext. */
void *interpose_before_makecontext(const ucontext_t *context);

/* Makes the call of mlockall, and leaves the library's own memory unlocked. */
long interpose_mlockall(interpose_call make_call, const long arguments[6]);

/* Has the sampler write all samples, and returns the address of libc's function NUMBER of exec.S. */
void *interpose_before_exec(unsigned number);

/* Returns RESULT, after the sampler has followed the change if that is not -1. */
long interpose_followed(long result);

/* Returns true if prctl with OPTION changes rights of the calling thread. */
bool interpose_changes_rights(long option);

/* Return true for calls of unshare and setns that concern the sampler. */
bool interpose_unshare_matters(unsigned long flags);
bool interpose_setns_matters(int descriptor, int type);

#endif
