/* Threads that live between two ticks. They say themselves what they spent (thread_news.h). Ticks meet some of them,
 * and their stacks stand for the others with the same start routine. What no stack stands for has the name of the
 * routine. SPDX-License-Identifier: MIT */
#include "sampler/account.h"

/* --- Sums by routine ---------------------------------------------------------------------------------------------- */

static struct short_routine *routine_of(struct sampler *sampler, uint64_t routine)
{
    struct short_routine *routines = sampler->short_lives.routines;
    size_t i = 0;
    while (i < SHORT_ROUTINES - 1 && routines[i].routine != routine && routines[i].ends > 0) i++;
    if (routines[i].ends == 0) routines[i] = (struct short_routine){.routine = i < SHORT_ROUTINES - 1 ? routine : 0};
    return &routines[i];
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void short_lives_add(struct sampler *sampler, const struct thread_news *end)
{
    struct short_routine *routine = routine_of(sampler, end->routine);
    uint64_t cpu_ns = least(end->cpu_ns, end->wall_ns), runnable_ns = least(end->runnable_ns, end->wall_ns - cpu_ns);
    bool is_cpu = sampler->options.mode == RECORDING_CPU;
    routine->ends += end->ends;
    routine->time.cpu_ns += is_cpu ? end->cpu_ns : cpu_ns;
    sampler->cpu_ns_of_ended += end->cpu_ns;
    if (is_cpu) return;
    routine->time.runnable_ns += runnable_ns;
    routine->time.blocked_ns += end->wall_ns - cpu_ns - runnable_ns;
}

static uint64_t whole_units(uint64_t ns)
{
    return ns - ns % RECORDING_TIME_UNIT_NS;
}

/* The rest of a unit stays in ROUTINE. */
static void tell(struct sampler *sampler, struct short_routine *routine, const struct watched_thread *thread,
                 bool is_blocked)
{
    struct recording_time time = {0};
    if (!thread || !is_blocked) {
        time.cpu_ns = whole_units(routine->time.cpu_ns);
        time.runnable_ns = whole_units(routine->time.runnable_ns);
    }
    if (!thread || is_blocked) time.blocked_ns = whole_units(routine->time.blocked_ns);
    if (time.cpu_ns + time.runnable_ns + time.blocked_ns == 0) return;
    recording_begin(sampler->writer, RECORDING_SHORT, 80);
    recording_number(sampler->writer, routine->routine);
    recording_number(sampler->writer, routine->ends - routine->told_ends);
    recording_number(sampler->writer, thread ? (uint64_t)thread->number + 1 : 0);
    recording_number(sampler->writer, is_blocked);
    recording_time(sampler->writer, time);
    routine->time.cpu_ns -= time.cpu_ns;
    routine->time.runnable_ns -= time.runnable_ns;
    routine->time.blocked_ns -= time.blocked_ns;
    routine->told_ends = routine->ends;
}

void short_lives_stand_for(struct sampler *sampler, const struct watched_thread *thread)
{
    uint64_t short_ns = sampler->period_ns > sampler->tick_span_ns ? sampler->period_ns : sampler->tick_span_ns;
    if (thread->life.ends == 0 || thread->life.wall_ns > 2 * short_ns) return;
    struct short_routine *routine = routine_of(sampler, thread->life.routine);
    if (routine->ends == 0 || routine->routine != thread->life.routine) return;
    if (thread->account.has_run) tell(sampler, routine, thread, false);
    if (thread->account.has_blocked) tell(sampler, routine, thread, true);
}

void short_lives_tell_rest(struct sampler *sampler)
{
    for (size_t i = 0; i < SHORT_ROUTINES; i++) {
        struct short_routine *routine = &sampler->short_lives.routines[i];
        if (routine->ends > 0) tell(sampler, routine, NULL, false);
        *routine = (struct short_routine){0};
    }
}

void short_lives_tell_unseen(struct sampler *sampler, uint64_t cpu_ns)
{
    struct short_routine unseen = {.time.cpu_ns = cpu_ns};
    tell(sampler, &unseen, NULL, false);
}

/* --- What threads say --------------------------------------------------------------------------------------------- */

/* The place in BEGUN, or BEGUN_COUNT. */
static size_t place_of_begun(const struct short_lives *lives, pid_t tid)
{
    size_t i = 0;
    while (i < lives->begun_count && lives->begun[i].tid != tid) i++;
    return i;
}

static bool take_begun(struct short_lives *lives, pid_t tid, struct thread_news *ret)
{
    size_t place = place_of_begun(lives, tid);
    if (place == lives->begun_count) return false;
    *ret = lives->begun[place];
    lives->begun[place] = lives->begun[--lives->begun_count];
    return true;
}

static void note_begin(struct sampler *sampler, const struct thread_news *news)
{
    struct short_lives *lives = &sampler->short_lives;
    struct watched_thread *thread = threads_find(&sampler->threads, news->tid);
    if (thread) {
        thread->life = *news;
        if (thread->is_known) account_begins_at(sampler, thread, news->created_ns);
        return;
    }
    size_t place = place_of_begun(lives, news->tid);
    if (place == SHORT_BEGUN_MAX) return;
    lives->begun[place] = *news;
    if (place == lives->begun_count) lives->begun_count++;
}

static void note_end(struct sampler *sampler, const struct thread_news *news)
{
    struct watched_thread *thread = threads_find(&sampler->threads, news->tid);
    struct thread_news begun;
    (void)take_begun(&sampler->short_lives, news->tid, &begun);
    if (thread)
        thread->life = *news;
    else
        short_lives_add(sampler, news);
}

void short_lives_read(struct sampler *sampler)
{
    struct thread_news news;
    while (thread_news_take(&news)) {
        if (news.ends == 0)
            note_begin(sampler, &news);
        else
            note_end(sampler, &news);
    }
}

void short_lives_meet(struct sampler *sampler, struct watched_thread *thread)
{
    struct thread_news begun;
    if (thread->life.created_ns == 0 && take_begun(&sampler->short_lives, thread->tid, &begun)) thread->life = begun;
}
