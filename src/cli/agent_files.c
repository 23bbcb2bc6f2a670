/* SPDX-License-Identifier: MIT */
#include "cli/agent_files.h"

#include "base/array.h"
#include "base/clocks.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 1 << 20, TIME_SIZE = 16 /* 20261128T043000 */, MICROSECOND_NS = 1000 };

bool agent_files_name(const char *folder, const struct profile *profile, const char *suffix, char ret_path[PATH_MAX])
{
    char when[TIME_SIZE];
    struct tm utc;
    const uint64_t start_ns = profile_start_ns(profile);
    const time_t seconds = (time_t)(start_ns / SECOND_NS);
    const char *service = profile_metadata_text(profile, "service"), *pid = profile_metadata_text(profile, "pid");
    if (!gmtime_r(&seconds, &utc) || strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &utc) == 0) return false;
    /* A process that executes another program has two recordings in one second. */
    unsigned microseconds = (unsigned)(start_ns % SECOND_NS / MICROSECOND_NS);
    int length = snprintf(ret_path, PATH_MAX, "%s/%s-%s-%s.%06uZ%s", folder, service[0] ? service : "unknown", pid,
                          when, microseconds, suffix);
    return length > 0 && length < PATH_MAX;
}

/* A file, and what decides whether it goes. */
struct found {
    char name[NAME_MAX + 1];
    time_t time;
    uint64_t bytes;
};

/* Returns true for "…-PID-20261128T043000.123456Z.…": other files in the folder are not ours. */
static bool is_ours(const char *name)
{
    static const char shape[] = "00000000T000000.000000Z";
    const char *end = strrchr(name, 'Z'); /* names of services may have the letter, suffixes do not */
    if (!end || end[1] != '.' || end - name < (ptrdiff_t)sizeof(shape)) return false;
    const char *at = end - (sizeof(shape) - 2);
    for (size_t i = 0; shape[i]; i++) {
        if (shape[i] == '0' ? !isdigit((unsigned char)at[i]) : at[i] != shape[i]) return false;
    }
    return at[-1] == '-' && isdigit((unsigned char)at[-2]);
}

static int compare_times(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return (a->time > b->time) - (a->time < b->time);
}

void agent_files_trim(const char *folder, uint64_t bytes_max, uint64_t age_ns)
{
    ARRAY_OF(struct found) files = {0};
    uint64_t bytes = 0;
    time_t oldest = age_ns > 0 ? time(NULL) - (time_t)(age_ns / SECOND_NS) : 0;
    DIR *opened = bytes_max > 0 || age_ns > 0 ? opendir(folder) : NULL;
    for (const struct dirent *entry; opened && (entry = readdir(opened));) {
        struct stat facts;
        struct found *file;
        if (!is_ours(entry->d_name) || fstatat(dirfd(opened), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(facts.st_mode) || !(file = ARRAY_ADD(&files, FILES_MAX)))
            continue;
        (void)snprintf(file->name, sizeof(file->name), "%s", entry->d_name);
        file->time = facts.st_mtime;
        file->bytes = (uint64_t)facts.st_size;
        bytes += file->bytes;
    }
    if (files.count > 1) qsort(files.items, files.count, sizeof(*files.items), compare_times);
    for (size_t i = 0; i < files.count; i++) {
        bool is_over = files.items[i].time < oldest || (bytes_max > 0 && bytes > bytes_max);
        if (!is_over) break;
        (void)unlinkat(dirfd(opened), files.items[i].name, 0);
        bytes -= files.items[i].bytes;
    }
    if (opened) (void)closedir(opened);
    free(files.items);
}
