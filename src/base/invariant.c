/* SPDX-License-Identifier: MIT */
#include "base/invariant.h"

#include "base/environment.h"
#include "base/kernel.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_uint failures;
static atomic_bool aborts;

/* Reads the setting at load: a signal handler may not call getenv. */
__attribute__((constructor)) static void read_environment(void)
{
    const char *value = environment_get("OFFBEAT_INVARIANTS");
    if (value && strcmp(value, "abort") == 0) atomic_store(&aborts, true);
}

void invariant_set_aborts(bool wanted)
{
    atomic_store(&aborts, wanted);
}

unsigned invariant_failures(void)
{
    return atomic_load(&failures);
}

void invariant_failed(const char *line)
{
    size_t length = 0;
    atomic_fetch_add(&failures, 1);
    if (!atomic_load(&aborts)) return;
    while (line[length]) length++;
    (void)kernel_write(STDERR_FILENO, line, length);
    /* Not abort(), which needs the thread-local storage of libc. */
    (void)kernel_call3(SYS_kill, kernel_call3(SYS_getpid, 0, 0, 0), SIGABRT, 0);
    __builtin_trap(); /* SIGABRT is blocked, or a handler of the program has returned */
}
