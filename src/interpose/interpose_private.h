/* What the interposed functions share.  SPDX-License-Identifier: MIT */
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
    void *makecontext;          /* entered by a jump only: it has a variable number of arguments */
    void *exec[EXEC_FUNCTIONS]; /* in the order of exec.S; entered by a jump only */
    int (*prctl)(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
};

/* Found at the first call, which is in a constructor. */
const struct next_functions *next_functions(void);

/* Of libc's syscall; before the constructor has run, a function that makes the system call itself. */
typedef long (*syscall_function)(long number, long a, long b, long c, long d, long e, long f);
extern syscall_function interpose_next_syscall;

/* The calling thread is the process's first: namespaces and file system roots belong to threads, and the sampler
 * shares the first thread's. */
bool interpose_is_leader(void);

/* Returns true if there is a sampler thread, or another thread of the library. */
bool interpose_is_watched(void);

/* --- What the call means to the sampler; MAKE_CALL is the call itself, with its ARGUMENTS ------------------------- */

typedef long (*interpose_call)(const long arguments[6]);

/* The sampler is away while MAKE_CALL runs. NEEDS_ONE_THREAD: the kernel fails with EINVAL where another thread exists.
 */
long interpose_alone(interpose_call make_call, const long arguments[6], bool needs_one_thread);

/* The sampler ends if MAKE_CALL succeeds, and is away while it runs. */
long interpose_confinement(interpose_call make_call, const long arguments[6]);

/* The sampler knows the thread's alternate stack when MAKE_CALL sets it. */
long interpose_sigaltstack(interpose_call make_call, const long arguments[6]);

/* Notes the size of a coroutine's stack, and gives the address of libc's makecontext. */
void *interpose_before_makecontext(const ucontext_t *context);

/* The sampler writes what it has. Gives the address of libc's function NUMBER of exec.S. */
void *interpose_before_exec(unsigned number);

/* RESULT, after the sampler has followed if that is not -1. */
long interpose_followed(long result);

/* Whether prctl with OPTION changes rights of the calling thread. */
bool interpose_changes_rights(long option);

/* Returns true for calls of unshare and setns that concern the sampler. */
bool interpose_unshare_matters(unsigned long flags);
bool interpose_setns_matters(int descriptor, int type);

#endif
