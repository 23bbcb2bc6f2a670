/* Threads that begin and end in all ways. What is printed must be the same with and without liboffbeat.so, which
 * interposes pthread_create: room on the stack, results, errno, order of destructors. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_key_t key;
static pthread_barrier_t barrier;

static void *measure_stack(void *unused)
{
    pthread_attr_t attributes;
    void *lowest, *frames[32];
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &lowest, &size);
    /* Thread-local variables of libraries are above. */
    size_t below_top = (size_t)((char *)lowest + size - (char *)__builtin_frame_address(0));
    printf("stack: %zu * 512 below its top, %d frames, errno %d\n", below_top / 512, backtrace(frames, 32), errno);
    pthread_attr_destroy(&attributes);
    return "returned";
}

static void *leave(void *argument)
{
    pthread_exit(argument);
}

static void cleaned(void *what)
{
    printf("cleaned up: %s\n", (char *)what);
}

static void *wait_deferred(void *unused)
{
    pthread_cleanup_push(cleaned, "deferred");
    for (;;) pause();
    pthread_cleanup_pop(0);
    return NULL;
}

static void *wait_asynchronous(void *unused)
{
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    pthread_cleanup_push(cleaned, "asynchronous");
    pthread_barrier_wait(&barrier);
    for (;;) __asm__ volatile("pause");
    pthread_cleanup_pop(0);
    return NULL;
}

/* Comes back as often as destructors may. */
static void destroy(void *round)
{
    intptr_t number = (intptr_t)round;
    printf("destructor %d\n", (int)number);
    if (number < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(key, (void *)(number + 1));
}

static void *has_data(void *unused)
{
    pthread_setspecific(key, (void *)1);
    return NULL;
}

static void *forks(void *unused)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) pthread_exit(NULL); /* the last thread of the child */
    waitpid(child, &status, 0);
    printf("child: %x\n", status);
    return NULL;
}

static void *count(void *counter)
{
    __atomic_fetch_add((int *)counter, 1, __ATOMIC_SEQ_CST);
    return counter;
}

static void run(void *(*routine)(void *), void *argument, const pthread_attr_t *attributes)
{
    pthread_t thread;
    void *result = NULL;
    errno = 7;
    int error = pthread_create(&thread, attributes, routine, argument);
    int kept_errno = errno;
    if (error) printf("pthread_create = %d, errno %d\n", error, kept_errno);
    if (error) return;
    if (routine == wait_asynchronous) pthread_barrier_wait(&barrier);
    if (routine == wait_deferred || routine == wait_asynchronous) pthread_cancel(thread);
    error = pthread_join(thread, &result);
    const char *text = result == PTHREAD_CANCELED ? "canceled" : result ? result : "nothing";
    printf("pthread_create = 0, errno %d; pthread_join = %d, %s\n", kept_errno, error, text);
}

static void run_many(int detached)
{
    static int counter;
    pthread_attr_t attributes;
    pthread_t thread;
    counter = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, detached);
    for (int i = 0; i < 3000; i++) {
        while (pthread_create(&thread, &attributes, count, &counter) != 0) sched_yield();
        if (detached == PTHREAD_CREATE_JOINABLE) pthread_join(thread, NULL);
    }
    while (__atomic_load_n(&counter, __ATOMIC_SEQ_CST) < 3000) sched_yield();
    printf("%d threads\n", counter);
}

int main(void)
{
    pthread_attr_t small, huge;
    void *frames[2];
    (void)backtrace(frames, 2); /* loads libgcc_s */
    pthread_key_create(&key, destroy);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, (size_t)1 << 50);
    run(measure_stack, NULL, NULL);
    run(measure_stack, NULL, &small);
    run(measure_stack, NULL, &huge);
    run(leave, "left", NULL);
    run(wait_deferred, NULL, NULL);
    run(wait_asynchronous, NULL, NULL);
    run(has_data, NULL, NULL);
    run(forks, NULL, NULL);
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_DEFAULT, "pthread_create");
    pthread_t thread;
    printf("found by dlsym: %d\n", create(&thread, NULL, leave, NULL));
    pthread_join(thread, NULL);
    run_many(PTHREAD_CREATE_JOINABLE);
    run_many(PTHREAD_CREATE_DETACHED);
    fflush(stdout);
    pthread_exit(NULL);
}
