/* SPDX-License-Identifier: MIT */
#include "symbolize/call_frames.h"

#include "symbolize/frame_sections.h"
#include "unwind/unwinder.h"

static bool build_table(struct call_frames *frames, const struct elf_file *file)
{
    struct frame_sections sections;
    const struct unwinder *unwinder = unwinder_of_elf(file->machine);
    bool is_built = frame_sections_read(&sections, file, frames->base) && unwinder &&
                    unwinder->build(&sections.source, &frames->table);
    frame_sections_free(&sections);
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
