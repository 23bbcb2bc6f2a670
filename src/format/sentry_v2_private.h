/* What a chunk holds, between its bytes and the model.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_V2_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_V2_PRIVATE_H

#include "format/sentry_v2.h"

struct chunk_image {
    struct mapping mapping;
    struct mapping_id id;
    bool has_frames;
};

struct chunk_frame {
    struct function function; /* FILE_NAME not yet chosen */
    struct string_id file_name, absolute_path;
    int64_t line, column;
    uint64_t address;
    bool has_address;
    bool is_resolved;               /* what follows is set by chunk_to_profile */
    struct chunk_image *image;      /* set by chunk_to_profile */
    struct function_id function_id; /* 0: nothing is known but the address */
    struct location_id as_leaf, as_caller;
};

struct chunk_stack {
    uint32_t first, count; /* in frame_indices, leaf first */
    bool is_resolved;
    struct stack_id id;
};

struct chunk_sample {
    uint64_t time_ns;
    uint64_t stack;
    struct thread_id thread;
};

/* The arrays of one chunk, grown by its reader. */
/* clang-format off */
struct chunk {
    struct { struct chunk_frame *items; size_t count, capacity; } frames;
    struct { struct chunk_stack *items; size_t count, capacity; } stacks;
    struct { uint32_t *items; size_t count, capacity; } frame_indices;
    struct { struct chunk_sample *items; size_t count, capacity; } samples;
    struct { struct chunk_image *items; size_t count, capacity; } images;
};
/* clang-format on */

/* Adds to PROFILE what the samples of CHUNK use, and its images. STATUS_MALFORMED if an index points nowhere. */
enum status chunk_to_profile(struct chunk *chunk, struct profile *profile, struct error *error);

#endif
