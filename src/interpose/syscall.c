/* The system calls that syscall.S does not pass on. Calls that change rights change the calling thread only, and the
 * sampler shares the first thread's rights.  SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"
#include "interpose/syscall_numbers.h"

#include "sampler/sampler.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>

enum { NUMBER_OF_LANDLOCK_RESTRICT_SELF = 446, MATTERS = 1 };

extern const uint8_t interpose_syscall_matters[INTERPOSE_NUMBERS_END];
const uint8_t interpose_syscall_matters[INTERPOSE_NUMBERS_END] = {
    [SYS_setuid] = MATTERS,   [SYS_setgid] = MATTERS,      [SYS_setreuid] = MATTERS,
    [SYS_setregid] = MATTERS, [SYS_setresuid] = MATTERS,   [SYS_setresgid] = MATTERS,
    [SYS_setfsuid] = MATTERS, [SYS_setfsgid] = MATTERS,    [SYS_setgroups] = MATTERS,
    [SYS_capset] = MATTERS,   [SYS_chroot] = MATTERS,      [SYS_pivot_root] = MATTERS,
    [SYS_prctl] = MATTERS,    [SYS_unshare] = MATTERS,     [SYS_setns] = MATTERS,
    [SYS_seccomp] = MATTERS,  [SYS_sigaltstack] = MATTERS, [NUMBER_OF_LANDLOCK_RESTRICT_SELF] = MATTERS,
    [SYS_mlockall] = MATTERS,
};

struct call {
    long number;
    const long *arguments;
};

static long make_call(const struct call *call)
{
    const long *arguments = call->arguments;
    return interpose_next_syscall(call->number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                                  arguments[5]);
}

#define MAKER(name, number)                                                                                            \
    static long make_##name(const long arguments[6])                                                                   \
    {                                                                                                                  \
        return make_call(&(struct call){number, arguments});                                                           \
    }
MAKER(unshare, SYS_unshare)
MAKER(setns, SYS_setns)
MAKER(prctl, SYS_prctl)
MAKER(seccomp, SYS_seccomp)
MAKER(sigaltstack, SYS_sigaltstack)
MAKER(mlockall, SYS_mlockall)
MAKER(landlock, NUMBER_OF_LANDLOCK_RESTRICT_SELF)
#undef MAKER

static long call_prctl(const long arguments[6])
{
    bool confines = arguments[0] == PR_SET_SECCOMP && arguments[1] != 0 &&
                    (arguments[1] == SECCOMP_MODE_STRICT || arguments[2] != 0);
    if (confines) return interpose_confinement(make_prctl, arguments);
    long result = make_prctl(arguments);
    return interpose_changes_rights(arguments[0]) ? interpose_followed(result) : result;
}

long interpose_syscall(long number, long a, long b, long c, long d, long e, long f);

long interpose_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    const long arguments[6] = {a, b, c, d, e, f};
    if (number == SYS_sigaltstack) return interpose_sigaltstack(make_sigaltstack, arguments);
    if (number == SYS_mlockall) return interpose_mlockall(make_mlockall, arguments);
    if (!interpose_is_watched()) return make_call(&(struct call){number, arguments});
    switch (number) {
    case SYS_prctl:
        return call_prctl(arguments);
    case SYS_seccomp:
        if (a != SECCOMP_SET_MODE_STRICT && (a != SECCOMP_SET_MODE_FILTER || c == 0)) return make_seccomp(arguments);
        return interpose_confinement(make_seccomp, arguments);
    case SYS_unshare:
        if (!interpose_unshare_matters((unsigned long)a)) return make_unshare(arguments);
        return interpose_alone(make_unshare, arguments, true);
    case SYS_setns:
        if (!interpose_setns_matters((int)a, (int)b)) return make_setns(arguments);
        return interpose_alone(make_setns, arguments, true);
    case NUMBER_OF_LANDLOCK_RESTRICT_SELF:
        return interpose_alone(make_landlock, arguments, false);
    default:
        break;
    }
    long result = make_call(&(struct call){number, arguments});
    return interpose_is_leader() ? interpose_followed(result) : result;
}
