/* SPDX-License-Identifier: MIT */
#include "analyze/grouping.h"

#include "analyze/place_name.h"
#include "base/array.h"
#include "base/clean_path.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdlib.h>

struct builder {
    struct grouping *grouping;
    const struct profile *profile;
    const struct grouping_options *options;
    struct name_id *clean_paths; /* clean paths by string; 0: not known yet */
    size_t string_count;
    struct buffer text;
};

/* --- Names -------------------------------------------------------------------------------------------------------- */

static struct name_id text_so_far(struct builder *builder)
{
    return names_add(&builder->grouping->names, buffer_slice(&builder->text));
}

static struct name_id clean_path(struct builder *builder, struct string_id path)
{
    if (path.index == 0 || path.index >= builder->string_count) return name_of_string(path);
    struct name_id *clean = &builder->clean_paths[path.index];
    if (clean->index == 0) {
        buffer_clear(&builder->text);
        clean_path_append(&builder->text, profile_slice(builder->profile, path));
        *clean = text_so_far(builder);
    }
    return *clean;
}

static void append_name(struct builder *builder, struct name_id name)
{
    struct slice text = names_slice(&builder->grouping->names, name);
    if (builder->text.size > 0) buffer_append_byte(&builder->text, ' ');
    buffer_append(&builder->text, text.data, text.size);
}

/* Address, function, file and line, as far as they are there; the mapping or <unknown> if there is no name. */
static struct name_id printable_name(struct builder *builder, const struct group *group)
{
    bool is_name_alone = group->address == 0 && group->line == 0 && group->file.index == 0;
    if (is_name_alone && group->name.index != 0) return group->name;
    buffer_clear(&builder->text);
    if (group->address != 0) buffer_append_format(&builder->text, "%016" PRIx64, group->address);
    if (group->name.index != 0) append_name(builder, group->name);
    if (group->line != 0) {
        append_name(builder, group->file);
        buffer_append_format(&builder->text, ":%" PRId64, group->line);
        if (group->column != 0) buffer_append_format(&builder->text, ":%" PRId64, group->column);
    } else if (group->file.index != 0) {
        append_name(builder, group->file);
    } else if (group->name.index == 0 && group->object.index != 0) {
        const char *path = profile_c_string(builder->profile, group->object), *slash = strrchr(path, '/');
        if (builder->text.size > 0) buffer_append_byte(&builder->text, ' ');
        buffer_append_format(&builder->text, "[%s]", slash ? slash + 1 : path);
    } else if (group->name.index == 0) {
        buffer_append_text(&builder->text, builder->text.size > 0 ? " <unknown>" : "<unknown>");
    }
    if (builder->text.failed) return (struct name_id){0};
    return text_so_far(builder);
}

/* --- Groups ------------------------------------------------------------------------------------------------------- */

static bool group_equal(const void *context, uint32_t index, const void *key)
{
    const struct grouping *grouping = context;
    const struct group *a = &grouping->items[index], *b = key;
    return a->name.index == b->name.index && a->file.index == b->file.index && a->object.index == b->object.index &&
           a->address == b->address && a->line == b->line && a->column == b->column && a->start_line == b->start_line;
}

static uint64_t group_hash(const struct group *group)
{
    uint64_t hash = hash_mix((uint64_t)group->name.index << 32 | group->file.index, group->address);
    hash = hash_mix(hash, (uint64_t)group->line << 16 ^ (uint64_t)group->column);
    return hash_mix(hash, (uint64_t)group->object.index << 32 ^ (uint64_t)group->start_line);
}

/* The index of GROUP; 0 without memory, which the caller sees by names_failed. */
static bool find_group(struct builder *builder, struct group *group, uint32_t *ret_index)
{
    struct grouping *grouping = builder->grouping;
    uint64_t hash = group_hash(group);
    *ret_index = index_table_find(&grouping->index, hash, group_equal, grouping, group);
    if (*ret_index != INDEX_NONE) return true;
    *ret_index = (uint32_t)grouping->count;
    group->printable = printable_name(builder, group);
    if (!array_reserve(&grouping->items, &grouping->capacity, grouping->count + 1, sizeof(*grouping->items),
                       2 * (size_t)PROFILE_ENTITIES_MAX) ||
        !index_table_add(&grouping->index, hash, *ret_index)) {
        return false;
    }
    grouping->items[grouping->count++] = *group;
    return true;
}

static bool has_names(const struct builder *builder)
{
    return builder->options->granularity != GRANULARITY_FILES;
}

static bool has_files(const struct builder *builder)
{
    return builder->options->granularity != GRANULARITY_FUNCTIONS;
}

/* Describes a frame. Without LINE it is of a location that has none. */
static struct group describe(struct builder *builder, const struct location *location, const struct line *line)
{
    static const struct line no_line;
    const struct profile *profile = builder->profile;
    const struct grouping_options *options = builder->options;
    struct group group = {.mapping = location->mapping};
    struct string_id object = profile_mapping(profile, location->mapping)->file_name;
    bool has_lines = options->granularity >= GRANULARITY_LINES;
    if (!line) line = &no_line;
    if (options->granularity == GRANULARITY_ADDRESSES) group.address = location->address;
    if (line->function.index == 0) {
        group.object = object;
    } else {
        struct function function = *profile_function(profile, line->function);
        group.function = line->function;
        if (has_names(builder)) group.name = name_of_string(function.name);
        if (has_names(builder) && options->names_unsymbolized && group.name.index == 0)
            group.name = name_of_string(function.system_name);
        if (has_files(builder)) group.file = clean_path(builder, function.file_name);
        if (has_lines) group.line = line->line;
        if (has_lines && options->has_columns) group.column = line->column;
        bool is_nameless = group.name.index == 0 && options->splits_nameless;
        if (options->keeps_objects || is_nameless || (group.name.index == 0 && group.file.index == 0))
            group.object = object;
        if (options->keeps_objects || is_nameless) group.start_line = function.start_line;
    }
    bool is_named = group.name.index != 0 || (group.file.index != 0 && !has_names(builder)) || group.address != 0;
    if (options->names_unsymbolized && !is_named) {
        group.name = place_name(&builder->grouping->names, location);
        if (group.name.index != 0) group.object = (struct string_id){0};
    }
    return group;
}

static bool group_location(struct builder *builder, uint32_t index)
{
    struct grouping *grouping = builder->grouping;
    struct location location = builder->profile->locations.items[index];
    uint32_t first = 0, count = location.line_count;
    if (builder->options->no_inlines && count > 1) first = count - 1;
    uint32_t *list = &grouping->lists[grouping->list_size];
    list[0] = count > 0 ? count - first : 1;
    for (uint32_t i = first; i < count || i == first; i++) {
        const struct line *line = count > 0 ? &profile_lines(builder->profile, &location)[i] : NULL;
        struct group group = describe(builder, &location, line);
        if (!find_group(builder, &group, &list[1 + i - first])) return false;
    }
    bool has_several = list[0] > 1;
    grouping->at[index] = has_several ? (uint32_t)grouping->list_size | GROUPING_SEVERAL : list[1];
    if (has_several) grouping->list_size += 1 + list[0];
    return true;
}

enum status grouping_init(struct grouping *grouping, const struct profile *profile,
                          const struct grouping_options *options, struct error *error)
{
    size_t location_count = profile->locations.count;
    struct builder builder = {.grouping = grouping, .profile = profile, .options = options};
    *grouping = (struct grouping){.at = calloc(location_count, sizeof(*grouping->at)),
                                  .lists = calloc(profile->lines.count + location_count + 2, sizeof(*grouping->lists))};
    names_init(&grouping->names, profile);
    builder.string_count = profile->strings.count;
    builder.clean_paths = calloc(builder.string_count, sizeof(*builder.clean_paths));
    buffer_init(&builder.text, 4 * (size_t)PROFILE_STRING_BYTES_MAX);
    bool is_done = grouping->at && grouping->lists && builder.clean_paths;
    for (uint32_t i = 0; i < location_count && is_done; i++) is_done = group_location(&builder, i);
    free(builder.clean_paths);
    buffer_fini(&builder.text);
    enum status status = names_failed(&grouping->names, error);
    if (status == STATUS_OK && !is_done) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to group");
    return status;
}

void grouping_fini(struct grouping *grouping)
{
    free(grouping->items);
    free(grouping->at);
    free(grouping->lists);
    index_table_fini(&grouping->index);
    names_fini(&grouping->names);
    *grouping = (struct grouping){0};
}
