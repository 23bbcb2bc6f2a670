/* SPDX-License-Identifier: MIT */
#include "symbolize/call_frames.h"

/* Empty if FILE has no such section. False if it cannot be read. */
static bool read_section(const struct elf_file *file, const char *name, struct buffer *bytes, uint64_t *ret_address)
{
    const struct elf_section *section = elf_file_section(file, name);
    buffer_init(bytes, CALL_FRAMES_BYTES_MAX);
    *ret_address = section ? section->address : 0;
    if (!section || !section->has_bytes || section->size > CALL_FRAMES_BYTES_MAX) return true;
    return elf_file_read_section(file, section, bytes, NULL) == STATUS_OK;
}

static bool build_table(struct call_frames *frames, const struct elf_file *file)
{
    struct buffer eh_frame, header, debug_frame;
    uint64_t eh_frame_address, header_address, debug_frame_address;
    bool is_read = read_section(file, ".eh_frame", &eh_frame, &eh_frame_address);
    is_read = read_section(file, ".eh_frame_hdr", &header, &header_address) && is_read;
    is_read = read_section(file, ".debug_frame", &debug_frame, &debug_frame_address) && is_read;
    struct frame_table_source source = {.base = frames->base, .header_address = header_address};
    source.eh_frame = (struct cfi_section){
        .bytes = buffer_slice(&eh_frame), .address = eh_frame_address, .data_address = header_address};
    source.header = buffer_slice(&header);
    source.debug_frame = (struct cfi_section){.bytes = buffer_slice(&debug_frame), .is_debug_frame = true};
    bool is_built = is_read && frame_table_build(&source, &frames->table);
    buffer_fini(&eh_frame);
    buffer_fini(&header);
    buffer_fini(&debug_frame);
    return is_built;
}

bool call_frames_open(struct call_frames *frames, const char *path, const char *build_id)
{
    const struct debug_sources none = {0};
    *frames = (struct call_frames){0};
    if (build_id[0] == '\0' || symbol_module_open(&frames->module, path, build_id, &none) != SYMBOL_MODULE_OPEN)
        return false;
    const struct elf_file *file = &frames->module.binary;
    if (frames->module.has_binary && file->segment_count > 0) {
        frames->base = file->segments[0].address;
        if (build_table(frames, file)) return true;
    }
    symbol_module_close(&frames->module);
    return false;
}

void call_frames_close(struct call_frames *frames)
{
    frame_table_fini(&frames->table);
    symbol_module_close(&frames->module);
}
