/* SPDX-License-Identifier: MIT */
#include "unwind/call_site_private.h"
#include "unwind/plt_stub.h"

uint64_t machine_call_target(const struct unwind_code *code, uint64_t return_address)
{
    uint8_t bytes[6];
    uint64_t target = 0;
    if (return_address < sizeof(bytes)) return 0;
    if (!code->read(code->context, return_address - sizeof(bytes), bytes, sizeof(bytes))) return 0;
    if (bytes[0] == 0xff && bytes[1] == 0x15)
        return code->read(code->context, address_at_distance(bytes + 2, return_address), &target, sizeof(target))
                   ? target
                   : 0;
    if (bytes[1] != 0xe8) return 0;
    return address_at_distance(bytes + 2, return_address);
}

/* Searches FUNCTION for a "jmp" or "jcc" with four bytes of distance to between LOW and HIGH. Similar bytes of other
 * instructions are rarely a jump into the range. */
bool machine_jumps_into(const struct unwind_code *code, uint64_t function, uint64_t low, uint64_t high)
{
    enum { JUMP = 0xe9, CONDITION = 0x0f, CONDITIONAL = 0x80, KIND = 0xf0, SIZE = 5, BYTES_MAX = 2048, STEP = 256 };
    uint8_t bytes[STEP + SIZE];
    for (uint64_t at = function; at < function + BYTES_MAX; at += STEP) {
        if (!code->read(code->context, at, bytes, sizeof(bytes))) return false;
        for (size_t i = 0; i < STEP; i++) {
            bool is_jump = bytes[i] == JUMP || (i > 0 && bytes[i - 1] == CONDITION && (bytes[i] & KIND) == CONDITIONAL);
            uint64_t target = is_jump ? after_stub(code, address_at_distance(bytes + i + 1, at + i + SIZE)) : 0;
            if (target != 0 && target >= low && target <= high) return true;
        }
    }
    return false;
}

bool call_site_is_indirect(const struct unwind_code *code, uint64_t return_address)
{
    enum { CALL = 0xff, REGISTER = 0xd0, NEAR = 0x50, FAR = 0x90, KIND = 0xf8 };
    uint8_t before[7];
    if (return_address < sizeof(before)) return false;
    if (!code->read(code->context, return_address - sizeof(before), before, sizeof(before))) return false;
    if (before[5] == CALL && (before[6] & KIND) == REGISTER) return true;
    if (before[4] == CALL && (before[5] & KIND) == NEAR) return true;
    if (before[1] == CALL && (before[2] & KIND) == FAR) return true;
    return before[0] == CALL && before[1] == 0x14 && before[2] == 0x25; /* thread-local, as libc keeps its functions */
}
