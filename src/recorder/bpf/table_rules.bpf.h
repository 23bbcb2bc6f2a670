/* The rule for an address, in tables that are BPF maps, and the steps that are the same on all processors.
 *
 * Each program that walks has its own struct walk in a per-CPU map, because one may interrupt another. All loops have
 * constant bounds, and all indexes are masked: the verifier cannot know what the tables contain.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_TABLE_RULES_BPF_H
#define OFFBEAT_RECORDER_BPF_TABLE_RULES_BPF_H

#include "recorder/bpf/bpf_layout.h"
#include "recorder/bpf/kernel.bpf.h"
#include "unwind/unwind.h"

enum {
    WORD = 8,
    WORDS_AT_ONCE = 8, /* words that one read takes: all saved registers of nearly every frame */
    REGISTERS_ROOM = 32,
    MODULE_STEPS_MAX = 13, /* steps of a binary search in BPF_PROCESS_MODULES_MAX entries */
    ROW_STEPS_MAX = 11,    /* steps of a binary search in the rows of a block */
    KNOWN_ALWAYS = 1 << MACHINE_IP | 1 << MACHINE_SP,
    /* with a link register, the frame record may be anywhere in its frame */
    KNOWN_BY_FRAME_POINTER =
        1 << MACHINE_IP | 1 << MACHINE_FP | (MACHINE_LINK_REGISTER == MACHINE_REGISTER_OTHER ? 1 << MACHINE_SP : 0),
    SAMPLE_ROOM = BPF_FRAMES_MAX + 1,
};

struct walk {
    uint64_t registers[REGISTERS_ROOM]; /* values by enum machine_register */
    uint64_t caller[REGISTERS_ROOM];    /* registers that a wide rule has found */
    uint64_t words[WORDS_AT_ONCE];      /* words of the stack */
    struct machine_rule rule;
    uint64_t lookup; /* address of the frame, less one after a call */
    uint64_t module_start, module_end, module_base;
    uint32_t module_table, module_code; /* module of the last address; empty if MODULE_END is 0 */
    uint32_t first_entry, entry_count;
    uint32_t known, caller_known; /* sets of known registers */
    uint32_t outcome;
    uint32_t is_after_call;
    uint32_t needs_user_space; /* 1: only user space can walk on: an expression, or unknown code */
    uint32_t wide;             /* place of the wide rules in the table of the last rule */
    struct bpf_sample sample;
    uint64_t addresses[SAMPLE_ROOM + BPF_KERNEL_FRAMES_MAX];
    uint64_t stack_pointers[SAMPLE_ROOM];
};

/* A stack slot is the only context that bpf_loop passes on. */
struct walk_context {
    struct walk *walk;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, BPF_MODULE_ENTRIES_MAX);
    __type(key, uint32_t);
    __type(value, struct bpf_module_entry);
} modules SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, BPF_TABLES_MAX);
    __type(key, uint32_t);
    __type(value, struct bpf_table_entry);
} tables SEC(".maps");

/* The words of each table. User space adds arrays of any length, and fills them through mmap. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, BPF_TABLES_MAX);
    __type(key, uint32_t);
    __array(
        values, struct {
            __uint(type, BPF_MAP_TYPE_ARRAY);
            __uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
            __uint(max_entries, 1);
            __uint(key_size, sizeof(uint32_t));
            __uint(value_size, sizeof(struct bpf_table_value));
        });
} table_words SEC(".maps");

static __always_inline bool register_known(const struct walk *walk, uint32_t number)
{
    return number < MACHINE_REGISTERS && (walk->known >> number & 1);
}

static __always_inline bool read_word(uint64_t address, uint64_t *ret_word)
{
    return bpf_probe_read_user(ret_word, WORD, (const void *)address) == 0;
}

/* --- Modules ------------------------------------------------------------------------------------------------------ */

/* Makes the module that holds ADDRESS the module of WALK. Returns false if there is none. */
static bool find_module(struct walk *walk, uint64_t address)
{
    if (address >= walk->module_start && address < walk->module_end) return true;
    uint32_t low = 0, high = walk->entry_count;
    for (uint32_t i = 0; i < MODULE_STEPS_MAX && low < high; i++) {
        uint32_t middle = (low + high) / 2, index = walk->first_entry + middle;
        const struct bpf_module_entry *entry = bpf_map_lookup_elem(&modules, &index);
        if (!entry) return false;
        if (entry->start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t found = walk->first_entry + low - 1;
    const struct bpf_module_entry *entry = low > 0 ? bpf_map_lookup_elem(&modules, &found) : NULL;
    if (!entry || address >= entry->end) return false;
    walk->module_start = entry->start;
    walk->module_end = entry->end;
    walk->module_base = entry->base;
    walk->module_table = entry->table;
    walk->module_code = entry->code;
    return true;
}

/* --- Rules -------------------------------------------------------------------------------------------------------- */

static __always_inline const struct bpf_table_value *value_of(void *words, uint32_t word)
{
    uint32_t index = word >> BPF_VALUE_WORDS_SHIFT;
    return bpf_map_lookup_elem(words, &index);
}

/* Returns the place of the last of COUNT rows from word FIRST on that begins below AFTER. */
static __always_inline uint32_t find_row(const struct bpf_table_value *rows, uint32_t first, uint32_t count,
                                         uint32_t after)
{
    uint32_t place = first & (BPF_VALUE_WORDS - 1);
    for (uint32_t i = 0; i < ROW_STEPS_MAX && count > 1; i++) {
        uint32_t half = count / 2;
        if (rows->words[(place + half) & (BPF_VALUE_WORDS - 1)] < after) place += half;
        count -= half;
    }
    return place & (BPF_VALUE_WORDS - 1);
}

enum rule_search { RULE_FOUND, RULE_MISSING, RULE_NOT_LOADED };

/* Finds the rule for ADDRESS in the table of WALK's module, and copies it to WALK. */
static enum rule_search find_rule(struct walk *walk, uint64_t address)
{
    uint32_t number = walk->module_table;
    if (walk->module_code != BPF_CODE_TABLE) return RULE_MISSING;
    const struct bpf_table_entry *table = bpf_map_lookup_elem(&tables, &number);
    void *words = bpf_map_lookup_elem(&table_words, &number);
    if (!table || !words || table->end == 0) return RULE_NOT_LOADED;
    uint64_t relative = address - walk->module_base;
    if (relative < table->start || relative >= table->end) return RULE_MISSING;
    uint32_t offset = (uint32_t)relative - table->start;
    uint32_t pair = table->blocks + 2 * (offset >> FRAME_TABLE_BLOCK_SHIFT);
    const struct bpf_table_value *value = value_of(words, pair);
    if (!value) return RULE_NOT_LOADED;
    uint32_t first = value->words[pair & (BPF_VALUE_WORDS - 2)];
    uint32_t count = value->words[(pair & (BPF_VALUE_WORDS - 2)) + 1];
    value = value_of(words, first);
    if (!value) return RULE_NOT_LOADED;
    uint32_t after = ((offset & (FRAME_TABLE_BLOCK_SIZE - 1)) + 1) << FRAME_TABLE_OFFSET_SHIFT;
    uint32_t row = value->words[find_row(value, first, count, after)];
    uint32_t rule = (row & (FRAME_TABLE_FUNCTION_START - 1)) * BPF_RULE_WORDS;
    if (rule == RULE_NONE) return RULE_MISSING;
    value = value_of(words, rule);
    if (!value) return RULE_NOT_LOADED;
    walk->rule = *(const struct machine_rule *)&value->words[rule & (BPF_VALUE_WORDS - BPF_RULE_WORDS)];
    walk->wide = table->wide;
    return RULE_FOUND;
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

/* Returns whether the caller's register NUMBER, by WIDE, is neither lost nor in memory that cannot be read. */
static __always_inline bool wide_saved(struct walk *walk, const struct wide_rule *wide, uint32_t number, uint64_t cfa,
                                       uint64_t *ret_value)
{
    uint64_t value = (uint64_t)(int64_t)wide->saved[number].value;
    uint32_t other = wide->saved[number].register_number;
    switch (wide->saved[number].kind) {
    case WIDE_SAME:
        *ret_value = number == MACHINE_SP ? cfa : walk->registers[number];
        return number == MACHINE_SP || (number < MACHINE_SURVIVING_REGISTERS && register_known(walk, number));
    case WIDE_AT_CFA:
        return read_word(cfa + value, ret_value);
    case WIDE_IS_CFA:
        *ret_value = cfa + value;
        return true;
    case WIDE_AT_REGISTER:
        return register_known(walk, other) &&
               read_word(walk->registers[other & (REGISTERS_ROOM - 1)] + value, ret_value);
    case WIDE_IN_REGISTER:
        *ret_value = walk->registers[other & (REGISTERS_ROOM - 1)];
        return register_known(walk, other);
    case WIDE_AT_EXPRESSION:
    case WIDE_IS_EXPRESSION:
        walk->needs_user_space = 1;
        return false;
    default:
        return false;
    }
}

/* Finds the caller's register NUMBER by WIDE, for the caller's set in WALK. The set is in the map because the verifier
 * would follow each of its 2^17 values in a variable. */
static void wide_register(struct walk *walk, const struct wide_rule *wide, uint32_t number, uint64_t cfa)
{
    uint64_t value = 0;
    if (!wide_saved(walk, wide, number, cfa, &value)) return;
    walk->caller[number & (REGISTERS_ROOM - 1)] = value;
    walk->caller_known |= 1u << number;
}

static __always_inline enum machine_step wide_cfa(struct walk *walk, const struct wide_rule *wide, uint64_t *ret_cfa)
{
    uint32_t number = wide->cfa_register;
    if (wide->cfa_kind == WIDE_CFA_EXPRESSION) {
        walk->needs_user_space = 1;
        return MACHINE_NO_RULE;
    }
    if (!register_known(walk, number)) return MACHINE_UNKNOWN_REGISTER;
    uint64_t cfa = walk->registers[number & (REGISTERS_ROOM - 1)] + (uint64_t)(int64_t)wide->cfa_value;
    if (wide->cfa_kind == WIDE_CFA_DEREFERENCE && !read_word(cfa, &cfa)) return MACHINE_BAD_MEMORY;
    *ret_cfa = cfa;
    return MACHINE_STEPPED;
}

static enum machine_step step_wide(struct walk *walk)
{
    uint32_t number = walk->module_table, word = walk->wide + (uint32_t)walk->rule.value * BPF_WIDE_RULE_WORDS;
    void *words = bpf_map_lookup_elem(&table_words, &number);
    const struct bpf_table_value *value = words ? value_of(words, word) : NULL;
    if (!value) return MACHINE_NO_RULE;
    const struct wide_rule *wide =
        (const struct wide_rule *)&value->words[word & (BPF_VALUE_WORDS - BPF_WIDE_RULE_WORDS)];
    if (wide->saved[MACHINE_IP].kind == WIDE_LOST) return MACHINE_ROOT;
    uint64_t cfa = 0, sp = walk->registers[MACHINE_SP];
    enum machine_step step = wide_cfa(walk, wide, &cfa);
    if (step != MACHINE_STEPPED) return step;
    walk->caller_known = 0;
    for (uint32_t i = 0; i < MACHINE_REGISTERS; i++) wide_register(walk, wide, i, cfa);
    if (walk->needs_user_space) return MACHINE_NO_RULE;
    if ((walk->caller_known & KNOWN_ALWAYS) != KNOWN_ALWAYS) return MACHINE_BAD_MEMORY;
    walk->caller[MACHINE_IP] = machine_code_address(walk->caller[MACHINE_IP]);
    /* The same exceptions as in unwind/wide_rule.c: signal stacks, longjmp, vfork. */
    uint64_t caller_sp = walk->caller[MACHINE_SP];
    bool may_stay = wide->is_signal_frame || wide->saved[MACHINE_SP].kind == WIDE_IN_REGISTER ||
                    (wide->saved[MACHINE_IP].kind == WIDE_IN_REGISTER && caller_sp == sp);
    if (caller_sp % WORD != 0 || (caller_sp <= sp && !may_stay)) return MACHINE_BAD_FRAME;
    for (uint32_t i = 0; i < MACHINE_REGISTERS; i++) walk->registers[i] = walk->caller[i];
    walk->known = walk->caller_known;
    return wide->is_signal_frame ? MACHINE_STEPPED_EXACTLY : MACHINE_STEPPED;
}

/* Follows the chain of frame pointers. A caller counts only if it is in a known module: code that keeps no frame
 * pointer may have anything in that register. */
static enum machine_step step_by_frame_pointer(struct walk *walk)
{
    if (!register_known(walk, MACHINE_FP)) return MACHINE_NO_RULE;
    uint64_t fp = walk->registers[MACHINE_FP];
    if (fp == 0 && walk->module_code != BPF_CODE_UNKNOWN) return MACHINE_ROOT;
    bool is_other_stack = walk->module_code == BPF_CODE_STACK_SWITCH;
    bool is_below = fp + MACHINE_RECORD_BELOW < walk->registers[MACHINE_SP];
    if ((is_below && !is_other_stack) || fp % WORD != 0) return MACHINE_NO_RULE;
    if (bpf_probe_read_user(walk->words, 2 * WORD, (const void *)fp) != 0) return MACHINE_NO_RULE;
    uint64_t return_address = machine_code_address(walk->words[1]);
    if (return_address != 0 && !find_module(walk, return_address - 1)) {
        walk->needs_user_space = walk->module_code != BPF_CODE_UNKNOWN;
        return MACHINE_NO_RULE;
    }
    walk->registers[MACHINE_IP] = return_address;
    walk->registers[MACHINE_SP] = fp + 2 * WORD;
    walk->registers[MACHINE_FP] = walk->words[0];
    walk->known = KNOWN_BY_FRAME_POINTER;
    return MACHINE_STEPPED;
}

#endif
