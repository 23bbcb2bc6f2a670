/* Runs in the signal handler of the watched program, on whatever thread and at whatever instruction.
 *
 * The rules: no locks, no allocation, no libc but what is in the allow-list of test/layers (the clock is the vdso's,
 * clock.h), errno untouched, under 1 KB of stack, memory read only where it is known to be mapped. The handler
 * learns what to do from the signal's value, so that it needs neither thread-local storage nor the thread's id; a
 * signal that is not the sampler's goes to the program's own handler. SPDX-License-Identifier: MIT */
#include "sampler/signal_handler.h"

#include "base/kernel.h"
#include "sampler/clock.h"

#include "unwind/context.h"

#include <errno.h>
#include <signal.h>
#include <ucontext.h>

enum { PAGE = 4096 };

static struct slot *handler_slots;
static uint32_t handler_slot_count;
static _Atomic pid_t handler_owner;

/* sigaction as the kernel has it: libc's refuses the signals that it keeps for itself. */
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

/* What the program has for a signal that is ours: at first, and since. */
struct chain {
    struct kernel_action original, present;
};

static struct chain usual, never_blocked;

/* rt_sigprocmask reads the new set before it looks at what to do with it: asked to do nothing that exists, it tells
 * whether 8 bytes can be read, and changes nothing. */
static bool is_readable(uint64_t address)
{
    enum { NO_SUCH_OPERATION = -1, ERROR_FAULT = -14 };
    return kernel_call4(SYS_rt_sigprocmask, NO_SUCH_OPERATION, (long)address, 0, 8) != ERROR_FAULT;
}

static bool extend_to_page(struct unwind_memory *memory, uint64_t address)
{
    if (address % 8 != 0 || !is_readable(address)) return false;
    uint64_t page = address & ~(uint64_t)(PAGE - 1);
    if (page != memory->high) memory->low = page;
    memory->high = page + PAGE;
    return true;
}

void signal_handler_answer(struct slot *slot, const ucontext_t *context)
{
    unwind_prefetch(slot->modules, &slot->past, (uint64_t)context->uc_mcontext.gregs[REG_RIP]);
    slot->time_ns = clock_ns(CLOCK_MONOTONIC);
    struct unwind_registers registers = slot->registers = unwind_registers_of(context);
    uint64_t page = unwind_signal_frame_end(context) & ~(uint64_t)(PAGE - 1); /* mostly that of the stack pointer */
    struct unwind_memory memory = {.low = page, .high = page + PAGE, .extend = extend_to_page};
    slot->outcome = unwind_walk(slot->modules, &registers, &memory, &slot->past, slot->addresses, RECORDING_FRAMES_MAX,
                                &slot->address_count);
}

/* A handler that the program installed after ours may pass on what it gets to the one before it, which is ours again.
 * The kernel clears the end of what it tells of a signal, and nobody uses it. */
static bool is_passed_back(siginfo_t *information)
{
    uint64_t *mark = (uint64_t *)(void *)information + sizeof(*information) / sizeof(uint64_t) - 1;
    bool is_marked = *mark == (uint64_t)(uintptr_t)&usual;
    *mark = (uint64_t)(uintptr_t)&usual;
    return is_marked;
}

/* Ours blocks all signals; the program's is to find those blocked that it wants so. The kernel puts the mask back. */
static void set_mask_for(int number, const struct kernel_action *action, const ucontext_t *context)
{
    uint64_t mask;
    memcpy(&mask, &context->uc_sigmask, sizeof(mask));
    mask |= action->mask;
    if (!(action->flags & SA_NODEFER)) mask |= (uint64_t)1 << (number - 1);
    (void)kernel_call4(SYS_rt_sigprocmask, SIG_SETMASK, kernel_address(&mask), 0, sizeof(mask));
}

static void pass_on(int number, siginfo_t *information, void *context)
{
    const struct chain *chain = number == SIGNAL_NEVER_BLOCKED ? &never_blocked : &usual;
    const struct kernel_action *action = is_passed_back(information) ? &chain->original : &chain->present;
    bool is_default = (uintptr_t)action->handler == (uintptr_t)SIG_DFL;
    bool is_ignored = (uintptr_t)action->handler == (uintptr_t)SIG_IGN;
    if (is_default || is_ignored) return;
    set_mask_for(number, action, context);
    action->handler(number, information, context); /* one that takes fewer arguments does not mind the others */
}

static void handle(int number, siginfo_t *information, void *context)
{
    bool is_request = information->si_code == SI_QUEUE && information->si_pid == handler_owner;
    uint64_t cookie = (uint64_t)(uintptr_t)information->si_value.sival_ptr;
    uint32_t index = cookie & 0xffff;
    if (!is_request || index >= handler_slot_count) {
        pass_on(number, information, context);
        return;
    }
    struct slot *slot = &handler_slots[index];
    uint64_t generation = cookie >> 16;
    uint64_t expected = slot_state(generation, SLOT_REQUESTED);
    if (!atomic_compare_exchange_strong_explicit(&slot->state, &expected, slot_state(generation, SLOT_WRITING),
                                                 memory_order_acquire, memory_order_relaxed)) {
        return; /* taken back */
    }
    signal_handler_answer(slot, context);
    atomic_store_explicit(&slot->state, slot_state(generation, SLOT_DONE), memory_order_release);
}

static bool kernel_action(int number, const struct kernel_action *action, struct kernel_action *ret_old)
{
    return kernel_call4(SYS_rt_sigaction, number, kernel_address(action), kernel_address(ret_old), 8) == 0;
}

static struct kernel_action ours;

/* What the program has for NUMBER is kept, unless it is ours already. The program may install another one meanwhile. */
static bool put_in_front(int number, struct chain *chain)
{
    struct kernel_action present = {0};
    if (!kernel_action(number, NULL, &present)) return false;
    if (present.handler == handle) return true;
    chain->present = present;
    if (!kernel_action(number, &ours, &present)) return false;
    if (present.handler != handle) chain->present = present;
    return true;
}

static bool install_first(int number, struct chain *chain)
{
    bool is_done = put_in_front(number, chain);
    chain->original = chain->present;
    return is_done;
}

/* libc knows where a handler has to return to: it is asked to install ours, and that is taken back at once. All else
 * goes past libc's sigaction, of which sanitizers and the like have their own. */
static bool install(void)
{
    enum { FLAGS = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = FLAGS}, before;
    if (sigaction(SIGNAL_USUAL, &action, &before) != 0 || !kernel_action(SIGNAL_USUAL, NULL, &ours)) return false;
    if (sigaction(SIGNAL_USUAL, &before, NULL) != 0) return false;
    ours.handler = handle;
    ours.flags = FLAGS | (ours.flags & ~(unsigned long)(FLAGS | SA_NODEFER | SA_RESETHAND));
    ours.mask = UINT64_MAX;
    (void)install_first(SIGNAL_NEVER_BLOCKED, &never_blocked);
    return install_first(SIGNAL_USUAL, &usual);
}

bool signal_handler_install(struct slot *slots, uint32_t slot_count)
{
    static bool is_installed;
    handler_slots = slots;
    handler_slot_count = slot_count;
    handler_owner = (pid_t)kernel_call3(SYS_getpid, 0, 0, 0);
    if (!is_installed) is_installed = install();
    return is_installed;
}

void signal_handler_keep(void)
{
    (void)put_in_front(SIGNAL_USUAL, &usual);
    (void)put_in_front(SIGNAL_NEVER_BLOCKED, &never_blocked);
}
