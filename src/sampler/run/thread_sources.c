/* SPDX-License-Identifier: MIT */
#include "sampler/run/thread_sources.h"

#include "sampler/run/policy.h"
#include "sampler/run/thread_time.h"
#include "sampler/source/shared_timer.h"

enum { SLEEP_TICKS = 32 }; /* ticks of sleep until a timer is closed: opening one again costs more than keeping it */

/* --- A call of a source ------------------------------------------------------------------------------------------- */

size_t sources_state_bytes(void)
{
    size_t bytes = 0;
    for (size_t i = 0; sources[i]; i++) bytes += (sources[i]->state_bytes + 7) / 8 * 8;
    return bytes;
}

void sources_init(struct target_thread *thread, uint8_t *memory)
{
    thread->source.files = &thread->files;
    for (size_t i = 0; sources[i] && i < SOURCES_MAX; i++) {
        thread->source_states[i] = memory;
        memory += (sources[i]->state_bytes + 7) / 8 * 8;
    }
}

/* Returns what sources see of the open tick, and brings up to date what they see of THREAD's account. */
static struct source_tick view_of(struct sampler *sampler, struct target_thread *thread)
{
    if (thread) {
        const struct ledger *ledger = &thread->ledger;
        thread->source.account = (struct source_account){.cpu_ns = ledger->cpu_ns,
                                                         .written_cpu_ns = ledger->cpu_written_ns,
                                                         .delay_ns = ledger->waits.delay_ns,
                                                         .unwritten_wait_ns = ledger_unwritten_wait_ns(ledger),
                                                         .requests_max = policy_requests_max(sampler, thread),
                                                         .has_run = ledger->records.has_run,
                                                         .is_first_scan = ledger->beginning.is_first_scan};
    }
    return (struct source_tick){.mode = sampler->tick.mode,
                                .period_ns = sampler->tick.period_ns,
                                .begin_ns = sampler->start.ns,
                                .start_ns = sampler->tick.start_ns,
                                .number = sampler->tick.number,
                                .ticks_a_second = sampler->schedule.ticks_a_second,
                                .periods = sampler->schedule.periods_in_tick,
                                .is_late = sampler->schedule.is_late,
                                .is_starved = sampler->tick.is_starved,
                                .limits = &sampler->timers,
                                .spent = &sampler->spent,
                                .random_state = &sampler->random_state,
                                .counters = sampler->counters,
                                .modules = &sampler->modules,
                                .writer = sampler->writer};
}

/* Tells the ledger of THREAD what a call of a source has changed. HAD_TIMER: it had a perf timer before the call. */
static void end_call(struct sampler *sampler, struct target_thread *thread, bool had_timer)
{
    const struct source_loss *lost = &thread->source.lost;
    if (lost->is_there) ledger_write_lost(&sampler->tick, &thread->ledger, lost->cpu_ns, lost->cause);
    thread->source.lost.is_there = false;
    thread->is_asked = thread->source.asked;
    if (had_timer && !thread->source.timer.open) ledger_forget_timer(&thread->ledger);
}

/* --- Offers and needs --------------------------------------------------------------------------------------------- */

void sources_prepare(struct sampler *sampler)
{
    struct source_tick tick = view_of(sampler, NULL);
    for (size_t i = 0; sources[i]; i++) {
        if (sources[i]->prepare) sources[i]->prepare(&tick);
    }
}

static enum source_offer offer_of(struct sampler *sampler, struct target_thread *thread, size_t i)
{
    if (!sources[i]->offer) return SOURCE_NO;
    struct source_tick tick = view_of(sampler, thread);
    bool had_timer = thread->source.timer.open;
    enum source_offer offer = sources[i]->offer(&tick, &thread->source, thread->source_states[i]);
    end_call(sampler, thread, had_timer);
    return offer;
}

enum source_offer sources_offer(struct sampler *sampler, struct target_thread *thread, enum source_sight sight)
{
    enum source_offer best = SOURCE_DENIED;
    for (size_t i = 0; sources[i] && best > SOURCE_WILL_HAVE; i++) {
        enum source_offer offer = sources[i]->sight == sight ? offer_of(sampler, thread, i) : SOURCE_DENIED;
        if (offer < best) best = offer;
    }
    return best;
}

enum source_offer sources_want(struct sampler *sampler, struct target_thread *thread, enum source_sight sight,
                               enum source_need need)
{
    enum source_offer best = SOURCE_DENIED;
    for (size_t i = 0; sources[i]; i++) {
        if (sources[i]->sight != sight || !sources[i]->want) continue;
        struct source_tick tick = view_of(sampler, thread);
        enum source_offer offer = sources[i]->want(&tick, &thread->source, thread->source_states[i], need);
        end_call(sampler, thread, thread->source.timer.open);
        if (offer < best) best = offer;
    }
    return best;
}

void sources_look(struct sampler *sampler, struct target_thread *thread)
{
    for (size_t i = 0; sources[i]; i++) (void)offer_of(sampler, thread, i);
}

/* Has timers see THREAD, which can receive no signal. A thread that blocks signals for a moment, for example while it
 * starts, gets time: its next stack counts for the CPU time until then. */
static void do_without_asking(struct sampler *sampler, struct target_thread *thread)
{
    (void)sources_want(sampler, thread, SOURCE_SEES_RUNNING, SOURCE_WITHOUT_SIGNAL);
    uint64_t cpu_ns = thread->source.clock_ns;
    if (ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) < SOURCE_PERIODS_TO_WAIT * sampler->tick.period_ns) return;
    bool is_in_kernel = timer_sees_user_code(&thread->source);
    if (is_in_kernel) {
        struct source_tick tick = view_of(sampler, thread);
        timer_note_request(&tick, &thread->source);
        sample_credit_give_up(&thread->source.credit);
        cpu_ns = timer_accounted_cpu_ns(&tick, &thread->source, cpu_ns);
    }
    ledger_write_lost(&sampler->tick, &thread->ledger, cpu_ns,
                      is_in_kernel ? RECORDING_LOST_IN_KERNEL : RECORDING_LOST_UNANSWERED);
}

void sources_ask(struct sampler *sampler, struct target_thread *thread, enum source_need need)
{
    if (sources_want(sampler, thread, SOURCE_ASKS, need) == SOURCE_DENIED) do_without_asking(sampler, thread);
}

uint64_t sources_room(struct sampler *sampler, struct target_thread *thread)
{
    uint64_t most = 0;
    struct source_tick tick = view_of(sampler, thread);
    for (size_t i = 0; sources[i] && most == 0; i++) {
        if (sources[i]->room) most = sources[i]->room(&tick, &thread->source, thread->source_states[i]);
    }
    return most;
}

/* --- Taking ------------------------------------------------------------------------------------------------------- */

static void write_stack(struct sampler *sampler, struct target_thread *thread, const struct source_stack *stack,
                        enum source_sight sight)
{
    switch (stack->kind) {
    case SOURCE_STACK_RUNNING:
        thread_time_credit_running(sampler, thread, stack->cpu_ns, &stack->found);
        break;
    case SOURCE_STACK_WAIT:
        if (sight == SOURCE_ASKS)
            sources_credit(sampler, thread, &stack->found);
        else
            thread_time_credit_wait(sampler, thread, &stack->found);
        break;
    case SOURCE_STACK_BLOCKED:
        thread_time_credit_blocked(sampler, thread, false, &stack->found);
        break;
    case SOURCE_STACK_SLEPT: /* it spent no CPU time there */
        if (!sampler_is_cpu_mode(sampler)) thread_time_credit_blocked(sampler, thread, true, &stack->found);
        break;
    case SOURCE_STACK_NONE:
        break;
    }
}

/* Takes the next stack of source NUMBER, and writes it. */
static enum source_offer take_from(struct sampler *sampler, struct target_thread *thread, size_t number)
{
    struct source_stack stack = {.kind = SOURCE_STACK_NONE};
    struct source_tick tick = view_of(sampler, thread);
    bool had_timer = thread->source.timer.open;
    enum source_offer offer = sources[number]->take(&tick, &thread->source, thread->source_states[number], &stack);
    end_call(sampler, thread, had_timer);
    if (offer == SOURCE_HAS) write_stack(sampler, thread, &stack, sources[number]->sight);
    return offer;
}

static void take_all(struct sampler *sampler, struct target_thread *thread, enum source_sight sight)
{
    enum { STACKS_MAX = 64 }; /* more than any source has */
    for (size_t i = 0; sources[i]; i++) {
        for (unsigned n = 0; sources[i]->sight == sight && n < STACKS_MAX; n++) {
            if (take_from(sampler, thread, i) != SOURCE_HAS) break;
        }
    }
}

void sources_credit(struct sampler *sampler, struct target_thread *thread, const struct found_stack *of_wait)
{
    for (size_t i = 0; sources[i]; i++) {
        if (!sources[i]->observe) continue;
        struct source_tick tick = view_of(sampler, thread);
        bool had_timer = thread->source.timer.open;
        sources[i]->observe(&tick, &thread->source, thread->source_states[i]);
        end_call(sampler, thread, had_timer);
    }
    thread_time_read_delay(sampler, thread);
    (void)sources_want(sampler, thread, SOURCE_SEES_WAITS, SOURCE_WHERE_IT_WAITS);
    if (of_wait)
        thread_time_credit_wait(sampler, thread, of_wait);
    else
        take_all(sampler, thread, SOURCE_SEES_WAITS);
    take_all(sampler, thread, SOURCE_SEES_RUNNING);
}

enum source_offer sources_read_blocked(struct sampler *sampler, struct target_thread *thread)
{
    enum source_offer offer = SOURCE_NO;
    for (size_t i = 0; sources[i] && offer == SOURCE_NO; i++) {
        if (sources[i]->sight == SOURCE_SEES_BLOCKED) offer = take_from(sampler, thread, i);
    }
    return offer;
}

void sources_fetch_replies(struct sampler *sampler)
{
    if (sample_requests_used() == 0) return;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct target_thread *thread = sampler->threads.items[i].thread;
        if (thread->is_asked) take_all(sampler, thread, SOURCE_ASKS);
    }
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

void sources_forget(struct sampler *sampler, struct target_thread *thread, enum source_end end)
{
    for (size_t i = 0; sources[i]; i++) {
        struct source_tick tick = view_of(sampler, thread);
        bool had_timer = thread->source.timer.open;
        if (sources[i]->forget) sources[i]->forget(&tick, &thread->source, thread->source_states[i], end);
        end_call(sampler, thread, had_timer);
    }
}

void sources_forget_sleepers(struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct target_thread *thread = sampler->threads.items[i].thread;
        if (thread->ledger.cpu_ns != thread->scan.checked_cpu_ns) {
            thread->scan.checked_cpu_ns = thread->ledger.cpu_ns;
            thread->scan.checked_tick = sampler->tick.number;
        } else if (sampler->tick.number - thread->scan.checked_tick >= SLEEP_TICKS) {
            sources_forget(sampler, thread, SOURCE_END_ASLEEP);
        }
    }
}

bool sources_renew(struct sampler *sampler)
{
    uint32_t renewed = 0;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct sample_request *request = sampler->threads.items[i].thread->source.clock;
        if (request && sample_request_renew(request, sampler->modules.current)) renewed++;
    }
    return renewed == sample_requests_used();
}
