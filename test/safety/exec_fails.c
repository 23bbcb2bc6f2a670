/* A thread tries to run a file that no kernel runs, again and again; meanwhile the profiler is started and stopped.
 * Arguments: the file, and how often. */
#include <offbeat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static atomic_bool over;
static _Atomic long denied;
static void *exec_again_and_again(void *file)
{
    char *const arguments[] = {file, NULL};
    while (!over) {
        execve(file, arguments, arguments + 1);
        denied++;
        nanosleep(&(struct timespec){.tv_nsec = 20000}, 0);
    }
    return 0;
}
static void *nothing(void *x)
{
    return x;
}
int main(int count, char **arguments)
{
    pthread_t thread, other;
    int starts = atoi(arguments[2]), failures = 0;
    pthread_create(&thread, 0, exec_again_and_again, arguments[1]);
    for (int i = 0; i < starts; i++) {
        if (pthread_create(&other, 0, nothing, 0) == 0)
            pthread_join(other, 0);
        else
            failures++;
        offbeat_init(&(struct offbeat_options){
            .size = sizeof(struct offbeat_options), .profile_session_sample_rate = 1, .shutdown_timeout_ms = 2000});
        offbeat_start_profiler();
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, 0);
        offbeat_shutdown();
    }
    over = 1;
    pthread_join(thread, 0);
    printf("%ld %d\n", denied, failures);
    return 0;
}
