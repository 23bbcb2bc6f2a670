/* Remains of older calls can look like a return address. A function without rules mostly has a small frame, which it
 * has filled; so the innermost word that a call proves is taken. The caller's FP is either unchanged or was pushed: it
 * is the word that leads from the caller's frame to a call of the caller.  SPDX-License-Identifier: MIT */
#include "unwind/cross_code.h"

#include "unwind/recover_private.h"

enum { WORD = 8, WORDS_MAX = 512, FUNCTION_BYTES_MAX = 64 << 10, FRAME_BYTES_MAX = 1 << 20, PROOF_FRAMES = 2 };

enum proof { REFUTED, PROVEN, UNDECIDED };

struct crossing {
    const struct unwind_modules *modules;
    struct unwind_memory *memory;
    uint64_t low;   /* stack pointer of the code that is crossed */
    uint64_t place; /* place of the return address that is tried */
    uint64_t return_address;
    uint64_t start; /* start of the function that it is in */
};

/* Returns true if the call that ends at RETURN_ADDRESS names a function of MODULE that may hold ADDRESS. */
static bool calls_function_of(const struct unwind_module *module, const struct unwind_code *code,
                              uint64_t return_address, uint64_t address)
{
    uint64_t target = machine_call_target(code, return_address);
    if (target != 0) target = after_stub(code, target);
    return target >= module->start && target <= address && address - target < FUNCTION_BYTES_MAX;
}

/* Returns true if the frame that is tried, with the frame pointer FP, was called itself. */
static bool leads_to_caller(const struct crossing *crossing, uint64_t fp)
{
    uint64_t addresses[PROOF_FRAMES];
    size_t count = 0;
    struct unwind_memory *memory = crossing->memory; /* a copy would not know which block was read last */
    const struct unwind_memory before = *memory;
    struct unwind_registers registers = {.known = 1u << MACHINE_IP | 1u << MACHINE_SP | 1u << MACHINE_FP};
    memory->cross = NULL;
    memory->stack_pointers = NULL;
    registers.values[MACHINE_IP] = crossing->return_address - 1;
    registers.values[MACHINE_SP] = crossing->place + WORD;
    registers.values[MACHINE_FP] = fp;
    enum unwind_outcome outcome =
        unwind_walk_from_caller(crossing->modules, &registers, memory, addresses, PROOF_FRAMES, &count);
    memory->cross = before.cross;
    memory->stack_pointers = before.stack_pointers;
    if (outcome == UNWIND_ROOT && count == 1) return true;
    return count > 1 && call_site_leads_to(memory->code, addresses[1], crossing->start, addresses[0]);
}

/* Decides whether the frame that is tried was called itself, and finds its frame pointer. */
static enum proof prove(struct crossing *crossing, uint64_t *fp)
{
    struct machine_rule rule;
    uint64_t word = 0, inside = crossing->return_address - 1;
    const struct unwind_module *module = unwind_find_module(crossing->modules, inside);
    if (!module || !find_function(module, inside, crossing->memory, &rule, &crossing->start)) return REFUTED;
    if (leads_to_caller(crossing, *fp)) return PROVEN;
    if (rule.kind != RULE_REGISTER || rule.cfa_register != MACHINE_FP) return REFUTED;
    for (uint64_t at = crossing->low; at < crossing->place; at += WORD) {
        if (!unwind_read(crossing->memory, at, &word)) return UNDECIDED;
        bool is_plausible = word % WORD == 0 && word > crossing->place && word - crossing->place < FRAME_BYTES_MAX;
        if (!is_plausible || !leads_to_caller(crossing, word)) continue;
        *fp = word;
        return PROVEN;
    }
    return UNDECIDED;
}

/* Tries the rule of generated code as if that had pushed some words, until it leads to the end of a call. */
static bool cross_pushed(const struct unwind_modules *modules, const struct unwind_module *module,
                         struct unwind_registers *registers, struct unwind_memory *memory)
{
    enum { PUSHES_MAX = 8 };
    uint32_t number = frame_table_rule_at(module->table, (uint32_t)(registers->values[MACHINE_IP] - module->base));
    for (unsigned pushes = 1; pushes <= PUSHES_MAX; pushes++) {
        struct unwind_registers tried = *registers;
        tried.values[MACHINE_SP] += pushes * (uint64_t)WORD;
        if (machine_step(module->table, &module->table->rules[number], &tried, memory) != MACHINE_STEPPED) return false;
        uint64_t address = tried.values[MACHINE_IP];
        if (address == 0 || !unwind_find_module(modules, address - 1)) continue;
        if (machine_call_target(memory->code, address) == 0 && !call_site_is_indirect(memory->code, address)) continue;
        *registers = tried;
        return true;
    }
    return false;
}

bool unwind_cross_code(const struct unwind_modules *modules, const struct unwind_module *module,
                       struct unwind_registers *registers, struct unwind_memory *memory)
{
    if (module->is_generated && module->table) return cross_pushed(modules, module, registers, memory);
    uint64_t address = registers->values[MACHINE_IP], fp = registers->values[MACHINE_FP];
    struct crossing crossing = {.modules = modules, .memory = memory, .low = registers->values[MACHINE_SP]};
    for (unsigned i = 0; i < WORDS_MAX; i++) {
        crossing.place = crossing.low + i * (uint64_t)WORD;
        if (!unwind_read(memory, crossing.place, &crossing.return_address)) return false;
        if (crossing.return_address == 0 || !unwind_find_module(modules, crossing.return_address - 1)) continue;
        bool is_direct = calls_function_of(module, memory->code, crossing.return_address, address);
        if (!is_direct && !call_site_is_indirect(memory->code, crossing.return_address)) continue;
        enum proof proof = prove(&crossing, &fp);
        if (!is_direct && proof == UNDECIDED) return false;
        if (!is_direct && proof == REFUTED) continue;
        registers->values[MACHINE_IP] = crossing.return_address;
        registers->values[MACHINE_SP] = crossing.place + WORD;
        registers->values[MACHINE_FP] = fp;
        registers->known = 1u << MACHINE_IP | 1u << MACHINE_SP;
        if (proof != UNDECIDED) registers->known |= 1u << MACHINE_FP;
        return true;
    }
    return false;
}
