/* SPDX-License-Identifier: MIT */
#include "unwind/resume_cache.h"

void resume_cache_prefetch(const struct resume_cache *cache)
{
    enum { FRAMES_A_LINE = 2 };
    for (size_t i = 0; i < cache->count; i += FRAMES_A_LINE) __builtin_prefetch(&cache->frames[i]);
}

/* Drops the frames of the running walk. */
static void forget_fresh(struct resume_cache *cache)
{
    cache->fresh = RESUME_FRAMES_MAX;
}

void resume_cache_begin(struct resume_cache *cache, uint64_t generation, uint64_t sp,
                        const struct unwind_memory *memory)
{
    if (cache->generation != generation) cache->count = 0;
    cache->generation = generation;
    cache->is_rejoined = false;
    forget_fresh(cache);
    /* All words that may have to be compared are prefetched at once. */
    for (size_t i = cache->count; i > 0; i--) {
        const struct resume_frame *frame = &cache->frames[i - 1];
        if (frame->sp > sp)
            __builtin_prefetch((const void *)(uintptr_t)(machine_ip_place(frame->sp, frame->fp_place) + memory->shift));
    }
}

void resume_cache_note(struct resume_cache *cache, const struct machine_rule *rule, enum machine_step step,
                       const struct unwind_registers *registers)
{
    if (!machine_needs_sp_or_fp_only(rule)) forget_fresh(cache);
    if (step != MACHINE_STEPPED || !machine_known(registers, MACHINE_FP)) {
        forget_fresh(cache);
        return;
    }
    if (cache->fresh == cache->count) cache->count = 0; /* it is another stack */
    if (cache->fresh == 0) return;
    cache->frames[--cache->fresh] = (struct resume_frame){
        .ip = registers->values[MACHINE_IP],
        .sp = registers->values[MACHINE_SP],
        .fp = registers->values[MACHINE_FP],
        .fp_place = machine_fp_place(rule, registers->values[MACHINE_SP]),
    };
}

static bool is_unchanged(const struct resume_frame *frame, struct unwind_memory *memory)
{
    uint64_t ip, fp = frame->fp;
    if (!unwind_read(memory, machine_ip_place(frame->sp, frame->fp_place), &ip)) return false;
    if (frame->fp_place != 0 && !unwind_read(memory, frame->fp_place, &fp)) return false;
    return ip == frame->ip && fp == frame->fp;
}

size_t resume_cache_rejoin(struct resume_cache *cache, struct unwind_memory *memory, uint64_t *addresses, size_t count,
                           size_t addresses_max)
{
    if (cache->fresh == RESUME_FRAMES_MAX) return 0;
    const struct resume_frame *last = &cache->frames[cache->fresh];
    while (cache->count > 0 && cache->frames[cache->count - 1].sp < last->sp) cache->count--;
    if (cache->count == 0) return 0;
    const struct resume_frame *met = &cache->frames[cache->count - 1];
    if (met->sp != last->sp || met->ip != last->ip || met->fp != last->fp) return 0;
    cache->count--; /* the frame is among the fresh ones */
    size_t first = count;
    for (size_t i = cache->count; i > 0; i--) {
        const struct resume_frame *frame = &cache->frames[i - 1];
        if (count == addresses_max || !is_unchanged(frame, memory)) {
            cache->count = 0;
            return 0;
        }
        if (frame->ip == 0) continue;
        if (memory->stack_pointers) memory->stack_pointers[count] = frame->sp;
        addresses[count++] = frame->ip;
    }
    cache->is_rejoined = count > first;
    return count - first;
}

void resume_cache_end(struct resume_cache *cache, bool has_root)
{
    size_t kept = cache->is_rejoined ? cache->count : 0; /* 0: the kept frames are of another stack */
    bool is_whole = has_root && cache->fresh > 0;
    for (size_t i = cache->fresh; is_whole && i < RESUME_FRAMES_MAX; i++) cache->frames[kept++] = cache->frames[i];
    cache->count = is_whole ? kept : 0;
}
