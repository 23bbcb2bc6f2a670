/* The loop of an unwinder: finds the rule for the address and follows it, until the root.  SPDX-License-Identifier: MIT
 */
#include "unwind/plt_stub.h"
#include "unwind/unwind_private.h"

static bool module_holds(const struct unwind_module *module, uint64_t address)
{
    return address >= module->start && address < module->end;
}

const struct unwind_module *unwind_find_module(const struct unwind_modules *modules, uint64_t address)
{
    size_t low = 0, high = modules->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (modules->items[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= modules->items[low - 1].end) return NULL;
    return &modules->items[low - 1];
}

static enum unwind_outcome outcome_of(enum machine_step step)
{
    switch (step) {
    case MACHINE_STEPPED:
    case MACHINE_STEPPED_EXACTLY:
    case MACHINE_ROOT:
        return UNWIND_ROOT;
    case MACHINE_NO_RULE:
        return UNWIND_NO_TABLE;
    case MACHINE_BAD_MEMORY:
        return UNWIND_BAD_MEMORY;
    case MACHINE_BAD_FRAME:
        return UNWIND_BAD_FRAME;
    case MACHINE_UNKNOWN_REGISTER:
        return UNWIND_UNKNOWN_REGISTER;
    }
    return UNWIND_NO_TABLE;
}

/* Finds the module of the first address: walks of one program mostly begin in one module. */
static const struct unwind_module *find_first_module(const struct unwind_modules *modules, uint64_t address)
{
    struct rule_cache *cache = modules->cache;
    if (!cache) return unwind_find_module(modules, address);
    uint32_t number = atomic_load_explicit(&cache->first_module, memory_order_relaxed);
    if (number < modules->count && module_holds(&modules->items[number], address)) return &modules->items[number];
    const struct unwind_module *found = unwind_find_module(modules, address);
    if (found) atomic_store_explicit(&cache->first_module, (uint32_t)(found - modules->items), memory_order_relaxed);
    return found;
}

void unwind_prefetch(const struct unwind_modules *modules, const struct resume_cache *resume_cache, uint64_t ip)
{
    resume_cache_prefetch(resume_cache);
    uint32_t number = modules->cache ? atomic_load_explicit(&modules->cache->first_module, memory_order_relaxed) : 0;
    if (number >= modules->count) return;
    const struct unwind_module *module = &modules->items[number];
    if (module_holds(module, ip) && module->table) frame_table_prefetch(module->table, (uint32_t)(ip - module->base));
}

/* Returns the number of the rule for ADDRESS. *MODULE, the module of the previous frame, becomes that of ADDRESS, or
 * NULL. */
static uint32_t find_rule(const struct unwind_modules *modules, uint64_t address, bool is_innermost,
                          const struct unwind_module **module)
{
    struct rule_cache *cache = modules->cache;
    bool may_come_again = !is_innermost; /* the innermost address can be any one */
    uint32_t number = 0, rule = RULE_NONE;
    if (cache && may_come_again) rule = rule_cache_find(cache, address, &number);
    if (rule != RULE_NONE) {
        *module = &modules->items[number];
        return rule;
    }
    if (!*module || !module_holds(*module, address)) *module = unwind_find_module(modules, address);
    if (!*module || !(*module)->table) return RULE_NONE;
    rule = frame_table_rule_at((*module)->table, (uint32_t)(address - (*module)->base));
    if (cache && may_come_again) rule_cache_keep(cache, address, (size_t)(*module - modules->items), rule);
    return rule;
}

/* Returns true if there may soon be a rule for ADDRESS, which has none. */
static bool is_pending(const struct unwind_modules *modules, const struct unwind_module *module, uint64_t address,
                       const struct unwind_memory *memory)
{
    if (!module) return modules->is_new_code && modules->is_new_code(address);
    return module->is_pending || (!module->table && module->lookup && !memory->work);
}

/* The rule for an address, and its table. */
struct found {
    const struct frame_table *table;
    const struct machine_rule *rule; /* NULL: there is none */
};

static struct found rule_numbered(const struct unwind_module *module, uint32_t number, uint64_t address,
                                  const struct unwind_memory *memory)
{
    struct frame_lookup_work *work = memory->work;
    if (number != RULE_NONE) return (struct found){module->table, &module->table->rules[number]};
    bool may_look_up = module && !module->table && module->lookup && work;
    if (!may_look_up || !frame_lookup_find(module->lookup, address, work)) return (struct found){NULL, NULL};
    return (struct found){&work->table, &work->rule};
}

/* Returns true if LOOKUP + 1, a return address, is the start of code that no call has left: makecontext and its like
 * put it at the end of a stack. There is no rule for the byte before it, where a call would be, but one from it on; or,
 * for the assembly of Boost.Context, that byte ends the jump to the coroutine. */
static bool is_entry(const struct unwind_module *module, uint64_t lookup, const struct unwind_memory *memory)
{
    if (!module || lookup + 1 >= module->end) return false;
    if (memory->code && is_register_jump(memory->code, lookup)) return true;
    if (module->table) return frame_table_rule_at(module->table, (uint32_t)(lookup + 1 - module->base)) != RULE_NONE;
    return module->lookup && memory->work && frame_lookup_find(module->lookup, lookup + 1, memory->work);
}

/* Returns true if the innermost frame of REGISTERS, in code of MODULE without rules, has its return address in a
 * register: functions of the vdso call nothing. Where one has called another, the register holds an address of MODULE.
 */
static bool link_leaves(const struct unwind_module *module, const struct unwind_registers *registers)
{
    return MACHINE_LINK_REGISTER != MACHINE_REGISTER_OTHER && machine_known(registers, MACHINE_LINK_REGISTER) &&
           !module_holds(module,
                         machine_code_address(registers->values[MACHINE_LINK_REGISTER % MACHINE_REGISTERS]) - 1);
}

/* Returns true if the frame pointer of zero in REGISTERS says that nothing called the code there, in MODULE. */
static bool marks_root(const struct unwind_module *module, const struct unwind_registers *registers,
                       const struct unwind_memory *memory)
{
    if (module->keeps_frame_pointers) return true;
    if (!module->table && !module->lookup) return false;
    return !memory->code || clears_frame_pointer(memory->code, registers->values[MACHINE_IP]);
}

/* Steps from the innermost frame in generated code, whose rule may be wrong: then it leads to no code. */
static enum machine_step step_from_generated(const struct unwind_modules *modules, const struct unwind_module *module,
                                             struct found found, struct unwind_registers *registers,
                                             struct unwind_memory *memory)
{
    const struct unwind_registers before = *registers;
    enum machine_step step = machine_step(found.table, found.rule, registers, memory);
    if (step == MACHINE_STEPPED && unwind_find_module(modules, registers->values[MACHINE_IP] - 1)) return step;
    *registers = before;
    return memory->cross && memory->cross(modules, module, registers, memory) ? MACHINE_STEPPED : MACHINE_NO_RULE;
}

/* Steps to the caller of REGISTERS. IS_EXACT: IP is the next instruction. */
static enum machine_step step_from(const struct unwind_modules *modules, const struct unwind_module *module,
                                   struct found found, bool is_exact, struct unwind_registers *registers,
                                   struct unwind_memory *memory)
{
    if (found.rule && is_exact && module && module->is_generated)
        return step_from_generated(modules, module, found, registers, memory);
    if (found.rule) return machine_step(found.table, found.rule, registers, memory);
    bool may_be_stub = is_exact && module && memory->code; /* code that was generated at run time has no PLT */
    if (may_be_stub && plt_stub_holds(memory->code, registers->values[MACHINE_IP]))
        return machine_step_from_stub(registers, memory);
    if (memory->code && is_signal_return(memory->code, registers->values[MACHINE_IP]))
        return machine_step_from_signal_frame(registers, memory);
    if (is_exact && module && link_leaves(module, registers)) return machine_step_from_stub(registers, memory);
    if (module && machine_is_outermost(registers) && marks_root(module, registers, memory)) return MACHINE_ROOT;
    bool is_crossed = module && memory->cross && !module->keeps_frame_pointers;
    if (is_crossed && memory->cross(modules, module, registers, memory)) return MACHINE_STEPPED;
    /* Code without rules between code that has some is assembly, which keeps no frame pointer. */
    if (is_crossed && (module->table || module->lookup)) return MACHINE_NO_RULE;
    enum machine_step step = machine_step_by_frame_pointer(registers, memory);
    return step == MACHINE_STEPPED ? step : MACHINE_NO_RULE;
}

/* Optional aids of a walk; NULL: it has none. */
struct walk_aids {
    struct unwind_recovery *recovery;
    struct resume_cache *resume_cache;
    bool begins_after_call; /* true if the first address is a return address less one */
};

static void note_stack_pointer(struct unwind_memory *memory, size_t frame, uint64_t sp)
{
    if (memory->stack_pointers) memory->stack_pointers[frame] = sp;
}

static enum unwind_outcome walk_frames(const struct unwind_modules *modules, struct unwind_registers *registers,
                                       struct unwind_memory *memory, const struct walk_aids *aids, uint64_t *addresses,
                                       size_t addresses_max, size_t *ret_count)
{
    uint64_t lookup = registers->values[MACHINE_IP];
    const struct unwind_module *module = find_first_module(modules, lookup);
    size_t count = 0;
    note_stack_pointer(memory, count, registers->values[MACHINE_SP]);
    addresses[count++] = lookup;
    bool is_after_call = aids->begins_after_call;
    enum unwind_outcome outcome = UNWIND_ROOT;
    for (;;) {
        uint32_t number = find_rule(modules, lookup, count == 1, &module);
        struct found found = rule_numbered(module, number, lookup, memory);
        if (!found.rule && is_pending(modules, module, lookup, memory)) {
            outcome = UNWIND_PENDING;
            break;
        }
        if (!found.rule && is_after_call && is_entry(module, lookup, memory)) {
            addresses[count - 1]++; /* less one is the entry */
            break;
        }
        enum machine_step step = step_from(modules, module, found, !is_after_call, registers, memory);
        if (step > MACHINE_STEPPED_EXACTLY) {
            bool may_recover = step == MACHINE_UNKNOWN_REGISTER && aids->recovery;
            if (may_recover && aids->recovery->recover(aids->recovery, module, lookup, registers, memory)) continue;
            outcome = outcome_of(step);
            if (may_recover && aids->recovery->pending != 0 && count < addresses_max) {
                addresses[count++] = aids->recovery->pending;
                outcome = UNWIND_PENDING;
            }
            break;
        }
        /* Nothing called the trampoline of a signal handler: the handler returns to its first instruction. */
        if (is_after_call && step == MACHINE_STEPPED_EXACTLY) addresses[count - 1]++;
        if (aids->resume_cache) resume_cache_note(aids->resume_cache, found.rule, step, registers);
        uint64_t address = registers->values[MACHINE_IP];
        if (address == 0) break; /* hand-written entry code marks the root so */
        if (count == addresses_max) {
            outcome = UNWIND_TOO_DEEP;
            break;
        }
        is_after_call = step == MACHINE_STEPPED;
        lookup = is_after_call ? address - 1 : address;
        note_stack_pointer(memory, count, registers->values[MACHINE_SP]);
        addresses[count++] = lookup + 1;
        size_t rest =
            aids->resume_cache ? resume_cache_rejoin(aids->resume_cache, memory, addresses, count, addresses_max) : 0;
        count += rest;
        if (rest > 0) break;
    }
    *ret_count = count;
    return outcome;
}

enum unwind_outcome unwind_walk(const struct unwind_modules *modules, struct unwind_registers *registers,
                                struct unwind_memory *memory, struct resume_cache *resume_cache, uint64_t *addresses,
                                size_t addresses_max, size_t *ret_count)
{
    const struct walk_aids aids = {.resume_cache = resume_cache};
    if (resume_cache) resume_cache_begin(resume_cache, modules->generation, registers->values[MACHINE_SP], memory);
    enum unwind_outcome outcome = walk_frames(modules, registers, memory, &aids, addresses, addresses_max, ret_count);
    if (resume_cache) resume_cache_end(resume_cache, outcome == UNWIND_ROOT);
    return outcome;
}

enum unwind_outcome unwind_walk_from_caller(const struct unwind_modules *modules, struct unwind_registers *registers,
                                            struct unwind_memory *memory, uint64_t *addresses, size_t addresses_max,
                                            size_t *ret_count)
{
    const struct walk_aids aids = {.begins_after_call = true};
    return walk_frames(modules, registers, memory, &aids, addresses, addresses_max, ret_count);
}

enum unwind_outcome unwind_walk_recovering(const struct unwind_modules *modules, struct unwind_registers *registers,
                                           struct unwind_memory *memory, struct unwind_recovery *recovery,
                                           uint64_t *addresses, size_t addresses_max, size_t *ret_count)
{
    const struct walk_aids aids = {.recovery = recovery};
    return walk_frames(modules, registers, memory, &aids, addresses, addresses_max, ret_count);
}
