/* Finished recordings of this process, which the sampler thread hands over to another thread, and the news of them.
 * Each process has one list. From any thread, unless a function says otherwise. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_FINISHED_RECORDINGS_H
#define OFFBEAT_SAMPLER_FINISHED_RECORDINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { FINISHED_RECORDINGS_MAX = 16, RECORDING_PATH_SIZE = 3200 };

/* Adds the recording PATH, and wakes threads that wait for news. Returns false if there are too many: it is counted as
 * lost. On the sampler thread. */
bool finished_recordings_add(const char *path);
/* Counts a recording as lost whose file could not be created, and wakes threads that wait for news. */
void finished_recordings_note_lost(void);

/* Takes the oldest finished recording, which the caller reads and deletes. Returns false if there is none. By one
 * thread. */
bool finished_recordings_take(char ret_path[RECORDING_PATH_SIZE]);
uint64_t finished_recordings_lost(void);

/* Returns a number that grows with each finished recording and each finished_recordings_wake. */
uint32_t finished_recordings_news(void);
/* Waits until finished_recordings_news differs from NEWS, at most until DEADLINE_NS of CLOCK_MONOTONIC. */
void finished_recordings_wait(uint32_t news, uint64_t deadline_ns);
void finished_recordings_wake(void);

/* Drops the recordings, in a forked child: they are the parent's. */
void finished_recordings_forget(void);

#endif
