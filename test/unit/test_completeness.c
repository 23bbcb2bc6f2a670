/* Both sides of each limit, and the causes that are named.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "analyze/completeness.h"
#include "profile/incomplete.h"
#include "report/completeness_text.h"

static struct profile profile;
static struct completeness completeness;
static struct buffer out;

static void begin(void)
{
    profile_fini(&profile);
    profile_init(&profile);
    buffer_fini(&out);
    buffer_init(&out, 1 << 14);
    profile_add_value_type(&profile, "samples", "count");
    profile_add_value_type(&profile, "wall", "nanoseconds");
}

static struct location_id named(const char *name, struct mapping_id mapping)
{
    struct function function = {.name = profile_text(&profile, name)};
    struct line line = {.function = profile_add_function(&profile, &function)};
    return profile_add_location(&profile, &(struct location){.mapping = mapping}, &line, 1);
}

/* COUNT samples of a function in FILE, whose stack begins with ROOT. */
static void add(const char *root, const char *file, int64_t count)
{
    static uint64_t address;
    struct mapping_id mapping = {0};
    address += 0x1000;
    if (file) {
        mapping = profile_add_mapping(
            &profile,
            &(struct mapping){.start = address, .limit = address + 0x1000, .file_name = profile_text(&profile, file)});
    }
    struct stack_id stack = profile_add_stack(&profile, (struct stack_id){0}, named(root, (struct mapping_id){0}));
    stack = profile_add_stack(&profile, stack, named("outer", mapping));
    stack = profile_add_stack(&profile, stack, named("leaf", (struct mapping_id){0}));
    profile_add_sample(&profile, &(struct sample){.stack = stack}, (const int64_t[]){count, 1000});
}

static const char *stacks_text(void)
{
    CHECK_UINT(completeness_compute(&profile, &completeness, NULL), STATUS_OK);
    bool is_reported = completeness_append_stacks(&profile, &completeness, &out);
    buffer_append_byte(&out, '\0');
    return is_reported ? (const char *)out.data : "nothing";
}

static const char *losses_text(void)
{
    CHECK_UINT(completeness_compute(&profile, &completeness, NULL), STATUS_OK);
    bool is_reported = completeness_append_losses(&profile, &completeness, &out);
    buffer_append_byte(&out, '\0');
    return is_reported ? (const char *)out.data : "nothing";
}

TEST(five_percent_of_incomplete_stacks_are_not_mentioned)
{
    begin();
    add("main", NULL, 950);
    add(INCOMPLETE_NO_TABLE, "/usr/lib/libfoo.so", 50);
    CHECK_TEXT(stacks_text(), "nothing");
}

TEST(more_than_five_percent_of_incomplete_stacks_are_explained)
{
    begin();
    add("main", NULL, 949);
    add(INCOMPLETE_NO_TABLE, "/usr/lib/libfoo.so", 51);
    CHECK_TEXT(stacks_text(),
               "5.1 % of the stacks are incomplete: 5.1 % end in libfoo.so, which has no unwind table there — rebuild "
               "it with -fasynchronous-unwind-tables or install its debug package (Go's compiler writes no table)");
}

TEST(names_the_module_in_which_most_stacks_of_a_cause_end)
{
    begin();
    add("main", NULL, 800);
    add(INCOMPLETE_NO_TABLE, "/usr/lib/libfoo.so", 90);
    add(INCOMPLETE_NO_TABLE, "/usr/lib/libbar.so", 20);
    add(INCOMPLETE_TOO_DEEP, "/usr/bin/deep", 90 - 1);
    add(INCOMPLETE_BAD_MEMORY, "/usr/bin/rare", 1);
    CHECK_TEXT(stacks_text(),
               "20 % of the stacks are incomplete: 9.0 % end in libfoo.so, which has no unwind table there — rebuild "
               "it with -fasynchronous-unwind-tables or install its debug package (Go's compiler writes no table); 8.9 "
               "% end in deep, on stacks deeper than 1024 frames — their callers near main are missing");
}

TEST(a_guessed_caller_is_not_where_a_stack_ends)
{
    begin();
    struct mapping_id mapping = profile_add_mapping(
        &profile, &(struct mapping){.start = 1, .limit = 2, .file_name = profile_text(&profile, "/usr/lib/libfoo.so")});
    struct stack_id stack =
        profile_add_stack(&profile, (struct stack_id){0}, named(INCOMPLETE_NO_TABLE, (struct mapping_id){0}));
    struct location guess = {.address = 0x1e5f3ea};
    stack = profile_add_stack(&profile, stack, profile_add_location(&profile, &guess, NULL, 0));
    stack = profile_add_stack(&profile, stack, named("works", mapping));
    profile_add_sample(&profile, &(struct sample){.stack = stack}, (const int64_t[]){10, 1000});
    CHECK(strstr(stacks_text(), "end in libfoo.so") != NULL);
}

TEST(code_of_no_file_gets_separate_advice)
{
    begin();
    add("main", NULL, 50);
    add(INCOMPLETE_NO_TABLE, NULL, 50);
    CHECK_TEXT(stacks_text(), "50 % of the stacks are incomplete: 50 % end in code of no file, which has no unwind "
                              "table (generated at run time?) — let its generator keep frame pointers");
}

TEST(names_of_modules_cannot_command_a_terminal)
{
    begin();
    add(INCOMPLETE_NO_TABLE, "/tmp/a\033[31m.so", 50);
    CHECK(strchr(stacks_text(), '\033') == NULL);
}

TEST(two_percent_of_lost_samples_are_not_mentioned)
{
    begin();
    add("main", NULL, 980);
    profile_add_metadata_number(&profile, "lost_late", 20);
    CHECK_TEXT(losses_text(), "nothing");
}

TEST(more_than_two_percent_of_lost_samples_are_explained)
{
    begin();
    add("main", NULL, 979);
    profile_add_metadata_number(&profile, "lost_late", 21);
    CHECK_TEXT(losses_text(), "2.1 % of the samples are lost: 2.1 % because threads did not answer the sampler in time "
                              "— the machine is overloaded: let fewer programs run beside it, or lower --frequency");
}

TEST(two_lost_samples_are_chance)
{
    begin();
    add("main", NULL, 10);
    profile_add_metadata_number(&profile, "lost_late", 2);
    CHECK_TEXT(losses_text(), "nothing");
}

TEST(a_denied_perf_timer_is_the_cause_that_can_be_removed)
{
    begin();
    add("main", NULL, 90);
    profile_add_metadata_number(&profile, "lost_late", 4);
    profile_add_metadata_number(&profile, "lost_unanswered", 6);
    profile_add_metadata_text(&profile, "running_threads", "signals, because of perf_event_open: Permission denied");
    CHECK_TEXT(losses_text(),
               "10 % of the samples are lost: 6.0 % because threads block the sampler's signal, or have stacks too "
               "small for it; 4.0 % because threads did not answer the sampler in time — perf timers avoid this, but "
               "the system does not permit them: set kernel.perf_event_paranoid to 1 (sysctl), or record with "
               "CAP_PERFMON, as root has it outside of containers");
}

TEST(missed_ticks_lose_nothing)
{
    begin();
    add("main", NULL, 900);
    profile_add_metadata_number(&profile, "ticks", 450);
    profile_add_metadata_number(&profile, "ticks_missed", 50); /* the ticks after them stand for their time */
    CHECK_TEXT(losses_text(), "nothing");
}

TEST(a_loss_that_is_not_known_here_counts_under_its_own_name)
{
    begin();
    add("main", NULL, 90);
    profile_add_metadata_number(&profile, "lost_by_magic", 10);
    CHECK_TEXT(losses_text(), "10 % of the samples are lost: 10 % lost_by_magic — offbeat-info(1) explains it");
}

#define PRIORITY                                                                                                       \
    "let fewer programs run beside it, or record with CAP_SYS_NICE, which gives it priority, as root has it outside "  \
    "of containers"

static const char *too_short_text(uint64_t too_short_ms, uint64_t borrowed_ms, uint64_t ticks_missed)
{
    begin();
    profile.period = 10000000;
    add("main", NULL, 100); /* a second */
    profile_add_metadata_number(&profile, "too_short_ns", (int64_t)too_short_ms * 1000000);
    profile_add_metadata_number(&profile, "borrowed_ns", (int64_t)borrowed_ms * 1000000);
    profile_add_metadata_number(&profile, "ticks", 50);
    profile_add_metadata_number(&profile, "ticks_missed", (int64_t)ticks_missed);
    CHECK_UINT(completeness_compute(&profile, &completeness, NULL), STATUS_OK);
    bool is_reported = completeness_append_too_short(&profile, &completeness, &out);
    buffer_append_byte(&out, '\0');
    return is_reported ? (const char *)out.data : "nothing";
}

TEST(names_the_cause_of_time_without_a_stack)
{
    CHECK_TEXT(too_short_text(99, 0, 0), "nothing");
    CHECK_TEXT(too_short_text(200, 0, 0), "20 % of the time has no stack ([too short to sample]): threads or processes "
                                          "ended before a tick met them — raise --frequency");
    CHECK_TEXT(too_short_text(970, 0, 51), "97 % of the time has no stack ([too short to sample]): beside many "
                                           "runnable threads, the sampler rarely got a processor — " PRIORITY);
    CHECK_TEXT(too_short_text(20, 900, 51),
               "90 % of the time has stacks of other threads with the same start routine: beside many runnable "
               "threads, the sampler rarely got a processor — " PRIORITY);
    CHECK_TEXT(too_short_text(110, 800, 51),
               "80 % of the time has stacks of other threads with the same start routine, and 11 % has no stack ([too "
               "short to sample]): beside many runnable threads, the sampler rarely got a processor — " PRIORITY);
}

static const char *waits_text(uint64_t unseen_ms, const char *running)
{
    begin();
    profile.period = 10000000;
    add("main", NULL, 100); /* a second */
    profile_add_metadata_number(&profile, "unseen_waits_ns", (int64_t)unseen_ms * 1000000);
    profile_add_metadata_text(&profile, "running_threads", running);
    CHECK_UINT(completeness_compute(&profile, &completeness, NULL), STATUS_OK);
    bool is_reported = completeness_append_waits(&profile, &completeness, &out);
    buffer_append_byte(&out, '\0');
    return is_reported ? (const char *)out.data : "nothing";
}

TEST(says_that_nobody_saw_where_threads_waited)
{
    CHECK_TEXT(waits_text(29, "signals, because of perf_event_open: Operation not permitted"), "nothing");
    CHECK_TEXT(waits_text(30, "perf timers for user code, signals for system calls and before a thread has one"),
               "3.0 % of the time are waits for a processor that are shown where the threads ran; some can be in the "
               "system calls at whose ends the kernel stopped them — to see where, set kernel.perf_event_paranoid to 1 "
               "(sysctl), or record with CAP_PERFMON, as root has it outside of containers");
    CHECK_TEXT(waits_text(30, "perf timers, signals before a thread has one"),
               "3.0 % of the time are waits for a processor that are shown where the threads ran; some can be in the "
               "system calls at whose ends the kernel stopped them — the machine is overloaded: let fewer programs run "
               "beside it, or lower --frequency");
    CHECK_TEXT(waits_text(300, "CPU clocks, because of perf_event_open: Operation not permitted"),
               "30 % of the time are waits for a processor that are shown where the threads ran; some can be in the "
               "system calls at whose ends the kernel stopped them — perf timers avoid this, but a seccomp filter or a "
               "container forbids them: allow perf_event_open");
}

static const char *late_text(int64_t late_ms)
{
    begin();
    profile.period = 10000000;
    profile_add_metadata_number(&profile, "ticks", 60);
    profile_add_metadata_number(&profile, "ticks_missed", 30);
    profile_add_metadata_number(&profile, "ticks_spared", 10);
    profile_add_metadata_number(&profile, "late_ns", late_ms * 1000000);
    bool is_reported = completeness_append_late(&profile, &out);
    buffer_append_byte(&out, '\0');
    return is_reported ? (const char *)out.data : "nothing";
}

TEST(says_that_the_sampler_had_to_wait)
{
    CHECK_TEXT(late_text(99), "nothing");
    CHECK_TEXT(late_text(300),
               "for 30 % of the time the sampler waited for a processor, a tenth of a second or more at once: few "
               "stacks stand for it, and shares are less exact — the machine is overloaded: " PRIORITY);
}

static bool has_woken_line(uint64_t woken_ms)
{
    begin();
    profile.period = 10000000;
    add("main", NULL, 100); /* a second */
    profile_add_metadata_number(&profile, "woken_waits_ns", (int64_t)woken_ms * 1000000);
    CHECK_UINT(completeness_compute(&profile, &completeness, NULL), STATUS_OK);
    return completeness_append_woken(&profile, &completeness, &out);
}

TEST(says_that_waits_after_wake_ups_make_shares_less_exact)
{
    CHECK(!has_woken_line(19));
    CHECK(has_woken_line(20));
}

TEST(advises_no_priority_to_a_sampler_that_has_it)
{
    (void)late_text(300);
    profile_add_metadata_number(&profile, "processes", 1);
    profile_add_metadata_number(&profile, "sampler_priority", 1);
    buffer_clear(&out);
    CHECK(completeness_append_late(&profile, &out));
    buffer_append_byte(&out, '\0');
    CHECK(strstr((const char *)out.data, "CAP_SYS_NICE") == NULL);
    CHECK(strstr((const char *)out.data, "real-time threads") != NULL);
}

static const char *unreadable_text(const char *denied)
{
    begin();
    add("main", NULL, 90);
    profile_add_metadata_number(&profile, "lost_unreadable", 10);
    if (denied) profile_add_metadata_text(&profile, "files_denied", denied);
    return losses_text();
}

TEST(blames_descriptors_only_where_there_was_none)
{
    CHECK_TEXT(unreadable_text("Too many open files"),
               "10 % of the samples are lost: 10 % of blocked threads whose stacks the kernel does not show — no "
               "descriptor is left to read them: raise the limit of open files (ulimit -n)");
    CHECK_TEXT(unreadable_text(NULL), "10 % of the samples are lost: 10 % of blocked threads whose stacks the kernel "
                                      "does not show — the program is not dumpable: see prctl(2), PR_SET_DUMPABLE");
}

TEST(each_loss_has_its_cause)
{
    static const struct {
        const char *key, *engine, *cause, *remedy;
    } losses[] = {
        {"lost_late", "", "did not answer the sampler in time", "lower --frequency"},
        {"lost_unanswered", "", "block the sampler's signal, or have stacks too small for it", "stacks of 16 KB"},
        {"lost_before_first_stack", "", "of threads that had no stack yet", "raise --frequency"},
        {"lost_no_table", "", "while unwind tables of large libraries were read", "the machine is overloaded"},
        {"lost_in_kernel", "", "inside the kernel, in threads that block", "perf_event_paranoid to 1"},
        {"lost_in_kernel", "from outside, by perf events", "where this user's perf events see no stacks",
         "record as root"},
        {"lost_running", "from outside, by files of /proc", "of running threads, whose stacks /proc does not show",
         "--engine perf"},
    };
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        begin();
        add("main", NULL, 90);
        profile_add_metadata_number(&profile, losses[i].key, 10);
        profile_add_metadata_text(&profile, "engine", losses[i].engine);
        const char *text = losses_text();
        CHECK(strstr(text, losses[i].cause) != NULL);
        CHECK(strstr(text, losses[i].remedy) != NULL);
    }
}

TEST(counts_the_threads_that_the_sampler_does_not_follow)
{
    for (double missed = 0; missed < 2; missed++) {
        begin();
        profile_add_metadata_number(&profile, "threads_missed", (int64_t)missed);
        CHECK_UINT(completeness_compute(&profile, &completeness, NULL), STATUS_OK);
        CHECK(completeness_append_unfollowed(&completeness, &out) == (missed > 0));
        buffer_append_byte(&out, '\0');
        CHECK_TEXT((const char *)out.data,
                   missed > 0 ? "1 threads were not sampled: a process had more threads than the sampler follows" : "");
    }
}

TEST(each_cause_of_incomplete_stacks_has_its_text)
{
    static const char *const causes[][2] = {
        {INCOMPLETE_TOO_DEEP, "deeper than 1024 frames"},
        {INCOMPLETE_NO_TABLE, "has no unwind table there"},
        {INCOMPLETE_BAD_MEMORY, "where the stack could not be read"},
        {INCOMPLETE_BAD_FRAME, "leads to an impossible frame"},
        {INCOMPLETE_UNKNOWN_REGISTER, "by a register that a blocked thread does not show"},
        {"[incomplete: by magic]", "for another cause"},
    };
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        begin();
        add(causes[i][0], "/usr/lib/libx.so", 50);
        add("main", NULL, 50);
        CHECK(strstr(stacks_text(), causes[i][1]) != NULL);
    }
}

TEST_MAIN()
