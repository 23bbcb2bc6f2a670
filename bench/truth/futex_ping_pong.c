/* Two threads that wake each other after short work. Argument: microseconds of work.  SPDX-License-Identifier: MIT */
#include "truth.h"
#include <linux/futex.h>

static _Atomic int turn;
static double us, end;
static struct spent worked[2], all[2];

FUNCTION static void ping_work(void)
{
    spin_us(us * 2 * drand48());
}

FUNCTION static void pong_work(void)
{
    spin_us(us * 4 * drand48());
}

FUNCTION static void wait_turn(int me)
{
    while (turn != me) syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 1 - me, NULL, NULL, 0);
}

FUNCTION static void give_turn(int me)
{
    turn = 1 - me;
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static INLINED void work(int me)
{
    if (me)
        pong_work();
    else
        ping_work();
}

static void *run(void *number)
{
    int me = (int)(intptr_t)number;
    struct spent start = spent_until_now();
    while (now() < end) {
        wait_turn(me);
        MEASURE(worked[me], work(me));
        give_turn(me);
    }
    give_turn(me);
    add_since(&all[me], start);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    pthread_t first, second;
    us = atof(argv[1]);
    calibrate();
    end = end_after(1);
    pthread_create(&first, NULL, run, NULL);
    pthread_create(&second, NULL, run, (void *)1);
    pthread_join(first, NULL);
    give_turn(0);
    pthread_join(second, NULL);
    PRINT_TRUTH(ping_work, worked[0]);
    PRINT_TRUTH(pong_work, worked[1]);
    for (int i = 0; i < 2; i++) print_spent("TRUTH", "(all)", all[i]);
}
