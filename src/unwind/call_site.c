/* SPDX-License-Identifier: MIT */
#include "unwind/call_site_private.h"
#include "unwind/plt_stub.h"

uint64_t after_stub(const struct unwind_code *code, uint64_t address)
{
    uint64_t slot = plt_stub_slot(code, address), target = address;
    if (slot != 0 && !code->read(code->context, slot, &target, sizeof(target))) return address;
    return target == code->jump_from ? code->jump_to : target;
}

bool call_site_calls(const struct unwind_code *code, uint64_t return_address, uint64_t start)
{
    uint64_t target = machine_call_target(code, return_address);
    return target != 0 && (machine_is_entry_of(target, start) || machine_is_entry_of(after_stub(code, target), start));
}

bool call_site_leads_to(const struct unwind_code *code, uint64_t return_address, uint64_t start, uint64_t address)
{
    if (call_site_calls(code, return_address, start) || call_site_is_indirect(code, return_address)) return true;
    uint64_t target = machine_call_target(code, return_address);
    return target != 0 && machine_jumps_into(code, after_stub(code, target), start, address);
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
