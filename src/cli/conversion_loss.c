/* Finds what a profile has and a format does not keep (format/common/format_ops.h).
 * SPDX-License-Identifier: MIT */
#include "cli/conversion_loss.h"

#include "base/buffer.h"
#include "cli/message.h"
#include "format/sentry/sentry_extension.h"
#include "format/viewer/chrome_trace.h"
#include "format/viewer/firefox.h"
#include "profile/thread_labels.h"
#include "profile/time_labels.h"
#include "profile/sample_times.h"
#include "profile/units.h"

#include <stdio.h>

/* --- What a profile has ---------------------------------------------------------------------------------------------
 */

enum part {
    PART_TIMES,
    PART_THREADS,
    PART_PRIORITIES,
    PART_LABELS,
    PART_INLINED,
    PART_LINES,
    PART_ADDRESSES,
    PART_IMAGES,
    PART_DEBUG_IDS,
    PART_ATTRIBUTES,
    PART_MEASUREMENTS,
    PART_MARKERS,
    PART_IDS,
    PART_TRANSACTION,
    PART_ENVELOPE_HEADER,
    PART_ITEMS,
    PART_ITEM_MEMBERS,
    PART_COMMENTS,
    PART_RULES,
    PART_DOC_URL,
    PART_RECORDER,
    PART_DEVICE,
    PART_MEMBERS_OF_FRAMES,
    PART_MEMBERS_OF_SAMPLES,
    PART_MEMBERS_OF_THREADS,
    PART_MEMBERS_OF_IMAGES,
    PART_IMAGES_ELSEWHERE,
    PART_MEMBERS_OF_PROFILE,
    PART_COUNT
};

/* The bit of the formats that keep a part, and its name in the warning, in the order of the warning. */
static const struct {
    unsigned bit;
    const char *name;
} parts[PART_COUNT] = {
    [PART_TIMES] = {KEEPS_TIMES, "times of samples"},
    [PART_THREADS] = {KEEPS_THREADS, "threads"},
    [PART_PRIORITIES] = {KEEPS_PRIORITIES, "priorities of threads"},
    [PART_LABELS] = {KEEPS_LABELS, "labels"},
    [PART_INLINED] = {KEEPS_INLINED, "mark of inlined functions"},
    [PART_LINES] = {KEEPS_LINES, "files and lines of functions"},
    [PART_ADDRESSES] = {KEEPS_ADDRESSES, "addresses"},
    [PART_IMAGES] = {KEEPS_IMAGES, "images"},
    [PART_DEBUG_IDS] = {KEEPS_DEBUG_IDS, "debug ids of images"},
    [PART_ATTRIBUTES] = {KEEPS_ATTRIBUTES, "module, package and in_app of functions"},
    [PART_MEASUREMENTS] = {KEEPS_MEASUREMENTS, "measurements"},
    [PART_MARKERS] = {KEEPS_MARKERS, "markers"},
    [PART_IDS] = {KEEPS_METADATA, "release, environment and ids"},
    [PART_TRANSACTION] = {KEEPS_TRANSACTION, "transaction"},
    [PART_ENVELOPE_HEADER] = {KEEPS_ITEMS, "header of the envelope"},
    [PART_ITEMS] = {KEEPS_ITEMS, "other items of the envelope"},
    [PART_ITEM_MEMBERS] = {KEEPS_ITEM_MEMBERS, "further members of the item's header"},
    [PART_COMMENTS] = {KEEPS_COMMENTS, "comments"},
    [PART_RULES] = {KEEPS_RULES, "drop_frames and keep_frames"},
    [PART_DOC_URL] = {KEEPS_DOC_URL, "doc_url"},
    [PART_RECORDER] = {KEEPS_RECORDER_METADATA, "facts of the recorder"},
    [PART_DEVICE] = {KEEPS_DEVICE, "device, system and runtime"},
    [PART_MEMBERS_OF_FRAMES] = {KEEPS_MEMBERS, "further members of frames"},
    [PART_MEMBERS_OF_SAMPLES] = {KEEPS_MEMBERS_OF_SAMPLES, "further members of samples"},
    [PART_MEMBERS_OF_THREADS] = {KEEPS_MEMBERS, "further members of threads"},
    [PART_MEMBERS_OF_IMAGES] = {KEEPS_MEMBERS, "further members of images"},
    [PART_IMAGES_ELSEWHERE] = {KEEPS_MEMBERS, "images without an address in memory"}, /* source maps */
    [PART_MEMBERS_OF_PROFILE] = {KEEPS_MEMBERS_OF_PROFILE, "further members of the profile"},
};

static void find_in_labels(const struct profile *profile, bool has[PART_COUNT])
{
    /* Threads and times are labels in pprof, further members in all profiles, and have separate warnings. */
    static const char *const own[] = {TIME_LABEL, TIME_END_LABEL, PROFILE_ATTRIBUTES_LABEL};
    for (size_t i = 0; i < profile->labels.count; i++) {
        struct slice key = profile_slice(profile, profile->labels.items[i].key);
        bool is_own = thread_label_place(thread_id_keys, key) >= 0 || thread_label_place(thread_name_keys, key) >= 0;
        for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++) is_own |= slice_equals_text(key, own[k]);
        has[PART_LABELS] |= !is_own;
        has[PART_MEMBERS_OF_SAMPLES] |= slice_equals_text(key, PROFILE_ATTRIBUTES_LABEL);
    }
}

static void find_in_code(const struct profile *profile, bool has[PART_COUNT])
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        has[PART_INLINED] |= location->line_count > 1;
        has[PART_ADDRESSES] |= location->address != 0;
        has[PART_MEMBERS_OF_FRAMES] |= location->attributes.index != 0;
    }
    for (size_t i = 0; i < profile->lines.count; i++)
        has[PART_MEMBERS_OF_FRAMES] |= profile->lines.items[i].attributes.index != 0;
    for (size_t i = 1; i < profile->functions.count; i++) {
        const struct function *function = &profile->functions.items[i];
        has[PART_LINES] |= function->file_name.index != 0;
        has[PART_ATTRIBUTES] |= function->module.index || function->package.index || function->in_app != IN_APP_UNKNOWN;
    }
    has[PART_IMAGES] = profile->mappings.count > 1;
    for (size_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        has[PART_DEBUG_IDS] |=
            mapping->debug_id.index && !mapping->build_id.index; /* the build id gives the other one */
        has[PART_MEMBERS_OF_IMAGES] |= mapping->attributes.index != 0;
    }
}

static void find_of_sentry(const struct profile *profile, bool has[PART_COUNT])
{
    const struct sentry_extension *sentry = sentry_extension(profile);
    has[PART_ITEMS] = sentry->passthrough_items.count > 0;
    has[PART_TRANSACTION] = sentry->transaction.id.index != 0;
    has[PART_ENVELOPE_HEADER] = sentry->envelope_header.size > 0;
    has[PART_ITEM_MEMBERS] = sentry->has_item_members;
    has[PART_DEVICE] = sentry->device.architecture.index || sentry->device.model.index || sentry->os.name.index ||
                       sentry->runtime.name.index;
    has[PART_MEMBERS_OF_IMAGES] |= sentry->attributes.debug_meta.index != 0;
    has[PART_IMAGES_ELSEWHERE] = sentry->images.count > 0;
    has[PART_MEMBERS_OF_PROFILE] =
        sentry->attributes.chunk.index || sentry->attributes.data.index || sentry->attributes.client_sdk.index;
}

static void find_parts(const struct profile *profile, bool has[PART_COUNT])
{
    find_in_labels(profile, has);
    find_in_code(profile, has);
    find_of_sentry(profile, has);
    has[PART_TIMES] = profile->has_times;
    has[PART_THREADS] = profile->threads.count > 1;
    for (size_t i = 1; i < profile->threads.count; i++) {
        has[PART_PRIORITIES] |= profile->threads.items[i].has_priority;
        has[PART_MEMBERS_OF_THREADS] |= profile->threads.items[i].attributes.index != 0;
    }
    has[PART_MEASUREMENTS] = profile->measurements.count > 0;
    has[PART_MARKERS] = profile->markers.count > 0 && !has[PART_ITEMS]; /* the spans of an envelope are in its items */
    has[PART_IDS] =
        profile->profiler_id.index || profile->chunk_id.index || profile->release.index || profile->environment.index;
    has[PART_COMMENTS] = profile->comments.count > 0;
    has[PART_RULES] = profile->drop_frames.index || profile->keep_frames.index;
    has[PART_DOC_URL] = profile->doc_url.index != 0;
    has[PART_RECORDER] = profile->metadata.count > 0;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

/* Returns whether PROFILE has a time, or counts samples that were taken at some rate. Bytes, objects, goroutines and
 * contentions do not measure time. */
static bool counts_time(const struct profile *profile)
{
    static const char *const counts[] = {"samples", "sample", "events", "before", "after", ""};
    if (profile_time_column(profile) >= 0 || profile->value_type_count == 0) return true;
    const struct value_type *first = &profile->value_types[0];
    bool is_size = unit_ratio(profile_c_string(profile, first->unit), "bytes") != 0;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !is_size; i++) {
        if (slice_equals_text(profile_slice(profile, first->type), counts[i])) return true;
    }
    return false;
}

/* Returns the column that FORMAT writes, which keeps one of PROFILE's values. */
static int written_column(const struct profile *profile, const struct format *format)
{
    if (format->keeps & KEEPS_ANY_UNIT) return profile_value_index(profile, "");
    int time = profile_time_column(profile);
    return time < 0 && profile->value_type_count > 0 ? 0 : time;
}

/* Rejects values that are no time for a format with an axis of time: a heap profile would become hours of work that
 * nobody did. */
static bool check_kind(const struct profile *profile, const char *path, const struct format *format)
{
    if ((format->keeps & KEEPS_ANY_UNIT) || counts_time(profile)) return true;
    message("%s: the profile counts %s, and %s holds only time; pprof, collapsed and speedscope hold it",
            message_name(path, true), profile_c_string(profile, profile->value_types[0].type), format_name(format));
    return false;
}

/* Rejects values that are negative, or too large in sum, for a format that adds them up. */
static bool check_sum(const struct profile *profile, int column, const char *path, const struct format *format)
{
    int64_t sum = 0;
    const char *what = NULL;
    for (size_t i = 0; i < profile->samples.count && !what; i++) {
        int64_t value = profile_sample_values(profile, i)[column];
        if (value < 0) what = "negative values";
        if (__builtin_add_overflow(sum, value, &sum)) what = "values whose sum is over 63 bits";
    }
    if (what)
        message("%s: the profile has %s, which %s cannot hold; pprof, otlp and firefox hold them",
                message_name(path, true), what, format_name(format));
    return what == NULL;
}

/* Whether PROFILE has a sample that a server shows: one with a time, or at a time. */
static bool has_shown_sample(const struct profile *profile, const struct format *format)
{
    int column = written_column(profile, format);
    if (profile->has_times || column < 0) return profile->samples.count > 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (profile_sample_values(profile, i)[column] != 0) return true;
    }
    return false;
}

bool check_values(const struct profile *profile, const char *path, const struct format *format)
{
    if (format->sentry_version && !has_shown_sample(profile, format)) {
        message("%s: the profile is empty, and servers accept no %s without samples; pprof holds it",
                message_name(path, true), format_name(format));
        return false;
    }
    if (profile->samples.count > 0 && !check_kind(profile, path, format)) return false;
    if (format->keeps & KEEPS_NEGATIVES) return true;
    int written = written_column(profile, format);
    for (int i = 0; i < (int)profile->value_type_count; i++) {
        bool is_written = (format->keeps & KEEPS_VALUES) || i == written;
        if (is_written && !check_sum(profile, i, path, format)) return false;
    }
    return true;
}

/* --- Warnings ----------------------------------------------------------------------------------------------------- */

static struct slice unit_of(const struct profile *profile, int column)
{
    return profile_slice(profile, profile->value_types[column].unit);
}

/* Whether FORMAT has the times only as values, and the value of PROFILE is not a time. */
static bool loses_times(const struct profile *profile, const struct format *format)
{
    int column = profile_value_index(profile, "");
    return format == &format_speedscope && column >= 0 && !slice_equals_text(unit_of(profile, column), "nanoseconds");
}

/* Returns the parts that the other version of Sentry's formats does not get: a member that one version does not know
 * may have a meaning in the other, and the items of an envelope with a V1 profile belong to its transaction. */
static unsigned lost_to_other_version(const struct profile *profile, const struct format *format)
{
    if (sentry_extension(profile)->sample_format == format->sentry_version) return 0;
    return KEEPS_ITEMS | (sentry_extension(profile)->attributes.chunk.index ? KEEPS_MEMBERS_OF_PROFILE : 0);
}

static bool has_addresses_outside_images(const struct profile *profile)
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        if (location->address && !firefox_has_address(profile, location)) return true;
    }
    return false;
}

static void add_name(struct buffer *names, const char *name)
{
    if (names->size > 0) buffer_append_text(names, ", ");
    buffer_append_text(names, name);
}

/* Whether there is CPU time or a delay, which servers show as wall time. */
static bool has_other_time(const struct profile *profile)
{
    return profile->value_type_count > 1 && slice_equals_text(unit_of(profile, 1), "nanoseconds") &&
           !slice_equals_text(profile_slice(profile, profile->value_types[1].type), "wall");
}

/* Warns that a server gives an idle sample of V1 the callers that its neighbours share (doc/formats/sentry-v1.md). */
static void warn_idle_filling(const struct profile *profile, const char *path, const struct format *format)
{
    if (format->sentry_version != 1 || !profile->has_times || !has_other_time(profile)) return;
    message("%s: servers show the time between two runs of a thread under the callers that both have",
            message_name(path, true));
}

static bool has_callers(const struct profile *profile)
{
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (profile_stack(profile, profile->samples.stack[i]).parent.index) return true;
    }
    return false;
}

/* Whether the first value of PROFILE is a count of one for each sample. */
static bool has_counts_of_one(const struct profile *profile)
{
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (profile_sample_values(profile, i)[0] != 1) return false;
    }
    return slice_equals_text(unit_of(profile, 0), "count");
}

/* Whether PROFILE has values beside those in COLUMN and CPU_COLUMN (-1: none). A count of one for each sample is none.
 */
static bool has_other_values(const struct profile *profile, int column, int cpu_column)
{
    int others = 0;
    for (int i = 0; i < (int)profile->value_type_count; i++) others += i != column && i != cpu_column;
    bool is_first_another = column != 0 && cpu_column != 0;
    return others > 1 || (others == 1 && !(is_first_another && has_counts_of_one(profile)));
}

/* Whether all values that FORMAT writes of one of PROFILE's samples are 0. Sentry's formats hold such a sample if it is
 * at a time. */
static bool has_zero_sample(const struct profile *profile, const struct format *format)
{
    int written = written_column(profile, format);
    bool has_zero = false, holds = format->sentry_version && profile->has_times;
    for (size_t i = 0; i < profile->samples.count && !has_zero && !holds; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        has_zero = profile->value_type_count > 0;
        for (int k = 0; k < (int)profile->value_type_count; k++) {
            bool is_written = (format->keeps & KEEPS_ANY_UNIT) || k == written;
            has_zero &= !is_written || values[k] == 0;
        }
    }
    return has_zero;
}

/* Returns the unit of the value that FORMAT writes, if it does not store it; else an empty slice. */
static struct slice lost_unit(const struct profile *profile, const struct format *format)
{
    static const char *const of_viewers[] = {"count", "nanoseconds", "bytes", NULL};
    static const char *const of_collapsed[] = {"count", "thousandths", "millionths", "billionths", NULL};
    bool is_viewer = format == &format_speedscope || format == &format_firefox;
    const char *const *kept = is_viewer ? of_viewers : of_collapsed;
    int column = written_column(profile, format);
    if (column < 0 || (!is_viewer && format != &format_collapsed)) return slice_of_text("");
    struct slice unit = unit_of(profile, column);
    while (*kept && !slice_equals_text(unit, *kept)) kept++;
    return *kept ? slice_of_text("") : unit;
}

/* Names time of samples that overlap in one thread. Less than a thousandth is the clock of a sampler. */
static void add_overlaps(const struct profile *profile, const struct format *format, struct buffer *names)
{
    enum { NAMED_PART = 1000 };
    uint64_t whole_ns, cut_ns = format == &format_chrome_trace ? chrome_trace_cut_ns(profile, &whole_ns) : 0;
    if (cut_ns == 0 || cut_ns <= whole_ns / NAMED_PART) return;
    char text[128];
    (void)snprintf(text, sizeof(text), "samples of one thread at one time (%.6g s of %.6g s)", (double)cut_ns / 1e9,
                   (double)whole_ns / 1e9);
    add_name(names, text);
}

/* Names the values that FORMAT loses: Sentry's formats have the time between samples, most others one value. */
static void add_values(const struct profile *profile, const struct format *format, struct buffer *names)
{
    int column = profile_value_index(profile, "");
    if ((format->keeps & KEEPS_VALUES) || column < 0) return;
    if (format->sentry_version) {
        bool has_only_time = profile->value_type_count == 1 ||
                             (profile->value_type_count == 2 && slice_equals_text(unit_of(profile, 1), "nanoseconds"));
        if (!has_only_time) add_name(names, "values but the time between samples");
        if (has_other_time(profile) && !profile_counts_cpu_time(profile))
            add_name(names, "difference between wall time and other time");
        return;
    }
    int cpu_column = format == &format_firefox ? firefox_cpu_column(profile) : -1;
    if (!has_other_values(profile, column, cpu_column)) return;
    add_name(names, "values but ");
    buffer_append_text(names, profile_c_string(profile, profile->value_types[column].type));
    if (cpu_column >= 0 && cpu_column != column) buffer_append_text(names, " and CPU time");
}

void warn_conversion_loss(const struct profile *profile, const char *path, const struct format *format)
{
    unsigned keeps = format->keeps;
    bool has[PART_COUNT] = {false};
    struct buffer names;
    if (loses_times(profile, format)) keeps &= ~(unsigned)KEEPS_TIMES;
    keeps &= ~lost_to_other_version(profile, format);
    buffer_init(&names, 1 << 16);
    find_parts(profile, has);
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (!(keeps & parts[i].bit) && has[i]) add_name(&names, parts[i].name);
    }
    /* Names what one format loses of a part that it keeps. */
    if (format == &format_callgrind && !profile->stated && has_callers(profile))
        add_name(&names, "stacks, but the calls that they consist of");
    if (format == &format_firefox && has_addresses_outside_images(profile))
        add_name(&names, "addresses outside of images");
    if (format->sentry_version == 1 && profile->profiler_id.index) add_name(&names, "profiler_id");
    add_values(profile, format, &names);
    add_overlaps(profile, format, &names);
    if (!(keeps & KEEPS_ZEROS) && has_zero_sample(profile, format)) add_name(&names, "samples of 0");
    struct slice unit = lost_unit(profile, format);
    if (unit.size > 0) {
        add_name(&names, "the unit ");
        buffer_append(&names, unit.data, unit.size);
    }
    if (names.size > 0) {
        message("%s: %s cannot store %.*s", message_name(path, true), format_name(format),
                SLICE_ARGUMENTS(buffer_slice(&names)));
    }
    buffer_fini(&names);
    if (format->sentry_version && profile_counts_cpu_time(profile))
        message("%s: servers show CPU time as wall time", message_name(path, true));
    if (profile->has_estimated_stacks && !(format == &format_callgrind && profile->stated))
        message("%s: the stacks are estimated: the file states the costs of functions and calls, and has no stacks",
                message_name(path, true));
    warn_idle_filling(profile, path, format);
}
