/* Fields that profilers write into the frames of collapsed stacks, and lines that were cut off.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_TEXT_STACK_FIELDS_H
#define OFFBEAT_FORMAT_TEXT_STACK_FIELDS_H

#include "base/status.h"
#include "profile/profile.h"

/* Takes the process and the thread off the front of NAMES, a stack with ";" between its frames, and returns the thread,
 * or 0 if there is none:
 *
 *     process 12:"python app.py";thread (0x7F01): MainThread;f       py-spy --subprocesses --threads
 *     [worker tid=34];f                                             async-profiler -t
 *     python-12/34;f                                                stackcollapse-perf.pl --tid
 *
 * The innermost of several processes counts. */
struct thread_id stack_fields_take_thread(struct profile *profile, struct slice *names);

/* Takes " (app.py:3)", as py-spy writes it, or " - app.rb:3", as rbspy does, off the end of NAME; the file can be
 * empty. False if there is none. */
bool stack_fields_take_source(struct slice *name, struct slice *ret_file, int64_t *ret_line);

/* Whether LINE, whose decoding gave STATUS, is malformed because BYTES were cut short in it. PROFILE, which has samples
 * of the lines before, then names it as left out. */
bool stack_fields_leave_out_cut_line(struct profile *profile, struct slice line, struct slice bytes,
                                     enum status status);

#endif
