/* Waits for a child of vfork, which borrows the stack of its parent, and for a child of clone that shares its memory.
 * Only the waits are measured: the children are separate processes.  SPDX-License-Identifier: MIT */
#include "truth.h"
#include <sched.h>

static struct spent in_vfork, in_clone, worked;

FUNCTION static void vfork_and_wait(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        spin_us(20000);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static int help(void *unused)
{
    (void)unused;
    spin_us(20000);
    return 0;
}

FUNCTION static void clone_and_wait(void)
{
    static char stack[65536];
    pid_t pid = clone(help, stack + sizeof(stack) - 64, CLONE_VM | SIGCHLD, NULL);
    waitpid(pid, NULL, 0);
}

FUNCTION static void par(void)
{
    spin_us(10000);
}

int main(void)
{
    calibrate();
    for (double end = end_after(1); now() < end;) {
        MEASURE(in_vfork, vfork_and_wait());
        MEASURE(in_clone, clone_and_wait());
        MEASURE(worked, par());
    }
    PRINT_TRUTH(vfork_and_wait, in_vfork);
    PRINT_TRUTH(clone_and_wait, in_clone);
    PRINT_TRUTH(par, worked);
}
