/* Where a process belongs: its systemd unit, container and pod, by its control group.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_PROCESS_PLACE_H
#define OFFBEAT_RECORDER_PROCESS_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

enum { PROCESS_PLACE_NAME_SIZE = 128, PROCESS_PLACE_ID_SIZE = 64, PROCESS_PLACE_ID_SHOWN = 12 /* as docker ps */ };

/* Names as the tools of systemd and of containers print them. "": it has none. */
struct process_place {
    char unit[PROCESS_PLACE_NAME_SIZE];      /* "nginx.service", "session-2.scope" */
    char container[PROCESS_PLACE_NAME_SIZE]; /* id, 64 hex digits, or the name of a machine (LXC, systemd-nspawn) */
    char pod[PROCESS_PLACE_NAME_SIZE];       /* uid of a Kubernetes pod, with dashes */
};

/* Reads TEXT, the content of /proc/PID/cgroup: of the unified hierarchy, of the older ones, or of both. */
void process_place_parse(const char *text, struct process_place *ret_place);

/* Reads the place of process PID. All names are "" if it has ended. */
void process_place_read(pid_t pid, struct process_place *ret_place);

#endif
