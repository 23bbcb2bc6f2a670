/* Runs all threads of the program at once over the text, character by character: no expression can make that more than
 * linear.  SPDX-License-Identifier: MIT */
#include "base/regexp_private.h"

#include <stdlib.h>
#include <string.h>

/* --- Matching ----------------------------------------------------------------------------------------------------- */
bool regexp_is_word(uint32_t character)
{
    return character == '_' || (character >= '0' && character <= '9') ||
           ((character | 0x20) >= 'a' && (character | 0x20) <= 'z' && character < 0x80);
}

static bool holds(const struct regexp_machine *machine, enum operation operation)
{
    if (operation == BEGIN) return machine->before == NO_CHARACTER;
    if (operation == END) return machine->after == NO_CHARACTER;
    return (regexp_is_word(machine->before) != regexp_is_word(machine->after)) == (operation == WORD_EDGE);
}

/* Reaches STATE and all that follow without a character. */
void regexp_reach(struct regexp_machine *machine, uint32_t state)
{
    uint32_t count = 0;
    machine->stack[count++] = state;
    while (count > 0) {
        state = machine->stack[--count];
        machine->steps++;
        if (machine->marks[state] == machine->round) continue;
        machine->marks[state] = machine->round;
        const struct regexp_instruction *instruction = &machine->regexp->instructions[state];
        if (instruction->operation == RANGES) {
            machine->next[machine->next_count++] = state;
        } else if (instruction->operation == MATCH) {
            machine->has_matched = true;
        } else if (instruction->operation == JUMP || instruction->operation == SPLIT) {
            machine->stack[count++] = (uint32_t)((int64_t)state + instruction->to);
            if (instruction->operation == SPLIT)
                machine->stack[count++] = (uint32_t)((int64_t)state + instruction->other);
        } else if (holds(machine, instruction->operation)) {
            machine->stack[count++] = state + 1;
        }
    }
}

/* The ranges of an instruction are in order, and do not touch. */
bool regexp_is_in(const struct regexp *regexp, const struct regexp_instruction *instruction, uint32_t character)
{
    const struct regexp_range *ranges = regexp->ranges + instruction->to;
    int32_t first = 0, end = instruction->other;
    while (end - first > 1) {
        int32_t middle = first + (end - first) / 2;
        if (ranges[middle].low <= character) {
            first = middle;
        } else {
            end = middle;
        }
    }
    bool is_found = first < end && character >= ranges[first].low && character <= ranges[first].high;
    return is_found != instruction->is_negated;
}

/* The instructions that were reached become the current ones; the set of reached ones is then empty. */
void regexp_begin_round(struct regexp_machine *machine)
{
    uint32_t *reached = machine->next;
    machine->next = machine->now;
    machine->now = reached;
    machine->now_count = machine->next_count;
    machine->next_count = 0;
    machine->round++;
    machine->has_matched = false;
}

/* The marks of matches before stay: no round comes twice until all are cleared. */
static uint32_t first_round(struct regexp *regexp, size_t rounds)
{
    uint32_t *marks = regexp->states + regexp->count * 2;
    if (rounds >= UINT32_MAX - 2 - regexp->round) {
        memset(marks, 0, regexp->count * sizeof(*marks));
        regexp->round = 0;
    }
    return regexp->round;
}

struct regexp_machine regexp_machine_of(struct regexp *regexp, size_t rounds)
{
    size_t count = regexp->count;
    return (struct regexp_machine){.regexp = regexp,
                                   .now = regexp->states,
                                   .next = regexp->states + count,
                                   .marks = regexp->states + count * 2,
                                   .stack = regexp->states + count * 3,
                                   .round = first_round(regexp, rounds),
                                   .before = NO_CHARACTER};
}

bool regexp_take_steps(struct regexp *regexp, uint64_t steps)
{
    regexp->is_exhausted |= steps > regexp->steps_left;
    if (regexp->is_exhausted) return false;
    if (regexp->steps_left != UINT64_MAX) regexp->steps_left -= steps;
    return true;
}

static bool run(struct regexp *regexp, struct slice text, bool is_within)
{
    if (regexp->is_exhausted || text.size >= UINT32_MAX - 2) return false;
    struct regexp_machine machine = regexp_machine_of(regexp, text.size + 1);
    const uint8_t *at = text.data, *end = text.data + text.size;
    uint32_t character = NO_CHARACTER;
    machine.after = at < end ? regexp_character(&at, end) : NO_CHARACTER;
    regexp_begin_round(&machine);
    regexp_reach(&machine, 0);
    while (machine.after != NO_CHARACTER && (machine.next_count > 0 || is_within)) {
        if ((machine.has_matched && is_within) || machine.steps > regexp->steps_left) break;
        character = machine.before = machine.after;
        machine.after = at < end ? regexp_character(&at, end) : NO_CHARACTER;
        regexp_begin_round(&machine);
        for (uint32_t i = 0; i < machine.now_count; i++) {
            uint32_t state = machine.now[i];
            machine.steps++;
            if (regexp_is_in(regexp, &regexp->instructions[state], character)) regexp_reach(&machine, state + 1);
        }
        if (is_within) regexp_reach(&machine, 0);
    }
    regexp->round = machine.round;
    if (!regexp_take_steps(regexp, machine.steps)) return false;
    return machine.has_matched && (is_within || machine.after == NO_CHARACTER);
}

bool regexp_matches_whole(struct regexp *regexp, struct slice text)
{
    return run(regexp, text, false);
}

bool regexp_matches_within(struct regexp *regexp, struct slice text)
{
    enum regexp_dfa_result result = regexp->is_exhausted ? REGEXP_DIFFERS : regexp_dfa_run(regexp, text);
    if (result == REGEXP_DFA_GIVES_UP) return run(regexp, text, true);
    return regexp_take_steps(regexp, text.size) && result == REGEXP_MATCHES;
}
