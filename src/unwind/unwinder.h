/* Unwinders of all supported processors, for tools that read files of other machines. A tool chooses one by the ELF
 * file or by the recording. The sampler calls the functions of its own processor directly.  SPDX-License-Identifier:
 * MIT */
#ifndef OFFBEAT_UNWIND_UNWINDER_H
#define OFFBEAT_UNWIND_UNWINDER_H

#include "unwind/unwind.h"

/* Registers of a thread in the order of the processor's perf_regs.h. */
struct perf_registers {
    uint64_t mask;       /* bit i: register i of that order is known */
    const uint8_t *data; /* values of the known registers, 8 bytes each */
};

struct unwinder {
    uint16_t elf_machine; /* EM_… */
    const char *name;     /* name of the processor that uname gives and perf.data has */
    bool (*build)(const struct frame_table_source *source, struct frame_table *ret_table); /* frame_table_build */
    /* unwind_walk. Returns UNWIND_UNKNOWN_REGISTER without any address if IP or SP is unknown. */
    enum unwind_outcome (*walk)(const struct unwind_modules *modules, struct perf_registers registers,
                                struct unwind_memory *memory, uint64_t *addresses, size_t addresses_max,
                                size_t *ret_count);
    unsigned perf_ip, perf_sp; /* numbers in the order of perf_regs.h */
};

/* Returns NULL for other processors. The results are static. */
const struct unwinder *unwinder_of_elf(uint16_t elf_machine);
const struct unwinder *unwinder_named(const char *name, size_t size);

static inline bool perf_registers_have(const struct unwinder *unwinder, uint64_t mask)
{
    return (mask >> unwinder->perf_ip & 1) && (mask >> unwinder->perf_sp & 1);
}

/* Returns the value of register NUMBER, which is known. */
static inline uint64_t perf_register_at(struct perf_registers registers, unsigned number)
{
    uint64_t value, below = registers.mask & (((uint64_t)1 << number) - 1);
    memcpy(&value, registers.data + (size_t)__builtin_popcountll(below) * sizeof(value), sizeof(value));
    return value;
}

#endif
