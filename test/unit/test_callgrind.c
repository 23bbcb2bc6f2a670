/* Files of callgrind; test/cli/callgrind.py compares real ones with callgrind_annotate.  SPDX-License-Identifier: MIT
 */
#include "decoded.h"
#include "test.h"

#include "format/text/callgrind.h"

TEST(callers_share_the_cost_of_what_they_both_call)
{
    check_stacks(&format_callgrind,
                 "version: 1\npositions: line\nevents: Ir\n\n"
                 "fl=(1) a.c\nfn=(1) main\n1 10\ncfn=(2) left\ncalls=1 5\n+1 40\ncfn=(3) right\ncalls=1 9\n* 60\n\n"
                 "fn=(2)\n5 10\ncfn=(4) shared\ncalls=1 20\n* 30\n\nfn=(3)\n9 0\ncfn=(4)\ncalls=2 20\n9 60\n\n"
                 "fn=(4)\n20 80\n21 10\n",
                 "main 10\nmain;left 10\nmain;left;shared 30\nmain;right;shared 60\n");
}

TEST(a_recursion_keeps_the_cost_of_each_function)
{
    check_stacks(&format_callgrind,
                 "events: Ir\nfn=main\n1 1\ncfn=even\ncalls=1 1\n1 30\nfn=even\n2 10\ncfn=odd\ncalls=5 3\n2 55\n"
                 "cfn=even\ncalls=5 3\n2 90\nfn=odd\n3 20\ncfn=even\ncalls=5 2\n3 35\n",
                 "main 1\nmain;even 10\nmain;even;odd 20\n");
}

TEST(places_that_cost_nothing_by_the_first_event_are_kept)
{
    struct profile profile;
    profile_init(&profile);
    const char *text = "events: Ir Dr Dw\nfn=a\n1 0 5\ncfn=a\ncalls=1 1\n1 0\nfn=b\n1 1 1 1\n";
    CHECK_UINT(callgrind_decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 2);
    CHECK_INT(profile_sample_values(&profile, 0)[1], 5);
    CHECK_INT(profile_sample_values(&profile, 0)[2], 0);
    profile_fini(&profile);
}

static void check_written(const char *collapsed, const char *expected)
{
    struct profile profile;
    struct buffer out;
    profile_init(&profile);
    buffer_init(&out, 1 << 16);
    CHECK_UINT(format_collapsed.decode(slice_of_text(collapsed), &profile, NULL), STATUS_OK);
    CHECK_UINT(callgrind_encode(&profile, &out, NULL), STATUS_OK);
    buffer_append_byte(&out, '\0');
    const char *body = strstr((const char *)out.data, "events:");
    CHECK(body != NULL);
    CHECK_TEXT(body, expected);
    buffer_fini(&out);
    profile_fini(&profile);
}

TEST(writes_own_costs_and_calls_of_each_function)
{
    check_written("main 1\nmain;leaf 5\nmain;middle;leaf 10\n",
                  "events: samples\n\nob=(1) ???\nfl=(1) ???\nfn=(1) main\n0 1\ncfi=(1)\ncfn=(2) leaf\ncalls=1 0\n0 5\n"
                  "cfi=(1)\ncfn=(3) middle\ncalls=1 0\n0 10\n\nob=(1)\nfl=(1)\nfn=(2)\n0 15\n\n"
                  "ob=(1)\nfl=(1)\nfn=(3)\ncfi=(1)\ncfn=(2)\ncalls=1 0\n0 10\n\ntotals: 16\n");
}

/* even → odd costs 7, though the last of the samples is in the second of these calls. */
TEST(writes_a_recursive_call_once_for_each_sample)
{
    check_written(
        "even;odd 3\neven;odd;even;odd 4\n",
        "events: samples\n\nob=(1) ???\nfl=(1) ???\nfn=(1) odd\n0 7\ncfi=(1)\ncfn=(2) even\ncalls=1 0\n0 4\n\n"
        "ob=(1)\nfl=(1)\nfn=(2)\ncfi=(1)\ncfn=(1)\ncalls=1 0\n0 7\n\n"
        "ob=(1)\nfl=(1)\nfn=(3) (root)\ncfi=(1)\ncfn=(2)\ncalls=1 0\n0 3\n\ntotals: 7\n");
}

/* Without that, callgrind_annotate and KCachegrind show 10 for leaf, less than its own 12. */
TEST(root_calls_functions_that_begin_stacks_and_have_callers)
{
    check_written(
        "main;leaf 10\nleaf 2\nother 1\n",
        "events: samples\n\nob=(1) ???\nfl=(1) ???\nfn=(1) leaf\n0 12\n\n"
        "ob=(1)\nfl=(1)\nfn=(2) other\n0 1\n\nob=(1)\nfl=(1)\nfn=(3) main\ncfi=(1)\ncfn=(1)\ncalls=1 0\n0 10\n\n"
        "ob=(1)\nfl=(1)\nfn=(4) (root)\ncfi=(1)\ncfn=(1)\ncalls=1 0\n0 2\n\ntotals: 13\n");
}

TEST(the_smallest_value_can_be_taken_off_the_root)
{
    check_written(
        "even;odd;even -9223372036854775807\neven;odd;even -1\n",
        "events: samples\n\nob=(1) ???\nfl=(1) ???\nfn=(1) even\n0 -9223372036854775807\ncfi=(1)\ncfn=(2) odd\n"
        "calls=1 0\n0 -9223372036854775807\n\nob=(1)\nfl=(1)\nfn=(2)\ncfi=(1)\ncfn=(1)\ncalls=1 0\n"
        "0 -9223372036854775807\n\ntotals: -9223372036854775807\n");
}

TEST(the_default_value_is_the_first_event_and_units_have_no_blanks)
{
    struct profile profile;
    struct buffer out;
    profile_init(&profile);
    buffer_init(&out, 1 << 16);
    profile_add_value_type(&profile, "page faults", "count");
    profile_add_value_type(&profile, "cpu", "nanoseconds");
    profile_add_sample(&profile, &(struct sample){0}, (int64_t[]){2, -70});
    CHECK_UINT(callgrind_encode(&profile, &out, NULL), STATUS_OK);
    buffer_append_byte(&out, '\0');
    CHECK_TEXT(
        strstr((const char *)out.data, "events:"),
        "events: cpu(nanoseconds) page_faults\n\nob=(1) ???\nfl=(1) ???\nfn=(1) ???\n0 -70 2\n\ntotals: -70 2\n");
    buffer_fini(&out);
    profile_fini(&profile);
}

TEST(units_of_events_are_read_and_values_below_zero_kept)
{
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(callgrind_decode(slice_of_text("events: Time_(10ns) Memory_(bytes)\nfn=f\n1 7 -40\n"), &profile, NULL),
               STATUS_OK);
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[0].type), "Time");
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[0].unit), "nanoseconds");
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[1].unit), "bytes");
    CHECK_INT(profile_sample_values(&profile, 0)[0], 70);
    CHECK_INT(profile_sample_values(&profile, 0)[1], -40);
    profile_fini(&profile);
}

TEST(positions_are_relative_and_inlined_code_has_its_own_file)
{
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(callgrind_decode(slice_of_text("positions: instr line\nevents: Ir\nob=/bin/p\nfl=a.c\nfn=f\n"
                                              "0x1000 10 1\n+4 +2 1\nfi=b.h\n* -5 1\nfe=a.c\n-2 * 1\n"),
                                &profile, NULL),
               STATUS_OK);
    static const struct {
        uint64_t address;
        int64_t line;
        const char *file;
    } places[] = {{0x1000, 10, "a.c"}, {0x1004, 12, "a.c"}, {0x1004, 7, "b.h"}, {0x1002, 7, "a.c"}};
    CHECK_UINT(profile.samples.count, 4);
    for (size_t i = 0; i < 4; i++) {
        struct stack stack = profile_stack(&profile, profile.samples.stack[i]);
        const struct location *place = profile_location(&profile, stack.location);
        const struct line *line = profile_lines(&profile, place);
        CHECK_UINT(place->address, places[i].address);
        CHECK_INT(line->line, places[i].line);
        CHECK_TEXT(profile_c_string(&profile, profile_function(&profile, line->function)->file_name), places[i].file);
        CHECK_TEXT(profile_c_string(&profile, profile_mapping(&profile, place->mapping)->file_name), "/bin/p");
    }
    profile_fini(&profile);
}

TEST(rejects_what_is_broken_with_its_place)
{
    static const struct {
        const char *text;
        uint64_t offset;
        enum status status;
    } files[] = {
        {"events: Ir\n1 1\n", 11, STATUS_MALFORMED},
        {"events: Ir\nfn=f\n1 1 1\n", 16, STATUS_MALFORMED},
        {"events: Ir\nfn=f\n1 x\n", 16, STATUS_MALFORMED},
        {"events: Ir\nfn=(4)\n", 11, STATUS_MALFORMED},
        {"events: Ir\nfn=f\ncalls=1 1\n", 16, STATUS_MALFORMED},
        {"events: Ir\nhello\n", 11, STATUS_MALFORMED},
        {"events:\nfn=f\n", 0, STATUS_MALFORMED},
        {"events: Ir\nfn=f\n1 9999999999999999999999\n", 16, STATUS_MALFORMED},
        {"positions: bb\nevents: Ir\n", 0, STATUS_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct profile profile;
        struct error error = {0};
        profile_init(&profile);
        enum status status = callgrind_decode(slice_of_text(files[i].text), &profile, &error);
        if (status != files[i].status || error.offset != files[i].offset)
            TEST_FAIL("%zu: status %d at %d: %s", i, (int)status, (int)error.offset, error.message);
        profile_fini(&profile);
    }
}

TEST(a_file_that_ends_in_a_line_is_cut_short)
{
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    CHECK_UINT(callgrind_decode(slice_of_text("events: Ir\nfn=f\n1 7\ncal"), &profile, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "cut short") != NULL);
    profile_fini(&profile);
}

TEST(only_a_header_with_events_is_callgrind)
{
    CHECK(callgrind_detect(slice_of_text("# callgrind format\nversion: 1\n\nevents: Ir\n")));
    CHECK(callgrind_detect(slice_of_text("version: 1\ncreator: xdebug 3\nevents: Time\n")));
    CHECK(!callgrind_detect(slice_of_text("desc: (none)\ncmd: true\ntime_unit: i\n")));
    CHECK(!callgrind_detect(slice_of_text("main;events: 4\n")));
    CHECK(!callgrind_detect(slice_of_text("")));
}

TEST_MAIN()
