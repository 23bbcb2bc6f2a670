/* Forks all the time while the library's own thread loads libcurl. Each child loads libcurl itself, and ends. The last
 * line counts the children that did not end well.  SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
    double end = now() + (count > 1 ? atof(arguments[1]) : 0.5);
    unsigned children = 0, failed = 0;
    while (now() < end) {
        pid_t child = fork();
        if (child == 0) _exit(dlopen("libcurl.so.4", RTLD_NOW) ? 0 : 1);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) return 2;
        children++;
        failed += status != 0;
    }
    printf("%u children, %u failed\n", children, failed);
    return children == 0;
}
