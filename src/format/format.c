/* The list of formats: choosing one by name, path or content, decompression, and the way into the model and out of it.
 * SPDX-License-Identifier: MIT */
#include "format/format.h"

#include "base/compression.h"
#include "format/common/text_line.h"
#include "format/foreign_formats.h"
#include "format/recording/recording.h"
#include "profile/profile_extent.h"

#include <stdio.h>
#include <stdlib.h>

#define FORMAT_ADDRESS(name) &format_##name,
const struct format *const formats[FORMAT_COUNT] = {FORMATS(FORMAT_ADDRESS)};
#undef FORMAT_ADDRESS

enum { SUFFIX_BYTES_MAX = 32 };

const char *format_name(const struct format *format)
{
    return format ? format->name : "unknown";
}

const struct format *format_of_name(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(formats[i]->name, name) == 0) return formats[i];
    }
    return NULL;
}

static bool has_suffix(const char *path, const char *suffix)
{
    char compressed[SUFFIX_BYTES_MAX];
    (void)snprintf(compressed, sizeof(compressed), "%s.gz", suffix);
    return text_ends_with(slice_of_text(path), suffix) || text_ends_with(slice_of_text(path), compressed);
}

/* Returns the longest suffix of a format that PATH ends with, without .gz, and its format in RET_FORMAT. */
static const char *find_suffix(const char *path, const struct format **ret_format)
{
    const char *found = NULL;
    *ret_format = NULL;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        for (size_t k = 0; k < FORMAT_SUFFIXES_MAX && formats[i]->suffixes[k]; k++) {
            const char *suffix = formats[i]->suffixes[k];
            if (!has_suffix(path, suffix) || (found && strlen(suffix) <= strlen(found))) continue;
            found = suffix;
            *ret_format = formats[i];
        }
    }
    return found;
}

const struct format *format_of_path(const char *path)
{
    const struct format *format;
    (void)find_suffix(path, &format);
    return format;
}

const char *format_written_suffix(const struct format *format)
{
    if (format->written_suffix) return format->written_suffix;
    return format->suffixes[0] ? format->suffixes[0] : "";
}

const char *format_suffix_of_path(const char *path)
{
    const struct format *format;
    const char *suffix = find_suffix(path, &format), *end = path + strlen(path);
    if (suffix) return end - strlen(suffix) - (text_ends_with(slice_of_text(path), suffix) ? 0 : strlen(".gz"));
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot : end;
}

bool format_is_written(const struct format *format)
{
    return format && format->encode;
}

bool format_path_is_compressed(const char *path)
{
    const struct format *format = format_of_path(path);
    return text_ends_with(slice_of_text(path), ".gz") && !(format && format->is_gzip);
}

/* Detects the format of bytes that are not compressed. */
static const struct format *detect_raw(struct slice bytes)
{
    if (foreign_format_is_certain(bytes)) return NULL;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (formats[i]->detect && formats[i]->detect(bytes)) return formats[i];
    }
    return NULL;
}

/* --- Decompression ------------------------------------------------------------------------------------------------ */

/* Removes the mark that some editors and Windows programs put in front of UTF-8. */
static struct slice without_mark(struct slice bytes)
{
    bool has_mark = bytes.size >= 3 && memcmp(bytes.data, "\xef\xbb\xbf", 3) == 0;
    return has_mark ? slice_of(bytes.data + 3, bytes.size - 3) : bytes;
}

/* Takes one layer of compression off BYTES, which OUT gets. RET_IS_PLAIN: there is none, and the bytes are of
 * *RET_FORMAT, or NULL. RET_IS_CUT: NULL, or set if OUT has the beginning of data that are cut short, which is an error
 * otherwise. */
static enum status take_layer(struct slice bytes, size_t bytes_max, struct buffer *out, bool *ret_is_plain,
                              bool *ret_is_cut, const struct format **ret_format, struct error *error)
{
    enum { ENOUGH_BYTES = 64 };
    enum compression compression = compression_detect(bytes);
    bool is_sure = compression == COMPRESSION_GZIP || compression == COMPRESSION_ZSTD, is_cut = false;
    if (compression == COMPRESSION_NONE) compression = COMPRESSION_BROTLI;
    buffer_init(out, bytes_max);
    *ret_format = is_sure ? NULL : detect_raw(bytes);
    *ret_is_plain = *ret_format != NULL;
    if (*ret_is_plain) return STATUS_OK;
    enum status status = ret_is_cut || compression == COMPRESSION_BROTLI
                             ? decompress_front(compression, bytes, out, &is_cut, error)
                             : decompress(compression, bytes, out, error);
    if (status != STATUS_MALFORMED) return status;
    /* Others have no sure mark: only the contents of a file that was cut short show how it is compressed. */
    bool is_known = is_sure || (out->size >= ENOUGH_BYTES && detect_raw(buffer_slice(out)));
    if (!is_known) {
        *ret_is_plain = true;
        return STATUS_OK;
    }
    if (!is_cut || !ret_is_cut || out->size == 0) return status;
    *ret_is_cut = true;
    return STATUS_OK;
}

/* format_decompress, which also detects: each layer once. RET_IS_CUT: as above. */
static enum status open_bytes(struct slice bytes, size_t limit, struct buffer *storage, struct slice *ret_raw,
                              bool *ret_is_cut, const struct format **ret_format, struct error *error)
{
    size_t bytes_max = decompressed_bytes_max(bytes.size, limit);
    buffer_init(storage, bytes_max);
    *ret_raw = without_mark(bytes);
    for (int layers = 0;; layers++) {
        struct buffer out;
        bool is_plain;
        enum status status = take_layer(*ret_raw, bytes_max, &out, &is_plain, ret_is_cut, ret_format, error);
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

enum status format_decompress(struct slice bytes, size_t bytes_max, struct buffer *storage, struct slice *ret_raw,
                              struct error *error)
{
    const struct format *format;
    return open_bytes(bytes, bytes_max, storage, ret_raw, NULL, &format, error);
}

/* Says what BYTES are that are no profile, and what the user can do about it. */
static enum status explain_unknown(struct slice bytes, struct error *error)
{
    const char *hint = foreign_format_hint(bytes);
    if (hint) return error_set(error, STATUS_UNSUPPORTED, 0, "%s", hint);
    int version = recording_other_version(bytes);
    if (version)
        return error_set(
            error, STATUS_UNSUPPORTED, 0,
            "a recording of %s version of offbeat (layout %d, and this one reads %d); read it with the offbeat "
            "that recorded it, or record again",
            version < recording_version() ? "an older" : "a newer", version, recording_version());
    return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a profile of any format that offbeat reads");
}

/* Decodes BYTES, decompressed, which are of FORMAT (NULL: of none). RELEASABLE holds them if it may be freed while they
 * are read; else it is NULL. */
static enum status decode_raw(const struct format *format, struct slice bytes, struct buffer *releasable,
                              struct profile *profile, const struct format **ret_format, struct error *error)
{
    uint64_t source_bytes = bytes.size;
    if (!format) return explain_unknown(bytes, error);
    enum status status = releasable && format->decode_buffer ? format->decode_buffer(releasable, profile, error)
                                                             : format->decode(bytes, profile, error);
    profile->source_bytes = source_bytes * (format->samples_a_byte ? format->samples_a_byte : 1);
    if (status == STATUS_OK) status = profile_check_inlined(profile, source_bytes, error);
    if (status == STATUS_OK && ret_format) *ret_format = format;
    return status;
}

enum status format_decode(struct slice bytes, struct profile *profile, const struct format **ret_format,
                          struct error *error)
{
    struct buffer storage;
    struct slice raw;
    const struct format *format;
    enum status status = open_bytes(bytes, FORMAT_BYTES_MAX, &storage, &raw, NULL, &format, error);
    struct buffer *releasable = raw.data == storage.data && raw.size > 0 ? &storage : NULL;
    if (status == STATUS_OK) status = decode_raw(format, raw, releasable, profile, ret_format, error);
    buffer_fini(&storage);
    return status;
}

enum status format_open(struct buffer *bytes, const struct format **ret_format, bool *ret_is_cut, struct error *error)
{
    struct buffer storage;
    struct slice raw;
    if (ret_is_cut) *ret_is_cut = false;
    enum status status =
        open_bytes(buffer_slice(bytes), FORMAT_BYTES_MAX, &storage, &raw, ret_is_cut, ret_format, error);
    if (status == STATUS_OK && storage.data) {
        buffer_fini(bytes);
        *bytes = storage;
    } else {
        buffer_fini(&storage);
    }
    if (status == STATUS_OK && raw.size != bytes->size) { /* RAW ends where the bytes end */
        memmove(bytes->data, bytes->data + (bytes->size - raw.size), raw.size);
        bytes->size = raw.size;
    }
    return status;
}

enum status format_decode_opened(const struct format *format, struct buffer *bytes, struct profile *profile,
                                 struct error *error)
{
    enum status status = decode_raw(format, buffer_slice(bytes), bytes, profile, NULL, error);
    buffer_fini(bytes);
    return status;
}

enum status format_encode(const struct profile *profile, const struct format *format, struct buffer *out,
                          struct error *error)
{
    if (!format_is_written(format)) {
        return error_set(error, STATUS_UNSUPPORTED, 0, "offbeat does not write the format \"%s\"", format_name(format));
    }
    return format->encode(profile, out, error);
}
