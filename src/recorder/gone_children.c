/* SPDX-License-Identifier: MIT */
#include "recorder/gone_children.h"

void gone_children_add(struct gone_children *children, pid_t pid, pid_t parent)
{
    unsigned place = children->next++ % GONE_CHILDREN_MAX;
    children->items[place].pid = pid;
    children->items[place].parent = parent;
}

pid_t gone_children_parent(const struct gone_children *children, pid_t pid)
{
    for (unsigned i = 1; i <= GONE_CHILDREN_MAX; i++) {
        unsigned place = (children->next - i) % GONE_CHILDREN_MAX;
        if (children->items[place].pid == pid) return children->items[place].parent;
        if (children->items[place].pid == 0) return 0;
    }
    return 0;
}
