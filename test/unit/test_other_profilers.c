/* Readers of V8's heap profiles, stackprof, DHAT, massif, bpftrace, DTrace and macOS's sample. The numbers are what the
 * tools print for the same files: node's own tree, stackprof --text, valgrind, ms_print, the values of the map.
 * SPDX-License-Identifier: MIT */
#include "decoded.h"
#include "test.h"

static bool is_leaf(const struct profile *profile, size_t sample, const char *name)
{
    const struct location *leaf =
        profile_location(profile, profile_stack(profile, profile->samples.stack[sample]).location);
    if (leaf->line_count == 0) return false;
    const struct function *function = profile_function(profile, profile_lines(profile, leaf)->function);
    return strcmp(profile_c_string(profile, function->name), name) == 0;
}

/* Returns the self value of the function NAME, or of all functions if NAME is NULL. */
static int64_t sum_of(const struct profile *profile, const char *name, const char *type)
{
    int column = profile_value_index(profile, type);
    int64_t sum = 0;
    CHECK(column >= 0);
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (!name || is_leaf(profile, i, name)) sum += profile_sample_values(profile, i)[column];
    }
    return sum;
}

static void check_rejected(const struct format *format, const char *text, enum status status, uint64_t offset)
{
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    enum status found = format->decode(slice_of_text(text), &profile, &error);
    if (found != status || error.offset != offset)
        TEST_FAIL("status %d at %d: %s", found, (int)error.offset, error.message);
    profile_fini(&profile);
}

TEST(a_heap_profile_of_node_has_its_sizes)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/data/v8-heap/node20.heapprofile", &format_v8_heap, &profile);
    CHECK_INT(sum_of(&profile, NULL, "space"), 333360);
    CHECK_INT(sum_of(&profile, NULL, "objects"), 75);
    CHECK_INT(sum_of(&profile, "compileForInternalLoader", "space"), 79128);
    CHECK_INT(sum_of(&profile, "(anonymous)", "space"), 58424);
    profile_fini(&profile);
}

TEST(a_heap_profile_that_is_broken_is_rejected)
{
    check_rejected(&format_v8_heap, "{\"head\":{\"callFrame\":{\"functionName\":\"f\"},\"selfSize\":x}}",
                   STATUS_MALFORMED, 53);
}

TEST(a_log_of_node_has_its_ticks)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/data/v8-log/node20.v8log.json", &format_v8_log, &profile);
    CHECK_INT(sum_of(&profile, NULL, "samples"), 258);
    CHECK_INT(sum_of(&profile, NULL, "wall"), 730835000);
    CHECK_INT(sum_of(&profile, "(garbage collector)", "samples"), 42);
    CHECK_INT(sum_of(&profile, "get squares", "samples"), 76);
    profile_fini(&profile);
}

#define V8_LOG(name, type, ticks) "{\"code\":[{\"name\":\"" name "\",\"type\":\"" type "\"}],\"ticks\":[" ticks "]}"

TEST(a_tick_of_a_log_of_v8_has_what_is_known_of_its_stack)
{
    const char *idle =
        "{\"tm\":1,\"vm\":0,\"s\":[-1,9,0,3]},{\"tm\":3,\"vm\":8,\"s\":[]},{\"tm\":4,\"vm\":6,\"s\":[7,1]}";
    struct profile profile;
    char text[512];
    (void)snprintf(text, sizeof(text), V8_LOG("get x /a b/c.js:12:3", "JS", "%s"), idle);
    profile_init(&profile);
    CHECK_UINT(format_v8_log.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    CHECK_INT(sum_of(&profile, "get x", "wall"), 2000);
    CHECK_INT(sum_of(&profile, "(program)", "samples"), 1);
    CHECK_UINT(profile.samples.stack[1].index, 0);
    CHECK_TEXT(profile_c_string(&profile, profile_function(&profile, (struct function_id){1})->file_name), "/a b/c.js");
    profile_fini(&profile);
    check_rejected(&format_v8_log, "{\"code\":[{\"name\":\"a\",\"type\":\"JS\"}]}", STATUS_MALFORMED, 0);
    check_rejected(&format_v8_log, V8_LOG("f", "CPP", "{\"tm\":x}"), STATUS_MALFORMED, 51);
}

TEST(stackprof_has_samples_and_time)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/data/stackprof/wall.json", &format_stackprof, &profile);
    CHECK_INT(sum_of(&profile, NULL, "samples"), 143);
    CHECK_INT(sum_of(&profile, "Integer#to_s", "wall"), 46000000);
    CHECK_INT(sum_of(&profile, "Object#leaf", "samples"), 16);
    CHECK_INT(profile.period, 1000000);
    profile_fini(&profile);
}

TEST(stackprof_without_stacks_has_functions_and_a_comment)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/data/stackprof/object.json", &format_stackprof, &profile);
    CHECK_INT(sum_of(&profile, "Integer#to_s", "objects"), 600);
    CHECK_UINT(profile.comments.count, 2); /* there are no stacks, and those shown are estimated */
    profile_fini(&profile);
}

#define STACKPROF(raw)                                                                                                 \
    "{\"version\":1.2,\"mode\":\"cpu\",\"interval\":10,\"missed_samples\":0,\"frames\":{\"7\":{\"name\":\"f\"}},"      \
    "\"raw\":" raw "}"

TEST(stackprof_with_a_broken_stack_is_rejected)
{
    check_stacks(&format_stackprof, STACKPROF("[1,7,3]"), "f 30000\n");
    check_rejected(&format_stackprof, STACKPROF("[1,8,3]"), STATUS_MALFORMED, 99);
    check_rejected(&format_stackprof, STACKPROF("[2,7]"), STATUS_MALFORMED, 100);
}

TEST(dhat_has_the_totals_that_valgrind_prints)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/data/dhat/dhat.out", &format_dhat, &profile);
    CHECK_INT(sum_of(&profile, NULL, "alloc_space"), 115000);
    CHECK_INT(sum_of(&profile, NULL, "alloc_objects"), 150);
    CHECK_INT(sum_of(&profile, NULL, "peak_space"), 100300);
    CHECK_INT(sum_of(&profile, NULL, "peak_objects"), 101);
    CHECK_INT(sum_of(&profile, NULL, "end_space"), 50000);
    profile_fini(&profile);
}

TEST(dhat_with_an_unknown_frame_is_rejected)
{
    check_rejected(&format_dhat, "{\"dhatFileVersion\":2,\"pps\":[{\"tb\":1,\"fs\":[4]}],\"ftbl\":[\"[root]\"]}",
                   STATUS_MALFORMED, 43);
}

TEST(massif_has_the_heap_at_its_peak)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/data/massif/massif.out", &format_massif, &profile);
    CHECK_INT(sum_of(&profile, NULL, "inuse_space"), 100300);
    CHECK_INT(sum_of(&profile, "leaf", "inuse_space"), 100300);
    profile_fini(&profile);
}

#define MASSIF "desc: (none)\ncmd: prog\ntime_unit: i\n"

TEST(massif_stacks_begin_at_the_outermost_caller)
{
    check_stacks(&format_massif,
                 MASSIF "heap_tree=detailed\nn2: 90 (heap allocation functions) malloc\n n1: 70 0x10: leaf (a.c:3)\n"
                        "  n0: 50 0x20: main (a.c:9)\n n0: 20 in 2 places, all below massif's threshold (1.00%)\n",
                 "[unknown] 20\nleaf 20\nmain;leaf 50\n");
    check_rejected(&format_massif, MASSIF, STATUS_UNSUPPORTED, 36);
    check_rejected(&format_massif, MASSIF "heap_tree=peak\nn1: 4 malloc\nx\n", STATUS_MALFORMED, 64);
}

TEST(bpftrace_has_the_values_of_its_map)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/data/bpftrace/stacks.txt", &format_bpftrace, &profile);
    CHECK_INT(sum_of(&profile, NULL, "samples"), 69);
    profile_fini(&profile);
}

TEST(bpftrace_stacks_of_kernel_and_program_are_one)
{
    check_stacks(&format_bpftrace,
                 "Attaching 2 probes...\n\n@total: 9\n@[\n    vfs_read+12\n    ksys_read+95\n, \n    read+16\n    "
                 "main(int, char**)+3\n, cat]: 7\n@[, \n    f+1\n, cat]: 2\n",
                 "f 2\nmain(int, char**);read;ksys_read;vfs_read 7\n");
    check_stacks(&format_bpftrace, "Attached 2 probes\nLost 3 events\n^C\n\n@[\n    f+1\n]: 2\n", "f 2\n");
    /* A stack that bpftrace had no room for; a map without stacks. */
    check_stacks(&format_bpftrace, "@[\n    f+1\n, cat]: 2\n@[, cat]: 3\n@of[cat]: 5\n", "[unknown] 3\nf 2\n");
    check_rejected(&format_bpftrace, "@[\n    f+1\n]: (1, 2)\n", STATUS_UNSUPPORTED, 11);
    check_rejected(&format_bpftrace, "@[\n    f+1\n", STATUS_MALFORMED, 3);
}

TEST(a_stack_of_bpftrace_without_frames_has_its_key)
{
    struct profile profile;
    const char *text = "@[, cat]: 3\n@[\n    f+1\n, cat]: 2\n";
    profile_init(&profile);
    CHECK_UINT(format_bpftrace.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 2);
    CHECK_UINT(profile.samples.labels[0].index, profile.samples.labels[1].index);
    profile_fini(&profile);
}

TEST(json_of_bpftrace_that_ends_before_a_value_is_rejected)
{
    static const char text[] = "{\"type\": \"map\", \"data\": {\"@\": {\"k\":";
    struct profile profile;
    profile_init(&profile);
    uint8_t *copy = malloc(sizeof(text) - 1); /* nothing is read behind it */
    CHECK(copy != NULL);
    memcpy(copy, text, sizeof(text) - 1);
    CHECK_UINT(format_bpftrace.decode(slice_of(copy, sizeof(text) - 1), &profile, NULL), STATUS_MALFORMED);
    free(copy);
    profile_fini(&profile);
}

TEST(each_map_of_bpftrace_has_a_value_type)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/cli/data/trials/bt_keys.txt", &format_bpftrace, &profile);
    CHECK_UINT(profile.value_type_count, 2);
    CHECK_INT(sum_of(&profile, NULL, "cpu"), 93);
    CHECK_INT(sum_of(&profile, NULL, "bytes"), 4096);
    CHECK_UINT(profile.omissions.count, 0);
    profile_fini(&profile);
}

TEST(a_map_of_bpftrace_that_cannot_be_read_is_named)
{
    struct profile profile;
    read_profile(TEST_SOURCE_ROOT "/test/cli/data/trials/bt_time.txt", &format_bpftrace, &profile);
    CHECK_INT(sum_of(&profile, NULL, "ns"), 123456789);
    CHECK_INT(sum_of(&profile, "vfs_read", "ns"), 123456789);
    CHECK_INT(sum_of(&profile, NULL, "empty"), 4);
    CHECK(profile_value_index(&profile, "avg") < 0);
    CHECK_UINT(profile.omissions.count, 1);
    CHECK(strstr(profile_c_string(&profile, profile.omissions.items[0]), "@avg") != NULL);
    profile_fini(&profile);
    profile_init(&profile);
    CHECK_UINT(format_bpftrace.decode(slice_of_text("@[\n    f+1\n]: 2\n@[\n    g+1\n"), &profile, NULL), STATUS_OK);
    CHECK_INT(sum_of(&profile, NULL, "samples"), 2);
    CHECK_UINT(profile.omissions.count, 1);
    profile_fini(&profile);
}

TEST(parts_of_a_key_before_the_stack_are_its_label)
{
    struct profile profile;
    static const char text[] =
        "@start[12]: 9\n@ns[cat, \n    vfs_read+12\n    read+1\n, 7]: 90\n@ns[a, b,\n    f+1\n]: 3\n";
    check_stacks(&format_bpftrace, text, "f 3\nread;vfs_read 90\n");
    profile_init(&profile);
    CHECK_UINT(format_bpftrace.decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    static const char *const keys[] = {"cat, 7", "a, b"};
    for (size_t i = 0; i < 2; i++) {
        const struct label_set *set = &profile.label_sets.items[profile.samples.labels[i].index];
        CHECK_UINT(set->count, 1);
        CHECK_TEXT(profile_c_string(&profile, profile.labels.items[set->first].text), keys[i]);
    }
    profile_fini(&profile);
}

TEST(bpftrace_stacks_in_the_style_of_perf_have_names_and_files)
{
    check_stacks(&format_bpftrace,
                 "@[\n\n\t7f0c5a3b2e0d __GI_read+13 (/lib/libc-2.31.so)\n\t5581 f(int) (*)(char)+3 (/bin/a b)\n"
                 "\t7f00 0x7f00 ([unknown])\n]: 7\n",
                 "0x7f00;f(int) (*)(char);__GI_read 7\n");
}

TEST(dtrace_stacks_end_with_their_number)
{
    check_stacks(&format_dtrace,
                 "\n              libc.so.1`read+0x10\n              prog`main+0x2a\n                7\n\n"
                 "              prog`main+0x9\n              3\n",
                 "main 3\nmain;read 7\n");
    check_rejected(&format_dtrace, "  prog`main+0x2a\nwhat\n", STATUS_MALFORMED, 17);
}

#define SAMPLE "Analysis of sampling prog (pid 7) every 2 milliseconds\nCall graph:\n"

TEST(samples_of_macos_have_threads_and_time)
{
    check_stacks(&format_macos_sample,
                 SAMPLE "    10 Thread_1   main\n    + 10 main  (in prog) + 32  [0x1000]  main.c:12\n"
                        "    +   ! 4 work  (in prog) + 8  [0x1010]\n    +   3 idle  (in lib) + 8  [0x1010]\n"
                        "    5 Thread_2\n      5 start  (in prog)\n\nTotal number in stack\n",
                 "main 6000000\nmain;idle 6000000\nmain;work 8000000\nstart 10000000\n");
    check_rejected(&format_macos_sample, SAMPLE "    10 Thread_1\nwhat\n", STATUS_MALFORMED, 83);
}

TEST_MAIN()
