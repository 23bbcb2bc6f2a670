/* A process is distinguished from its children, however they were created.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/environment.h"
#include "base/process.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool ended_well(pid_t child)
{
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

TEST(the_number_stays_the_same_in_a_process)
{
    unsigned number = process_number();
    CHECK(number != 0);
    CHECK_UINT(process_number(), number);
}

static pid_t make_child(int how)
{
    if (how == 0) return fork();
    return how == 1 ? _Fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

TEST(every_child_and_its_child_have_another_number)
{
    unsigned ours = process_number();
    for (int how = 0; how < 3; how++) {
        pid_t child = make_child(how);
        if (child == 0) {
            unsigned theirs = process_number();
            pid_t grandchild = make_child(how);
            if (grandchild == 0) _exit(process_number() == theirs || process_number() == ours);
            _exit(theirs == ours || process_number() != theirs || !ended_well(grandchild));
        }
        CHECK(ended_well(child));
        CHECK_UINT(process_number(), ours);
    }
}

static void *read_number(void *context)
{
    *(unsigned *)context = process_number();
    return NULL;
}

/* In a child, where the first one to ask chooses the number. */
TEST(threads_that_ask_at_once_have_the_same_number)
{
    enum { THREADS = 8, ROUNDS = 50 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        pid_t child = fork();
        if (child != 0) {
            CHECK(ended_well(child));
            continue;
        }
        pthread_t threads[THREADS];
        unsigned numbers[THREADS];
        for (unsigned i = 0; i < THREADS; i++) (void)pthread_create(&threads[i], NULL, read_number, &numbers[i]);
        for (unsigned i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
        for (unsigned i = 1; i < THREADS; i++) {
            if (numbers[i] != numbers[0]) _exit(1);
        }
        _exit(0);
    }
}

static int in_shared_memory(void *number)
{
    return process_number() != *(unsigned *)number;
}

TEST(a_child_that_shares_our_memory_has_our_number)
{
    enum { STACK_BYTES = 64 << 10 };
    unsigned ours = process_number();
    char *stack = malloc(STACK_BYTES);
    CHECK(stack);
    CHECK(ended_well(clone(in_shared_memory, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, &ours)));
    free(stack);
}

TEST(the_environment_of_a_usual_program_counts)
{
    CHECK(environment_is_trusted());
    CHECK_INT(setenv("OFFBEAT_TEST_OF_ENVIRONMENT", "here", 1), 0);
    CHECK_TEXT(environment_get("OFFBEAT_TEST_OF_ENVIRONMENT"), "here");
    CHECK(!environment_get("OFFBEAT_TEST_THAT_IS_NOT_SET"));
}

TEST_MAIN()
