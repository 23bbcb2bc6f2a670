/* The steps of `offbeat record`, for a command that shows the profile while it is recorded.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_RECORD_H
#define OFFBEAT_CLI_RECORD_H

#include "cli/options.h"
#include "cli/record_folder.h"
#include "profile/profile.h"

enum { RECORD_FREQUENCY_DEFAULT = 101, RECORD_FREQUENCY_MAX = 10000 };

struct record_request {
    struct option_texts outputs; /* none: NAME.pb.gz */
    struct option_texts pids;    /* processes that run already, instead of a command */
    uint64_t frequency_hz;
};

/* Called in this order, by the thread of record_watched. */
struct record_watcher {
    void *context;
    /* The command runs, and its recordings grow in FOLDER. Signals are blocked: threads that start here get none. */
    void (*started)(void *context, const struct record_folder *folder);
    void (*ended)(void *context); /* the command has ended; the recordings are still there */
    /* The files are written. The watcher may take ALL and leave an empty profile. */
    void (*written)(void *context, struct profile *all);
    void (*last)(void *context); /* nothing is left but to end this process as the command ended */
};

/* Runs COMMAND, or records the processes of REQUEST, and writes the profile, as offbeat record does. Ends the process
 * as COMMAND ended, or returns the exit status. */
int record_watched(char **command, const struct record_request *request, const struct record_watcher *watcher);

#endif
