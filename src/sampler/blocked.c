/* /proc/self/task/TID/syscall holds the stack pointer and the program counter of a thread that sleeps in the kernel
 * (proc(5)); frame tables need no more, save where a frame is found by its frame pointer. The stack is copied in
 * blocks, because the thread can end, and its stack go, at any time.  SPDX-License-Identifier: MIT */
#include "sampler/blocked.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "sampler/self.h"

enum { BLOCK = 16 << 10 };

struct copied_stack {
    uint64_t words[BLOCK / 8];
};

static bool copy_from(struct unwind_memory *memory, uint64_t address)
{
    struct copied_stack *stack = memory->context;
    size_t got = self_read_memory(address, stack->words, sizeof(stack->words));
    memory->low = address;
    memory->high = address + got / 8 * 8;
    memory->shift = (uint64_t)(uintptr_t)stack->words - address;
    return got >= 8;
}

/* The first block begins a little below the stack pointer, where registers lie that were just taken off the stack. */
static bool copy_block(struct unwind_memory *memory, uint64_t address)
{
    enum { BELOW = 128 };
    if (address % 8 != 0) return false;
    bool is_first = memory->high == 0 && address > BELOW;
    if (is_first && copy_from(memory, address - BELOW) && memory->high >= address + 8) return true;
    return copy_from(memory, address);
}

static bool read_code(void *context, uint64_t address, void *bytes, size_t size)
{
    return self_read_memory(address, bytes, size) == size;
}

static bool read_syscall(struct watched_thread *thread, char *text, size_t size)
{
    int file = thread_syscall_file(thread);
    ssize_t got = file < 0 ? -1 : kernel_read_at(file, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    thread_release_syscall_file(thread, file);
    return got > 0;
}

bool blocked_is_running(struct watched_thread *thread)
{
    char text[256];
    return !read_syscall(thread, text, sizeof(text)) || text[0] == 'r';
}

/* A thread that comes back from sigwait takes what is sent to it as long as it is on its way, which can last where
 * processors are scarce: it is left alone for some of its own time. */
static bool note_sigwait(struct watched_thread *thread, const char *text, uint64_t cpu_ns)
{
    enum { LEFT_ALONE_NS = 10000000 };
    if (plain_parse(&text, 10) != SYS_rt_sigtimedwait || *text != ' ') return false;
    thread->no_signal_until_cpu_ns = cpu_ns + LEFT_ALONE_NS;
    return true;
}

bool blocked_awaits_signals(struct watched_thread *thread, uint64_t cpu_ns)
{
    char text[256];
    return read_syscall(thread, text, sizeof(text)) && note_sigwait(thread, text, cpu_ns);
}

/* "NUMBER 0x… (six arguments) 0xSP 0xPC", "-1 0xSP 0xPC" outside of a system call, or "running". */
static bool parse_place(const char *text, uint64_t *ret_sp, uint64_t *ret_pc)
{
    const char *last_blank = strrchr(text, ' ');
    if (!last_blank || last_blank == text) return false;
    const char *place = last_blank + 1;
    *ret_pc = plain_parse(&place, 16);
    const char *blank = last_blank - 1;
    while (blank > text && *blank != ' ') blank--;
    place = blank + (*blank == ' ');
    *ret_sp = plain_parse(&place, 16);
    return *ret_sp != 0 && *ret_pc != 0;
}

enum blocked_result blocked_walk(struct watched_thread *thread, uint64_t cpu_ns, const struct unwind_modules *modules,
                                 uint64_t addresses[RECORDING_FRAMES_MAX], size_t *ret_count,
                                 enum unwind_outcome *ret_outcome)
{
    static struct copied_stack stack; /* the sampler thread's alone */
    char text[256];
    if (!read_syscall(thread, text, sizeof(text))) return BLOCKED_REFUSED;
    struct unwind_registers registers = {.known = 1u << MACHINE_IP | 1u << MACHINE_SP};
    if (!parse_place(text, &registers.values[MACHINE_SP], &registers.values[MACHINE_IP])) return BLOCKED_RUNNING;

    bool is_in_sigwait = note_sigwait(thread, text, cpu_ns);
    struct unwind_memory memory = {.extend = copy_block, .context = &stack};
    const struct unwind_code code = {.read = read_code};
    size_t recovered = 0;
    *ret_outcome = unwind_walk_without_registers(modules, &registers, &memory, &code, addresses, RECORDING_FRAMES_MAX,
                                                 ret_count, &recovered);
    uint64_t cpu_ns_after = 0;
    if (!thread_cpu_ns(thread->tid, &cpu_ns_after) || cpu_ns_after != cpu_ns) return BLOCKED_RUNNING;
    if (*ret_outcome == UNWIND_PENDING) return BLOCKED_PENDING;
    bool is_incomplete = *ret_outcome == UNWIND_UNKNOWN_REGISTER || *ret_outcome == UNWIND_NO_TABLE;
    if (is_incomplete && !is_in_sigwait) return BLOCKED_NEEDS_SIGNAL;
    return BLOCKED_WALKED;
}
