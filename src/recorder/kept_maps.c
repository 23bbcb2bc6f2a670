/* SPDX-License-Identifier: MIT */
#include "recorder/kept_maps.h"

#include "base/clocks.h"
#include "recorder/task_files.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --- Finding ------------------------------------------------------------------------------------------------------ */

/* The user of a process, and its number in its own namespace. */
struct identity {
    uid_t user;
    pid_t inner_pid;
};

static bool read_identity(pid_t pid, struct identity *ret_identity)
{
    char text[4096];
    unsigned user;
    if (task_read_text(pid, "status", text, sizeof(text)) == 0) return false;
    const char *users = strstr(text, "\nUid:"), *numbers = strstr(text, "\nNSpid:");
    if (!users || sscanf(users, "\nUid: %*u %u", &user) != 1) return false;
    *ret_identity = (struct identity){.user = user, .inner_pid = pid};
    if (!numbers) return true;
    /* The last number is that of the innermost namespace. */
    const char *end = numbers + 1 + strcspn(numbers + 1, "\n"), *last = end;
    while (last > numbers && last[-1] >= '0' && last[-1] <= '9') last--;
    ret_identity->inner_pid = (pid_t)strtol(last, NULL, 10);
    return true;
}

/* Returns the time at which the process started, seconds since 1970. */
static int64_t start_time(uint64_t start_ticks)
{
    struct timespec booted, now;
    (void)clock_gettime(CLOCK_BOOTTIME, &booted);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec - (int64_t)booted.tv_sec + (int64_t)(start_ticks / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Finds the path of the jitdump of process PID, which maps it so that recorders find it. */
static bool find_dump(pid_t pid, pid_t inner_pid, char ret_path[PATH_MAX])
{
    char maps_path[64], name[64], *line = NULL;
    size_t room = 0;
    bool is_found = false;
    (void)snprintf(maps_path, sizeof(maps_path), "/proc/%d/maps", (int)pid);
    int name_size = snprintf(name, sizeof(name), "/jit-%d.dump\n", (int)inner_pid);
    FILE *maps = fopen(maps_path, "re");
    for (ssize_t size; maps && !is_found && (size = getline(&line, &room, maps)) > 0;) {
        const char *path = strchr(line, '/');
        is_found = path && size > name_size && strcmp(line + size - name_size, name) == 0;
        if (is_found) (void)snprintf(ret_path, PATH_MAX, "%.*s", (int)(line + size - 1 - path), path);
    }
    free(line);
    if (maps) (void)fclose(maps);
    return is_found;
}

/* Returns a descriptor that only leads to the map or the jitdump, without opening it, and *RET_FACTS; -1 if neither is
 * there. */
static int find_map(pid_t pid, pid_t inner_pid, struct stat *ret_facts)
{
    char dump[PATH_MAX];
    const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
    int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) return -1;
    (void)snprintf(path, sizeof(path), "tmp/perf-%d.map", (int)inner_pid);
    int found = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    if (found < 0 && find_dump(pid, inner_pid, dump)) found = (int)syscall(SYS_openat2, root, dump, &how, sizeof(how));
    (void)close(root);
    if (found < 0 || fstat(found, ret_facts) == 0) return found;
    (void)close(found);
    return -1;
}

static bool is_trusted(const struct stat *facts, const struct identity *identity, uint64_t start_ticks)
{
    const int64_t clocks_differ_seconds = 2;
    return S_ISREG(facts->st_mode) && facts->st_uid == identity->user && facts->st_size <= KEPT_MAP_BYTES_MAX &&
           facts->st_mtime + clocks_differ_seconds >= start_time(start_ticks);
}

/* Opens the file that FOUND leads to, which is a regular one. */
static int open_found(int found)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* --- Keeping ------------------------------------------------------------------------------------------------------ */

static void forget(struct kept_maps *maps, struct kept_map *map)
{
    (void)unlink(map->link); /* its descriptor's number may become another file's */
    (void)close(map->descriptor);
    free(map->link);
    *map = maps->items.items[--maps->items.count];
}

static struct kept_map *known_map(struct kept_maps *maps, pid_t pid)
{
    for (size_t i = 0; i < maps->items.count; i++) {
        if (maps->items.items[i].pid == pid) return &maps->items.items[i];
    }
    return NULL;
}

static void keep(struct kept_maps *maps, pid_t pid, int found, const struct stat *facts)
{
    char link[PATH_MAX], target[64];
    struct kept_map map = {
        .pid = pid, .descriptor = open_found(found), .device = facts->st_dev, .inode = facts->st_ino};
    if (map.descriptor < 0) return;
    (void)snprintf(link, sizeof(link), "%s/maps", maps->directory);
    (void)mkdir(link, 0700);
    (void)snprintf(link, sizeof(link), "%s/maps/perf-%d.map", maps->directory, (int)pid);
    (void)snprintf(target, sizeof(target), "/proc/%d/fd/%d", (int)getpid(), map.descriptor);
    map.link = strdup(link);
    bool is_kept = map.link && symlink(target, link) == 0;
    if (is_kept && ARRAY_PUSH(&maps->items, KEPT_MAPS_MAX, map)) return;
    if (is_kept) (void)unlink(link);
    free(map.link);
    (void)close(map.descriptor);
}

void kept_maps_look(struct kept_maps *maps, pid_t pid, uint64_t start_ticks)
{
    struct identity identity;
    struct stat facts;
    struct kept_map *known = known_map(maps, pid);
    if (known && known->ended_ns != 0) { /* it has the names of an earlier process with this number */
        forget(maps, known);
        known = NULL;
    }
    if (!maps->directory || !read_identity(pid, &identity)) return;
    int found = find_map(pid, identity.inner_pid, &facts);
    if (found < 0) return;
    bool is_same = known && known->device == facts.st_dev && known->inode == facts.st_ino;
    if (!is_same && is_trusted(&facts, &identity, start_ticks)) {
        if (known) forget(maps, known);
        keep(maps, pid, found, &facts);
    }
    (void)close(found);
}

void kept_maps_note_end(struct kept_maps *maps, pid_t pid)
{
    struct kept_map *map = known_map(maps, pid), *oldest = NULL;
    size_t ended = 0;
    if (map) map->ended_ns = clock_monotonic_ns();
    for (size_t i = 0; i < maps->items.count; i++) {
        struct kept_map *item = &maps->items.items[i];
        if (item->ended_ns == 0) continue;
        ended++;
        if (!oldest || item->ended_ns < oldest->ended_ns) oldest = item;
    }
    if (ended > KEPT_MAPS_ENDED_MAX) forget(maps, oldest);
}

void kept_maps_fini(struct kept_maps *maps)
{
    while (maps->items.count > 0) forget(maps, &maps->items.items[0]);
    free(maps->items.items);
    *maps = (struct kept_maps){0};
}
