/* A label whose value looks like an id is never common: sums of different labels are apart, and there would be as many
 * of them as profiles.  SPDX-License-Identifier: MIT */
#include "query/rollup_labels.h"

#include "base/leb128.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_MAX = 1024, KEYS_MAX = 32, ID_SIZE_MIN = 16, COMMON_BYTES_MAX = 2048, OTHERS_BYTES_MAX = 1024 };

struct found_labels {
    const struct profile *profile;
    struct label_set sets[SETS_MAX]; /* different sets that samples have */
    size_t set_count;
    const struct label *common[KEYS_MAX]; /* labels that each set has */
    size_t common_count;
    struct string_id others[KEYS_MAX];
    size_t other_count;
    bool is_too_much; /* some labels are not in COMMON or OTHERS */
};

static const struct label *label_at(const struct found_labels *found, const struct label_set *set, uint32_t i)
{
    return &found->profile->labels.items[set->first + i];
}

/* Whether VALUE is of hexadecimal digits and dashes, as ids are. */
static bool is_id(struct slice value)
{
    size_t i = 0;
    while (i < value.size && (isxdigit(value.data[i]) || value.data[i] == '-')) i++;
    return value.size >= ID_SIZE_MIN && i == value.size;
}

/* Collects the sets that samples have. */
static bool collect_sets(struct found_labels *found)
{
    const struct profile *profile = found->profile;
    bool *is_used = calloc(profile->label_sets.count + 1, sizeof(*is_used));
    if (!is_used) return false;
    for (size_t i = 0; i < profile->samples.count; i++) is_used[profile->samples.labels[i].index] = true;
    for (size_t i = 0; i < profile->label_sets.count; i++) {
        if (!is_used[i]) continue;
        if (found->set_count < SETS_MAX)
            found->sets[found->set_count++] = profile->label_sets.items[i];
        else
            found->is_too_much = true;
    }
    free(is_used);
    return true;
}

/* Whether SET has LABEL, and no other one of its key. */
static bool has_just(const struct found_labels *found, const struct label_set *set, const struct label *label)
{
    size_t count = 0, same = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct label *other = label_at(found, set, i);
        if (other->key.index != label->key.index) continue;
        count++;
        same += !other->is_number && other->text.index == label->text.index;
    }
    return count == 1 && same == 1;
}

static bool is_common(const struct found_labels *found, const struct label *label)
{
    bool is_everywhere = !label->is_number && !found->is_too_much && !is_id(profile_slice(found->profile, label->text));
    for (size_t i = 0; i < found->set_count && is_everywhere; i++)
        is_everywhere = has_just(found, &found->sets[i], label);
    return is_everywhere;
}

/* Returns whether KEY is that of one of the common labels: no set has another one with it. */
static bool is_common_key(const struct found_labels *found, struct string_id key)
{
    size_t i = 0;
    while (i < found->common_count && found->common[i]->key.index != key.index) i++;
    return i < found->common_count;
}

static void add_common(struct found_labels *found, const struct label *label)
{
    if (found->common_count < KEYS_MAX)
        found->common[found->common_count++] = label;
    else
        found->is_too_much = true;
}

static void add_other(struct found_labels *found, struct string_id key)
{
    for (size_t i = 0; i < found->other_count; i++) {
        if (found->others[i].index == key.index) return;
    }
    if (found->other_count < KEYS_MAX)
        found->others[found->other_count++] = key;
    else
        found->is_too_much = true;
}

/* A common label is in the first set: only its labels are looked for in all others. */
static void sort_labels(struct found_labels *found)
{
    for (uint32_t k = 0; found->set_count > 0 && k < found->sets[0].count; k++) {
        const struct label *label = label_at(found, &found->sets[0], k);
        if (is_common(found, label)) add_common(found, label);
    }
    for (size_t i = 0; i < found->set_count; i++) {
        for (uint32_t k = 0; k < found->sets[i].count; k++) {
            struct string_id key = label_at(found, &found->sets[i], k)->key;
            if (!is_common_key(found, key)) add_other(found, key);
        }
    }
}

static void put_text(struct buffer *out, const struct profile *profile, struct string_id id)
{
    struct slice text = profile_slice(profile, id);
    leb128_append(out, text.size);
    buffer_append(out, text.data, text.size);
}

static void write_labels(const struct found_labels *found, struct rollup_labels *labels)
{
    for (size_t i = 0; i < found->common_count; i++) {
        put_text(&labels->common, found->profile, found->common[i]->key);
        put_text(&labels->common, found->profile, found->common[i]->text);
    }
    leb128_append(&labels->others, found->other_count);
    for (size_t i = 0; i < found->other_count; i++) put_text(&labels->others, found->profile, found->others[i]);
    labels->has_others = found->other_count > 0;
    if (!found->is_too_much && !labels->common.failed && !labels->others.failed) return;
    buffer_clear(&labels->common);
    buffer_clear(&labels->others);
    leb128_append(&labels->others, 0);
    labels->has_others = true;
}

bool rollup_labels_init(struct rollup_labels *labels, const struct profile *profile)
{
    *labels = (struct rollup_labels){0};
    buffer_init(&labels->common, COMMON_BYTES_MAX);
    buffer_init(&labels->others, OTHERS_BYTES_MAX);
    struct found_labels *found = calloc(1, sizeof(*found));
    if (!found) return false;
    found->profile = profile;
    bool has_memory = collect_sets(found);
    if (has_memory) sort_labels(found);
    if (has_memory) write_labels(found, labels);
    free(found);
    return has_memory && !labels->common.failed && !labels->others.failed;
}

void rollup_labels_fini(struct rollup_labels *labels)
{
    buffer_fini(&labels->common);
    buffer_fini(&labels->others);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

bool rollup_labels_next(struct cursor *common, struct slice *ret_key, struct slice *ret_value)
{
    if (cursor_at_end(common)) return false;
    *ret_key = cursor_take(common, cursor_uleb128(common));
    *ret_value = cursor_take(common, cursor_uleb128(common));
    return !common->failed;
}

struct label_set_id rollup_labels_read(struct slice common, struct profile *profile)
{
    struct label labels[KEYS_MAX];
    struct slice key, value;
    uint32_t count = 0;
    struct cursor cursor = cursor_of(common);
    while (count < KEYS_MAX && rollup_labels_next(&cursor, &key, &value))
        labels[count++] = (struct label){.key = profile_string(profile, key), .text = profile_string(profile, value)};
    return profile_add_labels(profile, labels, count);
}

bool rollup_labels_may_lack(struct cursor header, struct slice key)
{
    uint64_t count = cursor_uleb128(&header);
    bool is_listed = count == 0;
    for (uint64_t i = 0; i < count && !header.failed; i++)
        is_listed |= slice_equal(cursor_take(&header, cursor_uleb128(&header)), key);
    return is_listed;
}

void rollup_labels_skip_others(struct cursor *header)
{
    uint64_t count = cursor_uleb128(header);
    for (uint64_t i = 0; i < count && !header->failed; i++) cursor_skip(header, cursor_uleb128(header));
}
