/* A thread that changes its name.  SPDX-License-Identifier: MIT */
#include "truth.h"
#include <sys/prctl.h>

static struct spent red, blue, all;

FUNCTION static void as_red(void)
{
    spin_us(150000);
}

FUNCTION static void as_blue(void)
{
    spin_us(450000);
}

static void *run(void *unused)
{
    (void)unused;
    struct spent start = spent_until_now();
    for (double end = end_after(1); now() < end;) {
        prctl(PR_SET_NAME, "red");
        MEASURE(red, as_red());
        prctl(PR_SET_NAME, "blue");
        MEASURE(blue, as_blue());
    }
    add_since(&all, start);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    calibrate();
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
    PRINT_TRUTH(as_red, red);
    PRINT_TRUTH(as_blue, blue);
    print_spent("THREAD", "red", red);
    print_spent("THREAD", "blue", blue);
    print_spent("TRUTH", "(all)", all);
}
