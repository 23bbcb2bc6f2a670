/* Work in a signal handler that has its own stack.  SPDX-License-Identifier: MIT */
#include "truth.h"

static struct spent handler, normal;

FUNCTION static void in_handler(void)
{
    spin_us(about(5000));
}

FUNCTION static void normal_work(void)
{
    spin_us(about(5000));
}

static void handle(int number)
{
    (void)number;
    MEASURE(handler, in_handler());
}

int main(void)
{
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    calibrate();
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (double end = end_after(1); now() < end;) {
        raise(SIGUSR1);
        MEASURE(normal, normal_work());
    }
    PRINT_TRUTH(in_handler, handler);
    PRINT_TRUTH(normal_work, normal);
}
