/* Counts the timers of its process (/proc/self/timers) while three threads compute: before a call of exec, which fails,
 * right after it, later, right after it has asked for SIGURG, and later. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int timers(void)
{
    char line[256];
    int count = 0;
    FILE *file = fopen("/proc/self/timers", "r");
    while (file && fgets(line, sizeof(line), file)) count += strncmp(line, "ID:", 3) == 0;
    if (file) fclose(file);
    return count;
}

static void *compute(void *unused)
{
    for (volatile unsigned long x = 0;; x++) continue;
    return unused;
}

static int later(void)
{
    struct timespec moment = {.tv_nsec = 500000000};
    nanosleep(&moment, NULL);
    return timers();
}

int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, compute, NULL);
    printf("%d ", later());
    execlp("/nonexistent", "x", (char *)NULL);
    printf("%d ", timers());
    printf("%d ", later());
    signal(SIGURG, SIG_DFL);
    printf("%d ", timers());
    printf("%d\n", later());
    return 0;
}
