/* mlockall: a program that locks its memory has not asked for ours, and RLIMIT_MEMLOCK bounds both.
 * SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "base/pages.h"

#include <sys/mman.h>

long interpose_mlockall(interpose_call make_call, const long arguments[6])
{
    if (arguments[0] & MCL_FUTURE) pages_leave_unlocked();
    long result = make_call(arguments);
    if (result == 0) pages_unlock_all();
    return result;
}

static long make_mlockall(const long arguments[6])
{
    return next_functions()->mlockall((int)arguments[0]);
}

INTERPOSED int mlockall(int flags)
{
    const long arguments[6] = {flags};
    return (int)interpose_mlockall(make_mlockall, arguments);
}
