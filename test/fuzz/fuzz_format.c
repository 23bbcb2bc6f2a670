/* Any bytes decode or are refused, and what was decoded can be written in every format and be read again.
 * SPDX-License-Identifier: MIT */
#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENCODED_BYTES_MAX = 64 << 20 };

/* A profile that a decoder accepted is one that the others must be able to say no to, or to write and read again. */
static void write_and_read(const struct profile *profile, enum format format)
{
    struct buffer bytes;
    buffer_init(&bytes, ENCODED_BYTES_MAX);
    if (format_encode(profile, format, &bytes, NULL) == STATUS_OK && !bytes.failed) {
        struct profile again;
        struct error error;
        profile_init(&again);
        if (format_decode(buffer_slice(&bytes), &again, NULL, &error) != STATUS_OK && error.status != STATUS_TOO_LARGE)
            __builtin_trap();
        profile_fini(&again);
    }
    buffer_fini(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum format formats[] = {FORMAT_PPROF, FORMAT_SENTRY_V2, FORMAT_ENVELOPE, FORMAT_COLLAPSED};
    struct profile profile;
    profile_init(&profile);
    if (format_decode(slice_of(data, size), &profile, NULL, NULL) == STATUS_OK)
        for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) write_and_read(&profile, formats[i]);
    profile_fini(&profile);
    return 0;
}
