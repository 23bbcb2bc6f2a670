/* x86-64. Included by sampler/kernel/processor.h.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PROCESSOR_X86_64_H
#define OFFBEAT_SAMPLER_PROCESSOR_X86_64_H

#include "base/kernel.h"
#include "unwind/machine.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

/* Lets the processor's other thread run, in a loop that waits. */
static inline void processor_relax(void)
{
    __builtin_ia32_pause();
}

/* The vdso's clock_gettime (vdso(7)). */
#define PROCESSOR_VDSO_CLOCK "__vdso_clock_gettime"

/* --- System calls ------------------------------------------------------------------------------------------------- */

enum { PROCESSOR_CALL_BYTES = 2 };

/* Returns true if CODE is the instruction of a system call. */
static inline bool processor_is_call(const uint8_t code[PROCESSOR_CALL_BYTES])
{
    return code[0] == 0x0f && code[1] == 0x05;
}

/* Returns the register that holds the result of a system call. */
static inline uint64_t processor_call_result(const struct unwind_registers *registers)
{
    return registers->values[MACHINE_RAX];
}

/* Returns the register that holds the number of a system call which begins again. */
static inline uint64_t processor_call_number(const struct unwind_registers *registers)
{
    return registers->values[MACHINE_RAX];
}

/* --- Signals ------------------------------------------------------------------------------------------------------ */

/* Returns the size of a signal's frame. AT_MINSIGSTKSZ counts the tiles of AMX for every process. The kernel writes
 * them only for one that asked for them, and denies that as long as a thread's alternate stack is too small for them
 * (Documentation/arch/x86/xstate.rst). */
static inline size_t processor_signal_frame_bytes(void)
{
    enum { GET_PERMITTED = 0x1022 /* ARCH_GET_XCOMP_PERM */, TILES_BIT = 18, TILES_BYTES = 8192, OLDER_KERNEL = 2048 };
    uint64_t permitted = 0;
    size_t bytes = getauxval(AT_MINSIGSTKSZ);
    bool has_tiles = kernel_call3(SYS_arch_prctl, GET_PERMITTED, kernel_address(&permitted), 0) != 0 ||
                     (permitted >> TILES_BIT & 1) != 0;
    if (bytes == 0) return OLDER_KERNEL;
    return bytes > TILES_BYTES && !has_tiles ? bytes - TILES_BYTES : bytes;
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

/* Thread-local variables are below the thread pointer; from it upwards is libc's description of the thread. */
static inline uint8_t *processor_thread_pointer(void)
{
    uint8_t *pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

/* The words of the thread control block that code may read on any thread (the x86-64 TLS ABI, and glibc's tcbhead_t).
 */
struct processor_thread_block {
    void *self;
    void *dynamic_storage; /* none */
    void *self_again;
    uint64_t single[2];
    uint64_t stack_guard;
};

/* Returns how many bytes around a thread pointer hold the variable VARIABLE of this thread, SLACK more of them, and
 * BLOCK_BYTES of libc's description: *RET_BELOW below the pointer. */
static inline size_t processor_thread_bytes(const void *variable, size_t slack, size_t block_bytes, size_t *ret_below)
{
    *ret_below = (size_t)((uintptr_t)processor_thread_pointer() - (uintptr_t)variable) + slack;
    return *ret_below + block_bytes;
}

/* Fills the zeroed block at POINTER, a new thread's pointer, by that of this thread. */
static inline void processor_thread_block_fill(uint8_t *pointer)
{
    struct processor_thread_block *block = (void *)pointer;
    const struct processor_thread_block *ours = (const void *)processor_thread_pointer();
    block->self = block->self_again = block;
    block->stack_guard = ours->stack_guard;
}

#endif
