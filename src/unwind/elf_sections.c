/* Section headers are read some at a time, and of each name only as much as the longest one looked for.
 * SPDX-License-Identifier: MIT */
#include "unwind/elf_sections.h"

#include "base/unsigned.h"
#include "unwind/chosen_machine.h"

#include <elf.h>
#include <string.h>

enum { SECTIONS_MAX = 1 << 16, SECTIONS_AT_ONCE = 32, NAMES_AT_ONCE = 512, NAME_SIZE = sizeof(".eh_frame_hdr") };

struct file {
    elf_read read;
    void *context;
    Elf64_Ehdr header;
    uint64_t section_count;
    Elf64_Shdr names;
    char first_names[NAMES_AT_ONCE]; /* start of the section NAMES: mostly all of it */
    size_t first_names_size;
};

static bool read_section_headers(const struct file *file, uint64_t index, uint64_t count, Elf64_Shdr *ret_headers)
{
    uint64_t place = 0;
    if (__builtin_add_overflow(file->header.e_shoff, index * sizeof(*ret_headers), &place)) return false;
    return file->read(file->context, place, ret_headers, count * sizeof(*ret_headers));
}

static bool read_file_header(struct file *file)
{
    const Elf64_Ehdr *header = &file->header;
    if (!file->read(file->context, 0, &file->header, sizeof(file->header))) return false;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != MACHINE_ELF) {
        return false;
    }
    if (header->e_shoff == 0 || header->e_shentsize != sizeof(Elf64_Shdr)) return false;

    /* Where they do not fit into the header, the number of sections and the index of the names are in section 0. */
    Elf64_Shdr first;
    if (!read_section_headers(file, 0, 1, &first)) return false;
    file->section_count = header->e_shnum ? header->e_shnum : first.sh_size;
    uint64_t names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
    if (file->section_count > SECTIONS_MAX || names >= file->section_count) return false;
    if (!read_section_headers(file, names, 1, &file->names)) return false;
    size_t size = least(file->names.sh_size, NAMES_AT_ONCE);
    if (file->read(file->context, file->names.sh_offset, file->first_names, size)) file->first_names_size = size;
    return true;
}

/* Writes the first characters of SECTION's name into NAME: enough to distinguish those that are looked for. */
static bool read_section_name(const struct file *file, const Elf64_Shdr *section, char name[NAME_SIZE + 1])
{
    if (section->sh_name >= file->names.sh_size) return false;
    size_t size = least(file->names.sh_size - section->sh_name, NAME_SIZE);
    memset(name, 0, NAME_SIZE + 1);
    if (section->sh_name + size > file->first_names_size)
        return file->read(file->context, file->names.sh_offset + section->sh_name, name, size);
    memcpy(name, file->first_names + section->sh_name, size);
    return true;
}

static void note_section(const struct file *file, const Elf64_Shdr *section, struct elf_frame_sections *found)
{
    char name[NAME_SIZE + 1];
    bool is_usable = section->sh_type != SHT_NOBITS && !(section->sh_flags & SHF_COMPRESSED) && section->sh_size > 0 &&
                     section->sh_offset + section->sh_size > section->sh_offset;
    if (!is_usable || !read_section_name(file, section, name)) return;
    struct elf_section_place place = {
        .address = section->sh_addr, .offset = section->sh_offset, .size = section->sh_size};
    if (strcmp(name, ".eh_frame") == 0)
        found->eh_frame = place;
    else if (strcmp(name, ".eh_frame_hdr") == 0)
        found->eh_frame_hdr = place;
    else if (strcmp(name, ".debug_frame") == 0)
        found->debug_frame = place;
}

bool elf_frame_sections_find(elf_read read, void *context, struct elf_frame_sections *ret_sections)
{
    struct file file = {.read = read, .context = context};
    struct elf_frame_sections found = {0};
    if (!read_file_header(&file)) return false;
    for (uint64_t first = 1, count = 0; first < file.section_count; first += count) {
        Elf64_Shdr sections[SECTIONS_AT_ONCE];
        count = least(file.section_count - first, SECTIONS_AT_ONCE);
        if (!read_section_headers(&file, first, count, sections)) return false;
        for (uint64_t i = 0; i < count; i++) note_section(&file, &sections[i], &found);
    }
    *ret_sections = found;
    return true;
}
