/* One table for three kinds of keys, all of them hashes of 64 bits: a code object, a place in it, and a line of a
 * function. SPDX-License-Identifier: MIT */
#include "interpreters/place_table.h"

#include "base/pages.h"

#include <string.h>

enum { ENTRIES_MIN = 1024 };

struct place_entry {
    uint64_t key; /* 0: free */
    uint32_t value;
};

enum key_kind { KEY_OF_CODE = 1, KEY_OF_LINE, KEY_OF_NAME };

static uint64_t key_of(uint64_t first, uint64_t second, uint64_t third)
{
    __uint128_t product = (__uint128_t)(first ^ 0x9E3779B97F4A7C15u) * (second ^ 0xD6E8FEB86659FD93u);
    product = (__uint128_t)((uint64_t)product ^ (uint64_t)(product >> 64)) * (third ^ 0xA0761D6478BD642Fu);
    uint64_t key = (uint64_t)product ^ (uint64_t)(product >> 64);
    return key ? key : 1;
}

/* Returns the entry with KEY, or the free one where it belongs. */
static struct place_entry *entry_of(const struct place_table *table, uint64_t key)
{
    size_t at = key & (table->capacity - 1);
    while (table->entries[at].key != 0 && table->entries[at].key != key) at = (at + 1) & (table->capacity - 1);
    return &table->entries[at];
}

static bool find(const struct place_table *table, uint64_t key, uint32_t *ret_value)
{
    const struct place_entry *entry = table->capacity ? entry_of(table, key) : NULL;
    if (!entry || entry->key == 0) return false;
    *ret_value = entry->value;
    return true;
}

/* Makes the table twice as large. Returns false if it may not be, or without memory. */
static bool grow(struct place_table *table)
{
    struct place_table larger = *table;
    larger.capacity = table->capacity ? table->capacity * 2 : ENTRIES_MIN;
    if (larger.capacity > PLACE_TABLE_ENTRIES_MAX) return false;
    larger.entries = pages_allocate(larger.capacity * sizeof(*larger.entries));
    if (!larger.entries) return false;
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].key) *entry_of(&larger, table->entries[i].key) = table->entries[i];
    }
    if (table->entries) pages_free(table->entries, table->capacity * sizeof(*table->entries));
    *table = larger;
    return true;
}

/* Makes room for COUNT entries. */
static bool reserve(struct place_table *table, size_t count)
{
    while (table->count + count > table->capacity / 2) {
        if (!grow(table)) return false;
    }
    return true;
}

/* Adds KEY, for which there is room. */
static void add(struct place_table *table, uint64_t key, uint32_t value)
{
    *entry_of(table, key) = (struct place_entry){.key = key, .value = value};
    table->count++;
}

/* Returns the number of the function with KEY, which is told to LISTENER if it is new. */
static uint32_t function_number(struct place_table *table, uint64_t key, const struct interpreted_place *place,
                                const struct place_listener *listener)
{
    uint32_t number;
    if (find(table, key, &number)) return number;
    number = table->function_count++;
    listener->function(listener->context, number, place);
    add(table, key, number);
    return number;
}

static uint32_t line_number(struct place_table *table, uint32_t function, uint32_t line,
                            const struct place_listener *listener)
{
    uint64_t key = key_of(KEY_OF_LINE, function, line);
    uint32_t number;
    if (find(table, key, &number)) return number;
    number = table->line_count++;
    listener->line(listener->context, number, function, line);
    add(table, key, number);
    return number;
}

/* Tells the place that stands for all that are not known, the first one. */
static void tell_gone(struct place_table *table, const struct place_listener *listener)
{
    static const struct interpreted_place gone = {.function = "[gone]"};
    uint32_t function = table->function_count++;
    listener->function(listener->context, function, &gone);
    listener->line(listener->context, table->line_count++, function, 0);
}

uint32_t place_table_number(struct place_table *table, const struct interpreter_state *state,
                            const struct interpreted_frame *frame, const struct process_memory *memory,
                            struct interpreted_work *work, const struct place_listener *listener, bool *ret_is_gone)
{
    enum { ENTRIES_A_PLACE = 3 };
    static struct interpreted_place place; /* one thread uses tables */
    uint64_t code_key = key_of(KEY_OF_CODE, frame->code, frame->key);
    uint64_t key = key_of(code_key, frame->instruction, frame->code);
    uint32_t number;
    *ret_is_gone = false;
    if (find(table, key, &number)) return number;
    if (table->line_count == 0) tell_gone(table, listener);
    if (!reserve(table, ENTRIES_A_PLACE) || !state->interpreter->place(state, frame, memory, work, &place)) {
        *ret_is_gone = true;
        return 0;
    }
    number = line_number(table, function_number(table, code_key, &place, listener), place.line, listener);
    add(table, key, number);
    return number;
}

uint32_t place_table_named(struct place_table *table, const char *name, const struct place_listener *listener)
{
    enum { ENTRIES_A_NAME = 2 };
    static struct interpreted_place place; /* one thread uses tables */
    uint64_t hash = 0;
    place = (struct interpreted_place){0};
    for (size_t i = 0; name[i] && i + 1 < sizeof(place.function); i++) {
        hash = hash * 31 + (uint8_t)name[i];
        place.function[i] = name[i];
    }
    if (table->line_count == 0) tell_gone(table, listener);
    if (!reserve(table, ENTRIES_A_NAME)) return 0;
    return line_number(table, function_number(table, key_of(KEY_OF_NAME, hash, 0), &place, listener), 0, listener);
}

void place_table_clear(struct place_table *table)
{
    if (table->entries) pages_free(table->entries, table->capacity * sizeof(*table->entries));
    *table = (struct place_table){0};
}
