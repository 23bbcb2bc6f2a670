/* SPDX-License-Identifier: MIT */
#include "sampler/image_file.h"

#include "base/kernel.h"
#include "sampler/process_info.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { COMPARED_BYTES = 4096 };

static bool read_at(void *context, uint64_t offset, void *bytes, size_t size)
{
    const int *file = context;
    return kernel_read_at(*file, bytes, size, offset) == (ssize_t)size;
}

/* Compares the start of the file in memory, which holds the headers of its segments, the place of its sections and, as
 * linkers write it, its build id. */
static bool has_same_start(int descriptor, const struct image_file *file)
{
    static uint8_t in_file[COMPARED_BYTES], in_memory[COMPARED_BYTES]; /* the sampler thread's alone */
    ssize_t size = kernel_read_at(descriptor, in_file, sizeof(in_file), 0);
    return size > 0 && process_read_memory(file->start, in_memory, (size_t)size) == (size_t)size &&
           memcmp(in_file, in_memory, (size_t)size) == 0;
}

/* Opens FILE. Returns a negative number if it is gone, or another one. */
static int open_mapped_file(const struct image_file *file)
{
    if (file->path[0] != '/') return -1; /* the vdso, which has no file */
    int descriptor = kernel_open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (descriptor < 0) return descriptor;
    struct stat status = {0};
    bool is_mapped_one = file->inode == 0 || (kernel_call3(SYS_fstat, descriptor, kernel_address(&status), 0) == 0 &&
                                              status.st_dev == file->device && status.st_ino == file->inode);
    if (is_mapped_one && has_same_start(descriptor, file)) return descriptor;
    kernel_close(descriptor);
    return -1;
}

bool image_file_find_frames(const struct image_file *file, struct elf_frame_sections *ret_sections)
{
    int descriptor = open_mapped_file(file);
    if (descriptor < 0) return false;
    bool found = elf_frame_sections_find(read_at, &descriptor, ret_sections);
    kernel_close(descriptor);
    return found;
}

bool image_file_copy(const struct image_file *file, uint64_t offset, void *bytes, size_t size)
{
    int descriptor = open_mapped_file(file);
    if (descriptor < 0) return false;
    bool copied = read_at(&descriptor, offset, bytes, size);
    kernel_close(descriptor);
    return copied;
}
