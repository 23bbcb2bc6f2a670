/* _exit and _Exit end the process without its destructors, which is how a forked child should end. What was sampled
 * last would be lost. exit needs nothing: libc's own call of _exit does not come here, and the destructors have run.
 * SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sdk/aside.h"

#include <stdlib.h>
#include <unistd.h>

INTERPOSED void _exit(int status)
{
    sdk_end_recording();
    next_functions()->_exit(status);
    __builtin_unreachable();
}

INTERPOSED void _Exit(int status)
{
    _exit(status);
}
