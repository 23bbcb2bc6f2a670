/* setuid and its relatives. libc makes the change on each thread that it made; the sampler thread is not one of those.
 * SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/sampler.h"
#include "sdk/aside.h"

#include <grp.h>
#include <sys/fsuid.h>
#include <unistd.h>

int capset(void *header, const void *data);                 /* libc has no header for it */
int pivot_root(const char *new_root, const char *old_root); /* likewise */

long interpose_followed(long result)
{
    if (result == -1) return result;
    sampler_follow();
    sdk_follow_rights();
    return result;
}

static int followed(int result)
{
    return (int)interpose_followed(result);
}

/* libc has changed the rights of all its threads; if the library's threads have stepped aside, theirs did not change.
 * */
static int changed_everywhere(int result, bool is_aside)
{
    if (result != -1) sampler_follow();
    if (is_aside) sdk_come_back();
    return result;
}

INTERPOSED int setuid(uid_t user)
{
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->setuid(user), is_aside);
}

INTERPOSED int setgid(gid_t group)
{
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->setgid(group), is_aside);
}

INTERPOSED int seteuid(uid_t user)
{
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->seteuid(user), is_aside);
}

INTERPOSED int setegid(gid_t group)
{
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->setegid(group), is_aside);
}

INTERPOSED int setreuid(uid_t real, uid_t effective)
{
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->setreuid(real, effective), is_aside);
}

INTERPOSED int setregid(gid_t real, gid_t effective)
{
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->setregid(real, effective), is_aside);
}

INTERPOSED int setresuid(uid_t real, uid_t effective, uid_t saved)
{
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->setresuid(real, effective, saved), is_aside);
}

INTERPOSED int setresgid(gid_t real, gid_t effective, gid_t saved)
{
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->setresgid(real, effective, saved), is_aside);
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
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->setgroups(count, groups), is_aside);
}

INTERPOSED int initgroups(const char *user, gid_t group)
{
    bool is_aside = sdk_step_aside_if_rights_differ();
    return changed_everywhere(next_functions()->initgroups(user, group), is_aside);
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
