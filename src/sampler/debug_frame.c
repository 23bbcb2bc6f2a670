/* SPDX-License-Identifier: MIT */
#include "sampler/debug_frame.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "sampler/self.h"
#include "unwind/elf_sections.h"

#include <string.h>

enum { COMPARED_BYTES = 4096 };

static bool read_at(void *context, uint64_t offset, void *bytes, size_t size)
{
    const int *file = context;
    return kernel_read_at(*file, bytes, size, offset) == (ssize_t)size;
}

/* The start of a file holds the headers of its segments, where its sections lie and, as linkers write it, its build id.
 */
static bool is_file_of(int file, uint64_t image_start)
{
    static uint8_t in_file[COMPARED_BYTES], in_memory[COMPARED_BYTES]; /* the sampler thread's alone */
    ssize_t size = kernel_read_at(file, in_file, sizeof(in_file), 0);
    return size > 0 && self_read_memory(image_start, in_memory, (size_t)size) == (size_t)size &&
           memcmp(in_file, in_memory, (size_t)size) == 0;
}

static bool copy_section(int file, const struct elf_section_place *place, struct frame_copy *ret_copy)
{
    struct frame_copy copy = {.memory = pages_allocate(place->size), .size = place->size};
    if (!copy.memory) return false;
    if (read_at(&file, place->offset, copy.memory, copy.size)) {
        *ret_copy = copy;
        return true;
    }
    pages_free(copy.memory, copy.size);
    return false;
}

bool debug_frame_read(const char *path, uint64_t image_start, size_t limit, struct frame_copy *ret_copy)
{
    struct elf_frame_sections sections;
    if (path[0] != '/') return false; /* the vdso, which has no file */
    int file = kernel_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0) return false;
    bool is_there = is_file_of(file, image_start) && elf_frame_sections_find(read_at, &file, &sections) &&
                    sections.debug_frame.size > 0 && sections.debug_frame.size <= limit;
    bool copied = is_there && copy_section(file, &sections.debug_frame, ret_copy);
    kernel_close(file);
    return copied;
}
