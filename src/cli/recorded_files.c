/* perf notes build ids when a recording ends, for the files that its samples are in. It has none after `perf record -z`
 * and `-B`, and in a pipe. The number of a file and the time of its last change then say whether the file at that path
 * is still the one that was recorded.  SPDX-License-Identifier: MIT */
#include "cli/recorded_files.h"

#include "base/clocks.h"
#include "base/hash.h"
#include "binary/contents_id.h"
#include "binary/elf_file.h"
#include "symbolize/kernel_names.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

enum { FILES_MAX = 1 << 16 };

_Static_assert((int)ELF_BUILD_ID_TEXT_SIZE <= (int)KERNEL_BUILD_ID_SIZE, "any build id fits");

static uint64_t nanoseconds(int64_t seconds, int64_t rest_ns)
{
    return seconds > 0 ? (uint64_t)seconds * SECOND_NS + (uint64_t)rest_ns : 0;
}

void recorded_files_init(struct recorded_files *files, int descriptor, const struct profile *profile)
{
    struct statx facts;
    *files = (struct recorded_files){.profile = profile};
    if (descriptor < 0 || statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME, &facts) != 0) return;
    uint64_t changed_ns = nanoseconds(facts.stx_mtime.tv_sec, facts.stx_mtime.tv_nsec);
    uint64_t made_ns = nanoseconds(facts.stx_btime.tv_sec, facts.stx_btime.tv_nsec);
    bool is_made_before = (facts.stx_mask & STATX_BTIME) && made_ns < changed_ns; /* a copy may be made later */
    files->begin_ns = is_made_before ? made_ns : changed_ns;
}

void recorded_files_fini(struct recorded_files *files)
{
    for (size_t i = 0; i < files->known.count; i++) {
        free(files->known.items[i].path);
        free(files->known.items[i].id);
    }
    free(files->known.items);
    index_table_fini(&files->known.index);
}

static bool is_this_kernel(const struct recorded_files *files, const struct utsname *system)
{
    uint64_t started_ns = clock_utc_ns() - clock_ns(CLOCK_BOOTTIME);
    return strcmp(profile_metadata_text(files->profile, "kernel"), system->release) == 0 &&
           started_ns <= files->begin_ns;
}

static bool has_generation(const struct elf_file *binary, uint64_t generation)
{
    uint32_t found = 0;
    return generation != 0 && ioctl(binary->descriptor, FS_IOC_GETVERSION, &found) == 0 && found == generation;
}

/* Opens the file at the path of FILE if it is as it was when the recording began. */
static bool open_unchanged(const struct recorded_files *files, const struct recorded_file *file,
                           struct elf_file *binary)
{
    struct stat facts;
    if (file->inode == 0 || file->path[0] != '/' || elf_file_open(binary, file->path, NULL) != STATUS_OK) return false;
    bool is_it = fstat(binary->descriptor, &facts) == 0 && facts.st_ino == file->inode &&
                 nanoseconds(facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec) <= files->begin_ns &&
                 (nanoseconds(facts.st_ctim.tv_sec, facts.st_ctim.tv_nsec) <= files->begin_ns ||
                  has_generation(binary, file->generation));
    if (!is_it) elf_file_close(binary);
    return is_it;
}

/* Finds the id of FILE, which has its path and number. */
static void find_id(const struct recorded_files *files, struct recorded_file *file)
{
    struct utsname system;
    struct elf_file binary;
    char id[KERNEL_BUILD_ID_SIZE] = "";
    if (files->begin_ns == 0 || uname(&system) != 0 ||
        strcmp(profile_metadata_text(files->profile, "host"), system.nodename) != 0)
        return;
    if (strcmp(file->path, KERNEL_MAPPING) == 0) {
        if (!is_this_kernel(files, &system) || !kernel_build_id(id)) return;
    } else if (open_unchanged(files, file, &binary)) {
        file->is_contents = contents_id_of(&binary, id);
        if (!file->is_contents) (void)snprintf(id, sizeof(id), "%s", binary.build_id);
        elf_file_close(&binary);
    }
    file->id = strdup(id);
}

static bool is_same(const void *context, uint32_t index, const void *key)
{
    const struct recorded_file *known = &((const struct recorded_files *)context)->known.items[index], *wanted = key;
    return known->inode == wanted->inode && known->generation == wanted->generation &&
           strcmp(known->path, wanted->path) == 0;
}

const char *recorded_files_identify(struct recorded_files *files, const char *path, uint64_t inode, uint64_t generation)
{
    struct recorded_file file = {.path = strdup(path), .inode = inode, .generation = generation};
    if (!file.path) return "";
    uint64_t hash = hash_mix(hash_bytes(path, strlen(path)), inode ^ generation);
    uint32_t known = index_table_find(&files->known.index, hash, is_same, files, &file);
    if (known == INDEX_NONE) {
        find_id(files, &file);
        known = (uint32_t)files->known.count;
        if (INDEXED_ARRAY_PUSH(&files->known, FILES_MAX, hash, file)) file = (struct recorded_file){0};
    }
    free(file.path);
    free(file.id);
    const char *id = known < files->known.count ? files->known.items[known].id : NULL;
    return id ? id : "";
}

static void give_debug_id(const struct recorded_file *file, struct profile *profile)
{
    char text[DEBUG_ID_TEXT_SIZE];
    if (!debug_id_from_build_id(slice_of_text(file->id), text)) return;
    for (size_t i = 1; i < profile->mappings.count; i++) {
        struct mapping *mapping = &profile->mappings.items[i];
        if (!slice_equals_text(profile_slice(profile, mapping->build_id), file->id) ||
            !slice_equals_text(profile_slice(profile, mapping->file_name), file->path))
            continue;
        mapping->build_id = (struct string_id){0};
        mapping->debug_id = profile_text(profile, text);
    }
}

void recorded_files_give_debug_ids(const struct recorded_files *files, struct profile *profile)
{
    for (size_t i = 0; i < files->known.count; i++)
        if (files->known.items[i].is_contents) give_debug_id(&files->known.items[i], profile);
}
