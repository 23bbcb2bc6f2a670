/* Sentry's Sample Format V2: one profile chunk as JSON (requirements FMT-1…8, V2-1…6; ../shared/spec/sentry-facts.md
 * §1). SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_SENTRY_V2_H
#define OFFBEAT_FORMAT_SENTRY_SENTRY_V2_H

#include "base/buffer.h"
#include "format/sentry/rules.h"
#include "profile/profile.h"

/* One chunk, not an envelope around it. See format_decode for the rest of the contract. Value types are samples/count
 * and wall/nanoseconds, the time to the next sample of the same thread, so that sums equal the sums of Sentry's own
 * backend. STATUS_UNSUPPORTED for other versions of the sample format. */
enum status sentry_v2_decode(struct slice bytes, struct profile *profile, struct error *error);

/* The same, with the result of the same reading: RET_RESULT is set in every case but STATUS_NO_MEMORY. What is
 * rejected may still be decoded, where it can be understood, and the other way round: STATUS_OK says that it was. */
enum status sentry_v2_decode_and_validate(struct slice bytes, const struct rules_context *context, enum rules rules,
                                          struct profile *profile, struct rules_result *ret_result,
                                          struct error *error);

struct sentry_v2_options {
    uint64_t from_ns, to_ns; /* range of samples: from_ns <= time < to_ns; both 0 = all */
    bool is_first, is_last;  /* one of several chunks that has also the measurements before, or after, the range */
    bool thins_idle;         /* writes only the first and last tick of a waiting thread, and one a second */
    const char *chunk_id;    /* 32 lowercase hex digits; NULL = the profile's own, or a new one where it has none */
};

/* Returns the platform that the chunk of PROFILE names, and that its envelope's item must name (V2-7). */
const char *sentry_v2_platform(const struct profile *profile);

/* Appends one chunk of the samples that OPTIONS (may be NULL) choose. Only stacks, frames, threads and images that
 * those samples use are written. A sample whose first value (samples/count) is n stands for n ticks, the n-th part of
 * its time (or else a period) apart:
 * it is written once for each of them. The chunk is validated as a server does (V2-5, V2-6, facts §1.2) before anything
 * is appended: STATUS_MALFORMED has the name of the reject reason first in the message ("profiling_not_enough_samples:
 * …"). Where the profile has no times, each thread's samples follow one another from the profile's start on, a period
 * apart. profiler_id is the profile's, or new where it has none: set it first when several chunks are cut from one
 * profile. Return addresses: the model's "inside the call" addresses are written plus one for all but the leaf frame,
 * which is what servers expect (facts §3.5). Inlined functions are separate frames with the same
 * instruction_addr. If a value says how long samples lasted, an idle one (an empty stack) ends every run of samples
 * of a thread: a server gives a sample the time until the next one of its thread. */
enum status sentry_v2_encode(const struct profile *profile, const struct sentry_v2_options *options, struct buffer *out,
                             struct error *error);

/* The same, with the result of the validation; if the chunk is not encoded because it would be too large, RET_RESULT is
 * REJECT_EXCEED_SIZE_LIMIT. */
enum status sentry_v2_encode_and_validate(const struct profile *profile, const struct sentry_v2_options *options,
                                          struct buffer *out, struct rules_result *ret_result, struct error *error);

/* Whether a thread has two samples with frames at FROM_NS or later and before TO_NS (both 0: at any time), without
 * which servers reject a chunk. PROFILE has timestamps. */
bool sentry_v2_has_enough_samples(const struct profile *profile, uint64_t from_ns, uint64_t to_ns);

#endif
