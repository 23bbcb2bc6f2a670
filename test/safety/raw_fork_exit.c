/* Children that are made without fork handlers call exit. With the argument "preloaded" the program does not call the
 * library. SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <offbeat.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int c, char **v)
{
    if (c < 2 || strcmp(v[1], "preloaded")) {
        offbeat_init(&(struct offbeat_options){
            .size = sizeof(struct offbeat_options), .profile_session_sample_rate = 1.0, .traces_sample_rate = 1});
        offbeat_start_profiler();
    }
    struct timespec z = {0, 300000000};
    nanosleep(&z, 0);
    for (int k = 0; k < 2; k++) {
        double a = now();
        pid_t p = k ? _Fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (p == 0) exit(0);
        int st;
        waitpid(p, &st, 0);
        printf("%s + exit(): child took %.3f s, status %x\n", k ? "_Fork" : "raw clone", now() - a, st);
        fflush(stdout);
    }
    return 0;
}
