/* The files that `offbeat record` writes.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_RECORD_OUTPUTS_H
#define OFFBEAT_CLI_RECORD_OUTPUTS_H

#include "cli/options.h"
#include "cli/write_profile.h"

struct record_output {
    const char *path; /* "-" is standard output */
    const struct format *format;
    struct chunk_series series; /* chunks of formats that hold one process in each file */
    bool has_failed;            /* the reason was printed; further processes are not tried */
};

struct record_outputs {
    struct record_output items[OPTION_TEXTS_MAX];
    size_t count;
    bool splits_processes; /* all formats hold one process in each file */
    char *default_path;    /* path of the only output where the user named none */
};

/* One output for each of PATHS, or one named after PROGRAM where there are none. CHOICE, the value of --to, is the
 * format of the only output, and among several of the outputs whose names choose no format; CONVERT_TARGET_COUNT: not
 * given. False after a line on standard error. */
bool record_outputs_choose(struct record_outputs *outputs, const struct option_texts *paths, unsigned choice,
                           const char *program);
void record_outputs_fini(struct record_outputs *outputs);

/* Finds files that cannot be written, before the program runs for an hour. False after a line on standard error. */
bool record_outputs_check(const struct record_outputs *outputs);

bool record_outputs_use_stdout(const struct record_outputs *outputs);

/* Writes PROFILE, one process, to the outputs that hold one process in each file, each with the next number: x.pb.gz,
 * x.2.pb.gz, …; x.envelope, x.2.envelope, …. Chunks are written from
 * PROFILE, other formats from LABELLED, which is the same with the labels that distinguish processes, and not used
 * unless SPLITS_PROCESSES. False if one could not be written. */
bool record_outputs_write_process(struct record_outputs *outputs, struct profile *profile, struct profile *labelled);

/* Writes ALL processes to the other outputs. False if one could not be written. */
bool record_outputs_write_all(struct record_outputs *outputs, struct profile *all);

#endif
