/* setuid and its relatives. libc makes the change on each thread that it made; the sampler thread is not one of those.
 * SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/sampler.h"
#include "sdk/aside.h"

#include <grp.h>
#include <sys/fsuid.h>
#include <unistd.h>

/* libc has no header for these two. */
int capset(void *header, const void *data);
int pivot_root(const char *new_root, const char *old_root);

long interpose_followed(long result)
{
    if (result == -1) return result;
    sampler_follow();
    sdk_follow_rights();
    return result;
}

/* Defines a function that libc performs on all of its threads, except on library threads that have stepped aside. */
#define CHANGES_ALL_THREADS(name, parameters, arguments)                                                               \
    INTERPOSED int name parameters                                                                                     \
    {                                                                                                                  \
        bool is_aside = sdk_step_aside_if_rights_differ();                                                             \
        int result = next_functions()->name arguments;                                                                 \
        if (result != -1) sampler_follow();                                                                            \
        if (is_aside) sdk_come_back();                                                                                 \
        return result;                                                                                                 \
    }
CHANGES_ALL_THREADS(setuid, (uid_t user), (user))
CHANGES_ALL_THREADS(setgid, (gid_t group), (group))
CHANGES_ALL_THREADS(seteuid, (uid_t user), (user))
CHANGES_ALL_THREADS(setegid, (gid_t group), (group))
CHANGES_ALL_THREADS(setreuid, (uid_t real, uid_t effective), (real, effective))
CHANGES_ALL_THREADS(setregid, (gid_t real, gid_t effective), (real, effective))
CHANGES_ALL_THREADS(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
CHANGES_ALL_THREADS(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
CHANGES_ALL_THREADS(setgroups, (size_t count, const gid_t *groups), (count, groups))
CHANGES_ALL_THREADS(initgroups, (const char *user, gid_t group), (user, group))
#undef CHANGES_ALL_THREADS

/* Defines a function that returns the previous value, and changes the calling thread only. */
#define RETURNS_PREVIOUS(name, type)                                                                                   \
    INTERPOSED int name(type id)                                                                                       \
    {                                                                                                                  \
        int previous = next_functions()->name(id);                                                                     \
        sampler_follow();                                                                                              \
        return previous;                                                                                               \
    }
RETURNS_PREVIOUS(setfsuid, uid_t)
RETURNS_PREVIOUS(setfsgid, gid_t)
#undef RETURNS_PREVIOUS

INTERPOSED int capset(void *header, const void *data)
{
    return (int)interpose_followed(next_functions()->capset(header, data));
}

INTERPOSED int chroot(const char *path)
{
    return (int)interpose_followed(next_functions()->chroot(path));
}

INTERPOSED int pivot_root(const char *new_root, const char *old_root)
{
    return (int)interpose_followed(next_functions()->pivot_root(new_root, old_root));
}
