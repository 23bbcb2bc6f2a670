/* The hottest functions, on stacks small enough to add up by hand (PPF-10).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "analyze/summary.h"
#include "analyze/top.h"
#include "report/quantity.h"
#include "report/text.h"
#include "report/top_report.h"

static struct profile profile;

static void begin(void)
{
    profile_fini(&profile);
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    profile_add_value_type(&profile, "wall", "nanoseconds");
}

/* A location with the functions of NAMES, innermost first, separated by spaces. */
static struct location_id place(uint64_t address, const char *names)
{
    struct line lines[8];
    uint32_t count = 0;
    char copy[128];
    (void)snprintf(copy, sizeof(copy), "%s", names);
    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " ")) {
        struct function function = {.name = profile_text(&profile, name), .file_name = profile_text(&profile, "a.c")};
        lines[count++] = (struct line){.function = profile_add_function(&profile, &function)};
    }
    return profile_add_location(&profile, &(struct location){.address = address}, lines, count);
}

/* A stack of NAMES, root first: each a location of one function. */
static struct stack_id stack(const char *names)
{
    struct stack_id at = {0};
    char copy[128];
    char *rest = copy;
    (void)snprintf(copy, sizeof(copy), "%s", names);
    for (char *name = strsep(&rest, " "); name; name = strsep(&rest, " ")) {
        at = profile_add_stack(&profile, at, place(0, name));
    }
    return at;
}

static void sample(struct stack_id at, const char *thread, uint64_t time_ns, int64_t nanoseconds)
{
    struct thread facts = {.id = profile_text(&profile, thread)};
    struct sample one = {.stack = at, .thread = profile_add_thread(&profile, &facts), .time_ns = time_ns};
    profile_add_sample(&profile, &one, (const int64_t[]){1, nanoseconds});
}

static struct top compute(struct top_options options)
{
    struct top top = {0};
    options.value_index = 1;
    CHECK_UINT(profile_failed(&profile, NULL), STATUS_OK);
    CHECK_UINT(top_compute(&profile, &options, &top, NULL), STATUS_OK);
    return top;
}

static void check_function(const struct top *top, size_t group, size_t place_in_order, const char *name, int64_t self,
                           int64_t total)
{
    const struct top_group *thread = &top->groups[group];
    CHECK(place_in_order < thread->function_count);
    const struct top_function *function = &thread->functions[place_in_order];
    CHECK_TEXT(names_text(&top->names, function->name), name);
    CHECK_INT(function->self, self);
    CHECK_INT(function->total, total);
}

TEST(self_is_of_the_leaf_and_total_of_everything_below)
{
    begin();
    sample(stack("main work hash"), "1", 1, 70);
    sample(stack("main work"), "1", 2, 20);
    sample(stack("main idle"), "1", 3, 10);
    struct top top = compute((struct top_options){0});
    CHECK_INT(top.total, 100);
    CHECK_UINT(top.group_count, 1);
    CHECK_UINT(top.groups[0].function_count, 4);
    check_function(&top, 0, 0, "hash", 70, 70);
    check_function(&top, 0, 1, "work", 20, 90);
    check_function(&top, 0, 2, "idle", 10, 10);
    check_function(&top, 0, 3, "main", 0, 100);
    top_fini(&top);

    top = compute((struct top_options){.by_cumulative = true});
    check_function(&top, 0, 0, "main", 0, 100);
    check_function(&top, 0, 1, "work", 20, 90);
    top_fini(&top);
}

TEST(a_recursive_function_counts_once_a_sample)
{
    begin();
    sample(stack("main f f f"), "1", 1, 5);
    sample(stack("main f g f"), "1", 2, 7);
    sample(stack("main f g"), "1", 3, 11);
    struct top top = compute((struct top_options){0});
    check_function(&top, 0, 0, "f", 12, 23);
    check_function(&top, 0, 1, "g", 11, 18);
    check_function(&top, 0, 2, "main", 0, 23);
    top_fini(&top);
}

TEST(counts_an_inlined_function_once_per_location)
{
    begin();
    struct stack_id at = profile_add_stack(&profile, (struct stack_id){0}, place(0x10, "inner inner outer"));
    sample(at, "1", 1, 3);
    struct top top = compute((struct top_options){0});
    CHECK_UINT(top.groups[0].function_count, 2);
    check_function(&top, 0, 0, "inner", 3, 3);
    check_function(&top, 0, 1, "outer", 0, 3);
    CHECK_TEXT(profile_c_string(&profile, top.groups[0].functions[0].file), "a.c");
    top_fini(&top);
}

TEST(functions_of_one_name_are_one_and_equal_ones_are_in_order_of_name)
{
    begin();
    struct function other = {.name = profile_text(&profile, "same"), .file_name = profile_text(&profile, "b.c")};
    struct line line = {.function = profile_add_function(&profile, &other)};
    struct location_id second = profile_add_location(&profile, &(struct location){.address = 7}, &line, 1);
    sample(stack("same"), "1", 1, 2);
    sample(profile_add_stack(&profile, (struct stack_id){0}, second), "1", 2, 3);
    sample(stack("b"), "1", 3, 1);
    sample(stack("a"), "1", 3, 1);
    struct top top = compute((struct top_options){0});
    CHECK_UINT(top.groups[0].function_count, 3);
    check_function(&top, 0, 0, "same", 5, 5);
    check_function(&top, 0, 1, "a", 1, 1);
    check_function(&top, 0, 2, "b", 1, 1);
    top_fini(&top);
}

TEST(a_frame_without_a_name_is_named_by_its_place)
{
    begin();
    struct mapping mapping = {.start = 0x401000, .limit = 0x402000, .file_offset = 0x1000};
    mapping.file_name = profile_text(&profile, "/usr/lib/libx.so.1");
    mapping.image_start = 0x400000;
    mapping.image_vmaddr = 0x100000;
    struct location inside = {.mapping = profile_add_mapping(&profile, &mapping), .address = 0x401234};
    struct location outside = {.address = 0xabc};
    struct stack_id at =
        profile_add_stack(&profile, (struct stack_id){0}, profile_add_location(&profile, &outside, NULL, 0));
    sample(profile_add_stack(&profile, at, profile_add_location(&profile, &inside, NULL, 0)), "1", 1, 4);
    struct top top = compute((struct top_options){0});
    check_function(&top, 0, 0, "libx.so.1+0x101234", 4, 4);
    CHECK_TEXT(profile_c_string(&profile, top.groups[0].functions[0].package), "/usr/lib/libx.so.1");
    check_function(&top, 0, 1, "0xabc", 0, 4);
    top_fini(&top);
}

TEST(by_thread_each_thread_has_its_own_numbers_and_duration)
{
    begin();
    profile.has_times = true;
    sample(stack("main a"), "10", 1000, 1);
    sample(stack("main a"), "20", 1500, 2);
    sample(stack("main b"), "10", 4000, 4);
    sample((struct stack_id){0}, "20", 2000, 8);
    struct top top = compute((struct top_options){.grouping = TOP_BY_THREAD});
    CHECK_INT(top.total, 15);
    CHECK_UINT(top.group_count, 2);
    CHECK_UINT(top.groups[0].duration_ns, 3000);
    CHECK_INT(top.groups[0].total, 5);
    check_function(&top, 0, 0, "b", 4, 4);
    check_function(&top, 0, 1, "a", 1, 1);
    check_function(&top, 0, 2, "main", 0, 5);
    CHECK_UINT(top.groups[1].duration_ns, 500);
    CHECK_INT(top.groups[1].total, 10);
    CHECK_UINT(top.groups[1].function_count, 2);
    check_function(&top, 1, 0, "a", 2, 2);
    check_function(&top, 1, 1, "main", 0, 2);
    top_fini(&top);
}

static struct label_set_id process_labels(int64_t pid, const char *name)
{
    struct label labels[] = {
        {.key = profile_text(&profile, "pid"), .is_number = true, .number = pid},
        {.key = profile_text(&profile, "process"), .text = profile_text(&profile, name)},
    };
    return profile_add_labels(&profile, labels, *name ? 2 : 1);
}

static void sample_of_process(const char *functions, const char *thread, int64_t pid, const char *name, int64_t value)
{
    struct thread facts = {.id = profile_text(&profile, thread), .name = profile_text(&profile, "named")};
    struct sample one = {
        .stack = stack(functions), .thread = profile_add_thread(&profile, &facts), .labels = process_labels(pid, name)};
    profile_add_sample(&profile, &one, (const int64_t[]){1, value});
}

static void check_process(const struct top_group *group, int64_t pid, const char *name, int64_t total)
{
    CHECK_INT(group->process.pid, pid);
    CHECK_TEXT(profile_c_string(&profile, group->process.name), name);
    CHECK_INT(group->total, total);
}

TEST(by_process_a_pid_that_runs_two_programs_is_two_processes)
{
    begin();
    sample_of_process("main a", "10", 10, "sh", 1);
    sample_of_process("main b", "10", 10, "xz", 4);
    sample_of_process("main b", "11", 10, "xz", 2);
    sample_of_process("main c", "20", 20, "xz", 3);
    struct top top = compute((struct top_options){.grouping = TOP_BY_PROCESS});
    CHECK_INT(top.total, 10);
    CHECK_UINT(top.group_count, 3);
    check_process(&top.groups[0], 10, "xz", 6);
    check_function(&top, 0, 0, "b", 6, 6);
    check_process(&top.groups[1], 20, "xz", 3);
    check_process(&top.groups[2], 10, "sh", 1);
    check_function(&top, 2, 0, "a", 1, 1);
    top_fini(&top);
}

/* exec keeps the number of the thread. */
TEST(merged_samples_keep_the_name_of_their_thread)
{
    struct profile other;
    profile_init(&other);
    profile_add_value_type(&other, "samples", "count");
    profile_add_value_type(&other, "wall", "nanoseconds");
    struct thread thread = {.id = profile_text(&other, "10"), .name = profile_text(&other, "renamed")};
    struct sample one = {.thread = profile_add_thread(&other, &thread)};
    profile_add_sample(&other, &one, (const int64_t[]){1, 1});
    begin();
    sample_of_process("main", "10", 10, "", 1);
    CHECK_UINT(profile_merge(&profile, &other, NULL, NULL), STATUS_OK);
    CHECK_TEXT(profile_c_string(&profile, profile_thread_name_at(&profile, 0)), "named");
    CHECK_TEXT(profile_c_string(&profile, profile_thread_name_at(&profile, 1)), "renamed");
    profile_fini(&other);
}

TEST(by_process_a_process_without_a_name_has_that_of_its_main_thread)
{
    begin();
    sample_of_process("main a", "10", 10, "", 2);
    sample_of_process("main a", "11", 12, "", 1);
    sample(stack("main"), "9", 0, 7);
    struct top top = compute((struct top_options){.grouping = TOP_BY_PROCESS});
    CHECK_UINT(top.group_count, 3);
    check_process(&top.groups[0], 0, "", 7);
    check_process(&top.groups[1], 10, "named", 2);
    check_process(&top.groups[2], 12, "", 1);
    top_fini(&top);
}

TEST(sums_that_leave_64_bits_stay_at_the_limit)
{
    begin();
    sample(stack("a"), "1", 1, INT64_MAX);
    sample(stack("a"), "1", 2, INT64_MAX);
    struct top top = compute((struct top_options){0});
    check_function(&top, 0, 0, "a", INT64_MAX, INT64_MAX);
    top_fini(&top);
}

static void check_shortened(const char *text, size_t width, const char *expected)
{
    struct buffer out;
    buffer_init(&out, 1 << 16);
    append_shortened(&out, text, width);
    buffer_append_byte(&out, '\0');
    CHECK_TEXT((const char *)out.data, expected);
    buffer_fini(&out);
}

TEST(long_names_are_shortened_in_the_middle)
{
    check_shortened("abcdefghij", 0, "abcdefghij");
    check_shortened("abcdefghij", 10, "abcdefghij");
    check_shortened("abcdefghij", 9, "abcd…ghij");
    check_shortened("abcdefghij", 4, "ab…j");
    check_shortened("äöüßäöüß", 5, "äö…üß");
    check_shortened("a\033b\xff"
                    "cdef",
                    20,
                    "a\\x1bb\\xff"
                    "cdef");
    check_shortened("", 5, "");
}

TEST(a_table_for_a_terminal_has_short_lines_and_any_other_complete_names)
{
    static const char name[] = "a_function_with_a_name_that_is_too_long_for_most_terminals_by_far";
    begin();
    sample(stack(name), "1", 1, 5);
    struct top top = compute((struct top_options){0});
    for (size_t width = 0; width <= 80; width += 80) {
        struct buffer out;
        buffer_init(&out, 1 << 16);
        top_write_table(&profile, &top, &(struct top_report_options){.width = width}, &out);
        buffer_append_byte(&out, '\0');
        CHECK((strstr((const char *)out.data, name) != NULL) == (width == 0));
        CHECK(width == 0 || strstr((const char *)out.data, "a_function_with_a_…inals_by_far\n") != NULL ||
              strstr((const char *)out.data, "…"));
        buffer_fini(&out);
    }
    top_fini(&top);
}

/* --- Trees that grow at random, against sums over every sample's frames ------------------------------------------- */

enum { STACKS = 3000, TREES = 30, THREADS = 3, NAMES = 5 };

static uint32_t next_chance(uint32_t *chance)
{
    *chance = *chance * 1103515245 + 12345;
    return *chance >> 12;
}

/* Each stack continues from one that is there, mostly the last; some have samples. Some locations have several frames,
 * some of them the same. */
static void grow(uint32_t chance)
{
    static struct stack_id stacks[STACKS];
    const uint32_t wildness = next_chance(&chance) % 16;
    begin();
    struct location_id places[] = {place(1, "a"), place(2, "b a"), place(3, "c"), place(4, "d b b"), place(5, "e")};
    for (uint32_t i = 1; i < STACKS; i++) {
        static const char *const threads[THREADS] = {"1", "2", "3"};
        bool is_anywhere = next_chance(&chance) % 16 < wildness;
        uint32_t from = is_anywhere ? next_chance(&chance) % i : i - 1;
        stacks[i] = profile_add_stack(&profile, stacks[from], places[next_chance(&chance) % 5]);
        if (next_chance(&chance) % 4 > 0) continue;
        sample(stacks[i], threads[next_chance(&chance) % THREADS], i, (int64_t)(next_chance(&chance) % 9) - 3);
    }
}

struct sums {
    int64_t self, total;
    bool is_seen; /* the current sample contains it */
};

/* Sums over the samples of THREAD; 0: all threads. */
static void add_up(uint32_t thread, struct sums sums[NAMES])
{
    memset(sums, 0, NAMES * sizeof(*sums));
    for (size_t i = 0; i < profile.samples.count; i++) {
        if (thread != 0 && profile.samples.thread[i].index != thread) continue;
        int64_t value = profile_sample_values(&profile, i)[1];
        struct stack_id at = profile.samples.stack[i];
        bool is_leaf = true;
        for (int name = 0; name < NAMES; name++) sums[name].is_seen = false;
        for (; at.index != 0; at = profile_stack(&profile, at).parent) {
            const struct location *location = profile_location(&profile, profile_stack(&profile, at).location);
            for (uint32_t line = 0; line < location->line_count; line++, is_leaf = false) {
                struct function_id function = profile_lines(&profile, location)[line].function;
                int name = profile_c_string(&profile, profile_function(&profile, function)->name)[0] - 'a';
                if (is_leaf) sums[name].self += value;
                if (!sums[name].is_seen) sums[name].total += value;
                sums[name].is_seen = true;
            }
        }
    }
}

static void check_sums(const struct top *top, const struct top_group *thread)
{
    struct sums sums[NAMES];
    add_up(thread->thread.index, sums);
    for (size_t i = 0; i < thread->function_count; i++) {
        struct sums *of_name = &sums[names_text(&top->names, thread->functions[i].name)[0] - 'a'];
        CHECK_INT(thread->functions[i].self, of_name->self);
        CHECK_INT(thread->functions[i].total, of_name->total);
        of_name->self = of_name->total = 0;
    }
    for (int name = 0; name < NAMES; name++) CHECK(sums[name].self == 0 && sums[name].total == 0);
}

TEST(sums_agree_with_single_samples_wherever_stacks_part)
{
    for (uint32_t tree = 0; tree < TREES; tree++) {
        grow(tree);
        struct top top = compute((struct top_options){0});
        CHECK_UINT(top.group_count, 1);
        check_sums(&top, &top.groups[0]);
        top_fini(&top);
        top = compute((struct top_options){.grouping = TOP_BY_THREAD});
        CHECK_UINT(top.group_count, THREADS);
        for (size_t t = 0; t < top.group_count; t++) check_sums(&top, &top.groups[t]);
        top_fini(&top);
    }
}

TEST(the_deepest_sampled_stack_is_found_wherever_stacks_part)
{
    for (uint32_t tree = 0; tree < TREES; tree++) {
        struct summary summary;
        size_t deepest = 0;
        grow(tree);
        for (size_t i = 0; i < profile.samples.count; i++) {
            struct stack_id at = profile.samples.stack[i];
            size_t depth = 0;
            for (; at.index != 0; at = profile_stack(&profile, at).parent)
                depth += profile_location(&profile, profile_stack(&profile, at).location)->line_count;
            if (depth > deepest) deepest = depth;
        }
        CHECK_UINT(summary_compute(&profile, &summary, NULL), STATUS_OK);
        CHECK_UINT(summary.deepest_stack, deepest);
        summary_fini(&summary);
    }
}

TEST(quantities_read_as_in_pprof)
{
    CHECK_TEXT(quantity_of("nanoseconds", 1200000000).text, "1.20s");
    CHECK_TEXT(quantity_of("nanoseconds", 250).text, "250ns");
    CHECK_TEXT(quantity_of("milliseconds", 1500).text, "1.50s");
    CHECK_TEXT(quantity_of("bytes", 1536).text, "1.50kB");
    CHECK_TEXT(quantity_of("count", 1536).text, "1536");
    CHECK_TEXT(quantity_of("sec", 3).text, "3s");
    CHECK_TEXT(quantity_of("\u03bcs", 1500).text, "1.50ms");
    CHECK_TEXT(quantity_of("KiB", 123456789).text, "123456789KiB");
    CHECK_TEXT(quantity_of("\x1b[31m", 5).text, "5");
    CHECK_TEXT(quantity_of("a unit of words that is too long", 5).text, "5");
    CHECK_TEXT(quantity_of("bytes", 0).text, "0");
    CHECK_TEXT(quantity_in(quantity_unit_for("nanoseconds", 10000000, 2000000000), 10000000).text, "0.01s");
    CHECK_TEXT(quantity_percent(1, 3).text, "33.33%");
    CHECK_TEXT(quantity_percent(3, 3).text, "  100%");
    CHECK_TEXT(quantity_percent(1, 300).text, " 0.33%");
    CHECK_TEXT(quantity_percent(1, 0).text, "    0%");
}

TEST_MAIN()
