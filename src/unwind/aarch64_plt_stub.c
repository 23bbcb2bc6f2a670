/* SPDX-License-Identifier: MIT */
#include "unwind/plt_stub.h"

enum { INSTRUCTION = 4, BTI_C = 0xd503245f };

static bool read_instructions(const struct unwind_code *code, uint64_t address, uint32_t *instructions, size_t count)
{
    return code->read(code->context, address, instructions, count * INSTRUCTION);
}

/* A stub is "[bti c] adrp x16, page; ldr x17, [x16, offset]; add x16, x16, offset; br x17", where br may be
 * authenticated by x16 before. */
uint64_t plt_stub_slot(const struct unwind_code *code, uint64_t address)
{
    enum { ADRP_X16_MASK = 0x9f00001fu, ADRP_X16 = 0x90000010, LDR_X17_MASK = 0xffc003ffu, LDR_X17 = 0xf9400211 };
    uint32_t words[2];
    if (!read_instructions(code, address, words, 1)) return 0;
    if (words[0] == BTI_C) address += INSTRUCTION;
    if (!read_instructions(code, address, words, 2)) return 0;
    if ((words[0] & ADRP_X16_MASK) != ADRP_X16 || (words[1] & LDR_X17_MASK) != LDR_X17) return 0;
    /* The distance in pages has 21 bits: the lowest two are bits 29 and 30, the others are bits 5 to 23. */
    uint64_t pages = (words[0] >> 3 & 0x1ffffc) | (words[0] >> 29 & 3);
    int64_t distance = (int64_t)(pages << 43) >> 31;
    uint64_t offset = (words[1] >> 10 & 0xfff) * sizeof(uint64_t);
    return (address & ~(uint64_t)0xfff) + (uint64_t)distance + offset;
}

bool plt_stub_holds(const struct unwind_code *code, uint64_t address)
{
    enum { INSTRUCTIONS_BEFORE = 5 };
    for (unsigned i = 0; i < INSTRUCTIONS_BEFORE; i++) {
        uint32_t word = 0;
        if (address < i * INSTRUCTION) return false;
        if (plt_stub_slot(code, address - i * INSTRUCTION) != 0) return true;
        /* Behind the end of a stub there is another one, or other code. */
        if (i > 0 && is_register_jump(code, address - (i - 1) * INSTRUCTION - 1)) return false;
        if (!read_instructions(code, address - i * INSTRUCTION, &word, 1)) return false;
    }
    return false;
}

bool is_register_jump(const struct unwind_code *code, uint64_t last)
{
    enum { BR_MASK = 0xfffffc1fu, BR = 0xd61f0000u };
    uint32_t word = 0;
    return last + 1 >= INSTRUCTION && read_instructions(code, last + 1 - INSTRUCTION, &word, 1) &&
           (word & BR_MASK) == BR;
}

bool clears_frame_pointer(const struct unwind_code *code, uint64_t address)
{
    enum { INSTRUCTIONS_BEFORE = 12, MOV_X29_0 = 0xd280001du, MOV_X29_XZR = 0xaa1f03fdu };
    uint64_t last = address & ~(uint64_t)(INSTRUCTION - 1);
    uint32_t word = 0;
    for (unsigned i = 0; i <= INSTRUCTIONS_BEFORE; i++) {
        if (!read_instructions(code, last - i * INSTRUCTION, &word, 1)) return false;
        if (word == MOV_X29_0 || word == MOV_X29_XZR) return true;
    }
    return false;
}

bool is_signal_return(const struct unwind_code *code, uint64_t address)
{
    enum { MOV_X8_SIGRETURN = 0xd2801168u, SVC = 0xd4000001u };
    uint32_t words[2];
    return read_instructions(code, address, words, 2) && words[0] == MOV_X8_SIGRETURN && words[1] == SVC;
}
