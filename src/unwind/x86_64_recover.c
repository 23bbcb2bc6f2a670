/* A function that finds its caller by FP was entered with a return address on the stack, and has made room by
 * subtracting from SP. Its code contains the amounts, so there are only a few places where that return address can be.
 * A place is accepted if the instruction before the address is a direct call (or one through a slot that the loader
 * fills) to exactly the start of this function, and no other place passes as well. Remains of an older call can look
 * the same, but not at the right distance. A call through a pointer is accepted if the calling function was itself
 * called directly, or through pointers by one that was, a few frames further; or if the root is there: the code that
 * begins a thread calls main and thread functions so. Functions that move SP by amounts computed at run time are not
 * recovered.  SPDX-License-Identifier: MIT */
#include "unwind/recover_private.h"

enum { WORD = 8, CODE_MAX = 2048, SIZES_MAX = 16 };

/* Numbers of bytes by which a function may have lowered SP, from its code up to the present address. */
struct frame_sizes {
    uint32_t items[SIZES_MAX];
    unsigned count;
};

static void add_size(struct frame_sizes *sizes, int64_t size)
{
    if (size < 0 || size > INT32_MAX || sizes->count == SIZES_MAX) return;
    for (unsigned i = 0; i < sizes->count; i++) {
        if (sizes->items[i] == size) return;
    }
    sizes->items[sizes->count++] = (uint32_t)size;
}

/* Finds "sub $imm, %rsp" and "add $-imm, %rsp". Similar bytes of other instructions do no harm: a size counts only if a
 * call proves it. */
static void find_sizes(const uint8_t *bytes, size_t size, struct frame_sizes *sizes)
{
    add_size(sizes, 0);
    add_size(sizes, WORD); /* a push for alignment */
    for (size_t i = 0; i + 4 <= size; i++) {
        int32_t wide = 0;
        if (bytes[i] != 0x48 || (bytes[i + 1] != 0x83 && bytes[i + 1] != 0x81)) continue;
        bool is_subtraction = bytes[i + 2] == 0xec;
        if (!is_subtraction && bytes[i + 2] != 0xc4) continue;
        if (bytes[i + 1] == 0x83)
            wide = (int8_t)bytes[i + 3];
        else if (i + 7 <= size)
            memcpy(&wide, bytes + i + 3, sizeof(wide));
        add_size(sizes, is_subtraction ? wide : -(int64_t)wide);
    }
}

void machine_try_cfas(struct frame_search *search, uint64_t lookup, uint64_t sp)
{
    uint8_t code[CODE_MAX];
    struct frame_sizes sizes = {.count = 0};
    const struct unwind_code *reader = search->memory->code;
    size_t code_size = lookup - search->start < CODE_MAX ? (size_t)(lookup - search->start) : CODE_MAX;
    if (!reader->read(reader->context, search->start, code, code_size)) return;
    find_sizes(code, code_size, &sizes);
    /* Registers are saved by pushes before SP is lowered, or into the room that was made. */
    for (unsigned i = 0; i < sizes.count; i++) {
        try_cfa(search, sp + sizes.items[i] + search->rule.deepest_words * (uint64_t)WORD);
        try_cfa(search, sp + sizes.items[i] + (uint64_t)search->rule.value);
    }
}

/* Calls store the return address in memory. */
bool machine_recover_link(struct frame_search *search, struct unwind_registers *registers)
{
    (void)search;
    (void)registers;
    return false;
}
