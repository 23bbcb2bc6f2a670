/* At the end of the copy the walk stops with the registers of the last frame that it reached, and a second walk
 * continues from them. It reads the copy where that has the word, because the thread may have overwritten it since.
 *
 * The frames outside of the copy belong to callers of the copied ones. Most of them have not returned when they are
 * read. If the thread has returned from them and called something else, other calls have overwritten them. So the first
 * return addresses that are read outside are checked: the instruction before each must call the function of the
 * previous frame. If it does not, the stack ends there, incomplete. SPDX-License-Identifier: MIT */
#include "unwind/copied_stack.h"

#include "unwind/call_site.h"
#include "unwind/unwind_private.h"

struct reader {
    const struct copied_stack *copy;
    struct unwind_memory *live; /* NULL: only the copy can be read */
    uint64_t outside;           /* first address that is not in the copy; 0: none yet */
};

static void show_copy(struct unwind_memory *memory, const struct copied_stack *copy)
{
    memory->low = copy->start;
    memory->high = copy->start + copy->size;
    memory->shift = (uint64_t)(uintptr_t)copy->words - copy->start;
}

/* Extends MEMORY by a block of live memory. If that overlaps the copy, it is used only outside of it. */
static bool read_outside(struct unwind_memory *memory, uint64_t address)
{
    struct reader *reader = memory->context;
    const struct copied_stack *copy = reader->copy;
    bool is_in_copy = address >= copy->start && address - copy->start + sizeof(uint64_t) <= copy->size;
    if (reader->live && is_in_copy) {
        show_copy(memory, copy);
        return true;
    }
    if (reader->outside == 0) reader->outside = address;
    if (!reader->live || !reader->live->extend(reader->live, address)) return false;
    uint64_t low = reader->live->low, high = reader->live->high, copy_end = copy->start + copy->size;
    if (address >= copy_end && low < copy_end) low = copy_end;
    if (address < copy->start && high > copy->start) high = copy->start;
    memory->low = low;
    memory->high = high;
    memory->shift = reader->live->shift;
    return address >= low && address + sizeof(uint64_t) <= high;
}

/* Returns how many of the COUNT addresses from FIRST on are frames of one stack. FIRST is the end of the copy. */
static size_t count_credible(const struct unwind_modules *modules, const struct unwind_code *code,
                             const uint64_t *first, size_t count, bool first_is_innermost,
                             struct frame_lookup_work *work)
{
    enum { CHECKS_MAX = 8 };
    for (size_t i = 0; i + 1 < count && i < CHECKS_MAX; i++) {
        uint64_t start = 0, address = first[i] - (i > 0 || !first_is_innermost);
        if (!called_function(modules, address, work, &start)) continue;
        if (call_site_calls(code, first[i + 1], start)) break; /* its caller is still in the same call */
        if (!call_site_leads_to(code, first[i + 1], start, address)) return i + 1;
    }
    return count;
}

enum unwind_outcome unwind_walk_copied_stack(const struct unwind_modules *modules, struct unwind_registers *registers,
                                             const struct copied_stack *copy, struct unwind_memory *live,
                                             uint64_t *addresses, size_t addresses_max, size_t *ret_count,
                                             uint64_t *ret_outside)
{
    struct reader reader = {.copy = copy};
    struct unwind_memory memory = {.extend = read_outside,
                                   .context = &reader,
                                   .work = live->work,
                                   .code = live->code,
                                   .cross = live->cross,
                                   .stack_pointers = live->stack_pointers};
    show_copy(&memory, copy);
    enum unwind_outcome outcome = unwind_walk(modules, registers, &memory, NULL, addresses, addresses_max, ret_count);
    bool has_ended = outcome == UNWIND_ROOT || outcome == UNWIND_PENDING || outcome == UNWIND_TOO_DEEP;
    *ret_outside = has_ended ? 0 : reader.outside;
    if (*ret_outside == 0) return outcome;

    /* The last address is that of the frame that REGISTERS hold: the walk begins with it again. */
    size_t before = *ret_count - 1, more = 0;
    uint64_t *last = addresses + before;
    reader.live = live;
    if (memory.stack_pointers) memory.stack_pointers += before;
    if (before == 0) {
        outcome = unwind_walk(modules, registers, &memory, NULL, last, addresses_max, &more);
    } else {
        registers->values[MACHINE_IP] = *last - 1;
        outcome = unwind_walk_from_caller(modules, registers, &memory, last, addresses_max - before, &more);
        (*last)++;
    }
    size_t kept = count_credible(modules, live->code, addresses + before, more, before == 0, live->work);
    *ret_count = before + kept;
    return kept == more ? outcome : UNWIND_BAD_MEMORY;
}
