/* Names for places (PPF-4: inlined functions are lines of one location; PPF-5: naming is a step that can come later;
 * PPF-6: names as people and as linkers know them; REL-3). The programs come out of fixtures/build.sh; what they must
 * answer is known from the numbered lines of fixtures/chain.c, and from other tools.  SPDX-License-Identifier: MIT */
#include "real.h"
#include "test.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_reader.h"
#include "binary/elf_symbols.h"
#include "profile/profile.h"
#include "demangle/demangler.h"
#include "symbolize/symbol_module.h"
#include "symbolize/symbolizer.h"

#define FIXTURE(name) FIXTURES "/" name

enum { ADDRESSES_MAX = 16384, CHAIN_MAX = 16384 };

static const uint64_t LOAD_ADDRESS = 0x7f0000000000;

static struct elf_file open_fixture(const char *path)
{
    struct elf_file file;
    struct error error = {0};
    if (elf_file_open(&file, path, &error) != STATUS_OK) TEST_FAIL("%s: %s", path, error.message);
    return file;
}

/* A profile of one program, loaded far away from where the file says. */
struct scene {
    struct profile profile;
    struct mapping mapping;
    struct mapping_id mapping_id;
    uint64_t distance; /* difference of the process's addresses from the file's */
    struct symbolizer_options options;
    struct symbolizer_result result;
};

static void scene_init(struct scene *scene, const char *path)
{
    struct elf_file file = open_fixture(path);
    const struct elf_segment *code = NULL;
    for (size_t i = 0; i < file.segment_count; i++)
        if (file.segments[i].is_executable) code = &file.segments[i];
    CHECK(code);
    *scene = (struct scene){
        .distance = LOAD_ADDRESS, .options.trusts_paths = true, .options.sources = SYMBOLS_OF_THIS_MACHINE};
    profile_init(&scene->profile);
    uint64_t skew = code->address % 4096;
    scene->mapping = (struct mapping){
        .start = scene->distance + code->address - skew,
        .limit = scene->distance + code->address + code->memory_size,
        .file_offset = code->file_offset - skew,
        .file_name = profile_text(&scene->profile, path),
        .build_id = profile_text(&scene->profile, file.build_id),
        .image_start = scene->distance + file.segments[0].address,
        .image_vmaddr = file.segments[0].address,
    };
    elf_file_close(&file);
}

static struct location_id add_address(struct scene *scene, uint64_t file_address)
{
    if (scene->mapping_id.index == 0) scene->mapping_id = profile_add_mapping(&scene->profile, &scene->mapping);
    struct location location = {.mapping = scene->mapping_id, .address = file_address + scene->distance};
    return profile_add_location(&scene->profile, &location, NULL, 0);
}

static void symbolize(struct scene *scene)
{
    struct error error = {0};
    CHECK(setenv("OFFBEAT_CACHE_DIRECTORY", "/dev/null", 1) == 0); /* nothing is kept */
    if (symbolize_profile(&scene->profile, &scene->options, &scene->result, &error) != STATUS_OK)
        TEST_FAIL("%s", error.message);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "innermost chain.c:102 <- outer chain.c:302"; "" if it has no name. */
static const char *chain_of(const struct scene *scene, struct location_id id)
{
    static char text[CHAIN_MAX];
    const struct profile *profile = &scene->profile;
    const struct location *location = profile_location(profile, id);
    const struct line *lines = profile_lines(profile, location);
    size_t size = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < location->line_count && size < sizeof(text); i++) {
        const struct function *function = profile_function(profile, lines[i].function);
        const char *file = base_name(profile_c_string(profile, function->file_name));
        CHECK_UINT(lines[i].attributes.index, 0);
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%s", i ? " <- " : "",
                                 profile_c_string(profile, function->name));
        if (file[0] != '\0' && size < sizeof(text))
            size += (size_t)snprintf(text + size, sizeof(text) - size, " %s:%" PRId64, file, lines[i].line);
    }
    return text;
}

/* The address of the INDEXth MARK in the program. */
static uint64_t mark_address(const char *path, size_t index)
{
    struct elf_file file = open_fixture(path);
    const struct elf_section *marks = elf_file_section(&file, "marks");
    struct buffer bytes;
    buffer_init(&bytes, 4096);
    uint64_t address = 0;
    CHECK(marks && elf_file_read_section(&file, marks, &bytes, NULL) == STATUS_OK);
    CHECK(bytes.size >= (index + 1) * sizeof(address));
    memcpy(&address, bytes.data + index * sizeof(address), sizeof(address));
    buffer_fini(&bytes);
    elf_file_close(&file);
    return address;
}

static struct elf_symbols symbols_of(const struct elf_file *file)
{
    struct elf_symbols symbols;
    elf_symbols_init(&symbols);
    CHECK(elf_symbols_add(&symbols, file) && elf_symbols_add_plt(&symbols, file));
    elf_symbols_finish(&symbols);
    return symbols;
}

static uint64_t symbol_address(const char *path, const char *name)
{
    struct elf_file file = open_fixture(path);
    struct elf_symbols symbols = symbols_of(&file);
    uint64_t address = 0;
    for (size_t i = 0; i < symbols.count; i++)
        if (strcmp(elf_symbol_name(&symbols, &symbols.items[i]), name) == 0) address = symbols.items[i].address;
    elf_symbols_fini(&symbols);
    elf_file_close(&file);
    if (address == 0) TEST_FAIL("%s has no %s", path, name);
    return address;
}

/* --- DWARF -------------------------------------------------------------------------------------------------------- */

static const char inlined_chain[] = "innermost chain.c:102 <- middle chain.c:202 <- outer chain.c:302";

static void check_marks(const char *path)
{
    struct scene scene;
    scene_init(&scene, path);
    struct location_id in_outer = add_address(&scene, mark_address(path, 0));
    struct location_id in_hidden = add_address(&scene, mark_address(path, 1));
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, in_outer), inlined_chain);
    CHECK_TEXT(chain_of(&scene, in_hidden), "hidden chain.c:402");
    CHECK_UINT(scene.result.locations, 2);
    CHECK_UINT(scene.result.named, 2);
    const struct mapping *mapping = profile_mapping(&scene.profile, scene.mapping_id);
    CHECK(mapping->has_functions && mapping->has_filenames && mapping->has_line_numbers && mapping->has_inline_frames);
    profile_fini(&scene.profile);
}

TEST(inlined_functions_are_lines_of_one_location_with_dwarf_5)
{
    check_marks(FIXTURE("chain-dwarf5"));
}

TEST(inlined_functions_are_lines_of_one_location_with_dwarf_4)
{
    check_marks(FIXTURE("chain-dwarf4"));
}

TEST(compressed_debug_sections_are_read)
{
    check_marks(FIXTURE("chain-compressed"));
}

TEST(names_a_unit_whose_functions_have_separate_sections)
{
    check_marks(FIXTURE("chain-sections"));
}

TEST(debug_information_of_clang_without_address_tables_is_read)
{
    if (access(FIXTURE("chain-clang"), R_OK) != 0) SKIP("no clang-14");
    check_marks(FIXTURE("chain-clang"));
}

TEST(what_dwz_moved_to_a_shared_file_is_found)
{
    if (access(FIXTURE("chain-dwz"), R_OK) != 0) SKIP("no dwz");
    check_marks(FIXTURE("chain-dwz"));
}

TEST(members_templates_and_lambdas_have_names_for_people_and_for_linkers)
{
    if (access(FIXTURE("chain-c++"), R_OK) != 0) SKIP("no C++ compiler");
    const char *path = FIXTURE("chain-c++");
    struct scene scene;
    scene_init(&scene, path);
    uint64_t first = mark_address(path, 0), second = mark_address(path, 1); /* compilers choose the order */
    bool is_lambda_first = first < symbol_address(path, "_ZN6shapes7measureERKNS_3BoxIiEE");
    struct location_id member = add_address(&scene, is_lambda_first ? second : first);
    struct location_id lambda = add_address(&scene, is_lambda_first ? first : second);
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, member),
               "shapes::Box<int>::area() const chain.cc:102 <- shapes::measure(shapes::Box<int> const&) chain.cc:202");
    const struct line *lines = profile_lines(&scene.profile, profile_location(&scene.profile, member));
    const struct function *measure = profile_function(&scene.profile, lines[1].function);
    CHECK_TEXT(profile_c_string(&scene.profile, measure->system_name), "_ZN6shapes7measureERKNS_3BoxIiEE");
    CHECK_INT(measure->start_line, 200);
    const char *chain = chain_of(&scene, lambda);
    CHECK(strstr(chain, "lambda(int)") && strstr(chain, "chain.cc:303"));
    profile_fini(&scene.profile);
}

TEST(an_undeclared_function_starts_at_its_first_line_row_PPF_6)
{
    struct scene scene;
    scene_init(&scene, FIXTURE("assembled"));
    struct location_id location = add_address(&scene, symbol_address(FIXTURE("assembled"), "assembled") + 2);
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, location), "assembled assembled.S:104");
    const struct line *line = profile_lines(&scene.profile, profile_location(&scene.profile, location));
    CHECK_INT(profile_function(&scene.profile, line->function)->start_line, 102);
    profile_fini(&scene.profile);
}

TEST(a_function_inside_of_another_is_named)
{
    if (access(FIXTURE("nested"), R_OK) != 0) SKIP("the C compiler is not gcc");
    struct elf_file file = open_fixture(FIXTURE("nested"));
    struct elf_symbols symbols = symbols_of(&file);
    uint64_t address = 0;
    for (size_t i = 0; i < symbols.count; i++)
        if (strncmp(elf_symbol_name(&symbols, &symbols.items[i]), "nested.", 7) == 0)
            address = symbols.items[i].address;
    elf_symbols_fini(&symbols);
    elf_file_close(&file);
    CHECK(address != 0);
    struct scene scene;
    scene_init(&scene, FIXTURE("nested"));
    struct location_id location = add_address(&scene, address + 1);
    symbolize(&scene);
    CHECK(strncmp(chain_of(&scene, location), "nested nested.c:10", strlen("nested nested.c:10")) == 0);
    profile_fini(&scene.profile);
}

TEST(takes_shared_code_from_the_unit_that_the_linker_kept)
{
    if (access(FIXTURE("twice"), R_OK) != 0) SKIP("no C++ compiler");
    struct scene scene;
    scene_init(&scene, FIXTURE("twice"));
    uint64_t before = symbol_address(FIXTURE("twice"), "_Z6beforei"),
             other = symbol_address(FIXTURE("twice"), "_Z5otheri");
    uint64_t twice = symbol_address(FIXTURE("twice"), "_Z5twicei");
    CHECK(before < twice && twice < other);
    (void)add_address(&scene, before);
    (void)add_address(&scene, other);
    struct location_id location = add_address(&scene, twice);
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, location), "twice(int) first.h:105");
    const struct line *line = profile_lines(&scene.profile, profile_location(&scene.profile, location));
    CHECK_INT(profile_function(&scene.profile, line->function)->start_line, 103);
    profile_fini(&scene.profile);
}

TEST(a_function_is_called_by_the_name_that_its_file_exports)
{
    const char *path = FIXTURE("chain-dwarf5");
    struct scene scene;
    scene_init(&scene, path);
    struct location_id location = add_address(&scene, symbol_address(path, "spoken")); /* "__spoken" in the source */
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, location), "spoken chain.c:452");
    profile_fini(&scene.profile);
}

/* --- Separate debug files ----------------------------------------------------------------------------------------- */

static char debug_directory[PATH_MAX];

/* A directory in which DEBUG_FILE is to be found by its build id. */
static void make_debug_directory(const char *debug_file)
{
    char path[2 * PATH_MAX];
    struct elf_file file = open_fixture(debug_file);
    snprintf(debug_directory, sizeof(debug_directory), "%s/symbolize_XXXXXX", FIXTURES);
    CHECK(mkdtemp(debug_directory));
    snprintf(path, sizeof(path), "%s/.build-id", debug_directory);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof(path), "%s/.build-id/%.2s", debug_directory, file.build_id);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", debug_directory, file.build_id, file.build_id + 2);
    CHECK(symlink(debug_file, path) == 0);
    elf_file_close(&file);
}

static void remove_debug_directory(void)
{
    char command[PATH_MAX + 32];
    snprintf(command, sizeof(command), "rm -rf '%s'", debug_directory);
    CHECK(system(command) == 0);
}

static void use_debug_directory(struct scene *scene)
{
    scene->options.debug_directories[0] = debug_directory;
    scene->options.debug_directory_count = 1;
}

TEST(a_stripped_program_is_named_by_its_debug_file)
{
    make_debug_directory(FIXTURE("chain.debug"));
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-stripped"));
    use_debug_directory(&scene);
    struct location_id location = add_address(&scene, mark_address(FIXTURE("chain-stripped"), 0));
    symbolize(&scene);
    remove_debug_directory();
    CHECK_TEXT(chain_of(&scene, location), inlined_chain);
    CHECK_UINT(scene.result.by_boundary, 0);
    profile_fini(&scene.profile);
}

/* Reads the chain of a stripped program, with only SOURCES allowed. RET_CHAIN has room for 256 bytes. */
static struct symbolizer_result symbolize_stripped(unsigned sources, char *ret_chain)
{
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-stripped"));
    use_debug_directory(&scene);
    scene.options.sources = sources;
    struct location_id location = add_address(&scene, mark_address(FIXTURE("chain-stripped"), 0));
    symbolize(&scene);
    snprintf(ret_chain, 256, "%s", chain_of(&scene, location));
    profile_fini(&scene.profile);
    return scene.result;
}

TEST(only_the_sources_that_the_caller_allows_are_opened)
{
    char none[256], by_id[256], files[256], maps[256];
    make_debug_directory(FIXTURE("chain.debug"));
    struct symbolizer_result result = symbolize_stripped(SYMBOLS_NONE, none);
    (void)symbolize_stripped(SYMBOLS_DEBUG_FILES, by_id);
    (void)symbolize_stripped(SYMBOLS_FILES, files);
    (void)symbolize_stripped(SYMBOLS_PERF_MAPS | SYMBOLS_KERNEL, maps);
    remove_debug_directory();
    CHECK_TEXT(none, "");
    CHECK_UINT(result.locations, 1);
    CHECK_UINT(result.files_missing, 0); /* nobody looked */
    CHECK_TEXT(by_id, inlined_chain);
    CHECK(strcmp(files, inlined_chain) != 0); /* the debug file is in a debug directory only */
    CHECK_TEXT(maps, "");
}

/* A folder with the paths of a server, buildid/ID/debuginfo, as the URL file://… */
static void make_served_folder(void)
{
    char path[6 * PATH_MAX];
    struct elf_file file = open_fixture(FIXTURE("chain-stripped"));
    snprintf(debug_directory, sizeof(debug_directory), "%s/symbolize_XXXXXX", FIXTURES);
    CHECK(mkdtemp(debug_directory));
    snprintf(path, sizeof(path), "mkdir -p '%s/buildid/%s' && cp -L '%s' '%s/buildid/%s/debuginfo'", debug_directory,
             file.build_id, FIXTURE("chain.debug"), debug_directory, file.build_id);
    CHECK(system(path) == 0);
    elf_file_close(&file);
    snprintf(path, sizeof(path), "file://%s", debug_directory);
    CHECK(setenv("DEBUGINFOD_URLS", path, 1) == 0);
    snprintf(path, sizeof(path), "%s/cache", debug_directory);
    CHECK(setenv("DEBUGINFOD_CACHE_PATH", path, 1) == 0);
}

TEST(a_debug_file_comes_from_a_server_only_if_that_is_allowed)
{
    char allowed[256], forbidden[256], unset[256];
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW);
    if (!library) SKIP("libdebuginfod.so.1 is not installed");
    make_served_folder();
    (void)symbolize_stripped(SYMBOLS_FILES, forbidden);
    (void)symbolize_stripped(SYMBOLS_DEBUGINFOD, allowed);
    CHECK(unsetenv("DEBUGINFOD_URLS") == 0);
    (void)symbolize_stripped(SYMBOLS_FILES | SYMBOLS_DEBUGINFOD, unset);
    remove_debug_directory();
    CHECK_TEXT(allowed, inlined_chain);
    CHECK(strcmp(forbidden, inlined_chain) != 0);
    CHECK(strcmp(unset, inlined_chain) != 0);
}

TEST(a_debug_file_with_another_build_id_is_not_used)
{
    char path[2 * PATH_MAX];
    make_debug_directory(FIXTURE("chain.debug"));
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-stripped"));
    const char *build_id = profile_c_string(&scene.profile, scene.mapping.build_id);
    snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", debug_directory, build_id, build_id + 2);
    CHECK(unlink(path) == 0 && symlink(FIXTURE("chain-dwarf4"), path) == 0);
    use_debug_directory(&scene);
    (void)add_address(&scene, mark_address(FIXTURE("chain-stripped"), 0));
    symbolize(&scene);
    remove_debug_directory();
    CHECK_UINT(scene.result.by_boundary, 1);
    profile_fini(&scene.profile);
}

TEST(a_debug_file_names_a_program_that_is_gone)
{
    make_debug_directory(FIXTURE("chain.debug"));
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-stripped"));
    use_debug_directory(&scene);
    scene.mapping.file_name = profile_text(&scene.profile, "/no/such/program");
    struct location_id location = add_address(&scene, mark_address(FIXTURE("chain-stripped"), 0));
    symbolize(&scene);
    remove_debug_directory();
    CHECK_TEXT(chain_of(&scene, location), inlined_chain);
    CHECK_UINT(scene.result.files_missing, 0);
    profile_fini(&scene.profile);
}

static void copy_file(const char *from, const char *to, bool with_a_byte_more)
{
    struct buffer bytes;
    buffer_init(&bytes, 16 << 20);
    CHECK(file_read(from, &bytes, NULL) == STATUS_OK);
    if (with_a_byte_more) buffer_append_byte(&bytes, 0);
    CHECK(file_write(to, buffer_slice(&bytes), NULL) == STATUS_OK);
    buffer_fini(&bytes);
}

TEST(a_linked_debug_file_is_used_if_its_checksum_is_right)
{
    for (int is_altered = 0; is_altered < 2; is_altered++) {
        char program[PATH_MAX], debug_file[PATH_MAX];
        snprintf(debug_directory, sizeof(debug_directory), "%s/symbolize_XXXXXX", FIXTURES);
        CHECK(mkdtemp(debug_directory));
        snprintf(program, sizeof(program), "%.4000s/program", debug_directory);
        snprintf(debug_file, sizeof(debug_file), "%.4000s/.debug", debug_directory);
        CHECK(mkdir(debug_file, 0700) == 0);
        snprintf(debug_file, sizeof(debug_file), "%.4000s/.debug/chain-no-id.debug", debug_directory);
        copy_file(FIXTURE("chain-linked"), program, false);
        copy_file(FIXTURE("chain-no-id.debug"), debug_file, is_altered);
        struct scene scene;
        scene_init(&scene, program);
        struct location_id location = add_address(&scene, mark_address(FIXTURE("chain-linked"), 0));
        symbolize(&scene);
        remove_debug_directory();
        CHECK_UINT(scene.result.by_boundary, is_altered ? 1 : 0);
        if (!is_altered) CHECK_TEXT(chain_of(&scene, location), inlined_chain);
        profile_fini(&scene.profile);
    }
}

/* --- Without DWARF ------------------------------------------------------------------------------------------------ */

TEST(symbols_name_functions_where_there_is_no_dwarf)
{
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-symbols"));
    struct location_id inside = add_address(&scene, mark_address(FIXTURE("chain-symbols"), 0));
    struct location_id stub = add_address(&scene, symbol_address(FIXTURE("chain-symbols"), "puts@plt"));
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, inside), "outer");
    CHECK_TEXT(chain_of(&scene, stub), "puts@plt");
    const struct mapping *mapping = profile_mapping(&scene.profile, scene.mapping_id);
    CHECK(mapping->has_functions && !mapping->has_line_numbers && !mapping->has_inline_frames);
    profile_fini(&scene.profile);
}

TEST(a_stripped_function_is_named_by_where_it_begins)
{
    uint64_t start = symbol_address(FIXTURE("chain-dwarf5"), "outer");
    char expected[64];
    snprintf(expected, sizeof(expected), "chain-stripped+0x%" PRIx64, start);
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-stripped"));
    struct location_id first = add_address(&scene, start);
    struct location_id second = add_address(&scene, mark_address(FIXTURE("chain-stripped"), 0) + 1);
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, first), expected);
    CHECK_TEXT(chain_of(&scene, second), expected);
    CHECK_UINT(scene.result.by_boundary, 2);
    CHECK_UINT(scene.result.named, 0);
    CHECK(!profile_mapping(&scene.profile, scene.mapping_id)->has_functions);
    profile_fini(&scene.profile);
}

TEST(a_symbol_without_an_end_does_not_swallow_the_functions_after_it)
{
    struct scene scene; /* stripped; of its functions it exports only "endless", which is before the others */
    scene_init(&scene, FIXTURE("chain-exporting"));
    uint64_t endless = symbol_address(FIXTURE("chain-exporting"), "endless");
    uint64_t mark = mark_address(FIXTURE("chain-exporting"), 0);
    CHECK(endless < mark);
    struct location_id first = add_address(&scene, endless + 1), second = add_address(&scene, mark);
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, first), "endless");
    CHECK(strncmp(chain_of(&scene, second), "chain-exporting+0x", strlen("chain-exporting+0x")) == 0);
    profile_fini(&scene.profile);
}

TEST(the_vdso_is_named_out_of_our_own_process)
{
    uintptr_t address = getauxval(AT_SYSINFO_EHDR);
    if (address == 0) SKIP("this process has no vdso");
    struct elf_file vdso;
    CHECK(elf_file_open_memory(&vdso, slice_of((const void *)address, 4096), NULL) == STATUS_OK);
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-pie"));
    scene.mapping.file_name = profile_text(&scene.profile, "[vdso]");
    scene.mapping.build_id = profile_text(&scene.profile, vdso.build_id);
    scene.mapping.start = LOAD_ADDRESS;
    scene.mapping.file_offset = 0;
    elf_file_close(&vdso);
    const struct elf_section *code = NULL;
    CHECK(elf_file_open_memory(&vdso, slice_of((const void *)address, 8192), NULL) == STATUS_OK);
    code = elf_file_section(&vdso, ".text");
    if (!code) {
        elf_file_close(&vdso);
        profile_fini(&scene.profile);
        SKIP("the vdso has no sections");
    }
    bool any = false;
    for (uint64_t i = 0; i < code->size; i += 16) (void)add_address(&scene, code->address + i);
    symbolize(&scene);
    for (uint32_t i = 1; i < scene.profile.locations.count; i++)
        any |= strstr(chain_of(&scene, (struct location_id){i}), "clock_gettime") != NULL;
    CHECK(any);
    elf_file_close(&vdso);
    profile_fini(&scene.profile);
}

/* --- What is not named -------------------------------------------------------------------------------------------- */

TEST(a_file_with_another_build_id_is_not_used)
{
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-dwarf5"));
    scene.mapping.build_id = profile_text(&scene.profile, "0123456789abcdef");
    struct location_id location = add_address(&scene, mark_address(FIXTURE("chain-dwarf5"), 0));
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, location), "");
    CHECK_UINT(scene.result.files_changed, 1);
    CHECK_UINT(scene.result.named, 0);
    profile_fini(&scene.profile);
}

/* The processes of a build load the same libraries; reading them once for all is most of the time of the writing. */
TEST(a_module_is_read_once_for_several_profiles)
{
    char copy[] = "/tmp/offbeat-test-XXXXXX";
    struct buffer bytes;
    struct symbol_module_cache *modules = symbol_module_cache_new();
    buffer_init(&bytes, 1 << 24);
    CHECK(modules && mkdtemp(copy));
    char path[sizeof(copy) + 8];
    (void)snprintf(path, sizeof(path), "%s/chain", copy);
    CHECK(file_read(FIXTURE("chain-dwarf5"), &bytes, NULL) == STATUS_OK);
    CHECK(file_write(path, buffer_slice(&bytes), NULL) == STATUS_OK);
    for (int i = 0; i < 2; i++) {
        struct scene scene;
        scene_init(&scene, FIXTURE("chain-dwarf5"));
        scene.mapping.file_name = profile_text(&scene.profile, path);
        scene.options.modules = modules;
        struct location_id id = add_address(&scene, mark_address(FIXTURE("chain-dwarf5"), 0));
        symbolize(&scene);
        CHECK_TEXT(chain_of(&scene, id), inlined_chain);
        profile_fini(&scene.profile);
        (void)unlink(path); /* the second profile finds no file */
    }
    symbol_module_cache_free(modules);
    buffer_fini(&bytes);
    (void)rmdir(copy);
}

TEST(uses_a_file_without_build_id_only_if_paths_are_trusted)
{
    for (int trusts = 0; trusts < 2; trusts++) {
        struct scene scene;
        scene_init(&scene, FIXTURE("chain-dwarf5"));
        scene.options.trusts_paths = trusts == 1;
        scene.mapping.build_id = (struct string_id){0};
        struct location_id location = add_address(&scene, mark_address(FIXTURE("chain-dwarf5"), 0));
        symbolize(&scene);
        CHECK(trusts == (chain_of(&scene, location)[0] != '\0'));
        CHECK_UINT(scene.result.files_unproven, trusts ? 0 : 1);
        profile_fini(&scene.profile);
    }
}

TEST(files_that_are_gone_are_counted_and_what_never_was_a_file_is_not)
{
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-dwarf5"));
    scene.mapping.file_name = profile_text(&scene.profile, "/no/such/program");
    (void)add_address(&scene, 0x401180);
    scene.mapping_id.index = 0;
    scene.mapping.file_name = profile_text(&scene.profile, "[heap]");
    (void)add_address(&scene, 0x401180);
    scene.mapping_id.index = 0;
    scene.mapping.file_name = profile_text(&scene.profile, "");
    (void)add_address(&scene, 0x401180);
    symbolize(&scene);
    CHECK_UINT(scene.result.files_missing, 1);
    CHECK_UINT(scene.result.locations, 3);
    profile_fini(&scene.profile);
}

TEST(a_location_that_has_lines_keeps_them)
{
    struct scene scene;
    scene_init(&scene, FIXTURE("chain-dwarf5"));
    scene.mapping_id = profile_add_mapping(&scene.profile, &scene.mapping);
    struct function function = {.name = profile_text(&scene.profile, "known before")};
    struct line line = {.function = profile_add_function(&scene.profile, &function)};
    uint64_t address = mark_address(FIXTURE("chain-dwarf5"), 0) + scene.distance;
    struct location location = {.mapping = scene.mapping_id, .address = address};
    struct location_id id = profile_add_location(&scene.profile, &location, &line, 1);
    symbolize(&scene);
    CHECK_TEXT(chain_of(&scene, id), "known before");
    CHECK_UINT(scene.result.locations, 0);
    profile_fini(&scene.profile);
}

TEST(a_program_with_broken_debug_information_is_survived)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/symbolize_%d.tmp", FIXTURES, (int)getpid());
    struct buffer bytes;
    buffer_init(&bytes, 16 << 20);
    CHECK(file_read(FIXTURE("chain-dwarf5"), &bytes, NULL) == STATUS_OK);
    uint64_t random = 42;
    for (int round = 0; round < 150; round++) {
        struct scene scene;
        scene_init(&scene, FIXTURE("chain-dwarf5"));
        struct buffer broken;
        buffer_init(&broken, 16 << 20);
        buffer_append(&broken, bytes.data, round % 3 == 0 ? bytes.size - (size_t)round * 37 : bytes.size);
        for (int i = 0; i < 40; i++) { /* after the code: DWARF, symbols, section headers */
            random = random * 6364136223846793005u + 1442695040888963407u;
            broken.data[12288 + (random >> 33) % (broken.size - 12288)] = (uint8_t)(random >> 24);
        }
        CHECK(file_write(path, buffer_slice(&broken), NULL) == STATUS_OK);
        scene.mapping.file_name = profile_text(&scene.profile, path);
        for (uint64_t address = 0x401000; address < 0x401200; address += 3) (void)add_address(&scene, address);
        symbolize(&scene);
        profile_fini(&scene.profile);
        buffer_fini(&broken);
    }
    unlink(path);
    buffer_fini(&bytes);
}

/* Cuts the section shorter and shorter: a sanitizer sees each byte too many that is read. */
static void shorten_section(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/symbolize_%d.tmp", FIXTURES, (int)getpid());
    struct buffer bytes;
    buffer_init(&bytes, 16 << 20);
    CHECK(file_read(FIXTURE("chain-dwarf5"), &bytes, NULL) == STATUS_OK);
    Elf64_Ehdr header;
    Elf64_Shdr texts = {0};
    uint8_t *texts_header = NULL;
    memcpy(&header, bytes.data, sizeof(header));
    struct elf_file file = open_fixture(FIXTURE("chain-dwarf5"));
    for (size_t i = 0; i < file.section_count; i++)
        if (strcmp(file.sections[i].name, name) == 0) texts_header = bytes.data + header.e_shoff + i * sizeof(texts);
    elf_file_close(&file);
    CHECK(texts_header);
    memcpy(&texts, texts_header, sizeof(texts));
    for (size_t size = texts.sh_size; size > 0; size -= size < 3 ? 1 : 2) {
        texts.sh_size = size;
        memcpy(texts_header, &texts, sizeof(texts));
        CHECK(file_write(path, buffer_slice(&bytes), NULL) == STATUS_OK);
        struct scene scene;
        scene_init(&scene, path);
        for (uint64_t address = 0x401020; address < 0x401200; address += 4) (void)add_address(&scene, address);
        symbolize(&scene);
        profile_fini(&scene.profile);
    }
    unlink(path);
    buffer_fini(&bytes);
}

TEST(names_that_run_past_the_end_of_their_section_are_not_read)
{
    shorten_section(".debug_str");
    shorten_section(".debug_line_str");
}

/* --- Compared with other tools ------------------------------------------------------------------------------------ */

/* Reads one address's answer of `addr2line -a -f -i`: pairs of a function and a place, until the next address. */
static void read_judgement(FILE *answers, char *line, size_t line_size, char *ret_chain)
{
    static char name[8192];
    size_t size = 0;
    ret_chain[0] = '\0';
    while (fgets(line, (int)line_size, answers) && strncmp(line, "0x", 2) != 0) {
        line[strcspn(line, "\n")] = '\0';
        snprintf(name, sizeof(name), "%.8000s", line);
        if (!fgets(line, (int)line_size, answers)) break;
        line[strcspn(line, "\n")] = '\0';
        char *note = strstr(line, " (discriminator");
        if (note) *note = '\0';
        if (strcmp(name, "??") == 0) continue;
        bool is_known = line[0] != '?' && !strchr(base_name(line), '?');
        size += (size_t)snprintf(ret_chain + size, CHAIN_MAX - size, "%s%s %s", size ? " <- " : "", name,
                                 is_known ? base_name(line) : "?:0");
        CHECK(size < CHAIN_MAX);
    }
}

/* Leaves of a chain its line numbers: addr2line has short names for local functions of C++, prints the symbol's name
 * for small inlined ones, and the unit's file where a function begins. */
static const char *lines_of(const char *chain, char *ret_lines)
{
    char *end = ret_lines;
    *end = '\0';
    for (const char *frame = chain; frame;) {
        const char *next = strstr(frame, " <- ");
        const char *line = next ? next : frame + strlen(frame);
        while (line > frame && line[-1] != ':') line--;
        end += sprintf(end, ":%d", atoi(line));
        frame = next ? next + 4 : NULL;
    }
    return ret_lines;
}

/* Compares every address of the program's .text; if IS_CPP, only depths and lines. */
static void compare_with_addr2line(const char *path, bool is_cpp)
{
    static char judgement[CHAIN_MAX], our_lines[CHAIN_MAX], their_lines[CHAIN_MAX], line[8192];
    char command[3 * PATH_MAX], list[PATH_MAX];
    struct elf_file file = open_fixture(path);
    const struct elf_section *text = elf_file_section(&file, ".text");
    CHECK(text && text->size <= ADDRESSES_MAX);
    struct elf_symbols symbols = symbols_of(&file);
    struct scene scene;
    scene_init(&scene, path);
    snprintf(list, sizeof(list), "%s/symbolize_%d.list", FIXTURES, (int)getpid());
    FILE *addresses = fopen(list, "w");
    CHECK(addresses);
    for (uint64_t i = 0; i < text->size; i++) {
        fprintf(addresses, "0x%" PRIx64 "\n", text->address + i);
        (void)add_address(&scene, text->address + i);
    }
    CHECK(fclose(addresses) == 0);
    symbolize(&scene);
    snprintf(command, sizeof(command), "addr2line -C -a -f -i -e '%s' <'%s'", path, list);
    FILE *answers = popen(command, "r");
    CHECK(answers && fgets(line, sizeof(line), answers));
    unsigned compared = 0;
    for (uint32_t i = 1; i <= text->size; i++) {
        read_judgement(answers, line, sizeof(line), judgement);
        const char *chain = chain_of(&scene, (struct location_id){i});
        /* It also guesses, for padding and for files without DWARF. We have a better name for __spoken. */
        bool is_code = elf_symbols_find(&symbols, text->address + i - 1);
        bool is_guess = judgement[0] == '\0' || strstr(judgement, ":0") || strstr(judgement, "__spoken");
        if (!is_code || is_guess) continue;
        compared++;
        bool is_equal = is_cpp ? strcmp(lines_of(chain, our_lines), lines_of(judgement, their_lines)) == 0
                               : strcmp(chain, judgement) == 0;
        if (!is_equal) TEST_FAIL("0x%" PRIx64 ": \"%s\", addr2line: \"%s\"", text->address + i - 1, chain, judgement);
    }
    CHECK(compared >= 40);
    pclose(answers);
    unlink(list);
    elf_symbols_fini(&symbols);
    elf_file_close(&file);
    profile_fini(&scene.profile);
}

TEST(every_address_is_what_addr2line_says)
{
    if (system("command -v addr2line >/dev/null") != 0) SKIP("no addr2line");
    compare_with_addr2line(FIXTURE("chain-dwarf5"), false);
    compare_with_addr2line(FIXTURE("chain-dwarf4"), false);
    compare_with_addr2line(FIXTURE("chain-sections"), false);
    if (access(FIXTURE("chain-c++"), R_OK) != 0 || access(FIXTURE("containers"), R_OK) != 0) SKIP("no C++ compiler");
    compare_with_addr2line(FIXTURE("chain-c++"), true);
    compare_with_addr2line(FIXTURE("containers"), true);
}

/* One file of symbols.llvm.json: [[address, [[function, file, line, column], …]], …]. */
static void compare_with_answers(const char *path, struct json_reader *reader)
{
    static char expected[CHAIN_MAX];
    struct scene scene;
    scene_init(&scene, path);
    json_array_begin(reader);
    while (json_array_next(reader)) {
        json_array_begin(reader);
        CHECK(json_array_next(reader));
        struct slice address = json_string(reader); /* a quote ends it, for strtoull as well */
        struct location_id location = add_address(&scene, strtoull((const char *)address.data, NULL, 16));
        size_t size = 0;
        CHECK(json_array_next(reader));
        json_array_begin(reader);
        while (json_array_next(reader)) {
            json_array_begin(reader);
            CHECK(json_array_next(reader));
            struct slice function = json_string(reader);
            size += (size_t)snprintf(expected + size, sizeof(expected) - size, "%s%.*s", size ? " <- " : "",
                                     SLICE_ARGUMENTS(function));
            CHECK(json_array_next(reader));
            struct slice file = json_string(reader);
            CHECK(json_array_next(reader));
            uint64_t line = json_u64(reader);
            if (file.size > 0)
                size += (size_t)snprintf(expected + size, sizeof(expected) - size, " %.*s:%" PRIu64,
                                         SLICE_ARGUMENTS(file), line);
            CHECK(json_array_next(reader));
            json_skip(reader);
            CHECK(!json_array_next(reader));
        }
        CHECK(!json_array_next(reader));
        symbolize(&scene);
        CHECK_TEXT(chain_of(&scene, location), expected);
    }
    profile_fini(&scene.profile);
}

/* FMT-9: as sentry-cli names the file. A stored profile finds the file by that id. */
TEST(a_file_without_build_id_has_an_id_of_its_code_FMT_9)
{
    static const struct debug_sources none = {0};
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s", real_path("elf/no-buildid"));
    struct profile profile;
    profile_init(&profile);
    struct mapping mapping = {.start = 0x400000, .limit = 0x500000, .file_name = profile_text(&profile, path)};
    (void)profile_add_mapping(&profile, &mapping);
    contents_ids_give(&profile);
    CHECK_TEXT(profile_c_string(&profile, profile.mappings.items[1].debug_id), "ec8e91d9-a70f-c4dc-311a-55d5db133833");
    profile_fini(&profile);
    struct symbol_module module;
    CHECK_UINT(symbol_module_open(&module, path, "d9918eec0fa7dcc4311a55d5db133833", &none), SYMBOL_MODULE_OPEN);
    symbol_module_close(&module);
    CHECK_UINT(symbol_module_open(&module, path, "d9918eec0fa7dcc4311a55d5db133834", &none), SYMBOL_MODULE_CHANGED);
    symbol_module_close(&module);
}

TEST(files_of_other_builds_are_what_llvm_symbolizer_says)
{
    struct buffer bytes;
    buffer_init(&bytes, 1 << 20);
    CHECK(file_read(real_path("elf/symbols.llvm.json"), &bytes, NULL) == STATUS_OK);
    struct json_reader reader;
    json_reader_init(&reader, buffer_slice(&bytes));
    unsigned files = 0;
    json_object_begin(&reader);
    for (struct slice name; json_object_next(&reader, &name); files++) {
        char path[NAME_MAX];
        /* The answers for split.debug are for the program that it belongs to, too: that is what is asked here. */
        if (slice_equals_text(name, "split.debug")) name = slice_of_text("split");
        snprintf(path, sizeof(path), "elf/%.*s", SLICE_ARGUMENTS(name));
        compare_with_answers(real_path(path), &reader);
    }
    CHECK(json_reader_finish(&reader, NULL) == STATUS_OK);
    CHECK(files >= 5);
    json_reader_fini(&reader);
    buffer_fini(&bytes);
}

/* --- Demangling --------------------------------------------------------------------------------------------------- */

static const char *demangled(const char *mangled)
{
    static struct buffer name;
    buffer_fini(&name);
    buffer_init(&name, 1 << 20);
    return demangle(mangled, &name) ? (const char *)name.data : mangled;
}

TEST(names_of_cpp_and_rust_are_demangled_and_others_left_alone)
{
    CHECK_TEXT(demangled("_ZNSt6vectorIiSaIiEE9push_backERKi"),
               "std::vector<int, std::allocator<int> >::push_back(int const&)");
    CHECK_TEXT(demangled("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
    CHECK_TEXT(demangled("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
    CHECK_TEXT(demangled("main"), "main");
    CHECK_TEXT(demangled("_start"), "_start");
    CHECK_TEXT(demangled("_Zbroken"), "_Zbroken");
    CHECK_TEXT(demangled("_D3std5stdio8readLineFZAya"), "std.stdio.readLine()");
    CHECK_TEXT(demangled("__ZN3foo3barEv"), "foo::bar()");
    CHECK_TEXT(demangled("_ZN3foo3barEv@plt"), "foo::bar()@plt");
    CHECK_TEXT(demangled("_ZN3foo3barEv+0x1f"), "foo::bar()+0x1f");
    CHECK_TEXT(demangled("_ZN3foo3barEv (inlined)"), "foo::bar() (inlined)");
    CHECK_TEXT(demangled("_ZN3foo3barEv.cold"), "foo::bar() [clone .cold]");
}

TEST(hashes_of_rust_are_cut_and_other_names_left_alone)
{
    struct buffer name;
    buffer_init(&name, 1 << 20);
    CHECK(demangle_hashed(slice_of_text("_$LT$T$u20$as$u20$a..B$GT$::f::h459eee3a05af1eb1"), &name));
    CHECK_TEXT((const char *)name.data, "<T as a::B>::f");
    CHECK(demangle_hashed(slice_of_text("<T as a::B>::f::h459eee3a05af1eb1"), &name));
    CHECK_TEXT((const char *)name.data, "<T as a::B>::f");
    CHECK(demangle_hashed(slice_of_text("$::::h459eee3a05af1eb1"), &name));
    CHECK_TEXT((const char *)name.data, "$::");
    CHECK(!demangle_hashed(slice_of_text("main::h459eee3a05af1ebg"), &name));
    CHECK(!demangle_hashed(slice_of_text("::h459eee3a05af1eb1"), &name));
    buffer_fini(&name);
}

TEST(a_name_that_would_fill_the_memory_stays_mangled)
{
    char name[1024] = "_Z1fSt4pairIiiE"; /* S_ is std::pair here, S0_ this one */
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (size_t i = 0; i < 30; i++) { /* each parameter is a pair of the one before: 2^30 ints */
        char part[32];
        snprintf(part, sizeof(part), "S_IS%c_S%c_E", digits[i], digits[i]);
        strcat(name, part);
    }
    CHECK_TEXT(demangled(name), name);
    strcpy(name, "_D1fFS1aZ"); /* D: a name that refers to itself often, and one that nests deeply */
    for (size_t i = 0; i < 100; i++) strcat(name, "Qb");
    CHECK_TEXT(demangled(name), name);
    static char deep[1 << 20];
    memset(deep, 'A', sizeof(deep) - 1);
    memcpy(deep, "_D1fF", 5);
    CHECK_TEXT(demangled(deep), deep);
}

TEST_MAIN()
