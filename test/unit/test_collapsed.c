/* Collapsed stacks in both directions.  SPDX-License-Identifier: MIT */
#include "real.h"
#include "decoded.h"
#include "test.h"

TEST(lines_are_summed_and_sorted_by_stack)
{
    struct profile profile;
    profile_init(&profile);
    static const char text[] = "main;work 2\n\nmain 5\r\nmain;work 40\nmain;a b;c -3\nmain;zero 0";
    CHECK_UINT(format_collapsed.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 5);
    CHECK_UINT(profile_stack_depth(&profile, profile.samples.stack[0]), 2);
    check_collapsed(&profile, "main 5\nmain;a b;c -3\nmain;work 42\n");
    profile_fini(&profile);
}

TEST(separators_after_the_last_name_part_nothing)
{
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("main;;work;; 2\nmain; 1\n;; 4\n"), &profile, NULL), STATUS_OK);
    check_collapsed(&profile, "[unknown] 4\nmain 1\nmain;[unknown];work 2\n");
    profile_fini(&profile);
}

TEST(a_missing_number_is_another_format_or_later_an_error)
{
    static const char *const others[] = {"",   "\n\n", "main;work", "main;work 4x\n", "a;b 99999999999999999999\n",
                                         "a; "};
    struct profile profile;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        profile_init(&profile);
        CHECK_UINT(format_collapsed.decode(slice_of_text(others[i]), &profile, NULL), STATUS_NOT_THIS_FORMAT);
        profile_fini(&profile);
    }
    struct error error;
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("a;b 1\na;c\n"), &profile, &error), STATUS_MALFORMED);
    CHECK_UINT(error.offset, 6);
    profile_fini(&profile);
}

TEST(writes_inlined_functions_as_frames_and_unnamed_ones_by_file)
{
    struct profile profile;
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    profile_add_value_type(&profile, "wall", "nanoseconds");
    struct mapping libc = {.start = 4096, .limit = 8192, .file_name = profile_text(&profile, "/lib/libc.so.6")};
    struct location in_libc = {.mapping = profile_add_mapping(&profile, &libc), .address = 5000};
    struct function inlined = {.name = profile_text(&profile, "operator;()")};
    struct function real = {.name = profile_text(&profile, "run\nnow")};
    struct line lines[] = {{.function = profile_add_function(&profile, &inlined)},
                           {.function = profile_add_function(&profile, &real)}};
    struct location_id places[] = {
        profile_add_location(&profile, &in_libc, NULL, 0),
        profile_add_location(&profile, &(struct location){.address = 9}, lines, 2),
        profile_add_location(&profile, &(struct location){.address = 0xabc}, NULL, 0),
    };
    struct stack_id stack = {0};
    static const int64_t values[] = {1, 10};
    profile_add_sample(&profile, &(struct sample){0}, values);
    for (size_t i = 0; i < 3; i++) stack = profile_add_stack(&profile, stack, places[i]);
    profile_add_sample(&profile, &(struct sample){.stack = stack}, values);
    check_collapsed(&profile, "[libc.so.6];run now;operator:()_[i];0xabc 10\n[unknown] 10\n");
    profile.default_value_type = profile_text(&profile, "samples");
    check_collapsed(&profile, "[libc.so.6];run now;operator:()_[i];0xabc 1\n[unknown] 1\n");
    profile_fini(&profile);
}

TEST(marks_show_inlined_functions_the_kernel_and_jit_code)
{
    static const char text[] = "main;made_[j];_[k] 1\n"
                               "main;outer;inner_[i];innermost_[i];call;sys_read_[k];copy_[i] 3\n";
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    struct stack_id leaf = profile.samples.stack[1];
    CHECK_UINT(profile_stack_depth(&profile, leaf), 4);
    const struct location *kernel = profile_location(&profile, profile_stack(&profile, leaf).location);
    CHECK_UINT(kernel->line_count, 2);
    CHECK_TEXT(profile_c_string(&profile, profile_mapping(&profile, kernel->mapping)->file_name), "[kernel]");
    check_collapsed(&profile, text);
    profile_fini(&profile);
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("a_[0] 1\n"), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.locations.items[1].kind, FRAME_INTERPRETED);
    check_collapsed(&profile, "a_[0] 1\n");
    profile_fini(&profile);
}

TEST(two_numbers_are_a_difference_only_if_every_line_has_them)
{
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("a;b 1 2\na;c 0 5\n"), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.value_type_count, 2);
    CHECK_INT(profile_sample_values(&profile, 0)[0], 1);
    CHECK_INT(profile_sample_values(&profile, 0)[1], 2);
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[1].type), "after");
    profile_fini(&profile);
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("a;b 1 2\na;c 5\n"), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.value_type_count, 1);
    check_collapsed(&profile, "a;b 1 2\na;c 5\n");
    profile_fini(&profile);
}

TEST(a_last_line_that_is_cut_short_is_left_out_and_named)
{
    static const struct {
        const char *text;
        int64_t last;
    } cut[] = {{"a;b 1\na;c 2\na;d", 2},
               {"a;b 1 2\na;c 3 4\na;d 5", 3},
               {"# mode: full\n# austin: 3\nP1;T2;a:b:1 5,1,9\nP1;T2;a:c:1 6,0,-2\nP1;T2;a:b:1 5,1", 6}};
    struct profile profile;
    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
        profile_init(&profile);
        CHECK_UINT(format_collapsed.decode(slice_of_text(cut[i].text), &profile, NULL), STATUS_OK);
        CHECK_UINT(profile.samples.count, 2);
        CHECK_INT(profile_sample_values(&profile, 1)[0], cut[i].last);
        CHECK_UINT(profile.omissions.count, 1);
        profile_fini(&profile);
    }
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("a;b 1\na;c\na;d 2"), &profile, NULL), STATUS_MALFORMED);
    profile_fini(&profile);
}

TEST(a_tab_may_separate_the_number_and_comments_are_kept)
{
    struct profile profile;
    profile_init(&profile);
    static const char text[] = "# sampler: 3.6.0\n#\n\nmain;a b\t4\n# mode: wall 5\n#<Class:Set>;new 2\n";
    CHECK_UINT(format_collapsed.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.comments.count, 2);
    CHECK_TEXT(profile_c_string(&profile, profile.comments.items[1]), "mode: wall 5");
    check_collapsed(&profile, "#<Class:Set>;new 2\nmain;a b 4\n");
    profile_fini(&profile);
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("a\t1\t2\nb\t3\t4\n"), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.value_type_count, 2);
    CHECK_INT(profile_sample_values(&profile, 1)[0], 3);
    profile_fini(&profile);
}

TEST(fractions_are_read_in_the_smallest_unit_that_keeps_them)
{
    static const struct {
        const char *text, *unit;
        int64_t first;
    } files[] = {
        {"a 1.0\nb 2.\n", "count", 1},
        {"a 1.5\nb -2.25\n", "thousandths", 1500},
        {"a 3\nb 0.0004\n", "millionths", 3000000},
        {"a 0.12345678987654321\n", "billionths", 123456789},
    };
    static const char *const written[] = {"a 1\nb 2\n", "a 1.5\nb -2.25\n", "a 3\nb 0.0004\n", "a 0.123456789\n"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct profile profile;
        profile_init(&profile);
        CHECK_UINT(format_collapsed.decode(slice_of_text(files[i].text), &profile, NULL), STATUS_OK);
        CHECK_TEXT(profile_c_string(&profile, profile.value_types[0].unit), files[i].unit);
        CHECK_INT(profile_sample_values(&profile, 0)[0], files[i].first);
        check_collapsed(&profile, written[i]);
        profile_fini(&profile);
    }
}

TEST(rejects_a_number_that_has_no_room_with_its_place)
{
    static const char *const broken[] = {"a 1.5\nb 9223372036854775807\n", "a 1\nb 99999999999999999999\n",
                                         "a 1\nb 1.5x\n", "a 1\nb .5\n", "a 1\nb 1e5\n"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct profile profile;
        struct error error = {0};
        profile_init(&profile);
        CHECK_UINT(format_collapsed.decode(slice_of_text(broken[i]), &profile, &error),
                   i == 0 ? STATUS_TOO_LARGE : STATUS_MALFORMED);
        CHECK_UINT(error.offset, i == 0 ? 6 : 4);
        profile_fini(&profile);
    }
}

TEST(a_real_file_is_written_as_it_was_read)
{
    struct profile profile;
    struct buffer bytes, out;
    buffer_init(&bytes, 1 << 20);
    buffer_init(&out, 1 << 20);
    CHECK_INT(file_read(real_path("jfr/cpu.collapsed"), &bytes, NULL), STATUS_OK);
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(buffer_slice(&bytes), &profile, NULL), STATUS_OK);
    CHECK_UINT(format_collapsed.encode(&profile, &out, NULL), STATUS_OK);
    CHECK_UINT(out.size, bytes.size);
    buffer_fini(&out);
    buffer_fini(&bytes);
    profile_fini(&profile);
}

TEST(what_is_written_is_utf_8)
{
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("(\xb5/\xfd;\xc3\xa4\xc3 7\n"), &profile, NULL), STATUS_OK);
    check_collapsed(&profile, "(?/?;\xc3\xa4? 7\n");
    profile_fini(&profile);
}

TEST(nothing_is_a_file_that_says_so)
{
    struct profile profile;
    struct buffer out;
    profile_init(&profile);
    buffer_init(&out, 1 << 16);
    CHECK_UINT(format_collapsed.encode(&profile, &out, NULL), STATUS_OK);
    CHECK(slice_equals_text(buffer_slice(&out), "# no samples\n"));
    CHECK_UINT(format_collapsed.decode(buffer_slice(&out), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 0);
    CHECK_UINT(profile.value_type_count, 1);
    buffer_fini(&out);
    profile_fini(&profile);
}

static void check_thread(const struct profile *profile, size_t sample, int64_t pid, const char *id, const char *name)
{
    const struct thread *thread = profile_thread(profile, profile->samples.thread[sample]);
    CHECK_INT(profile_process(profile, thread->process)->pid, pid);
    CHECK_TEXT(profile_c_string(profile, thread->id), id);
    CHECK_TEXT(profile_c_string(profile, thread->name), name);
}

static void check_function(const struct profile *profile, size_t sample, const char *name, const char *file, int64_t at)
{
    struct location_id leaf = profile_stack(profile, profile->samples.stack[sample]).location;
    const struct line *line = profile_lines(profile, profile_location(profile, leaf));
    const struct function *function = profile_function(profile, line->function);
    CHECK_TEXT(profile_c_string(profile, function->name), name);
    CHECK_TEXT(profile_c_string(profile, function->file_name), file);
    CHECK_INT(line->line, at);
}

TEST(austin_has_threads_lines_and_the_unit_of_its_mode)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/cli/data/trials/co_austin.txt", &format_collapsed, &profile);
    CHECK_UINT(profile.value_type_count, 1);
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[0].unit), "microseconds");
    CHECK_INT(profile.period, 100);
    CHECK_UINT(profile.duration_ns, 250000);
    CHECK_INT(profile_sample_values(&profile, 0)[0] + profile_sample_values(&profile, 1)[0], 250);
    check_thread(&profile, 0, 4317, "0:7ffff", "");
    check_function(&profile, 0, "f", "/a b/x.py", 3);
    check_function(&profile, 1, "<module>", "/usr/lib/python3/foo.py", 12);
    CHECK_UINT(profile.functions.count, 3); /* with none */
    profile_fini(&profile);
}

TEST(austin_without_a_header_has_wall_time)
{
    struct profile profile;
    profile_init(&profile);
    static const char text[] = "P43;T0:7ffff;/a b/x.py:<module>:10;x.py:f:3 1000\nP43;T7fffe 500\n";
    CHECK_UINT(format_collapsed.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[0].type), "wall");
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[0].unit), "microseconds");
    CHECK_UINT(profile.comments.count, 1);
    check_thread(&profile, 0, 43, "0:7ffff", "");
    check_function(&profile, 0, "f", "x.py", 3);
    check_thread(&profile, 1, 43, "7fffe", "");
    profile_fini(&profile);
    static const char other[] = "P43;T0;f 3\n"; /* functions that are called so */
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text(other), &profile, NULL), STATUS_OK);
    check_collapsed(&profile, other);
    profile_fini(&profile);
}

TEST(austin_in_full_mode_has_three_values)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/cli/data/trials/co_austin_idle.txt", &format_collapsed, &profile);
    static const int64_t expected[2][3] = {{100, 100, 0}, {50, 0, 2048}};
    CHECK_UINT(profile.value_type_count, 3);
    for (size_t i = 0; i < 6; i++) CHECK_INT(profile_sample_values(&profile, i / 3)[i % 3], expected[i / 3][i % 3]);
    check_thread(&profile, 0, 43, "1", "");
    profile_fini(&profile);

    static const struct {
        const char *text;
        uint64_t offset;
    } broken[] = {{"# austin: 3\n# mode: full\nP1;T2;a:b:1 5\n", 25}, {"# austin: 3\nP1;T2;a:b:1 5,0,1\n", 12}};
    for (size_t i = 0; i < 2; i++) {
        struct error error = {0};
        profile_init(&profile);
        CHECK_UINT(format_collapsed.decode(slice_of_text(broken[i].text), &profile, &error), STATUS_MALFORMED);
        CHECK_UINT(error.offset, broken[i].offset);
        profile_fini(&profile);
    }
}

TEST(threads_and_sources_of_py_spy_and_async_profiler_are_no_names)
{
    struct profile profile;
    profile_init(&profile);
    static const char text[] = "process 1:\"sh\";process 123:\"python a.py\";thread (0x7F3A);<module> (app.py:3) 2\n"
                               "thread (34): MainThread;work (<string>:1) 3\n"
                               "[worker 1 tid=35];java/lang/Thread.run;[unknown] 4\n"
                               "[tid=36] 5\n"
                               "thread (pool);process 7;[a tid=x];f (a.c:3);(b.py:1) 6\n";
    CHECK_UINT(format_collapsed.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    check_thread(&profile, 0, 123, "0x7F3A", "");
    CHECK_TEXT(profile_c_string(&profile, profile.processes.items[1].name), "python a.py");
    check_function(&profile, 0, "<module>", "app.py", 3);
    check_thread(&profile, 1, 0, "34", "MainThread");
    check_function(&profile, 1, "work", "<string>", 1);
    check_thread(&profile, 2, 0, "35", "worker 1");
    check_thread(&profile, 3, 0, "36", "");
    CHECK_UINT(profile.samples.thread[4].index, 0);
    check_collapsed(&profile, "<module> 2\n[unknown] 5\njava/lang/Thread.run;[unknown] 4\n"
                              "thread (pool);process 7;[a tid=x];f (a.c:3);(b.py:1) 6\nwork 3\n");
    profile_fini(&profile);
}

TEST(processes_and_threads_of_stackcollapse_perf_are_no_names)
{
    struct profile profile;
    profile_init(&profile);
    static const char text[] = "kworker/0:1-12/34;f 2\npython-?/35;f-1/2 3\na/b;f 4\npython-?;f 5\n";
    CHECK_UINT(format_collapsed.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    check_thread(&profile, 0, 12, "34", "kworker/0:1");
    check_thread(&profile, 1, 0, "35", "python");
    check_collapsed(&profile, "a/b;f 4\nf 2\nf-1/2 3\npython-?;f 5\n");
    profile_fini(&profile);
}

TEST(sources_of_rbspy_and_of_functions_of_py_spy_are_no_names)
{
    struct profile profile;
    profile_init(&profile);
    static const char text[] = "block in work - /app/b.rb:10 2\nf (app.py) 3\n<c function> - unknown 4\n"
                               "a - b 5\noperator< (<x>) 6\na - b.c:3 7\n";
    CHECK_UINT(format_collapsed.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    check_function(&profile, 0, "block in work", "/app/b.rb", 10);
    check_function(&profile, 1, "f", "app.py", 0);
    check_function(&profile, 2, "<c function>", "", 0);
    check_function(&profile, 3, "a - b", "", 0);
    check_function(&profile, 4, "operator< (<x>)", "", 0);
    check_function(&profile, 5, "a - b.c:3", "", 0);
    profile_fini(&profile);
}

TEST(a_name_may_begin_as_json_does)
{
    CHECK(format_collapsed.detect(slice_of_text("[{ad \"x\" 5000\n")));
    CHECK(!format_collapsed.detect(slice_of_text("[{\"name\":\"read 5")));
    CHECK(!format_collapsed.detect(slice_of_text("{\"version\": 5\n,\"a\":1}\n")));
}

TEST_MAIN()
