/* SPDX-License-Identifier: MIT */
#include "recorder/bpf/entry_places.h"

static unsigned class_of(uint32_t count)
{
    unsigned class = 0;
    while ((uint32_t)ENTRY_PLACE_SMALLEST << class < count) class ++;
    return class;
}

void entry_places_fini(struct entry_places *places)
{
    for (unsigned i = 0; i < ENTRY_PLACE_CLASSES; i++) free(places->released[i].items);
    *places = (struct entry_places){0};
}

bool entry_places_take(struct entry_places *places, uint32_t count, uint64_t now_ns, uint32_t *ret_first)
{
    enum { WAIT_NS = 100000000 };
    unsigned class = class_of(count);
    if (class >= ENTRY_PLACE_CLASSES) return false;
    for (size_t i = 0; i < places->released[class].count; i++) {
        struct entry_place *place = &places->released[class].items[i];
        if (now_ns - place->released_ns < WAIT_NS) continue;
        *ret_first = place->first;
        *place = places->released[class].items[--places->released[class].count];
        return true;
    }
    uint32_t size = (uint32_t)ENTRY_PLACE_SMALLEST << class;
    if (size > BPF_MODULE_ENTRIES_MAX - places->used) return false;
    *ret_first = places->used;
    places->used += size;
    return true;
}

void entry_places_release(struct entry_places *places, uint32_t first, uint32_t count, uint64_t now_ns)
{
    unsigned class = class_of(count);
    struct entry_place place = {.first = first, .released_ns = now_ns};
    if (!ARRAY_PUSH(&places->released[class], BPF_MODULE_ENTRIES_MAX / ENTRY_PLACE_SMALLEST, place)) abort();
}
