/* Registers of a blocked thread are recovered from its stack, if calls prove them.
 *
 * The return address of a function that has not saved it, as many that make a system call, is in x30, which the kernel
 * does not show. Then the function, F, has not lowered SP below the frame of its caller, C, so C's own return address
 * is a few words above. A word there counts if the instruction before the address that it holds calls C, if C has a
 * call of F, and if the rule after that call says that C's return address is exactly where the word is. If one word
 * counts and no other, x30 is the address after the call. Calls of F with the same frame cannot be distinguished: the
 * first is taken, so the function is right and its line perhaps not.
 *
 * A function that finds its frame by x29 has stored x29 and x30 as a pair. A word above SP is its return address if a
 * call of the function is before the address that it holds, and no other word passes as well.
 * SPDX-License-Identifier: MIT */
#include "unwind/recover_private.h"

enum { WORD = 8, INSTRUCTION = 4, WORDS_SEARCHED = 80 };

void machine_try_cfas(struct frame_search *search, uint64_t lookup, uint64_t sp)
{
    (void)lookup;
    if (search->rule.return_words == 0) return;
    uint64_t above = search->rule.return_words * (uint64_t)WORD;
    for (unsigned i = 0; i < WORDS_SEARCHED; i++) try_cfa(search, sp + i * WORD + above);
}

/* Finds the function that the call before RETURN_ADDRESS enters. */
static bool find_called(const struct frame_search *search, uint64_t return_address,
                        const struct unwind_module **ret_module, uint64_t *ret_start)
{
    struct machine_rule rule;
    uint64_t target = machine_call_target(search->memory->code, return_address);
    if (target != 0) target = after_stub(search->memory->code, target);
    const struct unwind_module *module = target == 0 ? NULL : unwind_find_module(search->modules, target);
    if (!module) return false;
    *ret_module = module;
    for (uint64_t at = target; at <= target + INSTRUCTION; at += INSTRUCTION) {
        bool is_found = find_function(module, at, search->memory, &rule, ret_start);
        if (is_found && machine_is_entry_of(target, *ret_start)) return true;
    }
    return false;
}

/* Returns true if the function at START in MODULE, when it has called at CALL, where SP is SP, has its return address
 * at PLACE. */
static bool has_return_address_at(const struct frame_search *search, const struct unwind_module *module, uint64_t start,
                                  uint64_t call, uint64_t sp, uint64_t place)
{
    struct machine_rule rule;
    uint64_t function = 0;
    if (!find_function(module, call, search->memory, &rule, &function) || function != start) return false;
    if (rule.kind != RULE_REGISTER || rule.cfa_register != MACHINE_SP || rule.return_words == 0) return false;
    return machine_return_place(&rule, sp + (uint64_t)(int64_t)rule.value) == place;
}

/* Returns the address after the first call of SEARCH's function in the function at START in MODULE, which has its
 * return address at PLACE if SP is SP; 0: there is none. */
static uint64_t find_call(const struct frame_search *search, const struct unwind_module *module, uint64_t start,
                          uint64_t sp, uint64_t place)
{
    enum { BYTES_MAX = 8192, STEP = 64 };
    const struct unwind_code *code = search->memory->code;
    uint32_t words[STEP];
    for (uint64_t at = start; at < start + BYTES_MAX && at < module->end; at += sizeof(words)) {
        if (!code->read(code->context, at, words, sizeof(words))) return 0;
        for (size_t i = 0; i < STEP; i++) {
            uint64_t call = at + i * INSTRUCTION, target = machine_branch_target(words[i], BRANCH_AND_LINK, call);
            if (target == 0 || !machine_is_entry_of(after_stub(code, target), search->start)) continue;
            if (has_return_address_at(search, module, start, call, sp, place)) return call + INSTRUCTION;
        }
    }
    return 0;
}

bool machine_recover_link(struct frame_search *search, struct unwind_registers *registers)
{
    const struct machine_rule *rule = &search->rule;
    uint64_t found = 0;
    if (machine_known(registers, MACHINE_LR) || rule->kind != RULE_REGISTER || rule->cfa_register != MACHINE_SP ||
        rule->return_words > 0 || !machine_known(registers, MACHINE_SP)) {
        return false;
    }
    uint64_t sp = registers->values[MACHINE_SP] + (uint64_t)(int64_t)rule->value;
    for (uint64_t place = sp; place < sp + WORDS_SEARCHED * WORD; place += WORD) {
        const struct unwind_module *module = NULL;
        uint64_t word = 0, start = 0;
        if (!unwind_read(search->memory, place, &word)) break;
        word = machine_code_address(word);
        const struct unwind_module *holder = unwind_find_module(search->modules, word);
        if (holder && holder->is_pending) search->pending = word;
        if (!holder || !find_called(search, word, &module, &start)) continue;
        uint64_t after_call = find_call(search, module, start, sp, place);
        if (after_call == 0) continue;
        if (found != 0) return false; /* an old frame looks the same */
        found = after_call;
    }
    if (found == 0 || search->pending != 0) return false;
    registers->values[MACHINE_LR] = found;
    registers->known |= 1u << MACHINE_LR;
    return true;
}
