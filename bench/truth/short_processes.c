/* One short child after the other. Arguments: fork, or spawn, which runs this program again; microseconds of its work.
 * A spawned child's time begins where its parent spawns it, as a profile's does: with exec and the loader.
 * SPDX-License-Identifier: MIT */
#include "truth.h"
#include <spawn.h>

extern char **environ;

static struct spent child, parent;

FUNCTION static void child_work(double us)
{
    spin_us(us);
}

FUNCTION static void parent_work(double us)
{
    spin_us(us);
}

static void run_child(double us)
{
    MEASURE(child, child_work(us));
    PRINT_TRUTH(child_work, child);
}

static void fork_child(double us)
{
    double start = now();
    pid_t pid = fork();
    if (pid == 0) {
        run_child(us);
        struct spent all = spent_until_now();
        all.wall -= start;
        print_spent("TRUTH", "(all)", all);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void spawn_child(char **argv)
{
    char frequency[32], start[32];
    char *arguments[] = {argv[0], "child", argv[2], frequency, start, NULL};
    pid_t pid;
    snprintf(frequency, sizeof(frequency), "%.0f", ticks_a_second);
    snprintf(start, sizeof(start), "%.9f", now());
    if (posix_spawn(&pid, argv[0], NULL, NULL, arguments, environ) == 0) waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    double us = atof(argv[2]);
    if (argc > 4) {
        ticks_a_second = atof(argv[3]);
        process_start = atof(argv[4]);
        run_child(us);
        return 0;
    }
    calibrate();
    for (double end = end_after(1); now() < end;) {
        if (strcmp(argv[1], "fork") == 0)
            fork_child(us);
        else
            spawn_child(argv);
        MEASURE(parent, parent_work(us));
    }
    PRINT_TRUTH(parent_work, parent);
}
