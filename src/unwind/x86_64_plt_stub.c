/* SPDX-License-Identifier: MIT */
#include "unwind/plt_stub.h"

/* A stub is "[endbr64] [bnd] jmp *slot(%rip)". */
uint64_t plt_stub_slot(const struct unwind_code *code, uint64_t address)
{
    const uint32_t endbr64 = 0xfa1e0ff3;
    uint8_t bytes[12];
    uint32_t first;
    size_t at = 0;
    if (!code->read(code->context, address, bytes, sizeof(bytes))) return 0;
    memcpy(&first, bytes, sizeof(first));
    if (first == endbr64) at += sizeof(first);
    if (bytes[at] == 0xf2) at++;
    if (bytes[at] != 0xff || bytes[at + 1] != 0x25) return 0;
    return address_at_distance(bytes + at + 2, address + at + 6);
}

bool plt_stub_holds(const struct unwind_code *code, uint64_t address)
{
    return plt_stub_slot(code, address) != 0;
}

bool is_register_jump(const struct unwind_code *code, uint64_t last)
{
    enum { JUMP = 0xff, THROUGH_REGISTER = 0xe0, REGISTER_MASK = 0xf8 };
    uint8_t bytes[2];
    if (!code->read(code->context, last - 1, bytes, sizeof(bytes))) return false;
    return bytes[0] == JUMP && (bytes[1] & REGISTER_MASK) == THROUGH_REGISTER;
}

bool clears_frame_pointer(const struct unwind_code *code, uint64_t address)
{
    enum { BEFORE = 48, XOR = 0x31, XOR_TOO = 0x33, EBP_EBP = 0xed };
    uint8_t bytes[BEFORE];
    size_t size = sizeof(bytes); /* less where the code begins with a page */
    while (size > 0 && !code->read(code->context, address - size, bytes, size)) size /= 2;
    for (size_t i = 0; i + 1 < size; i++) {
        if ((bytes[i] == XOR || bytes[i] == XOR_TOO) && bytes[i + 1] == EBP_EBP) return true;
    }
    return false;
}

/* The vdso of this processor has no such code: libc's has rules. */
bool is_signal_return(const struct unwind_code *code, uint64_t address)
{
    (void)code;
    (void)address;
    return false;
}
