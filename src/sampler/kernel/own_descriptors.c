/* SPDX-License-Identifier: MIT */
#include "sampler/kernel/own_descriptors.h"

#include "base/descriptor_table.h"
#include "base/kernel.h"
#include "base/seccomp_filter.h"
#include "sampler/kernel/own_memory.h"

#include <errno.h>
#include <sys/resource.h>

static bool has_own_descriptors;
static int kept_end; /* descriptors below it may stay open */
static int file_errno;
static int memory_file = -1, maps_file = -1; /* kept open only in a table of our own */

/* Descriptors that open files for a moment need are left free. */
static void find_kept_end(void)
{
    enum { KEPT_MAX = 768, FREE = 8 };
    struct rlimit limit = {0};
    (void)kernel_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, kernel_address(&limit));
    kept_end = limit.rlim_cur < FREE ? 0 : limit.rlim_cur - FREE < KEPT_MAX ? (int)limit.rlim_cur - FREE : KEPT_MAX;
}

bool process_may_keep(int descriptor)
{
    return has_own_descriptors && descriptor < kept_end;
}

int process_open(const char *path, int flags)
{
    int descriptor = kernel_open(path, flags, 0);
    bool is_denied = descriptor == -EMFILE || descriptor == -ENFILE || descriptor == -EACCES || descriptor == -EPERM;
    if (is_denied && file_errno == 0) file_errno = -descriptor;
    return descriptor;
}

int process_file_errno(void)
{
    return file_errno;
}

int process_keep(int descriptor)
{
    if (descriptor >= 0 && process_may_keep(descriptor)) return descriptor;
    if (descriptor >= 0) kernel_close(descriptor);
    return -1;
}

/* Opens the leader's file. Once the leader has ended, nothing can be read through it: then this opens the calling
 * thread's file, which leaves an entry in the kernel (threads.c). PLACE: where there is a byte. */
static int open_of_process(const char *leaders, const char *own, uint64_t place)
{
    uint8_t byte;
    int file = process_open(leaders, O_RDONLY);
    if (file >= 0 && kernel_read_at(file, &byte, 1, place) == 1) return file;
    if (file >= 0) kernel_close(file);
    return process_open(own, O_RDONLY);
}

static int open_memory(void)
{
    return open_of_process("/proc/self/mem", "/proc/thread-self/mem", (uint64_t)(uintptr_t)&memory_file);
}

static int open_maps(void)
{
    return open_of_process("/proc/self/maps", "/proc/thread-self/maps", 0);
}

void process_own_descriptors(int kept)
{
    memory_file = maps_file = -1;
    file_errno = 0;
    has_own_descriptors = descriptor_table_take(kept);
    find_kept_end();
    if (process_may_keep(0)) {
        memory_file = process_keep(open_memory()); /* while we may */
        maps_file = process_keep(open_maps());
    }
}

int process_open_maps(void)
{
    if (maps_file < 0) return open_maps();
    (void)kernel_seek(maps_file, 0, SEEK_SET);
    return maps_file;
}

void process_release_maps(int file)
{
    if (file != maps_file) kernel_close(file);
}

bool process_root_has_changed(void)
{
    static uint64_t device, inode; /* the sampler thread's alone */
    static bool is_known;
    struct stat status = {0};
    if (kernel_stat("/", &status) != 0) return true;
    bool has_changed = is_known && (status.st_dev != device || status.st_ino != inode);
    device = status.st_dev;
    inode = status.st_ino;
    is_known = true;
    return has_changed;
}

bool process_has_own_descriptors(void)
{
    return has_own_descriptors;
}

void process_close_descriptors(void)
{
    if (memory_file >= 0) kernel_close(memory_file);
    if (maps_file >= 0) kernel_close(maps_file);
    memory_file = maps_file = -1;
}

size_t process_read_memory(uint64_t address, void *buffer, size_t size)
{
    int file = memory_file >= 0 ? memory_file : open_memory();
    struct {
        uint64_t address, size;
    } from = {address, size}, to = {(uint64_t)(uintptr_t)buffer, size};
    if (file < 0 && !filter_allows(FILTER_MEMORY)) return 0;
    /* A process that is not dumpable may not open its /proc/self/mem. */
    long got = file >= 0 ? kernel_read_at(file, buffer, size, address)
                         : kernel_call6(SYS_process_vm_readv, kernel_process_id(), kernel_address(&to), 1,
                                        kernel_address(&from), 1, 0);
    if (file < 0) return got < 0 ? 0 : (size_t)got;
    if (memory_file < 0) memory_file = process_keep(file);
    return got < 0 ? 0 : (size_t)got;
}
