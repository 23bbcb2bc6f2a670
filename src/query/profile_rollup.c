/* A frame of the store is a location: what names it, as the sizes and bytes of strings and numbers in LEB128. Its
 * address is left out if its functions have names, because that differs from process to process. If it has none, or a
 * placeholder, and is in an image, its key is its address, so that a query can name it (query/image_place.h). The
 * outermost frame of a thread's stacks is the name of the thread. SPDX-License-Identifier: MIT */
#include "query/profile_rollup.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/leb128.h"
#include "query/image_place.h"
#include "query/named_threads.h"

#include <stdlib.h>
#include <string.h>

enum { ROLLUP_LINES_MAX = 64, ROLLUP_TEXT_MAX = 8 << 20 };

/* The first byte of a header: the number of values, and what the sums have. */
enum { HEADER_COUNT = 0x0F, HEADER_LACKS_LABELS = 0x20, HEADER_IS_SERIES = 0x40 };
/* The first byte of a frame. */
enum { FRAME_IN_MEMORY, FRAME_IN_MAPPING, FRAME_IS_THREAD };

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void put_string(struct buffer *out, const struct profile *profile, struct string_id id)
{
    struct slice text = profile_slice(profile, id);
    leb128_append(out, text.size);
    buffer_append(out, text.data, text.size);
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
    buffer_append_byte(out, location->mapping.index ? FRAME_IN_MAPPING : FRAME_IN_MEMORY);
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

/* Numbers in the rollup: 1 + the number, 0: not used. */
struct numbering {
    const struct profile *profile;
    const struct rollup_series *series; /* NULL: none */
    size_t columns[STORE_ROLLUP_VALUES_MAX];
    size_t column_count; /* number of COLUMNS; a series has a value more, the number of profiles at node 0 */
    struct thread_names threads;
    uint32_t *stacks; /* nodes of the stacks of the current thread */
    uint32_t *locations;
    uint32_t *path;             /* stacks without a node */
    size_t *ends;               /* ends of the frames in the text */
    uint32_t *samples;          /* nodes of the samples */
    size_t node_capacity, root; /* ROOT: the node that the stacks of the current thread begin with */
};

static void write_header(const struct numbering *numbering, const struct rollup_labels *labels, struct buffer *out)
{
    const struct profile *profile = numbering->profile;
    int flags = labels->has_others ? HEADER_LACKS_LABELS : 0;
    if (numbering->series) flags |= HEADER_IS_SERIES;
    buffer_append_byte(out, (uint8_t)((int)numbering->column_count | flags));
    for (size_t i = 0; i < numbering->column_count; i++) {
        const struct value_type *type = &profile->value_types[numbering->columns[i]];
        put_string(out, profile, type->type);
        put_string(out, profile, type->unit);
    }
    put_string(out, profile, profile->default_value_type);
    put_string(out, profile, profile->drop_frames);
    put_string(out, profile, profile->keep_frames);
    put_string(out, profile, profile->period_type.type);
    put_string(out, profile, profile->period_type.unit);
    leb128_append(out, (uint64_t)profile->period);
    if (labels->has_others) buffer_append(out, labels->others.data, labels->others.size);
    if (!numbering->series) return;
    buffer_append(out, numbering->series->id, SHA1_TEXT_SIZE);
    for (size_t i = 0; i < numbering->column_count; i++)
        buffer_append_byte(out, (uint8_t)numbering->series->rules[numbering->columns[i]]);
}

/* Counts the frame that was appended to the text. */
static uint32_t end_frame(struct profile_rollup *rollup, struct numbering *numbering)
{
    numbering->ends[rollup->rollup.frame_count] = rollup->text.size;
    return (uint32_t)rollup->rollup.frame_count++;
}

static bool number_location(struct profile_rollup *rollup, struct numbering *numbering, struct location_id id,
                            uint32_t *ret_frame)
{
    const struct profile *profile = numbering->profile;
    uint32_t *number = &numbering->locations[id.index];
    if (*number == 0) {
        if (!write_frame(profile, profile_location(profile, id), &rollup->text) || rollup->text.failed) return false;
        *number = end_frame(rollup, numbering) + 1;
    }
    *ret_frame = *number - 1;
    return true;
}

static bool add_node(struct profile_rollup *rollup, struct numbering *numbering, size_t parent, uint32_t frame)
{
    size_t count = rollup->rollup.node_count;
    if (!array_reserve(&rollup->nodes, &numbering->node_capacity, count + 1, sizeof(*rollup->nodes),
                       STORE_ROLLUP_NODES_MAX))
        return false;
    rollup->nodes[count] = (struct store_node){(uint32_t)parent, frame};
    rollup->rollup.node_count++;
    return true;
}

/* Adds the nodes that STACK needs below the root of the current thread. */
static bool number_stack(struct profile_rollup *rollup, struct numbering *numbering, uint32_t stack)
{
    const struct profile *profile = numbering->profile;
    size_t depth = 0;
    while (stack && !numbering->stacks[stack]) {
        numbering->path[depth++] = stack;
        stack = profile_parent_at(profile, stack);
    }
    size_t parent = stack ? numbering->stacks[stack] - 1 : numbering->root;
    while (depth > 0) {
        uint32_t frame, next = numbering->path[--depth];
        if (!number_location(rollup, numbering, profile_stack_at(profile, next).location, &frame) ||
            !add_node(rollup, numbering, parent, frame))
            return false;
        parent = rollup->rollup.node_count - 1;
        numbering->stacks[next] = (uint32_t)parent + 1;
    }
    return true;
}

static bool add_thread(struct profile_rollup *rollup, struct numbering *numbering, size_t thread)
{
    const struct slice name = slice_of_text(numbering->threads.items[thread]);
    if (name.size) {
        buffer_append_byte(&rollup->text, FRAME_IS_THREAD);
        buffer_append(&rollup->text, name.data, name.size);
    }
    if (!add_node(rollup, numbering, 0, name.size ? end_frame(rollup, numbering) : 0)) return false;
    numbering->root = rollup->rollup.node_count - 1;
    (void)memset(numbering->stacks, 0, (profile_stack_limit(numbering->profile) + 1) * sizeof(*numbering->stacks));
    return true;
}

static size_t thread_of(const struct numbering *numbering, size_t sample)
{
    return numbering->threads.of_thread[numbering->profile->samples.thread[sample].index];
}

/* Sets FIRST to the first sample of each name of a thread, and NEXT to the one after each sample; UINT32_MAX: none. */
static void chain_samples(const struct numbering *numbering, uint32_t *first, uint32_t *next)
{
    for (size_t i = 0; i < numbering->threads.count; i++) first[i] = UINT32_MAX;
    for (size_t i = numbering->profile->samples.count; i-- > 0;) {
        size_t thread = thread_of(numbering, i);
        next[i] = first[thread];
        first[thread] = (uint32_t)i;
    }
}

static bool add_nodes(struct profile_rollup *rollup, struct numbering *numbering)
{
    const struct sample_columns *samples = &numbering->profile->samples;
    uint32_t *first = calloc(numbering->threads.count + 1, sizeof(*first));
    uint32_t *next = calloc(samples->count + 1, sizeof(*next));
    bool is_fine = first && next;
    if (is_fine) chain_samples(numbering, first, next);
    for (size_t thread = 0; is_fine && thread < numbering->threads.count; thread++) {
        /* The first node is the empty stack of no thread. */
        bool has_samples = first[thread] != UINT32_MAX;
        if (thread == 0 || has_samples) is_fine = add_thread(rollup, numbering, thread);
        for (size_t i = first[thread]; is_fine && i != UINT32_MAX; i = next[i]) {
            uint32_t stack = samples->stack[i].index;
            is_fine = number_stack(rollup, numbering, stack);
            numbering->samples[i] = stack ? numbering->stacks[stack] - 1 : (uint32_t)numbering->root;
        }
    }
    free(first);
    free(next);
    return is_fine;
}

static bool add_sample_values(struct profile_rollup *rollup, const struct numbering *numbering)
{
    const struct profile *profile = numbering->profile;
    size_t value_count = rollup->rollup.value_count;
    rollup->values = calloc(rollup->rollup.node_count * value_count, sizeof(*rollup->values));
    for (size_t i = 0; rollup->values && i < profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        uint64_t *into = rollup->values + numbering->samples[i] * value_count;
        for (size_t k = 0; k < numbering->column_count; k++) {
            int64_t value = values[numbering->columns[k]];
            if (value < 0) return false;
            into[k] = (uint64_t)profile_add_values((int64_t)into[k], value);
        }
    }
    if (rollup->values && numbering->series) rollup->values[numbering->column_count] = numbering->series->profile_count;
    return rollup->values != NULL;
}

static bool fill_rollup(struct profile_rollup *rollup, struct numbering *numbering)
{
    buffer_init(&rollup->text, ROLLUP_TEXT_MAX);
    write_header(numbering, &rollup->labels, &rollup->text);
    size_t header_size = rollup->text.size;
    if (header_size > STORE_ROLLUP_HEADER_MAX || !add_nodes(rollup, numbering) || !add_sample_values(rollup, numbering))
        return false;
    rollup->frames = calloc(rollup->rollup.frame_count + 1, sizeof(*rollup->frames));
    if (!rollup->frames || rollup->text.failed) return false;
    for (size_t i = 0, start = header_size; i < rollup->rollup.frame_count; start = numbering->ends[i++])
        rollup->frames[i] = slice_of(rollup->text.data + start, numbering->ends[i] - start);
    rollup->rollup.header = slice_of(rollup->text.data, header_size);
    rollup->rollup.labels = buffer_slice(&rollup->labels.common);
    rollup->rollup.frames = rollup->frames;
    rollup->rollup.nodes = rollup->nodes;
    rollup->rollup.values = rollup->values;
    return true;
}

/* Columns that are differences come first. False if there are none, or too many. */
static bool choose_columns(struct numbering *numbering, struct store_rollup *rollup)
{
    const struct rollup_series *series = numbering->series;
    size_t count = numbering->profile->value_type_count;
    rollup->value_count = count + (series ? 1 : 0);
    if (count == 0 || rollup->value_count > STORE_ROLLUP_VALUES_MAX) return false;
    for (size_t i = 0; i < count && series; i++) {
        if (series->rules[i] == KIND_DIFFERENCE) numbering->columns[numbering->column_count++] = i;
    }
    rollup->running_count = numbering->column_count;
    for (size_t i = 0; i < count; i++) {
        if (!series || series->rules[i] != KIND_DIFFERENCE) numbering->columns[numbering->column_count++] = i;
    }
    return true;
}

bool profile_rollup_init(struct profile_rollup *rollup, const struct profile *profile,
                         const struct rollup_series *series)
{
    *rollup = (struct profile_rollup){0};
    struct numbering *numbering = calloc(1, sizeof(*numbering));
    if (!numbering) return false;
    numbering->series = series;
    size_t stack_count = profile_stack_limit(profile) + 1;
    numbering->profile = profile;
    numbering->stacks = calloc(stack_count, sizeof(*numbering->stacks));
    numbering->path = calloc(stack_count, sizeof(*numbering->path));
    numbering->locations = calloc(profile->locations.count + 1, sizeof(*numbering->locations));
    numbering->ends = calloc(profile->locations.count + THREAD_NAMES_MAX, sizeof(*numbering->ends));
    numbering->samples = calloc(profile->samples.count + 1, sizeof(*numbering->samples));
    bool is_fine = choose_columns(numbering, &rollup->rollup) && numbering->stacks && numbering->path &&
                   numbering->locations && numbering->ends && numbering->samples &&
                   thread_names_init(&numbering->threads, profile) && rollup_labels_init(&rollup->labels, profile) &&
                   fill_rollup(rollup, numbering);
    thread_names_fini(&numbering->threads);
    free(numbering->stacks);
    free(numbering->path);
    free(numbering->locations);
    free(numbering->ends);
    free(numbering->samples);
    free(numbering);
    return is_fine;
}

void profile_rollup_fini(struct profile_rollup *rollup)
{
    buffer_fini(&rollup->text);
    rollup_labels_fini(&rollup->labels);
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

/* Returns whether the labels that NEEDS has are no others, whose keys are next in HEADER. */
static bool has_labels_of(struct cursor header, const struct rollup_needs *needs)
{
    bool is_enough = needs->detail != DETAIL_LABELS;
    for (size_t i = 0; i < 2 && is_enough; i++)
        is_enough = needs->tags[i].size == 0 || !rollup_labels_may_lack(header, needs->tags[i]);
    return is_enough;
}

/* RET_IS_ENOUGH: the sums have what NEEDS has. */
static bool read_header(struct slice header, const struct rollup_needs *needs, struct profile *profile,
                        struct rollup_series *series, bool *ret_is_enough)
{
    *ret_is_enough = true;
    struct cursor cursor = cursor_of(header);
    uint8_t first = cursor_u8(&cursor), count = first & HEADER_COUNT;
    if (count > STORE_ROLLUP_VALUES_MAX) return false;
    for (uint8_t i = 0; i < count && !cursor.failed; i++) {
        struct string_id type = take_string(&cursor, profile), unit = take_string(&cursor, profile);
        profile->value_types[profile->value_type_count++] = (struct value_type){type, unit};
    }
    profile->default_value_type = take_string(&cursor, profile);
    profile->drop_frames = take_string(&cursor, profile);
    profile->keep_frames = take_string(&cursor, profile);
    profile->period_type.type = take_string(&cursor, profile);
    profile->period_type.unit = take_string(&cursor, profile);
    profile->period = (int64_t)cursor_uleb128(&cursor);
    if (first & HEADER_LACKS_LABELS) {
        *ret_is_enough = has_labels_of(cursor, needs);
        rollup_labels_skip_others(&cursor);
    }
    if (first & HEADER_IS_SERIES) {
        struct slice id = cursor_take(&cursor, SHA1_TEXT_SIZE);
        if (id.size != SHA1_TEXT_SIZE || id.data[SHA1_TEXT_SIZE - 1] != '\0') return false;
        (void)memcpy(series->id, id.data, SHA1_TEXT_SIZE);
        for (uint8_t i = 0; i < count; i++) {
            uint8_t rule = cursor_u8(&cursor);
            series->rules[i] = rule <= KIND_DIFFERENCE ? (enum kind_rule)rule : KIND_SUM;
        }
    }
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

/* A frame as the profile has it: a place of the code, or a thread. */
struct read_frame {
    bool is_thread;
    struct thread_id thread;
    struct location_id location;
};

static bool read_frame(struct slice bytes, struct profile *profile, struct read_frame *ret_frame)
{
    struct line lines[ROLLUP_LINES_MAX];
    struct cursor cursor = cursor_of(bytes);
    uint8_t kind = cursor_u8(&cursor);
    *ret_frame = (struct read_frame){.is_thread = kind == FRAME_IS_THREAD};
    if (kind == FRAME_IS_THREAD) {
        ret_frame->thread = named_thread(profile, slice_of(bytes.data + 1, bytes.size - 1));
        return true;
    }
    struct mapping mapping = {.file_name = take_string(&cursor, profile)};
    mapping.build_id = take_string(&cursor, profile);
    struct location location = {.address = cursor_uleb128(&cursor)};
    uint64_t count = cursor_uleb128(&cursor);
    if (count > ROLLUP_LINES_MAX) return false;
    if (kind == FRAME_IN_MAPPING && location.address)
        location = image_location(profile, mapping.file_name, mapping.build_id, location.address);
    else if (kind == FRAME_IN_MAPPING)
        location.mapping = profile_add_mapping(profile, &mapping);
    for (uint64_t i = 0; i < count; i++) lines[i] = take_line(&cursor, profile);
    ret_frame->location = profile_add_location(profile, &location, lines, (uint32_t)count);
    return !cursor.failed && cursor_at_end(&cursor);
}

/* A node as the profile has it. */
struct read_node {
    struct thread_id thread;
    struct stack_id stack;
};

/* The values that NEEDS has, from the first column that is read; NULL if there are none. */
static const uint64_t *values_of(const struct store_rollup *rollup, const struct rollup_needs *needs)
{
    const uint64_t *values = needs->part == ROLLUP_FIRST  ? rollup->first_values
                             : needs->part == ROLLUP_LAST ? rollup->last_values
                                                          : rollup->values;
    return values && !needs->has_differences ? values + rollup->running_count : values;
}

static bool read_nodes(const struct store_rollup *rollup, const struct rollup_needs *needs,
                       const struct read_frame *frames, struct read_node *nodes, struct profile *profile)
{
    const uint64_t *all_values = values_of(rollup, needs);
    for (size_t i = 0; i < rollup->node_count; i++) {
        const struct store_node *node = &rollup->nodes[i];
        const uint64_t *values = all_values + i * rollup->value_count;
        if (i > 0) {
            if (node->parent >= i || node->frame >= rollup->frame_count) return false;
            const struct read_frame *frame = &frames[node->frame];
            nodes[i] = nodes[node->parent];
            if (frame->is_thread && needs->detail != DETAIL_STACKS) nodes[i].thread = frame->thread;
            if (!frame->is_thread) nodes[i].stack = profile_add_stack(profile, nodes[i].stack, frame->location);
        }
        if (!store_has_values(values, profile->value_type_count)) continue;
        const struct sample sample = {.stack = nodes[i].stack, .thread = nodes[i].thread};
        int64_t signed_values[STORE_ROLLUP_VALUES_MAX];
        for (size_t k = 0; k < profile->value_type_count; k++) signed_values[k] = (int64_t)values[k];
        profile_add_sample(profile, &sample, signed_values);
    }
    return true;
}

/* Reads the header of ROLLUP, and of a series the number of its profiles. */
static bool read_types(const struct store_rollup *rollup, const struct rollup_needs *needs, struct profile *profile,
                       struct rollup_series *series, bool *ret_is_enough)
{
    if (!read_header(rollup->header, needs, profile, series, ret_is_enough)) return false;
    bool is_series = series->id[0] != '\0';
    size_t count = profile->value_type_count, skipped = needs->has_differences ? 0 : rollup->running_count;
    if (count + (is_series ? 1 : 0) != rollup->value_count || rollup->node_count == 0 || skipped >= count ||
        !values_of(rollup, needs))
        return false;
    if (is_series) series->profile_count = rollup->values[count];
    series->restart_count = rollup->restart_count;
    profile->value_type_count = count - skipped;
    (void)memmove(profile->value_types, profile->value_types + skipped,
                  profile->value_type_count * sizeof(*profile->value_types));
    (void)memmove(series->rules, series->rules + skipped, profile->value_type_count * sizeof(*series->rules));
    return !is_series || series->profile_count > 0;
}

static enum status read_rollup(const struct store_rollup *rollup, const struct rollup_needs *needs,
                               struct read_frame *frames, struct read_node *nodes, struct profile *profile,
                               struct rollup_series *series, struct error *error)
{
    bool is_enough, is_fine = read_types(rollup, needs, profile, series, &is_enough);
    if (is_fine && !is_enough) return error_set(error, STATUS_UNSUPPORTED, 0, "the sums lack labels");
    for (size_t i = 0; i < rollup->frame_count && is_fine; i++)
        is_fine = read_frame(rollup->frames[i], profile, &frames[i]);
    if (is_fine) is_fine = read_nodes(rollup, needs, frames, nodes, profile);
    return is_fine ? STATUS_OK : error_set(error, STATUS_UNSUPPORTED, 0, "a stored sum is damaged");
}

enum status profile_of_rollup(const struct store_rollup *rollup, const struct rollup_needs *needs,
                              struct profile *profile, struct rollup_series *ret_series, struct error *error)
{
    *ret_series = (struct rollup_series){0};
    struct read_frame *frames = calloc(rollup->frame_count + 1, sizeof(*frames));
    struct read_node *nodes = calloc(rollup->node_count + 1, sizeof(*nodes));
    enum status status = frames && nodes ? read_rollup(rollup, needs, frames, nodes, profile, ret_series, error)
                                         : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to add sums");
    profile->time_ns = profile_start_at(rollup->first_ns);
    profile->duration_ns = rollup->last_ns - rollup->first_ns;
    struct label_set_id labels = rollup_labels_read(rollup->labels, profile);
    for (size_t i = 0; i < profile->samples.count; i++) profile->samples.labels[i] = labels;
    free(frames);
    free(nodes);
    return status == STATUS_OK ? profile_failed(profile, error) : status;
}
