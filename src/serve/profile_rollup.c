/* A frame of the store is a location: what names it, as the sizes and bytes of strings and numbers in LEB128. Its
 * address is left out if its functions have names, because that differs from process to process. If it has none, or a
 * placeholder, and is in an image, its key is its address, so that a query can name it (serve/image_place.h).
 * SPDX-License-Identifier: MIT */
#include "serve/profile_rollup.h"

#include "base/cursor.h"
#include "base/leb128.h"
#include "serve/image_place.h"

#include <stdlib.h>

enum { ROLLUP_LINES_MAX = 64, ROLLUP_TEXT_MAX = 8 << 20 };

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void put_string(struct buffer *out, const struct profile *profile, struct string_id id)
{
    struct slice text = profile_slice(profile, id);
    leb128_append(out, text.size);
    buffer_append(out, text.data, text.size);
}

static void write_header(const struct profile *profile, struct buffer *out)
{
    leb128_append(out, profile->value_type_count);
    for (size_t i = 0; i < profile->value_type_count; i++) {
        put_string(out, profile, profile->value_types[i].type);
        put_string(out, profile, profile->value_types[i].unit);
    }
    put_string(out, profile, profile->default_value_type);
    put_string(out, profile, profile->drop_frames);
    put_string(out, profile, profile->keep_frames);
}

static void put_line(struct buffer *out, const struct profile *profile, const struct line *line)
{
    const struct function *function = profile_function(profile, line->function);
    const struct string_id texts[] = {function->name, function->system_name, function->file_name, function->module,
                                      function->package};
    for (size_t i = 0; i < 5; i++) put_string(out, profile, texts[i]);
    leb128_append(out, (uint64_t)function->start_line);
    leb128_append(out, (uint64_t)line->line);
    leb128_append(out, (uint64_t)line->column);
    buffer_append_byte(out, (uint8_t)function->in_app);
}

static bool is_named(const struct profile *profile, const struct location *location)
{
    const struct line *lines = profile_lines(profile, location);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct function *function = profile_function(profile, lines[i].function);
        if (function->name.index == 0 && function->system_name.index == 0) return false;
    }
    return location->line_count > 0;
}

static bool write_frame(const struct profile *profile, const struct location *location, struct buffer *out)
{
    const struct mapping *mapping = profile_mapping(profile, location->mapping);
    bool has_name = is_named(profile, location);
    uint64_t key = 0;
    bool is_in_image = image_key_of(profile, location, &key);
    if (location->line_count > ROLLUP_LINES_MAX || (!has_name && location->mapping.index && !is_in_image)) return false;
    buffer_append_byte(out, location->mapping.index != 0);
    put_string(out, profile, mapping->file_name);
    char id[IMAGE_ID_SIZE];
    bool is_derived = is_in_image && mapping->build_id.index == 0 && image_id_of(profile, mapping, id);
    struct slice image_id = is_derived ? slice_of_text(id) : profile_slice(profile, mapping->build_id);
    leb128_append(out, image_id.size);
    buffer_append(out, image_id.data, image_id.size);
    if (!is_in_image) key = has_name ? 0 : location->address;
    leb128_append(out, key);
    leb128_append(out, location->line_count);
    const struct line *lines = profile_lines(profile, location);
    for (uint32_t i = 0; i < location->line_count; i++) put_line(out, profile, &lines[i]);
    return true;
}

/* Numbers of the profile's stacks and locations in the rollup: 1 + the number, 0: not used. */
struct numbering {
    uint32_t *stacks, *locations;
    uint32_t *ends; /* ends of the frames in the text */
};

static bool mark_stacks(const struct profile *profile, struct numbering *numbering, size_t *ret_count)
{
    size_t count = 1;
    for (size_t i = 0; i < profile->samples.count; i++) numbering->stacks[profile->samples.stack[i].index] = 1;
    numbering->stacks[0] = 1;
    for (uint32_t i = profile_stack_limit(profile); i-- > 1;) {
        if (!numbering->stacks[i]) continue;
        numbering->stacks[profile_parent_at(profile, i)] = 1;
        count++;
    }
    *ret_count = count;
    return count <= STORE_ROLLUP_NODES_MAX;
}

static bool number_location(struct profile_rollup *rollup, const struct profile *profile, struct numbering *numbering,
                            struct location_id id, uint32_t *ret_frame)
{
    uint32_t *number = &numbering->locations[id.index];
    if (*number == 0) {
        if (!write_frame(profile, profile_location(profile, id), &rollup->text) || rollup->text.failed) return false;
        numbering->ends[rollup->rollup.frame_count++] = (uint32_t)rollup->text.size;
        *number = (uint32_t)rollup->rollup.frame_count;
    }
    *ret_frame = *number - 1;
    return true;
}

static bool add_nodes(struct profile_rollup *rollup, const struct profile *profile, struct numbering *numbering)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile_stack_limit(profile); i++) {
        if (!numbering->stacks[i]) continue;
        numbering->stacks[i] = ++count;
        if (i == 0) continue;
        struct stack stack = profile_stack_at(profile, i);
        struct store_node *node = &rollup->nodes[count - 1];
        node->parent = numbering->stacks[stack.parent.index] - 1;
        if (!number_location(rollup, profile, numbering, stack.location, &node->frame)) return false;
    }
    rollup->rollup.node_count = count;
    return true;
}

static bool add_sample_values(struct profile_rollup *rollup, const struct profile *profile,
                              const struct numbering *numbering)
{
    size_t value_count = profile->value_type_count;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        uint64_t *into = rollup->values + (numbering->stacks[profile->samples.stack[i].index] - 1) * value_count;
        for (size_t k = 0; k < value_count; k++) {
            if (values[k] < 0) return false;
            into[k] = (uint64_t)profile_add_values((int64_t)into[k], values[k]);
        }
    }
    return true;
}

static bool fill_rollup(struct profile_rollup *rollup, const struct profile *profile, struct numbering *numbering)
{
    size_t count;
    buffer_init(&rollup->text, ROLLUP_TEXT_MAX);
    write_header(profile, &rollup->text);
    size_t header_size = rollup->text.size;
    if (header_size > STORE_ROLLUP_HEADER_MAX || !mark_stacks(profile, numbering, &count)) return false;
    rollup->nodes = calloc(count, sizeof(*rollup->nodes));
    rollup->values = calloc(count * profile->value_type_count, sizeof(*rollup->values));
    if (!rollup->nodes || !rollup->values || !add_nodes(rollup, profile, numbering) ||
        !add_sample_values(rollup, profile, numbering))
        return false;
    rollup->frames = calloc(rollup->rollup.frame_count + 1, sizeof(*rollup->frames));
    if (!rollup->frames || rollup->text.failed) return false;
    for (size_t i = 0, start = header_size; i < rollup->rollup.frame_count; start = numbering->ends[i++])
        rollup->frames[i] = slice_of(rollup->text.data + start, numbering->ends[i] - start);
    rollup->rollup.header = slice_of(rollup->text.data, header_size);
    rollup->rollup.frames = rollup->frames;
    rollup->rollup.nodes = rollup->nodes;
    rollup->rollup.values = rollup->values;
    rollup->rollup.value_count = profile->value_type_count;
    return true;
}

bool profile_rollup_init(struct profile_rollup *rollup, const struct profile *profile)
{
    *rollup = (struct profile_rollup){0};
    if (profile->value_type_count == 0 || profile->value_type_count > STORE_ROLLUP_VALUES_MAX) return false;
    struct numbering numbering = {.stacks = calloc(profile_stack_limit(profile) + 1, sizeof(uint32_t)),
                                  .locations = calloc(profile->locations.count + 1, sizeof(uint32_t)),
                                  .ends = calloc(profile->locations.count + 1, sizeof(uint32_t))};
    bool is_fine =
        numbering.stacks && numbering.locations && numbering.ends && fill_rollup(rollup, profile, &numbering);
    free(numbering.stacks);
    free(numbering.locations);
    free(numbering.ends);
    return is_fine;
}

void profile_rollup_fini(struct profile_rollup *rollup)
{
    buffer_fini(&rollup->text);
    free(rollup->frames);
    free(rollup->nodes);
    free(rollup->values);
    *rollup = (struct profile_rollup){0};
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static struct string_id take_string(struct cursor *cursor, struct profile *profile)
{
    return profile_string(profile, cursor_take(cursor, cursor_uleb128(cursor)));
}

static bool read_header(struct slice header, struct profile *profile)
{
    struct cursor cursor = cursor_of(header);
    uint64_t count = cursor_uleb128(&cursor);
    if (count > STORE_ROLLUP_VALUES_MAX) return false;
    for (uint64_t i = 0; i < count && !cursor.failed; i++) {
        struct string_id type = take_string(&cursor, profile), unit = take_string(&cursor, profile);
        profile->value_types[profile->value_type_count++] = (struct value_type){type, unit};
    }
    profile->default_value_type = take_string(&cursor, profile);
    profile->drop_frames = take_string(&cursor, profile);
    profile->keep_frames = take_string(&cursor, profile);
    return !cursor.failed && cursor_at_end(&cursor);
}

static struct line take_line(struct cursor *cursor, struct profile *profile)
{
    struct function function = {.name = take_string(cursor, profile)};
    function.system_name = take_string(cursor, profile);
    function.file_name = take_string(cursor, profile);
    function.module = take_string(cursor, profile);
    function.package = take_string(cursor, profile);
    function.start_line = (int64_t)cursor_uleb128(cursor);
    struct line line = {.line = (int64_t)cursor_uleb128(cursor), .column = (int64_t)cursor_uleb128(cursor)};
    uint8_t in_app = cursor_u8(cursor);
    function.in_app = in_app <= IN_APP_YES ? (enum in_app)in_app : IN_APP_UNKNOWN;
    line.function = profile_add_function(profile, &function);
    return line;
}

static bool read_frame(struct slice bytes, struct profile *profile, struct location_id *ret_location)
{
    struct line lines[ROLLUP_LINES_MAX];
    struct cursor cursor = cursor_of(bytes);
    bool has_mapping = cursor_u8(&cursor);
    struct mapping mapping = {.file_name = take_string(&cursor, profile)};
    mapping.build_id = take_string(&cursor, profile);
    struct location location = {.address = cursor_uleb128(&cursor)};
    uint64_t count = cursor_uleb128(&cursor);
    if (count > ROLLUP_LINES_MAX) return false;
    if (has_mapping && location.address)
        location = image_location(profile, mapping.file_name, mapping.build_id, location.address);
    else if (has_mapping)
        location.mapping = profile_add_mapping(profile, &mapping);
    for (uint64_t i = 0; i < count; i++) lines[i] = take_line(&cursor, profile);
    *ret_location = profile_add_location(profile, &location, lines, (uint32_t)count);
    return !cursor.failed && cursor_at_end(&cursor);
}

static bool read_nodes(const struct store_rollup *rollup, const struct location_id *locations, struct stack_id *stacks,
                       struct profile *profile)
{
    for (size_t i = 0; i < rollup->node_count; i++) {
        const struct store_node *node = &rollup->nodes[i];
        const uint64_t *values = rollup->values + i * rollup->value_count;
        if (i > 0) {
            if (node->parent >= i || node->frame >= rollup->frame_count) return false;
            stacks[i] = profile_add_stack(profile, stacks[node->parent], locations[node->frame]);
        }
        if (!store_has_values(values, rollup->value_count)) continue;
        const struct sample sample = {.stack = stacks[i]};
        int64_t signed_values[STORE_ROLLUP_VALUES_MAX];
        for (size_t k = 0; k < rollup->value_count; k++) signed_values[k] = (int64_t)values[k];
        profile_add_sample(profile, &sample, signed_values);
    }
    return true;
}

enum status profile_of_rollup(const struct store_rollup *rollup, struct profile *profile, struct error *error)
{
    struct location_id *locations = calloc(rollup->frame_count + 1, sizeof(*locations));
    struct stack_id *stacks = calloc(rollup->node_count + 1, sizeof(*stacks));
    enum status status = STATUS_OK;
    bool is_fine = locations && stacks;
    if (!is_fine) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to add sums");
    if (is_fine) is_fine = read_header(rollup->header, profile) && profile->value_type_count == rollup->value_count;
    for (size_t i = 0; i < rollup->frame_count && is_fine; i++)
        is_fine = read_frame(rollup->frames[i], profile, &locations[i]);
    if (is_fine) is_fine = read_nodes(rollup, locations, stacks, profile);
    if (!is_fine && status == STATUS_OK) status = error_set(error, STATUS_UNSUPPORTED, 0, "a stored sum is damaged");
    free(locations);
    free(stacks);
    return status == STATUS_OK ? profile_failed(profile, error) : status;
}
