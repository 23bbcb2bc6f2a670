/* Opens and closes files for MILLISECONDS and says the lowest number that they had; status 1 if a number was taken for
 * longer than a moment. A file that another thread of the process has open for a moment may take one.
 *
 *   descriptors MILLISECONDS
 *
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_MOMENT = 20 /* times 10 ms */ };

static long now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    long end = now_ms() + (argc > 1 ? atol(argv[1]) : 1000);
    int lowest = 1 << 30, others_in_a_row = 0, longest = 0;
    while (now_ms() < end) {
        int number = open("/dev/null", O_RDONLY);
        others_in_a_row = number <= lowest ? 0 : others_in_a_row + 1;
        if (number < lowest) lowest = number;
        if (others_in_a_row > longest) longest = others_in_a_row;
        if (number >= 0) (void)close(number);
        (void)nanosleep(&moment, NULL);
    }
    printf("descriptor %d\n", lowest);
    return longest > LONGEST_MOMENT;
}
