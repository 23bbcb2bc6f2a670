/* SPDX-License-Identifier: MIT */
#include "sampler/source/run_queue_waits.h"

#include "base/unsigned.h"
#include "sampler/source/source.h"

void run_queue_waits_leave_alone(const struct source_tick *tick, struct source_thread *thread)
{
    enum { SECONDS_MIN = 5, SECONDS_MAX = 320 };
    uint32_t before = thread->waits.seconds_alone;
    uint32_t seconds = before == 0 ? SECONDS_MIN : (uint32_t)least(2 * before, SECONDS_MAX);
    thread->waits =
        (struct run_queue_waits){.seconds_alone = seconds, .until_tick = tick->number + seconds * tick->ticks_a_second};
}

bool run_queue_waits_are_seen(const struct source_thread *thread, bool is_starved)
{
    bool is_asked = thread->waits.is_asked && thread->waits.has_replied && !is_starved;
    return thread->waits.have_timer || is_asked;
}

void run_queue_waits_note_place(struct run_queue_waits *waits, bool is_elsewhere)
{
    waits->seen++;
    waits->are_where_it_runs &= !is_elsewhere;
    waits->elsewhere += is_elsewhere;
}

bool run_queue_waits_are_asked(const struct source_thread *thread)
{
    return thread->waits.is_asked && !thread->waits.have_timer && (thread->timer.open || thread->clock);
}

void run_queue_waits_note_request(const struct source_tick *tick, struct source_thread *thread, bool is_sent)
{
    enum { UNSENT_MAX = 8 };
    thread->waits.unsent = is_sent ? 0 : thread->waits.unsent + 1;
    if (thread->waits.unsent >= UNSENT_MAX) run_queue_waits_leave_alone(tick, thread);
}

void run_queue_waits_note_reply(struct source_thread *thread, bool was_in_call)
{
    thread->waits.has_replied = true;
    run_queue_waits_note_place(&thread->waits, was_in_call);
}
