/* SPDX-License-Identifier: MIT */
#include "sampler/slots.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "sampler/self.h"
#include "sampler/signal_stacks.h"

static struct slot *slots; /* stay forever: a late answer may come at any time */
static uint32_t free_slots[SLOTS_MAX];
static uint32_t free_count;

bool slots_prepare(void)
{
    if (!slots) slots = pages_allocate(SLOTS_MAX * sizeof(struct slot));
    if (!slots) return false;
    free_count = 0;
    for (uint32_t i = SLOTS_MAX; i > 0; i--) free_slots[free_count++] = i - 1;
    return true;
}

void slots_forget(void)
{
    pages_free(slots, SLOTS_MAX * sizeof(struct slot));
    slots = NULL;
}

bool slots_install_handler(void)
{
    return signal_handler_install(slots, SLOTS_MAX);
}

static uint64_t generation_of(const struct slot *slot)
{
    return atomic_load_explicit(&slot->state, memory_order_relaxed) >> 2;
}

enum slot_phase slot_phase_of(const struct slot *slot)
{
    return (enum slot_phase)(atomic_load_explicit(&slot->state, memory_order_acquire) & 3);
}

struct slot *slot_take(pid_t thread, const struct unwind_modules *modules, enum slot_reading reading)
{
    if (free_count == 0) return NULL;
    struct slot *slot = &slots[free_slots[--free_count]];
    slot->modules = modules;
    slot->thread = thread;
    slot->reading = reading;
    atomic_store_explicit(&slot->state, slot_state(generation_of(slot) + 1, SLOT_REQUESTED), memory_order_release);
    return slot;
}

/* One that is being written to at this instant, by a thread that is waited for no longer, is left to itself. */
void slot_give_back(struct slot *slot)
{
    uint64_t generation = generation_of(slot);
    uint64_t expected = slot_state(generation, SLOT_REQUESTED);
    bool was_requested = atomic_compare_exchange_strong(&slot->state, &expected, slot_state(generation, SLOT_FREE));
    if (!was_requested && (expected & 3) == SLOT_WRITING) return;
    atomic_store_explicit(&slot->state, slot_state(generation, SLOT_FREE), memory_order_relaxed);
    free_slots[free_count++] = (uint32_t)(slot - slots);
}

bool slot_send(const struct slot *slot, int number)
{
    if (!signal_stacks_before_sending(slot->thread)) return false;
    siginfo_t information = {0};
    information.si_signo = number;
    information.si_code = SIGNAL_CODE;
    information.si_pid = self_pid();
    information.si_uid = (uid_t)kernel_call3(SYS_getuid, 0, 0, 0);
    information.si_value.sival_ptr = (void *)(uintptr_t)slot_cookie((uint32_t)(slot - slots), generation_of(slot));
    long result = kernel_call4(SYS_rt_tgsigqueueinfo, self_pid(), slot->thread, number, kernel_address(&information));
    signal_stacks_sent();
    return result == 0;
}

bool slots_in_use(void)
{
    return free_count < SLOTS_MAX;
}
