/* The contents of a chunk between its bytes and the model: one form for the decoder, another for the encoder.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_SENTRY_V2_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_SENTRY_V2_PRIVATE_H

#include "base/index_table.h"
#include "format/sentry/sentry_v2.h"

struct chunk_image {
    struct mapping mapping;
    struct mapping_id id;
    bool has_frames;
};

/* Kind of code that a frame's own platform names. */
enum chunk_code { CHUNK_CODE_OF_PAYLOAD, CHUNK_CODE_NATIVE, CHUNK_CODE_OTHER };

struct chunk_frame {
    struct function function; /* FILE_NAME not yet chosen */
    struct string_id file_name, absolute_path;
    struct string_id attributes;
    uint32_t offset; /* byte of the frame in the payload */
    int64_t line, column;
    uint64_t address;
    struct chunk_image *image; /* first of the members that chunk_to_profile sets, but for is_resolved */
    struct mapping_id mapping;
    struct function_id function_id; /* 0: nothing is known but the address */
    struct location_id as_leaf, as_caller;
    enum chunk_code code : 8;
    bool has_address : 1, is_resolved : 1;
};
/* A frame may have three bytes in the payload, for each of which 40 bytes are allowed (doc/formats/limits.md). */
_Static_assert(sizeof(struct chunk_frame) <= 104, "frames keep the memory bound");

struct chunk_stack {
    uint32_t first, count; /* range of frame_indices, leaf first */
    bool is_resolved;
    struct stack_id id;
};

struct chunk_sample {
    union {
        double seconds;   /* V2, as it was sent */
        uint64_t time_ns; /* V1 */
    };
    uint32_t stack; /* INDEX_NONE: that, or more */
    struct thread_id thread;
    struct string_id attributes;
};

/* The arrays of one chunk, grown by its reader. */
/* clang-format off */
struct chunk {
    struct { struct chunk_frame *items; size_t count, capacity; } frames;
    struct { struct chunk_stack *items; size_t count, capacity; } stacks;
    struct { uint32_t *items; size_t count, capacity; } frame_indices;
    struct { struct chunk_sample *items; size_t count, capacity; } samples;
    struct { struct chunk_image *items; size_t count, capacity; } images;
    struct { struct thread_id *items; size_t count, capacity; } described_threads; /* threads that thread_metadata names */
    bool counts_cpu_time;                                   /* idle samples do not count */
    size_t image_count;                                     /* images of any kind */
    bool has_images;                                        /* an image of native code was there */
    struct { const char *member; uint64_t offset; } incomplete_image; /* the first one without MEMBER, if not NULL */
};
/* clang-format on */

/* Converts in doubles and cuts off, as the server does: the numbers are equal to the nanosecond. */
static inline uint64_t chunk_seconds_to_ns(double seconds)
{
    double ns = seconds * 1e9;
    if (!(ns > 0)) return 0;
    return ns < 0x1p64 ? (uint64_t)ns : UINT64_MAX;
}

/* Returns whether RULES allow the unit of a measurement; a server rejects a chunk with another one (facts §1.3). */
bool chunk_unit_is_known(struct slice unit, enum rules rules);

struct chunk_thread {
    uint32_t samples, active; /* samples, and samples with frames */
};

/* Counts for each of the THREAD_COUNT threads. A server first drops the samples of threads with less than two active
 * ones (facts §1.2, 8). The caller frees the array; NULL without memory. */
struct chunk_thread *chunk_count_samples(const struct chunk *chunk, size_t thread_count);

/* Adds to PROFILE what the samples of CHUNK use, and its images. STATUS_MALFORMED if an index points nowhere. */
enum status chunk_to_profile(struct chunk *chunk, struct profile *profile, struct error *error);

/* --- On the way out ----------------------------------------------------------------------------------------------- */

/* One sample as it will be written. */
struct tick {
    uint64_t time_ns;
    uint32_t sample; /* index in the profile */
    uint32_t stack;  /* index in chunk_plan.stacks */
    bool is_end;     /* an idle tick at the end of SAMPLE's time: servers take a thread's last tick for its end */
};

struct written_frame {
    uint64_t address; /* 0 = none */
    int64_t line, column;
    struct function_id function; /* 0 = none */
    struct mapping_id mapping;
    struct string_id attributes;
};

struct written_stack {
    uint32_t first, count; /* range of frame_indices, leaf first */
};

/* clang-format off */
struct chunk_plan {
    const struct profile *profile;
    const struct sentry_v2_options *options;
    uint64_t period_ns; /* sample_times_period_ns */
    bool is_v1;         /* a profile of V1, with times since START_NS */
    uint64_t start_ns;
    bool is_thinned;    /* ticks are left out as OPTIONS->thins_idle says */
    uint64_t typical_ns; /* length of samples whose values do not say it; 0 = not known */
    struct { struct tick *items; size_t count, capacity; } ticks;
    struct { struct written_frame *items; size_t count, capacity; struct index_table index; } frames;
    struct { struct written_stack *items; size_t count, capacity; struct index_table index; } stacks;
    struct { uint32_t *items; size_t count, capacity; } frame_indices;
    uint32_t *stack_numbers;  /* index in STACKS plus one, by stack id of the profile; 0 = not yet there */
    uint32_t *thread_samples; /* ticks, by thread id of the profile */
    bool *mapping_is_used;    /* flags, by mapping id of the profile */
    bool no_memory, is_too_large;
};
/* clang-format on */

/* Lays out what OPTIONS (may be NULL) choose of PROFILE; both must outlive PLAN. PLAN is {0}, except is_v1 and
 * start_ns. False with no_memory or is_too_large set. */
bool chunk_plan_make(struct chunk_plan *plan, const struct profile *profile, const struct sentry_v2_options *options);
void chunk_plan_fini(struct chunk_plan *plan); /* accepts {0} and what chunk_plan_make left on failure */

uint64_t chunk_microseconds(uint64_t time_ns);          /* rounded, as timestamps are written */
int64_t chunk_period_ns(const struct profile *profile); /* 0 = not known */

enum { CHUNK_BYTES_MAX = 50 << 20 }; /* facts §1.2 (16) */

enum status chunk_reject(struct error *error, enum reject_reason reason, const char *message);
enum status chunk_no_memory(struct error *error);

#endif
