/* SPDX-License-Identifier: MIT */
#include "sampler/modules/image_file.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "base/unsigned.h"
#include "sampler/kernel/own_memory.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { COMPARED_BYTES = 4096, KEPT_BYTES_MAX = 64 << 20, ALL_KEPT_BYTES_MAX = 256 << 20 };

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

/* Returns DESCRIPTOR if it is that of FILE; else closes it and returns a negative number. */
static int mapped_one(int descriptor, const struct image_file *file)
{
    struct stat status = {0};
    bool is_mapped_one = file->inode == 0 || (kernel_call3(SYS_fstat, descriptor, kernel_address(&status), 0) == 0 &&
                                              status.st_dev == file->device && status.st_ino == file->inode);
    if (is_mapped_one && has_same_start(descriptor, file)) return descriptor;
    kernel_close(descriptor);
    return -1;
}

/* Opens FILE. Returns a negative number if it is gone, or another one. */
static int open_mapped_file(const struct image_file *file)
{
    if (file->path[0] != '/') return -1; /* the vdso, which has no file */
    int descriptor = kernel_open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    return descriptor < 0 ? descriptor : mapped_one(descriptor, file);
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

/* Copies SIZE bytes, without sendfile: a seccomp filter may kill the program for it. */
static bool copy_all(int from, int to, size_t size)
{
    static uint8_t part[16 << 10]; /* the sampler thread's alone */
    while (size > 0) {
        ssize_t got = kernel_read(from, part, sizeof(part));
        if (got <= 0 || kernel_write(to, part, (size_t)got) != got) return false;
        size = difference(size, (size_t)got);
    }
    return true;
}

/* Opens the deleted FILE, which is mapped up to END. The second link has the program alone, and needs no right. */
static int open_deleted(const struct image_file *file, uint64_t end)
{
    char link[64];
    const char *link_end = link + sizeof(link);
    char *at = plain_number(plain_text(link, link_end, "/proc/self/map_files/"), link_end, file->start, 16);
    (void)plain_number(plain_text(at, link_end, "-"), link_end, end, 16);
    int descriptor = kernel_open(link, O_RDONLY, 0);
    if (descriptor >= 0) return descriptor;
    descriptor = kernel_open("/proc/self/exe", O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    return descriptor < 0 ? descriptor : mapped_one(descriptor, file);
}

void image_file_keep(const struct image_file *file, uint64_t end, const char *path)
{
    static size_t kept_bytes; /* the sampler thread's alone */
    struct stat status = {0};
    int from = open_deleted(file, end);
    if (from < 0) return;
    bool is_known = kernel_call3(SYS_fstat, from, kernel_address(&status), 0) == 0 && status.st_size > 0;
    size_t size = (size_t)status.st_size;
    bool has_room = is_known && size <= KEPT_BYTES_MAX && kept_bytes + size <= ALL_KEPT_BYTES_MAX;
    int to = has_room ? kernel_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600) : -1;
    if (to >= 0) {
        kept_bytes += size;
        if (!copy_all(from, to, size)) (void)kernel_unlink(path);
        kernel_close(to);
    }
    kernel_close(from);
}
