/* A descriptor that stays open while the program runs. The program may close it, as daemons close all that they did not
 * open, and then have its own file under the number: before each use it must be asked whether it still is the same
 * file. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SPOOL_OWN_DESCRIPTOR_H
#define OFFBEAT_SPOOL_OWN_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* {.number = -1}: no descriptor. */
struct own_descriptor {
    int number;
    dev_t device;
    ino_t inode;
};

/* Notes the open file NUMBER, which must have its own inode; an eventfd has none. NUMBER may be -1. */
static inline struct own_descriptor own_descriptor_of(int number)
{
    struct stat facts;
    if (number < 0 || fstat(number, &facts) != 0) return (struct own_descriptor){.number = -1};
    return (struct own_descriptor){.number = number, .device = facts.st_dev, .inode = facts.st_ino};
}

static inline bool own_descriptor_is_there(const struct own_descriptor *descriptor)
{
    struct stat facts;
    return descriptor->number >= 0 && fstat(descriptor->number, &facts) == 0 && facts.st_dev == descriptor->device &&
           facts.st_ino == descriptor->inode;
}

static inline void own_descriptor_close(struct own_descriptor *descriptor)
{
    if (own_descriptor_is_there(descriptor)) (void)close(descriptor->number);
    descriptor->number = -1;
}

#endif
