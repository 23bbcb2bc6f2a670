/* Runs in a signal handler of the target program, on any thread and at any instruction.
 *
 * The rules: no locks, no allocation, no libc but what is in the allow-list of test/layers, errno untouched, under 1 KB
 * of stack, which is the request's (signal_entry.S). The handler learns what to do from the signal's value, so that it
 * needs neither thread-local storage nor the thread's id. It ignores signals that are not the sampler's: it is
 * installed only for signals that the kernel ignores, too.
 *
 * Memory. Another thread may unmap any memory but the live part of the interrupted thread's own stack, at any time. An
 * address that a walk reads is not always in that part: code without frame tables may use the frame pointer for
 * anything. So the handler never loads from the interrupted program, except the code that the thread is in:
 * process_vm_readv copies a block into the request, and returns an error if the memory is gone; so does
 * process_vm_writev with pieces of an interpreter's memory (own_pieces.h).
 *
 * Seccomp. The sampler sends no signal to a thread that has added a filter to the filters of its process. A filter that
 * was inherited, as in a container, may kill for process_vm_readv (base/seccomp_filter.h). Then the handler asks
 * rt_sigprocmask, which every program needs, whether memory is readable, and then loads from it. It accepts only the
 * page of the stack pointer and, one after the other, the pages above it, so that a stray frame pointer does not lead
 * it elsewhere. The remaining risk is a thread with an inherited filter that unmaps a page right above another thread's
 * stack. SPDX-License-Identifier: MIT */
#include "sampler/source/signal_handler.h"

#include "base/kernel.h"
#include "sampler/source/call_end.h"
#include "sampler/source/chance.h"
#include "sampler/source/own_pieces.h"
#include "unwind/context.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

enum { PAGE = 4096 };

/* The kernel's struct sigaction: libc's functions reject the signals that libc keeps for itself. */
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

/* --- Reading the stack -------------------------------------------------------------------------------------------- */

/* Copies memory of the process. Returns the number of bytes, or less than 0. */
static long copy_memory(const struct sample_request *request, uint64_t address, void *bytes, size_t size)
{
    struct {
        uint64_t address, size;
    } from = {address, size}, to = {(uint64_t)(uintptr_t)bytes, size};
    return kernel_call6(SYS_process_vm_readv, request->thread, kernel_address(&to), 1, kernel_address(&from), 1, 0);
}

static bool copy_stack_block(struct unwind_memory *memory, uint64_t address)
{
    struct sample_request *request = memory->context;
    if (address % sizeof(uint64_t) != 0) return false;
    long got = copy_memory(request, address, request->handler.words, sizeof(request->handler.words));
    if (got < (long)sizeof(uint64_t)) return false;
    memory->low = address;
    memory->high = address + (uint64_t)got / sizeof(uint64_t) * sizeof(uint64_t);
    memory->shift = (uint64_t)(uintptr_t)request->handler.words - address;
    return true;
}

static bool copy_code(void *context, uint64_t address, void *bytes, size_t size)
{
    return copy_memory(context, address, bytes, size) == (long)size;
}

/* Extends MEMORY by the next page if it is readable. rt_sigprocmask reads the new set before it checks the operation:
 * with an operation that does not exist, it shows whether 8 bytes can be read, and changes nothing. */
static bool probe_next_page(struct unwind_memory *memory, uint64_t address)
{
    enum { NO_SUCH_OPERATION = -1 };
    uint64_t page = address & ~(uint64_t)(PAGE - 1);
    if (address % sizeof(uint64_t) != 0 || page != memory->high) return false;
    if (kernel_call4(SYS_rt_sigprocmask, NO_SUCH_OPERATION, (long)page, 0, 8) == -EFAULT) return false;
    memory->high = page + PAGE;
    return true;
}

static bool deny(struct unwind_memory *memory, uint64_t address)
{
    (void)memory;
    (void)address;
    return false;
}

/* --- The reply ---------------------------------------------------------------------------------------------------- */

static bool gather_memory(const struct process_memory *memory, const struct memory_pieces *pieces)
{
    const struct sample_request *request = memory->context;
    return own_pieces_write(request->thread, pieces);
}

/* Puts the functions that an interpreter runs on this thread into REPLY. */
static void add_functions(struct sample_request *request, struct sample_reply *reply)
{
    struct interpreted_request *interpreted = atomic_load(&request->interpreted);
    const struct process_memory own = {.gather = gather_memory, .context = request};
    const struct process_memory *memory = recalled_memory_begin(&interpreted->recalled, &own, &interpreted->parts);
    bool is_long_call = reply == &request->long_call_reply;
    struct interpreted_stack *stack =
        &interpreted->stacks[is_long_call ? REPLIES_MAX : (size_t)(reply - request->replies)];
    const struct interpreted_process *process = interpreted->process;
    struct interpreted_thread thread = {.state = atomic_load(&interpreted->thread_state),
                                        .identity = atomic_load(&interpreted->thread_identity)};
    reply->functions_result =
        process->state.interpreter->read(&process->state, thread, memory, &interpreted->work, stack);
    recalled_memory_end(&interpreted->recalled, &interpreted->parts);
    if (reply->functions_result != INTERPRETED_READ) return;
    const struct native_stack native = {.addresses = reply->addresses,
                                        .stack_pointers = interpreted->stack_pointers,
                                        .count = reply->address_count,
                                        .has_root = reply->outcome == UNWIND_ROOT};
    size_t count =
        merge_stacks(&native, stack, &process->view, RECORDING_PLACES, interpreted->merged, RECORDING_FRAMES_MAX);
    if (count == 0) {
        reply->functions_result = INTERPRETED_TORN;
        return;
    }
    for (size_t i = 0; i < count; i++) reply->addresses[i] = interpreted->merged[i];
    reply->address_count = count;
    reply->functions = stack;
}

static void write_reply(struct sample_request *request, struct sample_reply *reply, const ucontext_t *context)
{
    unwind_prefetch(request->modules, &request->handler.resume_cache, context_ip(context));
    struct unwind_registers registers = reply->registers = unwind_registers_of(context);
    const struct unwind_code code = {.read = copy_code, .context = request};
    struct interpreted_request *interpreted = atomic_load(&request->interpreted);
    struct unwind_memory memory = {
        .extend = copy_stack_block, .context = request, .work = &request->handler.work, .code = &code};
    bool has_functions = interpreted && atomic_load(&interpreted->thread_state) != 0;
    if (has_functions) memory.stack_pointers = interpreted->stack_pointers;
    if (may_have_new_filter(request->modules, context)) {
        memory.extend = deny;
        memory.code = NULL;
        has_functions = false;
    } else if (request->reading == READ_BY_PROBE) {
        memory.low = memory.high = registers.values[MACHINE_SP] & ~(uint64_t)(PAGE - 1);
        memory.extend = probe_next_page;
        memory.code = NULL;
        has_functions = false;
    }
    reply->outcome = unwind_walk(request->modules, &registers, &memory, &request->handler.resume_cache,
                                 reply->addresses, RECORDING_FRAMES_MAX, &reply->address_count);
    reply->functions = NULL;
    reply->functions_result = INTERPRETED_NOTHING;
    if (has_functions && reply->outcome != UNWIND_PENDING) add_functions(request, reply);
}

/* --- The choice of replies ---------------------------------------------------------------------------------------- */

/* Returns the number of signals since the replies were read, apart from long calls, whose replies can be kept: those of
 * the preferred origin if there are any, else all. 0: the reply to this signal, of origin ORIGIN, cannot. */
static uint32_t candidates(const struct sample_request *request, enum signal_origin origin)
{
    uint32_t signals = atomic_load(&request->timer.signals[origin]),
             others = atomic_load(&request->timer.signals[!origin]);
    uint32_t preferred = atomic_load(&request->timer.preferred);
    if (preferred == (uint32_t)origin) return signals;
    return preferred == ORIGIN_ANY || others == 0 ? signals + others - request->long_calls.count : 0;
}

/* Returns the place for the reply to this signal; REPLIES_MAX: it is dropped. The choice does not depend on what the
 * thread does, so no reply is more likely than another one. One is kept of the signals in a period. If the sampler
 * thread gets no processor for so long that there is no room for more, each signal has the same chance. Of the
 * preferred origin (sample_credit.h) there is always one. */
static uint32_t choose_place(struct sample_request *request, enum signal_origin origin)
{
    bool prefers = atomic_load(&request->timer.preferred) != ORIGIN_ANY;
    uint32_t most = prefers ? 1 : REPLIES_MAX;
    if (origin == ORIGIN_ANY || request->reply_count == 0) return 0;
    uint32_t signals = candidates(request, origin);
    if (signals == 0) return REPLIES_MAX;
    uint32_t group = request->timer.timing.signals_a_reply;
    uint32_t place = (signals - 1) / group, among = (signals - 1) % group + 1;
    if (place >= most) {
        place = (uint32_t)(chance_number(&request->timer.chance) % signals);
        if (place >= most) return REPLIES_MAX;
    } else if (chance_number(&request->timer.chance) % among > 0) {
        return REPLIES_MAX;
    }
    return place < request->reply_count ? place : request->reply_count;
}

void signal_handler_reply(struct sample_request *request, const ucontext_t *context, enum signal_origin origin,
                          uint64_t intervals)
{
    uint32_t long_call_intervals = request->timer.timing.long_call_intervals;
    if (origin == ORIGIN_IN_CALL && long_call_intervals > 0 && intervals >= long_call_intervals) {
        struct long_calls_total *calls = &request->long_calls;
        calls->count++;
        calls->intervals += intervals;
        bool is_chosen = chance_number(&request->timer.chance) % calls->intervals < intervals;
        if (is_chosen) write_reply(request, &request->long_call_reply, context);
        return;
    }
    uint32_t place = choose_place(request, origin);
    if (place == REPLIES_MAX) return;
    write_reply(request, &request->replies[place], context);
    if (place == request->reply_count) request->reply_count++;
}

/* --- The entry ---------------------------------------------------------------------------------------------------- */

/* Values that signal_entry.S needs, at fixed offsets. */
extern struct signal_entry_layout {
    struct sample_request *const *requests;
    uint64_t stack_end, request_count;
    _Atomic pid_t owner;
    int32_t code;
} signal_entry_layout;

__attribute__((visibility("hidden"))) struct signal_entry_layout signal_entry_layout = {
    .stack_end = offsetof(struct sample_request, handler.stack) + sizeof(((struct sample_request *)0)->handler.stack),
    .code = SIGNAL_CODE,
};
_Static_assert(offsetof(struct signal_entry_layout, stack_end) == 8, "as signal_entry.S has it");
_Static_assert(offsetof(struct signal_entry_layout, request_count) == 16, "as signal_entry.S has it");
_Static_assert(offsetof(struct signal_entry_layout, owner) == 24, "as signal_entry.S has it");
_Static_assert(offsetof(struct signal_entry_layout, code) == 28, "as signal_entry.S has it");
_Static_assert(offsetof(siginfo_t, si_code) == 8 && offsetof(siginfo_t, si_pid) == 16, "as signal_entry.S has it");
_Static_assert(offsetof(siginfo_t, si_overrun) == 20, "as signal_entry.S has it");
_Static_assert(offsetof(siginfo_t, si_value) == 24, "as signal_entry.S has it");
_Static_assert(offsetof(struct sample_request, timer.signals) == 8, "as signal_entry.S has it");
_Static_assert(offsetof(struct sample_request, timer.intervals) == 16, "as signal_entry.S has it");
_Static_assert(ORIGIN_OUTSIDE == 0 && ORIGIN_IN_CALL == 1 && ORIGIN_ANY == 2, "as signal_entry.S has it");
_Static_assert(offsetof(struct sample_request, state) == 0 && sizeof(struct sample_request) % 16 == 0,
               "as signal_entry.S has it");
_Static_assert(SI_TIMER == -2, "as signal_entry.S has it");
_Static_assert(REQUEST_OPEN == 1 && REQUEST_WRITING == 2 && REQUEST_DONE == 3, "as signal_entry.S has it");

__attribute__((visibility("hidden"))) void signal_entry(int number, siginfo_t *information, void *context);

/* --- Installing --------------------------------------------------------------------------------------------------- */

static bool kernel_action(int number, const struct kernel_action *action, struct kernel_action *ret_old)
{
    return kernel_call4(SYS_rt_sigaction, number, kernel_address(action), kernel_address(ret_old), 8) == 0;
}

static enum signal_user user_of(const struct kernel_action *action)
{
    if (action->handler == signal_entry) return SIGNAL_OF_SAMPLER;
    bool is_ignored =
        (uintptr_t)action->handler == (uintptr_t)SIG_DFL || (uintptr_t)action->handler == (uintptr_t)SIG_IGN;
    return is_ignored ? SIGNAL_OF_NOBODY : SIGNAL_OF_PROGRAM;
}

enum signal_user signal_handler_user(int number)
{
    struct kernel_action present = {0};
    return kernel_action(number, NULL, &present) ? user_of(&present) : SIGNAL_OF_PROGRAM;
}

static struct kernel_action ours;

bool signal_handler_is_ready(int number)
{
    struct kernel_action present = {0};
    enum signal_user user = signal_handler_user(number);
    if (user != SIGNAL_OF_NOBODY) return user == SIGNAL_OF_SAMPLER;
    if (!kernel_action(number, &ours, &present)) return false;
    if (user_of(&present) != SIGNAL_OF_PROGRAM) return true;
    (void)kernel_action(number, &present, NULL); /* the program installed its own in between */
    return false;
}

/* Returns a signal that the program does not handle. */
static int find_unused_signal(void)
{
    static const int candidates[] = {SIGNAL_USUAL, SIGNAL_SUBSTITUTE};
    for (size_t i = 0; i < sizeof(candidates) / sizeof(*candidates); i++) {
        if (signal_handler_user(candidates[i]) == SIGNAL_OF_NOBODY) return candidates[i];
    }
    for (int number = _NSIG - 1; number > 32; number--) {
        if (signal_handler_user(number) == SIGNAL_OF_NOBODY) return number;
    }
    return SIGNAL_USUAL;
}

/* libc's own sigaction. Sanitizers replace the other name; theirs prints a warning if it is called before they are
 * ready. */
extern int __sigaction(int number, const struct sigaction *action, struct sigaction *previous);
#pragma weak __sigaction // see sdk/other_libc.c

/* Learns from libc where a handler has to return to: libc is asked to install ours, and that is taken back at once. All
 * other calls go directly to the kernel. */
static bool prepare(void)
{
    enum { FLAGS = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
    struct sigaction action = {.sa_sigaction = signal_entry, .sa_flags = FLAGS}, before;
    int number = find_unused_signal();
    if (__sigaction(number, &action, &before) != 0 || !kernel_action(number, NULL, &ours)) return false;
    if (__sigaction(number, &before, NULL) != 0) return false;
    ours.handler = signal_entry;
    ours.flags = FLAGS | (ours.flags & ~(unsigned long)(FLAGS | SA_NODEFER | SA_RESETHAND));
    ours.mask = UINT64_MAX;
    return true;
}

pid_t signal_handler_owner(void)
{
    return atomic_load(&signal_entry_layout.owner);
}

bool signal_handler_install(struct sample_request *const *requests, uint32_t request_count)
{
    static bool is_prepared;
    signal_entry_layout.requests = requests;
    signal_entry_layout.request_count = request_count;
    signal_entry_layout.owner = (pid_t)kernel_call3(SYS_getpid, 0, 0, 0);
    if (!is_prepared) is_prepared = prepare();
    return is_prepared;
}
