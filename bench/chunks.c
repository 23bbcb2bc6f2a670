/* Measures the speed of reading, and of reading and validating, sample format V2 from memory: chunks FILE…  One row a
 * file, in MB of JSON a second of one processor: the JSON reader alone (every value checked and passed over), decoding
 * into the model, and decoding with the result of the same reading. Measured by chunks.py.  SPDX-License-Identifier:
 * MIT */
#include "base/file.h"
#include "base/json_reader.h"
#include "format/sentry/rules.h"
#include "format/sentry/sentry_v2.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 7, FILE_BYTES_MAX = 1 << 30 };
#define ROUND_SECONDS 0.05

static void read_alone(struct slice bytes)
{
    struct json_reader reader;
    json_reader_init(&reader, bytes);
    json_skip(&reader);
    if (json_reader_finish(&reader, NULL) != STATUS_OK) abort();
    json_reader_fini(&reader);
}

static void decode(struct slice bytes)
{
    struct profile profile;
    profile_init(&profile);
    if (sentry_v2_decode(bytes, &profile, NULL) != STATUS_OK) abort();
    profile_fini(&profile);
}

static void decode_and_validate(struct slice bytes)
{
    struct profile profile;
    struct rules_result result;
    profile_init(&profile);
    if (sentry_v2_decode_and_validate(bytes, NULL, RULES_RELAY, &profile, &result, NULL) != STATUS_OK) abort();
    profile_fini(&profile);
}

static double processor_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The best of several rounds, each long enough for the clock. */
static double megabytes_per_second(void (*work)(struct slice bytes), struct slice bytes)
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = processor_seconds(), seconds = 0;
        size_t times = 0;
        for (; seconds < ROUND_SECONDS; times++, seconds = processor_seconds() - start) work(bytes);
        double speed = (double)times * (double)bytes.size / seconds * 1e-6;
        if (speed > best) best = speed;
    }
    return best;
}

int main(int argc, char **argv)
{
    /* As in a server that continues: the memory of one chunk serves the next. */
    (void)mallopt(M_TRIM_THRESHOLD, FILE_BYTES_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, FILE_BYTES_MAX);
    for (int i = 1; i < argc; i++) {
        struct buffer bytes;
        struct error error;
        buffer_init(&bytes, FILE_BYTES_MAX);
        if (file_read(argv[i], &bytes, &error) != STATUS_OK) {
            (void)fprintf(stderr, "chunks: %s: %s\n", argv[i], error.message);
            return 1;
        }
        struct slice slice = buffer_slice(&bytes);
        printf("%s\t%zu\t%.0f\t%.0f\t%.0f\n", argv[i], slice.size, megabytes_per_second(read_alone, slice),
               megabytes_per_second(decode, slice), megabytes_per_second(decode_and_validate, slice));
        (void)fflush(stdout);
        buffer_fini(&bytes);
    }
    return 0;
}
