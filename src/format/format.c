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
#include "profile/profile_extent.h"
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

const char *format_suffix_of_path(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.'), *end = path + strlen(path);
    size_t known = 0;
    for (size_t i = 0; i < FORMAT_ENTRIES; i++) {
        for (size_t suffix = 0; suffix < SUFFIXES && formats[i].suffixes[suffix]; suffix++) {
            size_t size = strlen(formats[i].suffixes[suffix]);
            if (!has_suffix(path, formats[i].suffixes[suffix])) continue;
            if (!ends_with(path, formats[i].suffixes[suffix])) size += strlen(".gz");
            if (size > known) known = size;
        }
    }
    if (known > 0) return end - known;
    return dot ? dot : end;
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

/* --- Decompression ------------------------------------------------------------------------------------------------ */

/* Without the mark that some editors and Windows programs put ahead of UTF-8. */
static struct slice without_mark(struct slice bytes)
{
    bool has_mark = bytes.size >= 3 && memcmp(bytes.data, "\xef\xbb\xbf", 3) == 0;
    return has_mark ? slice_of(bytes.data + 3, bytes.size - 3) : bytes;
}

/* Whether OUT, the front of what may have been brotli, is something that we know. Brotli has no mark: of a file that
 * was cut short only what it holds says that it was brotli. */
static bool is_cut_brotli(const struct buffer *out)
{
    enum { ENOUGH_BYTES = 64 };
    return out->size >= ENOUGH_BYTES && detect_raw(buffer_slice(out));
}

/* Takes one layer of compression off BYTES, which OUT gets. RET_IS_PLAIN: there is none. */
static enum status take_layer(struct slice bytes, size_t bytes_max, struct buffer *out, bool *ret_is_plain,
                              struct error *error)
{
    enum compression compression = compression_detect(bytes);
    bool is_sure = compression == COMPRESSION_GZIP || compression == COMPRESSION_ZSTD;
    if (compression == COMPRESSION_NONE) compression = COMPRESSION_BROTLI;
    buffer_init(out, bytes_max);
    *ret_is_plain = !is_sure && detect_raw(bytes);
    if (*ret_is_plain) return STATUS_OK;
    enum status status = decompress_front(compression, bytes, out, error);
    if (status != STATUS_MALFORMED || is_sure) return status;
    if (compression == COMPRESSION_BROTLI && is_cut_brotli(out)) return status;
    *ret_is_plain = true;
    return STATUS_OK;
}

enum status format_decompress(struct slice bytes, struct buffer *storage, struct slice *ret_raw, struct error *error)
{
    size_t bytes_max = decompressed_bytes_max(bytes.size, FORMAT_BYTES_MAX);
    buffer_init(storage, bytes_max);
    *ret_raw = without_mark(bytes);
    for (int layers = 0;; layers++) {
        struct buffer out;
        bool is_plain;
        enum status status = take_layer(*ret_raw, bytes_max, &out, &is_plain, error);
        if (status == STATUS_OK && !is_plain && layers == FORMAT_LAYERS_MAX) {
            status = error_set(error, STATUS_UNSUPPORTED, 0, "compressed more than %d times", FORMAT_LAYERS_MAX);
        }
        if (status != STATUS_OK || is_plain) {
            buffer_fini(&out);
            return status;
        }
        buffer_fini(storage);
        *storage = out;
        *ret_raw = without_mark(buffer_slice(storage));
    }
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

/* What people give us that is no profile, and what they can do about it. */
static enum status explain_unknown(struct slice bytes, struct error *error)
{
    static const struct {
        const char *magic;
        size_t size;
        const char *message;
    } known[] = {
        {"\xfd\x37zXZ", 5, "xz data; decompress them first: xz -dc FILE | offbeat top -"},
        {"BZh", 3, "bzip2 data; decompress them first: bzip2 -dc FILE | offbeat top -"},
        {"\x04\x22\x4d\x18", 4, "lz4 data; decompress them first: lz4 -dc FILE | offbeat top -"},
        {"PK\x03\x04", 4, "a zip archive; unpack it first"},
        {"\x1f\x9d", 2, "data of compress; decompress them first: gzip -dc FILE | offbeat top -"},
        {"PERFILE2", 8, "a file of perf record; type: perf script -i FILE | offbeat top -"},
        {"2ELIFREP", 8, "a file of perf record; type: perf script -i FILE | offbeat top -"},
        {"\x7f\x45LF", 4, "an ELF file, not a profile"},
        {"FLR\0", 4, "a Java Flight Recording; convert it to collapsed stacks with async-profiler's jfrconv"},
        {"\xff\xfe", 2, "text in UTF-16; save it as UTF-8"},
        {"\xfe\xff", 2, "text in UTF-16; save it as UTF-8"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (bytes.size >= known[i].size && memcmp(bytes.data, known[i].magic, known[i].size) == 0) {
            return error_set(error, STATUS_UNSUPPORTED, 0, "%s", known[i].message);
        }
    }
    int version = recording_other_version(bytes);
    if (version)
        return error_set(
            error, STATUS_UNSUPPORTED, 0,
            "a recording of %s version of offbeat (layout %d, and this one reads %d); read it with the offbeat "
            "that recorded it, or record again",
            version < recording_version() ? "an older" : "a newer", version, recording_version());
    return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a profile of any format that offbeat reads");
}

/* Of bytes that are not compressed. RELEASABLE is what holds them, if its memory may be given back while they are read;
 * else NULL. Where it matters is pprof, whose files are the largest by far. */
static enum status decode_raw(struct slice bytes, struct buffer *releasable, struct profile *profile,
                              enum format *ret_format, struct error *error)
{
    const struct format_entry *entry = detect_raw(bytes);
    uint64_t source_bytes = bytes.size;
    if (!entry) return explain_unknown(bytes, error);
    enum status status = releasable && entry->format == FORMAT_PPROF
                             ? pprof_decode_buffer_timed(releasable, profile, error)
                             : entry->decode(bytes, profile, error);
    /* A recording says only that a thread stayed where it was: its samples are many, and rightly so. */
    profile->source_bytes = entry->format == FORMAT_RECORDING ? 16 * source_bytes : source_bytes;
    if (status == STATUS_OK) status = profile_check_inlined(profile, source_bytes, error);
    if (status == STATUS_OK && ret_format) *ret_format = entry->format;
    return status;
}

enum status format_decode(struct slice bytes, struct profile *profile, enum format *ret_format, struct error *error)
{
    struct buffer storage;
    struct slice raw;
    enum status status = format_decompress(bytes, &storage, &raw, error);
    if (status == STATUS_OK)
        status =
            decode_raw(raw, raw.data == storage.data && raw.size > 0 ? &storage : NULL, profile, ret_format, error);
    buffer_fini(&storage);
    return status;
}

enum status format_decode_as(enum format format, struct slice bytes, struct profile *profile, struct error *error)
{
    const struct format_entry *entry = find_entry(format);
    if (!entry) return error_set(error, STATUS_UNSUPPORTED, 0, "no such format");
    return entry->decode(bytes, profile, error);
}

/* Makes RAW, which ends where BYTES end, all that BYTES hold. */
static void drop_front(struct buffer *bytes, struct slice raw)
{
    if (raw.size == bytes->size) return;
    memmove(bytes->data, raw.data, raw.size);
    bytes->size = raw.size;
}

enum status format_decompress_buffer(struct buffer *bytes, struct error *error)
{
    struct buffer storage;
    struct slice raw;
    enum status status = format_decompress(buffer_slice(bytes), &storage, &raw, error);
    if (status == STATUS_OK && storage.data) {
        buffer_fini(bytes);
        *bytes = storage;
    } else {
        buffer_fini(&storage);
    }
    if (status == STATUS_OK) drop_front(bytes, raw);
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
