/* Redirects standard input for MILLISECONDS as shells do, and reads each time what it finds there: another thread that
 * opens a file between the two calls is given 0, loses it to the next dup2, and then reads or closes the program's
 * file. Status 1 if that happened. Then prints how many redirections there were, and "ready", and waits for the end of
 * standard input.
 *
 *   redirects MILLISECONDS
 *
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAVED_FROM = 10 };

static long now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int redirect(const char *path)
{
    int file = open(path, O_RDONLY), saved = fcntl(0, F_DUPFD, SAVED_FROM);
    (void)close(0);
    (void)dup2(file, 0);
    (void)close(file);
    return saved;
}

static void restore(int saved)
{
    (void)dup2(saved, 0);
    (void)close(saved);
}

static int reads_it(void)
{
    char text[16] = "";
    return read(0, text, sizeof(text) - 1) == 8 && strcmp(text, "expected") == 0;
}

/* Opens PATH as daemons and old shells do it. */
static int takes_zero(const char *path)
{
    (void)close(0);
    return open(path, O_RDONLY) == 0;
}

int main(int argc, char **argv)
{
    const char *path = "redirects.txt";
    long end = now_ms() + (argc > 1 ? atol(argv[1]) : 1000), count = 0, wrong = 0;
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    if (write(file, "expected", 8) != 8 || close(file) != 0) return 2;
    for (; now_ms() < end; count++) {
        int saved = redirect(path);
        wrong += !reads_it();
        wrong += !takes_zero(path);
        restore(saved);
    }
    printf("%ld redirections, %ld wrong\nready\n", count, wrong);
    fflush(stdout);
    while (getchar() != EOF) continue;
    return wrong > 0;
}
