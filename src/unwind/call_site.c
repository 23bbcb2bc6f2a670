/* SPDX-License-Identifier: MIT */
#include "unwind/call_site.h"

#include "unwind/plt_stub.h"

static bool read_word(const struct unwind_code *code, uint64_t address, uint64_t *ret_word)
{
    return code->read(code->context, address, ret_word, sizeof(*ret_word));
}

/* Returns the address in the slot of a PLT's stub; STUB itself if there is other code. */
static uint64_t after_stub(const struct unwind_code *code, uint64_t stub)
{
    uint64_t slot = plt_stub_slot(code, stub), target = stub;
    return slot != 0 && read_word(code, slot, &target) ? target : stub;
}

static uint64_t target_of(const struct unwind_code *code, uint64_t return_address)
{
    uint8_t bytes[6];
    uint64_t target = 0;
    if (return_address < sizeof(bytes)) return 0;
    if (!code->read(code->context, return_address - sizeof(bytes), bytes, sizeof(bytes))) return 0;
    if (bytes[0] == 0xff && bytes[1] == 0x15)
        return read_word(code, address_at_distance(bytes + 2, return_address), &target) ? target : 0;
    if (bytes[1] != 0xe8) return 0;
    return address_at_distance(bytes + 2, return_address);
}

bool call_site_calls(const struct unwind_code *code, uint64_t return_address, uint64_t start)
{
    uint64_t target = target_of(code, return_address);
    return target != 0 && (target == start || after_stub(code, target) == start);
}

/* Searches FUNCTION for a "jmp" or "jcc" with four bytes of distance to between LOW and HIGH. Similar bytes of other
 * instructions are rarely a jump into the range. */
static bool jumps_into(const struct unwind_code *code, uint64_t function, uint64_t low, uint64_t high)
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

bool call_site_leads_to(const struct unwind_code *code, uint64_t return_address, uint64_t start, uint64_t address)
{
    if (call_site_calls(code, return_address, start) || call_site_is_indirect(code, return_address)) return true;
    uint64_t target = target_of(code, return_address);
    return target != 0 && jumps_into(code, after_stub(code, target), start, address);
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

bool called_function(const struct unwind_modules *modules, uint64_t address, struct frame_lookup_work *work,
                     uint64_t *ret_start)
{
    const struct unwind_module *module = unwind_find_module(modules, address);
    if (module && !module->table && module->lookup && work && frame_lookup_find(module->lookup, address, work)) {
        *ret_start = work->fde.start;
        return work->rule.kind != RULE_WIDE || !work->table.wide[work->rule.value].is_signal_frame;
    }
    if (!module || !module->table) return false;
    const struct frame_table *table = module->table;
    uint32_t pc = (uint32_t)(address - module->base), start = 0;
    const struct machine_rule *rule = &table->rules[frame_table_rule_at(table, pc)];
    if (rule->kind == RULE_WIDE && table->wide[rule->value].is_signal_frame) return false;
    if (!frame_table_function_start(table, pc, &start)) return false;
    *ret_start = module->base + start;
    return true;
}
