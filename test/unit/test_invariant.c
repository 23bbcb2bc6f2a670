/* SPDX-License-Identifier: MIT */
#include "base/invariant.h"
#include "test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A function at a module boundary, as the library has them. */
static int element(const int *items, size_t count, size_t index)
{
    if (!INVARIANT(index < count)) return -1;
    return items[index];
}

static const int items[] = {7, 8};

/* Runs an invariant that fails in a child: its wait status, and what it printed. */
static int status_of_failure(bool aborts, char *output, size_t size)
{
    int ends[2], status = -1;
    if (pipe(ends) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(ends[1], STDERR_FILENO);
        invariant_set_aborts(aborts);
        _exit(element(items, 2, 2) == -1 && invariant_failures() == 1 ? 42 : 1);
    }
    (void)close(ends[1]);
    ssize_t length = read(ends[0], output, size - 1);
    output[length > 0 ? length : 0] = '\0';
    (void)close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

TEST(an_invariant_that_holds_is_true_and_counts_nothing)
{
    unsigned before = invariant_failures();
    CHECK_INT(element(items, 2, 1), 8);
    CHECK_UINT(invariant_failures(), before);
}

TEST(a_failed_invariant_aborts_under_test_and_prints_where)
{
    char output[512];
    int status = status_of_failure(true, output, sizeof(output));
    CHECK(WIFSIGNALED(status));
    CHECK_INT(WTERMSIG(status), SIGABRT);
    CHECK(strstr(output, "test_invariant.c:"));
    CHECK(strstr(output, "index < count"));
}

TEST(a_failed_invariant_degrades_in_the_field)
{
    char output[512];
    int status = status_of_failure(false, output, sizeof(output));
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 42);
    CHECK_TEXT(output, "");
}

/* A new process reads the environment at load. */
TEST(the_environment_chooses_what_a_failure_does)
{
    const char *const values[] = {"abort", "", NULL};
    for (size_t i = 0; i < 3; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            const struct rlimit no_core = {0};
            (void)setrlimit(RLIMIT_CORE, &no_core);
            (void)close(STDERR_FILENO);
            if (values[i])
                (void)setenv("OFFBEAT_INVARIANTS", values[i], 1);
            else
                (void)unsetenv("OFFBEAT_INVARIANTS");
            (void)execl("/proc/self/exe", "test_invariant", "--fail", (char *)NULL);
            _exit(1);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (i == 0)
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        else
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--fail") == 0) return element(items, 2, 2) == -1 ? 42 : 1;
    return test_run_all(argc, argv);
}
