/* SPDX-License-Identifier: MIT */
#include "base/sort.h"

#include <stdint.h>
#include <string.h>

static void swap(uint8_t *a, uint8_t *b, size_t size)
{
    uint8_t kept[64];
    for (size_t done = 0; done < size; done += sizeof(kept)) {
        size_t part = size - done < sizeof(kept) ? size - done : sizeof(kept);
        memcpy(kept, a + done, part);
        memcpy(a + done, b + done, part);
        memcpy(b + done, kept, part);
    }
}

/* Lets the item at ROOT sink until no child is greater. */
static void sink(uint8_t *items, size_t root, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && compare(items + child * size, items + (child + 1) * size) < 0) child++;
        if (compare(items + root * size, items + child * size) >= 0) return;
        swap(items + root * size, items + child * size, size);
        root = child;
    }
}

void sort_in_place(void *items, size_t count, size_t item_size, int (*compare)(const void *, const void *))
{
    uint8_t *bytes = items;
    for (size_t root = count / 2; root > 0; root--) sink(bytes, root - 1, count, item_size, compare);
    for (size_t end = count; end > 1; end--) {
        swap(bytes, bytes + (end - 1) * item_size, item_size);
        sink(bytes, 0, end - 1, item_size, compare);
    }
}
