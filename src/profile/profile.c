/* The profile's life, its strings, and the questions one can ask it.
 *
 * Strings are copied into blocks that never move, so that a slice or a C string stays valid until the end.
 * SPDX-License-Identifier: MIT */
#include "profile/profile_private.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/invariant.h"

enum { STRING_BLOCK_BYTES = 64 << 10, STRING_BLOCK_BYTES_MAX = 2 * PAGES_LARGE_BYTES };

struct string_block {
    struct string_block *next;
    uint8_t bytes[];
};

void profile_fail(struct profile *profile, enum status status)
{
    if (profile->failed == STATUS_OK) profile->failed = status;
}

bool profile_reserve(struct profile *profile, void *items, size_t *capacity, size_t needed, size_t item_size,
                     size_t maximum)
{
    if (profile->failed != STATUS_OK) return false;
    if (array_reserve(items, capacity, needed, item_size, maximum)) return true;
    profile_fail(profile, needed > maximum ? STATUS_TOO_LARGE : STATUS_NO_MEMORY);
    return false;
}

/* Entry 0 of a table, all zero, means "none". It is in no index: a real entry may be all zero too. */
#define ADD_NONE(profile, table)                                                                                       \
    do {                                                                                                               \
        if (PROFILE_RESERVE(profile, table, 1, 1))                                                                     \
            memset(&(profile)->table.items[(profile)->table.count++], 0, sizeof(*(profile)->table.items));             \
    } while (0)

void profile_init(struct profile *profile)
{
    *profile = (struct profile){0};
    ADD_NONE(profile, strings);
    ADD_NONE(profile, mappings);
    ADD_NONE(profile, functions);
    ADD_NONE(profile, locations);
    ADD_NONE(profile, stack_words);
    ADD_NONE(profile, processes);
    ADD_NONE(profile, threads);
    ADD_NONE(profile, label_sets);
    if (profile->failed == STATUS_OK) profile->strings.items[0] = slice_of("", 0);
}

void profile_fini(struct profile *profile)
{
    for (struct string_block *block = profile->string_memory.blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(profile->strings.items);
    index_table_fini(&profile->strings.index);
    free(profile->mappings.items);
    index_table_fini(&profile->mappings.index);
    free(profile->functions.items);
    index_table_fini(&profile->functions.index);
    free(profile->locations.items);
    index_table_fini(&profile->locations.index);
    free(profile->lines.items);
    free(profile->stack_words.items);
    index_table_fini(&profile->stack_words.index);
    free(profile->processes.items);
    index_table_fini(&profile->processes.index);
    free(profile->threads.items);
    index_table_fini(&profile->threads.index);
    free(profile->labels.items);
    free(profile->label_sets.items);
    index_table_fini(&profile->label_sets.index);
    for (size_t i = 0; i < profile->measurements.count; i++) free(profile->measurements.items[i].values);
    free(profile->measurements.items);
    free(profile->markers.items);
    free(profile->marker_texts.items);
    free(profile->marker_schemas.items);
    free(profile->metadata.items);
    free(profile->comments.items);
    free(profile->omissions.items);
    if (profile->extension) profile->extension_type->fini(profile->extension);
    free(profile->extension);
    free(profile->samples.stack);
    free(profile->samples.thread);
    free(profile->samples.labels);
    free(profile->samples.time_ns);
    free(profile->samples.values);
    stated_costs_drop(profile);
    *profile = (struct profile){0};
}

enum status profile_failed(const struct profile *profile, struct error *error)
{
    switch ((int)profile->failed) {
    case STATUS_OK:
        return STATUS_OK;
    case STATUS_NO_MEMORY:
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the profile");
    case STATUS_TOO_LARGE:
        return error_set(error, STATUS_TOO_LARGE, 0, "the profile has more, or longer, entries than offbeat accepts");
    default:
        return error_set(error, profile->failed, 0, "the profile cannot hold what was added to it");
    }
}

/* --- Strings ------------------------------------------------------------------------------------------------------ */

static uint8_t *string_block_new(struct profile *profile, size_t size)
{
    struct string_block *block = malloc(sizeof(*block) + size);
    if (!block) {
        profile_fail(profile, STATUS_NO_MEMORY);
        return NULL;
    }
    if (size >= PAGES_LARGE_BYTES) pages_prefer_large(block, sizeof(*block) + size);
    block->next = profile->string_memory.blocks;
    profile->string_memory.blocks = block;
    return block->bytes;
}

struct slice profile_copy(struct profile *profile, struct slice bytes)
{
    uint8_t *copy = profile->failed == STATUS_OK && bytes.size ? string_block_new(profile, bytes.size) : NULL;
    if (!copy) return slice_of(NULL, 0);
    memcpy(copy, bytes.data, bytes.size);
    return slice_of(copy, bytes.size);
}

void *profile_extension_make(struct profile *profile, const struct profile_extension_type *type)
{
    if (profile->extension) return INVARIANT(profile->extension_type == type) ? profile->extension : NULL;
    if (profile->failed != STATUS_OK) return NULL;
    profile->extension = calloc(1, type->size);
    if (!profile->extension)
        profile_fail(profile, STATUS_NO_MEMORY);
    else
        profile->extension_type = type;
    return profile->extension;
}

static uint8_t *string_memory_take(struct profile *profile, size_t size)
{
    if (size > STRING_BLOCK_BYTES / 4) return string_block_new(profile, size);
    if (size > profile->string_memory.size - profile->string_memory.used) {
        /* Sizes double: many strings get into large pages, few take little memory. */
        size_t block_size = profile->string_memory.size ? 2 * profile->string_memory.size : STRING_BLOCK_BYTES;
        if (block_size > STRING_BLOCK_BYTES_MAX) block_size = STRING_BLOCK_BYTES_MAX;
        uint8_t *fresh = string_block_new(profile, block_size);
        if (!fresh) return NULL;
        profile->string_memory.current = fresh;
        profile->string_memory.size = block_size;
        profile->string_memory.used = 0;
    }
    uint8_t *taken = profile->string_memory.current + profile->string_memory.used;
    profile->string_memory.used += size;
    return taken;
}

static bool string_equal(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = context;
    return slice_equal(profile->strings.items[index], *(const struct slice *)key);
}

bool profile_is_string(const struct profile *profile, uint32_t index, struct slice text)
{
    return index < profile->strings.count && string_equal(profile, index, &text);
}

bool profile_find_string(const struct profile *profile, struct slice text, struct string_id *ret_id)
{
    ret_id->index = 0;
    if (text.size == 0) return true;
    uint32_t index =
        index_table_find(&profile->strings.index, hash_bytes(text.data, text.size), string_equal, profile, &text);
    if (index == INDEX_NONE) return false;
    ret_id->index = index;
    return true;
}

static struct metadata_entry metadata_of(const struct profile *profile, const char *key, bool is_number)
{
    for (size_t i = 0; i < profile->metadata.count; i++) {
        const struct metadata_entry *entry = &profile->metadata.items[i];
        if (entry->is_number == is_number && strcmp(profile_c_string(profile, entry->key), key) == 0) return *entry;
    }
    return (struct metadata_entry){0};
}

const char *profile_metadata_text(const struct profile *profile, const char *key)
{
    return profile_c_string(profile, metadata_of(profile, key, false).text);
}

int64_t profile_metadata_number(const struct profile *profile, const char *key)
{
    return metadata_of(profile, key, true).number;
}

struct string_id profile_string(struct profile *profile, struct slice text)
{
    static const struct string_id none;
    if (text.size == 0) return none;
    if (text.size > PROFILE_STRING_BYTES_MAX) {
        profile_fail(profile, STATUS_TOO_LARGE);
        return none;
    }
    uint64_t hash = hash_bytes(text.data, text.size);
    uint32_t index = index_table_find(&profile->strings.index, hash, string_equal, profile, &text);
    if (index != INDEX_NONE) return (struct string_id){index};

    if (!PROFILE_RESERVE(profile, strings, 1, PROFILE_STRINGS_MAX)) return none;
    uint8_t *copy = string_memory_take(profile, text.size + 1);
    if (!copy) return none;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    index = (uint32_t)profile->strings.count;
    if (!index_table_add(&profile->strings.index, hash, index)) {
        profile_fail(profile, STATUS_NO_MEMORY);
        return none;
    }
    profile->strings.items[profile->strings.count++] = slice_of(copy, text.size);
    return (struct string_id){index};
}

struct string_id profile_text(struct profile *profile, const char *text)
{
    return profile_string(profile, slice_of_text(text));
}

/* --- Asking: an id that does not exist answers as "none" does. ---------------------------------------------------- */

#define ITEM_OR_NONE(profile, table, id, none)                                                                         \
    ((id).index < (profile)->table.count ? &(profile)->table.items[(id).index] : &(none))

struct slice profile_slice(const struct profile *profile, struct string_id id)
{
    static const struct slice none = {.data = (const uint8_t *)"", .size = 0};
    return *ITEM_OR_NONE(profile, strings, id, none);
}

const char *profile_c_string(const struct profile *profile, struct string_id id)
{
    return (const char *)profile_slice(profile, id).data;
}

const struct mapping *profile_mapping(const struct profile *profile, struct mapping_id id)
{
    static const struct mapping none;
    return ITEM_OR_NONE(profile, mappings, id, none);
}

const struct function *profile_function(const struct profile *profile, struct function_id id)
{
    static const struct function none;
    return ITEM_OR_NONE(profile, functions, id, none);
}

const struct location *profile_location(const struct profile *profile, struct location_id id)
{
    static const struct location none;
    return ITEM_OR_NONE(profile, locations, id, none);
}

const struct line *profile_lines(const struct profile *profile, const struct location *location)
{
    return location->line_count ? profile->lines.items + location->line_first : NULL;
}

struct stack profile_stack(const struct profile *profile, struct stack_id id)
{
    bool is_one = id.index > 0 && id.index < profile->stack_words.count && profile_is_stack(profile, id.index);
    return is_one ? profile_stack_at(profile, id.index) : (struct stack){0};
}

const struct process *profile_process(const struct profile *profile, struct process_id id)
{
    static const struct process none;
    return ITEM_OR_NONE(profile, processes, id, none);
}

const struct thread *profile_thread(const struct profile *profile, struct thread_id id)
{
    static const struct thread none;
    return ITEM_OR_NONE(profile, threads, id, none);
}

size_t profile_stack_depth(const struct profile *profile, struct stack_id stack)
{
    size_t depth = 0;
    for (; stack.index != 0; stack = profile_stack(profile, stack).parent) depth++;
    return depth;
}

static int find_value_type(const struct profile *profile, struct slice type)
{
    for (size_t i = 0; i < profile->value_type_count; i++) {
        if (slice_equal(profile_slice(profile, profile->value_types[i].type), type)) return (int)i;
    }
    return -1;
}

int profile_value_index(const struct profile *profile, const char *type)
{
    struct slice wanted = slice_of_text(type);
    if (wanted.size > 0) return find_value_type(profile, wanted);
    int preferred = -1;
    if (profile->default_value_type.index != 0) {
        preferred = find_value_type(profile, profile_slice(profile, profile->default_value_type));
    }
    return preferred >= 0 ? preferred : (int)profile->value_type_count - 1;
}
