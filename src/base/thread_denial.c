/* SPDX-License-Identifier: MIT */
#include "base/thread_denial.h"

#include "base/kernel.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_bool is_lasting;

bool thread_denial_may_end(struct thread_denial *denial, long error)
{
    enum { COUNT_MAX = 100 };
    const struct timespec pause = {.tv_nsec = 1000000};
    if (error == 0) atomic_store(&is_lasting, false);
    if (error != EAGAIN || atomic_load(&is_lasting)) return false;
    if (++denial->count == COUNT_MAX) {
        atomic_store(&is_lasting, true);
        return false;
    }
    (void)kernel_call3(SYS_nanosleep, kernel_address(&pause), 0, 0);
    return true;
}
