/* Android's own trace, which stands for the profile of a payload, and the samples of React Native beside it.
 * SPDX-License-Identifier: MIT */
#include "base/base64.h"
#include "format/sentry/android_trace.h"
#include "format/sentry/sentry_decoder_private.h"
#include "profile/profile_scale.h"

#include <stdlib.h>

void chunk_read_trace(struct chunk_decoder *decoder, struct members *members)
{
    struct slice text = chunk_keep_and_show(decoder, members);
    const uint8_t *start = text.data;
    size_t size = text.size;
    bool is_valid = size >= 2 && *start == '"' && (size - 2) % 4 != 1;
    for (size_t i = 1; is_valid && i + 1 < size; i++) {
        bool is_letter = (start[i] | 0x20) >= 'a' && (start[i] | 0x20) <= 'z';
        is_valid = is_letter || (start[i] >= '0' && start[i] <= '9') || start[i] == '+' || start[i] == '/';
    }
    decoder->trace = is_valid ? slice_of(start + 1, size - 2) : slice_of(NULL, 0);
    decoder->trace_is_base64 = is_valid;
    decoder->trace_is_empty = size <= 2;
}

void chunk_read_script(struct chunk_decoder *decoder, struct members *members)
{
    decoder->script = chunk_keep_and_show(decoder, members);
}

static enum status read_script(const struct chunk_decoder *decoder, uint64_t start_ns, struct profile *script,
                               struct error *error)
{
    struct chunk_decoder part;
    chunk_decoder_init(&part, decoder->script, script, decoder->is_v1);
    chunk_read_part(&part, PART_PROFILE);
    enum status status = json_reader_status(&part.reader, error);
    if (decoder->is_v1) v1_add_start(&part, start_ns);
    part.extension->sample_format = decoder->is_v1 ? 1 : 2;
    script->has_ticks = true;
    if (status == STATUS_OK) status = chunk_to_profile(&part.chunk, script, error);
    chunk_decoder_fini(&part);
    return status;
}

/* Adds js_profile: the times that both have. If it cannot be read, the trace is read without it. */
static enum status add_script(const struct chunk_decoder *decoder, uint64_t start_ns, struct error *error)
{
    struct profile *profile = decoder->profile, script;
    struct error own = {0};
    size_t types = profile->value_type_count;
    profile_init(&script);
    enum status status = read_script(decoder, start_ns, &script, &own);
    if (status == STATUS_OK) status = profile_make_compatible(profile, &script, &own);
    if (status == STATUS_OK) status = profile_merge(profile, &script, NULL, &own);
    profile_fini(&script);
    if (status == STATUS_NO_MEMORY)
        return error_set(error, status, 0, "not enough memory for the samples of js_profile");
    if (status != STATUS_OK)
        profile_add_omission(profile, "js_profile is left out: %s", own.message);
    else if (profile->value_type_count < types)
        profile_add_omission(profile, "CPU time is left out: js_profile, which is read with the trace, has none");
    return STATUS_OK;
}

enum status chunk_decode_trace(const struct chunk_decoder *decoder, uint64_t start_ns, struct error *error)
{
    if (decoder->trace.size == 0)
        return error_set(error, STATUS_UNSUPPORTED, 0, "an Android trace that is empty or no base64");
    uint8_t *trace = malloc(decoder->trace.size);
    if (!trace) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the trace");
    size_t size = base64_decode(decoder->trace, trace);
    enum status status = android_trace_decode_at(slice_of(trace, size), start_ns, decoder->profile, error);
    free(trace);
    if (status == STATUS_OK && decoder->script.size > 0) status = add_script(decoder, start_ns, error);
    return status;
}
