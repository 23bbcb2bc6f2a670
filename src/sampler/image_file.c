/* SPDX-License-Identifier: MIT */
#include "sampler/image_file.h"

#include "base/kernel.h"
#include "sampler/self.h"

#include <string.h>

enum { COMPARED_BYTES = 4096 };

static bool read_at(void *context, uint64_t offset, void *bytes, size_t size)
{
    const int *file = context;
    return kernel_read_at(*file, bytes, size, offset) == (ssize_t)size;
}

/* The start of a file holds the headers of its segments, where its sections are and, as linkers write it, its build id.
 */
static bool is_file_of(int file, uint64_t image_start)
{
    static uint8_t in_file[COMPARED_BYTES], in_memory[COMPARED_BYTES]; /* the sampler thread's alone */
    ssize_t size = kernel_read_at(file, in_file, sizeof(in_file), 0);
    return size > 0 && self_read_memory(image_start, in_memory, (size_t)size) == (size_t)size &&
           memcmp(in_file, in_memory, (size_t)size) == 0;
}

/* The file at PATH, if that still is the one that was mapped at IMAGE_START; negative if not. */
static int open_file_of(const char *path, uint64_t image_start)
{
    if (path[0] != '/') return -1; /* the vdso, which has no file */
    int file = kernel_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0 || is_file_of(file, image_start)) return file;
    kernel_close(file);
    return -1;
}

bool image_file_find_frames(const char *path, uint64_t image_start, struct elf_frame_sections *ret_sections)
{
    int file = open_file_of(path, image_start);
    if (file < 0) return false;
    bool found = elf_frame_sections_find(read_at, &file, ret_sections);
    kernel_close(file);
    return found;
}

bool image_file_copy(const char *path, uint64_t image_start, uint64_t offset, void *bytes, size_t size)
{
    int file = open_file_of(path, image_start);
    if (file < 0) return false;
    bool copied = read_at(&file, offset, bytes, size);
    kernel_close(file);
    return copied;
}
