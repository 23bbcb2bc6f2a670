/* A sweep over the starts, with a heap of the ranges that are open, the highest layer on top.
 * SPDX-License-Identifier: MIT */
#include "symbolize/address_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, PASSES = 3 };

bool address_ranges_add(struct address_ranges *ranges, struct address_range range)
{
    return range.start >= range.end || ARRAY_PUSH(ranges, ADDRESS_RANGES_MAX, range);
}

void address_ranges_fini(struct address_ranges *ranges)
{
    free(ranges->items);
    *ranges = (struct address_ranges){0};
}

/* --- Sorting ------------------------------------------------------------------------------------------------------ */

static void sort_by_digit(const struct address_range *from, struct address_range *to, size_t count, unsigned shift)
{
    size_t places[DIGITS] = {0}, place = 0;
    for (size_t i = 0; i < count; i++) places[from[i].start >> shift & (DIGITS - 1)]++;
    for (size_t i = 0; i < DIGITS; i++) {
        size_t equal = places[i];
        places[i] = place;
        place += equal;
    }
    for (size_t i = 0; i < count; i++) to[places[from[i].start >> shift & (DIGITS - 1)]++] = from[i];
}

static bool is_sorted(const struct address_range *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (items[i].start < items[i - 1].start) return false;
    return true;
}

static void sort_few(struct address_range *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct address_range moved = items[i];
        size_t place = i;
        for (; place > 0 && items[place - 1].start > moved.start; place--) items[place] = items[place - 1];
        items[place] = moved;
    }
}

/* Sorts ITEMS by start; equals keep their order. OTHER has room for COUNT; the result is in ITEMS. */
static void sort_ranges(struct address_range *items, struct address_range *other, size_t count)
{
    if (is_sorted(items, count)) return;
    if (count < 64) {
        sort_few(items, count);
        return;
    }
    sort_by_digit(items, other, count, 0);
    sort_by_digit(other, items, count, DIGIT_BITS);
    sort_by_digit(items, other, count, 2 * DIGIT_BITS);
    memcpy(items, other, count * sizeof(*items));
}

/* --- Sweeping ----------------------------------------------------------------------------------------------------- */

/* Indices of sorted ranges: the highest layer on top, of equals the last. */
struct heap {
    const struct address_range *ranges;
    uint32_t *items;
    size_t count;
};

static bool hides(const struct heap *heap, uint32_t a, uint32_t b)
{
    uint32_t a_layer = heap->ranges[a].layer, b_layer = heap->ranges[b].layer;
    return a_layer != b_layer ? a_layer > b_layer : a > b;
}

static void heap_push(struct heap *heap, uint32_t item)
{
    size_t place = heap->count++;
    for (; place > 0 && hides(heap, item, heap->items[(place - 1) / 2]); place = (place - 1) / 2)
        heap->items[place] = heap->items[(place - 1) / 2];
    heap->items[place] = item;
}

static void heap_pop(struct heap *heap)
{
    uint32_t item = heap->items[--heap->count];
    size_t place = 0;
    for (size_t child = 1; child < heap->count; child = 2 * place + 1) {
        if (child + 1 < heap->count && hides(heap, heap->items[child + 1], heap->items[child])) child++;
        if (hides(heap, item, heap->items[child])) break;
        heap->items[place] = heap->items[child];
        place = child;
    }
    heap->items[place] = item;
}

static bool emit_range(struct address_ranges *seen, struct address_range range)
{
    struct address_range *last = seen->count > 0 ? &seen->items[seen->count - 1] : NULL;
    if (last && last->end == range.start && last->value == range.value && last->layer == range.layer) {
        last->end = range.end;
        return true;
    }
    return address_ranges_add(seen, range);
}

static bool sweep_ranges(const struct address_range *ranges, size_t count, struct heap *heap,
                         struct address_ranges *seen)
{
    uint32_t position = 0;
    for (size_t next = 0; next < count || heap->count > 0;) {
        while (heap->count > 0 && ranges[heap->items[0]].end <= position) heap_pop(heap);
        if (heap->count == 0 && next == count) break;
        if (heap->count == 0) position = ranges[next].start;
        while (next < count && ranges[next].start <= position) heap_push(heap, (uint32_t)next++);
        struct address_range top = ranges[heap->items[0]];
        if (next < count && ranges[next].start < top.end) top.end = ranges[next].start;
        top.start = position;
        position = top.end;
        if (!emit_range(seen, top)) return false;
    }
    return true;
}

static bool ranges_overlap(const struct address_range *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (items[i].start < items[i - 1].end) return true;
    return false;
}

bool address_ranges_flatten(struct address_ranges *ranges, size_t first)
{
    size_t count = ranges->count - first;
    if (count < 2) return true;
    struct address_range *items = ranges->items + first;
    struct address_range *other = malloc(count * sizeof(*other));
    if (!other) return false;
    sort_ranges(items, other, count);
    bool ok = true;
    if (ranges_overlap(items, count)) {
        memcpy(other, items, count * sizeof(*other));
        ranges->count = first;
        struct heap heap = {.ranges = other, .items = malloc(count * sizeof(*heap.items))};
        /* SEEN is written after FIRST; EMIT must not join it with the ranges before. */
        struct address_ranges seen = {0};
        ok = heap.items && sweep_ranges(other, count, &heap, &seen) &&
             array_reserve(&ranges->items, &ranges->capacity, first + seen.count, sizeof(*other), ADDRESS_RANGES_MAX);
        if (ok && seen.count > 0) memcpy(ranges->items + first, seen.items, seen.count * sizeof(*other));
        if (ok) ranges->count = first + seen.count;
        address_ranges_fini(&seen);
        free(heap.items);
    }
    free(other);
    return ok;
}
