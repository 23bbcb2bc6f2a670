/* What the sampler thread may do, compared with what the program may do.
 *
 * libc's setuid and its relatives change the threads that libc made. The sampler thread is not one of them, so it takes
 * over what the program's first thread (the leader) has. It must never be more powerful than the leader: where it
 * cannot follow, or cannot find out, it ends. Threads of the program that change only themselves, by raw system calls,
 * are not followed. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PRIVILEGES_H
#define OFFBEAT_SAMPLER_PRIVILEGES_H

#include "format/recording/recording_layout.h"

#include <stdbool.h>

/* On the sampler thread, after process_own_descriptors. Notes what the leader has now; seccomp filters that are in
 * place already are accepted. */
void privileges_open(void);
void privileges_close(void);

/* Two or three cheap system calls: true if the leader's capabilities or the process's dumpable flag have changed, so
 * that privileges_follow is due. The kernel changes one of them whenever a process gives up rights of root. */
bool privileges_have_changed(void);

/* Reads what the leader has and takes it over. RECORDING_END_NONE if the sampler thread is no more powerful now;
 * otherwise why it must end. */
enum recording_end privileges_follow(void);

/* Threads of the process as privileges_follow last saw them, the sampler included; 0: not known. And whether the leader
 * had ended. */
uint64_t privileges_thread_count(void);
bool privileges_leader_has_ended(void);

#endif
