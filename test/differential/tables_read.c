/* Builds the table of a file from its sections, as tools do for files of other machines.  SPDX-License-Identifier: MIT
 */
#include "tables.h"

#include "unwind/elf_sections.h"

#include <stdlib.h>
#include <unistd.h>

enum { SECTIONS = 3 };

static struct frame_table read_table;
static void *kept[SECTIONS];

static bool read_at(void *context, uint64_t offset, void *bytes, size_t size)
{
    const int *file = context;
    return pread(*file, bytes, size, (off_t)offset) == (ssize_t)size;
}

static struct slice read_section(int file, const struct elf_section_place *place, unsigned number)
{
    kept[number] = place->size > 0 ? malloc(place->size) : NULL;
    bool is_read = kept[number] && read_at(&file, place->offset, kept[number], place->size);
    return slice_of(kept[number], is_read ? place->size : 0);
}

/* Returns the lowest address of the file's segments, to which the addresses of a table are relative. */
static uint64_t base_of(int file, const Elf64_Ehdr *header)
{
    uint64_t base = UINT64_MAX;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(&file, header->e_phoff + i * sizeof(segment), &segment, sizeof(segment))) break;
        if (segment.p_type == PT_LOAD && segment.p_vaddr < base) base = segment.p_vaddr;
    }
    return base == UINT64_MAX ? 0 : base;
}

const char *table_load(int file, const Elf64_Ehdr *header, struct loaded_table *ret_loaded)
{
    struct elf_frame_sections sections;
    uint64_t before_ns = thread_ns();
    if (!elf_frame_sections_find(read_at, &file, &sections)) return "its sections cannot be read";
    struct frame_table_source source = {.base = base_of(file, header), .header_address = sections.eh_frame_hdr.address};
    source.eh_frame = (struct cfi_section){.bytes = read_section(file, &sections.eh_frame, 0),
                                           .address = sections.eh_frame.address,
                                           .data_address = sections.eh_frame_hdr.address};
    source.header = read_section(file, &sections.eh_frame_hdr, 1);
    source.debug_frame =
        (struct cfi_section){.bytes = read_section(file, &sections.debug_frame, 2), .is_debug_frame = true};
    if (frame_table_build(&source, &read_table)) ret_loaded->table = &read_table;
    ret_loaded->link_base = source.base;
    ret_loaded->build_ns = thread_ns() - before_ns;
    return NULL;
}

void table_unload(void)
{
    frame_table_fini(&read_table);
    read_table = (struct frame_table){0};
    for (unsigned i = 0; i < SECTIONS; i++) {
        free(kept[i]);
        kept[i] = NULL;
    }
}
