/* _exit and _Exit end the process without its destructors, which is how a forked child should end; exec (exec.S) ends
 * all of its threads. The last samples would be lost. exit needs no wrapper: libc's own call of _exit does not come
 * here, and the destructors have run. Nor do libc's own calls of exec, in posix_spawn and system: these are in a child
 * that has its parent's memory. SPDX-License-Identifier: MIT */
#include "interpose/interpose_private.h"

#include "sampler/sampler.h"
#include "sdk/aside.h"

#include <errno.h>
#include <stdint.h>
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

static int fail_with_enosys(void)
{
    errno = ENOSYS;
    return -1;
}

/* Async-signal-safe, as exec is. glibc before 2.34 has no execveat. */
void *interpose_before_exec(unsigned number)
{
    sampler_flush();
    sampler_expect_exec();
    void *next = next_functions()->exec[number];
    return next ? next : (void *)(uintptr_t)fail_with_enosys;
}
