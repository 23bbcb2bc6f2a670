/* Source: Arm Architecture Reference Manual, C6.2: B, B.cond, BL, BLR.  SPDX-License-Identifier: MIT */
#include "unwind/call_site_private.h"

enum { INSTRUCTION = 4 };

static uint32_t instruction_at(const struct unwind_code *code, uint64_t address)
{
    uint32_t word = 0;
    return code->read(code->context, address, &word, sizeof(word)) ? word : 0;
}

uint64_t machine_branch_target(uint32_t instruction, enum branch branch, uint64_t address)
{
    enum { MASK = 0xfc000000u, SIGN_SHIFT = 32 - 26 };
    if ((instruction & MASK) != (uint32_t)branch) return 0;
    return address + (uint64_t)((int64_t)(int32_t)(instruction << SIGN_SHIFT) >> SIGN_SHIFT) * INSTRUCTION;
}

uint64_t machine_call_target(const struct unwind_code *code, uint64_t return_address)
{
    uint64_t at = return_address - INSTRUCTION;
    return return_address < INSTRUCTION ? 0 : machine_branch_target(instruction_at(code, at), BRANCH_AND_LINK, at);
}

/* Conditional branches reach only 1 MB, and compilers do not leave a function by them. */
bool machine_jumps_into(const struct unwind_code *code, uint64_t function, uint64_t low, uint64_t high)
{
    enum { BYTES_MAX = 2048, STEP = 64 };
    uint32_t words[STEP];
    for (uint64_t at = function; at < function + BYTES_MAX; at += sizeof(words)) {
        if (!code->read(code->context, at, words, sizeof(words))) return false;
        for (size_t i = 0; i < STEP; i++) {
            uint64_t target = machine_branch_target(words[i], BRANCH, at + i * INSTRUCTION);
            if (target != 0) target = after_stub(code, target);
            if (target != 0 && target >= low && target <= high) return true;
        }
    }
    return false;
}

/* BLR, and its variants that authenticate the address. */
bool call_site_is_indirect(const struct unwind_code *code, uint64_t return_address)
{
    enum { MASK = 0xfefff000u, BLR = 0xd63f0000u };
    return return_address >= INSTRUCTION && (instruction_at(code, return_address - INSTRUCTION) & MASK) == BLR;
}
