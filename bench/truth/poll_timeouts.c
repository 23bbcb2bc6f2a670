/* Waits with short timeouts, and some work between them. No wait may end with EINTR.  SPDX-License-Identifier: MIT */
#include "truth.h"
#include <poll.h>
#include <sys/epoll.h>

static struct spent in_epoll, in_poll, worked;
static int interrupted, waits;

static void count(int result)
{
    waits++;
    if (result < 0 && errno == EINTR) interrupted++;
}

FUNCTION static void ep_wait(int descriptor)
{
    struct epoll_event event;
    count(epoll_wait(descriptor, &event, 1, 1 + (int)(lrand48() % 3)));
}

FUNCTION static void pl_wait(void)
{
    count(poll(NULL, 0, 1 + (int)(lrand48() % 3)));
}

FUNCTION static void work(void)
{
    spin_us(2000 * drand48());
}

int main(void)
{
    int descriptor = epoll_create1(0);
    calibrate();
    for (double end = end_after(1); now() < end;) {
        MEASURE(in_epoll, ep_wait(descriptor));
        MEASURE(in_poll, pl_wait());
        MEASURE(worked, work());
    }
    PRINT_TRUTH(ep_wait, in_epoll);
    PRINT_TRUTH(pl_wait, in_poll);
    PRINT_TRUTH(work, worked);
    fprintf(stderr, "NEVER interrupted %d %d\n", interrupted, waits);
}
