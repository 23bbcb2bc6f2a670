/* A profile in the form of pprof -raw (what the fields mean is in doc/man/offbeat-raw.1). To be compared with that
 * tool's output byte for byte, so what looks odd here (blanks at ends of lines) is that form.
 * SPDX-License-Identifier: MIT */
#include "report/moment.h"
#include "report/raw_report.h"

#include "profile/build_id.h"
#include "profile/sample_labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* --- Times -------------------------------------------------------------------------------------------------------- */

/* Appends "2017-02-01 12:00:00.5 +0000 UTC". */
static void append_time(struct buffer *out, int64_t time_ns)
{
    char text[64];
    struct tm parts;
    time_t seconds = (time_t)moment_seconds(time_ns);
    unsigned nanoseconds = moment_nanoseconds(time_ns);
    (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", gmtime_r(&seconds, &parts));
    buffer_append_format(out, "Time: %s", text);
    if (nanoseconds > 0) {
        int length = snprintf(text, sizeof(text), ".%09u", nanoseconds);
        while (text[length - 1] == '0') length--;
        buffer_append(out, text, (size_t)length);
    }
    buffer_append_text(out, " +0000 UTC\n");
}

/* Appends to TEXT the integer WHOLE and the fraction NANOSECONDS / ONE, without trailing zeros. */
static int fraction(char *text, size_t size, uint64_t whole, uint64_t nanoseconds, uint64_t one)
{
    int digits = 0;
    for (uint64_t power = one; power > 1; power /= 10) digits++;
    int length = snprintf(text, size, "%" PRIu64, whole);
    if (nanoseconds == 0) return length;
    length += snprintf(text + length, size - (size_t)length, ".%0*" PRIu64, digits, nanoseconds);
    while (text[length - 1] == '0') length--;
    return length;
}

/* Appends the first four characters of Go's form of a duration: "4h35" of "4h35m2.83s". */
static void append_duration(struct buffer *out, int64_t duration_ns)
{
    char text[64];
    uint64_t rest = duration_ns < 0 ? 0 - (uint64_t)duration_ns : (uint64_t)duration_ns;
    int length = duration_ns < 0;
    text[0] = '-';
    const char *unit = "s";
    if (rest < 1000) {
        length += snprintf(text + length, 32, "%" PRIu64, rest);
        unit = "ns";
    } else if (rest < 1000000) {
        length += fraction(text + length, 32, rest / 1000, rest % 1000, 1000);
        unit = "\u00b5s";
    } else if (rest < 1000000000) {
        length += fraction(text + length, 32, rest / 1000000, rest % 1000000, 1000000);
        unit = "ms";
    } else {
        uint64_t seconds = rest / 1000000000u, minutes = seconds / 60, hours = minutes / 60;
        if (hours > 0) length += snprintf(text + length, 32, "%" PRIu64 "h", hours);
        if (minutes > 0) length += snprintf(text + length, 8, "%" PRIu64 "m", minutes % 60);
        length += fraction(text + length, 32, seconds % 60, rest % 1000000000u, 1000000000u);
    }
    (void)snprintf(text + length, sizeof(text) - (size_t)length, "%s", unit);
    size_t size = 0;
    for (int characters = 0; text[size] && characters < 4; characters++) {
        size++;
        while ((text[size] & 0xC0) == 0x80) size++;
    }
    buffer_append_format(out, "Duration: %.*s\n", (int)size, text);
}

/* --- Labels ------------------------------------------------------------------------------------------------------- */

static bool is_same_kind(const struct sample_label *a, const struct sample_label *b)
{
    return a->is_number == b->is_number;
}

/* Appends "key:[1 2]"; where any of the numbers has a unit, all show one. Returns the first entry of another key. */
static uint32_t append_key(const struct sample_labels *labels, uint32_t first, struct buffer *out)
{
    uint32_t end = first;
    bool has_unit = false;
    for (; end < labels->count && is_same_kind(&labels->items[first], &labels->items[end]); end++) {
        if (strcmp(labels->items[first].key, labels->items[end].key) != 0) break;
        has_unit |= labels->items[end].is_number && labels->items[end].unit[0] != '\0';
    }
    buffer_append_format(out, "%s:[", labels->items[first].key);
    for (uint32_t i = first; i < end; i++) {
        const struct sample_label *entry = &labels->items[i];
        if (i > first) buffer_append_text(out, " ");
        if (!entry->is_number) buffer_append_text(out, entry->text);
        if (entry->is_number) buffer_append_format(out, "%" PRId64, entry->number);
        if (has_unit) buffer_append_format(out, " %s", entry->unit);
    }
    buffer_append_text(out, "]");
    return end;
}

static void append_labels(const struct profile *profile, size_t sample, struct sample_labels *labels,
                          struct buffer *out)
{
    sample_labels_collect(labels, profile, profile->samples.labels[sample], profile->samples.thread[sample]);
    sample_labels_sort(labels);
    for (uint32_t i = 0; i < labels->count;) {
        bool begins_line = i == 0 || !is_same_kind(&labels->items[i - 1], &labels->items[i]);
        if (begins_line && i > 0) buffer_append_text(out, "\n");
        buffer_append_text(out, begins_line ? "                " : " ");
        i = append_key(labels, i, out);
        if (i == labels->count) buffer_append_text(out, "\n");
    }
}

/* --- Samples, locations, mappings --------------------------------------------------------------------------------- */

static void append_samples(const struct profile *profile, struct buffer *out)
{
    struct sample_labels labels;
    if (!sample_labels_init(&labels, profile)) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < profile->samples.count && !out->failed; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        for (size_t value = 0; value < profile->value_type_count; value++) {
            buffer_append_format(out, " %10" PRId64, values[value]);
        }
        buffer_append_text(out, ": ");
        struct stack_id stack = profile->samples.stack[i];
        for (; stack.index != 0; stack = profile_stack(profile, stack).parent) {
            buffer_append_format(out, "%" PRIu32 " ", profile_stack(profile, stack).location.index);
        }
        buffer_append_text(out, "\n");
        append_labels(profile, i, &labels, out);
    }
    sample_labels_fini(&labels);
}

static void append_line(const struct profile *profile, const struct line *line, struct buffer *out)
{
    if (line->function.index == 0) {
        buffer_append_text(out, "??\n");
        return;
    }
    const struct function *function = profile_function(profile, line->function);
    buffer_append_format(out, "%s %s:%" PRId64 ":%" PRId64 " s=%" PRId64, profile_c_string(profile, function->name),
                         profile_c_string(profile, function->file_name), line->line, line->column,
                         function->start_line);
    if (function->name.index != function->system_name.index)
        buffer_append_format(out, "(%s)", profile_c_string(profile, function->system_name));
    buffer_append_text(out, "\n");
}

static void append_locations(const struct profile *profile, struct buffer *out)
{
    for (uint32_t i = 1; i < profile->locations.count && !out->failed; i++) {
        const struct location *location = &profile->locations.items[i];
        buffer_append_format(out, "%6" PRIu32 ": 0x%" PRIx64 " ", i, location->address);
        if (location->mapping.index != 0) buffer_append_format(out, "M=%" PRIu32 " ", location->mapping.index);
        if (location->is_folded) buffer_append_text(out, "[F] ");
        if (location->line_count == 0) buffer_append_text(out, "\n");
        const struct line *lines = profile_lines(profile, location);
        for (uint32_t line = 0; line < location->line_count; line++) {
            if (line > 0) buffer_append_text(out, "             ");
            append_line(profile, &lines[line], out);
        }
    }
}

static void append_mappings(const struct profile *profile, struct buffer *out)
{
    for (uint32_t i = 1; i < profile->mappings.count && !out->failed; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        buffer_append_format(out, "%" PRIu32 ": 0x%" PRIx64 "/0x%" PRIx64 "/0x%" PRIx64 " %s %s ", i, mapping->start,
                             mapping->limit, mapping->file_offset, profile_c_string(profile, mapping->file_name),
                             profile_c_string(profile, mapping_build_text(mapping)));
        buffer_append_format(out, "%s%s%s%s\n", mapping->has_functions ? "[FN]" : "",
                             mapping->has_filenames ? "[FL]" : "", mapping->has_line_numbers ? "[LN]" : "",
                             mapping->has_inline_frames ? "[IN]" : "");
    }
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static void append_header(const struct profile *profile, struct buffer *out)
{
    for (size_t i = 0; i < profile->comments.count; i++)
        buffer_append_format(out, "Comment: %s\n", profile_c_string(profile, profile->comments.items[i]));
    if (profile->doc_url.index != 0)
        buffer_append_format(out, "Doc: %s\n", profile_c_string(profile, profile->doc_url));
    buffer_append_format(out, "PeriodType: %s %s\nPeriod: %" PRId64 "\n",
                         profile_c_string(profile, profile->period_type.type),
                         profile_c_string(profile, profile->period_type.unit), profile->period);
    if (profile->time_ns != 0) append_time(out, profile->time_ns);
    if (profile->duration_ns != 0) append_duration(out, (int64_t)profile->duration_ns);
}

void raw_write_text(const struct profile *profile, struct buffer *out)
{
    append_header(profile, out);
    buffer_append_text(out, "Samples:\n");
    for (size_t i = 0; i < profile->value_type_count; i++) {
        const struct value_type *type = &profile->value_types[i];
        bool is_default = type->type.index == profile->default_value_type.index;
        buffer_append_format(out, "%s%s/%s%s", i > 0 ? " " : "", profile_c_string(profile, type->type),
                             profile_c_string(profile, type->unit), is_default ? "[dflt]" : "");
    }
    buffer_append_text(out, "\n");
    append_samples(profile, out);
    buffer_append_text(out, "Locations\n");
    append_locations(profile, out);
    buffer_append_text(out, "Mappings\n");
    append_mappings(profile, out);
}
