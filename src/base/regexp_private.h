/* A compiled regular expression.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_REGEXP_PRIVATE_H
#define OFFBEAT_BASE_REGEXP_PRIVATE_H

#include "base/regexp.h"
#include "base/utf8.h"

enum operation { RANGES, SPLIT, JUMP, BEGIN, END, WORD_EDGE, NO_WORD_EDGE, MATCH };

struct regexp_instruction {
    enum operation operation;
    bool is_negated;   /* RANGES only */
    int32_t to, other; /* JUMP and SPLIT: targets, relative to this one; RANGES: first range, range count */
};

struct regexp_range {
    uint32_t low, high;
};

enum { CHARACTER_MAX = 0x10FFFF, NO_CHARACTER = 0xFFFFFFFF };

/* The character at *AT, which is moved after it. */
static inline uint32_t regexp_character(const uint8_t **at, const uint8_t *end)
{
    size_t size = utf8_sequence_size(*at, end);
    if (size == 0) {
        (*at)++;
        return 0xFFFD;
    }
    uint32_t character = utf8_code_point(*at, size);
    *at += size;
    return character;
}

/* The program at one place of a text: the instructions that wait for a character there. */
struct regexp_machine {
    const struct regexp *regexp;
    uint32_t *now, *next; /* states that wait for a character */
    uint32_t *marks;      /* the round in which each state was reached */
    uint32_t *stack;      /* twice as many as states */
    uint32_t now_count, next_count, round;
    uint64_t steps;
    uint32_t before, after; /* the characters around */
    bool has_matched;
};

/* A machine for at most so many rounds; the caller puts its ROUND back into REGEXP. */
struct regexp_machine regexp_machine_of(struct regexp *regexp, size_t rounds);
/* NEXT becomes NOW; nothing is reached. */
void regexp_begin_round(struct regexp_machine *machine);
/* Adds STATE, and all that follow without a character, to NEXT. */
void regexp_reach(struct regexp_machine *machine, uint32_t state);
bool regexp_is_in(const struct regexp *regexp, const struct regexp_instruction *instruction, uint32_t character);

bool regexp_is_word(uint32_t character);

/* Takes STEPS from those that are left. False, and from then on, if there are not so many. */
bool regexp_take_steps(struct regexp *regexp, uint64_t steps);

/* The same expression as an automaton that has one state at a time (regexp_dfa.c). */
struct regexp_dfa;

enum regexp_dfa_result { REGEXP_DIFFERS, REGEXP_MATCHES, REGEXP_DFA_GIVES_UP };

/* Whether it matches anywhere in TEXT. Gives up, then and ever after, where the automaton has too many states. */
enum regexp_dfa_result regexp_dfa_run(struct regexp *regexp, struct slice text);
void regexp_dfa_free(struct regexp_dfa *dfa); /* accepts NULL */

#endif
