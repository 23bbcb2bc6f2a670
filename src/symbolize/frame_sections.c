/* SPDX-License-Identifier: MIT */
#include "symbolize/frame_sections.h"

/* Leaves BYTES empty if FILE has no such section. Returns false if it cannot be read. */
static bool read_section(const struct elf_file *file, const char *name, struct buffer *bytes, uint64_t *ret_address)
{
    const struct elf_section *section = elf_file_section(file, name);
    buffer_init(bytes, FRAME_SECTION_BYTES_MAX);
    *ret_address = section ? section->address : 0;
    if (!section || !section->has_bytes || section->size > FRAME_SECTION_BYTES_MAX) return true;
    return elf_file_read_section(file, section, bytes, NULL) == STATUS_OK;
}

bool frame_sections_read(struct frame_sections *sections, const struct elf_file *file, uint64_t base)
{
    uint64_t eh_frame_address, header_address, debug_frame_address;
    bool is_read = read_section(file, ".eh_frame", &sections->eh_frame, &eh_frame_address);
    is_read = read_section(file, ".eh_frame_hdr", &sections->header, &header_address) && is_read;
    is_read = read_section(file, ".debug_frame", &sections->debug_frame, &debug_frame_address) && is_read;
    struct frame_table_source *source = &sections->source;
    *source = (struct frame_table_source){.base = base, .header_address = header_address};
    source->eh_frame = (struct cfi_section){
        .bytes = buffer_slice(&sections->eh_frame), .address = eh_frame_address, .data_address = header_address};
    source->header = buffer_slice(&sections->header);
    source->debug_frame = (struct cfi_section){.bytes = buffer_slice(&sections->debug_frame), .is_debug_frame = true};
    return is_read;
}

void frame_sections_free(struct frame_sections *sections)
{
    buffer_fini(&sections->eh_frame);
    buffer_fini(&sections->header);
    buffer_fini(&sections->debug_frame);
}
