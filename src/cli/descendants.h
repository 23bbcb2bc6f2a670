/* Finds the processes that a recorded program starts, to name those that could not be sampled.
 *
 * The library in a process leaves a recording. A process that cannot load the library, or cannot write a recording,
 * leaves nothing. So `record` looks at /proc while it waits: it follows the tree of processes, notes each program that
 * runs in one, and compares the list with the recordings at the end.
 *
 * Limits: a process that ends between two scans is not seen (its CPU time is: struct run_result). A kernel without
 * /proc/PID/task/TID/children shows no tree. Programs are distinguished by process id and by the name of their file.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_DESCENDANTS_H
#define OFFBEAT_CLI_DESCENDANTS_H

#include "base/buffer.h"

#include <stdint.h>
#include <sys/types.h>

struct descendants;

/* DIRECTORY is where recordings go. NULL without memory. */
struct descendants *descendants_new(const char *directory, const char *library);
void descendants_free(struct descendants *descendants);

/* Looks at ROOT and its descendants. Returns the nanoseconds until the next call: a scan costs at most 0.5 % of the
 * time. */
uint64_t descendants_scan(struct descendants *descendants, pid_t root);

/* Notes a recording of process PID (the number that the process itself sees), in which the file EXECUTABLE ran.
 * DESCENDANTS may be NULL, here and below. Returns the CPU time that the process had used when it was seen last, ns; 0:
 * not known. */
uint64_t descendants_note_recorded(struct descendants *descendants, pid_t pid, const char *executable);

/* Notes an empty recording: the process ended or became another program at once. */
void descendants_note_empty_recording(struct descendants *descendants, pid_t pid);

struct not_sampled {
    size_t count;    /* number of processes */
    uint64_t cpu_ns; /* known CPU time of them */
};

/* Appends "12 × busybox (statically linked), sudo (set-user-ID …)" to NAMES. */
struct not_sampled descendants_not_sampled(const struct descendants *descendants, struct buffer *names);

#endif
