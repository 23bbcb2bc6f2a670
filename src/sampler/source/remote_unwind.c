/* /proc/self/task/TID/syscall holds the stack pointer and the program counter of a thread that sleeps in the kernel
 * (proc(5)); frame tables need no more, except where a frame is found by its frame pointer. The stack is copied in
 * blocks, because the thread and its stack can vanish at any time.  SPDX-License-Identifier: MIT */
#include "sampler/source/remote_unwind.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "sampler/kernel/cpu_clock.h"
#include "sampler/kernel/own_memory.h"
#include "sampler/kernel/processor.h"
#include "sampler/kernel/stack_reader.h"

#include <errno.h>

/* Stack pointer and program counter of a thread that is blocked; 0: nowhere. */
struct blocked_place {
    uint64_t sp, pc;
};

static bool is_syscall(uint64_t address)
{
    uint8_t code[PROCESSOR_CALL_BYTES];
    return process_read_memory(address, code, sizeof(code)) == sizeof(code) && processor_is_call(code);
}

bool registers_are_in_call(const struct unwind_registers *registers)
{
    return is_syscall(registers->values[MACHINE_IP] - PROCESSOR_CALL_BYTES) || registers_are_asleep(registers);
}

bool registers_are_asleep(const struct unwind_registers *registers)
{
    /* A call that slept ends with EINTR, or the program counter is moved back to its instruction, to begin it again. */
    enum { CALL_NUMBERS_END = 1024 };
    uint64_t next = registers->values[MACHINE_IP];
    if ((int64_t)processor_call_result(registers) == -EINTR) return is_syscall(next - PROCESSOR_CALL_BYTES);
    return processor_call_number(registers) < CALL_NUMBERS_END && is_syscall(next);
}

/* Returns true if TEXT of a syscall file is of a thread in sigwait. */
static bool is_in_sigwait(const char *text)
{
    return plain_parse(&text, 10) == SYS_rt_sigtimedwait && *text == ' ';
}

bool thread_awaits_signals(struct thread_files *files, uint64_t cpu_ns, uint64_t *no_signal_until_ns)
{
    char text[256];
    if (!thread_read_syscall(files, text, sizeof(text)) || !is_in_sigwait(text)) return false;
    *no_signal_until_ns = cpu_ns + LEFT_ALONE_NS;
    return true;
}

/* Parses "NUMBER 0x… (six arguments) 0xSP 0xPC", "-1 0xSP 0xPC" outside of a system call, or "running". */
static bool parse_place(const char *text, struct blocked_place *ret_place)
{
    const char *last_blank = strrchr(text, ' ');
    if (!last_blank || last_blank == text) return false;
    const char *place = last_blank + 1;
    ret_place->pc = plain_parse(&place, 16);
    const char *blank = last_blank - 1;
    while (blank > text && *blank != ' ') blank--;
    place = blank + (*blank == ' ');
    ret_place->sp = plain_parse(&place, 16);
    return ret_place->sp != 0 && ret_place->pc != 0;
}

/* Some program counters at which threads sleep. The sampler thread's alone. */
enum { SLEEPING_PLACES = 32 };
static uint64_t sleeping_places[SLEEPING_PLACES];

bool threads_sleep_at(uint64_t pc)
{
    return sleeping_places[pc % SLEEPING_PLACES] == pc;
}

bool thread_is_running(struct thread_files *files)
{
    char text[256];
    struct blocked_place place;
    if (!thread_read_syscall(files, text, sizeof(text)) || text[0] == 'r') return true;
    if (parse_place(text, &place)) sleeping_places[place.pc % SLEEPING_PLACES] = place.pc;
    return false;
}

/* Parses the arguments of the call: registers of the innermost frame, in which vfork keeps its return address. */
static void parse_arguments(const char *text, struct unwind_registers *registers)
{
    if (*text == '-') return; /* in no call */
    const char *blank = strchr(text, ' ');
    for (size_t i = 0; blank && i < sizeof(machine_arguments); i++) {
        const char *at = blank + 1;
        registers->values[machine_arguments[i]] = plain_parse(&at, 16);
        registers->known |= 1u << machine_arguments[i];
        blank = strchr(blank + 1, ' ');
    }
}

enum remote_unwind_result remote_unwind(struct thread_files *files, uint64_t cpu_ns,
                                        const struct unwind_modules *modules, struct remote_stack *ret_stack)
{
    static struct stack_reader stack; /* the sampler thread's alone */
    char text[256];
    ret_stack->awaits_signals = false;
    if (!thread_read_syscall(files, text, sizeof(text))) return REMOTE_DENIED;
    struct blocked_place place;
    if (!parse_place(text, &place)) return REMOTE_RUNNING;
    struct unwind_registers registers = {.known = 1u << MACHINE_IP | 1u << MACHINE_SP};
    registers.values[MACHINE_IP] = place.pc;
    registers.values[MACHINE_SP] = place.sp;
    parse_arguments(text, &registers);
    ret_stack->awaits_signals = is_in_sigwait(text);
    ret_stack->argument = registers.values[machine_arguments[0]];

    struct unwind_memory memory = stack_reader_memory(&stack);
    memory.stack_pointers = ret_stack->stack_pointers;
    size_t recovered = 0;
    enum unwind_outcome outcome = unwind_walk_without_registers(modules, &registers, &memory, ret_stack->addresses,
                                                                RECORDING_FRAMES_MAX, &ret_stack->count, &recovered);
    ret_stack->outcome = outcome;
    bool is_incomplete = outcome == UNWIND_UNKNOWN_REGISTER || outcome == UNWIND_NO_TABLE;
    uint64_t cpu_ns_after = 0;
    if (!thread_cpu_ns(files->tid, &cpu_ns_after) || cpu_ns_after != cpu_ns) return REMOTE_RUNNING;
    if (outcome == UNWIND_PENDING) return REMOTE_PENDING;
    return is_incomplete ? REMOTE_INCOMPLETE : REMOTE_WALKED;
}
