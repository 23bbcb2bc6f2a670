/* Adds frames for labels.
 *
 * All samples of one label group get the same frames. A leaf frame only adds a stack. A root frame changes each stack
 * above it, so the stacks of each group are copied: every stack once, however many samples have it.
 * SPDX-License-Identifier: MIT */
#include "analyze/tag_frames.h"

#include "analyze/label_groups.h"
#include "profile/sample_labels.h"
#include "profile/stated_costs.h"
#include "profile/units.h"

#include <stdlib.h>

struct keys {
    struct slice items[TAG_FRAMES_MAX];
    size_t count;
};

/* The copy of a stack that begins with the root ROOT. */
struct copy {
    uint32_t root;
    uint32_t stack;
};

struct tagging {
    struct profile *profile;
    const char *unit;
    struct keys root_keys, leaf_keys;
    bool has_root, has_leaf;
    struct label_groups groups;
    struct sample_labels labels; /* labels of the current group */
    struct buffer text;
    struct copy *copies;  /* copies by stack */
    uint32_t *path;       /* stacks from a leaf up to the first one that is copied */
    uint32_t stack_count; /* number of stacks of the profile without the added ones */
};

/* --- Frames ------------------------------------------------------------------------------------------------------- */

static bool split_keys(struct keys *keys, const char *text)
{
    while (text && *text) {
        size_t length = strcspn(text, ",");
        if (length > 0 && keys->count == TAG_FRAMES_MAX) return false;
        if (length > 0) keys->items[keys->count++] = slice_of(text, length);
        text += length + (text[length] == ',');
    }
    return true;
}

static void append_number(struct tagging *tagging, const struct sample_label *label)
{
    unit_append(&tagging->text, label->number, label->unit,
                label->unit[0] && tagging->unit ? tagging->unit : label->unit);
}

/* The values of KEY, texts before numbers. False if there are none. */
static bool append_values(struct tagging *tagging, struct slice key)
{
    bool has_value = false;
    buffer_clear(&tagging->text);
    for (int is_number = 0; is_number < 2; is_number++) {
        for (uint32_t i = 0; i < tagging->labels.count; i++) {
            const struct sample_label *label = &tagging->labels.items[i];
            if (label->is_number != (is_number == 1) || !slice_equals_text(key, label->key)) continue;
            if (has_value) buffer_append_byte(&tagging->text, ',');
            has_value = true;
            if (label->is_number)
                append_number(tagging, label);
            else
                buffer_append_text(&tagging->text, label->text);
        }
    }
    return has_value;
}

static struct stack_id add_frame(struct tagging *tagging, struct stack_id parent, struct slice key, bool *has_value)
{
    struct profile *profile = tagging->profile;
    *has_value |= append_values(tagging, key);
    struct function function = {.name = profile_string(profile, buffer_slice(&tagging->text)),
                                .file_name = profile_string(profile, key)};
    struct line line = {.function = profile_add_function(profile, &function)};
    struct location_id location = profile_add_location(profile, &(struct location){0}, &line, 1);
    return profile_add_stack(profile, parent, location);
}

static struct stack_id add_frames(struct tagging *tagging, struct stack_id parent, const struct keys *keys,
                                  bool *has_value)
{
    for (size_t i = 0; i < keys->count; i++) parent = add_frame(tagging, parent, keys->items[i], has_value);
    return parent;
}

/* --- Stacks ------------------------------------------------------------------------------------------------------- */

/* STACK on top of ROOT. */
static struct stack_id copy_stack(struct tagging *tagging, struct stack_id root, uint32_t stack)
{
    size_t depth = 0;
    while (stack != 0 && tagging->copies[stack].root != root.index) {
        tagging->path[depth++] = stack;
        stack = profile_parent_at(tagging->profile, stack);
    }
    struct stack_id copy = stack ? (struct stack_id){tagging->copies[stack].stack} : root;
    while (depth-- > 0) {
        uint32_t original = tagging->path[depth];
        copy = profile_add_stack(tagging->profile, copy, profile_stack_at(tagging->profile, original).location);
        tagging->copies[original] = (struct copy){.root = root.index, .stack = copy.index};
    }
    return copy;
}

/* Samples of one group follow each other, so that a copy is found for as long as its root is in use. */
static void tag_group(struct tagging *tagging, uint32_t group, const uint32_t *samples, size_t count)
{
    struct profile *profile = tagging->profile;
    const struct label_group *labels = &tagging->groups.items[group];
    sample_labels_collect(&tagging->labels, profile, labels->labels, labels->thread);
    struct stack_id root = add_frames(tagging, (struct stack_id){0}, &tagging->root_keys, &tagging->has_root);
    for (size_t i = 0; i < count && profile->failed == STATUS_OK; i++) {
        struct stack_id stack = profile->samples.stack[samples[i]];
        if (root.index != 0) stack = copy_stack(tagging, root, stack.index);
        stack = add_frames(tagging, stack, &tagging->leaf_keys, &tagging->has_leaf);
        profile_set_stack(profile, samples[i], stack);
    }
}

static bool tag_samples(struct tagging *tagging)
{
    struct profile *profile = tagging->profile;
    size_t group_count = tagging->groups.count, sample_count = profile->samples.count;
    size_t *first = calloc(group_count + 2, sizeof(*first));
    uint32_t *order = calloc(sample_count + 1, sizeof(*order));
    if (first && order) {
        /* Shifted by two, so that filling leaves the start of each group at its own place. */
        for (size_t i = 0; i < sample_count; i++) first[tagging->groups.group_of_sample[i] + 2]++;
        for (size_t g = 2; g <= group_count; g++) first[g] += first[g - 1];
        for (size_t i = 0; i < sample_count; i++) order[first[tagging->groups.group_of_sample[i] + 1]++] = (uint32_t)i;
        for (uint32_t g = 0; g < group_count; g++) tag_group(tagging, g, order + first[g], first[g + 1] - first[g]);
    }
    bool is_done = first && order;
    free(first);
    free(order);
    return is_done;
}

static bool run(struct tagging *tagging)
{
    tagging->stack_count = profile_stack_limit(tagging->profile);
    tagging->copies = calloc(tagging->stack_count, sizeof(*tagging->copies));
    tagging->path = calloc(tagging->stack_count, sizeof(*tagging->path));
    return tagging->copies && tagging->path && label_groups_init(&tagging->groups, tagging->profile) &&
           sample_labels_init(&tagging->labels, tagging->profile) && tag_samples(tagging);
}

enum status tag_frames_add(struct profile *profile, const struct tag_frames *frames, bool *ret_has_root,
                           bool *ret_has_leaf, struct error *error)
{
    struct tagging tagging = {.profile = profile, .unit = frames->unit};
    bool is_short = split_keys(&tagging.root_keys, frames->root) && split_keys(&tagging.leaf_keys, frames->leaf);
    if (!is_short) return error_set(error, STATUS_TOO_LARGE, 0, "more than %d label keys", TAG_FRAMES_MAX);
    bool is_done = true;
    buffer_init(&tagging.text, PROFILE_STRING_BYTES_MAX);
    if (tagging.root_keys.count + tagging.leaf_keys.count > 0) is_done = run(&tagging) && !tagging.text.failed;
    enum status status = profile_failed(profile, error);
    if (status == STATUS_OK && !is_done)
        status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for frames of labels");
    *ret_has_root = tagging.has_root;
    *ret_has_leaf = tagging.has_leaf;
    buffer_fini(&tagging.text);
    free(tagging.copies);
    free(tagging.path);
    sample_labels_fini(&tagging.labels);
    label_groups_fini(&tagging.groups);
    return status;
}
