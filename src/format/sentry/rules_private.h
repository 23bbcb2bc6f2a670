/* A payload while rules are applied to it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_RULES_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_RULES_PRIVATE_H

#include "format/sentry/sentry_decoder_private.h"

/* Samples of V2 that are not dropped. */
struct kept_samples {
    size_t count;
    size_t without_stack; /* index of the first sample whose stack is missing; SIZE_MAX: none */
    uint64_t unsorted;    /* samples that are earlier than the one before */
    double first, last;   /* seconds */
};

/* Samples of one thread of V1: indexes in V1.KEPT plus one; 0 = none. */
struct thread_range {
    size_t first_active, last_active;
    size_t count;
};

struct validation {
    struct slice payload;                /* payload; JSON before the trace in a chunk with a Perfetto trace */
    struct slice trace;                  /* the Perfetto trace after PAYLOAD */
    const struct rules_context *context; /* never NULL */
    enum rules rules;
    const struct chunk_decoder *decoder; /* decoder that has read PAYLOAD */
    const struct chunk_decoder *header;  /* DECODER or, if that failed, one that read the header alone */
    struct rules_result *result;
    struct {
        struct chunk_thread *threads; /* counts by thread id; SAMPLES of dropped ones are set to 0 */
        struct kept_samples kept;
    } v2;
    struct {
        struct thread_range *ranges; /* ranges by thread id */
        uint32_t *kept;              /* indexes of the samples that are not dropped */
        size_t kept_count;
    } v1;
};

struct rule {
    bool (*holds)(struct validation *validation); /* returns whether the rule holds, or repairs */
    unsigned rules;                               /* BREAKS_… */
};

/* Checks the base64 of Android's own trace, and not what it holds. */
bool rules_trace_is_valid(struct validation *validation);

/* Applies RULES up to the first that does not hold. */
void rules_apply(struct validation *validation, const struct rule *rules, size_t count);
/* Apply the rules of a version. Return false without memory. */
bool rules_apply_v1(struct validation *validation);
bool rules_apply_v2(struct validation *validation);

/* Rules of both versions. */
bool rules_size_is_allowed(struct validation *validation);
bool rules_transaction_is_there(struct validation *validation); /* applies to V1 in an envelope */
bool rules_header_is_typed(struct validation *validation);
bool rules_version_is_own(struct validation *validation);
bool rules_values_are_typed(struct validation *validation);
bool rules_native_code_has_images(struct validation *validation);
bool rules_native_frames_have_addresses(struct validation *validation);
bool rules_stacks_have_frames(struct validation *validation);
bool rules_threads_are_described(struct validation *validation);

/* Each rejects, and returns false. */
bool rules_reject_stack(struct validation *validation, size_t sample);

static inline struct slice rules_platform(const struct validation *validation)
{
    const struct profile *profile = validation->header->profile;
    return profile_slice(profile, profile->platform);
}

/* Returns true if the payload is valid JSON; else the result is rejected. */
bool rules_payload_is_json(struct validation *validation);

#endif
