/* The threads, cgroups and namespaces of a perf.data file, at the time of the record at hand.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_TASKS_H
#define OFFBEAT_FORMAT_PERF_PERF_TASKS_H

#include "base/cursor.h"
#include "base/index_table.h"
#include "profile/profile.h"

enum { PERF_THREADS_MAX = 4 << 20, PERF_CGROUPS_MAX = 1 << 20, PERF_NAMESPACE_KINDS = 7 };

#define CGROUP_LABEL "cgroup"
#define NAMESPACES_LABEL "namespaces"

struct perf_thread {
    uint32_t tid;
    uint32_t pid;                /* process of its last sample */
    struct string_id name;       /* current name; "": not known */
    struct string_id shown;      /* the name that the profile gives it: that of its first sample */
    struct thread_id id;         /* 0: no sample yet */
    struct string_id namespaces; /* current namespaces; "": the first ones, or not known */
};

/* The path of a cgroup. The kernel never uses an id twice. */
struct perf_cgroup {
    uint64_t id;
    struct string_id path;
};

/* {0} is valid and empty. */
struct perf_tasks {
    INDEXED_ARRAY_OF(struct perf_thread) threads;
    INDEXED_ARRAY_OF(struct perf_cgroup) cgroups;
    struct perf_namespace {
        uint64_t device, inode;
    } first[PERF_NAMESPACE_KINDS]; /* namespaces of the first process of the system, or of the recorded command */
};

/* Returns the thread TID, which is added if it is new. Valid until the next call. NULL: too many, or no memory. */
struct perf_thread *perf_tasks_thread(struct perf_tasks *tasks, uint32_t tid);

/* Adds the path of the cgroup ID. As in perf, the first path of an id counts. False: too many, or no memory. */
bool perf_tasks_add_cgroup(struct perf_tasks *tasks, uint64_t id, struct string_id path);

/* Returns the path of the cgroup ID; "unknown", as perf prints it, if it has none. */
struct string_id perf_tasks_cgroup_path(const struct perf_tasks *tasks, uint64_t id, struct profile *profile);

/* Takes the part of a namespaces record after the ids of process and thread. Returns "" if they are the first ones;
 * else the kinds that differ, with the numbers that lsns prints: "net:4026532147 mnt:4026532145". CURSOR has failed if
 * it is broken. */
struct string_id perf_tasks_take_namespaces(struct perf_tasks *tasks, struct cursor *cursor, struct profile *profile);

void perf_tasks_fini(struct perf_tasks *tasks);

#endif
