/* Walks the document front to back, remembering the way down, until it has gone past the byte that is asked for.
 * SPDX-License-Identifier: MIT */
#include "base/json_place.h"

#include <stdio.h>

enum { KEY_BYTES_MAX = 63 };

struct step {
    bool is_key;
    size_t index;
    char key[KEY_BYTES_MAX + 1];
};

struct walk {
    struct json_reader reader;
    uint64_t offset;
    struct step steps[JSON_DEPTH_MAX];
    size_t depth;
    const uint8_t *value; /* start of the value that was found; NULL = continue */
};

static void set_key(struct step *step, struct slice key)
{
    size_t size = key.size < KEY_BYTES_MAX ? key.size : KEY_BYTES_MAX;
    if (size) memcpy(step->key, key.data, size);
    step->key[size] = 0;
}

/* True, with the value that began at START found, if what was taken so far reaches after the offset, or broke. */
static bool is_reached(struct walk *walk, const uint8_t *start)
{
    if (!walk->reader.failed && json_reader_taken(&walk->reader) <= walk->offset) return false;
    if (!walk->value) walk->value = walk->reader.failed ? walk->reader.start + walk->reader.failed_offset : start;
    return true;
}

static bool find_in_value(struct walk *walk);

static bool find_in_items(struct walk *walk, bool is_object)
{
    struct json_reader *reader = &walk->reader;
    struct slice key = {0};
    struct step *step = &walk->steps[walk->depth++];
    *step = (struct step){.is_key = is_object};
    for (; is_object ? json_object_next(reader, &key) : json_array_next(reader); step->index++) {
        if (is_object) set_key(step, key);
        if (find_in_value(walk)) return true;
    }
    walk->depth--;
    return false;
}

/* The depth is bounded by the reader. */
static bool find_in_value(struct walk *walk)
{
    struct json_reader *reader = &walk->reader;
    enum json_kind kind = json_peek(reader);
    const uint8_t *start = reader->position;
    if (kind != JSON_OBJECT && kind != JSON_ARRAY) {
        json_skip(reader);
        return is_reached(walk, start);
    }
    if (json_reader_taken(reader) >= walk->offset) {
        walk->value = start;
        return true;
    }
    if (kind == JSON_OBJECT)
        json_object_begin(reader);
    else
        json_array_begin(reader);
    if (!reader->failed && find_in_items(walk, kind == JSON_OBJECT)) return true;
    return is_reached(walk, start);
}

static void print_steps(const struct walk *walk, char *ret_text, size_t size)
{
    size_t used = 0;
    ret_text[0] = 0;
    for (size_t i = 0; i < walk->depth && used < size; i++) {
        const struct step *step = &walk->steps[i];
        int more = step->is_key ? snprintf(ret_text + used, size - used, "%s%s", i ? "." : "", step->key)
                                : snprintf(ret_text + used, size - used, "[%zu]", step->index);
        if (more > 0) used += (size_t)more;
    }
}

void json_place(struct slice bytes, uint64_t offset, char *ret_text, size_t size, struct slice *ret_value)
{
    struct walk walk = {.offset = offset};
    json_reader_init(&walk.reader, bytes);
    (void)find_in_value(&walk);
    print_steps(&walk, ret_text, size);
    if (ret_value) {
        const uint8_t *end = walk.reader.end, *value = walk.value ? walk.value : end;
        *ret_value = slice_of(value, (size_t)(end - value));
    }
    json_reader_fini(&walk.reader);
}

const char *json_kind_name(enum json_kind kind)
{
    static const char *const names[] = {
        [JSON_NOTHING] = "nothing", [JSON_OBJECT] = "object", [JSON_ARRAY] = "array", [JSON_STRING] = "string",
        [JSON_NUMBER] = "number",   [JSON_BOOL] = "boolean",  [JSON_NULL] = "null"};
    return names[kind];
}

void json_describe(struct slice value, char *ret_text, size_t size)
{
    struct json_reader reader;
    json_reader_init(&reader, value);
    enum json_kind kind = json_peek(&reader);
    const uint8_t *start = reader.position;
    json_skip(&reader);
    bool has_parts = kind == JSON_OBJECT || kind == JSON_ARRAY || kind == JSON_NOTHING;
    struct slice text = has_parts || reader.failed ? slice_of_text(json_kind_name(kind))
                                                   : slice_of(start, (size_t)(reader.position - start));
    (void)snprintf(ret_text, size, "%.*s", SLICE_ARGUMENTS(text));
    json_reader_fini(&reader);
}
