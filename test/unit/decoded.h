/* Decoded profiles as text, as collapsed stacks, and from files.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_DECODED_H
#define OFFBEAT_TEST_DECODED_H

#include "dump.h"
#include "test.h"

#include "base/file.h"
#include "format/format.h"

enum { DECODED_OFFSET = 1 << 16 }; /* beside DUMP_…: the message of an error names its offset */

/* Writes to OUT the profile that FORMAT decodes BYTES to, or the message of the error. */
static inline const char *decoded_text(struct buffer *out, const struct format *format, struct slice bytes,
                                       unsigned what)
{
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    if (format->decode(bytes, &profile, &error) == STATUS_OK) {
        (void)dump(out, &profile, what);
    } else {
        buffer_init(out, 1 << 16);
        buffer_append_text(out, error.message);
        if (what & DECODED_OFFSET) buffer_append_format(out, " (offset %" PRIu64 ")", error.offset);
        buffer_append_byte(out, '\0');
    }
    profile_fini(&profile);
    return (const char *)out->data;
}

/* Decodes TEXT, which FORMAT accepts, into PROFILE. */
static inline void decode_text(const struct format *format, const char *text, struct profile *profile)
{
    struct error error = {0};
    profile_init(profile);
    if (format->decode(slice_of_text(text), profile, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
}

/* PROFILE has the collapsed stacks EXPECTED. */
static inline void check_collapsed(const struct profile *profile, const char *expected)
{
    struct buffer out;
    buffer_init(&out, 1 << 16);
    CHECK_UINT(format_collapsed.encode(profile, &out, NULL), STATUS_OK);
    buffer_append_byte(&out, '\0');
    CHECK_TEXT((const char *)out.data, expected);
    buffer_fini(&out);
}

/* TEXT is detected as FORMAT and has the stacks EXPECTED. */
static inline void check_stacks(const struct format *format, const char *text, const char *expected)
{
    struct profile profile;
    struct error error = {0};
    const struct format *found = NULL;
    profile_init(&profile);
    if (format_decode(slice_of_text(text), &profile, &found, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK_TEXT(format_name(found), format->name);
    check_collapsed(&profile, expected);
    profile_fini(&profile);
}

/* Decodes the file at PATH into PROFILE; it is detected as FORMAT. */
static inline void read_profile(const char *path, const struct format *format, struct profile *profile)
{
    struct buffer bytes;
    struct error error = {0};
    const struct format *found = NULL;
    buffer_init(&bytes, 1 << 24);
    if (file_read(path, &bytes, NULL) != STATUS_OK) TEST_FAIL("cannot read %s", path);
    profile_init(profile);
    if (format_decode(buffer_slice(&bytes), profile, &found, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK_TEXT(format_name(found), format->name);
    buffer_fini(&bytes);
}

#endif
