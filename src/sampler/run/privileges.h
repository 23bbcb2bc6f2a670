/* Keeps the sampler thread from having more rights than the program.
 *
 * libc's setuid and its relatives change the threads that libc made. The sampler thread is not one of them, so it takes
 * over the rights of the program's first thread (the leader). It must never be more powerful than the leader: where it
 * cannot follow, or cannot find out, it ends. Threads of the program that change only themselves, by raw system calls,
 * are not followed. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PRIVILEGES_H
#define OFFBEAT_SAMPLER_PRIVILEGES_H

#include "format/recording/recording_layout.h"

#include <stdbool.h>

/* Notes the leader's rights, and accepts the seccomp filters that are in place. On the sampler thread, after
 * process_own_descriptors. */
void privileges_open(void);
void privileges_close(void);

/* Returns true if the leader's capabilities or the process's dumpable flag have changed, so that privileges_follow is
 * due: the kernel changes one of them whenever a process gives up rights of root. Two or three cheap system calls. */
bool privileges_have_changed(void);

/* Takes over the leader's rights. Returns RECORDING_END_NONE if the sampler thread is not more powerful than the
 * leader; otherwise the reason why it must end. */
enum recording_end privileges_follow(void);

/* Return what privileges_follow last saw: the number of threads, the sampler included (0: unknown), and whether the
 * leader had ended. */
uint64_t privileges_thread_count(void);
bool privileges_leader_has_ended(void);

#endif
