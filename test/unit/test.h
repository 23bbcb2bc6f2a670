/* The test runner: TEST(what_must_hold) { CHECK…(…); } and TEST_MAIN() at the end; prints TAP.
 * A failed check ends its test. SKIP("why") ends it as skipped, loudly.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_H
#define OFFBEAT_TEST_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
};

static struct test_case *test_first, **test_last = &test_first;
static jmp_buf test_end;
static const char *test_skip_reason = "";

#define TEST(name)                                                                                                     \
    static void test_##name(void);                                                                                     \
    static struct test_case test_case_##name = {#name, test_##name, NULL};                                             \
    __attribute__((constructor)) static void test_register_##name(void)                                                \
    {                                                                                                                  \
        *test_last = &test_case_##name;                                                                                \
        test_last = &test_case_##name.next;                                                                            \
    }                                                                                                                  \
    static void test_##name(void)

#define TEST_FAIL(...)                                                                                                 \
    do {                                                                                                               \
        printf("# %s:%d: ", __FILE__, __LINE__);                                                                       \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
        longjmp(test_end, TEST_FAILED);                                                                                \
    } while (0)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) TEST_FAIL("%s", #condition);                                                                 \
    } while (0)

#define CHECK_UINT(actual, expected)                                                                                   \
    do {                                                                                                               \
        uint64_t check_a = (uint64_t)(actual), check_e = (uint64_t)(expected);                                         \
        if (check_a != check_e) TEST_FAIL("%s: %" PRIu64 ", expected %" PRIu64, #actual, check_a, check_e);            \
    } while (0)

#define CHECK_INT(actual, expected)                                                                                    \
    do {                                                                                                               \
        int64_t check_a = (int64_t)(actual), check_e = (int64_t)(expected);                                            \
        if (check_a != check_e) TEST_FAIL("%s: %" PRId64 ", expected %" PRId64, #actual, check_a, check_e);            \
    } while (0)

#define CHECK_TEXT(actual, expected)                                                                                   \
    do {                                                                                                               \
        const char *check_a = (actual), *check_e = (expected);                                                         \
        if (!check_a || strcmp(check_a, check_e) != 0)                                                                 \
            TEST_FAIL("%s: \"%s\", expected \"%s\"", #actual, check_a ? check_a : "(null)", check_e);                  \
    } while (0)

#define SKIP(reason)                                                                                                   \
    do {                                                                                                               \
        test_skip_reason = (reason);                                                                                   \
        longjmp(test_end, TEST_SKIPPED);                                                                               \
    } while (0)

enum test_outcome { TEST_PASSED, TEST_FAILED, TEST_SKIPPED };

static enum test_outcome test_run(const struct test_case *test)
{
    enum test_outcome outcome = (enum test_outcome)setjmp(test_end);
    if (outcome == TEST_PASSED) test->run();
    return outcome;
}

/* An argument runs only the tests whose name contains it. */
static int test_run_all(int argc, char **argv)
{
    unsigned number = 0, failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (const struct test_case *test = test_first; test; test = test->next) {
        if (argc > 1 && !strstr(test->name, argv[1])) continue;
        number++;
        enum test_outcome outcome = test_run(test);
        if (outcome == TEST_FAILED) failed++;
        printf("%s %u - %s%s%s\n", outcome == TEST_FAILED ? "not ok" : "ok", number, test->name,
               outcome == TEST_SKIPPED ? " # SKIP " : "", outcome == TEST_SKIPPED ? test_skip_reason : "");
    }
    printf("1..%u\n", number);
    return failed ? 1 : 0;
}

#define TEST_MAIN()                                                                                                    \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        return test_run_all(argc, argv);                                                                               \
    }

#endif
