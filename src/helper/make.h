/* Turns recordings into payloads, in a process that ends then: a fault costs one profile, and the memory is free again.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_HELPER_MAKE_H
#define OFFBEAT_HELPER_MAKE_H

#include "base/buffer.h"
#include "base/status.h"

/* Exit statuses of that process. */
enum { MAKE_DONE = 0, MAKE_REJECTED = 1, MAKE_FAILED = 2 };

struct make_options {
    bool has_names;  /* symbolizes the frames */
    bool is_awaited; /* a program waits: the process does not step back after others */
};

/* Keeps the ENVIRONMENT of this process for those that it starts. */
void make_keep_environment(char **environment);

/* Does what the words after --make ask for, a file with a request and names of options: writes its payloads, one a
 * line, to standard output. If the server would reject them, writes the name of the reject reason and the details.
 * Returns the exit status. */
int make_payloads(const char *const *words);

/* Runs another process of this program, which does that for the request at PATH. MAKE_FAILED also if it takes too long
 * or is killed. PAYLOADS is what it wrote; ERROR is set by MAKE_FAILED. */
int make_in_process(const char *path, struct make_options options, struct buffer *payloads, struct error *error);

#endif
