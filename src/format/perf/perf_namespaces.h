/* The namespaces of a process in a perf.data file, as text that distinguishes containers.  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_FORMAT_PERF_PERF_NAMESPACES_H
#define OFFBEAT_FORMAT_PERF_PERF_NAMESPACES_H

#include "base/cursor.h"
#include "profile/profile.h"

enum { PERF_NAMESPACE_KINDS = 7 };

#define NAMESPACES_LABEL "namespaces"

/* The first namespace of each kind is of the first process of the system, or of the command that was recorded. {0}: no
 * record yet. */
struct perf_namespaces {
    struct perf_namespace {
        uint64_t device, inode;
    } first[PERF_NAMESPACE_KINDS];
};

/* Takes the part of the record after the ids of process and thread. "" if they are the first ones; else the
 * kinds that differ, with the numbers that lsns prints: "net:4026532147 mnt:4026532145". CURSOR has failed if it is
 * broken. */
struct string_id perf_namespaces_take(struct perf_namespaces *namespaces, struct cursor *cursor,
                                      struct profile *profile);

#endif
