/* Follows its arguments: works for a while, copies standard input to standard output, and ends as asked. For tests of
 * how a recorded program ends.
 *
 *   behaves MILLISECONDS [cat] (exit STATUS | signal NUMBER)
 *
 * SIGTERM and SIGINT make it say so on standard error and end with status 40 and 41.  SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t received;
static volatile uint64_t sink;

static void receive(int number)
{
    received = number;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

__attribute__((noinline)) static void works(uint64_t duration_ms)
{
    uint64_t start_ms = now_ms();
    while (!received && now_ms() - start_ms < duration_ms)
        for (uint64_t i = 0; i < 20000; i++) sink = sink * 31 + i;
}

static void copy_input(void)
{
    char bytes[4096];
    ssize_t count;
    while ((count = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0)
        if (write(STDOUT_FILENO, bytes, (size_t)count) != count) exit(1);
    fprintf(stderr, "copied\n");
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    signal(SIGTERM, receive);
    signal(SIGINT, receive);
    works(strtoul(argv[1], NULL, 10));
    if (received) {
        fprintf(stderr, "received signal %d\n", (int)received);
        return received == SIGTERM ? 40 : 41;
    }
    if (strcmp(argv[2], "cat") == 0) copy_input();
    int number = atoi(argv[argc - 1]);
    if (strcmp(argv[argc - 2], "signal") == 0) {
        signal(number, SIG_DFL);
        raise(number);
    }
    return number;
}
