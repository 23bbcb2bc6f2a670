/* The table of formats, and the two ways through it.  SPDX-License-Identifier: MIT */
#include "format/format.h"

#include "base/compression.h"
#include "format/chrome_cpuprofile.h"
#include "format/collapsed.h"
#include "format/sentry/envelope.h"
#include "format/sentry/envelope_profile.h"
#include "format/firefox.h"
#include "format/perf_script.h"
#include "format/pprof/pprof.h"
#include "format/pprof/pprof_legacy.h"
#include "format/recording.h"
#include "format/sentry/sentry_v1.h"
#include "format/sentry/sentry_v2.h"
#include "format/speedscope.h"
#include "profile/time_labels.h"

#include <stdio.h>
#include <stdlib.h>

/* --- A chunk ------------------------------------------------------------------------------------------------------ */

static bool sentry_v2_detect(struct slice bytes)
{
    size_t i = 0;
    while (i < bytes.size && memchr(" \t\r\n", bytes.data[i], 4)) i++;
    return i < bytes.size && bytes.data[i] == '{';
}

static enum status sentry_v2_encode_all(const struct profile *profile, struct buffer *out, struct error *error)
{
    return sentry_v2_encode(profile, NULL, out, error);
}

/* An envelope with a profile of V1 is read as any other. */
static bool detect_never(struct slice bytes)
{
    return false;
}

/* --- pprof -------------------------------------------------------------------------------------------------------- */

/* Samples that are labelled with their times have times again. */
static enum status take_times(enum status decoded, struct profile *profile, struct error *error)
{
    if (decoded != STATUS_OK) return decoded;
    time_labels_take(profile);
    return profile_failed(profile, error);
}

static enum status pprof_decode_timed(struct slice bytes, struct profile *profile, struct error *error)
{
    return take_times(pprof_decode(bytes, profile, error), profile, error);
}

static enum status pprof_decode_buffer_timed(struct buffer *bytes, struct profile *profile, struct error *error)
{
    return take_times(pprof_decode_buffer(bytes, profile, error), profile, error);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

struct format_entry {
    enum format format;
    const char *name;
    const char *suffixes[3]; /* of file names; further ones NULL */
    bool (*detect)(struct slice bytes);
    enum status (*decode)(struct slice bytes, struct profile *profile, struct error *error);
    enum status (*encode)(const struct profile *profile, struct buffer *out, struct error *error); /* NULL: read only */
};

/* In the order of detection: what can be taken for less comes first. Neither a recording nor an envelope nor any other
 * document of JSON on one line ends its first line as a collapsed stack does; JSON and protobuf are known by little. */
static const struct format_entry formats[] = {
    {FORMAT_RECORDING, "recording", {".recording"}, recording_detect, recording_decode, NULL},
    {FORMAT_PPROF_LEGACY, "pprof-legacy", {NULL}, pprof_legacy_detect, pprof_legacy_decode, NULL},
    {FORMAT_PERF_SCRIPT, "perf-script", {NULL}, perf_script_detect, perf_script_decode, NULL},
    {FORMAT_COLLAPSED, "collapsed", {".collapsed", ".folded"}, collapsed_detect, collapsed_decode, collapsed_encode},
    {FORMAT_SPEEDSCOPE, "speedscope", {".speedscope.json"}, speedscope_detect, speedscope_decode, speedscope_encode},
    {FORMAT_CHROME, "chrome", {".cpuprofile"}, chrome_cpuprofile_detect, chrome_cpuprofile_decode, NULL},
    {FORMAT_FIREFOX, "firefox", {".firefox.json"}, firefox_detect, firefox_decode, firefox_encode},
    {FORMAT_ENVELOPE, "envelope", {".envelope"}, envelope_detect, envelope_profile_decode, envelope_profile_encode},
    {FORMAT_ENVELOPE_V1, "envelope-v1", {NULL}, detect_never, envelope_profile_decode, envelope_profile_encode_v1},
    {FORMAT_SENTRY_V1, "sentry-v1", {NULL}, sentry_v1_detect, sentry_v1_decode, sentry_v1_encode},
    {FORMAT_SENTRY_V2, "sentry-v2", {".json"}, sentry_v2_detect, sentry_v2_decode, sentry_v2_encode_all},
    {FORMAT_PPROF, "pprof", {".pb", ".pprof"}, pprof_detect, pprof_decode_timed, pprof_encode},
};

enum { FORMAT_ENTRIES = sizeof(formats) / sizeof(formats[0]), SUFFIXES = 3, SUFFIX_BYTES_MAX = 32 };

static const struct format_entry *find_entry(enum format format)
{
    for (size_t i = 0; i < FORMAT_ENTRIES; i++) {
        if (formats[i].format == format) return &formats[i];
    }
    return NULL;
}

const char *format_name(enum format format)
{
    const struct format_entry *entry = find_entry(format);
    return entry ? entry->name : "unknown";
}

enum format format_of_name(const char *name)
{
    for (size_t i = 0; i < FORMAT_ENTRIES; i++) {
        if (strcmp(formats[i].name, name) == 0) return formats[i].format;
    }
    return FORMAT_UNKNOWN;
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t text_size = strlen(text), suffix_size = strlen(suffix);
    return text_size >= suffix_size && strcmp(text + text_size - suffix_size, suffix) == 0;
}

static bool has_suffix(const char *path, const char *suffix)
{
    char compressed[SUFFIX_BYTES_MAX];
    (void)snprintf(compressed, sizeof(compressed), "%s.gz", suffix);
    return ends_with(path, suffix) || ends_with(path, compressed);
}

enum format format_of_path(const char *path)
{
    for (size_t i = 0; i < FORMAT_ENTRIES; i++) {
        for (size_t suffix = 0; suffix < SUFFIXES && formats[i].suffixes[suffix]; suffix++) {
            if (has_suffix(path, formats[i].suffixes[suffix])) return formats[i].format;
        }
    }
    return FORMAT_UNKNOWN;
}

bool format_is_written(enum format format)
{
    const struct format_entry *entry = find_entry(format);
    return entry && entry->encode;
}

bool format_path_is_compressed(const char *path)
{
    return ends_with(path, ".gz") && format_of_path(path) != FORMAT_PPROF;
}

/* Of bytes that are not compressed. */
static const struct format_entry *detect_raw(struct slice bytes)
{
    for (size_t i = 0; i < FORMAT_ENTRIES; i++) {
        if (formats[i].detect(bytes)) return &formats[i];
    }
    return NULL;
}

enum status format_decompress(struct slice bytes, struct buffer *storage, struct slice *ret_raw, struct error *error)
{
    enum compression compression = compression_detect(bytes);
    bool is_sure = compression == COMPRESSION_GZIP || compression == COMPRESSION_ZSTD;
    if (compression == COMPRESSION_NONE) compression = COMPRESSION_BROTLI; /* it has no mark of its own */
    buffer_init(storage, FORMAT_BYTES_MAX);
    *ret_raw = bytes;
    if (!is_sure && detect_raw(bytes)) return STATUS_OK;
    enum status status = decompress(compression, bytes, storage, error);
    if (status == STATUS_MALFORMED && !is_sure) return STATUS_OK;
    *ret_raw = buffer_slice(storage);
    return status;
}

enum format format_detect(struct slice bytes)
{
    struct buffer storage;
    struct slice raw;
    const struct format_entry *entry = NULL;
    if (format_decompress(bytes, &storage, &raw, NULL) == STATUS_OK) entry = detect_raw(raw);
    buffer_fini(&storage);
    return entry ? entry->format : FORMAT_UNKNOWN;
}

/* Of bytes that are not compressed. RELEASABLE is what holds them, if its memory may be given back while they are read;
 * else NULL. Where it matters is pprof, whose files are the largest by far. */
static enum status decode_raw(struct slice bytes, struct buffer *releasable, struct profile *profile,
                              enum format *ret_format, struct error *error)
{
    const struct format_entry *entry = detect_raw(bytes);
    if (!entry) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a profile of any format that offbeat reads");
    enum status status = releasable && entry->format == FORMAT_PPROF
                             ? pprof_decode_buffer_timed(releasable, profile, error)
                             : entry->decode(bytes, profile, error);
    if (status == STATUS_OK && ret_format) *ret_format = entry->format;
    return status;
}

enum status format_decode(struct slice bytes, struct profile *profile, enum format *ret_format, struct error *error)
{
    struct buffer storage;
    struct slice raw;
    enum status status = format_decompress(bytes, &storage, &raw, error);
    if (status == STATUS_OK) status = decode_raw(raw, storage.data ? &storage : NULL, profile, ret_format, error);
    buffer_fini(&storage);
    return status;
}

enum status format_decode_as(enum format format, struct slice bytes, struct profile *profile, struct error *error)
{
    const struct format_entry *entry = find_entry(format);
    if (!entry) return error_set(error, STATUS_UNSUPPORTED, 0, "no such format");
    return entry->decode(bytes, profile, error);
}

enum status format_decompress_buffer(struct buffer *bytes, struct error *error)
{
    struct buffer storage;
    struct slice raw;
    enum status status = format_decompress(buffer_slice(bytes), &storage, &raw, error);
    if (status == STATUS_OK && raw.data != bytes->data) {
        buffer_fini(bytes);
        *bytes = storage;
    } else {
        buffer_fini(&storage);
    }
    return status;
}

enum status format_decode_buffer(struct buffer *bytes, struct profile *profile, enum format *ret_format,
                                 struct error *error)
{
    enum status status = format_decompress_buffer(bytes, error);
    if (status == STATUS_OK) status = decode_raw(buffer_slice(bytes), bytes, profile, ret_format, error);
    buffer_fini(bytes);
    return status;
}

enum status format_encode(const struct profile *profile, enum format format, struct buffer *out, struct error *error)
{
    const struct format_entry *entry = find_entry(format);
    if (!entry || !entry->encode) {
        return error_set(error, STATUS_UNSUPPORTED, 0, "offbeat does not write the format \"%s\"", format_name(format));
    }
    return entry->encode(profile, out, error);
}
