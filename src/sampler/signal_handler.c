/* Runs in the signal handler of the watched program, on whatever thread and at whatever instruction.
 *
 * The rules: no locks, no allocation, no libc but what is in the allow-list of test/layers (clock_gettime, which is a
 * read of the vdso), errno untouched, under 1 KB of stack, memory read only where it is known to be mapped. The handler
 * learns what to do from the signal's value, so that it needs neither thread-local storage nor the thread's id; a
 * signal that is not the sampler's goes to the program's own handler. SPDX-License-Identifier: MIT */
#include "sampler/signal_handler.h"

#include "base/kernel.h"

#include "unwind/context.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

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

static struct kernel_action chained_usual, chained_never_blocked;

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

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now); /* cannot fail with these clocks, and so leaves errno alone */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A call that slept ends with EINTR, or, to be begun again, the program counter is put back onto its instruction. */
static bool was_blocked(const ucontext_t *context)
{
    static const uint8_t syscall_instruction[2] = {0x0f, 0x05};
    const uint8_t *next = (const uint8_t *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    if (memcmp(next, syscall_instruction, sizeof(syscall_instruction)) == 0) return true;
    bool is_at_page_start = (uintptr_t)next % PAGE < sizeof(syscall_instruction);
    return context->uc_mcontext.gregs[REG_RAX] == -EINTR && !is_at_page_start &&
           memcmp(next - sizeof(syscall_instruction), syscall_instruction, sizeof(syscall_instruction)) == 0;
}

static void answer(struct slot *slot, const ucontext_t *context)
{
    slot->time_ns = nanoseconds(CLOCK_MONOTONIC);
    slot->was_blocked = was_blocked(context);
    struct unwind_registers registers = unwind_registers_of(context);
    struct unwind_memory memory = {.extend = extend_to_page};
    slot->outcome =
        unwind_walk(slot->modules, &registers, &memory, slot->addresses, RECORDING_FRAMES_MAX, &slot->address_count);
}

static void pass_on(int number, siginfo_t *information, void *context)
{
    const struct kernel_action *chained = number == SIGNAL_NEVER_BLOCKED ? &chained_never_blocked : &chained_usual;
    bool is_default = (uintptr_t)chained->handler == (uintptr_t)SIG_DFL;
    bool is_ignored = (uintptr_t)chained->handler == (uintptr_t)SIG_IGN;
    /* One that takes fewer arguments does not mind the others. */
    if (!is_default && !is_ignored) chained->handler(number, information, context);
}

static void handle(int number, siginfo_t *information, void *context)
{
    bool is_request = information->si_code == SI_QUEUE || information->si_code == SI_TIMER;
    uint64_t cookie = (uint64_t)(uintptr_t)information->si_value.sival_ptr;
    uint32_t index = cookie & 0xffff;
    if (information->si_code == SI_QUEUE && information->si_pid != handler_owner) is_request = false;
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
    answer(slot, context);
    atomic_store_explicit(&slot->state, slot_state(generation, SLOT_DONE), memory_order_release);
}

static bool kernel_action(int number, const struct kernel_action *action, struct kernel_action *ret_old)
{
    return kernel_call4(SYS_rt_sigaction, number, kernel_address(action), kernel_address(ret_old), 8) == 0;
}

static struct kernel_action ours;

/* What the program has for NUMBER is kept in RET_CHAINED, unless it is ours already. */
static bool put_in_front(int number, struct kernel_action *ret_chained)
{
    struct kernel_action present = {0};
    if (!kernel_action(number, NULL, &present)) return false;
    if (present.handler == handle) return true;
    *ret_chained = present;
    return kernel_action(number, &ours, NULL);
}

/* libc knows where a handler has to return to: what it installs is read back, and serves for both signals. */
static bool install(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    (void)sigfillset(&action.sa_mask);
    if (!kernel_action(SIGNAL_USUAL, NULL, &chained_usual) || sigaction(SIGNAL_USUAL, &action, NULL) != 0) return false;
    if (!kernel_action(SIGNAL_USUAL, NULL, &ours)) return false;
    (void)put_in_front(SIGNAL_NEVER_BLOCKED, &chained_never_blocked);
    return true;
}

bool signal_handler_install(struct slot *slots, uint32_t slot_count)
{
    static bool is_installed;
    handler_slots = slots;
    handler_slot_count = slot_count;
    handler_owner = getpid();
    if (!is_installed) is_installed = install();
    return is_installed;
}

void signal_handler_keep(void)
{
    (void)put_in_front(SIGNAL_USUAL, &chained_usual);
    (void)put_in_front(SIGNAL_NEVER_BLOCKED, &chained_never_blocked);
}
