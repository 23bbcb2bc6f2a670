/* Section headers are read one by one, and of each name only as much as the longest one looked for.
 * SPDX-License-Identifier: MIT */
#include "unwind/elf_sections.h"

#include <elf.h>
#include <string.h>

enum { SECTIONS_MAX = 1 << 16, NAME_SIZE = sizeof(".eh_frame_hdr") };

struct file {
    elf_read read;
    void *context;
    Elf64_Ehdr header;
    uint64_t section_count;
    Elf64_Shdr names;
};

static bool read_section_header(const struct file *file, uint64_t index, Elf64_Shdr *ret_header)
{
    uint64_t place = 0;
    if (__builtin_add_overflow(file->header.e_shoff, index * sizeof(*ret_header), &place)) return false;
    return file->read(file->context, place, ret_header, sizeof(*ret_header));
}

static bool open_file(struct file *file)
{
    const Elf64_Ehdr *header = &file->header;
    if (!file->read(file->context, 0, &file->header, sizeof(file->header))) return false;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != EM_X86_64) {
        return false;
    }
    if (header->e_shoff == 0 || header->e_shentsize != sizeof(Elf64_Shdr)) return false;

    /* Where they do not fit into the header, the number of sections and the index of the names are in section 0. */
    Elf64_Shdr first;
    if (!read_section_header(file, 0, &first)) return false;
    file->section_count = header->e_shnum ? header->e_shnum : first.sh_size;
    uint64_t names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
    return file->section_count <= SECTIONS_MAX && names < file->section_count &&
           read_section_header(file, names, &file->names);
}

/* Writes the first characters of SECTION's name into NAME: enough to distinguish those that are looked for. */
static bool read_name(const struct file *file, const Elf64_Shdr *section, char name[NAME_SIZE + 1])
{
    if (section->sh_name >= file->names.sh_size) return false;
    uint64_t left = file->names.sh_size - section->sh_name;
    memset(name, 0, NAME_SIZE + 1);
    return file->read(file->context, file->names.sh_offset + section->sh_name, name,
                      left < NAME_SIZE ? left : NAME_SIZE);
}

static bool is_usable(const Elf64_Shdr *section)
{
    return section->sh_type != SHT_NOBITS && !(section->sh_flags & SHF_COMPRESSED) && section->sh_size > 0 &&
           section->sh_offset + section->sh_size > section->sh_offset;
}

bool elf_frame_sections_find(elf_read read, void *context, struct elf_frame_sections *ret_sections)
{
    struct file file = {.read = read, .context = context};
    struct elf_frame_sections found = {0};
    if (!open_file(&file)) return false;
    for (uint64_t i = 1; i < file.section_count; i++) {
        Elf64_Shdr section;
        char name[NAME_SIZE + 1];
        if (!read_section_header(&file, i, &section)) return false;
        if (!is_usable(&section) || !read_name(&file, &section, name)) continue;
        struct elf_section_place place = {
            .address = section.sh_addr, .offset = section.sh_offset, .size = section.sh_size};
        if (strcmp(name, ".eh_frame") == 0)
            found.eh_frame = place;
        else if (strcmp(name, ".eh_frame_hdr") == 0)
            found.eh_frame_hdr = place;
        else if (strcmp(name, ".debug_frame") == 0)
            found.debug_frame = place;
    }
    *ret_sections = found;
    return true;
}
