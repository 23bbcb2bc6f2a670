/* Merges one profile into another.
 *
 * Adds each entry of FROM to INTO, table by table: a table comes after the tables that it refers to. One map for each
 * table translates old ids into new ones. INTO interns its entries, so equal ones become one.
 * SPDX-License-Identifier: MIT */
#include "profile/profile_private.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>

/* New indices by old ones, one map for each table. */
struct merge {
    struct profile *into;
    const struct profile *from;
    uint32_t *strings, *mappings, *functions, *locations, *stacks, *processes, *threads, *label_sets;
};

static bool merge_init(struct merge *merge, struct profile *into, const struct profile *from)
{
    *merge = (struct merge){.into = into, .from = from};
    merge->strings = calloc(from->strings.count + 1, sizeof(uint32_t));
    merge->mappings = calloc(from->mappings.count + 1, sizeof(uint32_t));
    merge->functions = calloc(from->functions.count + 1, sizeof(uint32_t));
    merge->locations = calloc(from->locations.count + 1, sizeof(uint32_t));
    merge->stacks = calloc(from->stack_words.count + 1, sizeof(uint32_t));
    merge->processes = calloc(from->processes.count + 1, sizeof(uint32_t));
    merge->threads = calloc(from->threads.count + 1, sizeof(uint32_t));
    merge->label_sets = calloc(from->label_sets.count + 1, sizeof(uint32_t));
    return merge->strings && merge->mappings && merge->functions && merge->locations && merge->stacks &&
           merge->processes && merge->threads && merge->label_sets;
}

static void merge_fini(struct merge *merge)
{
    free(merge->strings);
    free(merge->mappings);
    free(merge->functions);
    free(merge->locations);
    free(merge->stacks);
    free(merge->processes);
    free(merge->threads);
    free(merge->label_sets);
}

static struct string_id move_string(const struct merge *merge, struct string_id id)
{
    return (struct string_id){merge->strings[id.index]};
}

static void take_string(const struct merge *merge, struct string_id *into, struct string_id from)
{
    if (into->index == 0) *into = move_string(merge, from);
}

/* Profiles of one program usually have equal strings in the same order: the next string is perhaps the entry after the
 * last match. This avoids most searches. */
static uint32_t guess_next(const uint32_t *map, size_t i)
{
    return map[i - 1] + 1;
}

static void merge_strings(struct merge *merge)
{
    for (size_t i = 1; i < merge->from->strings.count; i++) {
        struct slice text = merge->from->strings.items[i];
        uint32_t guess = guess_next(merge->strings, i);
        bool is_guessed = profile_is_string(merge->into, guess, text);
        merge->strings[i] = is_guessed ? guess : profile_string(merge->into, text).index;
    }
}

/* --- Processes ---------------------------------------------------------------------------------------------------- */

static bool has_thread_without_process(const struct profile *profile)
{
    for (size_t i = 1; i < profile->threads.count; i++) {
        if (profile->threads.items[i].process.index == 0) return true;
    }
    return false;
}

/* A thread without a process belongs to the process of the profiler. In FROM it has entry 0. */
static void merge_processes(struct merge *merge)
{
    const struct profile *from = merge->from;
    struct profile *into = merge->into;
    /* With processes, the id may be that of a profile merged into INTO. */
    bool is_own_id = into->profiler_id.index != 0 && into->processes.count <= 1;
    if (is_own_id && has_thread_without_process(into))
        profile_give_process(into, profile_add_process(into, &(struct process){.profiler_id = into->profiler_id}));
    if (from->profiler_id.index != 0 && has_thread_without_process(from)) {
        struct process own = {.profiler_id = move_string(merge, from->profiler_id)};
        merge->processes[0] = profile_add_process(merge->into, &own).index;
    }
    for (size_t i = 1; i < from->processes.count; i++) {
        struct process process = from->processes.items[i];
        process.name = move_string(merge, process.name);
        process.profiler_id = move_string(merge, process.profiler_id);
        process.host = move_string(merge, process.host);
        process.container = move_string(merge, process.container);
        merge->processes[i] = profile_add_process(merge->into, &process).index;
    }
}

/* --- Mappings: the same part of the same file is one, wherever a process had it. ---------------------------------- */

/* The string that identifies the file, or 0 without one: two similar anonymous mappings are not the same memory. */
static uint32_t file_identity(const struct profile *profile, const struct mapping *mapping)
{
    static const char anonymous[] = ANONYMOUS_MAPPING;
    if (mapping->build_id.index != 0) return mapping->build_id.index;
    struct slice name = profile_slice(profile, mapping->file_name);
    bool is_anonymous = name.size >= strlen(anonymous) && memcmp(name.data, anonymous, strlen(anonymous)) == 0;
    return is_anonymous ? 0 : mapping->file_name.index;
}

static uint64_t segment_hash(const struct profile *profile, const struct mapping *mapping)
{
    return hash_mix(hash_mix(mapping->limit - mapping->start, mapping->file_offset), file_identity(profile, mapping));
}

static bool segment_equal(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = context;
    const struct mapping *a = &profile->mappings.items[index], *b = key;
    return a->limit - a->start == b->limit - b->start && a->file_offset == b->file_offset &&
           a->process.index == b->process.index && file_identity(profile, a) == file_identity(profile, b);
}

/* Indexes the mappings that INTO has before the merge. */
static bool index_segments(struct profile *into, struct index_table *segments)
{
    for (size_t i = 1; i < into->mappings.count; i++) {
        const struct mapping *mapping = &into->mappings.items[i];
        if (file_identity(into, mapping) == 0) continue;
        uint64_t hash = segment_hash(into, mapping);
        if (index_table_find(segments, hash, segment_equal, into, mapping) != INDEX_NONE) continue;
        if (!index_table_add(segments, hash, (uint32_t)i)) return false;
    }
    return true;
}

/* The merged mapping is symbolized only as far as both sides are. */
static void merge_flags(struct mapping *into, const struct mapping *from)
{
    into->has_functions &= from->has_functions;
    into->has_filenames &= from->has_filenames;
    into->has_line_numbers &= from->has_line_numbers;
    into->has_inline_frames &= from->has_inline_frames;
}

static void merge_mappings(struct merge *merge)
{
    struct profile *into = merge->into;
    struct index_table segments = {0};
    if (!index_segments(into, &segments)) profile_fail(into, STATUS_NO_MEMORY);
    for (size_t i = 1; i < merge->from->mappings.count; i++) {
        struct mapping mapping = merge->from->mappings.items[i];
        mapping.file_name = move_string(merge, mapping.file_name);
        mapping.build_id = move_string(merge, mapping.build_id);
        mapping.build_text = move_string(merge, mapping.build_text);
        mapping.debug_id = move_string(merge, mapping.debug_id);
        mapping.attributes = move_string(merge, mapping.attributes);
        if (mapping.process.index != 0) mapping.process.index = merge->processes[mapping.process.index];
        uint32_t known = INDEX_NONE;
        if (file_identity(into, &mapping) != 0) {
            known = index_table_find(&segments, segment_hash(into, &mapping), segment_equal, into, &mapping);
        }
        if (known != INDEX_NONE) merge_flags(&into->mappings.items[known], &mapping);
        merge->mappings[i] = known != INDEX_NONE ? known : profile_add_mapping(into, &mapping).index;
    }
    index_table_fini(&segments);
}

/* --- Functions, locations, stacks --------------------------------------------------------------------------------- */

static void merge_functions(struct merge *merge)
{
    for (size_t i = 1; i < merge->from->functions.count; i++) {
        struct function function = merge->from->functions.items[i];
        function.name = move_string(merge, function.name);
        function.system_name = move_string(merge, function.system_name);
        function.file_name = move_string(merge, function.file_name);
        function.module = move_string(merge, function.module);
        function.package = move_string(merge, function.package);
        uint32_t guess = guess_next(merge->functions, i);
        bool is_guessed = profile_is_function(merge->into, guess, &function);
        merge->functions[i] = is_guessed ? guess : profile_add_function(merge->into, &function).index;
    }
}

/* The address of LOCATION in the process of INTO. */
static uint64_t move_address(const struct merge *merge, const struct location *location)
{
    uint32_t mapping = merge->mappings[location->mapping.index];
    if (mapping == 0 || location->address == 0) return location->address;
    return location->address - profile_mapping(merge->from, location->mapping)->start +
           merge->into->mappings.items[mapping].start;
}

static void merge_locations(struct merge *merge)
{
    struct line *lines = NULL;
    uint32_t capacity = 0;
    for (size_t i = 1; i < merge->from->locations.count; i++) {
        struct location location = merge->from->locations.items[i];
        if (location.line_count > capacity) {
            struct line *grown = realloc(lines, location.line_count * sizeof(*lines));
            if (!grown) {
                profile_fail(merge->into, STATUS_NO_MEMORY);
                break;
            }
            lines = grown;
            capacity = location.line_count;
        }
        for (uint32_t line = 0; line < location.line_count; line++) {
            lines[line] = merge->from->lines.items[location.line_first + line];
            lines[line].function.index = merge->functions[lines[line].function.index];
            lines[line].attributes = move_string(merge, lines[line].attributes);
        }
        location.address = move_address(merge, &location);
        location.mapping.index = merge->mappings[location.mapping.index];
        location.attributes = move_string(merge, location.attributes);
        uint32_t guess = guess_next(merge->locations, i);
        bool is_guessed = profile_is_location(merge->into, guess, &location, lines, location.line_count);
        merge->locations[i] =
            is_guessed ? guess : profile_add_location(merge->into, &location, lines, location.line_count).index;
    }
    free(lines);
}

/* Marks the stacks of samples and their parents, which have lower indices. */
static void mark_wanted_stacks(struct merge *merge)
{
    const struct sample_columns *samples = &merge->from->samples;
    uint32_t *wanted = merge->stacks;
    bool is_parent_of_wanted = false;
    for (size_t i = 0; i < samples->count; i++) wanted[samples->stack[i].index] = true;
    for (uint32_t i = (uint32_t)merge->from->stack_words.count; i-- > 1;) {
        if (!profile_is_stack(merge->from, i)) continue;
        bool is_wanted = is_parent_of_wanted || wanted[i];
        uint32_t parent = profile_parent_at(merge->from, i);
        wanted[i] = is_wanted;
        is_parent_of_wanted = is_wanted && parent == i - 1; /* usually true: then no memory is read */
        if (is_wanted && !is_parent_of_wanted) wanted[parent] = true;
    }
    wanted[0] = 0;
}

/* --- Threads, labels, samples ------------------------------------------------------------------------------------- */

static void merge_threads(struct merge *merge)
{
    for (size_t i = 1; i < merge->from->threads.count; i++) {
        struct thread thread = merge->from->threads.items[i];
        thread.process.index = merge->processes[thread.process.index];
        thread.id = move_string(merge, thread.id);
        thread.name = move_string(merge, thread.name);
        thread.attributes = move_string(merge, thread.attributes);
        merge->threads[i] = profile_add_thread(merge->into, &thread).index;
    }
}

static uint32_t make_extra_labels(struct profile *into, const struct profile_extra_labels *extra, struct label *labels)
{
    uint32_t maximum = sizeof(extra->items) / sizeof(extra->items[0]);
    uint32_t count = !extra ? 0 : extra->count < maximum ? extra->count : maximum;
    for (uint32_t i = 0; i < count; i++) {
        labels[i] = (struct label){.key = profile_text(into, extra->items[i].key),
                                   .is_number = extra->items[i].is_number,
                                   .number = extra->items[i].number};
        if (!labels[i].is_number) labels[i].text = profile_text(into, extra->items[i].text);
    }
    return count;
}

static uint32_t most_labels(const struct profile *profile)
{
    uint32_t most = 0;
    for (size_t i = 0; i < profile->label_sets.count; i++) {
        if (profile->label_sets.items[i].count > most) most = profile->label_sets.items[i].count;
    }
    return most;
}

static void merge_labels(struct merge *merge, const struct profile_extra_labels *extra)
{
    const struct profile *from = merge->from;
    struct label *labels = calloc(most_labels(from) + sizeof(extra->items) / sizeof(extra->items[0]), sizeof(*labels));
    if (!labels) {
        profile_fail(merge->into, STATUS_NO_MEMORY);
        return;
    }
    uint32_t extra_count = make_extra_labels(merge->into, extra, labels);
    for (size_t i = 0; i < from->label_sets.count; i++) {
        struct label_set set = from->label_sets.items[i];
        for (uint32_t label = 0; label < set.count; label++) {
            struct label *moved = &labels[extra_count + label];
            *moved = from->labels.items[set.first + label];
            moved->key = move_string(merge, moved->key);
            moved->text = move_string(merge, moved->text);
            moved->unit = move_string(merge, moved->unit);
        }
        merge->label_sets[i] = profile_add_labels(merge->into, labels, extra_count + set.count).index;
    }
    free(labels);
}

/* A process that runs another program keeps the id of its thread but changes its name: samples have the name. */
static struct label_set_id label_thread_name(struct profile *into, struct label_set_id id, struct string_id name)
{
    enum { LABELS_MAX = 64 };
    struct label labels[LABELS_MAX];
    const struct label_set *set = &into->label_sets.items[id.index];
    uint32_t count = set->count;
    struct string_id key = profile_text(into, PROFILE_THREAD_NAME_LABEL);
    if (count >= LABELS_MAX) return id;
    for (uint32_t i = 0; i < count; i++) {
        labels[i] = into->labels.items[set->first + i];
        if (labels[i].key.index == key.index) return id;
    }
    labels[count] = (struct label){.key = key, .text = name};
    return profile_add_labels(into, labels, count + 1);
}

static void merge_samples(struct merge *merge)
{
    const struct sample_columns *samples = &merge->from->samples;
    for (size_t i = 0; i < samples->count; i++) {
        struct sample sample = {.stack = {merge->stacks[samples->stack[i].index]},
                                .thread = {merge->threads[samples->thread[i].index]},
                                .labels = {merge->label_sets[samples->labels[i].index]},
                                .time_ns = samples->time_ns[i]};
        struct string_id name = move_string(merge, merge->from->threads.items[samples->thread[i].index].name);
        bool is_renamed = name.index != 0 && merge->into->threads.items[sample.thread.index].name.index != name.index;
        if (is_renamed) sample.labels = label_thread_name(merge->into, sample.labels, name);
        profile_add_sample(merge->into, &sample, profile_sample_values(merge->from, i));
    }
}

static void merge_stated(struct merge *merge, bool could_state)
{
    struct profile *into = merge->into;
    const struct stated_maps maps = {.mappings = merge->mappings,
                                     .functions = merge->functions,
                                     .locations = merge->locations,
                                     .threads = merge->threads,
                                     .label_sets = merge->label_sets};
    into->has_estimated_stacks |= merge->from->has_estimated_stacks;
    if (merge->from->stated && could_state)
        stated_costs_merge(into, merge->from, &maps);
    else if (merge->from->samples.count > 0)
        stated_costs_drop(into);
}

/* --- Measurements, markers, metadata ------------------------------------------------------------------------------ */

static void merge_measurements(struct merge *merge)
{
    for (size_t i = 0; i < merge->from->measurements.count; i++) {
        const struct measurement *from = &merge->from->measurements.items[i];
        struct measurement *into = profile_measurement(merge->into, profile_c_string(merge->from, from->name),
                                                       profile_c_string(merge->from, from->unit));
        if (!into) return;
        take_string(merge, &into->attributes, from->attributes);
        for (size_t value = 0; value < from->count; value++) {
            profile_measure(merge->into, into, from->values[value].time_ns, from->values[value].value);
        }
    }
}

static void merge_marker(struct merge *merge, struct marker marker)
{
    struct marker_text texts[PROFILE_MARKER_TEXTS_MAX];
    for (uint32_t i = 0; i < marker.text_count; i++) {
        const struct marker_text *from = &merge->from->marker_texts.items[marker.text_first + i];
        texts[i] = (struct marker_text){.key = move_string(merge, from->key), .text = move_string(merge, from->text)};
    }
    marker.name = move_string(merge, marker.name);
    marker.category = move_string(merge, marker.category);
    marker.details = move_string(merge, marker.details);
    marker.thread = (struct thread_id){merge->threads[marker.thread.index]};
    profile_add_marker(merge->into, &marker, texts, marker.text_count);
}

static void merge_markers(struct merge *merge)
{
    for (size_t i = 0; i < merge->from->markers.count; i++) merge_marker(merge, merge->from->markers.items[i]);
    for (size_t i = 0; i < merge->from->marker_schemas.count; i++)
        profile_add_marker_schema(merge->into, move_string(merge, merge->from->marker_schemas.items[i]));
}

static struct metadata_entry *find_metadata(struct profile *profile, struct string_id key)
{
    for (size_t i = 0; i < profile->metadata.count; i++) {
        if (profile->metadata.items[i].key.index == key.index) return &profile->metadata.items[i];
    }
    return NULL;
}

static void merge_recorder_metadata(struct merge *merge)
{
    for (size_t i = 0; i < merge->from->metadata.count; i++) {
        const struct metadata_entry *from = &merge->from->metadata.items[i];
        struct metadata_entry *known = find_metadata(merge->into, move_string(merge, from->key));
        if (known) {
            if (known->is_number && from->is_number) {
                known->number = (int64_t)((uint64_t)known->number + (uint64_t)from->number);
            }
        } else if (from->is_number) {
            profile_add_metadata_number(merge->into, profile_c_string(merge->from, from->key), from->number);
        } else {
            profile_add_metadata_text(merge->into, profile_c_string(merge->from, from->key),
                                      profile_c_string(merge->from, from->text));
        }
    }
}

static void merge_comments(struct merge *merge)
{
    struct profile *into = merge->into;
    size_t known_count = into->comments.count;
    for (size_t i = 0; i < merge->from->comments.count; i++) {
        struct string_id comment = move_string(merge, merge->from->comments.items[i]);
        size_t known = 0;
        while (known < known_count && into->comments.items[known].index != comment.index) known++;
        if (known == known_count) profile_add_comment(into, profile_slice(into, comment));
    }
}

static void merge_omissions(struct merge *merge)
{
    for (size_t i = 0; i < merge->from->omissions.count; i++)
        profile_add_omission(merge->into, "%s", profile_c_string(merge->from, merge->from->omissions.items[i]));
}

/* Sets the merged profile's extent. If both starts are known, it covers the time from the first start to the last end;
 * else the durations are added. */
static void merge_time(struct profile *into, const struct profile *from)
{
    if (into->time_ns == 0 || from->time_ns == 0) {
        into->duration_ns += from->duration_ns;
        if (into->time_ns == 0) into->time_ns = from->time_ns;
        return;
    }
    bool is_earlier = from->time_ns < into->time_ns;
    const struct profile *first = is_earlier ? from : into, *second = is_earlier ? into : from;
    uint64_t distance_ns = (uint64_t)second->time_ns - (uint64_t)first->time_ns, end_ns;
    if (__builtin_add_overflow(distance_ns, second->duration_ns, &end_ns)) end_ns = UINT64_MAX;
    uint64_t duration_ns = first->duration_ns > end_ns ? first->duration_ns : end_ns;
    into->time_ns = first->time_ns;
    into->duration_ns = duration_ns;
}

static void merge_period(struct merge *merge)
{
    struct profile *into = merge->into;
    struct value_type type = {.type = move_string(merge, merge->from->period_type.type),
                              .unit = move_string(merge, merge->from->period_type.unit)};
    if (into->period_type.type.index == 0 && into->period_type.unit.index == 0) into->period_type = type;
    bool same = into->period_type.type.index == type.type.index && into->period_type.unit.index == type.unit.index;
    if (same && merge->from->period > into->period) into->period = merge->from->period;
}

static void merge_metadata(struct merge *merge)
{
    struct profile *into = merge->into;
    const struct profile *from = merge->from;
    take_string(merge, &into->default_value_type, from->default_value_type);
    take_string(merge, &into->drop_frames, from->drop_frames);
    take_string(merge, &into->keep_frames, from->keep_frames);
    take_string(merge, &into->doc_url, from->doc_url);
    take_string(merge, &into->profiler_id, from->profiler_id);
    take_string(merge, &into->chunk_id, from->chunk_id);
    take_string(merge, &into->platform, from->platform);
    take_string(merge, &into->release, from->release);
    take_string(merge, &into->environment, from->environment);
    take_string(merge, &into->dist, from->dist);
    take_string(merge, &into->sdk_name, from->sdk_name);
    take_string(merge, &into->sdk_version, from->sdk_version);
    take_string(merge, &into->active_thread, from->active_thread);
    into->has_ticks |= from->has_ticks;
    if (from->extension) from->extension_type->merge(into, from);
    merge_period(merge);
    merge_time(into, from);
}

/* Copies the value types if INTO has none; else they must be equal. */
static bool merge_value_types(struct profile *into, const struct profile *from)
{
    if (into->value_type_count == 0 && into->samples.count == 0) {
        for (size_t i = 0; i < from->value_type_count; i++) {
            profile_add_value_type(into, profile_c_string(from, from->value_types[i].type),
                                   profile_c_string(from, from->value_types[i].unit));
        }
        into->has_times = from->has_times;
        return true;
    }
    if (into->value_type_count != from->value_type_count) return false;
    for (size_t i = 0; i < from->value_type_count; i++) {
        const struct value_type *a = &into->value_types[i], *b = &from->value_types[i];
        if (!slice_equal(profile_slice(into, a->type), profile_slice(from, b->type)) ||
            !slice_equal(profile_slice(into, a->unit), profile_slice(from, b->unit))) {
            return false;
        }
    }
    into->has_times &= from->has_times;
    return true;
}

enum { VALUE_TYPES_TEXT_MAX = 80 };

static void print_value_types(const struct profile *profile, char ret_text[VALUE_TYPES_TEXT_MAX])
{
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < profile->value_type_count && used < VALUE_TYPES_TEXT_MAX; i++) {
        const struct value_type *type = &profile->value_types[i];
        int length = snprintf(ret_text + used, VALUE_TYPES_TEXT_MAX - used, "%s%s/%s", i > 0 ? ", " : "",
                              profile_c_string(profile, type->type), profile_c_string(profile, type->unit));
        used += length > 0 ? (size_t)length : 0;
    }
}

static enum status reject_value_types(const struct profile *into, const struct profile *from, struct error *error)
{
    char known[VALUE_TYPES_TEXT_MAX], other[VALUE_TYPES_TEXT_MAX];
    print_value_types(into, known);
    print_value_types(from, other);
    return error_set(error, STATUS_UNSUPPORTED, 0,
                     "has the sample types %s, and the other profile has %s; they need one in common",
                     other[0] ? other : "none", known[0] ? known : "none");
}

enum status profile_merge(struct profile *into, const struct profile *from,
                          const struct profile_extra_labels *extra_labels, struct error *error)
{
    if (into == from) return error_set(error, STATUS_UNSUPPORTED, 0, "a profile cannot be merged into itself");
    if (!merge_value_types(into, from)) {
        return reject_value_types(into, from, error);
    }
    struct merge merge;
    bool could_state = into->stated || into->samples.count == 0; /* INTO has no samples without stated costs */
    if (merge_init(&merge, into, from)) {
        merge_strings(&merge);
        merge_processes(&merge);
        merge_mappings(&merge);
        merge_functions(&merge);
        merge_locations(&merge);
        mark_wanted_stacks(&merge);
        profile_add_stacks_of(into, from, merge.locations, merge.stacks);
        merge_threads(&merge);
        merge_labels(&merge, extra_labels);
        merge_samples(&merge);
        merge_stated(&merge, could_state);
        merge_measurements(&merge);
        merge_markers(&merge);
        merge_recorder_metadata(&merge);
        merge_comments(&merge);
        merge_metadata(&merge);
        merge_omissions(&merge);
        into->source_bytes += from->source_bytes;
    } else {
        profile_fail(into, STATUS_NO_MEMORY);
    }
    merge_fini(&merge);
    return profile_failed(into, error);
}
