/* The symbol index: ranges that hide one another, the file that is kept of it, what is damaged there, and names of
 * code that a JIT compiler made (PPF-5: naming is its own step; REL-3).  SPDX-License-Identifier: MIT */
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "profile/profile.h"
#include "symbolize/index_store.h"
#include "symbolize/jit_names.h"
#include "symbolize/symbol_index_build.h"
#include "symbolize/symbolizer.h"

enum { SPACE = 300 };

static uint64_t random_state = 42;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

/* --- Ranges ------------------------------------------------------------------------------------------------------- */

/* The value seen at each address: the highest layer, of equals the one that starts later, of equals the later one. */
static void paint(const struct address_ranges *ranges, uint32_t seen[SPACE])
{
    for (uint32_t address = 0; address < SPACE; address++) {
        const struct address_range *best = NULL;
        for (size_t i = 0; i < ranges->count; i++) {
            const struct address_range *range = &ranges->items[i];
            if (address < range->start || address >= range->end) continue;
            if (!best || range->layer > best->layer || (range->layer == best->layer && range->start >= best->start))
                best = range;
        }
        seen[address] = best ? best->value + 1 : 0;
    }
}

TEST(of_ranges_that_are_over_one_another_the_highest_is_seen)
{
    for (int round = 0; round < 300; round++) {
        struct address_ranges ranges = {0};
        uint32_t count = 1 + random_below(round % 10 == 0 ? 200 : 12), expected[SPACE], got[SPACE];
        for (uint32_t i = 0; i < count; i++) {
            uint32_t start = random_below(SPACE), size = random_below(i % 3 ? 20 : SPACE);
            uint32_t end = start + size < SPACE ? start + size : SPACE;
            CHECK(address_ranges_add(&ranges, (struct address_range){start, end, i, random_below(5)}));
        }
        paint(&ranges, expected);
        CHECK(address_ranges_flatten(&ranges, 0));
        paint(&ranges, got);
        for (uint32_t i = 0; i < SPACE; i++) CHECK_UINT(got[i], expected[i]);
        for (size_t i = 1; i < ranges.count; i++) CHECK(ranges.items[i - 1].end <= ranges.items[i].start);
        address_ranges_fini(&ranges);
    }
}

/* --- An index of symbols ------------------------------------------------------------------------------------------ */

struct scene {
    char folder[PATH_MAX], path[PATH_MAX];
    struct elf_file file;
    struct elf_symbols symbols;
    struct function_bounds bounds;
    struct name_sources sources;
    struct symbol_index index; /* built */
};

static void scene_init(struct scene *scene)
{
    *scene = (struct scene){0};
    snprintf(scene->folder, sizeof(scene->folder), "%s/symbol_index_XXXXXX", FIXTURES);
    CHECK(mkdtemp(scene->folder));
    snprintf(scene->path, sizeof(scene->path), "%.4000s/kept", scene->folder);
    CHECK(elf_file_open(&scene->file, FIXTURES "/chain-static", NULL) == STATUS_OK);
    elf_symbols_init(&scene->symbols);
    CHECK(elf_symbols_add(&scene->symbols, &scene->file));
    elf_symbols_finish(&scene->symbols);
    scene->sources = (struct name_sources){
        .symbols = &scene->symbols, .bounds = &scene->bounds, .base = scene->file.segments[0].address};
    scene->sources.inputs[0].size = 12345;
    CHECK(symbol_index_build(&scene->index, &scene->sources));
}

static void scene_fini(struct scene *scene)
{
    char command[PATH_MAX + 32];
    symbol_index_close(&scene->index);
    elf_symbols_fini(&scene->symbols);
    elf_file_close(&scene->file);
    snprintf(command, sizeof(command), "rm -rf '%s'", scene->folder);
    CHECK(system(command) == 0);
}

/* Asks INDEX for all symbols. False if it failed; a wrong answer fails the test. */
static bool has_all_symbols(const struct scene *scene, struct symbol_index *index)
{
    static struct name_answer answer;
    for (size_t i = 0; i < scene->symbols.count; i++) {
        const struct elf_symbol *symbol = &scene->symbols.items[i];
        if (!symbol_index_find(index, symbol->address, &answer)) return false;
        CHECK_UINT(answer.frame_count, 1);
        struct slice name = symbol_index_text(index, answer.frames[0].name);
        if (index->failed) return false;
        CHECK(slice_equals_text(name, elf_symbol_name(&scene->symbols, symbol)));
    }
    return true;
}

TEST(a_kept_index_answers_as_the_one_that_was_built)
{
    struct scene scene;
    struct symbol_index kept;
    scene_init(&scene);
    CHECK(scene.symbols.count > 500);
    CHECK(has_all_symbols(&scene, &scene.index));
    CHECK(symbol_index_write(&scene.index, scene.path));
    CHECK(symbol_index_open(&kept, scene.path, scene.sources.inputs));
    CHECK(has_all_symbols(&scene, &kept));
    symbol_index_close(&kept);
    scene_fini(&scene);
}

TEST(an_index_of_other_files_is_not_used)
{
    struct scene scene;
    struct symbol_index kept;
    scene_init(&scene);
    CHECK(symbol_index_write(&scene.index, scene.path));
    scene.sources.inputs[1].size = 1; /* a debug file was installed since */
    CHECK(!symbol_index_open(&kept, scene.path, scene.sources.inputs));
    scene_fini(&scene);
}

TEST(an_index_that_is_damaged_or_cut_short_fails_and_never_answers_wrongly)
{
    struct scene scene;
    struct buffer bytes;
    scene_init(&scene);
    CHECK(symbol_index_write(&scene.index, scene.path));
    buffer_init(&bytes, 64 << 20);
    CHECK(file_read(scene.path, &bytes, NULL) == STATUS_OK);
    unsigned failed = 0;
    for (int round = 0; round < 60; round++) {
        struct symbol_index kept;
        uint32_t place = round < 30 ? random_below(700) : random_below((uint32_t)bytes.size);
        bytes.data[place] ^= 0x10;
        size_t size = round % 3 == 0 ? random_below((uint32_t)bytes.size) : bytes.size;
        CHECK(file_write(scene.path, slice_of(bytes.data, size), NULL) == STATUS_OK);
        bytes.data[place] ^= 0x10;
        bool is_open = symbol_index_open(&kept, scene.path, scene.sources.inputs);
        failed += !is_open || !has_all_symbols(&scene, &kept);
        if (is_open) symbol_index_close(&kept);
    }
    CHECK(failed >= 40); /* the rest of the first block, and texts of functions that nobody asked for, go unread */
    buffer_fini(&bytes);
    scene_fini(&scene);
}

TEST(a_file_that_is_cut_short_while_it_is_open_fails)
{
    struct scene scene;
    struct symbol_index kept;
    scene_init(&scene);
    CHECK(symbol_index_write(&scene.index, scene.path));
    CHECK(symbol_index_open(&kept, scene.path, scene.sources.inputs));
    CHECK(truncate(scene.path, 100) == 0);
    CHECK(!has_all_symbols(&scene, &kept));
    symbol_index_close(&kept);
    scene_fini(&scene);
}

/* --- Where it is kept --------------------------------------------------------------------------------------------- */

TEST(indexes_are_kept_in_a_folder_that_nobody_else_writes_to)
{
    struct scene scene;
    struct symbol_index kept;
    struct stat facts;
    char folder[PATH_MAX];
    scene_init(&scene);
    snprintf(folder, sizeof(folder), "%.4000s/a/b", scene.folder);
    CHECK(setenv("OFFBEAT_CACHE_DIRECTORY", folder, 1) == 0);
    CHECK(!index_store_open(&kept, "0123abcd", scene.sources.inputs));
    index_store_keep(&scene.index, "0123abcd");
    CHECK(stat(folder, &facts) == 0);
    CHECK_UINT(facts.st_mode & 0777, 0700);
    CHECK(index_store_open(&kept, "0123abcd", scene.sources.inputs));
    CHECK(has_all_symbols(&scene, &kept));
    symbol_index_close(&kept);
    CHECK(!index_store_open(&kept, "0123abce", scene.sources.inputs));
    CHECK(chmod(folder, 0770) == 0);
    CHECK(!index_store_open(&kept, "0123abcd", scene.sources.inputs));
    CHECK(setenv("OFFBEAT_CACHE_DIRECTORY", "/proc/no/such/folder", 1) == 0);
    index_store_keep(&scene.index, "0123abcd");
    CHECK(!index_store_open(&kept, "0123abcd", scene.sources.inputs));
    CHECK(unsetenv("OFFBEAT_CACHE_DIRECTORY") == 0);
    scene_fini(&scene);
}

TEST(the_index_that_was_not_used_for_the_longest_time_makes_room)
{
    struct scene scene;
    struct symbol_index kept;
    char path[PATH_MAX];
    scene_init(&scene);
    CHECK(setenv("OFFBEAT_CACHE_DIRECTORY", scene.folder, 1) == 0);
    for (int i = 0; i < 3; i++) { /* together over the maximum, of holes */
        struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        snprintf(path, sizeof(path), "%.4000s/%d.names", scene.folder, i);
        int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(descriptor >= 0 && ftruncate(descriptor, INDEX_STORE_BYTES_MAX / 5 * 2) == 0);
        CHECK(futimens(descriptor, times) == 0 && close(descriptor) == 0);
    }
    index_store_keep(&scene.index, "0123abcd");
    CHECK(index_store_open(&kept, "0123abcd", scene.sources.inputs));
    symbol_index_close(&kept);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%.4000s/%d.names", scene.folder, i);
        CHECK_INT(access(path, F_OK), i == 0 ? -1 : 0);
    }
    CHECK(unsetenv("OFFBEAT_CACHE_DIRECTORY") == 0);
    scene_fini(&scene);
}

/* --- Code without a file ------------------------------------------------------------------------------------------ */

/* Checks the names of two places without a file when the map of the process holds TEXT. */
static void name_by_map(const char *text, int64_t profile_start, const char *expected_first,
                        const char *expected_second)
{
    static const uint64_t addresses[] = {0x7f0000002010, 0x7f0000001010};
    const char *expected[] = {expected_second, expected_first};
    char path[64];
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    CHECK(file_write(path, slice_of_text(text), NULL) == STATUS_OK);
    struct profile profile;
    profile_init(&profile);
    char process[16];
    snprintf(process, sizeof(process), "%d", (int)getpid());
    profile_add_metadata_text(&profile, "pid", process);
    profile.time_ns = (int64_t)profile_start * 1000000000;
    struct location_id ids[2];
    for (size_t i = 0; i < 2; i++)
        ids[i] = profile_add_location(&profile, &(struct location){.address = addresses[i]}, NULL, 0);
    CHECK(symbolize_profile(&profile, NULL, NULL, NULL) == STATUS_OK);
    unlink(path);
    for (size_t i = 0; i < 2; i++) {
        const struct location *location = profile_location(&profile, ids[i]);
        const char *name = "";
        if (location->line_count > 0)
            name = profile_c_string(&profile,
                                    profile_function(&profile, profile_lines(&profile, location)->function)->name);
        CHECK_TEXT(name, expected[i]);
    }
    profile_fini(&profile);
}

/* Two processes have code at one address; the numbers are of processes that live, so that nobody else has these files.
 */
TEST(each_process_has_its_own_map_of_code_without_a_file)
{
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    const pid_t pids[] = {getpid(), child};
    static const char *const texts[] = {"7f0000001000 20 parents\n", "7f0000001000 20 childs\n"};
    struct location_id ids[2];
    struct profile profile;
    profile_init(&profile);
    for (size_t i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pids[i]);
        CHECK(file_write(path, slice_of_text(texts[i]), NULL) == STATUS_OK);
        struct mapping memory = {.start = 0x7f0000000000,
                                 .limit = 0x7f0000100000,
                                 .file_name = profile_text(&profile, ANONYMOUS_MAPPING),
                                 .process = profile_add_pid(&profile, pids[i], (struct string_id){0})};
        struct location place = {.mapping = profile_add_mapping(&profile, &memory), .address = 0x7f0000001010};
        ids[i] = profile_add_location(&profile, &place, NULL, 0);
    }
    CHECK(symbolize_profile(&profile, NULL, NULL, NULL) == STATUS_OK);
    for (size_t i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pids[i]);
        unlink(path);
        const struct location *location = profile_location(&profile, ids[i]);
        CHECK_UINT(location->line_count, 1);
        if (location->line_count == 0) continue;
        struct function_id function = profile_lines(&profile, location)->function;
        CHECK_TEXT(profile_c_string(&profile, profile_function(&profile, function)->name), i ? "childs" : "parents");
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    profile_fini(&profile);
}

TEST(code_without_a_file_is_named_by_the_map_of_its_process)
{
    int64_t now = time(NULL);
    name_by_map("7f0000001000 20 LazyCompile:*first /a.js:3:1\n7f0000002000 20 second one\n", now,
                "LazyCompile:*first /a.js:3:1", "second one");
    name_by_map("7f0000001000 20 old\n7f0000001008 10 new\n7f0000002000 10 ends before\n", now, "new", "");
    name_by_map("7f0000001000 20 without a newline", now, "without a newline", "");
    name_by_map("7f0000001000 20 tab\there\n\n-1 20 x\nzz 20 x\n7f0000002000 \n7f0000002000 20 \n7f0000002000 "
                "ffffffffffffffff endless\n",
                now, "tab?here", "");
    name_by_map("7f0000001000 20 of an earlier process with this number\n", now + 60, "", "");
    name_by_map("", now, "", "");
}

TEST(a_map_that_somebody_could_have_put_there_is_not_read)
{
    struct jit_names names;
    uint64_t address = 0x1010;
    char path[PATH_MAX], link[PATH_MAX];
    snprintf(path, sizeof(path), "%s/jit_%d.map", FIXTURES, (int)getpid());
    snprintf(link, sizeof(link), "%s/jit_%d.link", FIXTURES, (int)getpid());
    CHECK(file_write(path, slice_of_text("1000 20 f\n"), NULL) == STATUS_OK);
    CHECK(jit_names_find(&names, path, 0, &address, 1));
    CHECK_TEXT(names.by_address[0], "f");
    jit_names_fini(&names);
    CHECK(symlink(path, link) == 0);
    CHECK(jit_names_find(&names, link, 0, &address, 1) && !names.by_address[0]);
    jit_names_fini(&names);
    if (geteuid() == 0) {
        CHECK(chown(path, 12345, 12345) == 0);
        CHECK(jit_names_find(&names, path, 0, &address, 1));
        CHECK(names.by_address[0] == NULL);
        jit_names_fini(&names);
    }
    unlink(link);
    unlink(path);
}

/* A header, a record of another kind, one of code at 0x1000 of 0x20 bytes, and one that is cut. */
TEST(a_jitdump_names_the_code_of_its_records)
{
    const char name[] = "made by a compiler";
    uint32_t words[64] = {0x4A695444, 1, 40, 62, 0, 7};
    uint32_t *other = words + 10, *code = other + 4, size = 56 + sizeof(name) + 4, *cut = code + 20;
    struct jit_names names;
    const uint64_t addresses[] = {0xfff, 0x1000, 0x101f, 0x1020};
    char path[PATH_MAX];
    other[0] = 2, other[1] = 16;
    code[1] = size + (4 - size % 4) % 4, code[8] = 0x1000, code[10] = 0x20;
    memcpy(code + 14, name, sizeof(name));
    cut[1] = 4000, cut[8] = 0xfff, cut[10] = 1;
    CHECK_UINT(code[1], 80);
    snprintf(path, sizeof(path), "%s/jit_%d.dump", FIXTURES, (int)getpid());
    for (size_t bytes = 0; bytes <= sizeof(words); bytes++) {
        bool has_code = bytes >= (size_t)((uint8_t *)cut - (uint8_t *)words);
        CHECK(file_write(path, slice_of((const uint8_t *)words, bytes), NULL) == STATUS_OK);
        CHECK(jit_names_find(&names, path, 0, addresses, 4));
        CHECK(!names.by_address[0] && !names.by_address[3]);
        for (size_t i = 1; i < 3; i++) CHECK(has_code ? strcmp(names.by_address[i], name) == 0 : !names.by_address[i]);
        jit_names_fini(&names);
    }
    unlink(path);
}

TEST(places_of_javascript_are_read_from_its_names)
{
    struct slice file;
    int64_t line = 0;
    CHECK(jit_name_place("JS:*fib /tmp/a b/fib.js:12:3", &file, &line));
    CHECK_INT(line, 12);
    CHECK(slice_equals_text(file, "b/fib.js"));
    CHECK(jit_name_place("JS:~f node:internal/timers:55:1", &file, &line) &&
          slice_equals_text(file, "node:internal/timers"));
    CHECK(!jit_name_place("Builtin:Call_1:2", &file, &line));
    CHECK(!jit_name_place("RegExp:[a-z]:9999999999:1", &file, &line));
    CHECK(!jit_name_place(":1:2", &file, &line) && !jit_name_place("", &file, &line));
}

TEST_MAIN()
