/* The contents of a file, line by line.  SPDX-License-Identifier: MIT */
#include "profile/build_id.h"
#include "profile/frame_kind.h"
#include "profile/processes.h"
#include "format/sentry/sentry_extension.h"
#include "report/completeness_text.h"
#include "report/info_report.h"
#include "report/moment.h"
#include "report/quantity.h"
#include "report/text.h"

#include <inttypes.h>
#include <time.h>

static void append_label(struct buffer *out, const char *label)
{
    buffer_append_format(out, "%-14s", label);
}

/* Appends a line, unless TEXT is empty. */
static void append_text(struct buffer *out, const char *label, const char *text)
{
    if (!text[0]) return;
    append_label(out, label);
    append_printable(out, text);
    buffer_append_text(out, "\n");
}

static void append_string(struct buffer *out, const struct profile *profile, const char *label, struct string_id text)
{
    append_text(out, label, profile_c_string(profile, text));
}

static void append_number(struct buffer *out, const char *label, size_t number)
{
    append_label(out, label);
    buffer_append_format(out, "%zu\n", number);
}

static void append_moment(struct buffer *out, int64_t time_ns)
{
    time_t seconds = (time_t)moment_seconds(time_ns);
    struct tm broken_down;
    char text[64];
    if (!gmtime_r(&seconds, &broken_down)) return;
    if (strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &broken_down) == 0) return;
    buffer_append_format(out, "%s.%03uZ", text, moment_nanoseconds(time_ns) / 1000000);
}

/* Appends the start. Without one, times of samples are of a clock whose start is arbitrary. */
static void append_start(struct buffer *out, const struct profile *profile, const struct summary *summary)
{
    if (profile->time_ns) {
        append_label(out, "Start");
        append_moment(out, profile->time_ns);
        buffer_append_text(out, "\n");
    } else if (summary->first_ns != 0 && summary->first_ns <= INT64_MAX) {
        append_label(out, "Start");
        buffer_append_format(out, "not known, %s after a clock began\n",
                             quantity_of("ns", (int64_t)summary->first_ns).text);
    }
}

/* Appends "Linux 6.1". */
static void append_pair(struct buffer *out, const struct profile *profile, const char *label, struct string_id name,
                        struct string_id version)
{
    if (name.index == 0 && version.index == 0) return;
    append_label(out, label);
    append_printable(out, profile_c_string(profile, name));
    if (name.index && version.index) buffer_append_text(out, " ");
    append_printable(out, profile_c_string(profile, version));
    buffer_append_text(out, "\n");
}

static void append_duration(struct buffer *out, const struct profile *profile, const struct summary *summary)
{
    uint64_t duration_ns = profile->duration_ns ? profile->duration_ns : summary->last_ns - summary->first_ns;
    if (duration_ns == 0 || duration_ns > INT64_MAX) return;
    append_text(out, "Duration", quantity_of("ns", (int64_t)duration_ns).text);
}

static void append_values(struct buffer *out, const struct profile *profile)
{
    for (size_t i = 0; i < profile->value_type_count; i++) {
        if (i == 0) {
            append_label(out, "Values");
        } else {
            buffer_append_text(out, ", ");
        }
        append_printable(out, profile_c_string(profile, profile->value_types[i].type));
        buffer_append_text(out, "/");
        append_printable(out, profile_c_string(profile, profile->value_types[i].unit));
    }
    if (profile->value_type_count) buffer_append_text(out, "\n");
    if (profile->period) {
        const char *unit = profile_c_string(profile, profile->period_type.unit);
        append_text(out, "Period", quantity_of(unit, profile->period).text);
    }
}

/* Appends "120, 3 without a name; 90 native, 30 kernel, 12 inlined". */
static void append_frames(struct buffer *out, const struct summary *summary)
{
    const char *separator = "; ";
    append_label(out, "Frames");
    buffer_append_format(out, "%zu, %zu without a name", summary->frame_count, summary->nameless_count);
    for (enum frame_kind kind = FRAME_UNKNOWN + 1; kind < FRAME_KINDS; kind++) {
        if (summary->kinds[kind] == 0) continue;
        buffer_append_format(out, "%s%zu %s", separator, summary->kinds[kind], frame_kind_name(kind));
        separator = ", ";
    }
    buffer_append_text(out, "\n");
}

static void append_processes(struct buffer *out, const struct profile *profile)
{
    if (profile->processes.count > 1) append_number(out, "Processes", profile->processes.count - 1);
    for (uint32_t i = 1; i < profile->processes.count; i++) {
        char label[PROCESS_LABEL_SIZE];
        const struct process *process = profile_process(profile, (struct process_id){i});
        const struct string_id texts[] = {process->name, process->host, process->container};
        buffer_append_text(out, "  ");
        append_printable(out, process_label(profile, (struct process_id){i}, label) ? label : "?");
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
            buffer_append_text(out, texts[k].index ? " " : "");
            append_printable(out, profile_c_string(profile, texts[k]));
        }
        buffer_append_text(out, "\n");
    }
}

static void append_threads(struct buffer *out, const struct profile *profile, const struct summary *summary)
{
    append_number(out, "Threads", summary->thread_count);
    for (size_t i = 1; i < summary->thread_table_count; i++) {
        const struct thread *thread = &profile->threads.items[i];
        if (summary->thread_samples[i] == 0) continue;
        buffer_append_text(out, "  ");
        append_printable(out, profile_c_string(profile, thread->id));
        if (thread->name.index) {
            buffer_append_text(out, " ");
            append_printable(out, profile_c_string(profile, thread->name));
        }
        buffer_append_format(out, "  %" PRIu64 " samples\n", summary->thread_samples[i]);
    }
}

static void append_images(struct buffer *out, const struct profile *profile, const struct summary *summary)
{
    append_number(out, "Images", summary->image_count);
    for (size_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        uint64_t start = mapping->image_start ? mapping->image_start : mapping->start;
        uint64_t size = mapping->image_size ? mapping->image_size : mapping->limit - mapping->start;
        buffer_append_format(out, "  0x%" PRIx64 " +0x%" PRIx64 " ", start, size);
        append_printable(out, profile_c_string(profile, mapping->file_name));
        struct string_id build_text = mapping_build_text(mapping);
        buffer_append_text(out, build_text.index ? " " : "");
        append_printable(out, profile_c_string(profile, build_text));
        buffer_append_text(out, "\n");
    }
}

static void append_metadata(struct buffer *out, const struct profile *profile)
{
    if (profile->metadata.count) buffer_append_text(out, "Recorder\n");
    for (size_t i = 0; i < profile->metadata.count; i++) {
        const struct metadata_entry *fact = &profile->metadata.items[i];
        buffer_append_text(out, "  ");
        append_printable(out, profile_c_string(profile, fact->key));
        buffer_append_text(out, " ");
        if (fact->is_number) {
            buffer_append_format(out, "%" PRId64, fact->number);
        } else {
            append_printable(out, profile_c_string(profile, fact->text));
        }
        buffer_append_text(out, "\n");
    }
}

/* Appends the row TITLE with LINE, and empties LINE, if HAS_SENTENCE. */
static void append_sentence(struct buffer *out, const char *title, bool has_sentence, struct buffer *line)
{
    if (has_sentence) buffer_append_format(out, "%-14s%.*s\n", title, SLICE_ARGUMENTS(buffer_slice(line)));
    buffer_clear(line);
}

static void append_completeness(struct buffer *out, const struct profile *profile,
                                const struct completeness *completeness)
{
    struct buffer line;
    buffer_init(&line, 1 << 14);
    append_sentence(out, "Incomplete", completeness_append_stacks(profile, completeness, &line), &line);
    append_sentence(out, "Lost", completeness_append_losses(profile, completeness, &line), &line);
    append_sentence(out, "Waits", completeness_append_woken(profile, completeness, &line), &line);
    bool is_too_short = completeness_append_too_short(profile, completeness, &line);
    append_sentence(out, "Too short", is_too_short, &line);
    append_sentence(out, "Late", !is_too_short && completeness_append_late(profile, &line), &line);
    append_sentence(out, "Not sampled", completeness_append_unfollowed(completeness, &line), &line);
    buffer_fini(&line);
}

static void append_title(struct buffer *out, const char *name, const struct profile *profile,
                         const struct measurement *measurement)
{
    static const char *const titles[][2] = {{"frozen_frame_renders", "frozen frames"},
                                            {"slow_frame_renders", "slow frames"}};
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        if (strcmp(name, titles[i][0]) == 0) name = titles[i][1];
    }
    buffer_append_text(out, "  ");
    append_printable(out, name);
    buffer_append_format(out, " %zu value%s", measurement->count, measurement->count == 1 ? "" : "s");
    const char *unit = profile_c_string(profile, measurement->unit);
    struct measurement_extent extent = measurement_extent(measurement);
    if (extent.count > 0) buffer_append_format(out, ", %g to %g, mean %g ", extent.least, extent.greatest, extent.mean);
    append_printable(out, extent.count > 0 ? unit : "");
    buffer_append_text(out, "\n");
}

/* FMT-12 */
static void append_measurements(struct buffer *out, const struct profile *profile)
{
    if (profile->measurements.count > 0) append_number(out, "Measurements", profile->measurements.count);
    for (size_t i = 0; i < profile->measurements.count; i++) {
        const struct measurement *measurement = &profile->measurements.items[i];
        append_title(out, profile_c_string(profile, measurement->name), profile, measurement);
    }
}

static void append_fact(struct buffer *out, const struct profile *profile, const struct info_item_fact *fact)
{
    buffer_append_text(out, ", ");
    append_printable(out, profile_c_string(profile, fact->key));
    buffer_append_text(out, " ");
    switch (fact->kind) {
    case INFO_TEXT:
        append_printable(out, profile_c_string(profile, fact->text));
        break;
    case INFO_COUNT:
        buffer_append_format(out, "%" PRIu64, fact->number);
        break;
    case INFO_TIME:
        append_moment(out, (int64_t)fact->number);
        break;
    case INFO_DURATION:
        buffer_append_text(out, quantity_of("ns", fact->number < INT64_MAX ? (int64_t)fact->number : INT64_MAX).text);
        break;
    }
}

static void append_items(struct buffer *out, const struct info_file *file, const struct profile *profile)
{
    if (file->item_count) append_number(out, "Items", file->item_count);
    for (size_t i = 0; i < file->item_count; i++) {
        const struct info_item *item = &file->items[i];
        buffer_append_text(out, "  ");
        append_printable(out, profile_c_string(profile, item->type));
        buffer_append_format(out, " %zu bytes", item->size_bytes);
        for (size_t k = 0; k < item->fact_count; k++) append_fact(out, profile, &item->facts[k]);
        buffer_append_text(out, "\n");
    }
}

static void append_profile(struct buffer *out, const struct info_file *file, const struct profile *profile,
                           const struct summary *summary)
{
    append_string(out, profile, "Platform", profile->platform);
    append_string(out, profile, "Release", profile->release);
    append_string(out, profile, "Environment", profile->environment);
    append_string(out, profile, "Profiler id", profile->profiler_id);
    append_string(out, profile, sentry_extension(profile)->sample_format == 1 ? "Profile id" : "Chunk id",
                  profile->chunk_id);
    append_string(out, profile, "SDK", profile->sdk_name);
    append_string(out, profile, "SDK version", profile->sdk_version);
    append_string(out, profile, "Transaction", sentry_extension(profile)->transaction.name);
    append_string(out, profile, "  id", sentry_extension(profile)->transaction.id);
    append_string(out, profile, "  trace id", sentry_extension(profile)->transaction.trace_id);
    append_string(out, profile, "  thread", profile->active_thread);
    append_pair(out, profile, "Device", sentry_extension(profile)->device.architecture,
                sentry_extension(profile)->device.model);
    append_pair(out, profile, "System", sentry_extension(profile)->os.name, sentry_extension(profile)->os.version);
    append_pair(out, profile, "Runtime", sentry_extension(profile)->runtime.name,
                sentry_extension(profile)->runtime.version);
    append_start(out, profile, summary);
    append_duration(out, profile, summary);
    append_values(out, profile);
    append_label(out, "Samples");
    buffer_append_format(out, "%" PRIu64, summary->sample_count);
    if (summary->entry_count != summary->sample_count) {
        buffer_append_format(out, " in %zu entries", summary->entry_count);
    }
    buffer_append_text(out, "\n");
    append_number(out, "Stacks", summary->stack_count);
    append_number(out, "Deepest stack", summary->deepest_stack);
    append_frames(out, summary);
    append_processes(out, profile);
    append_threads(out, profile, summary);
    append_images(out, profile, summary);
    append_completeness(out, profile, &file->completeness);
    append_measurements(out, profile);
    if (profile->markers.count > 0) append_number(out, "Markers", profile->markers.count);
    append_metadata(out, profile);
    append_string(out, profile, "Shown first", profile->default_value_type);
    append_string(out, profile, "Drop frames", profile->drop_frames);
    append_string(out, profile, "Keep frames", profile->keep_frames);
    append_string(out, profile, "Documentation", profile->doc_url);
    for (size_t i = 0; i < profile->comments.count; i++) {
        append_string(out, profile, "Comment", profile->comments.items[i]);
    }
}

void info_write_text(const struct info_file *file, const struct profile *profile, const struct summary *summary,
                     struct buffer *out)
{
    append_text(out, "File", file->path);
    append_label(out, "Format");
    buffer_append_format(out, "%s%s%s, %zu bytes\n", file->format, file->version[0] ? " version " : "", file->version,
                         file->size_bytes);
    append_items(out, file, profile);
    if (file->has_profile) append_profile(out, file, profile, summary);
}
