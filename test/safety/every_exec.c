/* Runs itself again by each function of the exec family, with arguments beyond the registers, after a call that fails.
 * Each program lives for 30 ms: its recording is worth writing. The last one also execs in a child of vfork. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char next[16], self[] = "/proc/self/exe";

#define MANY "every_exec", next, "b", "c", "d", "e", "f", "g", "h", "i", "j"

static void spin(void)
{
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000l + now.tv_nsec - start.tv_nsec < 30000000);
}

static void in_child_of_vfork(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/echo", "echo", "in", "a", "child", (char *)0);
        _exit(1);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    int step = argc > 1 ? atoi(argv[1]) : 0;
    char *words[] = {MANY, NULL}, *variables[] = {"EVERY=own", NULL, NULL, NULL, NULL};
    size_t count = 1;
    for (char **one = environ; *one && count < 4; one++) {
        if ((*one)[0] == 'L' || (*one)[0] == 'O') variables[count++] = *one; /* LD_PRELOAD, OFFBEAT_... */
    }
    for (int i = 0; i < argc; i++) printf("%s ", argv[i]);
    printf("%s\n", getenv("EVERY") ? getenv("EVERY") : "");
    spin();
    errno = 0;
    int failed = execl("/nonexistent/program", MANY, (char *)0);
    printf("%d %d\n", failed, errno);
    fflush(stdout);
    snprintf(next, sizeof(next), "%d", step + 1);
    switch (step) {
    case 0:
        execl(self, MANY, (char *)0);
        break;
    case 1:
        execlp(self, MANY, (char *)0);
        break;
    case 2:
        execle(self, MANY, (char *)0, environ);
        break;
    case 3:
        execv(self, words);
        break;
    case 4:
        execvp(self, words);
        break;
    case 5:
        execve(self, words, environ);
        break;
    case 6:
        execvpe(self, words, environ);
        break;
    case 7:
        fexecve(open(self, O_RDONLY | O_CLOEXEC), words, environ);
        break;
    case 8:
        execveat(AT_FDCWD, self, words, environ, 0);
        break;
    case 9:
        execle(self, MANY, (char *)0, variables);
        break;
    default:
        in_child_of_vfork();
        return 0;
    }
    return 1;
}
