/* SPDX-License-Identifier: MIT */
#include "unwind/past.h"

void past_prefetch(const struct unwind_past *past)
{
    enum { FRAMES_A_LINE = 2 };
    for (size_t i = 0; i < past->count; i += FRAMES_A_LINE) __builtin_prefetch(&past->frames[i]);
}

/* Where nothing is noted yet, FRESH is PAST_FRAMES_MAX. */
static void forget_fresh(struct unwind_past *past)
{
    past->fresh = PAST_FRAMES_MAX;
}

/* All that may have to be compared is asked for at once. */
void past_begin(struct unwind_past *past, uint64_t generation, uint64_t sp, const struct unwind_memory *memory)
{
    if (past->generation != generation) past->count = 0;
    past->generation = generation;
    past->is_rejoined = false;
    forget_fresh(past);
    for (size_t i = past->count; i > 0; i--) {
        const struct past_frame *frame = &past->frames[i - 1];
        if (frame->sp > sp) __builtin_prefetch((const void *)(uintptr_t)(machine_ip_place(frame->sp) + memory->shift));
    }
}

void past_note(struct unwind_past *past, const struct machine_rule *rule, enum machine_step step,
               const struct unwind_registers *registers)
{
    if (!machine_needs_sp_or_fp_only(rule)) forget_fresh(past);
    if (step != MACHINE_STEPPED || !machine_known(registers, MACHINE_FP)) {
        forget_fresh(past);
        return;
    }
    if (past->fresh == past->count) past->count = 0; /* so many new ones: it is another stack */
    if (past->fresh == 0) return;
    past->frames[--past->fresh] = (struct past_frame){
        .ip = registers->values[MACHINE_IP],
        .sp = registers->values[MACHINE_SP],
        .fp = registers->values[MACHINE_FP],
        .fp_place = machine_fp_place(rule, registers->values[MACHINE_SP]),
    };
}

static bool holds(const struct past_frame *frame, struct unwind_memory *memory)
{
    uint64_t ip, fp = frame->fp;
    if (!unwind_read(memory, machine_ip_place(frame->sp), &ip)) return false;
    if (frame->fp_place != 0 && !unwind_read(memory, frame->fp_place, &fp)) return false;
    return ip == frame->ip && fp == frame->fp;
}

size_t past_rejoin(struct unwind_past *past, struct unwind_memory *memory, uint64_t *addresses, size_t addresses_max)
{
    if (past->fresh == PAST_FRAMES_MAX) return 0;
    const struct past_frame *last = &past->frames[past->fresh];
    while (past->count > 0 && past->frames[past->count - 1].sp < last->sp) past->count--;
    if (past->count == 0) return 0;
    const struct past_frame *met = &past->frames[past->count - 1];
    if (met->sp != last->sp || met->ip != last->ip || met->fp != last->fp) return 0;
    past->count--; /* it is among the fresh ones */
    size_t count = 0;
    for (size_t i = past->count; i > 0; i--) {
        const struct past_frame *frame = &past->frames[i - 1];
        if (count == addresses_max || !holds(frame, memory)) {
            past->count = 0;
            return 0;
        }
        if (frame->ip != 0) addresses[count++] = frame->ip;
    }
    past->is_rejoined = count > 0;
    return count;
}

void past_end(struct unwind_past *past, bool has_root)
{
    size_t kept = past->is_rejoined ? past->count : 0; /* else they are of another stack */
    bool is_whole = has_root && past->fresh > 0;
    for (size_t i = past->fresh; is_whole && i < PAST_FRAMES_MAX; i++) past->frames[kept++] = past->frames[i];
    past->count = is_whole ? kept : 0;
}
