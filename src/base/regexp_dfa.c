/* The expression as an automaton that has one state at a time. States are built while strings are matched: a step reads
 * one entry of a table, however large the expression is.
 *
 * A state is the set of instructions to continue with after a character, before it is known what follows without one:
 * that depends on the next character, for ^ $ \b \B. So a transition first completes the set, with the characters on
 * both sides, and then takes the character. A match shows one character late; the end of the text counts as one.
 *
 * Characters that no class of the expression distinguishes share a column of the table. SPDX-License-Identifier: MIT */
#include "base/regexp_private.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/index_table.h"

#include <stdlib.h>
#include <string.h>

enum {
    CLASSES_MAX = 1000,        /* columns */
    TRANSITIONS_MAX = 1 << 20, /* 4 MiB */
    SEEDS_MAX = 1 << 20,       /* memory of all states: 4 MiB */
    ASCII = 128,
};

/* The kind of position that a state is at, as far as an expression can ask for it. */
enum context { AT_BEGIN, AFTER_WORD, AFTER_OTHER, CONTEXTS };

/* Entries of TRANSITIONS. Any other entry is the start of the next state's row, plus FIRST_STATE. */
enum { UNKNOWN, MATCHED, FAILED, FIRST_STATE };

struct state {
    size_t first_seed;
    uint32_t seed_count;
    enum context context;
};

struct regexp_dfa {
    bool has_given_up, has_edges;
    uint32_t *lows; /* first character of each class, ascending */
    size_t class_count, class_capacity;
    uint16_t class_of_ascii[ASCII];
    struct state *states;
    size_t state_count, state_capacity;
    uint32_t *seeds; /* seeds of all states, ascending in each state */
    size_t seed_count, seed_capacity;
    uint32_t *transitions; /* next state by state and class; the last class is the end of the text */
    size_t transition_capacity;
    struct index_table index;
    uint32_t *scratch;       /* seeds of a new state */
    uint64_t building_steps; /* steps that the last transition took to compute */
};

/* --- Classes of characters ---------------------------------------------------------------------------------------- */

static int compare_characters(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static bool add_low(struct regexp_dfa *dfa, uint32_t low)
{
    if (!array_reserve(&dfa->lows, &dfa->class_capacity, dfa->class_count + 1, sizeof(*dfa->lows),
                       4 * (size_t)REGEXP_RANGES_MAX))
        return false;
    dfa->lows[dfa->class_count++] = low;
    return true;
}

static bool add_lows(struct regexp_dfa *dfa, const struct regexp *regexp)
{
    static const uint32_t word_lows[] = {'0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1};
    bool is_done = add_low(dfa, 0);
    for (size_t i = 0; i < regexp->range_count && is_done; i++)
        is_done = add_low(dfa, regexp->ranges[i].low) && add_low(dfa, regexp->ranges[i].high + 1);
    for (size_t i = 0; i < sizeof(word_lows) / sizeof(word_lows[0]) && is_done && dfa->has_edges; i++)
        is_done = add_low(dfa, word_lows[i]);
    return is_done;
}

static size_t class_of(const struct regexp_dfa *dfa, uint32_t character)
{
    size_t first = 0, end = dfa->class_count;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if (dfa->lows[middle] <= character)
            first = middle;
        else
            end = middle;
    }
    return first;
}

static bool make_classes(struct regexp_dfa *dfa, const struct regexp *regexp)
{
    if (!add_lows(dfa, regexp)) return false;
    qsort(dfa->lows, dfa->class_count, sizeof(*dfa->lows), compare_characters);
    size_t kept = 1;
    for (size_t i = 1; i < dfa->class_count; i++) {
        if (dfa->lows[i] != dfa->lows[kept - 1]) dfa->lows[kept++] = dfa->lows[i];
    }
    dfa->class_count = kept;
    if (kept > CLASSES_MAX) return false;
    for (uint32_t i = 0; i < ASCII; i++) dfa->class_of_ascii[i] = (uint16_t)class_of(dfa, i);
    return true;
}

/* --- States ------------------------------------------------------------------------------------------------------- */

struct state_key {
    const uint32_t *seeds;
    uint32_t count;
    enum context context;
};

static bool state_equal(const void *context, uint32_t index, const void *key)
{
    const struct regexp_dfa *dfa = context;
    const struct state_key *wanted = key;
    const struct state *state = &dfa->states[index];
    return state->seed_count == wanted->count && state->context == wanted->context &&
           memcmp(dfa->seeds + state->first_seed, wanted->seeds, wanted->count * sizeof(*wanted->seeds)) == 0;
}

static size_t width(const struct regexp_dfa *dfa)
{
    return dfa->class_count + 1;
}

static bool add_state(struct regexp_dfa *dfa, const struct state_key *key, uint64_t hash)
{
    size_t transitions = (dfa->state_count + 1) * width(dfa);
    bool has_room =
        array_reserve(&dfa->states, &dfa->state_capacity, dfa->state_count + 1, sizeof(*dfa->states),
                      TRANSITIONS_MAX) &&
        array_reserve(&dfa->transitions, &dfa->transition_capacity, transitions, sizeof(*dfa->transitions),
                      TRANSITIONS_MAX) &&
        array_reserve(&dfa->seeds, &dfa->seed_capacity, dfa->seed_count + key->count, sizeof(*dfa->seeds), SEEDS_MAX) &&
        index_table_add(&dfa->index, hash, (uint32_t)dfa->state_count);
    if (!has_room) return false;
    memset(dfa->transitions + dfa->state_count * width(dfa), 0, width(dfa) * sizeof(*dfa->transitions));
    if (key->count > 0) memcpy(dfa->seeds + dfa->seed_count, key->seeds, key->count * sizeof(*dfa->seeds));
    dfa->states[dfa->state_count++] =
        (struct state){.first_seed = dfa->seed_count, .seed_count = key->count, .context = key->context};
    dfa->seed_count += key->count;
    return true;
}

/* The number of the state with these seeds in SCRATCH; false if there is no room for a new one. */
static bool find_state(struct regexp_dfa *dfa, uint32_t seed_count, enum context context, uint32_t *ret_state)
{
    qsort(dfa->scratch, seed_count, sizeof(*dfa->scratch), compare_characters);
    struct state_key key = {.seeds = dfa->scratch, .count = seed_count, .context = context};
    uint64_t hash = hash_mix(hash_bytes(dfa->scratch, seed_count * sizeof(*dfa->scratch)), (uint64_t)context + 1);
    *ret_state = index_table_find(&dfa->index, hash, state_equal, dfa, &key);
    if (*ret_state != INDEX_NONE) return true;
    *ret_state = (uint32_t)dfa->state_count;
    return add_state(dfa, &key, hash);
}

/* --- Transitions -------------------------------------------------------------------------------------------------- */

/* Returns the entry of the table for STATE and CLASS; UNKNOWN without room. */
static uint32_t find_transition(struct regexp *regexp, uint32_t state_index, size_t class)
{
    static const uint32_t characters_before[CONTEXTS] = {NO_CHARACTER, 'a', ' '};
    struct regexp_dfa *dfa = regexp->dfa;
    struct state state = dfa->states[state_index];
    struct regexp_machine machine = regexp_machine_of(regexp, 1);
    bool is_end = class == dfa->class_count;
    machine.before = characters_before[state.context];
    machine.after = is_end ? NO_CHARACTER : dfa->lows[class];
    regexp_begin_round(&machine);
    for (uint32_t i = 0; i < state.seed_count; i++) regexp_reach(&machine, dfa->seeds[state.first_seed + i]);
    regexp->round = machine.round;
    dfa->building_steps = machine.steps + machine.next_count;
    if (machine.has_matched) return MATCHED;
    if (is_end) return FAILED;
    uint32_t count = 0, next;
    dfa->scratch[count++] = 0; /* a match may begin anywhere */
    for (uint32_t i = 0; i < machine.next_count; i++) {
        uint32_t at = machine.next[i];
        if (regexp_is_in(regexp, &regexp->instructions[at], machine.after)) dfa->scratch[count++] = at + 1;
    }
    /* Nothing can begin after the start of the text. */
    bool is_anchored = regexp->instructions[0].operation == BEGIN;
    if (is_anchored) dfa->scratch[0] = dfa->scratch[--count];
    if (count == 0) return FAILED;
    enum context context = dfa->has_edges && regexp_is_word(machine.after) ? AFTER_WORD : AFTER_OTHER;
    if (!find_state(dfa, count, context, &next)) return UNKNOWN;
    return (uint32_t)(next * width(dfa)) + FIRST_STATE;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static bool make_dfa(struct regexp *regexp)
{
    uint32_t start;
    struct regexp_dfa *dfa = regexp->dfa = calloc(1, sizeof(*dfa));
    if (!dfa) return false;
    for (size_t i = 0; i < regexp->count; i++) {
        enum operation operation = regexp->instructions[i].operation;
        dfa->has_edges |= operation == WORD_EDGE || operation == NO_WORD_EDGE;
    }
    dfa->scratch = calloc(regexp->count + 1, sizeof(*dfa->scratch));
    return dfa->scratch && make_classes(dfa, regexp) && find_state(dfa, 1, AT_BEGIN, &start);
}

void regexp_dfa_free(struct regexp_dfa *dfa)
{
    if (!dfa) return;
    free(dfa->lows);
    free(dfa->states);
    free(dfa->seeds);
    free(dfa->transitions);
    free(dfa->scratch);
    index_table_fini(&dfa->index);
    free(dfa);
}

static enum regexp_dfa_result give_up(struct regexp_dfa *dfa)
{
    dfa->has_given_up = true;
    return REGEXP_DFA_GIVES_UP;
}

static size_t next_class(const struct regexp_dfa *dfa, const uint8_t **at, const uint8_t *end)
{
    if (*at == end) return dfa->class_count;
    if (**at < ASCII) return dfa->class_of_ascii[*(*at)++];
    return class_of(dfa, regexp_character(at, end));
}

enum regexp_dfa_result regexp_dfa_run(struct regexp *regexp, struct slice text)
{
    if (!regexp->dfa && !make_dfa(regexp)) {
        if (!regexp->dfa) return REGEXP_DFA_GIVES_UP;
        return give_up(regexp->dfa);
    }
    struct regexp_dfa *dfa = regexp->dfa;
    if (dfa->has_given_up) return REGEXP_DFA_GIVES_UP;
    const uint8_t *at = text.data, *end = text.data + text.size;
    size_t row = 0;
    for (;;) {
        size_t class = next_class(dfa, &at, end);
        uint32_t next = dfa->transitions[row + class];
        if (next == UNKNOWN) {
            next = find_transition(regexp, (uint32_t)(row / width(dfa)), class);
            if (next == UNKNOWN) return give_up(dfa);
            dfa->transitions[row + class] = next;
            if (!regexp_take_steps(regexp, dfa->building_steps)) return REGEXP_DIFFERS;
        }
        if (next == MATCHED) return REGEXP_MATCHES;
        if (next == FAILED) return REGEXP_DIFFERS;
        row = next - FIRST_STATE;
    }
}
