/* Views on ELF files: what is in them, and whether a library can be preloaded into them. Untrusted files may be cut
 * short or broken anywhere.  SPDX-License-Identifier: MIT */
#include "real.h"
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_reader.h"
#include "binary/elf_file.h"
#include "binary/elf_symbols.h"
#include "binary/preload_check.h"

#define FIXTURE(name) FIXTURES "/" name

static struct elf_file open_fixture(const char *path)
{
    struct elf_file file;
    struct error error = {0};
    if (elf_file_open(&file, path, &error) != STATUS_OK) TEST_FAIL("%s: %s", path, error.message);
    return file;
}

static struct buffer read_bytes(const char *path)
{
    struct buffer bytes;
    buffer_init(&bytes, 64 << 20);
    CHECK(file_read(path, &bytes, NULL) == STATUS_OK);
    return bytes;
}

/* A file of this test's own, with these bytes and permissions. */
static const char *temporary_file(const void *bytes, size_t size, mode_t mode)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/elf_file_%d.tmp", FIXTURES, (int)getpid());
    unlink(path);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    CHECK(descriptor >= 0 && write(descriptor, bytes, size) == (ssize_t)size);
    CHECK(fchmod(descriptor, mode) == 0);
    close(descriptor);
    return path;
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

static void check_build_id(const char *name, struct slice expected)
{
    char path[NAME_MAX + 8];
    snprintf(path, sizeof(path), "elf/%s", name);
    struct elf_file file = open_fixture(real_path(path));
    bool is_right = slice_equals_text(expected, file.build_id);
    if (!is_right) TEST_FAIL("%s: \"%s\", expected \"%.*s\"", name, file.build_id, SLICE_ARGUMENTS(expected));
    elf_file_close(&file);
}

TEST(build_ids_are_those_that_readelf_prints)
{
    struct buffer bytes = read_bytes(real_path("elf/ids.json"));
    struct json_reader reader;
    json_reader_init(&reader, buffer_slice(&bytes));
    unsigned files = 0;
    json_object_begin(&reader);
    for (struct slice name, key; json_object_next(&reader, &name); files++) {
        char text[NAME_MAX];
        snprintf(text, sizeof(text), "%.*s", SLICE_ARGUMENTS(name));
        json_object_begin(&reader);
        while (json_object_next(&reader, &key)) {
            if (!slice_equals_text(key, "readelf_build_id"))
                json_skip(&reader);
            else if (json_null(&reader))
                check_build_id(text, slice_of_text(""));
            else
                check_build_id(text, json_string(&reader));
        }
    }
    CHECK(json_reader_finish(&reader, NULL) == STATUS_OK);
    CHECK_UINT(files, 8);
    json_reader_fini(&reader);
    buffer_fini(&bytes);
}

TEST(a_place_in_the_file_has_the_address_that_its_segment_gives_it)
{
    struct elf_file file = open_fixture(FIXTURE("chain-dwarf5"));
    const struct elf_section *text = elf_file_section(&file, ".text");
    uint64_t address = 0;
    CHECK(text && elf_file_address_of_offset(&file, text->file_offset + 1, &address));
    CHECK_UINT(address, text->address + 1);
    CHECK_UINT(text->address - text->file_offset, 0x400000); /* a program that is not position-independent is there */
    CHECK(!elf_file_address_of_offset(&file, file.size + 4096, &address));
    CHECK(!elf_file_section(&file, ".no-such-section"));
    elf_file_close(&file);
}

TEST(a_place_that_two_segments_load_is_that_of_the_code)
{
    struct buffer bytes = read_bytes(FIXTURE("chain-dwarf5"));
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    memcpy(&header, bytes.data, sizeof(header));
    bool is_first = true;
    for (unsigned i = 0; i < header.e_phnum; i++) { /* makes the first one cover all of the file, at another address */
        uint8_t *place = bytes.data + header.e_phoff + i * sizeof(segment);
        memcpy(&segment, place, sizeof(segment));
        if (segment.p_type != PT_LOAD || !is_first) continue;
        is_first = false;
        segment.p_vaddr = 0x10000;
        segment.p_filesz = segment.p_memsz = bytes.size;
        memcpy(place, &segment, sizeof(segment));
    }
    struct elf_file file;
    uint64_t address = 0;
    CHECK(elf_file_open_memory(&file, buffer_slice(&bytes), NULL) == STATUS_OK);
    CHECK(elf_file_address_of_offset(&file, 0x1180, &address));
    CHECK_UINT(address, 0x401180);
    CHECK(elf_file_address_of_offset(&file, 0x180, &address));
    CHECK_UINT(address, 0x10180);
    elf_file_close(&file);
    buffer_fini(&bytes);
}

TEST(what_is_no_regular_file_or_no_elf_file_is_distinguished)
{
    struct elf_file file;
    struct error error;
    CHECK(elf_file_open(&file, "/no/such/file", &error) == STATUS_NOT_FOUND);
    CHECK(elf_file_open(&file, "/dev/zero", &error) == STATUS_NOT_THIS_FORMAT);
    CHECK(elf_file_open(&file, FIXTURES, &error) == STATUS_NOT_THIS_FORMAT);
    CHECK(elf_file_open(&file, temporary_file("", 0, 0600), &error) == STATUS_NOT_THIS_FORMAT);
    const char *path = temporary_file("\177ELF\1\1\1 and so on", 18, 0600);
    CHECK(elf_file_open(&file, path, &error) == STATUS_UNSUPPORTED);
    unlink(path);
}

/* Whatever is asked of FILE, it must not crash. */
static void ask_everything(struct slice bytes)
{
    struct elf_file file;
    if (elf_file_open_memory(&file, bytes, NULL) != STATUS_OK) return;
    struct elf_symbols symbols;
    elf_symbols_init(&symbols);
    (void)elf_symbols_add(&symbols, &file);
    (void)elf_symbols_add_plt(&symbols, &file);
    elf_symbols_finish(&symbols);
    (void)elf_symbols_find(&symbols, 0x401190);
    uint64_t address;
    (void)elf_file_address_of_offset(&file, 0x1190, &address);
    char interpreter[64];
    elf_file_copy_interpreter(&file, interpreter, sizeof(interpreter));
    elf_symbols_fini(&symbols);
    elf_file_close(&file);
}

TEST(a_file_that_is_cut_short_anywhere_is_read_as_far_as_it_goes)
{
    struct buffer bytes = read_bytes(FIXTURE("chain-dwarf5"));
    for (size_t size = 0; size < bytes.size; size += size < 1024 ? 1 : 61) {
        uint8_t *copy = malloc(size ? size : 1); /* exact size: a sanitizer sees each read past the end */
        CHECK(copy);
        memcpy(copy, bytes.data, size);
        ask_everything(slice_of(copy, size));
        free(copy);
    }
    buffer_fini(&bytes);
}

TEST(a_file_with_any_byte_of_its_tables_broken_is_survived)
{
    struct buffer bytes = read_bytes(FIXTURE("chain-dwarf5"));
    size_t tables = bytes.size - 40 * sizeof(Elf64_Shdr); /* section headers are at the end */
    for (size_t i = 0; i < bytes.size; i += i == 1200 ? tables - 1200 : 1) {
        uint8_t original = bytes.data[i];
        bytes.data[i] ^= 0xff;
        ask_everything(buffer_slice(&bytes));
        bytes.data[i] = original;
    }
    buffer_fini(&bytes);
}

TEST(a_file_that_shrinks_while_it_is_open_gives_an_error)
{
    struct buffer bytes = read_bytes(FIXTURE("chain-dwarf5")), content;
    const char *path = temporary_file(bytes.data, bytes.size, 0700);
    struct elf_file file = open_fixture(path);
    CHECK(truncate(path, 4096) == 0);
    buffer_init(&content, 1 << 20);
    struct error error;
    const struct elf_section *symbols = elf_file_section(&file, ".symtab");
    CHECK(symbols && elf_file_read_section(&file, symbols, &content, &error) == STATUS_IO);
    elf_file_close(&file);
    buffer_fini(&content);
    buffer_fini(&bytes);
    unlink(path);
}

/* --- Symbols ------------------------------------------------------------------------------------------------------ */

static struct elf_symbols symbols_of(const struct elf_file *file)
{
    struct elf_symbols symbols;
    elf_symbols_init(&symbols);
    CHECK(elf_symbols_add(&symbols, file) && elf_symbols_add_plt(&symbols, file));
    elf_symbols_finish(&symbols);
    return symbols;
}

static const struct elf_symbol *symbol_called(const struct elf_symbols *symbols, const char *name)
{
    for (size_t i = 0; i < symbols->count; i++)
        if (strcmp(elf_symbol_name(symbols, &symbols->items[i]), name) == 0) return &symbols->items[i];
    return NULL;
}

TEST(of_several_names_for_one_function_the_one_that_perf_shows_is_taken)
{
    struct elf_file file = open_fixture(FIXTURE("chain-dwarf5"));
    struct elf_symbols symbols = symbols_of(&file);
    CHECK(symbol_called(&symbols, "spoken"));
    CHECK(!symbol_called(&symbols, "__spoken"));                 /* underscores */
    CHECK(!symbol_called(&symbols, "spoken_at_greater_length")); /* weak */
    elf_symbols_fini(&symbols);
    elf_file_close(&file);
}

TEST(versions_are_no_part_of_a_name)
{
    struct elf_file file = open_fixture(FIXTURE("versions.so"));
    struct elf_symbols symbols = symbols_of(&file);
    unsigned answers = 0;
    for (size_t i = 0; i < symbols.count; i++)
        answers += strcmp(elf_symbol_name(&symbols, &symbols.items[i]), "answer") == 0;
    CHECK_UINT(answers, 2);
    elf_symbols_fini(&symbols);
    elf_file_close(&file);
}

TEST(an_address_after_the_end_belongs_to_no_function)
{
    struct elf_file file = open_fixture(FIXTURE("chain-dwarf5"));
    struct elf_symbols symbols = symbols_of(&file);
    const struct elf_symbol *outer = symbol_called(&symbols, "outer"), *endless = symbol_called(&symbols, "endless");
    CHECK(outer && outer->is_sized);
    CHECK(elf_symbols_find(&symbols, outer->address) == outer);
    CHECK(elf_symbols_find(&symbols, outer->end - 1) == outer);
    CHECK(elf_symbols_find(&symbols, outer->end) != outer);
    CHECK(!elf_symbols_find(&symbols, 0));
    CHECK(!elf_symbols_find(&symbols, UINT64_MAX));
    CHECK(endless && !endless->is_sized); /* it ends where the next one begins */
    CHECK_UINT(endless->end, endless[1].address);
    elf_symbols_fini(&symbols);
    elf_file_close(&file);
}

TEST(stubs_for_functions_of_other_files_are_named_after_them)
{
    struct elf_file file = open_fixture(FIXTURE("chain-stripped"));
    struct elf_symbols symbols = symbols_of(&file);
    const struct elf_section *stubs = elf_file_section(&file, ".plt");
    const struct elf_symbol *stub = symbol_called(&symbols, "puts@plt");
    CHECK(stubs && stub);
    CHECK_UINT(stub->address, stubs->address + 16);
    CHECK(elf_symbols_find(&symbols, stub->address + 6) == stub);
    elf_symbols_fini(&symbols);
    elf_file_close(&file);
}

/* --- Preloading --------------------------------------------------------------------------------------------------- */

static char interpreter[PRELOAD_INTERPRETER_SIZE];

static enum preload_answer answer_for(const char *path)
{
    enum preload_answer answer;
    struct error error = {0};
    if (preload_check(path, &answer, interpreter, &error) != STATUS_OK) TEST_FAIL("%s: %s", path, error.message);
    return answer;
}

TEST(a_dynamically_linked_program_can_be_preloaded_and_a_static_one_cannot)
{
    CHECK_INT(answer_for(FIXTURE("chain-dwarf5")), PRELOAD_POSSIBLE);
    CHECK_TEXT(interpreter, "/lib64/ld-linux-x86-64.so.2");
    CHECK_INT(answer_for(FIXTURE("chain-pie")), PRELOAD_POSSIBLE);
    CHECK_INT(answer_for(FIXTURE("chain-static")), PRELOAD_STATIC);
    CHECK_TEXT(interpreter, "");
}

TEST(reports_the_interpreter_of_a_script)
{
    static const char with_argument[] = "#! /usr/bin/env\tpython3\nprint()\n", bare[] = "#!/bin/sh", none[] = "#!\n",
                      text[] = "echo hello\n";
    CHECK_INT(answer_for(temporary_file(with_argument, strlen(with_argument), 0700)), PRELOAD_SCRIPT);
    CHECK_TEXT(interpreter, "/usr/bin/env");
    CHECK_INT(answer_for(temporary_file(bare, strlen(bare), 0700)), PRELOAD_SCRIPT);
    CHECK_TEXT(interpreter, "/bin/sh");
    CHECK_INT(answer_for(temporary_file(none, strlen(none), 0700)), PRELOAD_NOT_ELF);
    const char *path = temporary_file(text, strlen(text), 0700);
    CHECK_INT(answer_for(path), PRELOAD_NOT_ELF);
    unlink(path);
}

TEST(programs_for_another_machine_or_another_libc_cannot_be_preloaded)
{
    struct buffer bytes = read_bytes(FIXTURE("chain-dwarf5"));
    Elf64_Ehdr header;
    memcpy(&header, bytes.data, sizeof(header));
    header.e_machine = EM_RISCV;
    memcpy(bytes.data, &header, sizeof(header));
    CHECK_INT(answer_for(temporary_file(bytes.data, bytes.size, 0700)), PRELOAD_WRONG_ARCHITECTURE);
    header.e_ident[EI_CLASS] = ELFCLASS32;
    memcpy(bytes.data, &header, sizeof(header));
    CHECK_INT(answer_for(temporary_file(bytes.data, bytes.size, 0700)), PRELOAD_WRONG_ARCHITECTURE);
    buffer_fini(&bytes);

    bytes = read_bytes(FIXTURE("chain-dwarf5"));
    uint8_t *path = memmem(bytes.data, bytes.size, "/ld-linux-x86-64.so.2", 21);
    CHECK(path);
    memcpy(path, "/ld-musl-x86_64.so.1\0", 21);
    const char *file = temporary_file(bytes.data, bytes.size, 0700);
    CHECK_INT(answer_for(file), PRELOAD_OTHER_LIBC);
    CHECK_TEXT(interpreter, "/lib64/ld-musl-x86_64.so.1");
    unlink(file);
    buffer_fini(&bytes);
}

TEST(a_program_that_gains_rights_when_it_starts_cannot_be_preloaded)
{
    struct buffer bytes = read_bytes(FIXTURE("chain-dwarf5"));
    const char *path = temporary_file(bytes.data, bytes.size, 04755);
    buffer_fini(&bytes);
    CHECK_INT(answer_for(path), PRELOAD_POSSIBLE); /* it belongs to who starts it */
    bool is_given_away = chown(path, getuid() + 1, getgid() + 1) == 0;
    if (is_given_away) {
        CHECK(chmod(path, 04755) == 0);
        CHECK_INT(answer_for(path), PRELOAD_PRIVILEGED);
        CHECK(chmod(path, 02755) == 0);
        CHECK_INT(answer_for(path), PRELOAD_PRIVILEGED);
        CHECK(chmod(path, 0755) == 0);
        CHECK_INT(answer_for(path), PRELOAD_POSSIBLE);
    }
    unlink(path);
    if (!is_given_away) SKIP("only root can give a file to somebody else");
}

TEST(a_program_that_is_missing_is_an_error_that_says_so)
{
    enum preload_answer answer;
    struct error error = {0};
    CHECK(preload_check("/no/such/program", &answer, interpreter, &error) == STATUS_NOT_FOUND);
    CHECK(strstr(error.message, "/no/such/program"));
}

TEST_MAIN()
