/* SPDX-License-Identifier: MIT */
#include "sampler/slots.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "sampler/process_info.h"
#include "sampler/threads.h"

static struct slot *slots;        /* stay forever: a late answer may come at any time */
static _Atomic uint32_t used_end; /* no slot from here on was ever taken */
static uint32_t free_slots[SLOTS_MAX];
static uint32_t free_count;
static uint32_t left_count; /* of slots that were given back while they were written to */

bool slots_prepare(void)
{
    if (!slots) slots = pages_allocate(SLOTS_MAX * sizeof(struct slot));
    if (!slots) return false;
    free_count = left_count = 0;
    for (uint32_t i = SLOTS_MAX; i > 0; i--) free_slots[free_count++] = i - 1;
    return true;
}

void slots_forget(void)
{
    pages_free(slots, SLOTS_MAX * sizeof(struct slot));
    slots = NULL;
    atomic_store(&used_end, 0);
}

bool slots_install_handler(void)
{
    return signal_handler_install(slots, SLOTS_MAX);
}

/* Not 0: what the program's own timers carry must name no request. */
enum { FIRST_GENERATION = 0x4f4254 };

static uint64_t generation_of(const struct slot *slot)
{
    uint64_t generation = atomic_load_explicit(&slot->state, memory_order_relaxed) >> 2;
    return generation ? generation : FIRST_GENERATION;
}

enum slot_phase slot_phase_of(const struct slot *slot)
{
    return (enum slot_phase)(atomic_load_explicit(&slot->state, memory_order_acquire) & 3);
}

bool slots_hold_stack(uint64_t stack_pointer)
{
    return stack_pointer - (uint64_t)(uintptr_t)slots < SLOTS_MAX * sizeof(struct slot);
}

static void empty(struct slot *slot)
{
    slot->answer_count = 0;
    slot->long_calls = (struct slot_long_calls){0};
}

struct slot *slot_take(pid_t thread, const struct unwind_modules *modules, enum slot_reading reading)
{
    if (free_count == 0) return NULL;
    uint32_t index = free_slots[--free_count];
    struct slot *slot = &slots[index];
    if (index >= atomic_load(&used_end)) atomic_store(&used_end, index + 1);
    slot->modules = modules;
    slot->is_left = false;
    empty(slot);
    atomic_store(&slot->is_sent, false);
    atomic_store(&slot->thread, thread);
    slot->reading = reading;
    atomic_store_explicit(&slot->state, slot_state(generation_of(slot) + 1, SLOT_REQUESTED), memory_order_release);
    return slot;
}

static void delete_timer(struct slot *slot)
{
    int timer = atomic_exchange(&slot->timer, 0);
    if (timer > 0) (void)kernel_call3(SYS_timer_delete, timer - 1, 0, 0);
}

static bool change_phase(struct slot *slot, enum slot_phase from, enum slot_phase to)
{
    uint64_t generation = generation_of(slot), expected = slot_state(generation, from);
    return atomic_compare_exchange_strong(&slot->state, &expected, slot_state(generation, to));
}

/* False if it is being written to at this instant. */
static bool make_free(struct slot *slot)
{
    bool is_ours = change_phase(slot, SLOT_REQUESTED, SLOT_FREE) || change_phase(slot, SLOT_DONE, SLOT_FREE) ||
                   slot_phase_of(slot) == SLOT_FREE;
    if (is_ours) free_slots[free_count++] = (uint32_t)(slot - slots);
    return is_ours;
}

void slot_give_back(struct slot *slot)
{
    delete_timer(slot);
    slot->is_left = !make_free(slot);
    left_count += slot->is_left;
}

/* Those whose threads have written their answers since, which nobody waits for. */
static void take_left_back(void)
{
    for (uint32_t i = 0; i < used_end && left_count > 0; i++) {
        if (!slots[i].is_left || !make_free(&slots[i])) continue;
        slots[i].is_left = false;
        left_count--;
    }
}

static void *cookie_of(const struct slot *slot)
{
    return (void *)(uintptr_t)slot_cookie((uint32_t)(slot - slots), generation_of(slot));
}

bool slot_send(struct slot *slot, int number)
{
    siginfo_t information = {0};
    information.si_signo = number;
    information.si_code = SIGNAL_CODE;
    information.si_pid = process_id();
    information.si_uid = (uid_t)kernel_call3(SYS_getuid, 0, 0, 0);
    information.si_value.sival_ptr = cookie_of(slot);
    atomic_store(&slot->is_sent, true);
    return kernel_call4(SYS_rt_tgsigqueueinfo, process_id(), slot->thread, number, kernel_address(&information)) == 0;
}

static bool make_timer(struct slot *slot, int number)
{
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number, .sigev_value.sival_ptr = cookie_of(slot)};
    int timer = -1;
    event._sigev_un._tid = slot->thread;
    long result =
        kernel_call3(SYS_timer_create, thread_cpu_clock(slot->thread), kernel_address(&event), kernel_address(&timer));
    if (result == 0) atomic_store(&slot->timer, timer + 1);
    return result == 0;
}

static void start_timer(struct slot *slot, uint64_t interval_ns)
{
    struct timespec interval = {.tv_nsec = (long)interval_ns};
    struct itimerspec when = {.it_value = interval, .it_interval = interval};
    int timer = atomic_load(&slot->timer);
    if (timer > 0) (void)kernel_call4(SYS_timer_settime, timer - 1, 0, kernel_address(&when), 0);
}

bool slot_arm(struct slot *slot, int number, struct slot_timing timing)
{
    atomic_store(&slot->hits[HIT_OUTSIDE], 0);
    atomic_store(&slot->hits[HIT_IN_CALL], 0);
    atomic_store(&slot->intervals, 0);
    slot->chance = (uint64_t)slot->thread * generation_of(slot);
    slot->timing = timing;
    if (!make_timer(slot, number)) return false;
    start_timer(slot, timing.interval_ns);
    return true;
}

bool slot_is_armed(const struct slot *slot)
{
    return atomic_load(&slot->timer) > 0;
}

bool slot_hold(struct slot *slot, struct slot_hits *ret_hits)
{
    if (!change_phase(slot, SLOT_DONE, SLOT_FREE)) return false;
    uint32_t in_call = atomic_exchange(&slot->hits[HIT_IN_CALL], 0);
    uint32_t outside = atomic_exchange(&slot->hits[HIT_OUTSIDE], 0);
    *ret_hits = (struct slot_hits){in_call + outside, in_call, true, atomic_load(&slot->intervals)};
    return true;
}

void slot_prefer(struct slot *slot, enum hit_kind preferred)
{
    atomic_store(&slot->preferred, preferred);
}

void slot_release(struct slot *slot)
{
    empty(slot);
    atomic_store(&slot->state, slot_state(generation_of(slot), SLOT_REQUESTED));
}

bool slot_renew(struct slot *slot, const struct unwind_modules *modules)
{
    enum slot_phase phase = slot_phase_of(slot);
    if (slot->modules == modules) return true;
    if (phase == SLOT_WRITING || !change_phase(slot, phase, SLOT_FREE)) return false;
    slot->modules = modules;
    return change_phase(slot, SLOT_FREE, phase);
}

void slots_disarm(pid_t thread)
{
    if (process_id() != signal_handler_owner()) return; /* a child of vfork shares our memory, but not our timers */
    for (size_t i = 0, end = atomic_load(&used_end); i < end; i++) {
        if (thread == 0 || slots[i].thread == thread) delete_timer(&slots[i]);
    }
}

bool slots_are_sent(void)
{
    if (process_id() != signal_handler_owner()) return false;
    for (size_t i = 0, end = atomic_load(&used_end); i < end; i++) {
        if (atomic_load(&slots[i].is_sent) && slot_phase_of(&slots[i]) == SLOT_REQUESTED) return true;
    }
    return false;
}

uint32_t slots_used(void)
{
    take_left_back();
    return SLOTS_MAX - free_count;
}
