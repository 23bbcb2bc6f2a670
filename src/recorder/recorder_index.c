/* Processes and threads of a recorder, by their numbers.  SPDX-License-Identifier: MIT */
#include "recorder/recorder_private.h"

static struct recorded_thread **bucket_of(struct recorder *recorder, pid_t tid)
{
    return &recorder->threads[(unsigned)tid % RECORDER_BUCKETS];
}

struct recorded_thread *recorder_find_thread(struct recorder *recorder, const struct recorded_process *process,
                                             pid_t tid)
{
    struct recorded_thread *thread = *bucket_of(recorder, tid);
    while (thread && (thread->tid != tid || thread->process != process)) thread = thread->next;
    return thread;
}

struct recorded_thread *recorder_find_or_add_thread(struct recorder *recorder, struct recorded_process *process,
                                                    pid_t tid)
{
    struct recorded_thread *thread = recorder_find_thread(recorder, process, tid);
    if (thread) return thread;
    thread = recorded_process_add_thread(process, tid);
    struct recorded_thread **bucket = bucket_of(recorder, tid);
    if (!thread) return NULL;
    thread->next = *bucket;
    *bucket = thread;
    return thread;
}

void recorder_forget_thread(struct recorder *recorder, const struct recorded_thread *thread)
{
    struct recorded_thread **at = bucket_of(recorder, thread->tid);
    while (*at && *at != thread) at = &(*at)->next;
    if (*at) *at = thread->next;
}

struct recorded_process *recorder_find_process(const struct recorder *recorder, pid_t pid)
{
    struct recorded_process *process = recorder->by_pid[(unsigned)pid % RECORDER_BUCKETS];
    while (process && process->watched.pid != pid) process = process->next;
    return process;
}

struct recorded_process *recorder_process_with(const struct recorder *recorder, pid_t pid)
{
    struct recorded_process *process = recorder_find_process(recorder, pid);
    pid_t parent = process ? 0 : gone_children_parent(&recorder->gone, pid);
    return parent != 0 ? recorder_find_process(recorder, parent) : process;
}

void recorder_note_process(struct recorder *recorder, struct recorded_process *process)
{
    struct recorded_process **bucket = &recorder->by_pid[(unsigned)process->watched.pid % RECORDER_BUCKETS];
    process->next = *bucket;
    *bucket = process;
}

void recorder_forget_process(struct recorder *recorder, const struct recorded_process *process)
{
    struct recorded_process **at = &recorder->by_pid[(unsigned)process->watched.pid % RECORDER_BUCKETS];
    while (*at && *at != process) at = &(*at)->next;
    if (*at) *at = process->next;
}
