/* Tags that chunks have: the labels of their sums (query/rollup_labels.h).  SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "query/selection.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_VALUES_MAX = 200, TAG_PAIRS_MAX = 1 << 20 };

struct tag_pair {
    struct slice key, value; /* parts of the strings of tag_list.strings */
};

struct tag_list {
    struct profile strings;
    struct tag_pair *pairs;
    size_t count, capacity;
    size_t set_count; /* number of sets of labels that the store has given: at most STORE_VALUES_MAX */
};

static int compare_slices(struct slice a, struct slice b)
{
    size_t shared = a.size < b.size ? a.size : b.size;
    int order = shared ? memcmp(a.data, b.data, shared) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct tag_pair *left = a, *right = b;
    int order = compare_slices(left->key, right->key);
    return order ? order : compare_slices(left->value, right->value);
}

static bool add_labels(void *context, const struct store_value *labels)
{
    struct tag_list *list = context;
    struct slice key, value;
    struct cursor cursor = cursor_of(labels->value);
    list->set_count++;
    while (rollup_labels_next(&cursor, &key, &value)) {
        if (!array_reserve(&list->pairs, &list->capacity, list->count + 1, sizeof(*list->pairs), TAG_PAIRS_MAX)) {
            profile_fail(&list->strings, STATUS_NO_MEMORY);
            return false;
        }
        struct string_id key_id = profile_string(&list->strings, key);
        struct string_id value_id = profile_string(&list->strings, value);
        list->pairs[list->count++] =
            (struct tag_pair){profile_slice(&list->strings, key_id), profile_slice(&list->strings, value_id)};
    }
    return true;
}

/* Writes the values of the key of the pair FIRST; returns the pair after them. */
static size_t write_tag(const struct tag_list *list, size_t first, struct json_writer *json)
{
    struct slice key = list->pairs[first].key;
    size_t values = 0, i = first;
    json_begin_object(json);
    json_member_string(json, "name", key);
    json_begin_array_member(json, "values");
    for (; i < list->count && slice_equal(list->pairs[i].key, key); i++) {
        bool is_same = i > first && slice_equal(list->pairs[i].value, list->pairs[i - 1].value);
        if (!is_same && values++ < TAG_VALUES_MAX) json_write_string(json, list->pairs[i].value);
    }
    json_end_array(json);
    json_member_bool(json, "is_cut", values > TAG_VALUES_MAX || list->set_count == STORE_VALUES_MAX);
    json_end_object(json);
    return i;
}

enum status query_tags(struct query *query, struct buffer *out, struct error *error)
{
    struct tag_list list = {0};
    struct selection selection;
    struct json_writer json = json_writer_of(out);
    profile_init(&list.strings);
    enum status status = selection_read(query, "", &selection, error);
    if (status == STATUS_OK)
        status = store_each_value(query->store, &selection.query, STORE_LABELS, add_labels, &list, error);
    if (status == STATUS_OK) status = profile_failed(&list.strings, error);
    if (status == STATUS_OK && list.count > 1) qsort(list.pairs, list.count, sizeof(*list.pairs), compare_pairs);
    json_begin_object(&json);
    json_begin_array_member(&json, "tags");
    for (size_t i = 0; i < list.count && status == STATUS_OK;) i = write_tag(&list, i, &json);
    json_end_array(&json);
    json_end_object(&json);
    free(list.pairs);
    profile_fini(&list.strings);
    return status;
}
