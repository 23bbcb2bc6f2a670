/* System calls that compute for tens of milliseconds, and user code. A signal comes at a call's end.
 * SPDX-License-Identifier: MIT */
#include "truth.h"

#include <sys/mman.h>
#include <sys/uio.h>

enum { PARTS = 1000, PART_SIZE = 2 << 20 };

static struct spent calls, user;

/* Reads a file of holes, part after part to the same place. */
FUNCTION static void long_call(int file)
{
    static char place[PART_SIZE];
    static struct iovec parts[PARTS];
    for (int i = 0; i < PARTS; i++) parts[i] = (struct iovec){place, PART_SIZE};
    if (preadv(file, parts, PARTS, 0) != (ssize_t)PARTS * PART_SIZE) exit(3);
    KEEP_FRAME();
}

FUNCTION static void user_work(void)
{
    spin_us(about(10000));
}

int main(void)
{
    int file = memfd_create("holes", 0);
    if (file < 0 || ftruncate(file, (off_t)PARTS * PART_SIZE) != 0) return 2;
    calibrate();
    for (double end = end_after(1); now() < end;) {
        MEASURE(calls, long_call(file));
        MEASURE(user, user_work());
    }
    PRINT_TRUTH(long_call, calls);
    PRINT_TRUTH(user_work, user);
}
