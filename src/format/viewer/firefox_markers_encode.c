/* Writes markers. They are put in the order of their threads first, and all their strings are numbered, as the file has
 * strings before threads.  SPDX-License-Identifier: MIT */
#include "format/viewer/firefox_markers.h"

#include <stdlib.h>

/* The type of markers that have texts but no type: spans. */
#define SPAN_TYPE "Span"

static uint32_t thread_of(const struct marker *marker, struct thread_id shown)
{
    return marker->thread.index ? marker->thread.index : shown.index;
}

/* Each string is looked up once: a long one may be that of many markers. */
static void add_number(struct firefox_markers *markers, struct string_id id)
{
    uint32_t *number = &markers->numbers[id.index];
    if (*number == 0) *number = profile_string(markers->texts, profile_slice(markers->profile, id)).index;
}

bool firefox_markers_init(struct firefox_markers *markers, const struct profile *profile, struct thread_id shown,
                          struct profile *texts)
{
    size_t count = profile->markers.count;
    *markers = (struct firefox_markers){.profile = profile, .texts = texts};
    markers->first = calloc(profile->threads.count + 2, sizeof(*markers->first));
    markers->order = calloc(count, sizeof(*markers->order));
    markers->numbers = calloc(profile->strings.count, sizeof(*markers->numbers));
    markers->categories = calloc(profile->strings.count, sizeof(*markers->categories));
    markers->category_names = calloc(count, sizeof(*markers->category_names));
    if (!markers->first || !markers->numbers || !markers->categories ||
        (count > 0 && (!markers->order || !markers->category_names)))
        return false;
    for (size_t i = 0; i < count; i++) markers->first[thread_of(&profile->markers.items[i], shown) + 2]++;
    for (size_t i = 2; i < profile->threads.count + 2; i++) markers->first[i] += markers->first[i - 1];
    for (size_t i = 0; i < count; i++) {
        const struct marker *marker = &profile->markers.items[i];
        markers->order[markers->first[thread_of(marker, shown) + 1]++] = (uint32_t)i;
        add_number(markers, marker->name);
        for (uint32_t k = 0; k < marker->text_count; k++)
            add_number(markers, profile->marker_texts.items[marker->text_first + k].text);
        if (marker->category.index == 0 || markers->categories[marker->category.index]) continue;
        markers->category_names[markers->category_count++] = marker->category;
        markers->categories[marker->category.index] = (uint32_t)markers->category_count;
    }
    return true;
}

void firefox_markers_fini(struct firefox_markers *markers)
{
    free(markers->first);
    free(markers->order);
    free(markers->numbers);
    free(markers->categories);
    free(markers->category_names);
}

size_t firefox_markers_of(const struct firefox_markers *markers, uint32_t thread)
{
    return markers->first[thread + 1] - markers->first[thread];
}

static bool has_start(const struct marker *marker)
{
    return marker->kind != MARKER_END;
}

static bool has_end(const struct marker *marker)
{
    return marker->kind == MARKER_INTERVAL || marker->kind == MARKER_END;
}

uint64_t firefox_markers_start(const struct firefox_markers *markers)
{
    uint64_t start_ns = UINT64_MAX;
    for (size_t i = 0; i < markers->profile->markers.count; i++) {
        const struct marker *marker = &markers->profile->markers.items[i];
        if (has_start(marker) && marker->start_ns < start_ns) start_ns = marker->start_ns;
        if (has_end(marker) && marker->end_ns < start_ns) start_ns = marker->end_ns;
    }
    return start_ns;
}

/* --- Schemas ------------------------------------------------------------------------------------------------------ */

/* Whether a marker is a span: the schema of all others came with them. */
static bool is_span(const struct marker *marker)
{
    return marker->details.index == 0 && marker->text_count > 0;
}

static void write_field(struct json_writer *writer, struct slice key)
{
    json_begin_object(writer);
    json_member_string(writer, "key", key);
    json_member_string(writer, "label", key);
    json_member_text(writer, "format", "unique-string");
    json_member_bool(writer, "searchable", true);
    json_end_object(writer);
}

/* All spans have the same keys, of which each may leave out some. */
static void write_span_schema(const struct firefox_markers *markers, struct json_writer *writer)
{
    const struct profile *profile = markers->profile;
    struct string_id keys[PROFILE_MARKER_TEXTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < profile->markers.count; i++) {
        const struct marker *marker = &profile->markers.items[i];
        for (uint32_t k = 0; is_span(marker) && k < marker->text_count && count < PROFILE_MARKER_TEXTS_MAX; k++) {
            struct string_id key = profile->marker_texts.items[marker->text_first + k].key;
            size_t known = 0;
            while (known < count && keys[known].index != key.index) known++;
            if (known == count) keys[count++] = key;
        }
    }
    if (count == 0) return;
    json_begin_object(writer);
    json_member_text(writer, "name", SPAN_TYPE);
    json_begin_array_member(writer, "display");
    json_write_text(writer, "marker-chart");
    json_write_text(writer, "marker-table");
    json_end_array(writer);
    json_member_text(writer, "chartLabel", "{marker.data.description}");
    json_member_text(writer, "tooltipLabel", "{marker.name}");
    json_member_text(writer, "tableLabel", "{marker.data.description}");
    json_begin_array_member(writer, "fields");
    for (size_t i = 0; i < count; i++) write_field(writer, profile_slice(profile, keys[i]));
    json_end_array(writer);
    json_end_object(writer);
}

void firefox_markers_write_schemas(const struct firefox_markers *markers, struct json_writer *writer)
{
    const struct profile *profile = markers->profile;
    for (size_t i = 0; i < profile->marker_schemas.count; i++)
        json_write_raw(writer, profile_slice(profile, profile->marker_schemas.items[i]));
    write_span_schema(markers, writer);
}

/* --- Markers ------------------------------------------------------------------------------------------------------ */

/* The members of its details, and then its texts. */
static void write_data(const struct firefox_markers *markers, const struct marker *marker, struct json_writer *writer)
{
    const struct profile *profile = markers->profile;
    struct slice details = profile_slice(profile, marker->details);
    if (details.size == 0 && marker->text_count == 0) {
        json_write_null(writer);
        return;
    }
    json_begin_object(writer);
    if (details.size > 2)
        json_write_raw(writer, slice_of(details.data + 1, details.size - 2)); /* without its braces */
    else
        json_member_text(writer, "type", SPAN_TYPE);
    for (uint32_t i = 0; i < marker->text_count; i++) {
        const struct marker_text *text = &profile->marker_texts.items[marker->text_first + i];
        json_write_key_slice(writer, profile_slice(profile, text->key));
        json_write_u64(writer, markers->numbers[text->text.index]);
    }
    json_end_object(writer);
}

#define WRITE_COLUMN(writer, key, first, end, write)                                                                   \
    do {                                                                                                               \
        json_write_key((writer), (key));                                                                               \
        json_begin_array(writer);                                                                                      \
        for (size_t i = (first); i < (end); i++) {                                                                     \
            const struct marker *marker = &profile->markers.items[markers->order[i]];                                  \
            write;                                                                                                     \
        }                                                                                                              \
        json_end_array(writer);                                                                                        \
    } while (0)

static void write_time(struct json_writer *writer, bool is_there, uint64_t time_ns, uint64_t start_ns)
{
    if (is_there)
        json_write_fixed(writer, time_ns - start_ns, 6);
    else
        json_write_null(writer);
}

void firefox_markers_write(const struct firefox_markers *markers, uint32_t thread, uint64_t start_ns,
                           size_t first_category, struct json_writer *writer)
{
    const struct profile *profile = markers->profile;
    size_t first = markers->first[thread], end = markers->first[thread + 1];
    WRITE_COLUMN(writer, "data", first, end, write_data(markers, marker, writer));
    WRITE_COLUMN(writer, "name", first, end, json_write_u64(writer, markers->numbers[marker->name.index]));
    WRITE_COLUMN(writer, "startTime", first, end, write_time(writer, has_start(marker), marker->start_ns, start_ns));
    WRITE_COLUMN(writer, "endTime", first, end, write_time(writer, has_end(marker), marker->end_ns, start_ns));
    WRITE_COLUMN(writer, "phase", first, end, json_write_u64(writer, (uint64_t)marker->kind));
    WRITE_COLUMN(writer, "category", first, end,
                 json_write_u64(writer, marker->category.index
                                            ? first_category + markers->categories[marker->category.index] - 1
                                            : 0));
    json_member_u64(writer, "length", end - first);
}
