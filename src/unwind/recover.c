/* A function that finds its caller by FP was entered with a return address on the stack, and has made room by
 * subtracting from SP. Its code contains the amounts, so there are only a few places where that return address can be.
 * A place is accepted if the instruction before the address is a direct call (or one through a slot that the loader
 * fills) to exactly the start of this function, and no other place passes as well. Remains of an older call can look
 * the same, but not at the right distance. A call through a pointer is accepted if the calling function was itself
 * called directly, or through pointers by one that was, a few frames further; or if the root is there: the code that
 * begins a thread calls main and thread functions so. Functions that move SP by amounts computed at run time are not
 * recovered.  SPDX-License-Identifier: MIT */
#include "unwind/call_site.h"
#include "unwind/unwind_private.h"

enum { WORD = 8, CODE_MAX = 2048, SIZES_MAX = 16, CALL_ALIGNMENT = 16, CALLERS_MAX = 4 };

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

struct search {
    const struct unwind_modules *modules;
    struct unwind_memory *memory;
    const struct machine_rule *rule; /* rule of the function */
    uint64_t start;
    uint64_t found_cfa;
    unsigned found_count;
};

/* Returns the frame that called through a pointer and continues at RETURN_ADDRESS, with the FP that was saved below
 * CFA. */
static struct unwind_registers caller_of(const struct search *search, uint64_t return_address, uint64_t cfa)
{
    struct unwind_registers registers = {.known = 1u << MACHINE_IP | 1u << MACHINE_SP};
    uint64_t place = machine_fp_place(search->rule, cfa);
    registers.values[MACHINE_IP] = return_address - 1;
    registers.values[MACHINE_SP] = cfa;
    if (place != 0 && unwind_read(search->memory, place, &registers.values[MACHINE_FP]))
        registers.known |= 1u << MACHINE_FP;
    return registers;
}

static bool is_caller_proven(const struct search *search, uint64_t return_address, uint64_t cfa)
{
    uint64_t addresses[CALLERS_MAX], start = 0;
    size_t count = 0;
    struct unwind_registers registers = caller_of(search, return_address, cfa);
    enum unwind_outcome outcome =
        unwind_walk_recovering(search->modules, &registers, search->memory, NULL, addresses, CALLERS_MAX, &count);
    if (outcome == UNWIND_ROOT) return true;
    for (size_t i = 0; i + 1 < count; i++) {
        uint64_t inside = addresses[i] - (i > 0);
        if (!called_function(search->modules, inside, search->memory->work, &start)) return false;
        if (call_site_calls(search->memory->code, addresses[i + 1], start)) return true;
        if (!call_site_is_indirect(search->memory->code, addresses[i + 1])) return false;
    }
    return false;
}

static void try_cfa(struct search *search, uint64_t cfa)
{
    uint64_t return_address = 0;
    if (cfa % CALL_ALIGNMENT != 0 || (search->found_count > 0 && cfa == search->found_cfa)) return;
    if (!unwind_read(search->memory, cfa - WORD, &return_address)) return;
    if (!call_site_calls(search->memory->code, return_address, search->start) &&
        !(call_site_is_indirect(search->memory->code, return_address) &&
          is_caller_proven(search, return_address, cfa))) {
        return;
    }
    search->found_cfa = cfa;
    search->found_count++;
}

/* Finds the rule at LOOKUP, and the start of its function. */
static bool find_function(const struct unwind_module *module, uint64_t lookup, struct unwind_memory *memory,
                          struct machine_rule *ret_rule, uint64_t *ret_start)
{
    const struct frame_table *table = module->table;
    if (table) {
        uint32_t pc = (uint32_t)(lookup - module->base), start = 0;
        *ret_rule = table->rules[frame_table_rule_at(table, pc)];
        if (!frame_table_function_start(table, pc, &start)) return false;
        *ret_start = module->base + start;
        return true;
    }
    if (!module->lookup || !memory->work || !frame_lookup_find(module->lookup, lookup, memory->work)) return false;
    *ret_rule = memory->work->rule;
    *ret_start = memory->work->fde.start;
    return true;
}

/* Finds FP of the frame REGISTERS, whose code at LOOKUP in MODULE finds its caller by FP. */
static bool find_frame_pointer(const struct unwind_recovery *recovery, const struct unwind_module *module,
                               uint64_t lookup, const struct unwind_registers *registers, struct unwind_memory *memory,
                               uint64_t *ret_fp)
{
    uint8_t code[CODE_MAX];
    struct machine_rule rule;
    uint64_t start = 0;
    struct frame_sizes sizes = {.count = 0};
    if (!find_function(module, lookup, memory, &rule, &start)) return false;
    if (rule.kind != RULE_REGISTER || rule.cfa_register != MACHINE_FP || rule.value < 0) return false;
    struct search search = {.modules = recovery->modules, .memory = memory, .rule = &rule, .start = start};
    size_t code_size = lookup - start < CODE_MAX ? (size_t)(lookup - start) : CODE_MAX;
    if (!memory->code->read(memory->code->context, start, code, code_size)) return false;
    find_sizes(code, code_size, &sizes);

    /* Registers are saved by pushes before SP is lowered, or into the room that was made. */
    uint64_t sp = registers->values[MACHINE_SP];
    for (unsigned i = 0; i < sizes.count; i++) {
        try_cfa(&search, sp + sizes.items[i] + rule.deepest_words * (uint64_t)WORD);
        try_cfa(&search, sp + sizes.items[i] + (uint64_t)rule.value);
    }
    if (search.found_count != 1) return false;
    *ret_fp = search.found_cfa - (uint64_t)rule.value;
    return true;
}

static bool recover(struct unwind_recovery *recovery, const struct unwind_module *module, uint64_t lookup,
                    struct unwind_registers *registers, struct unwind_memory *memory)
{
    uint64_t fp = 0;
    if (machine_known(registers, MACHINE_FP)) return false; /* the step needs another register */
    if (!find_frame_pointer(recovery, module, lookup, registers, memory, &fp)) return false;
    registers->values[MACHINE_FP] = fp;
    registers->known |= 1u << MACHINE_FP;
    recovery->count++;
    return true;
}

enum unwind_outcome unwind_walk_without_registers(const struct unwind_modules *modules,
                                                  struct unwind_registers *registers, struct unwind_memory *memory,
                                                  uint64_t *addresses, size_t addresses_max, size_t *ret_count,
                                                  size_t *ret_recovered_count)
{
    struct unwind_recovery recovery = {.recover = recover, .modules = modules};
    registers->known = 1u << MACHINE_IP | 1u << MACHINE_SP | (registers->known & MACHINE_ARGUMENTS);
    enum unwind_outcome outcome =
        unwind_walk_recovering(modules, registers, memory, &recovery, addresses, addresses_max, ret_count);
    *ret_recovered_count = recovery.count;
    return outcome;
}
