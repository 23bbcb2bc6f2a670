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

/* The vdso of this processor has no such code: libc's has rules. */
bool is_signal_return(const struct unwind_code *code, uint64_t address)
{
    (void)code;
    (void)address;
    return false;
}
