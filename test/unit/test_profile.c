/* The model: equal things are one, ids stay, a failure is remembered, and whole-profile operations keep every value
 * (PPF-2, PPF-7, PPF-8).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "profile/frame_kind.h"
#include "profile/own_frames.h"
#include "profile/profile.h"
#include "profile/short_names.h"

static struct function_id add_function(struct profile *profile, const char *name)
{
    return profile_add_function(profile, &(struct function){.name = profile_text(profile, name)});
}

static struct location_id add_location(struct profile *profile, struct mapping_id mapping, uint64_t address,
                                       const char *function)
{
    struct line line = {.function = add_function(profile, function), .line = 7};
    return profile_add_location(profile, &(struct location){.mapping = mapping, .address = address}, &line, 1);
}

static struct mapping_id add_mapping(struct profile *profile, const char *file_name, uint64_t start)
{
    struct mapping mapping = {.start = start, .limit = start + 0x1000, .file_name = profile_text(profile, file_name)};
    return profile_add_mapping(profile, &mapping);
}

static void add_sample(struct profile *profile, struct stack_id stack, uint64_t time_ns, int64_t value)
{
    profile_add_sample(profile, &(struct sample){.stack = stack, .time_ns = time_ns}, &value);
}

static struct label_set_id add_label(struct profile *profile, const char *key, const char *text)
{
    struct label label = {.key = profile_text(profile, key), .text = profile_text(profile, text)};
    return profile_add_labels(profile, &label, 1);
}

/* Counts the stacks, the empty one included. */
static size_t count_stacks(const struct profile *profile)
{
    size_t count = 0;
    for (uint32_t i = 0; i < profile_stack_limit(profile); i++) count += profile_is_stack(profile, i);
    return count;
}

TEST(equal_things_get_equal_ids_and_none_is_never_given_out)
{
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(profile_text(&profile, "").index, 0);
    struct string_id a = profile_text(&profile, "a"), b = profile_text(&profile, "b");
    CHECK_UINT(a.index, 1);
    CHECK_UINT(b.index, 2);
    CHECK_UINT(profile_text(&profile, "a").index, a.index);
    CHECK_UINT(profile_add_mapping(&profile, &(struct mapping){0}).index, 1);
    CHECK_UINT(profile_add_mapping(&profile, &(struct mapping){0}).index, 1);
    CHECK_UINT(add_function(&profile, "f").index, 1);
    CHECK_UINT(add_function(&profile, "g").index, 2);
    CHECK_UINT(add_function(&profile, "f").index, 1);
    struct location_id here = add_location(&profile, (struct mapping_id){0}, 5, "f");
    CHECK_UINT(add_location(&profile, (struct mapping_id){0}, 5, "f").index, here.index);
    CHECK(add_location(&profile, (struct mapping_id){0}, 5, "g").index != here.index);
    struct stack_id root = profile_add_stack(&profile, (struct stack_id){0}, here);
    CHECK_UINT(profile_add_stack(&profile, (struct stack_id){0}, here).index, root.index);
    CHECK(profile_add_stack(&profile, root, here).index != root.index);
    CHECK(add_label(&profile, "k", "v").index != add_label(&profile, "k", "w").index);
    CHECK_UINT(add_label(&profile, "k", "v").index, add_label(&profile, "k", "v").index);
    CHECK_UINT(profile_failed(&profile, NULL), STATUS_OK);
    profile_fini(&profile);
}

TEST(a_stack_is_found_again_wherever_others_part_from_it)
{
    enum { PLACES = 5, STACKS = PLACES * PLACES * PLACES };
    struct profile profile;
    profile_init(&profile);
    struct location_id places[PLACES];
    uint32_t seen[STACKS];
    for (uint64_t i = 0; i < PLACES; i++) places[i] = add_location(&profile, (struct mapping_id){0}, i + 1, "f");
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < STACKS; i++) {
            uint32_t which = i * 7 % STACKS;
            struct stack_id stack = profile_add_stack(&profile, (struct stack_id){0}, places[which % PLACES]);
            stack = profile_add_stack(&profile, stack, places[which / PLACES % PLACES]);
            stack = profile_add_stack(&profile, stack, places[which / PLACES / PLACES]);
            if (round == 0) seen[which] = stack.index;
            CHECK_UINT(stack.index, seen[which]);
            CHECK_UINT(profile_stack_depth(&profile, stack), 3);
        }
    }
    CHECK_UINT(count_stacks(&profile), 1 + PLACES + PLACES * PLACES + STACKS);
    profile_fini(&profile);
}

/* Mostly the same frame, so that stacks have much in common and part from others in many places. */
TEST(stacks_added_together_are_those_added_frame_by_frame)
{
    enum { STACKS = 500, DEPTH_MAX = 30 };
    static struct location_id frames[STACKS][DEPTH_MAX];
    static struct stack_frames stacks[STACKS];
    static struct stack_id ids[STACKS];
    struct profile together, one_by_one;
    profile_init(&together);
    profile_init(&one_by_one);
    uint32_t chance = 1;
    for (size_t i = 0; i < STACKS; i++) {
        stacks[i] = (struct stack_frames){.frames = frames[i], .count = (uint32_t)i % DEPTH_MAX};
        for (size_t frame = 0; frame < stacks[i].count; frame++) {
            chance = chance * 1103515245 + 12345;
            frames[i][frame].index = 1 + (chance >> 16) % 9 / 7;
        }
    }
    profile_add_stacks(&together, stacks, STACKS, ids);
    for (size_t i = 0; i < STACKS; i++) {
        struct stack_id stack = {0};
        for (uint32_t frame = stacks[i].count; frame-- > 0;) {
            stack = profile_add_stack(&one_by_one, stack, frames[i][frame]);
        }
        CHECK_UINT(ids[i].index, stack.index);
    }
    CHECK_UINT(profile_stack_limit(&together), profile_stack_limit(&one_by_one));
    profile_fini(&together);
    profile_fini(&one_by_one);
}

TEST(many_strings_stay_where_they_are)
{
    enum { COUNT = 20000 };
    static const char *first_seen[COUNT];
    struct profile profile;
    profile_init(&profile);
    char text[32];
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(text, sizeof(text), "string-%d", i);
        first_seen[i] = profile_c_string(&profile, profile_text(&profile, text));
    }
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(text, sizeof(text), "string-%d", i);
        CHECK_TEXT(first_seen[i], text);
        CHECK(profile_c_string(&profile, profile_text(&profile, text)) == first_seen[i]);
    }
    profile_fini(&profile);
}

TEST(a_thread_is_found_by_id_and_takes_over_what_it_had_not)
{
    struct profile profile;
    profile_init(&profile);
    struct string_id id = profile_text(&profile, "42");
    struct thread_id thread = profile_add_thread(&profile, &(struct thread){.id = id});
    struct thread named = {.id = id, .name = profile_text(&profile, "main"), .priority = 3, .has_priority = true};
    CHECK_UINT(profile_add_thread(&profile, &named).index, thread.index);
    named.name = profile_text(&profile, "other");
    CHECK_UINT(profile_add_thread(&profile, &named).index, thread.index);
    CHECK_TEXT(profile_c_string(&profile, profile_thread(&profile, thread)->name), "main");
    CHECK_INT(profile_thread(&profile, thread)->priority, 3);
    profile_fini(&profile);
}

TEST(a_failure_is_remembered_and_ids_become_none)
{
    struct profile profile;
    profile_init(&profile);
    static char long_text[PROFILE_STRING_BYTES_MAX + 2];
    memset(long_text, 'x', sizeof(long_text) - 1);
    CHECK_UINT(profile_text(&profile, long_text).index, 0);
    struct error error;
    CHECK_UINT(profile_failed(&profile, &error), STATUS_TOO_LARGE);
    CHECK_UINT(error.status, STATUS_TOO_LARGE);
    CHECK_UINT(profile_text(&profile, "short").index, 0);
    add_sample(&profile, (struct stack_id){0}, 0, 1);
    CHECK_UINT(profile.samples.count, 0);
    profile_fini(&profile);
    profile_fini(&profile);
}

TEST(lines_set_later_name_the_place_in_every_stack)
{
    struct profile profile;
    profile_init(&profile);
    struct location place = {.address = 0x1234};
    struct location_id bare = profile_add_location(&profile, &place, NULL, 0);
    struct stack_id stack = profile_add_stack(&profile, (struct stack_id){0}, bare);
    struct line lines[] = {{.function = add_function(&profile, "inlined")},
                           {.function = add_function(&profile, "real")}};
    profile_set_lines(&profile, bare, lines, 2);
    const struct location *named = profile_location(&profile, profile_stack(&profile, stack).location);
    CHECK_UINT(named->line_count, 2);
    CHECK_UINT(profile_lines(&profile, named)[1].function.index, lines[1].function.index);
    CHECK_UINT(profile_add_location(&profile, &place, lines, 2).index, bare.index);
    CHECK(profile_add_location(&profile, &place, NULL, 0).index != bare.index);
    profile_fini(&profile);
}

TEST(aggregation_sums_what_is_equal_in_stack_thread_and_labels_PPF_2)
{
    struct profile profile;
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    struct stack_id a =
        profile_add_stack(&profile, (struct stack_id){0}, add_location(&profile, (struct mapping_id){0}, 1, "a"));
    struct stack_id b = profile_add_stack(&profile, a, add_location(&profile, (struct mapping_id){0}, 2, "b"));
    profile.has_times = true;
    int64_t value = 100;
    add_sample(&profile, b, 1, 1);
    add_sample(&profile, a, 2, 10);
    profile_add_sample(&profile, &(struct sample){.stack = b, .labels = add_label(&profile, "k", "v")}, &value);
    add_sample(&profile, b, 4, 2);
    CHECK_UINT(profile_aggregate(&profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 3);
    CHECK_UINT(profile.samples.stack[0].index, b.index);
    CHECK_INT(profile_sample_values(&profile, 0)[0], 3);
    CHECK_INT(profile_sample_values(&profile, 1)[0], 10);
    CHECK_INT(profile_sample_values(&profile, 2)[0], 100);
    CHECK_UINT(profile.samples.time_ns[0], 0);
    CHECK(!profile.has_times);
    profile_fini(&profile);
}

TEST(samples_of_nothing_but_zeros_are_left_out_on_demand)
{
    struct profile profile;
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    for (int64_t value = 0; value < 4; value++) add_sample(&profile, (struct stack_id){0}, 7, value % 2 * value);
    profile_drop_zero_samples(&profile);
    CHECK_UINT(profile.samples.count, 2);
    CHECK_INT(profile.samples.values[0], 1);
    CHECK_INT(profile.samples.values[1], 3);
    profile_fini(&profile);
}

TEST(sorting_by_time_moves_whole_samples_and_keeps_the_order_of_equal_ones)
{
    struct profile profile;
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    struct stack_id a =
        profile_add_stack(&profile, (struct stack_id){0}, add_location(&profile, (struct mapping_id){0}, 1, "a"));
    add_sample(&profile, a, 30, 1);
    add_sample(&profile, (struct stack_id){0}, 10, 2);
    add_sample(&profile, a, 30, 3);
    add_sample(&profile, a, 20, 4);
    CHECK_UINT(profile_sort_by_time(&profile, NULL), STATUS_OK);
    static const int64_t expected[] = {2, 4, 1, 3};
    for (size_t i = 0; i < 4; i++) CHECK_INT(profile_sample_values(&profile, i)[0], expected[i]);
    CHECK_UINT(profile.samples.time_ns[3], 30);
    CHECK_UINT(profile.samples.stack[0].index, 0);
    CHECK_UINT(profile.samples.stack[1].index, a.index);
    profile_fini(&profile);
}

TEST(samples_of_many_runs_are_sorted_and_equal_ones_stay_in_order)
{
    enum { SAMPLES = 1000 };
    for (uint64_t step = 1; step < SAMPLES; step = step * 3 + 1) { /* from one long run to runs of two */
        struct profile profile;
        profile_init(&profile);
        profile_add_value_type(&profile, "samples", "count");
        for (uint64_t i = 0; i < SAMPLES; i++) {
            add_sample(&profile, (struct stack_id){0}, i * step % (SAMPLES + 1) / 4, (int64_t)i);
        }
        CHECK_UINT(profile_sort_by_time(&profile, NULL), STATUS_OK);
        for (size_t i = 0; i < SAMPLES; i++) {
            uint64_t added = (uint64_t)profile_sample_values(&profile, i)[0];
            CHECK_UINT(profile.samples.time_ns[i], added * step % (SAMPLES + 1) / 4);
            if (i == 0) continue;
            CHECK(profile.samples.time_ns[i - 1] <= profile.samples.time_ns[i]);
            bool is_equal = profile.samples.time_ns[i - 1] == profile.samples.time_ns[i];
            CHECK(!is_equal || profile_sample_values(&profile, i - 1)[0] < (int64_t)added);
        }
        profile_fini(&profile);
    }
}

TEST(the_default_value_is_the_named_one_or_else_the_last)
{
    struct profile profile;
    profile_init(&profile);
    CHECK_INT(profile_value_index(&profile, ""), -1);
    profile_add_value_type(&profile, "samples", "count");
    profile_add_value_type(&profile, "wall", "nanoseconds");
    CHECK_INT(profile_value_index(&profile, ""), 1);
    CHECK_INT(profile_value_index(&profile, "samples"), 0);
    CHECK_INT(profile_value_index(&profile, "cpu"), -1);
    profile.default_value_type = profile_text(&profile, "samples");
    CHECK_INT(profile_value_index(&profile, ""), 0);
    profile_fini(&profile);
}

/* One sample "main" -> "work" in libwork.so, which is at START. */
static void build_process(struct profile *profile, uint64_t start, int64_t value)
{
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    (void)profile_text(profile, value > 5 ? "shifts all the ids" : "");
    struct mapping_id library = add_mapping(profile, "/lib/libwork.so", start);
    struct stack_id root =
        profile_add_stack(profile, (struct stack_id){0}, add_location(profile, library, start + 0x10, "main"));
    struct stack_id leaf = profile_add_stack(profile, root, add_location(profile, library, start + 0x20, "work"));
    add_sample(profile, leaf, 1, value);
    profile_add_metadata_number(profile, "ticks", value);
    profile_add_comment(profile, slice_of_text("hello"));
}

TEST(merging_folds_a_file_that_was_elsewhere_and_keeps_every_value_PPF_7)
{
    struct profile into, one, two;
    profile_init(&into);
    build_process(&one, 0x10000, 3);
    build_process(&two, 0x70000, 9);
    CHECK_UINT(profile_merge(&into, &one, NULL, NULL), STATUS_OK);
    CHECK_UINT(profile_merge(&into, &two, NULL, NULL), STATUS_OK);
    CHECK_UINT(into.mappings.count, 2);
    CHECK_UINT(into.locations.count, 3);
    CHECK_UINT(into.locations.items[2].address, 0x10020);
    CHECK_UINT(profile_stack_limit(&into), 3);
    CHECK_UINT(into.samples.count, 2);
    CHECK_UINT(into.samples.stack[0].index, into.samples.stack[1].index);
    CHECK_INT(profile_sample_values(&into, 0)[0] + profile_sample_values(&into, 1)[0], 12);
    CHECK_UINT(into.metadata.count, 1);
    CHECK_INT(into.metadata.items[0].number, 12);
    CHECK_UINT(into.comments.count, 1);
    profile_fini(&into);
    profile_fini(&one);
    profile_fini(&two);
}

static void build_chunk(struct profile *profile, const char *profiler_id, int64_t pid)
{
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    profile->profiler_id = profile_text(profile, profiler_id);
    struct thread thread = {.process = profile_add_pid(profile, pid, profile_text(profile, "worker")),
                            .id = profile_text(profile, "1"),
                            .name = profile_text(profile, "main")};
    struct sample sample = {.thread = profile_add_thread(profile, &thread)};
    profile_add_sample(profile, &sample, (int64_t[]){1});
}

/* Merges two profiles with one thread "1" each; returns how many threads that are. */
static size_t count_merged_threads(const char *profiler_ids[2], const int64_t pids[2])
{
    struct profile into, parts[2];
    profile_init(&into);
    for (size_t i = 0; i < 2; i++) {
        build_chunk(&parts[i], profiler_ids[i], pids[i]);
        CHECK_UINT(profile_merge(&into, &parts[i], NULL, NULL), STATUS_OK);
        profile_fini(&parts[i]);
    }
    size_t count = into.threads.count - 1;
    CHECK_UINT(into.samples.thread[0].index == into.samples.thread[1].index, count == 1);
    profile_fini(&into);
    return count;
}

TEST(threads_of_one_id_are_two_in_two_processes_and_one_in_one)
{
    CHECK_UINT(count_merged_threads((const char *[]){"", ""}, (int64_t[]){7, 8}), 2);
    CHECK_UINT(count_merged_threads((const char *[]){"", ""}, (int64_t[]){7, 7}), 1);
    CHECK_UINT(count_merged_threads((const char *[]){"a", "b"}, (int64_t[]){0, 0}), 2);
    CHECK_UINT(count_merged_threads((const char *[]){"a", "a"}, (int64_t[]){0, 0}), 1);
    CHECK_UINT(count_merged_threads((const char *[]){"", ""}, (int64_t[]){0, 0}), 1);
    CHECK_UINT(count_merged_threads((const char *[]){"a", "b"}, (int64_t[]){7, 7}), 1);
}

TEST(a_process_takes_over_what_was_not_known_of_it)
{
    struct profile profile;
    profile_init(&profile);
    struct process_id first = profile_add_pid(&profile, 7, (struct string_id){0});
    struct process known = {.pid = 7,
                            .parent_pid = 1,
                            .start_ns = 5,
                            .name = profile_text(&profile, "sh"),
                            .profiler_id = profile_text(&profile, "a")};
    CHECK_UINT(profile_add_process(&profile, &known).index, first.index);
    CHECK_INT(profile_process(&profile, first)->parent_pid, 1);
    CHECK_UINT(profile_process(&profile, first)->start_ns, 5);
    CHECK_TEXT(profile_c_string(&profile, profile_process(&profile, first)->name), "sh");
    known.name = profile_text(&profile, "ls"); /* it ran another program */
    CHECK_UINT(profile_add_process(&profile, &known).index, first.index);
    CHECK_TEXT(profile_c_string(&profile, profile_process(&profile, first)->name), "sh");
    known.start_ns = 6; /* a later process with the same pid */
    CHECK(profile_add_process(&profile, &known).index != first.index);
    known.start_ns = 5;
    known.container = profile_text(&profile, "b");
    CHECK(profile_add_process(&profile, &known).index != first.index);
    CHECK_UINT(profile_add_pid(&profile, -1, known.name).index, 0);
    CHECK_UINT(profile_add_pid(&profile, 0, known.name).index, 0);
    profile_fini(&profile);
}

/* Memory at one address is another mapping in another process; a file is one mapping in both. */
TEST(merging_keeps_the_memory_of_two_processes_apart)
{
    struct profile into;
    profile_init(&into);
    for (int64_t pid = 7; pid <= 8; pid++) {
        struct profile part;
        profile_init(&part);
        profile_add_value_type(&part, "samples", "count");
        struct mapping memory = {.start = 0x1000, .limit = 0x2000, .file_name = profile_text(&part, "//anon")};
        memory.process = profile_add_pid(&part, pid, (struct string_id){0});
        add_location(&part, profile_add_mapping(&part, &memory), 0x1010, "jit");
        add_location(&part, add_mapping(&part, "/lib/libwork.so", 0x10000), 0x10010, "work");
        CHECK_UINT(profile_merge(&into, &part, NULL, NULL), STATUS_OK);
        profile_fini(&part);
    }
    CHECK_UINT(into.mappings.count - 1, 3);
    CHECK_UINT(into.locations.count - 1, 3);
    CHECK_INT(profile_process(&into, into.mappings.items[1].process)->pid, 7);
    CHECK_INT(profile_process(&into, into.mappings.items[3].process)->pid, 8);
    profile_fini(&into);
}

TEST(labels_added_together_are_those_added_one_by_one)
{
    enum { SETS = 1000, LABELS_MAX = 3 };
    static struct label labels[SETS][LABELS_MAX];
    static struct labels_of_one sets[SETS];
    static struct label_set_id ids[SETS];
    struct profile together, one_by_one;
    profile_init(&together);
    profile_init(&one_by_one);
    uint32_t chance = 1;
    for (size_t i = 0; i < SETS; i++) {
        sets[i] = (struct labels_of_one){.labels = labels[i], .count = (uint32_t)i % (LABELS_MAX + 1)};
        for (size_t label = 0; label < sets[i].count; label++) {
            chance = chance * 1103515245 + 12345;
            uint32_t bits = chance >> 16;
            labels[i][label].key.index = 1 + bits % 2;
            labels[i][label].is_number = bits & 16;
            labels[i][label].number = bits & 16 ? bits % 5 : 0;
            labels[i][label].text.index = bits & 16 ? 0 : bits % 3;
        }
    }
    profile_add_labels_of_many(&together, sets, SETS, ids);
    for (size_t i = 0; i < SETS; i++) {
        CHECK_UINT(ids[i].index, profile_add_labels(&one_by_one, labels[i], sets[i].count).index);
    }
    CHECK_UINT(together.label_sets.count, one_by_one.label_sets.count);
    CHECK(together.label_sets.count > SETS / 20 && together.label_sets.count < SETS / 2);
    profile_fini(&together);
    profile_fini(&one_by_one);
}

/* A stack of up to 11 frames of a few kinds, so that most part from others in many places. */
static struct stack_id add_stack_by_chance(struct profile *profile, uint32_t *chance)
{
    struct stack_id stack = {0};
    for (uint32_t depth = (*chance >> 16) % 12; depth > 0; depth--) {
        *chance = *chance * 1103515245 + 12345;
        stack = profile_add_stack(profile, stack, (struct location_id){1 + (*chance >> 16) % 3});
    }
    *chance = *chance * 1103515245 + 12345;
    return stack;
}

static void build_by_chance(struct profile *profile, uint32_t chance, uint64_t first_address)
{
    enum { STACKS = 600 };
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    for (uint64_t i = 0; i < 3; i++) (void)add_location(profile, (struct mapping_id){0}, first_address + i, "f");
    for (int i = 0; i < STACKS; i++) {
        struct stack_id stack = add_stack_by_chance(profile, &chance);
        if (i % 3 > 0) add_sample(profile, stack, 1, 1);
    }
}

/* Checks that each sample kept its addresses. */
static void check_merged(const struct profile *into, size_t first, const struct profile *from)
{
    for (size_t i = 0; i < from->samples.count; i++) {
        struct stack_id a = into->samples.stack[first + i], b = from->samples.stack[i];
        CHECK_UINT(profile_stack_depth(into, a), profile_stack_depth(from, b));
        while (a.index != 0 && b.index != 0) {
            CHECK_UINT(profile_location(into, profile_stack(into, a).location)->address,
                       profile_location(from, profile_stack(from, b).location)->address);
            a = profile_stack(into, a).parent;
            b = profile_stack(from, b).parent;
        }
    }
}

static void check_all_stacks_are_needed(const struct profile *profile)
{
    static bool is_needed[100000];
    size_t needed = 1;
    memset(is_needed, 0, sizeof(is_needed));
    CHECK(profile_stack_limit(profile) < sizeof(is_needed));
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct stack_id stack = profile->samples.stack[i];
        for (; stack.index != 0 && !is_needed[stack.index]; needed++) {
            is_needed[stack.index] = true;
            stack = profile_stack(profile, stack).parent;
        }
    }
    CHECK_UINT(count_stacks(profile), needed);
}

TEST(merging_takes_the_stacks_that_samples_have_each_once_and_no_others)
{
    struct profile into, one, two;
    profile_init(&into);
    build_by_chance(&one, 1, 10);
    build_by_chance(&two, 2, 11); /* two of the three places are one's too */
    size_t stack_count = 0;
    for (int round = 0; round < 2; round++) {
        CHECK_UINT(profile_merge(&into, &one, NULL, NULL), STATUS_OK);
        check_merged(&into, into.samples.count - one.samples.count, &one);
        CHECK_UINT(profile_merge(&into, &two, NULL, NULL), STATUS_OK);
        check_merged(&into, into.samples.count - two.samples.count, &two);
        check_all_stacks_are_needed(&into);
        if (round == 0) stack_count = profile_stack_limit(&into);
    }
    CHECK_UINT(profile_stack_limit(&into), stack_count);
    profile_fini(&into);
    profile_fini(&one);
    profile_fini(&two);
}

/* COUNT places "f0", "f1", … of lines 0, 1, …, the first being FIRST and each STEP further, round and round. */
static void add_places(struct profile *profile, unsigned count, unsigned first, unsigned step)
{
    static const int64_t one = 1;
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    for (unsigned i = 0; i < count; i++) {
        unsigned number = (first + i * step) % count;
        char name[16];
        (void)snprintf(name, sizeof(name), "f%u", number);
        struct function function = {.name = profile_text(profile, name), .start_line = number};
        struct line line = {.function = profile_add_function(profile, &function), .line = number};
        struct location location = {.address = number};
        struct stack_id stack =
            profile_add_stack(profile, (struct stack_id){0}, profile_add_location(profile, &location, &line, 1));
        profile_add_sample(profile, &(struct sample){.stack = stack}, &one);
    }
}

/* In the same order, with another beginning, and in one in which no two follow each other as they do in INTO. */
TEST(merging_finds_what_is_there_in_whatever_order_it_comes)
{
    enum { PLACES = 100 };
    static const unsigned orders[][2] = {{0, 1}, {50, 1}, {3, 7}, {99, 99}};
    struct profile into, from;
    add_places(&into, PLACES, 0, 1);
    size_t string_count = into.strings.count;
    for (size_t order = 0; order < sizeof(orders) / sizeof(orders[0]); order++) {
        add_places(&from, PLACES, orders[order][0], orders[order][1]);
        CHECK_UINT(profile_merge(&into, &from, NULL, NULL), STATUS_OK);
        profile_fini(&from);
    }
    CHECK_UINT(into.strings.count, string_count);
    CHECK_UINT(into.functions.count, PLACES + 1);
    CHECK_UINT(into.locations.count, PLACES + 1);
    CHECK_UINT(profile_aggregate(&into, NULL), STATUS_OK);
    CHECK_UINT(into.samples.count, PLACES);
    for (size_t i = 0; i < PLACES; i++) CHECK_INT(profile_sample_values(&into, i)[0], 5);

    /* A place that differs in one field is a different place. */
    add_places(&from, PLACES, 0, 1);
    from.functions.items[2].start_line++;
    from.lines.items[3].line++;
    from.locations.items[5].address++;
    CHECK_UINT(profile_merge(&into, &from, NULL, NULL), STATUS_OK);
    CHECK_UINT(into.functions.count, PLACES + 2);
    CHECK_UINT(into.locations.count, PLACES + 4);
    profile_fini(&from);
    profile_fini(&into);
}

TEST(merging_adds_extra_labels_first_and_keeps_samples_distinct_PPF_8)
{
    struct profile into, one;
    profile_init(&into);
    build_process(&one, 0x10000, 3);
    one.samples.labels[0] = add_label(&one, "request", "r1");
    struct profile_extra_labels extra = {.items = {{.key = "pid", .number = 7, .is_number = true}}, .count = 1};
    CHECK_UINT(profile_merge(&into, &one, &extra, NULL), STATUS_OK);
    extra.items[0].number = 8;
    CHECK_UINT(profile_merge(&into, &one, &extra, NULL), STATUS_OK);
    CHECK_UINT(profile_aggregate(&into, NULL), STATUS_OK);
    CHECK_UINT(into.samples.count, 2);
    struct label_set set = into.label_sets.items[into.samples.labels[1].index];
    CHECK_UINT(set.count, 2);
    CHECK_TEXT(profile_c_string(&into, into.labels.items[set.first].key), "pid");
    CHECK_INT(into.labels.items[set.first].number, 8);
    CHECK_TEXT(profile_c_string(&into, into.labels.items[set.first + 1].text), "r1");
    profile_fini(&into);
    profile_fini(&one);
}

TEST(profiles_of_different_values_or_the_profile_itself_do_not_merge)
{
    struct profile into, one;
    profile_init(&into);
    profile_add_value_type(&into, "wall", "nanoseconds");
    build_process(&one, 0x10000, 3);
    struct error error;
    CHECK_UINT(profile_merge(&into, &one, NULL, &error), STATUS_UNSUPPORTED);
    CHECK_UINT(profile_merge(&one, &one, NULL, &error), STATUS_UNSUPPORTED);
    CHECK_UINT(into.strings.count, 3);
    CHECK(strstr(error.message, "cannot be merged into itself"));
    CHECK_UINT(profile_merge(&into, &one, NULL, &error), STATUS_UNSUPPORTED);
    CHECK(strstr(error.message, "the other profile has wall/nanoseconds"));
    profile_fini(&into);
    profile_fini(&one);
}

/* --- Short names -------------------------------------------------------------------------------------------------- */

static const char *short_name(struct buffer *out, const char *name)
{
    buffer_clear(out);
    short_name_append(slice_of_text(name), out);
    buffer_append_byte(out, '\0');
    return (const char *)out->data;
}

TEST(short_names_have_no_template_arguments)
{
    static const struct {
        const char *name, *expected;
    } names[] = {
        {"main", "main"},
        {"std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector::push_back(int const&)"},
        {"void std::__introsort_loop<int*, long, __gnu_cxx::__ops::_Iter_less_iter>(int*, int*, long)",
         "void std::__introsort_loop(int*, int*, long)"},
        {"std::_Rb_tree<int, std::pair<int const, std::map<int, int> > >::_M_insert_(std::pair<int const, int>&&)",
         "std::_Rb_tree::_M_insert_(std::pair&&)"},
        {"std::function<void (std::vector<int>)>::operator()(std::vector<int>) const",
         "std::function::operator()(std::vector) const"},
        {"Array<(4>2), (Kind)1>::size()", "Array::size()"},
        {"Fixed<-1>::get()", "Fixed::get()"},
        {"foo[abi:cxx11]<int>(int)", "foo[abi:cxx11](int)"},
        {"work<int>(int) [clone .isra.0]", "work(int) [clone .isra.0]"},
        /* operators, with and without arguments, as libiberty and LLVM write them */
        {"operator<(A const&, A const&)", "operator<(A const&, A const&)"},
        {"bool operator< <int>(A<int> const&, A<int> const&)", "bool operator<(A const&, A const&)"},
        {"bool operator<<int>(A<int> const&, A<int> const&)", "bool operator<(A const&, A const&)"},
        {"std::ostream& std::operator<< <std::char_traits<char> >(std::basic_ostream<char>&, char const*)",
         "std::ostream& std::operator<<(std::basic_ostream&, char const*)"},
        {"operator<<<int>(A<int>&)", "operator<<(A&)"},
        {"Flags::operator<<=(int)", "Flags::operator<<=(int)"},
        {"operator<=><int>(A<int>)", "operator<=>(A)"},
        {"operator<=(A<int>)", "operator<=(A)"},
        {"operator> <int>(A<int>)", "operator>(A)"},
        {"operator>><int>(A<int>)", "operator>>(A)"},
        {"operator>=(A, A)", "operator>=(A, A)"},
        {"std::unique_ptr<A, std::default_delete<A> >::operator->() const", "std::unique_ptr::operator->() const"},
        {"Pointer<A>::operator->*<B>(B A::*)", "Pointer::operator->*(B A::*)"},
        {"Box<A>::operator std::vector<int>() const", "Box::operator std::vector() const"},
        {"Box<A>::operator()<int>(int)", "Box::operator()(int)"},
        {"Less<&(operator< <int>)>::call()", "Less::call()"},
        {"my_operator<int>()", "my_operator()"},
        /* names in angle brackets */
        {"run<int>()::{lambda(std::vector<int>)#1}::operator()(std::vector<int>) const",
         "run()::{lambda(std::vector)#1}::operator()(std::vector) const"},
        {"ns::<lambda(int)>::operator()(int) const", "ns::<lambda(int)>::operator()(int) const"},
        {"Sort<{lambda(A<1>)#2}>::go()", "Sort::go()"},
        {"<unnamed struct>::f()", "<unnamed struct>::f()"},
        {"java.util.ArrayList.<init>", "java.util.ArrayList.<init>"},
        {"<module>", "<module>"},
        {"outer.<locals>.<lambda>", "outer.<locals>.<lambda>"},
        {"Program.<>c.<Main>b__0", "Program.<>c.<Main>b__0"},
        {"(anonymous namespace)::Map<int>::find(int)", "(anonymous namespace)::Map::find(int)"},
        /* Rust, both manglings */
        {"core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place"},
        {"core::ptr::drop_in_place::<alloc::string::String>", "core::ptr::drop_in_place"},
        {"<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop", "<alloc::vec::Vec as core::ops::drop::Drop>::drop"},
        {"core::fmt::num::<impl core::fmt::Debug for u32>::fmt",
         "core::fmt::num::<impl core::fmt::Debug for u32>::fmt"},
        {"alloc::raw_vec::RawVec::<u8>::grow", "alloc::raw_vec::RawVec::grow"},
        {"<F as FnOnce<fn() -> T>>::call_once", "<F as FnOnce>::call_once"},
        /* brackets without an end */
        {"a<b", "a<b"},
        {"a<b<c>", "a<b"},
        {"a<(b>", "a<(b>"},
        {"a->b", "a->b"},
        {"operator<", "operator<"},
        {"", ""},
    };
    struct buffer out;
    buffer_init(&out, 1 << 16);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK_TEXT(short_name(&out, names[i].name), names[i].expected);
    buffer_fini(&out);
}

TEST(a_name_of_brackets_without_end_costs_no_more_than_its_size)
{
    enum { SIZE = 1 << 20 };
    char *name = malloc(SIZE + 1);
    CHECK(name != NULL);
    for (size_t i = 0; i < SIZE; i++) name[i] = i % 2 ? '<' : 'a';
    name[SIZE] = '\0';
    struct buffer out;
    buffer_init(&out, 2 * SIZE);
    CHECK(strcmp(short_name(&out, name), name) == 0); /* squared, it takes hours */
    buffer_fini(&out);
    free(name);
}

TEST(functions_of_one_short_name_have_one_name)
{
    struct profile profile;
    profile_init(&profile);
    struct function functions[] = {{.name = profile_text(&profile, "sort<int>()")},
                                   {.system_name = profile_text(&profile, "sort<A<1> >()")}};
    for (size_t i = 0; i < 2; i++) (void)profile_add_function(&profile, &functions[i]);
    profile_give_short_names(&profile);
    for (size_t i = 1; i < 3; i++) CHECK_TEXT(profile_c_string(&profile, profile.functions.items[i].name), "sort()");
    profile_fini(&profile);
}

/* A stack of three frames, leaf first, in the files of NAMES. */
static struct stack_id stack_in_files(struct profile *profile, const char *const names[3])
{
    struct stack_id at = {0};
    for (size_t i = 3; i-- > 0;) {
        uint64_t start = 0x10000 * (uint64_t)(i + 1);
        struct mapping mapping = {
            .start = start, .limit = start + 0x1000, .file_name = profile_text(profile, names[i])};
        struct location location = {.address = start + 8, .mapping = profile_add_mapping(profile, &mapping)};
        at = profile_add_stack(profile, at, profile_add_location(profile, &location, NULL, 0));
    }
    return at;
}

static const char *file_at(const struct profile *profile, struct stack_id stack)
{
    struct stack frame = profile_stack_at(profile, stack.index);
    struct mapping_id mapping = profile->locations.items[frame.location.index].mapping;
    return profile_c_string(profile, profile->mappings.items[mapping.index].file_name);
}

TEST(own_frames_are_hidden_and_their_time_is_the_callers)
{
    static const char *const stacks[][3] = {
        {"/lib/liboffbeat.so.0.1.0", "/lib/libc.so.6", "/bin/a"},
        {"/lib/libc.so.6", "/lib/liboffbeat.so", "/bin/a"},
        {"/lib/liboffbeat.something", "/lib/libmyliboffbeat.so", "/bin/a"}, /* places of other mappings */
        {"/lib/liboffbeat.so", "/lib/liboffbeat-first.so", "/opt/liboffbeat.so.0"},
    };
    static const char *const leaves[] = {"/lib/libc.so.6", "/lib/libc.so.6", "/lib/liboffbeat.something",
                                         "/lib/liboffbeat.so"}; /* nothing else would be left */
    static const uint32_t depths[] = {2, 2, 3, 3};
    struct profile profile;
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    for (size_t i = 0; i < 4; i++) {
        struct sample sample = {.stack = stack_in_files(&profile, stacks[i])};
        profile_add_sample(&profile, &sample, (const int64_t[]){7});
    }
    profile_hide_own_frames(&profile);
    CHECK_UINT(profile_failed(&profile, NULL), STATUS_OK);
    for (size_t i = 0; i < 4; i++) {
        struct stack_id at = profile.samples.stack[i];
        CHECK_TEXT(file_at(&profile, at), leaves[i]);
        uint32_t depth = 0;
        for (; at.index; at = profile_stack_at(&profile, at.index).parent) depth++;
        CHECK_UINT(depth, depths[i]);
        CHECK_INT(profile_sample_values(&profile, i)[0], 7);
    }
    profile_fini(&profile);
}

static enum frame_kind kind_in_file(const char *file_name, uint64_t address)
{
    struct profile profile;
    profile_init(&profile);
    struct location location = {.address = address};
    if (file_name) location.mapping = add_mapping(&profile, file_name, 0x1000);
    struct location_id id = profile_add_location(&profile, &location, NULL, 0);
    enum frame_kind kind = frame_kind_of(&profile, profile_location(&profile, id), 0);
    profile_fini(&profile);
    return kind;
}

TEST(the_kind_of_a_frame_follows_from_its_file_and_address)
{
    static const struct {
        const char *file;
        uint64_t address;
        enum frame_kind kind;
    } cases[] = {
        {"/usr/lib/libc.so.6", 0x1100, FRAME_NATIVE},
        {"[vdso]", 0x1100, FRAME_NATIVE},
        {NULL, 0x1100, FRAME_NATIVE},
        {NULL, 0, FRAME_UNKNOWN},
        {"[kernel.kallsyms]", 0x1100, FRAME_KERNEL},
        {"[guest.kernel.kallsyms]", 0, FRAME_KERNEL},
        {"/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko", 0x1100, FRAME_KERNEL},
        {"/lib/modules/6.1.0/build/tool", 0x1100, FRAME_NATIVE},
        {NULL, 0xffffffff81000000u, FRAME_KERNEL},
        {"[jit]", 0, FRAME_JIT},
        {ANONYMOUS_MAPPING, 0x1100, FRAME_JIT},
        {"/tmp/perf-12.map", 0x1100, FRAME_JIT},
        {"/home/a/.debug/jit/jitted-12-3.so", 0x1100, FRAME_JIT},
        {"/tmp/perf-12.data", 0x1100, FRAME_NATIVE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_TEXT(frame_kind_name(kind_in_file(cases[i].file, cases[i].address)), frame_kind_name(cases[i].kind));
}

TEST(a_frame_has_the_kind_that_its_format_gives_unless_it_is_inlined)
{
    struct profile profile;
    profile_init(&profile);
    struct line lines[2] = {{.function = add_function(&profile, "inner")},
                            {.function = add_function(&profile, "outer")}};
    struct location location = {.kind = FRAME_INTERPRETED};
    struct location_id interpreted = profile_add_location(&profile, &location, lines, 2);
    location.kind = FRAME_JIT;
    struct location_id jit = profile_add_location(&profile, &location, lines, 2);
    CHECK(interpreted.index != jit.index);
    CHECK_UINT(frame_kind_of(&profile, profile_location(&profile, interpreted), 0), FRAME_INLINED);
    CHECK_UINT(frame_kind_of(&profile, profile_location(&profile, interpreted), 1), FRAME_INTERPRETED);
    CHECK_UINT(frame_kind_of(&profile, profile_location(&profile, jit), 1), FRAME_JIT);
    struct profile merged;
    profile_init(&merged);
    CHECK_UINT(profile_merge(&merged, &profile, NULL, NULL), STATUS_OK);
    CHECK_UINT(merged.locations.count, 3);
    CHECK_UINT(merged.locations.items[2].kind, FRAME_JIT);
    profile_fini(&merged);
    profile_fini(&profile);
}

TEST_MAIN()
