/* SPDX-License-Identifier: MIT */
#include "cli/process_choice.h"

#include "cli/message.h"
#include "recorder/task_files.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char cgroup_folder[] = "/sys/fs/cgroup";

bool process_choice_is_given(const struct process_choice *choice)
{
    return choice->takes_all || choice->name || choice->user || choice->cgroup;
}

static bool find_user(struct process_choice *choice)
{
    char *end;
    const struct passwd *entry = getpwnam(choice->user);
    unsigned long number = strtoul(choice->user, &end, 10);
    bool is_number = end != choice->user && *end == '\0' && number < UINT_MAX;
    choice->user_id = entry ? entry->pw_uid : (uid_t)number;
    if (entry || is_number) return true;
    message("--user %s: there is no such user", choice->user);
    return false;
}

/* Takes the path of a control group as it is in /proc/PID/cgroup, or the folder of it. */
static bool find_cgroup(struct process_choice *choice)
{
    char path[PATH_MAX];
    size_t prefix = sizeof(cgroup_folder) - 1;
    if (strncmp(choice->cgroup, cgroup_folder, prefix) == 0 && choice->cgroup[prefix] == '/') choice->cgroup += prefix;
    (void)snprintf(path, sizeof(path), "%s%s", cgroup_folder, choice->cgroup);
    if (choice->cgroup[0] == '/' && access(path, F_OK) == 0) return true;
    message("--cgroup %s: there is no folder %s%s%s; /proc/PID/cgroup has the path of a process", choice->cgroup,
            cgroup_folder, choice->cgroup[0] == '/' ? "" : "/", choice->cgroup);
    return false;
}

bool process_choice_begin(struct process_choice *choice)
{
    struct error error;
    if (choice->name && regexp_compile(&choice->pattern, slice_of_text(choice->name), &error) != STATUS_OK) {
        message("--name %s: %s", choice->name, error.message);
        return false;
    }
    return (!choice->user || find_user(choice)) && (!choice->cgroup || find_cgroup(choice));
}

void process_choice_fini(struct process_choice *choice)
{
    regexp_fini(&choice->pattern);
}

/* Reads the file name of the program; a name that a process gives itself has at most 15 bytes. */
static bool has_name(struct process_choice *choice, pid_t pid, const char *name)
{
    char link[64], path[PATH_MAX];
    if (regexp_matches_within(&choice->pattern, slice_of_text(name))) return true;
    (void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(path, '/');
    return slash && regexp_matches_within(&choice->pattern, slice_of_text(slash + 1));
}

static bool is_of_user(const struct process_choice *choice, pid_t pid)
{
    char path[32];
    struct stat facts;
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &facts) == 0 && facts.st_uid == choice->user_id;
}

/* Returns true if a line of /proc/PID/cgroup, "0::/PATH", has the path or one below it. */
static bool is_in_cgroup(const struct process_choice *choice, pid_t pid)
{
    char text[4096];
    size_t length = strlen(choice->cgroup);
    while (length > 1 && choice->cgroup[length - 1] == '/') length--;
    if (task_read_text(pid, "cgroup", text, sizeof(text)) == 0) return false;
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *path = strstr(line, ":/");
        if (!path || strncmp(path + 1, choice->cgroup, length) != 0) continue;
        char next = path[1 + length];
        if (length == 1 || next == '\n' || next == '/' || next == '\0') return true;
    }
    return false;
}

/* A kernel thread has no program. */
static bool is_kernel_thread(pid_t pid)
{
    char byte[2];
    return task_read_text(pid, "statm", byte, sizeof(byte)) > 0 && byte[0] == '0';
}

bool process_choice_takes(struct process_choice *choice, pid_t pid, const char *name)
{
    return pid != getpid() && (!choice->name || has_name(choice, pid, name)) &&
           (!choice->user || is_of_user(choice, pid)) && (!choice->cgroup || is_in_cgroup(choice, pid)) &&
           !is_kernel_thread(pid);
}
