/* SPDX-License-Identifier: MIT */
#include "sampler/record/finished_recordings.h"

#include "base/futex.h"
#include "base/plain_text.h"

#include <stdatomic.h>
#include <string.h>

/* Recording number N is at N % FINISHED_RECORDINGS_MAX. NEWS is a futex. */
static struct {
    char paths[FINISHED_RECORDINGS_MAX][RECORDING_PATH_SIZE];
    _Atomic uint32_t made, taken, news;
    _Atomic uint64_t lost;
} finished;

bool finished_recordings_add(const char *path)
{
    uint32_t made = atomic_load(&finished.made);
    if (made - atomic_load(&finished.taken) == FINISHED_RECORDINGS_MAX) {
        finished_recordings_note_lost();
        return false;
    }
    char *copy = finished.paths[made % FINISHED_RECORDINGS_MAX];
    (void)plain_text(copy, copy + RECORDING_PATH_SIZE, path);
    atomic_store(&finished.made, made + 1);
    finished_recordings_wake();
    return true;
}

void finished_recordings_note_lost(void)
{
    atomic_fetch_add(&finished.lost, 1);
    finished_recordings_wake();
}

bool finished_recordings_take(char ret_path[RECORDING_PATH_SIZE])
{
    uint32_t taken = atomic_load(&finished.taken);
    if (taken == atomic_load(&finished.made)) return false;
    memcpy(ret_path, finished.paths[taken % FINISHED_RECORDINGS_MAX], RECORDING_PATH_SIZE);
    atomic_store(&finished.taken, taken + 1);
    return true;
}

uint64_t finished_recordings_lost(void)
{
    return atomic_load(&finished.lost);
}

uint32_t finished_recordings_news(void)
{
    return atomic_load(&finished.news);
}

void finished_recordings_wait(uint32_t news, uint64_t deadline_ns)
{
    if (atomic_load(&finished.news) == news) futex_wait(&finished.news, news, deadline_ns);
}

void finished_recordings_wake(void)
{
    atomic_fetch_add(&finished.news, 1);
    futex_wake(&finished.news);
}

void finished_recordings_forget(void)
{
    atomic_store(&finished.taken, atomic_load(&finished.made));
}
