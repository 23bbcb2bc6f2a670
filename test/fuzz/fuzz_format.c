/* Any bytes decode or are rejected, and what was decoded can be written in every format and be read again.
 *
 * With a format named by FUZZ_FORMAT in the environment, that one's decoder alone gets the bytes; without, detection
 * and decompression are before all of them. The word "list" as the only argument prints the names there are.
 * SPDX-License-Identifier: MIT */
#include "format/format.h"
#include "memory.h"
#include "profile/sample_times.h"
#include "times.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENCODED_BYTES_MAX = 64 << 20, TICKS_MAX = 1 << 8, WRITINGS = 4 };

static const struct format *chosen_format; /* NULL: all */

static void must(bool condition)
{
    if (!condition) __builtin_trap();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("FUZZ_FORMAT");
    if (*argc == 2 && strcmp((*argv)[1], "list") == 0) {
        for (size_t i = 0; i < FORMAT_COUNT; i++) puts(formats[i]->name);
        exit(0);
    }
    if (name) chosen_format = format_of_name(name);
    must(!name || chosen_format != NULL);
    memory_count();
    return 0;
}

static enum status decode(struct slice bytes, struct profile *profile, struct error *error)
{
    return chosen_format == NULL ? format_decode(bytes, profile, NULL, error)
                                 : chosen_format->decode(bytes, profile, error);
}

/* Whether PROFILE stays small in formats that write each tick separately. A count is a few bytes of input and may be
 * 50 MiB of a chunk: with such profiles a decoder would get ten inputs a second. */
static bool is_short(const struct profile *profile)
{
    uint64_t left = TICKS_MAX;
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint64_t ticks = sample_ticks(profile, i);
        if (ticks > left) return false;
        left -= ticks;
    }
    return true;
}

/* A profile that a decoder accepted is one that the others must be able to say no to, or to write and read again. */
static void write_and_read(const struct profile *profile, const struct format *format)
{
    struct buffer bytes;
    buffer_init(&bytes, ENCODED_BYTES_MAX);
    /* A profile without stacks is an empty file of collapsed stacks, which is not read as a profile. */
    if (format_encode(profile, format, &bytes, NULL) == STATUS_OK && !bytes.failed && bytes.size > 0) {
        struct profile again;
        struct error error;
        profile_init(&again);
        /* Names of collapsed stacks may be such that the text looks like another one. */
        enum status status = format == &format_collapsed ? format->decode(buffer_slice(&bytes), &again, &error)
                                                         : format_decode(buffer_slice(&bytes), &again, NULL, &error);
        must(status == STATUS_OK || status == STATUS_TOO_LARGE);
        profile_fini(&again);
    }
    buffer_fini(&bytes);
}

/* Writes the profile in BYTES, which may be compressed, to OUT in the chosen format. False if that is not possible. */
static bool rewrite(struct slice bytes, struct buffer *out)
{
    struct profile profile;
    struct buffer storage;
    struct slice raw;
    profile_init(&profile);
    bool is_written = format_decompress(bytes, FORMAT_BYTES_MAX, &storage, &raw, NULL) == STATUS_OK &&
                      decode(raw, &profile, NULL) == STATUS_OK && has_exact_times(&profile) &&
                      format_encode(&profile, chosen_format, out, NULL) == STATUS_OK && !out->failed;
    profile_fini(&profile);
    buffer_fini(&storage);
    return is_written;
}

/* The first writing may change the order, and the second may move what the first wrote elsewhere; from then on reading
 * and writing change nothing. */
static void check_agreement(struct slice bytes)
{
    struct buffer written[WRITINGS];
    for (size_t i = 0; i < WRITINGS; i++) buffer_init(&written[i], ENCODED_BYTES_MAX);
    if (rewrite(bytes, &written[0]) && written[0].size > 0) {
        for (size_t i = 1; i < WRITINGS; i++) must(rewrite(buffer_slice(&written[i - 1]), &written[i]));
        must(slice_equal(buffer_slice(&written[WRITINGS - 2]), buffer_slice(&written[WRITINGS - 1])));
    }
    for (size_t i = 0; i < WRITINGS; i++) buffer_fini(&written[i]);
}

/* The bound counts decompressed bytes. While a file is decompressed, no more than these are needed twice. */
static size_t decompressed_bytes(struct slice bytes)
{
    struct buffer storage;
    struct slice raw = bytes;
    if (chosen_format != NULL) return bytes.size;
    (void)format_decompress(bytes, FORMAT_BYTES_MAX, &storage, &raw, NULL);
    size_t size = storage.size > raw.size ? storage.size : raw.size;
    buffer_fini(&storage);
    return size > bytes.size ? size : bytes.size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = slice_of(data, size);
    struct profile profile;
    profile_init(&profile);
    memory_start();
    enum status status = decode(bytes, &profile, NULL);
    must(memory_is_bounded(decompressed_bytes(bytes)));
    if (status == STATUS_OK) {
        bool writes_all = is_short(&profile);
        for (size_t i = 0; i < FORMAT_COUNT; i++) {
            if (writes_all || !formats[i]->sentry_version) write_and_read(&profile, formats[i]);
        }
        /* Each reading of callgrind's calls estimates the stacks again, with its own rounding. */
        if (format_is_written(chosen_format) && chosen_format != &format_callgrind) check_agreement(bytes);
    }
    profile_fini(&profile);
    return 0;
}
