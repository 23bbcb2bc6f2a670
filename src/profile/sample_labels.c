/* SPDX-License-Identifier: MIT */
#include "profile/sample_labels.h"

#include "profile/thread_labels.h"

#include <stdlib.h>

bool sample_labels_init(struct sample_labels *labels, const struct profile *profile)
{
    uint32_t most = 0;
    for (size_t i = 0; i < profile->label_sets.count; i++) {
        if (profile->label_sets.items[i].count > most) most = profile->label_sets.items[i].count;
    }
    *labels = (struct sample_labels){.items = calloc(most + 2u, sizeof(*labels->items))};
    return labels->items != NULL;
}

void sample_labels_fini(struct sample_labels *labels)
{
    free(labels->items);
    *labels = (struct sample_labels){0};
}

static bool has_key(const struct sample_labels *labels, const char *const keys[THREAD_LABEL_KEYS])
{
    for (uint32_t i = 0; i < labels->count; i++) {
        if (thread_label_place(keys, slice_of_text(labels->items[i].key)) >= 0) return true;
    }
    return false;
}

static void add_text(struct sample_labels *labels, const char *key, const char *text)
{
    labels->items[labels->count] = (struct sample_label){.key = key, .text = text, .unit = "", .place = labels->count};
    labels->count++;
}

static void add_thread(struct sample_labels *labels, const struct profile *profile, const struct thread *thread)
{
    bool has_name = has_key(labels, thread_name_keys), has_id = has_key(labels, thread_id_keys);
    if (thread->name.index != 0 && !has_name)
        add_text(labels, THREAD_NAME_LABEL, profile_c_string(profile, thread->name));
    if (has_id) return;
    add_text(labels, THREAD_ID_LABEL, profile_c_string(profile, thread->id));
    struct sample_label *label = &labels->items[labels->count - 1];
    label->is_number = thread_id_is_number(profile_slice(profile, thread->id), &label->number);
}

void sample_labels_collect(struct sample_labels *labels, const struct profile *profile, struct label_set_id set,
                           struct thread_id thread)
{
    struct label_set own = profile->label_sets.items[set.index];
    labels->count = 0;
    for (uint32_t i = 0; i < own.count; i++) {
        const struct label *label = &profile->labels.items[own.first + i];
        labels->items[labels->count++] = (struct sample_label){.key_id = label->key,
                                                               .key = profile_c_string(profile, label->key),
                                                               .is_number = label->is_number,
                                                               .text = profile_c_string(profile, label->text),
                                                               .number = label->number,
                                                               .unit = profile_c_string(profile, label->unit),
                                                               .place = i};
    }
    if (thread.index != 0) add_thread(labels, profile, profile_thread(profile, thread));
}

/* Byte I of "key:[", the text that pprof sorts by. */
static unsigned char sorted_byte(const char *key, size_t length, size_t i)
{
    return (unsigned char)(i < length ? key[i] : ":["[i - length]);
}

static int compare_keys(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);
    size_t common = 2 + (a_length < b_length ? a_length : b_length);
    for (size_t i = 0; i < common; i++) {
        int difference = sorted_byte(a, a_length, i) - sorted_byte(b, b_length, i);
        if (difference != 0) return difference;
    }
    return (a_length > b_length) - (a_length < b_length);
}

static int compare_labels(const void *left, const void *right)
{
    const struct sample_label *a = left, *b = right;
    if (a->is_number != b->is_number) return a->is_number - b->is_number;
    int order = compare_keys(a->key, b->key);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

void sample_labels_sort(struct sample_labels *labels)
{
    if (labels->count > 1) qsort(labels->items, labels->count, sizeof(*labels->items), compare_labels);
}
