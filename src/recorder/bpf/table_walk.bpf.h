/* The walk of unwind/unwind.c as the kernel's verifier accepts it: the same rules and outcomes, over tables in BPF
 * maps. A walk that meets a rule with an expression, code whose table is not loaded, or BPF_FRAMES_MAX frames ends as
 * UNWIND_PENDING: user space walks such a stack.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_TABLE_WALK_BPF_H
#define OFFBEAT_RECORDER_BPF_TABLE_WALK_BPF_H

#if defined(__aarch64__)
#include "recorder/bpf/step_aarch64.bpf.h"
#else
#include "recorder/bpf/step_x86_64.bpf.h"
#endif

/* Returns true if the return address of WALK is the start of code that no call has left (see is_entry in
 * unwind/unwind.c). */
static bool is_entry(struct walk *walk)
{
    if (walk->lookup + 1 >= walk->module_end) return false;
    if (is_after_jump(walk->lookup + 1)) return true;
    return find_rule(walk, walk->lookup + 1) == RULE_FOUND;
}

static __always_inline enum unwind_outcome outcome_of(enum machine_step step)
{
    switch (step) {
    case MACHINE_BAD_MEMORY:
        return UNWIND_BAD_MEMORY;
    case MACHINE_BAD_FRAME:
        return UNWIND_BAD_FRAME;
    case MACHINE_UNKNOWN_REGISTER:
        return UNWIND_UNKNOWN_REGISTER;
    case MACHINE_NO_RULE:
        return UNWIND_NO_TABLE;
    default:
        return UNWIND_ROOT;
    }
}

/* --- The loop ----------------------------------------------------------------------------------------------------- */

static __always_inline long end_walk(struct walk *walk, enum unwind_outcome outcome)
{
    walk->outcome = walk->needs_user_space ? UNWIND_PENDING : outcome;
    return 1;
}

/* Goes from one frame to its caller. Returns 1 at the end of the walk: the callback of bpf_loop. */
static long walk_frame(uint32_t index, void *data)
{
    struct walk *walk = ((struct walk_context *)data)->walk;
    bool has_module = find_module(walk, walk->lookup);
    if (has_module && walk->module_code == BPF_CODE_ROOT) return end_walk(walk, UNWIND_ROOT);
    enum rule_search search = has_module ? find_rule(walk, walk->lookup) : RULE_NOT_LOADED;
    if (search == RULE_NOT_LOADED) return end_walk(walk, UNWIND_PENDING);
    uint32_t last = walk->sample.count - 1u;
    if (search == RULE_MISSING && walk->is_after_call && is_entry(walk)) {
        walk->addresses[last & (SAMPLE_ROOM - 1)]++;
        return end_walk(walk, UNWIND_ROOT);
    }
    enum machine_step step = search == RULE_FOUND ? step_by_rule(walk) : step_without_rule(walk);
    if (step > MACHINE_STEPPED_EXACTLY) return end_walk(walk, outcome_of(step));
    /* Nothing called the trampoline of a signal handler: the handler returns to its first instruction. */
    if (walk->is_after_call && step == MACHINE_STEPPED_EXACTLY) walk->addresses[last & (SAMPLE_ROOM - 1)]++;
    uint64_t address = walk->registers[MACHINE_IP];
    if (address == 0) return end_walk(walk, UNWIND_ROOT);
    if (walk->sample.count >= BPF_FRAMES_MAX) return end_walk(walk, UNWIND_PENDING);
    walk->is_after_call = step == MACHINE_STEPPED;
    walk->lookup = walk->is_after_call ? address - 1 : address;
    walk->addresses[walk->sample.count & (SAMPLE_ROOM - 1)] = walk->lookup + 1;
    walk->stack_pointers[walk->sample.count & (SAMPLE_ROOM - 1)] = walk->registers[MACHINE_SP];
    walk->sample.count++;
    return 0;
}

/* Walks from WALK's registers over the modules of PROCESS, and sets the addresses, their count and the outcome. */
static void walk_stack(struct walk *walk, const struct bpf_process_entry *process)
{
    walk->first_entry = process->first;
    walk->entry_count = process->count;
    walk->module_start = walk->module_end = 0;
    walk->known = MACHINE_ALL_KNOWN;
    walk->is_after_call = walk->needs_user_space = 0;
    walk->lookup = walk->registers[MACHINE_IP];
    walk->addresses[0] = walk->lookup;
    walk->stack_pointers[0] = walk->registers[MACHINE_SP];
    walk->sample.count = 1;
    walk->outcome = UNWIND_TOO_DEEP;
    struct walk_context context = {.walk = walk};
    bpf_loop(BPF_FRAMES_MAX + 1, walk_frame, &context, 0);
}

#endif
