/* Splits a profile into chunks; encodes and validates each of them once.
 *
 * The parts are planned before anything is encoded: their times and numbers of samples decide which of them a
 * server accepts, so that each chunk knows whether it is the first or the last one. Only the size is known after
 * encoding. A chunk that is too large halves the length of this part and the following ones, which are planned again.
 * SPDX-License-Identifier: MIT */
#include "deliver/chunks.h"

#include "base/array.h"
#include "base/clocks.h"
#include "base/uuid.h"
#include "format/format.h"
#include "format/sentry/envelope_profile.h"
#include "format/sentry/sentry_v2.h"
#include "profile/sample_times.h"

#include <stdlib.h>

enum { CHUNK_SECONDS_MAX = 65 /* servers reject more than 66 s */ };

/* A time range of the profile. Both 0: all of the profile. */
struct part {
    uint64_t from_ns, to_ns;
    uint64_t left_out; /* ticks after this part and before the next one */
};

struct delivery {
    const struct profile *profile;
    const struct deliver_options *options;
    deliver_sink receive;
    void *context;
    struct deliver_summary *summary;
    struct error *error;
    struct part *parts;
    size_t part_count, capacity;
    uint64_t left_out;  /* ticks before the first part */
    uint64_t length_ns; /* length of the parts that are planned next */
    bool thins_idle;
};

/* --- Planning ----------------------------------------------------------------------------------------------------- */

static enum status reject_count(const struct delivery *delivery)
{
    return error_set(delivery->error, STATUS_TOO_LARGE, 0, "needs more than %d chunks", DELIVER_CHUNKS_MAX);
}

static enum status add_part(struct delivery *delivery, struct part part)
{
    if (!array_reserve(&delivery->parts, &delivery->capacity, delivery->part_count + 1, sizeof(part),
                       DELIVER_CHUNKS_MAX))
        return reject_count(delivery);
    delivery->parts[delivery->part_count++] = part;
    return STATUS_OK;
}

/* Appends PART to the previous part, whose index is at least FIRST. False if the previous part would be too long. */
static bool join_previous(struct delivery *delivery, size_t first, struct part part, uint64_t last_ns)
{
    if (delivery->part_count == first) return false;
    struct part *previous = &delivery->parts[delivery->part_count - 1];
    if (last_ns - previous->from_ns > CHUNK_SECONDS_MAX * SECOND_NS) return false;
    previous->to_ns = part.to_ns;
    return true;
}

static void leave_out(struct delivery *delivery, uint64_t tick_count)
{
    size_t count = delivery->part_count;
    *(count ? &delivery->parts[count - 1].left_out : &delivery->left_out) += tick_count;
}

static void count_left_out(const struct delivery *delivery)
{
    struct deliver_summary *summary = delivery->summary;
    uint64_t tick_count = delivery->left_out;
    for (size_t i = 0; i < delivery->part_count; i++) tick_count += delivery->parts[i].left_out;
    if (summary->samples_left_out == 0 && tick_count > 0) (void)rules_reject_too_few(&summary->reject);
    summary->samples_left_out += tick_count;
}

/* Plans the parts from FROM_NS on and appends them. */
static enum status plan_from(struct delivery *delivery, uint64_t from_ns)
{
    size_t first = delivery->part_count;
    enum status status = STATUS_OK;
    for (unsigned count = 0; status == STATUS_OK && from_ns != UINT64_MAX; count++) {
        struct part part = {.from_ns = from_ns, .to_ns = from_ns + delivery->length_ns};
        if (count == DELIVER_CHUNKS_MAX) return reject_count(delivery);
        if (part.to_ns < part.from_ns)
            return error_set(delivery->error, STATUS_TOO_LARGE, 0, "has samples after the year 2500");
        struct sample_times_part found = sample_times_part(delivery->profile, part.from_ns, part.to_ns);
        if (sentry_v2_has_enough_samples(delivery->profile, part.from_ns, part.to_ns))
            status = add_part(delivery, part);
        else if (!join_previous(delivery, first, part, found.last_ns))
            leave_out(delivery, found.tick_count);
        from_ns = found.next_ns;
    }
    return status;
}

/* The number of ticks alone shows it, so that a small file with huge counts is rejected at once. */
static bool is_too_long(const struct profile *profile)
{
    double ticks = (double)sample_times_part(profile, 0, UINT64_MAX).tick_count / (double)profile->threads.count;
    double longest_ns = (double)DELIVER_CHUNKS_MAX * DELIVER_CHUNK_SECONDS * (double)SECOND_NS;
    return ticks * (double)sample_times_period_ns(profile) > longest_ns;
}

/* --- One chunk ---------------------------------------------------------------------------------------------------- */

static enum status encode_part(const struct delivery *delivery, size_t number, struct buffer *out,
                               struct rules_result *ret_result)
{
    char chunk_id[UUID_TEXT_SIZE];
    bool is_one_of_several = delivery->part_count > 1;
    const struct sentry_v2_options options = {
        .from_ns = delivery->parts[number].from_ns,
        .to_ns = delivery->parts[number].to_ns,
        .is_first = number == 0,
        .is_last = number + 1 == delivery->part_count,
        .thins_idle = delivery->thins_idle,
        .chunk_id = is_one_of_several ? chunk_id : NULL,
    };
    if (is_one_of_several && !uuid_new(chunk_id))
        return error_set(delivery->error, STATUS_IO, 0, "the system gives no random numbers");
    delivery->summary->encoding_count++;
    return sentry_v2_encode_and_validate(delivery->profile, &options, out, ret_result, delivery->error);
}

static enum status wrap_chunk(const struct delivery *delivery, struct slice chunk, struct buffer *out)
{
    bool is_first = delivery->options->carries_items && delivery->summary->chunk_count == 0;
    envelope_profile_wrap(delivery->profile, chunk, is_first, out);
    return envelope_profile_check(out, 0, delivery->error);
}

/* May empty CHUNK. */
static enum status hand_out(const struct delivery *delivery, struct buffer *chunk)
{
    struct buffer envelope;
    enum status status = STATUS_OK;
    bool wraps = delivery->options->wraps;
    buffer_init(&envelope, FORMAT_BYTES_MAX);
    if (wraps) status = wrap_chunk(delivery, buffer_slice(chunk), &envelope);
    if (wraps) buffer_fini(chunk); /* the envelope has a copy */
    struct slice bytes = buffer_slice(wraps ? &envelope : chunk);
    if (status == STATUS_OK && !delivery->receive(delivery->context, bytes))
        status = error_set(delivery->error, STATUS_IO, 0, "the chunk could not be handed on");
    delivery->summary->chunk_count += status == STATUS_OK;
    buffer_fini(&envelope);
    return status;
}

/* Sets RET_RESULT also if it fails. */
static enum status deliver_part(const struct delivery *delivery, size_t number, struct rules_result *ret_result)
{
    struct buffer chunk;
    rules_result_init(ret_result);
    buffer_init(&chunk, FORMAT_BYTES_MAX);
    enum status status = encode_part(delivery, number, &chunk, ret_result);
    if (status == STATUS_OK) status = hand_out(delivery, &chunk);
    buffer_fini(&chunk);
    return status;
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

/* Plans part NUMBER, which is too large, and the following ones again. False if they cannot be smaller. */
static bool make_smaller(struct delivery *delivery, size_t number, enum status *ret_status)
{
    struct part part = delivery->parts[number];
    *ret_status = STATUS_OK;
    if (delivery->options->may_thin_idle && !delivery->thins_idle) {
        delivery->thins_idle = true;
        return true;
    }
    struct sample_times_part found =
        sample_times_part(delivery->profile, part.from_ns, part.to_ns ? part.to_ns : UINT64_MAX);
    uint64_t extent_ns = found.last_ns - found.first_ns;
    if (extent_ns < SECOND_NS || delivery->length_ns <= SECOND_NS) return false;
    delivery->length_ns = (extent_ns < delivery->length_ns ? extent_ns : delivery->length_ns) / 2 + 1;
    delivery->part_count = number;
    *ret_status = plan_from(delivery, found.first_ns);
    return true;
}

static enum status check_count(const struct delivery *delivery)
{
    size_t maximum = delivery->options->chunks_max, count = delivery->options->chunks_before + delivery->part_count;
    if (maximum == 0 || count <= maximum) return STATUS_OK;
    return error_set(delivery->error, STATUS_TOO_LARGE, 0, "holds one chunk, and this profile needs %zu; name a file",
                     count);
}

static enum status deliver_parts(struct delivery *delivery)
{
    enum status status = check_count(delivery);
    for (size_t i = 0; status == STATUS_OK && i < delivery->part_count;) {
        struct rules_result result;
        status = deliver_part(delivery, i, &result);
        if (status == STATUS_OK) {
            i++;
        } else if (result.reason == REJECT_EXCEED_SIZE_LIMIT) {
            enum status planned;
            if (!make_smaller(delivery, i, &planned)) return status;
            status = planned == STATUS_OK ? check_count(delivery) : planned;
        }
    }
    return status;
}

/* One chunk of all samples. */
static enum status deliver_one(struct delivery *delivery, struct rules_result *ret_result)
{
    rules_result_init(ret_result);
    delivery->part_count = 0;
    enum status status = add_part(delivery, (struct part){0});
    return status == STATUS_OK ? deliver_part(delivery, 0, ret_result) : status;
}

static enum status deliver_profile(struct delivery *delivery)
{
    const struct profile *profile = delivery->profile;
    struct rules_result result;
    bool is_empty = sample_times_part(profile, 0, 0).next_ns == UINT64_MAX;
    bool tries = delivery->options->tries_one_chunk && sentry_v2_has_enough_samples(profile, 0, 0);
    if (is_empty) return deliver_one(delivery, &result); /* the encoder rejects it for having no samples */
    if (tries) {
        enum status status = deliver_one(delivery, &result);
        if (status == STATUS_OK || result.accepted) return status;
        if (delivery->part_count == 1 && result.reason == REJECT_EXCEED_SIZE_LIMIT)
            return make_smaller(delivery, 0, &status) && status == STATUS_OK ? deliver_parts(delivery) : status;
        delivery->part_count = 0;
    }
    if (is_too_long(profile)) return reject_count(delivery);
    enum status status = plan_from(delivery, sample_times_part(profile, 0, 0).next_ns);
    return status == STATUS_OK ? deliver_parts(delivery) : status;
}

enum status deliver_chunks(const struct profile *profile, const struct deliver_options *options, deliver_sink receive,
                           void *context, struct deliver_summary *summary, struct error *error)
{
    struct delivery delivery = {.profile = profile,
                                .options = options,
                                .receive = receive,
                                .context = context,
                                .summary = summary,
                                .error = error,
                                .length_ns = DELIVER_CHUNK_SECONDS * SECOND_NS,
                                .thins_idle = options->thins_idle};
    enum status status = deliver_profile(&delivery);
    if (status == STATUS_OK) count_left_out(&delivery);
    free(delivery.parts);
    return status;
}
