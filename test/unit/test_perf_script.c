/* The text of perf script.  SPDX-License-Identifier: MIT */
#include "real.h"
#include "decoded.h"
#include "test.h"

enum { ALL = DUMP_TIMES | DUMP_THREADS | DUMP_VALUES | DUMP_ADDRESSES | DUMP_LABELS | DECODED_OFFSET };

static const char *read_text(struct buffer *out, const char *text, unsigned what)
{
    return decoded_text(out, &format_perf_script, slice_of_text(text), what);
}

/* PPF-4, facts 3.5: the leaf is where the program was, callers are inside their call. */
TEST(callers_are_stored_less_one_and_inlined_functions_are_of_one_place)
{
    struct buffer out;
    CHECK_TEXT(read_text(&out,
                         "# captured on: today\n\n"
                         "my prog 7/9 [002]   12.000001500:    1000000 task-clock:u: \n"
                         "\t    1010 deep+0x10 (inlined)\n"
                         "\t    1010 outer(int, char)+0x20 (/opt/my prog)\n"
                         "\t  work.c:12\n"
                         "\t    2000 main+0x1 (/opt/my prog)\n"
                         "\t  ffff00 [unknown] (/tmp/gone.so (deleted))\n"
                         "\t       0 [unknown] ([unknown])\n\n",
                         ALL),
               "samples/count task-clock:u/nanoseconds\n"
               "sample at 12000001500 thread 9/my prog 1 1000000 cpu=2\n"
               " @1010 in /opt/my prog deep (:0:0) < outer(int, char) (work.c:12:0)\n"
               " @1fff in /opt/my prog main (:0:0)\n"
               " @fffeff in /tmp/gone.so (deleted) ?\n"
               " @0 in  ?\n");
    buffer_fini(&out);
}

/* MAPPINGS of the profile as text, one a line, without the first, which is empty. */
static const char *mappings_of(struct buffer *out, const char *text)
{
    struct profile profile;
    decode_text(&format_perf_script, text, &profile);
    buffer_init(out, 1 << 16);
    for (size_t i = 1; i < profile.mappings.count; i++) {
        const struct mapping *mapping = &profile.mappings.items[i];
        buffer_append_format(
            out, "%s %s %" PRIx64 "-%" PRIx64 " @ %" PRIx64 "\n", profile_c_string(&profile, mapping->file_name),
            profile_c_string(&profile, mapping->build_id), mapping->start, mapping->limit, mapping->file_offset);
    }
    buffer_append_byte(out, '\0');
    profile_fini(&profile);
    return (const char *)out->data;
}

TEST(records_of_mappings_say_where_files_were)
{
    struct buffer out;
    CHECK_TEXT(mappings_of(&out,
                           "a 1/1 1.0: PERF_RECORD_MMAP2 1/1: [0x400000(0x1000) @ 0 <00ff>]: r--p /opt/a\n"
                           "a 1/1 1.0: PERF_RECORD_MMAP2 1/1: [0x401000(0x1000) @ 0x1000 <00ff>]: r-xp /opt/a\n"
                           "b 2/2 1.0: PERF_RECORD_MMAP2 2/2: [0x7f01000(0x1000) @ 0x1000 <00ff>]: r-xp /opt/a\n"
                           "b 2/2 1.0: PERF_RECORD_MMAP2 2/2: [0x8000(0x1000) @ 0x3000 fe:00 12 0]: r-xp /opt/b ]c\n"
                           "a 1/1 2.0: cycles: 401010 f (/opt/a)\n"
                           "b 2/2 2.0: cycles: 7f01010 f (/opt/a)\n"
                           "b 2/3 2.0: cycles: 8fff f (/opt/b ]c)\n"
                           "b 2/3 2.0: cycles: 9000 f (/opt/b ]c)\n"),
               "/opt/a 00ff 401000-402000 @ 1000\n"
               "/opt/a 00ff 7f01000-7f02000 @ 1000\n"
               "/opt/b ]c  8000-9000 @ 3000\n"
               "/opt/b ]c  0-0 @ 0\n");
    buffer_fini(&out);
}

TEST(frames_of_call_graphs_are_offsets_in_their_files)
{
    struct buffer out;
    CHECK_TEXT(mappings_of(&out, "a 1/1 1.0: PERF_RECORD_MMAP2 1/1: [0x500000(0x1000) @ 0x1000 <00ff>]: r-xp /opt/a\n"
                                 "a 9/9 2.0: cycles: \n"
                                 "\t1010 f (/opt/a)\n"
                                 "\t2000 main (/opt/a)\n"
                                 "\t2001 start (/opt/a)\n\n"),
               "/opt/a  0-0 @ 0\n" /* 2001 is a return address, one too far */
               "/opt/a 00ff 1000-2000 @ 1000\n");
    buffer_fini(&out);
}

TEST(records_of_mappings_that_are_broken_are_ignored)
{
    struct buffer out;
    CHECK_TEXT(mappings_of(&out, "a 1/1 1.0: PERF_RECORD_MMAP2\n"
                                 "a 1/1 1.0: PERF_RECORD_MMAP2 1/1: [0xffffffffffffffff(0x2) @ 0 <00>]: r-xp /opt/a\n"
                                 "a 1/1 1.0: PERF_RECORD_MMAP2 1/1: [0x1000(0x2000) @ 0 <0g>]: r-xp /opt/a\n"
                                 "a 1/1 1.0: PERF_RECORD_MMAP2 1/1: [0x1000(0x2000) @ 0 <00]: r-xp\n"
                                 "a 1/1 2.0: cycles: 1010 f (/opt/a)\n"),
               "/opt/a  1000-3000 @ 0\n");
    buffer_fini(&out);
}

TEST(a_trampoline_and_what_a_signal_interrupted_keep_their_addresses_PPF_4)
{
    struct buffer out;
    CHECK_TEXT(read_text(&out,
                         "a 1/1 2.5: cycles: \n"
                         "\t1010 handler+0x10 (/opt/a)\n"
                         "\t2000 __restore_rt+0x0 (/lib/libc.so.6)\n"
                         "\t1100 interrupted+0x0 (/opt/a)\n"
                         "\t1234 main+0x4 (/opt/a)\n\n",
                         DUMP_ADDRESSES),
               "sample\n"
               " @1010 in /opt/a handler (:0:0)\n"
               " @2000 in /lib/libc.so.6 __restore_rt (:0:0)\n"
               " @1100 in /opt/a interrupted (:0:0)\n"
               " @1233 in /opt/a main (:0:0)\n");
    buffer_fini(&out);
}

TEST(several_events_are_columns_and_several_processes_are_labelled)
{
    struct buffer out;
    CHECK_TEXT(read_text(&out,
                         "a 1/1 2.5: cycles: \n\t10 f ([kernel.kallsyms])\n\n"
                         "b 2/3 1.5: 7 instructions:u: 20 g+0x1 (/b)\n"
                         "a 1/1 1.0: PERF_RECORD_MMAP2 1/1: [0x1000(0x1000) @ 0 fe:00 1 2]: r-xp /a\n"
                         "a 1/1 2.75: sched:sched_switch: prev=a ==> next=b 12\n",
                         ALL),
               "samples/count cycles/count instructions:u/count sched:sched_switch/count\n"
               "sample at 1500000000 thread 3/b 1 0 7 0 pid=2\n @20 in /b g (:0:0)\n"
               "sample at 2500000000 thread 1/a 1 1 0 0 pid=1\n @10 in [kernel.kallsyms] f (:0:0)\n"
               "sample at 2750000000 thread 1/a 1 0 0 1 pid=1\n");
    buffer_fini(&out);
}

TEST(fields_that_were_not_printed_are_not_needed)
{
    struct buffer out;
    CHECK_TEXT(read_text(&out, "comm 12 5 cycles:\n\t10 f\n\t20 g+0x3\n", ALL),
               "samples/count cycles/count\nsample at 0 thread 12/comm 1 5\n @10 in  f (:0:0)\n @1f in  g (:0:0)\n");
    buffer_fini(&out);
}

TEST(the_program_is_the_file_that_bears_the_threads_name)
{
    struct profile profile;
    static const char text[] = "prog 1 1.0: cpu-clock: \n\t10 f (/lib/libc.so.6)\n\t20 main (/bin/prog)\n\n";
    decode_text(&format_perf_script, text, &profile);
    CHECK_TEXT(profile_c_string(&profile, profile.mappings.items[1].file_name), "/bin/prog");
    profile_fini(&profile);
}

TEST(rejects_a_line_that_perf_does_not_write_at_its_place)
{
    struct buffer out;
    CHECK_TEXT(read_text(&out, "a 1 1.0: cycles: \n\t10 f (/a)\nhello\n", ALL),
               "a line is neither a sample's nor a frame (offset 29)");
    buffer_fini(&out);
    CHECK_TEXT(read_text(&out, "\t10 f (/a)\n", ALL), "not the text of perf script (offset 0)");
    buffer_fini(&out);
    CHECK_TEXT(read_text(&out, "a 1 1.0: cycles: \n\tnothing at all\n", ALL),
               "a line is neither a sample's nor a frame (offset 18)");
    buffer_fini(&out);
}

/* perf script -F +srcline, +insn, +insnlen; -F +srcline without a place. */
TEST(a_last_sample_that_is_cut_short_is_left_out_and_named)
{
    static const char *const ends[] = {"p 7 2.0: cpu-cl", "p 7 2.0: cpu-clock: \n\t 10 f (/p)\n\t 20 ma"};
    for (size_t i = 0; i < 2; i++) {
        struct profile profile;
        struct buffer text;
        buffer_init(&text, 1 << 10);
        buffer_append_text(&text, "p 7 1.0: cpu-clock: \n\t 10 f (/p)\n\n");
        buffer_append_text(&text, ends[i]);
        profile_init(&profile);
        CHECK_UINT(format_perf_script.decode(buffer_slice(&text), &profile, NULL), STATUS_OK);
        CHECK_UINT(profile.samples.count, 1);
        CHECK_UINT(profile.omissions.count, 1);
        buffer_fini(&text);
        profile_fini(&profile);
    }
}

TEST(further_fields_of_a_sample_are_understood_or_passed_over)
{
    static const char text[] = "prog 12 1.5: 7 cycles:u: \n"
                               "\t10 work+0x6 (/bin/prog)\n"
                               "  work.c:12 (discriminator 3)\n"
                               "\t20 main+0x1 (/bin/prog)\n"
                               "  main+1\n"
                               "\t30 start (/lib/libc.so.6)\n"
                               "  libc.so.6[29d90]\n"
                               " ilen: 3 insn: 48 89 e5\n\n"
                               "prog 12 1.6: 7 cycles:u:  10 work+0x6 (/bin/prog) insn: 48 89 e5\n";
    struct profile profile;
    decode_text(&format_perf_script, text, &profile);
    CHECK_UINT(profile.samples.count, 2);
    CHECK_UINT(profile_stack_depth(&profile, profile.samples.stack[0]), 3);
    CHECK_UINT(profile_stack_depth(&profile, profile.samples.stack[1]), 1);
    struct location_id leaf = profile_stack(&profile, profile.samples.stack[0]).location;
    const struct line *line = profile_lines(&profile, profile_location(&profile, leaf));
    CHECK_INT(line->line, 12);
    CHECK_TEXT(profile_c_string(&profile, profile_function(&profile, line->function)->file_name), "work.c");
    profile_fini(&profile);
}

TEST(records_without_a_time_may_come_first)
{
    static const char text[] = "swapper     0 PERF_RECORD_MMAP -1/0: [0xffff(0x1000) @ 0]: x [kernel.kallsyms]_text\n"
                               "prog    12 PERF_RECORD_COMM: prog:12/12\n"
                               "\tmore of it\n"
                               "prog    12 1.5: 7 cycles:u: \n\t10 work+0x6 (/bin/prog)\n";
    struct profile profile;
    decode_text(&format_perf_script, text, &profile);
    CHECK_UINT(profile.samples.count, 1);
    profile_fini(&profile);
}

static uint64_t self_value(const struct profile *profile, const char *function, size_t column)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct location_id leaf = profile_stack(profile, profile->samples.stack[i]).location;
        const struct location *location = profile_location(profile, leaf);
        const struct line *lines = profile_lines(profile, location);
        if (location->line_count == 0) continue;
        struct string_id name = profile_function(profile, lines[0].function)->name;
        if (strstr(profile_c_string(profile, name), function))
            sum += (uint64_t)profile_sample_values(profile, i)[column];
    }
    return sum;
}

TEST(a_clock_without_periods_counts_samples)
{
    static const char *const texts[] = {"a 7 1.5: cpu-clock: \n\t401 f+0x1 (/p)\n\n",
                                        "a 7 1.5: 9 cpu-clock: \n\t401 f+0x1 (/p)\n\n"};
    for (size_t i = 0; i < 2; i++) {
        struct profile profile;
        profile_init(&profile);
        CHECK_UINT(format_perf_script.decode(slice_of_text(texts[i]), &profile, NULL), STATUS_OK);
        CHECK_TEXT(profile_c_string(&profile, profile.value_types[1].unit), i ? "nanoseconds" : "count");
        CHECK_INT(profile_sample_values(&profile, 0)[1], i ? 9 : 1);
        profile_fini(&profile);
    }
}

/* The figures come from perf report on the same recording. */
TEST(a_real_recording_adds_up_to_what_perf_report_says)
{
    static const char *const files[] = {"perf/fp.script.txt", "perf/fp-full.script.txt"};
    for (size_t i = 0; i < 2; i++) {
        struct profile profile;
        read_profile(real_path(files[i]), &format_perf_script, &profile);
        CHECK_UINT(profile.samples.count, 406);
        CHECK_UINT(406 * profile.period, 2040200750);
        CHECK_UINT(self_value(&profile, "hotLoopA(int)::", 1) * 10000 / 2040200750, 6182);
        CHECK_UINT(self_value(&profile, "hotLoopB(int)::", 1) * 10000 / 2040200750, 3793);
        profile_fini(&profile);
    }
}

TEST(a_real_recording_without_call_graphs_has_stacks_of_one_frame)
{
    struct profile profile;
    read_profile(real_path("perf/flat.script.txt"), &format_perf_script, &profile);
    for (size_t i = 0; i < profile.samples.count; i++) {
        CHECK_UINT(profile_stack_depth(&profile, profile.samples.stack[i]), 1);
    }
    CHECK(profile.samples.count > 100);
    profile_fini(&profile);
}

TEST_MAIN()
