/* Whatever an ELF file says of itself, reading it stays inside of its bytes.  SPDX-License-Identifier: MIT */
#include "binary/elf_file.h"
#include "binary/go_functions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SECTION_BYTES_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {".text", ".eh_frame", ".symtab", ".strtab", ".dynsym", ".gnu_debuglink"};
    struct elf_file file;
    if (elf_file_open_memory(&file, slice_of(data, size), NULL) != STATUS_OK) return 0;

    char interpreter[256];
    uint64_t address;
    elf_file_copy_interpreter(&file, interpreter, sizeof(interpreter));
    for (uint64_t offset = 0; offset < 4; offset++) (void)elf_file_address_of_offset(&file, offset << 12, &address);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct elf_section *section = elf_file_section(&file, names[i]);
        struct buffer bytes = {.maximum = SECTION_BYTES_MAX};
        if (section) (void)elf_file_read_section(&file, section, &bytes, NULL);
        buffer_fini(&bytes);
    }
    struct go_function function = {.name = "runtime.mcall"};
    (void)go_functions_find(&file, &function, 1);
    elf_file_close(&file);
    return 0;
}
