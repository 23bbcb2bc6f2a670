/* SPDX-License-Identifier: MIT */
#include "binary/contents_id.h"

#include "base/hex.h"

enum { CODE_BYTES_MAX = 4096, ID_BYTES = 16 };

/* The first bytes of the code, laid over each other. False if there is no code. */
static bool fold_code(const struct elf_file *file, uint8_t ret_id[ID_BYTES])
{
    uint8_t code[CODE_BYTES_MAX];
    const struct elf_section *section = elf_file_section(file, ".text");
    if (!section || !section->has_bytes || section->size == 0) return false;
    size_t size = section->size < sizeof(code) ? (size_t)section->size : sizeof(code);
    if (!elf_file_read(file, section->file_offset, code, size)) return false;
    memset(ret_id, 0, ID_BYTES);
    for (size_t i = 0; i < size; i++) ret_id[i % ID_BYTES] ^= code[i];
    return true;
}

bool contents_id_of(const struct elf_file *file, char ret_hex[BUILD_ID_START_SIZE])
{
    uint8_t id[ID_BYTES];
    if (file->build_id[0] != '\0' || !fold_code(file, id)) return false;
    (void)hex_write(ret_hex, slice_of(id, ID_BYTES));
    return true;
}
