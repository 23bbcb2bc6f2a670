/* Profiles of Python. The numbers are what the module pstats prints for the same files.  SPDX-License-Identifier: MIT
 */
#include "decoded.h"
#include "test.h"

#define PSTATS TEST_SOURCE_ROOT "/test/data/pstats/"

/* The sum of what the function NAME of line LINE counts itself. */
static int64_t sum_of(const struct profile *profile, const char *name, int64_t line, size_t column)
{
    int64_t sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const struct location *leaf =
            profile_location(profile, profile_stack(profile, profile->samples.stack[i]).location);
        const struct function *function = profile_function(profile, profile_lines(profile, leaf)->function);
        if (strcmp(profile_c_string(profile, function->name), name) == 0 && function->start_line == line)
            sum += profile_sample_values(profile, i)[column];
    }
    return sum;
}

TEST(calls_and_times_are_those_that_pstats_prints)
{
    struct profile profile;
    read_profile(PSTATS "python3.11.pstats", &format_pstats, &profile);
    CHECK_INT(sum_of(&profile, "fib", 2, 1), 2325);
    CHECK_INT(sum_of(&profile, "<genexpr>", 4, 1), 40002);
    CHECK_INT(sum_of(&profile, "<built-in method builtins.sorted>", 0, 1), 2);
    CHECK_INT((sum_of(&profile, "<genexpr>", 4, 0) + 500000) / 1000000, 20);
    CHECK_INT((sum_of(&profile, "fib", 2, 0) + 500000) / 1000000, 3);
    int64_t calls = 0;
    for (size_t i = 0; i < profile.samples.count; i++) calls += profile_sample_values(&profile, i)[1];
    CHECK_INT(calls, 42343);
    profile_fini(&profile);
}

TEST(reads_what_the_module_profile_writes)
{
    struct profile profile;
    read_profile(PSTATS "pure-python.pstats", &format_pstats, &profile);
    CHECK_INT(sum_of(&profile, "inner", 2, 1), 50);
    CHECK_INT(sum_of(&profile, "outer", 3, 1), 1);
    profile_fini(&profile);
}

/* `python3 -m profile` calls what it ran by its code, which each of these versions of Python writes in another way. */
TEST(reads_code_as_the_name_of_a_function)
{
    static const char *const names[] = {PSTATS "code-3.7.pstats", PSTATS "code-3.10.pstats", PSTATS "code-3.13.pstats"};
    for (size_t i = 0; i < 3; i++) {
        struct profile profile;
        read_profile(names[i], &format_pstats, &profile);
        CHECK_INT(sum_of(&profile, "inner", 1, 1), 9);
        CHECK_INT(sum_of(&profile, "<genexpr>", 2, 1), 45);
        CHECK_INT(sum_of(&profile, "<module>", 0, 1), 1);
        profile_fini(&profile);
    }
}

TEST(reads_interned_strings_of_python_2)
{
    struct profile profile;
    read_profile(PSTATS "python2.7.pstats", &format_pstats, &profile);
    CHECK_INT(sum_of(&profile, "f", 2, 0), 8521000);
    CHECK_INT(sum_of(&profile, "f", 2, 1), 8361);
    CHECK_INT(sum_of(&profile, "<lambda>", 3, 0), 77000);
    CHECK_INT(sum_of(&profile, "<sorted>", 0, 0), 1690000);
    profile_fini(&profile);
}

TEST(rejects_what_is_broken_and_says_where)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum status status;
        uint64_t offset;
    } broken[] = {
        {"{)\3z\1ai\1\0\0\0z\1f)\5i", 18, STATUS_MALFORMED, 17},
        {"{)\3z\1ar\7\0\0\0z\1f0", 16, STATUS_MALFORMED, 11},
        {"{(\3\0\0\0t\1\0\0\0aR\7\0\0\0", 17, STATUS_MALFORMED, 17},
        {"{)\3z\1ai\1\0\0\0z\1f?....", 19, STATUS_UNSUPPORTED, 15},
        {"{)\3z\1ai\1\0\0\0z\1fi\1\0\0\0"
         "0",
         20, STATUS_MALFORMED, 20},
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct profile profile;
        struct error error = {0};
        profile_init(&profile);
        enum status status = format_pstats.decode(slice_of(broken[i].bytes, broken[i].size), &profile, &error);
        if (status != broken[i].status || error.offset != broken[i].offset)
            TEST_FAIL("%zu: status %d at %d: %s", i, status, (int)error.offset, error.message);
        profile_fini(&profile);
    }
}

TEST_MAIN()
