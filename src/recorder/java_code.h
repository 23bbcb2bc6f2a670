/* The table of the code that the Java virtual machine in a recorded process has generated.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_JAVA_CODE_H
#define OFFBEAT_RECORDER_JAVA_CODE_H

#include "recorder/code_file.h"
#include "recorder/hotspot.h"

/* Has not been looked for if all is 0. */
struct java_code {
    struct hotspot hotspot;
    struct code_file *file; /* file with the table; NULL: none was made yet */
    uint64_t start, end;    /* range of the code */
    uint64_t image;         /* start of the machine's own code; 0: it is not known */
    uint64_t next_ns;       /* time from which on the code is read again, CLOCK_MONOTONIC */
    bool is_wanted;         /* true if a stack was in code without a rule since */
    bool is_changed;        /* true if FILE has a table that engines do not know */
};

/* Reads the code of the machine whose file is at IMAGE of process PID, if a stack wants it and it is time. Returns true
 * if there is a table. */
bool java_code_read(struct java_code *java, struct code_files *files, pid_t pid, const struct interpreter_image *image);

#endif
