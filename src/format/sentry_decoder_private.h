/* What the decoders of V1 and V2 share: a walk over objects with known members, and the parts that both have. All of it
 * reads the next value of DECODER's reader, which remembers what went wrong. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_DECODER_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_DECODER_PRIVATE_H

#include "base/json_reader.h"
#include "format/sentry_v2_private.h"

enum { CHUNK_THREAD_CACHE_SIZE = 64 };

struct chunk_decoder {
    struct json_reader reader;
    struct profile *profile;
    struct chunk chunk;
    struct {
        struct slice text;
        struct thread_id id;
    } thread_cache[CHUNK_THREAD_CACHE_SIZE];
    bool is_relative; /* V1: times count from the profile's start, in nanoseconds */
    bool has_version, is_version_2, has_profile;
};

void chunk_decoder_fini(struct chunk_decoder *decoder);

struct member {
    const char *name;
    size_t name_size;
    int number; /* several names of one member have the same */
};
#define MEMBER(name, number)                                                                                           \
    {                                                                                                                  \
        name, sizeof(name) - 1, number                                                                                 \
    }

struct members {
    const struct member *known;
    uint32_t known_count;
    uint32_t guess; /* members tend to come in the same order in every object */
    uint32_t seen;  /* bit NUMBER */
};
#define MEMBERS(table)                                                                                                 \
    {                                                                                                                  \
        .known = table, .known_count = sizeof(table) / sizeof(table[0])                                                \
    }

/* The number of the next member that is known and not null, whose value is then to be taken; -1 after the last one.
 * A member that comes twice is refused, as the real receiver does. */
int chunk_next_member(struct chunk_decoder *decoder, struct members *members);

struct slice chunk_read_text_or_number(struct chunk_decoder *decoder);
uint64_t chunk_read_u64(struct chunk_decoder *decoder); /* a number, or a string that holds one */
struct string_id chunk_read_string(struct chunk_decoder *decoder);
struct string_id chunk_read_uuid(struct chunk_decoder *decoder);

/* The values of the members of these names. */
void chunk_read_profile(struct chunk_decoder *decoder);
void chunk_read_debug_meta(struct chunk_decoder *decoder);
void chunk_read_measurements(struct chunk_decoder *decoder);
void chunk_read_client_sdk(struct chunk_decoder *decoder);
void chunk_read_offbeat(struct chunk_decoder *decoder);

#endif
