/* unshare and setns. The kernel denies a new user, mount or time namespace to a process of more than one thread, or
 * one that shares its root directory (unshare(2), setns(2)), and it counts the sampler thread. Other namespaces belong
 * to threads: the sampler comes back as a clone of the calling thread, and so in the new ones. A pid namespace is for
 * children only. SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "base/kernel.h"
#include "sampler/sampler.h"
#include "sdk/aside.h"

#include <errno.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NEW_TIME_NAMESPACE = 0x80 }; /* CLONE_NEWTIME */

bool interpose_unshare_matters(unsigned long flags)
{
    return (flags & ~(unsigned long)(CLONE_FILES | CLONE_SYSVSEM | CLONE_NEWPID | NEW_TIME_NAMESPACE)) != 0;
}

/* DESCRIPTOR is a namespace of a type that the kernel reports, or a pidfd. */
bool interpose_setns_matters(int descriptor, int type)
{
    long found = kernel_call3(SYS_ioctl, descriptor, NS_GET_NSTYPE, 0);
    long types = found > 0 ? found : type;
    return types != CLONE_NEWPID;
}

/* Makes the call, and repeats it for at most 51 ms: the kernel takes a thread off its lists a moment after it has
 * vanished, and the thread may have lost its processor meanwhile. */
static long make_alone(interpose_call make_call, const long arguments[6], bool needs_one_thread)
{
    enum { TRIES = 8 };
    struct timespec pause = {.tv_nsec = 200000};
    int kept_errno = errno;
    long result = make_call(arguments);
    for (unsigned i = 0; i < TRIES && needs_one_thread && result == -1 && (errno == EINVAL || errno == EUSERS); i++) {
        (void)kernel_call3(SYS_nanosleep, kernel_address(&pause), 0, 0);
        pause.tv_nsec *= 2;
        errno = kept_errno;
        result = make_call(arguments);
    }
    return result;
}

long interpose_alone(interpose_call make_call, const long arguments[6], bool needs_one_thread)
{
    struct sampler_absence absence;
    if (!interpose_is_leader()) return make_call(arguments);
    bool without_threads = sdk_step_aside(SDK_ASIDE);
    bool without_sampler = sampler_step_aside(RECORDING_END_NAMESPACE, &absence);
    long result = make_alone(make_call, arguments, needs_one_thread && (without_threads || without_sampler));
    if (without_sampler) sampler_come_back(&absence);
    if (without_threads) sdk_come_back();
    return result;
}

static long make_unshare(const long arguments[6])
{
    return next_functions()->unshare((int)arguments[0]);
}

static long make_setns(const long arguments[6])
{
    return next_functions()->setns((int)arguments[0], (int)arguments[1]);
}

INTERPOSED int unshare(int flags)
{
    const long arguments[6] = {flags};
    if (!interpose_is_watched() || !interpose_unshare_matters((unsigned)flags)) return (int)make_unshare(arguments);
    return (int)interpose_alone(make_unshare, arguments, true);
}

INTERPOSED int setns(int descriptor, int type)
{
    const long arguments[6] = {descriptor, type};
    if (!interpose_is_watched() || !interpose_setns_matters(descriptor, type)) return (int)make_setns(arguments);
    return (int)interpose_alone(make_setns, arguments, true);
}
