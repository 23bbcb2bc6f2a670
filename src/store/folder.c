/* The folder of a store: its lock, and the data files in it.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void store_print(store_report *report, void *context, const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (!report) return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    report(context, text);
}

const char *const day_file_endings[DAY_FILES] = {"", "-wal", "-shm"};

void day_name(uint64_t time_ns, char ret_name[DAY_NAME_SIZE])
{
    time_t seconds = (time_t)(time_ns / SECOND_NS);
    struct tm date;
    if (!gmtime_r(&seconds, &date) || date.tm_year > 9999 - 1900)
        date = (struct tm){.tm_year = 9999 - 1900, .tm_mday = 1};
    (void)strftime(ret_name, DAY_NAME_SIZE, "%Y-%m-%d.db", &date);
}

/* The place of a file among those of its day. */
static unsigned part_of(const char *name)
{
    return name[DATE_SIZE + 1] == 'd' ? 0 : (unsigned)strtoul(name + DATE_SIZE + 1, NULL, 10);
}

void day_next_name(const char *name, char ret_name[DAY_NAME_SIZE])
{
    enum { PART_MAX = 99999 }; /* then its last file grows */
    unsigned part = part_of(name);
    (void)snprintf(ret_name, DAY_NAME_SIZE, "%.*s.%u.db", DATE_SIZE, name, part < PART_MAX ? part + 1 : PART_MAX);
}

bool day_is_before(const char *name, const char *other)
{
    return strncmp(name, other, DATE_SIZE) < 0;
}

bool is_day_name(const char *name)
{
    static const char date[] = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].*";
    if (strlen(name) >= DAY_NAME_SIZE || fnmatch(date, name, 0) != 0) return false;
    const char *part = name + DATE_SIZE + 1, *rest = part + strspn(part, "0123456789");
    return strcmp(part, "db") == 0 || (*part >= '1' && *part <= '9' && strcmp(rest, ".db") == 0);
}

static int compare_names(const void *a, const void *b)
{
    int days = strncmp(a, b, DATE_SIZE);
    unsigned left = part_of(a), right = part_of(b);
    return days ? days : (left > right) - (left < right);
}

enum status list_days(const char *folder, char (**ret_names)[DAY_NAME_SIZE], size_t *ret_count, struct error *error)
{
    char(*names)[DAY_NAME_SIZE] = malloc(STORE_DAYS_MAX * sizeof(*names));
    DIR *directory = names ? opendir(folder) : NULL;
    size_t count = 0;
    if (!directory) {
        free(names);
        return names ? error_set_errno(error, "%s", folder) : error_set(error, STATUS_NO_MEMORY, 0, "no memory");
    }
    for (struct dirent *entry; count < STORE_DAYS_MAX && (entry = readdir(directory));) {
        if (is_day_name(entry->d_name)) (void)memcpy(names[count++], entry->d_name, strlen(entry->d_name) + 1);
    }
    (void)closedir(directory);
    qsort(names, count, sizeof(*names), compare_names);
    *ret_names = names;
    *ret_count = count;
    return STATUS_OK;
}

bool folder_has_damaged(const char *folder)
{
    DIR *directory = opendir(folder);
    bool is_found = false;
    for (struct dirent *entry; directory && !is_found && (entry = readdir(directory));)
        is_found = strncmp(entry->d_name, "damaged-", 8) == 0;
    if (directory) (void)closedir(directory);
    return is_found;
}

bool move_aside(const char *folder, const char *name, store_report *report, void *context)
{
    char from[STORE_PATH_SIZE + 32], to[STORE_PATH_SIZE + 80];
    long long now = (long long)time(NULL);
    for (size_t i = 0; i < DAY_FILES; i++) {
        (void)snprintf(from, sizeof(from), "%s/%s%s", folder, name, day_file_endings[i]);
        (void)snprintf(to, sizeof(to), "%s/damaged-%lld-%s%s", folder, now, name, day_file_endings[i]);
        if (rename(from, to) == 0 || (i > 0 && errno == ENOENT)) continue;
        store_print(report, context, "%s is damaged, and moving it aside failed: %s", name, strerror(errno));
        return false;
    }
    store_print(report, context, "%s is damaged; it was moved to damaged-%lld-%s", name, now, name);
    return true;
}

enum status lock_folder(const char *folder, int *ret_lock, struct error *error)
{
    char path[STORE_PATH_SIZE + 8];
    (void)snprintf(path, sizeof(path), "%s/lock", folder);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) return error_set_errno(error, "%s", path);
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        (void)close(lock);
        return error_set(error, STATUS_UNSUPPORTED, 0, "%s: another process of offbeat has it open", folder);
    }
    *ret_lock = lock;
    return STATUS_OK;
}
