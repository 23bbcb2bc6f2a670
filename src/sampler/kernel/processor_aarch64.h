/* AArch64. Included by sampler/kernel/processor.h.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PROCESSOR_AARCH64_H
#define OFFBEAT_SAMPLER_PROCESSOR_AARCH64_H

#include "base/kernel.h"
#include "unwind/machine.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

/* Lets the processor's other thread run, in a loop that waits. */
static inline void processor_relax(void)
{
    __asm__ volatile("yield");
}

/* The vdso's clock_gettime (vdso(7)). */
#define PROCESSOR_VDSO_CLOCK "__kernel_clock_gettime"

/* --- System calls ------------------------------------------------------------------------------------------------- */

enum { PROCESSOR_CALL_BYTES = 4 };

/* Returns true if CODE is the instruction of a system call, svc #0. */
static inline bool processor_is_call(const uint8_t code[PROCESSOR_CALL_BYTES])
{
    return code[0] == 0x01 && code[1] == 0x00 && code[2] == 0x00 && code[3] == 0xd4;
}

/* Returns the register that holds the result of a system call. */
static inline uint64_t processor_call_result(const struct unwind_registers *registers)
{
    return registers->values[MACHINE_X0];
}

/* Returns the register that holds the number of a system call which begins again. */
static inline uint64_t processor_call_number(const struct unwind_registers *registers)
{
    return registers->values[MACHINE_X0 + 8];
}

/* --- Signals ------------------------------------------------------------------------------------------------------ */

/* Returns the size of a signal's frame, which depends on the vector registers of the processor. */
static inline size_t processor_signal_frame_bytes(void)
{
    enum { OLDER_KERNEL = 5120 /* before 4.18: MINSIGSTKSZ of the architecture */ };
    size_t bytes = getauxval(AT_MINSIGSTKSZ);
    return bytes > 0 ? bytes : OLDER_KERNEL;
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

/* Thread-local variables are above the thread pointer; below it is libc's description of the thread. The guard of
 * stacks is a global variable (ELF for the Arm 64-bit architecture §8, glibc's tcbhead_t). */
static inline uint8_t *processor_thread_pointer(void)
{
    return __builtin_thread_pointer();
}

/* Returns how many bytes around a thread pointer hold the variable VARIABLE of this thread, SLACK more of them, and
 * BLOCK_BYTES of libc's description: *RET_BELOW below the pointer. */
static inline size_t processor_thread_bytes(const void *variable, size_t slack, size_t block_bytes, size_t *ret_below)
{
    *ret_below = block_bytes;
    return block_bytes + (size_t)((uintptr_t)variable - (uintptr_t)processor_thread_pointer()) + slack;
}

/* Fills the zeroed block at POINTER, a new thread's pointer: no thread's block refers to itself. */
static inline void processor_thread_block_fill(uint8_t *pointer)
{
    (void)pointer;
}

#endif
