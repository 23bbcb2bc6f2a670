/* Every format in one table: found out by content, decoded into the model, encoded from it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_FORMAT_H
#define OFFBEAT_FORMAT_FORMAT_H

#include "base/buffer.h"
#include "profile/profile.h"

enum format {
    FORMAT_UNKNOWN,
    FORMAT_PPROF,
    FORMAT_SENTRY_V2,
    FORMAT_SENTRY_V1,
    FORMAT_ENVELOPE,
    FORMAT_ENVELOPE_V1, /* written only: a profile of V1 and its transaction */
    FORMAT_COLLAPSED,
    FORMAT_SPEEDSCOPE,
    FORMAT_PERF_SCRIPT,  /* read only */
    FORMAT_CHROME,       /* read only */
    FORMAT_FIREFOX,      /* written only */
    FORMAT_PPROF_LEGACY, /* what pprof read before profile.proto; read only */
    FORMAT_RECORDING,    /* what liboffbeat writes while it samples; read only */
};

enum {
    FORMAT_BYTES_MAX = 1 << 30, /* of a file, decompressed */
    FORMAT_LAYERS_MAX = 3,      /* compressed, and compressed again */
};

/* The name on the command line ("pprof", "sentry-v2", …). */
const char *format_name(enum format format);
/* FORMAT_UNKNOWN if there is none of that name. */
enum format format_of_name(const char *name);
/* The format that a file name asks for: x.pb.gz and x.pb pprof, x.json sentry-v2, x.envelope, x.collapsed or x.folded,
 * x.speedscope.json, x.firefox.json; each with .gz behind it too. */
enum format format_of_path(const char *path);
/* The end of PATH that tells its format, ".speedscope.json" or ".pb.gz"; where none does, what begins with the last dot
 * of the file's name, or nothing. Within PATH. */
const char *format_suffix_of_path(const char *path);
/* False for what is only read. */
bool format_is_written(enum format format);
/* Whether the name asks for gzip around what format_encode gives, which pprof has by itself. */
bool format_path_is_compressed(const char *path);
/* Looks at the content, through gzip, zlib, brotli and zstd; a file that is recognized may still turn out broken. */
enum format format_detect(struct slice bytes);

/* RET_RAW: what BYTES hold compressed, for which STORAGE, not yet initialised and the caller's to finish, keeps the
 * memory; or BYTES themselves. A file may be compressed up to FORMAT_LAYERS_MAX times; it holds at most
 * decompressed_bytes_max(). What only looks compressed is taken as it is. A byte order mark is left out. */
enum status format_decompress(struct slice bytes, struct buffer *storage, struct slice *ret_raw, struct error *error);

/* Decodes BYTES, whatever they are, into PROFILE, which must be initialised and empty; after a failure it is only good
 * for profile_fini. BYTES stay the caller's and may be freed afterwards. All chunks of an envelope become one profile.
 * RET_FORMAT may be NULL. Not for signal handlers; distinct profiles in parallel. */
enum status format_decode(struct slice bytes, struct profile *profile, enum format *ret_format, struct error *error);

/* Decodes BYTES, which are not compressed, as FORMAT, whatever they look like; STATUS_UNSUPPORTED if there is none
 * such. */
enum status format_decode_as(enum format format, struct slice bytes, struct profile *profile, struct error *error);

/* Both for BYTES that nobody else needs, which takes much less memory for large files: what is compressed makes way for
 * what it holds, and that is let go as it is read. BYTES are empty after format_decode_buffer, as after buffer_fini. */
enum status format_decompress_buffer(struct buffer *bytes, struct error *error);
enum status format_decode_buffer(struct buffer *bytes, struct profile *profile, enum format *ret_format,
                                 struct error *error);

/* Appends PROFILE to OUT. STATUS_UNSUPPORTED for read-only formats. */
enum status format_encode(const struct profile *profile, enum format format, struct buffer *out, struct error *error);

#endif
