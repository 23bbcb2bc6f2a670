/* Children that had ended before their birth was read: what is seen of them belongs to the process that they were a
 * copy of, in the same tick: the engine reports nothing of them later.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_GONE_CHILDREN_H
#define OFFBEAT_RECORDER_GONE_CHILDREN_H

#include <sys/types.h>

enum { GONE_CHILDREN_MAX = 1 << 10 }; /* more than are born between two reads */

/* The latest ones; the oldest is overwritten. All 0: there are none. */
struct gone_children {
    struct {
        pid_t pid, parent;
    } items[GONE_CHILDREN_MAX];
    unsigned next;
};

void gone_children_add(struct gone_children *children, pid_t pid, pid_t parent);

/* Returns the parent of PID; 0: it is not among CHILDREN. */
pid_t gone_children_parent(const struct gone_children *children, pid_t pid);

#endif
