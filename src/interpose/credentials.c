/* setuid and its relatives. libc makes the change on each thread that it made; the sampler thread is not one of those.
 * SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/sampler.h"

#include <grp.h>
#include <sys/fsuid.h>
#include <unistd.h>

int capset(void *header, const void *data);                 /* libc has no header for it */
int pivot_root(const char *new_root, const char *old_root); /* likewise */

long interpose_followed(long result)
{
    if (result != -1) sampler_follow();
    return result;
}

static int followed(int result)
{
    return (int)interpose_followed(result);
}

INTERPOSED int setuid(uid_t user)
{
    return followed(next_functions()->setuid(user));
}

INTERPOSED int setgid(gid_t group)
{
    return followed(next_functions()->setgid(group));
}

INTERPOSED int seteuid(uid_t user)
{
    return followed(next_functions()->seteuid(user));
}

INTERPOSED int setegid(gid_t group)
{
    return followed(next_functions()->setegid(group));
}

INTERPOSED int setreuid(uid_t real, uid_t effective)
{
    return followed(next_functions()->setreuid(real, effective));
}

INTERPOSED int setregid(gid_t real, gid_t effective)
{
    return followed(next_functions()->setregid(real, effective));
}

INTERPOSED int setresuid(uid_t real, uid_t effective, uid_t saved)
{
    return followed(next_functions()->setresuid(real, effective, saved));
}

INTERPOSED int setresgid(gid_t real, gid_t effective, gid_t saved)
{
    return followed(next_functions()->setresgid(real, effective, saved));
}

/* These two return what was there before. */
INTERPOSED int setfsuid(uid_t user)
{
    int before = next_functions()->setfsuid(user);
    sampler_follow();
    return before;
}

INTERPOSED int setfsgid(gid_t group)
{
    int before = next_functions()->setfsgid(group);
    sampler_follow();
    return before;
}

INTERPOSED int setgroups(size_t count, const gid_t *groups)
{
    return followed(next_functions()->setgroups(count, groups));
}

INTERPOSED int initgroups(const char *user, gid_t group)
{
    return followed(next_functions()->initgroups(user, group));
}

INTERPOSED int capset(void *header, const void *data)
{
    return followed(next_functions()->capset(header, data));
}

INTERPOSED int chroot(const char *path)
{
    return followed(next_functions()->chroot(path));
}

INTERPOSED int pivot_root(const char *new_root, const char *old_root)
{
    return followed(next_functions()->pivot_root(new_root, old_root));
}
