/* prctl. A seccomp filter may kill the process for any system call that the sampler thread makes, so that thread ends
 * before a filter takes effect. libc declares prctl with a variable number of arguments; on x86-64 they all come in
 * registers, as if there were always five. SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/sampler.h"
#include "sdk/aside.h"

#include <linux/prctl.h>

int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

long interpose_confinement(interpose_call make_call, const long arguments[6])
{
    struct sampler_absence absence;
    bool without_threads = sdk_step_aside(SDK_ASIDE_FOR_GOOD);
    bool without_sampler = sampler_step_aside(RECORDING_END_SECCOMP, &absence);
    long result = make_call(arguments);
    bool is_confined = result == 0;
    if (without_sampler && is_confined) sampler_stay_away();
    if (without_sampler && !is_confined) sampler_come_back(&absence);
    if (without_threads && is_confined) sdk_stay_away();
    if (without_threads && !is_confined) sdk_come_back();
    return result;
}

static long make_prctl(const long arguments[6])
{
    return next_functions()->prctl((int)arguments[0], (unsigned long)arguments[1], (unsigned long)arguments[2],
                                   (unsigned long)arguments[3], (unsigned long)arguments[4]);
}

/* Concerns the calling thread only. */
bool interpose_changes_rights(long option)
{
    return option == PR_SET_NO_NEW_PRIVS || option == PR_SET_KEEPCAPS || option == PR_SET_SECUREBITS ||
           option == PR_CAPBSET_DROP || option == PR_CAP_AMBIENT;
}

/* Programs ask for a filter without an address to find out whether the kernel supports filters. */
static bool may_confine(int option, unsigned long mode, unsigned long filter)
{
    enum { MODE_STRICT = 1, MODE_FILTER = 2 };
    return option == PR_SET_SECCOMP && (mode == MODE_STRICT || (mode == MODE_FILTER && filter != 0));
}

INTERPOSED int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    const long arguments[6] = {option, (long)a, (long)b, (long)c, (long)d};
    if (may_confine(option, a, b)) return (int)interpose_confinement(make_prctl, arguments);
    long result = make_prctl(arguments);
    if (option == PR_SET_NAME) sampler_note_name();
    return (int)(interpose_changes_rights(option) ? interpose_followed(result) : result);
}
