/* Every format in one table: found out by content, decoded into the model, encoded from it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_FORMAT_H
#define OFFBEAT_FORMAT_FORMAT_H

#include "format/common/format_ops.h"

#define FORMAT_ONE(name) +1
enum { FORMAT_COUNT = 0 FORMATS(FORMAT_ONE) };
#undef FORMAT_ONE

/* All formats, in the order of detection. Where a function returns or takes a format, NULL means "no format". */
extern const struct format *const formats[FORMAT_COUNT];

enum {
    FORMAT_BYTES_MAX = 1 << 30, /* bytes of a decompressed file */
    FORMAT_LAYERS_MAX = 3,      /* compressions of one file, one in another */
};

/* "unknown" for NULL. */
const char *format_name(const struct format *format);
const struct format *format_of_name(const char *name);
/* The format that a file name selects: x.pb.gz and x.pb pprof, x.json sentry-v2, x.envelope, x.collapsed or x.folded,
 * x.speedscope.json, x.firefox.json, x.otlp, x.otlp.json; .gz may follow each of them. */
const struct format *format_of_path(const char *path);
/* The suffix of PATH that selects a format, such as ".speedscope.json" or ".pb.gz". If no known suffix matches, the
 * part from the last dot of the file's name on, or "". Points into PATH. */
const char *format_suffix_of_path(const char *path);
/* The suffix of a file of FORMAT that the user did not name; "" if there is none. */
const char *format_written_suffix(const struct format *format);
/* False for formats that are only read. */
bool format_is_written(const struct format *format);
/* Whether the name asks for gzip around the output of format_encode(). */
bool format_path_is_compressed(const char *path);

/* RET_RAW: what BYTES hold compressed, for which STORAGE, not yet initialised and the caller's to finish, keeps the
 * memory; or BYTES themselves. A file may be compressed up to FORMAT_LAYERS_MAX times; it holds at most
 * decompressed_bytes_max(), and never more than BYTES_MAX. What only looks compressed is taken as it is. A byte order
 * mark is left out. */
enum status format_decompress(struct slice bytes, size_t bytes_max, struct buffer *storage, struct slice *ret_raw,
                              struct error *error);

/* Decodes BYTES, whatever they are, into PROFILE, which must be initialised and empty; after a failure it is only good
 * for profile_fini. BYTES stay the caller's and may be freed afterwards. All chunks of an envelope become one profile.
 * RET_FORMAT may be NULL. Not for signal handlers; distinct profiles in parallel. */
enum status format_decode(struct slice bytes, struct profile *profile, const struct format **ret_format,
                          struct error *error);

/* The two steps of format_decode() for BYTES that nobody else needs, which takes much less memory for large files. The
 * first replaces BYTES by what they hold decompressed, and detects the format once. The second frees them while it
 * reads; after it BYTES are empty, as after buffer_fini(). A FORMAT of NULL is an error that says what the bytes may
 * be. RET_IS_CUT: NULL, or set if the compressed data are cut short, and BYTES are what can be read of them. */
enum status format_open(struct buffer *bytes, const struct format **ret_format, bool *ret_is_cut, struct error *error);
enum status format_decode_opened(const struct format *format, struct buffer *bytes, struct profile *profile,
                                 struct error *error);

/* Appends PROFILE to OUT. STATUS_UNSUPPORTED for read-only formats. */
enum status format_encode(const struct profile *profile, const struct format *format, struct buffer *out,
                          struct error *error);

#endif
