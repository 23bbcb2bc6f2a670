/* How to find out whether a profile has what a format may not keep (format/common/format_ops.h).
 * SPDX-License-Identifier: MIT */
#include "cli/conversion_loss.h"

#include "base/buffer.h"
#include "cli/message.h"
#include "format/sentry/sentry_extension.h"
#include "format/viewer/firefox.h"
#include "profile/thread_labels.h"
#include "profile/time_labels.h"
#include "profile/sample_times.h"

/* --- Whether a profile has it ------------------------------------------------------------------------------------- */

static bool has_times(const struct profile *profile)
{
    return profile->has_times;
}

static bool has_threads(const struct profile *profile)
{
    return profile->threads.count > 1;
}

static bool has_priorities(const struct profile *profile)
{
    for (size_t i = 1; i < profile->threads.count; i++) {
        if (profile->threads.items[i].has_priority) return true;
    }
    return false;
}

static bool is_called(const struct profile *profile, const struct label *label, const char *key)
{
    return slice_equals_text(profile_slice(profile, label->key), key);
}

/* Threads and times are labels in pprof, further members in all profiles, and have separate warnings. */
static bool is_own_label(const struct profile *profile, const struct label *label)
{
    static const char *const own[] = {TIME_LABEL, TIME_END_LABEL, PROFILE_ATTRIBUTES_LABEL};
    struct slice key = profile_slice(profile, label->key);
    if (thread_label_place(thread_id_keys, key) >= 0 || thread_label_place(thread_name_keys, key) >= 0) return true;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (is_called(profile, label, own[i])) return true;
    }
    return false;
}

static bool has_labels(const struct profile *profile)
{
    for (size_t i = 0; i < profile->labels.count; i++) {
        if (!is_own_label(profile, &profile->labels.items[i])) return true;
    }
    return false;
}

/* A count of one for each sample is not a separate value. */
static bool counts_samples(const struct profile *profile)
{
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (profile_sample_values(profile, i)[0] != 1) return false;
    }
    return slice_equals_text(profile_slice(profile, profile->value_types[0].unit), "count");
}

/* Other values than the one in COLUMN. */
static bool has_other_values(const struct profile *profile, int column)
{
    if (profile->value_type_count < 2) return false;
    return profile->value_type_count > 2 || column == 0 || !counts_samples(profile);
}

static bool has_inlined(const struct profile *profile)
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        if (profile->locations.items[i].line_count > 1) return true;
    }
    return false;
}

static bool has_lines(const struct profile *profile)
{
    for (size_t i = 1; i < profile->functions.count; i++) {
        if (profile->functions.items[i].file_name.index) return true;
    }
    return false;
}

static bool has_addresses(const struct profile *profile)
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        if (profile->locations.items[i].address) return true;
    }
    return false;
}

static bool has_images(const struct profile *profile)
{
    return profile->mappings.count > 1;
}

/* That do not follow from build ids. */
static bool has_debug_ids(const struct profile *profile)
{
    for (size_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        if (mapping->debug_id.index && !mapping->build_id.index) return true;
    }
    return false;
}

static bool has_attributes(const struct profile *profile)
{
    for (size_t i = 1; i < profile->functions.count; i++) {
        const struct function *function = &profile->functions.items[i];
        if (function->module.index || function->package.index || function->in_app != IN_APP_UNKNOWN) return true;
    }
    return false;
}

static bool has_measurements(const struct profile *profile)
{
    return profile->measurements.count > 0;
}

static bool has_items(const struct profile *profile)
{
    return sentry_extension(profile)->passthrough_items.count > 0;
}

/* The spans of an envelope are in its items, too. */
static bool has_markers(const struct profile *profile)
{
    return profile->markers.count > 0 && !has_items(profile);
}

static bool has_metadata(const struct profile *profile)
{
    return profile->profiler_id.index || profile->chunk_id.index || profile->release.index ||
           profile->environment.index;
}

static bool has_transaction(const struct profile *profile)
{
    return sentry_extension(profile)->transaction.id.index != 0;
}

static bool has_envelope_header(const struct profile *profile)
{
    return sentry_extension(profile)->envelope_header.size > 0;
}

static bool has_item_members(const struct profile *profile)
{
    return sentry_extension(profile)->has_item_members;
}

static bool has_comments(const struct profile *profile)
{
    return profile->comments.count > 0;
}

static bool has_rules(const struct profile *profile)
{
    return profile->drop_frames.index || profile->keep_frames.index;
}

static bool has_doc_url(const struct profile *profile)
{
    return profile->doc_url.index != 0;
}

static bool has_facts(const struct profile *profile)
{
    return profile->metadata.count > 0;
}

static bool has_device(const struct profile *profile)
{
    return sentry_extension(profile)->device.architecture.index || sentry_extension(profile)->device.model.index ||
           sentry_extension(profile)->os.name.index || sentry_extension(profile)->runtime.name.index;
}

static bool has_members_of_frames(const struct profile *profile)
{
    for (size_t i = 0; i < profile->lines.count; i++) {
        if (profile->lines.items[i].attributes.index) return true;
    }
    for (size_t i = 1; i < profile->locations.count; i++) {
        if (profile->locations.items[i].attributes.index) return true;
    }
    return false;
}

static bool has_members_of_samples(const struct profile *profile)
{
    for (size_t i = 0; i < profile->labels.count; i++) {
        if (is_called(profile, &profile->labels.items[i], PROFILE_ATTRIBUTES_LABEL)) return true;
    }
    return false;
}

static bool has_members_of_threads(const struct profile *profile)
{
    for (size_t i = 1; i < profile->threads.count; i++) {
        if (profile->threads.items[i].attributes.index) return true;
    }
    return false;
}

static bool has_members_of_images(const struct profile *profile)
{
    for (size_t i = 1; i < profile->mappings.count; i++) {
        if (profile->mappings.items[i].attributes.index) return true;
    }
    return sentry_extension(profile)->attributes.debug_meta.index != 0;
}

/* Source maps. */
static bool has_images_elsewhere(const struct profile *profile)
{
    return sentry_extension(profile)->images.count > 0;
}

static bool has_members_of_profile(const struct profile *profile)
{
    return sentry_extension(profile)->attributes.chunk.index || sentry_extension(profile)->attributes.data.index ||
           sentry_extension(profile)->attributes.client_sdk.index;
}

static const struct {
    unsigned bit;
    const char *name;
    bool (*is_there)(const struct profile *profile);
} parts[] = {
    {KEEPS_TIMES, "times of samples", has_times},
    {KEEPS_THREADS, "threads", has_threads},
    {KEEPS_PRIORITIES, "priorities of threads", has_priorities},
    {KEEPS_LABELS, "labels", has_labels},
    {KEEPS_INLINED, "mark of inlined functions", has_inlined},
    {KEEPS_LINES, "files and lines of functions", has_lines},
    {KEEPS_ADDRESSES, "addresses", has_addresses},
    {KEEPS_IMAGES, "images", has_images},
    {KEEPS_DEBUG_IDS, "debug ids of images", has_debug_ids},
    {KEEPS_ATTRIBUTES, "module, package and in_app of functions", has_attributes},
    {KEEPS_MEASUREMENTS, "measurements", has_measurements},
    {KEEPS_MARKERS, "markers", has_markers},
    {KEEPS_METADATA, "release, environment and ids", has_metadata},
    {KEEPS_TRANSACTION, "transaction", has_transaction},
    {KEEPS_ITEMS, "header of the envelope", has_envelope_header},
    {KEEPS_ITEMS, "other items of the envelope", has_items},
    {KEEPS_ITEM_MEMBERS, "further members of the item's header", has_item_members},
    {KEEPS_COMMENTS, "comments", has_comments},
    {KEEPS_RULES, "drop_frames and keep_frames", has_rules},
    {KEEPS_DOC_URL, "doc_url", has_doc_url},
    {KEEPS_RECORDER_METADATA, "facts of the recorder", has_facts},
    {KEEPS_DEVICE, "device, system and runtime", has_device},
    {KEEPS_MEMBERS, "further members of frames", has_members_of_frames},
    {KEEPS_MEMBERS_OF_SAMPLES, "further members of samples", has_members_of_samples},
    {KEEPS_MEMBERS, "further members of threads", has_members_of_threads},
    {KEEPS_MEMBERS, "further members of images", has_members_of_images},
    {KEEPS_MEMBERS, "images without an address in memory", has_images_elsewhere},
    {KEEPS_MEMBERS_OF_PROFILE, "further members of the profile", has_members_of_profile},
};

/* --- Warnings ----------------------------------------------------------------------------------------------------- */

static struct slice unit_of(const struct profile *profile, int column)
{
    return profile_slice(profile, profile->value_types[column].unit);
}

/* Where a value gives the times, a value that is not a time loses them. */
static bool loses_times(const struct profile *profile, const struct format *format)
{
    int column = profile_value_index(profile, "");
    return format == &format_speedscope && column >= 0 && !slice_equals_text(unit_of(profile, column), "nanoseconds");
}

/* A member that one version of Sentry's formats does not know may have a meaning in the other, and the items of an
 * envelope with a V1 profile belong to its transaction: neither is written in the other version. */
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

/* CPU time and delays, which servers show as wall time. */
static bool has_other_time(const struct profile *profile)
{
    return profile->value_type_count > 1 && slice_equals_text(unit_of(profile, 1), "nanoseconds") &&
           !slice_equals_text(profile_slice(profile, profile->value_types[1].type), "wall");
}

/* A server gives an idle sample of V1 between two others the callers that both have (doc/formats/sentry-v1.md). */
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

/* What one format loses of a part that it keeps. */
static void add_lost_members(const struct profile *profile, const struct format *format, struct buffer *names)
{
    if (format == &format_callgrind && has_callers(profile))
        add_name(names, "stacks, but the calls that they consist of");
    if (format == &format_firefox && has_addresses_outside_images(profile))
        add_name(names, "addresses outside of images");
    if (format->sentry_version == 1 && profile->profiler_id.index) add_name(names, "profiler_id");
}

/* Sentry's formats have the time between samples for a value, and most others one value. */
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
    } else if (has_other_values(profile, column)) {
        add_name(names, "values but ");
        buffer_append_text(names, profile_c_string(profile, profile->value_types[column].type));
    }
}

void warn_losses(const struct profile *profile, const char *path, const struct format *format)
{
    unsigned keeps = format->keeps;
    struct buffer names;
    if (loses_times(profile, format)) keeps &= ~(unsigned)KEEPS_TIMES;
    keeps &= ~lost_to_other_version(profile, format);
    buffer_init(&names, 1 << 16);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!(keeps & parts[i].bit) && parts[i].is_there(profile)) add_name(&names, parts[i].name);
    }
    add_lost_members(profile, format, &names);
    add_values(profile, format, &names);
    if (names.size > 0) {
        message("%s: %s cannot store %.*s", message_name(path, true), format_name(format),
                SLICE_ARGUMENTS(buffer_slice(&names)));
    }
    buffer_fini(&names);
    if (format->sentry_version && profile_counts_cpu_time(profile))
        message("%s: servers show CPU time as wall time", message_name(path, true));
    warn_idle_filling(profile, path, format);
}
