/* SPDX-License-Identifier: MIT */
#include "store/value_list.h"

#include <stdlib.h>
#include <string.h>

struct value {
    char *text;
    size_t size;
    uint64_t first_ns, last_ns, chunk_count, sample_count;
};

static int compare_values(const void *a, const void *b)
{
    const struct value *left = a, *right = b;
    size_t shared = left->size < right->size ? left->size : right->size;
    int order = memcmp(left->text, right->text, shared);
    return order ? order : (left->size > right->size) - (left->size < right->size);
}

/* Adds the same value of several days, and leaves the first STORE_VALUES_MAX: a later one cannot become one of them. */
static void merge_values(struct value_list *list)
{
    size_t count = 0;
    if (list->count == 0) return;
    qsort(list->items, list->count, sizeof(*list->items), compare_values);
    for (size_t i = 0; i < list->count; i++) {
        struct value *last = count ? &list->items[count - 1] : NULL, *next = &list->items[i];
        bool is_same = last && compare_values(last, next) == 0;
        if (is_same) {
            if (next->first_ns < last->first_ns) last->first_ns = next->first_ns;
            if (next->last_ns > last->last_ns) last->last_ns = next->last_ns;
            last->chunk_count += next->chunk_count;
            last->sample_count += next->sample_count;
        }
        if (is_same || count == STORE_VALUES_MAX)
            free(next->text);
        else
            list->items[count++] = *next;
    }
    list->count = count;
}

void value_list_fini(struct value_list *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->items[i].text);
    free(list->items);
}

bool value_list_add(struct value_list *list, const struct store_value *value)
{
    enum { ITEMS_MAX = 2 * STORE_VALUES_MAX };
    if (!list->items) list->items = calloc(ITEMS_MAX, sizeof(*list->items));
    if (list->count == ITEMS_MAX) merge_values(list);
    char *copy = list->items ? malloc(value->value.size + 1) : NULL;
    if (!copy) return false;
    if (value->value.size) (void)memcpy(copy, value->value.data, value->value.size);
    list->items[list->count++] = (struct value){copy,           value->value.size,  value->first_ns,
                                                value->last_ns, value->chunk_count, value->sample_count};
    return true;
}

void value_list_visit(struct value_list *list, store_visit_value *visit, void *context)
{
    merge_values(list);
    for (size_t i = 0; i < list->count; i++) {
        const struct value *one = &list->items[i];
        const struct store_value value = {slice_of(one->text, one->size), one->first_ns, one->last_ns, one->chunk_count,
                                          one->sample_count};
        if (!visit(context, &value)) break;
    }
}
