/* Tests which functions of several builds and runs count as the same.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "profile/comparable_name.h"
#include "profile/packages.h"

#include <stdlib.h>

/* --- Names -------------------------------------------------------------------------------------------------------- */

typedef void append_name(struct slice name, struct buffer *out);

static void check_name(append_name *append, const char *name, const char *expected)
{
    struct buffer text;
    buffer_init(&text, 1000);
    append(slice_of_text(name), &text);
    if (!slice_equals_text(buffer_slice(&text), expected))
        TEST_FAIL("%s: %.*s, expected %s", name, SLICE_ARGUMENTS(buffer_slice(&text)), expected);
    buffer_fini(&text);
}

TEST(names_lose_addresses_and_run_numbers)
{
    static const char *const names[][2] = {
        {"Program$$Lambda$88+0x00007fd748007a08.690521419.run", "Program$$Lambda.run"},
        {"Client$$Lambda$7.0x00007f2eb4003880.test", "Client$$Lambda.test"},
        {"a.B$$Lambda$14/1043351526.run", "a.B$$Lambda.run"},
        {"a.B$$Lambda/0x0000000800c03000.run", "a.B$$Lambda.run"},
        {"java/lang/invoke/LambdaForm$MH.0x00007f2eb4004000.invoke_[0]", "java/lang/invoke/LambdaForm$MH.invoke_[0]"},
        {"java.lang.invoke.LambdaForm$DMH/0x00007f2eb4004000.invokeStatic",
         "java.lang.invoke.LambdaForm$DMH.invokeStatic"},
        {"jdk.internal.reflect.GeneratedMethodAccessor12.invoke",
         "jdk.internal.reflect.GeneratedMethodAccessor.invoke"},
        {"com.sun.proxy.$Proxy17.call", "com.sun.proxy.$Proxy.call"},
        {"Service$$EnhancerBySpringCGLIB$$1a2b3c4d.run", "Service$$EnhancerBySpringCGLIB$$.run"},
        {"LazyCompile:*work /app/x.js:3:1", "LazyCompile:work /app/x.js:3:1"},
        {"JS:~work /app/x.js:3:1", "JS:work /app/x.js:3:1"},
        {"stub@0x7f2eb4003880", "stub"},
        {"<function f at 0x7f2eb4003880>", "<function f at 0x>"},
        {"core::ptr::drop_in_place::h0123456789abcdef", "core::ptr::drop_in_place"},
        {"work.llvm.1234567890123", "work.llvm."},
        /* Other names stay. */
        {"libx.so.1+0x1234", "libx.so.1+0x1234"},
        {"prog+0x401130", "prog+0x401130"},
        {"Program.lambda$main$0", "Program.lambda$main$0"},
        {"work.constprop.0", "work.constprop.0"},
        {"v8::internal::Heap::Scavenge()", "v8::internal::Heap::Scavenge()"},
        {"f0x1234", "f0x1234"},
        {"operator~", "operator~"},
        {"h::h", "h::h"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_name(comparable_name_append, names[i][0], names[i][1]);
}

TEST(modules_lose_folder_and_version)
{
    static const char *const modules[][2] = {
        {"/usr/lib/libfoo.so.1.2.3", "libfoo.so"},
        {"/usr/lib/libc-2.31.so", "libc.so"},
        {"/usr/lib/libpython3.11.so.1.0", "libpython.so"},
        {"/nix/store/0c0wxsk8hnbyi4c8ljzk9wbk8jv1xa5x-app-1.2/bin/app", "app"},
        {"/srv/app-1.1/bin/app (deleted)", "app"},
        {"/srv/app-1.1", "app"},
        {"/opt/app_v2", "app"},
        {"C:\\app\\1.2\\foo-1.2.3.dll", "foo.dll"},
        {"/usr/lib/libfoo.1.dylib", "libfoo.dylib"},
        {"/tmp/perf-1234.map", "perf.map"},
        {"/tmp/jitted-1234-56.so", "jitted.so"},
        /* A number without a dot is part of a name. */
        {"/usr/bin/worker-1", "worker-1"},
        {"/usr/lib/lib32x86_64.so", "lib32x86_64.so"},
        {"[kernel.kallsyms]", "[kernel.kallsyms]"},
        {"prog", "prog"},
    };
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
        check_name(comparable_module_append, modules[i][0], modules[i][1]);
}

/* --- Modules ------------------------------------------------------------------------------------------------------ */

/* A sample in FUNCTION of a mapping. A function that ends in "()" is a frame without a name. */
struct used {
    const char *function, *path, *build_id;
    int64_t pid;
    bool is_base;
};

static void add_used(struct profile *profile, const struct used *used, uint64_t address)
{
    struct mapping mapping = {.start = address, .limit = address + 0x1000};
    mapping.file_name = profile_text(profile, used->path);
    mapping.build_id = profile_text(profile, used->build_id);
    struct location location = {.address = address + 0x10, .mapping = profile_add_mapping(profile, &mapping)};
    struct line line = {
        .function = profile_add_function(profile, &(struct function){.name = profile_text(profile, used->function)})};
    struct location_id place = profile_add_location(profile, &location, &line, used->function[0] ? 1 : 0);
    struct label labels[] = {
        {.key = profile_text(profile, "pid"), .is_number = true, .number = used->pid},
        {.key = profile_text(profile, "base"), .text = profile_text(profile, used->is_base ? "true" : "false")},
    };
    struct sample sample = {.stack = profile_add_stack(profile, (struct stack_id){0}, place),
                            .labels = profile_add_labels(profile, labels, 2)};
    profile_add_sample(profile, &sample, (const int64_t[]){1});
}

static const char *name_at(const struct profile *profile, uint32_t location)
{
    const struct location *at = profile_location(profile, (struct location_id){location});
    return at->line_count == 0
               ? ""
               : profile_c_string(profile, profile_function(profile, profile_lines(profile, at)->function)->name);
}

/* Checks the names of the frames of USED, up to the first without a function and path. */
static void check_names(const struct used *used, const char *const *expected, bool is_comparison)
{
    struct profile profile;
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    size_t count = 0;
    for (; used[count].path; count++) add_used(&profile, &used[count], 0x10000 * (count + 1));
    bool *is_base = calloc(profile.label_sets.count, sizeof(*is_base));
    for (size_t i = 0; i < count; i++) is_base[profile.samples.labels[i].index] = used[i].is_base;
    const struct package_naming naming = {.compares = is_comparison, .is_base = is_comparison ? is_base : NULL};
    profile_distinguish_packages(&profile, &naming);
    CHECK(profile_failed(&profile, NULL) == STATUS_OK);
    for (uint32_t i = 0; i < count; i++) CHECK_TEXT(name_at(&profile, i + 1), expected[i]);
    free(is_base);
    profile_fini(&profile);
}

TEST(builds_of_one_module_in_two_folders_are_one)
{
    static const struct used used[] = {
        {"hot", "/base/prog", "aaaa", 1, true},
        {"hot", "/pr/prog", "bbbb", 2, false},
        {"f", "/a/libf.so.1.2.3", "cccc", 1, true},
        {"f", "/b/libf.so.1.2.4", "dddd", 2, false},
        {0},
    };
    check_names(used, (const char *const[]){"hot", "hot", "f", "f"}, true);
    check_names(used, (const char *const[]){"hot", "hot", "f", "f"}, false);
}

TEST(other_modules_stay_apart_by_names_without_versions)
{
    static const struct used used[] = {
        {"f", "/base/liba.so.1", "aaaa", 1, true},
        {"f", "/base/libb.so.1", "bbbb", 1, true},
        {"f", "/pr/liba.so.2", "cccc", 2, false},
        {"f", "/pr/libb.so.2", "dddd", 2, false},
        {0},
    };
    check_names(used, (const char *const[]){"f [liba.so]", "f [libb.so]", "f [liba.so]", "f [libb.so]"}, true);
}

TEST(a_renamed_module_is_the_same)
{
    static const struct used used[] = {
        {"f", "/old", "aaaa", 1, true},
        {"f", "/new", "bbbb", 2, false},
        {"main", "/old", "aaaa", 1, true},
        {"main", "/new", "bbbb", 2, false},
        {"main", "/bin/sh", "cccc", 1, true},
        {"main", "/bin/sh", "cccc", 2, false},
        {0},
    };
    check_names(used, (const char *const[]){"f", "f", "main [new]", "main [new]", "main [sh]", "main [sh]"}, true);
}

TEST(build_ids_decide_where_both_sides_have_a_name_twice)
{
    static const struct used used[] = {
        {"f", "/1/p.so", "aaaa", 1, true},
        {"f", "/2/p.so", "bbbb", 1, true},
        {"f", "/3/p.so", "bbbb", 2, false},
        {"f", "/4/p.so", "cccc", 2, false},
        {0},
    };
    /* aaaa and cccc are left. */
    check_names(used, (const char *const[]){"f [/4/p.so]", "f [/2/p.so]", "f [/2/p.so]", "f [/4/p.so]"}, true);
}

TEST(a_name_that_one_side_has_twice_is_one)
{
    static const struct used used[] = {
        {"f", "/1/p.so", "aaaa", 1, true},
        {"f", "/2/p.so", "bbbb", 2, false},
        {"f", "/3/p.so", "cccc", 2, false},
        {0},
    };
    check_names(used, (const char *const[]){"f", "f", "f"}, true);
}

TEST(two_modules_of_one_process_stay_apart)
{
    static const struct used used[] = {
        {"f", "/1/p.so", "aaaa", 1, false},
        {"f", "/2/p.so", "bbbb", 1, false},
        {0},
    };
    check_names(used, (const char *const[]){"f [/1/p.so]", "f [/2/p.so]"}, false);
}

TEST(frames_without_names_are_compared_by_module_if_the_builds_differ)
{
    static const struct used used[] = {
        {"p+0x10", "/1/p", "aaaa", 1, true},
        {"p+0x10", "/2/p", "bbbb", 2, false},
        {"p+0x20", "/1/p", "aaaa", 1, true},
        {"p+0x30", "/2/p", "bbbb", 2, false},
        {"", "/2/p", "bbbb", 2, false},
        {"q+0x20", "/1/q", "cccc", 1, true},
        {"q+0x30", "/1/q", "cccc", 2, false},
        {"r.so.1+0x8", "/1/r.so.1", "dddd", 1, true},
        {"r.so.2+0x8", "/1/r.so.1", "dddd", 2, false},
        {0},
    };
    static const char *const expected[] = {"p+0x10", "p+0x10", "[p]",      "[p]",     "[p]",
                                           "q+0x20", "q+0x30", "r.so+0x8", "r.so+0x8"};
    check_names(used, expected, true);
}

TEST_MAIN()
