/* Threads that wait in one place under changing callers, all called through pointers and with frame pointers: what was
 * left on the stack by one caller must not be taken for another. Each wait differs from the next by its first
 * argument, of which the kernel makes no use. Argument: seconds. SPDX-License-Identifier: MIT */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 8 };

typedef int function(void);

static volatile int sink;

__attribute__((noinline)) static int wait_a_little(void)
{
    static _Thread_local uintptr_t number;
    int result = poll((struct pollfd *)++number, 0, 1 + (sink & 3));
    sink++;
    return result;
}

static function *volatile waits = wait_a_little;

__attribute__((noinline)) static int first(void)
{
    int result = waits();
    sink++;
    return result;
}

__attribute__((noinline)) static int second(void)
{
    int result = waits();
    sink += 2;
    return result + 1;
}

/* Has a frame that covers the memory of the other frames. */
__attribute__((noinline)) static int with_room(void)
{
    volatile char room[64];
    room[3] = 1;
    int result = waits();
    sink += 2;
    return result + room[3];
}

static function *const callers[] = {first, second, with_room};

__attribute__((noinline)) static int descend(unsigned depth, function *caller)
{
    int result = depth ? descend(depth - 1, caller) + 1 : caller();
    sink++;
    return result;
}

static void *run(void *unused)
{
    for (unsigned turn = 1;; turn = turn * 1103515245 + 12345) {
        function *caller = callers[(turn >> 16) % 3];
        if (turn >> 20 & 1)
            caller();
        else
            descend((turn >> 24) % 5, caller);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 3);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, NULL) != 0) return 1;
    }
    while (time(NULL) < end) (void)poll(NULL, 0, 50);
    return 0;
}
