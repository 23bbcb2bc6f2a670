/* SPDX-License-Identifier: MIT */
#include "symbolize/index_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/environment.h"
#include "base/file.h"
#include "symbolize/symbol_index_build.h"

enum { TOUCHED_EVERY_SECONDS = 3600 };

static const char suffix[] = ".names", frames_suffix[] = ".frames";

static const char *absolute(const char *path)
{
    return path && path[0] == '/' ? path : NULL;
}

static bool copy_folder(char ret_folder[PATH_MAX])
{
    const char *chosen = absolute(environment_get("OFFBEAT_CACHE_DIRECTORY"));
    const char *cache = absolute(environment_get("XDG_CACHE_HOME"));
    const char *home = absolute(environment_get("HOME"));
    int length = -1;
    if (chosen)
        length = snprintf(ret_folder, PATH_MAX, "%s", chosen);
    else if (cache)
        length = snprintf(ret_folder, PATH_MAX, "%s/offbeat", cache);
    else if (home)
        length = snprintf(ret_folder, PATH_MAX, "%s/.cache/offbeat", home);
    return length > 0 && length < PATH_MAX;
}

/* Other users must not be able to give us names. */
static bool is_ours(const char *folder)
{
    struct stat facts;
    return stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
           !(facts.st_mode & (S_IWGRP | S_IWOTH));
}

static bool copy_path(const char *build_id, char ret_path[PATH_MAX])
{
    char folder[PATH_MAX];
    if (build_id[0] == '\0' || !copy_folder(folder)) return false;
    int length = snprintf(ret_path, PATH_MAX, "%s/%s%s", folder, build_id, suffix);
    return length > 0 && length < PATH_MAX;
}

bool index_store_open(struct symbol_index *index, const char *build_id,
                      const struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS])
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (!copy_folder(folder) || !is_ours(folder) || !copy_path(build_id, path)) return false;
    if (!symbol_index_open(index, path, inputs)) return false;
    struct stat facts;
    bool is_old = fstat(index->descriptor, &facts) == 0 && time(NULL) - facts.st_mtime > TOUCHED_EVERY_SECONDS;
    if (is_old) (void)futimens(index->descriptor, NULL); /* the time of its last use */
    return true;
}

/* --- Making room -------------------------------------------------------------------------------------------------- */

struct kept {
    char name[NAME_MAX + 1];
    struct timespec used;
    uint64_t size;
};

struct listing {
    struct kept *items;
    size_t count, capacity;
    uint64_t size;
};

static bool has_suffix(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot != name && (strcmp(dot, suffix) == 0 || strcmp(dot, frames_suffix) == 0);
}

/* A temporary file that is older than any writer needs was left by a writer that was killed. */
static bool is_left_after(const char *name, const struct stat *facts)
{
    return (strstr(name, ".names.") || strstr(name, ".frames.")) &&
           time(NULL) - facts->st_mtime > TOUCHED_EVERY_SECONDS;
}

static void list_folder(DIR *directory, struct listing *listing)
{
    struct stat facts;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        if (fstatat(dirfd(directory), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode))
            continue;
        if (is_left_after(entry->d_name, &facts)) (void)unlinkat(dirfd(directory), entry->d_name, 0);
        if (!has_suffix(entry->d_name) || !ARRAY_RESERVE(listing, 1, INDEX_STORE_FILES_MAX)) continue;
        struct kept *kept = &listing->items[listing->count++];
        kept->used = facts.st_mtim;
        kept->size = (uint64_t)facts.st_size;
        listing->size += kept->size;
        (void)snprintf(kept->name, sizeof(kept->name), "%s", entry->d_name);
    }
}

static int compare_use(const void *left, const void *right)
{
    const struct timespec *a = &((const struct kept *)left)->used, *b = &((const struct kept *)right)->used;
    if (a->tv_sec != b->tv_sec) return (a->tv_sec > b->tv_sec) - (a->tv_sec < b->tv_sec);
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static void make_room(const char *folder)
{
    struct listing listing = {0};
    DIR *directory = opendir(folder);
    if (!directory) return;
    list_folder(directory, &listing);
    if (listing.count > 0) qsort(listing.items, listing.count, sizeof(*listing.items), compare_use);
    for (size_t i = 0; i + 1 < listing.count; i++) { /* the last one was just written */
        if (listing.size <= INDEX_STORE_BYTES_MAX && listing.count - i < INDEX_STORE_FILES_MAX) break;
        (void)unlinkat(dirfd(directory), listing.items[i].name, 0);
        listing.size -= listing.items[i].size;
    }
    free(listing.items);
    (void)closedir(directory);
}

bool index_store_folder(char ret_folder[PATH_MAX])
{
    if (!copy_folder(ret_folder)) return false;
    file_make_folders(ret_folder);
    return is_ours(ret_folder);
}

void index_store_make_room(void)
{
    char folder[PATH_MAX];
    if (copy_folder(folder) && is_ours(folder)) make_room(folder);
}

void index_store_keep(const struct symbol_index *index, const char *build_id)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (index->mapped_size > INDEX_STORE_BYTES_MAX / 2 || !copy_path(build_id, path)) return;
    if (index_store_folder(folder) && symbol_index_write(index, path)) make_room(folder);
}
