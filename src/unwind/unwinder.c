/* The chosen machine as a struct unwinder.  SPDX-License-Identifier: MIT */
#include "unwind/unwinder_private.h"

static enum unwind_outcome walk(const struct unwind_modules *modules, struct perf_registers registers,
                                struct unwind_memory *memory, uint64_t *addresses, size_t addresses_max,
                                size_t *ret_count)
{
    struct unwind_registers own = {.known = 0};
    *ret_count = 0;
    uint64_t left = perf_registers_mask;
    for (unsigned i = 0; i < PERF_REGISTERS; i++, left &= left - 1) {
        unsigned number = (unsigned)__builtin_ctzll(left);
        if (!(registers.mask >> number & 1)) continue;
        own.values[machine_of_perf[i]] = perf_register_at(registers, number);
        own.known |= 1u << machine_of_perf[i];
    }
    if (!perf_registers_have(&unwinder_of_chosen_machine, registers.mask)) return UNWIND_UNKNOWN_REGISTER;
    return unwind_walk(modules, &own, memory, NULL, addresses, addresses_max, ret_count);
}

const struct unwinder unwinder_of_chosen_machine = {
    .elf_machine = MACHINE_ELF,
    .name = MACHINE_NAME,
    .build = frame_table_build,
    .walk = walk,
    .perf_ip = PERF_IP,
    .perf_sp = PERF_SP,
};
